//! The offsets of I/O: distributions, zones, sequences and preconditioning, observed with strace and compared with fio
//! if it has the option.

use crate::common::trace::{Call, io_calls};
use crate::common::{Json, Program, peers, scratch, words};
use iolite_testing::{partly_skipped, skip, this_test};
use std::collections::BTreeMap;
use std::fs;

const K: u64 = 1024;

/// The reads and writes of a job with blocks of 4 KiB; `None` = there is no strace.
fn trace(program: &Program, line: &str) -> Option<Vec<Call>> {
    let dir = scratch();
    let args = words(&format!("--name=j --ioengine=psync --bs=4k --fallocate=none {line}"));
    let (finished, calls) = io_calls(program, dir.path(), &args)?;
    finished.ok();
    // For read jobs, the writes of layout are ignored.
    let reads = line.contains("read");
    Some(calls.into_iter().filter(|call| !reads || call.name == "pread64").collect())
}

/// The block numbers of our program's I/Os, in order.
fn blocks(line: &str) -> Option<Vec<u64>> {
    Some(in_blocks(&trace(&Program::under_test(), line)?))
}

fn in_blocks(calls: &[Call]) -> Vec<u64> {
    calls.iter().map(|call| call.offset / (4 * K)).collect()
}

fn counts<T: Ord + Clone>(values: &[T]) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(value.clone()).or_insert(0) += 1);
    counts
}

/// The cumulative shares of accesses of the one, two, three … most popular places.
fn popularity<T: Ord + Clone>(values: &[T]) -> Vec<f64> {
    let mut counts: Vec<usize> = counts(values).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    counts
        .iter()
        .map(|count| {
            sum += count;
            sum as f64 / values.len() as f64
        })
        .collect()
}

/// The largest distance of two such curves.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let at = |curve: &[f64], index: usize| curve.get(index).copied().unwrap_or(1.0);
    (0..a.len().max(b.len())).map(|index| (at(a, index) - at(b, index)).abs()).fold(0.0, f64::max)
}

macro_rules! traced {
    ($calls:expr) => {
        match $calls {
            Some(calls) => calls,
            None => skip!("strace does not work here"),
        }
    };
}

/// For every distribution, blocks are as popular as in fio.
///
/// With 8192 accesses each, two samples of one distribution differ by less than 1.63 * sqrt(2 / 8192) = 0.025 in 99
/// of 100 cases (Kolmogorov and Smirnov), and by less when sorted by popularity. fio's zipf is the approximation of
/// Gray et al., whose cumulative shares are wrong by up to 0.021 for these exponents. For comparison: a zipf exponent
/// of 1.1 instead of 1.2 makes a difference of 0.09, and a pareto power of 0.25 instead of 0.2 makes one of 0.15.
#[test]
fn popularity_is_that_of_the_peer() {
    for peer in peers!() {
        for law in [
            "zipf:0.5",
            "zipf:1.2",
            "zipf",
            "zipf:2",
            "pareto:0.2",
            "pareto",
            "pareto:0.9",
            "normal",
            "normal:20",
            "normal:99",
            "zoned:60/10:30/20:8/30:2/40",
            "zoned_abs:80/1m:20/3m",
        ] {
            let line = format!("--rw=randread --size=8m --io_size=32m --random_distribution={law}");
            let ours = popularity(&traced!(blocks(&line)));
            let theirs = popularity(&in_blocks(&traced!(trace(&peer, &line))));
            let distance = distance(&ours, &theirs);
            let tolerance = if law.starts_with("zipf") { 0.025 + 0.021 } else { 0.025 };
            assert!(distance < tolerance, "{law}: {distance}\n{:?}\n{:?}", &ours[..9], &theirs[..9]);
        }
    }
}

/// fio says so for each file, and such a job does no I/O there; its exit status is 0.
#[test]
fn zones_beyond_the_file_are_refused() {
    let line = "--name=j --filename=f --rw=randread --size=4m --random_distribution=zoned_abs:60/20G:40/100G";
    let words = "zoned_abs sizes exceed file size";
    for peer in Program::peers() {
        peer.line(scratch().path(), line).says(words);
    }
    let dir = scratch();
    Program::own().line(dir.path(), line).refused().says(words).says("f has 4194304 to work on");
    Program::called_fio(scratch().path()).line(dir.path(), line).refused().says(words);
    assert!(!dir.path().join("f").exists());
}

/// Blocks repeat although norandommap is not set, the amount of I/O stays the same, and the same seed gives the same
/// order.
#[test]
fn a_skewed_distribution_does_without_coverage() {
    let line = "--rw=randread --size=4m --random_distribution=zipf:1.2";
    let first = traced!(blocks(line));
    assert_eq!(first.len(), 1024);
    assert!(counts(&first).len() < 700, "{} different blocks", counts(&first).len());
    assert!(first.iter().all(|&block| block < 1024));
    assert_eq!(traced!(blocks(line)), first);
    let other = traced!(blocks(&format!("{line} --randseed=5")));
    assert_ne!(other, first);
}

/// The centre is the most popular block in both programs. The default centre of a normal distribution is the middle.
#[test]
fn the_centre_is_the_most_popular_block() {
    for program in Program::all() {
        for (law, hottest) in [("zipf:1.5:0.25", 256), ("zipf:1.5:0", 0), ("pareto:0.1:0.5", 512)] {
            let line = format!("--rw=randread --size=4m --random_distribution={law}");
            let counts = counts(&in_blocks(&traced!(trace(&program, &line))));
            let most = counts.iter().max_by_key(|&(_, count)| count).map(|(&block, _)| block);
            assert_eq!(most, Some(hottest), "{law} {program:?}");
        }
    }
    // With 32 blocks, the bell curve is narrow enough to find its top.
    let hits = |law: &str| -> Option<Vec<usize>> {
        let line = format!("--rw=randread --size=128k --io_size=16m --random_distribution={law}");
        let counts = counts(&blocks(&line)?);
        Some((0..32).map(|block| counts.get(&block).copied().unwrap_or(0)).collect())
    };
    let (middle, start) = (traced!(hits("normal")), traced!(hits("normal:0:0")));
    assert!(middle[16] * 20 > 4096 * 2 && start[0] * 20 > 4096 * 2, "{middle:?} {start:?}");
    // The same bell curve, moved by half of the file.
    for block in 0..32 {
        let difference = middle[block].abs_diff(start[(block + 16) % 32]);
        assert!(difference <= 1, "{middle:?} {start:?}");
    }
}

/// Each direction has its own zones.
#[test]
fn zones_per_direction() {
    if Program::under_test().is_peer {
        skip!("fio documents zones per direction, but does not read them");
    }
    let zones = "zoned:100/25:0/75,0/75:100/25";
    let calls = traced!(trace(
        &Program::under_test(),
        &format!("--rw=randrw --size=4m --io_size=8m --random_distribution={zones} --overwrite=1")
    ));
    let of = |name: &str| -> Vec<u64> {
        calls.iter().filter(|call| call.name == name).map(|call| call.offset / (4 * K)).collect()
    };
    assert!(of("pread64").iter().all(|&block| block < 256));
    assert!(counts(&of("pread64")).len() > 200);
    let line = "--rw=randwrite --size=4m --io_size=8m --overwrite=0";
    let writes = traced!(blocks(&format!("{line} --random_distribution={zones}")));
    assert!(writes.iter().all(|&block| block >= 768));
    assert!(counts(&writes).len() > 200);
}

/// Zones have the right places and shares: 60% in the first tenth, and so on.
#[test]
fn zones_are_exact() {
    let line = "--rw=randread --size=4000k --io_size=32m --random_distribution";
    let share = |blocks: &[u64], from: u64, to: u64| {
        blocks.iter().filter(|&&block| (from..to).contains(&block)).count() as f64 / blocks.len() as f64
    };
    let blocks_of = |zones: &str| blocks(&format!("{line}={zones}"));
    let percent = traced!(blocks_of("zoned:60/10:30/20:10/30"));
    // For 8192 I/Os, five standard deviations of a share of one half are 0.028.
    for (from, to, expected) in [(0, 100, 0.6), (100, 300, 0.3), (300, 600, 0.1)] {
        assert!((share(&percent, from, to) - expected).abs() < 0.028, "{from}..{to}");
    }
    assert!(percent.iter().all(|&block| block < 600), "nothing behind the zones");
    let bytes = traced!(blocks_of("zoned_abs:75/40k:25/80k"));
    assert!((share(&bytes, 0, 10) - 0.75).abs() < 0.028);
    assert_eq!(counts(&bytes).into_keys().collect::<Vec<_>>(), (0..30).collect::<Vec<_>>());
}

/// The offsets are exactly those of the sequence.
#[test]
pub fn sequences() {
    if Program::under_test().is_peer {
        skip!("sequences came after fio 3.33");
    }
    let line = "--rw=randread --size=32k --random_distribution=sequence:2,0,1";
    assert_eq!(traced!(blocks(line)), [2, 0, 1, 2, 0, 1, 2, 0]);
    let stride = format!("{line} --random_sequence_stride=1");
    assert_eq!(traced!(blocks(&stride)), [2, 0, 1, 5, 3, 4, 2, 0]);
}

/// With strided zones, sequential I/O has exactly fio's order.
#[test]
fn strided_zones_are_those_of_the_peer() {
    for peer in peers!() {
        for line in [
            "--rw=read --zonesize=8k",
            "--rw=read --zonesize=8k --zoneskip=8k",
            "--rw=read --zonesize=8k --zonerange=16k",
            "--rw=read --zonesize=8k --zonerange=16k --zoneskip=16k",
            "--rw=write --zonesize=32k --zonerange=16k --zoneskip=16k",
            "--rw=read --zonesize=2k --zoneskip=4k",
            "--rw=read --zonesize=8k --zonerange=16k --io_size=1m",
            "--rw=read --zonesize=8k --zonerange=16k --io_size=64k",
            "--rw=read:4k --zonesize=8k --zonerange=32k",
            "--rw=read --offset=64k --zonesize=8k --zonerange=16k",
            "--rw=read --zonesize=8k --zonerange=16k --zoneskip=512k",
            "--rw=read --zonesize=1m --zonerange=16k",
            "--rw=read --zonesize=8k --zoneskip=2z",
            "--rw=read --zonesize=8k --zonerange=4k",
        ] {
            let line = format!("--size=256k --zonemode=strided {line}");
            let ours = traced!(trace(&Program::under_test(), &line));
            let theirs = traced!(trace(&peer, &line));
            let places = |calls: &[Call]| -> Vec<(u64, u64)> {
                calls.iter().map(|call| (call.offset, call.length)).collect()
            };
            assert_eq!(places(&ours), places(&theirs), "{line}");
        }
    }
}

/// Zones go on behind `size`, to the end of the file, as in fio.
#[test]
fn strided_zones_go_on_through_the_file() {
    let two = [("f", 64 * K), ("g", 64 * K)];
    for (files, line) in [
        (&[("f", 256 * K)][..], "--rw=read --zonesize=8k --zoneskip=8k --size=64k"),
        (&[("f", 256 * K)], "--rw=write --zonesize=8k --zoneskip=24k --size=128k --offset=64k"),
        (&[("f", 256 * K)], "--rw=read --zonesize=8k --zonerange=16k --zoneskip=8k --size=50%"),
        (&[("f", 256 * K)], "--rw=read --zonesize=8k --zoneskip=8k --size=64k --io_size=200k"),
        (&[("f", 256 * K)], "--rw=read --zonesize=8k --zonerange=20k --zoneskip=24k --size=60k --loops=3"),
        (&[("f", 256 * K)], "--rw=read --zonesize=8k --zoneskip=8k --filesize=64k"),
        (&[("f", 256 * K)], "--ioengine=null --rw=read --zonesize=8k --zoneskip=8k --size=64k"),
        (&[("f", 66_000)], "--rw=read --zonesize=8k --zoneskip=24k --size=60k"),
        (&[("f", 68 * K)], "--rw=read --zonesize=8k --zoneskip=8k --size=60k --loops=2"),
        (&[("f", 68 * K)], "--rw=read --zonesize=8k --zoneskip=8k --size=16k --loops=6"),
        (&[("f", 68 * K)], "--rw=read --zonesize=8k --zoneskip=8k --size=60k --io_size=120k"),
        (&two, "--rw=read --zonesize=12k --zoneskip=12k"),
        (&two, "--rw=read --zonesize=16k --zoneskip=16k --size=64k --file_service_type=sequential"),
    ] {
        let logged = |program: &Program| -> Vec<String> {
            let dir = scratch();
            for (name, length) in files {
                fs::File::create(dir.path().join(name)).unwrap().set_len(*length).unwrap();
            }
            let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            let line =
                format!("--bs=4k --zonemode=strided --write_iolog=log --filename={} {line}", names.join(":"));
            program.line(dir.path(), &format!("--name=j {line}")).ok();
            let log = fs::read_to_string(dir.path().join("log")).unwrap();
            // (Newer logs begin with the time.)
            let place = |line: &str| line.trim_start_matches(|c: char| c.is_ascii_digit()).trim().to_owned();
            log.lines()
                .filter(|line| line.contains(" read ") || line.contains(" write "))
                .map(place)
                .collect()
        };
        let ours = logged(&Program::under_test());
        assert!(ours.len() >= 4, "{line}: {ours:?}");
        for peer in peers!() {
            assert_eq!(ours, logged(&peer), "{line}");
        }
    }
}

/// In each visit, random I/O covers the whole zone, except with norandommap.
#[test]
fn strided_zones_are_covered_by_each_visit() {
    let line = "--rw=randread --size=256k --zonemode=strided --zonesize=64k --zonerange=64k --zoneskip=64k";
    let covered = traced!(blocks(line));
    assert_eq!(covered.len(), 64);
    for (visit, zone) in covered.chunks(16).enumerate() {
        let start = visit as u64 % 2 * 32;
        let mut sorted = zone.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (start..start + 16).collect::<Vec<_>>(), "visit {visit}: {zone:?}");
        assert_ne!(sorted, zone, "at random");
    }
    let uncovered = traced!(blocks(&format!("{line} --norandommap")));
    assert!(uncovered.chunks(16).all(|zone| {
        let start = zone[0] / 32 * 32;
        zone.iter().all(|block| (start..start + 16).contains(block))
    }));
    assert!(uncovered.chunks(16).any(|zone| counts(zone).len() < 16));
}

/// Preconditioning writes each block at least once, and the share of overprovisioned blocks twice, region by region.
#[test]
pub fn preconditioning() {
    if Program::under_test().is_peer {
        skip!("sprandom came after fio 3.33");
    }
    // The mean distance between two writes of a block, and the number of writes.
    let measure = |line: &str| -> Option<(f64, usize)> {
        let writes = blocks(&format!("--rw=randwrite --size=8m --sprandom=1 {line}"))?;
        assert_eq!(counts(&writes).len(), 2048, "every block: {line}");
        let mut last = BTreeMap::new();
        let again: Vec<usize> = (0..writes.len())
            .filter_map(|at| last.insert(writes[at], at).map(|before| at - before))
            .collect();
        Some((again.iter().sum::<usize>() as f64 / again.len().max(1) as f64, writes.len()))
    };
    let (apart, all) = traced!(measure(""));
    assert!(all.abs_diff(2048 * 115 / 100) < 50, "{all} writes");
    // A region has 2355 / 100 writes, some of which are rewrites.
    assert!((20.0..40.0).contains(&apart), "{apart}");
    let (_, all) = traced!(measure("--spr_op=0.5"));
    assert!(all.abs_diff(2048 * 150 / 100) < 50, "{all} writes");
    let (apart, _) = traced!(measure("--spr_num_regions=10"));
    assert!((200.0..400.0).contains(&apart), "{apart}");
    // Four regions have 590 writes each, and each is larger than 2 MiB.
    let (apart, _) = traced!(measure("--spr_cs=2m --spr_num_regions=4"));
    assert!((500.0..900.0).contains(&apart), "{apart}");
    let dir = scratch();
    let line = "--name=j --filename=f --rw=randwrite --size=8m --sprandom=1";
    let refused = Program::under_test().line(dir.path(), &format!("{line} --spr_cs=2m")).refused();
    refused.says("100 regions are too many for spr_cs=2097152").says("use spr_num_regions=4 or fewer");
    let refused =
        Program::under_test().line(dir.path(), &format!("{line} --spr_num_regions=1 --spr_cs=16m")).refused();
    refused.says("a cache as large as the whole flash");
    assert!(!dir.path().join("f").exists());
}

/// Combinations of preconditioning with other options are accepted or refused as in fio, and write similar amounts.
#[test]
fn preconditioning_beside_other_options() {
    for (more, is_taken) in [
        ("", true),
        ("--random_generator=lfsr --norandommap=1", true),
        ("--spr_num_regions=10", true),
        ("--spr_op=0.5", true),
        ("--random_generator=tausworthe", false),
        ("--random_generator=tausworthe64", false),
        ("--norandommap=0", false),
        ("--spr_num_regions=0", false),
        ("--nrfiles=2", false),
        ("--rw=write", false),
        ("--rw=randread", false),
    ] {
        let mut written = Vec::new();
        for program in [vec![Program::under_test()], Program::peers()].concat() {
            if program.version() == "fio-3.33" {
                partly_skipped(&this_test!(), "sprandom came after fio 3.33");
                continue;
            }
            let dir = scratch();
            let line = format!("--name=j --rw=randwrite --size=8m --sprandom=1 --output-format=json {more}");
            let run = program.line(dir.path(), &line);
            assert_eq!(run.code() == 0, is_taken, "{more}: {run}");
            if is_taken {
                written.push(Json::parse(&run.stdout).job().ios()[1]);
            }
        }
        assert!(
            written.iter().all(|&writes| writes.abs_diff(written[0]) < written[0] / 50),
            "{more}: {written:?}"
        );
    }
}

/// Files are as popular as in fio. With zipf, at least four fifths of the I/O go to the first of 16 files.
#[test]
fn file_service_by_law() {
    for peer in peers!() {
        for law in ["zipf", "zipf:0.5", "zipf:1.2:0.5", "pareto:0.2", "pareto:0.4", "normal", "gauss:50"] {
            // In fio, a random centre may split the most popular file in two; in Iolite, it is a whole file.
            let law = if law.matches(':').count() < 2 && !law.contains("normal") && !law.contains("gauss") {
                let value = law.split_once(':').map_or("1.1", |(_, value)| value);
                format!("{}:{value}:0.25", law.split(':').next().unwrap_or_default())
            } else {
                law.to_owned()
            };
            let line = format!(
                "--rw=randread --norandommap --nrfiles=16 --size=2m --io_size=32m --file_service_type={law}"
            );
            let files =
                |calls: Vec<Call>| -> Vec<String> { calls.into_iter().map(|call| call.file).collect() };
            let ours = files(traced!(trace(&Program::under_test(), &line)));
            let theirs = files(traced!(trace(&peer, &line)));
            let (a, b) = (popularity(&ours), popularity(&theirs));
            // The most popular file is the same, too.
            let most = |files: &[String]| counts(files).into_iter().max_by_key(|entry| entry.1);
            if law.contains("zipf") || law.contains("pareto") {
                assert_eq!(most(&ours).map(|most| most.0), most(&theirs).map(|most| most.0), "{law}");
            }
            assert!(distance(&a, &b) < 0.035, "{law}: {} {a:?} {b:?}", distance(&a, &b));
        }
    }
}

/// `zonesize` divides ordinary files, and random I/O covers each block of them once in a lap, as in fio.
#[test]
fn zones_of_ordinary_files_are_covered() {
    for program in Program::all() {
        for (line, blocks) in [
            ("--rw=randwrite --size=512k", 128),
            ("--rw=randwrite --size=512k --io_size=1m", 256),
            ("--rw=randwrite --size=512k --io_size=1m --random_generator=lfsr", 256),
            ("--rw=randwrite --size=512k --verify=crc32c --do_verify=0", 128),
        ] {
            let dir = scratch();
            std::fs::write(dir.path().join("f"), vec![0; 512 * K as usize]).expect("it can be written");
            let line =
                format!("--name=j --filename=f --zonemode=zbd --zonesize=64k --write_iolog=log {line}");
            program.line(dir.path(), &line).ok();
            let log = std::fs::read_to_string(dir.path().join("log")).expect("the log is there");
            let writes =
                log.lines().filter_map(|line| line.split_once(" write ")?.1.split(' ').next()?.parse().ok());
            let visits = counts(&writes.collect::<Vec<u64>>());
            assert_eq!(visits.len(), 128, "{line} by {}", program.version());
            assert!(visits.values().all(|&count| count == blocks / 128), "{line}: {visits:?}");
        }
    }
}

/// Under the name `fio`, jobs that make a mistake with zones are refused with fio's sentence, and our reason behind it.
#[test]
fn zones_are_refused_in_the_words_of_fio() {
    const ZONED: &str = "--filename=f --zonemode=zbd --zonesize=64k --rw=write";
    let cases = [
        (
            "--filename=f --zonemode=zbd --rw=write",
            "f: Specifying the zone size is mandatory for regular file/block device with --zonemode=zbd (zonemode=zbd: ",
        ),
        (
            "--filename=f --zonemode=zbd --zonesize=256 --rw=write",
            "f: zone size must be at least 512 bytes for --zonemode=zbd (zonesize=256: ",
        ),
        (
            "ZONED --zonecapacity=80k",
            "f: job parameter zonecapacity 81920 is larger than zone size 65536 (zonecapacity=81920: ",
        ),
        ("ZONED --size=4k", "f: io_size must be at least one zone (offset=0: "),
        (
            "ZONED --zoneskip=48k",
            "f: zoneskip 49152 is not a multiple of the device zone size 65536. (zoneskip=49152: ",
        ),
        ("ZONED --bs=128k", "I/O buflen exceeds zone size (bs: "),
        (
            "ZONED --zonesize=8m",
            "f: file/device size 524288 is smaller than zone size 8388608 (zonemode=zbd: ",
        ),
        (
            "ZONED --job_max_open_zones=2",
            "'job_max_open_zones' cannot be used without a global open zones limit (job_max_open_zones=2: ",
        ),
        (
            "ZONED --size=128k --name=k --filename=f --zonemode=zbd --zonesize=128k --rw=write --size=128k",
            "f: zonesize 131072 does not match the device zone size 65536. (zonesize=131072: ",
        ),
        ("ZONED --verify=md5 --experimental_verify=1", "zonemode=zbd does not support experimental verify ("),
        (
            "ZONED --recover_zbd_write_error=1",
            "recover_zbd_write_error works only when continue_on_error is set (recover_zbd_write_error=1: ",
        ),
        (
            "ZONED --recover_zbd_write_error=1 --continue_on_error=write --verify=md5 --ioengine=libaio",
            "recover_zbd_write_error for async IO engines does not support verify (recover_zbd_write_error=1: ",
        ),
        (
            "ZONED --size=128k --numjobs=2 --offset_increment=128k --zone_reset_threshold=.4 --zone_reset_frequency=.1",
            "multi-jobs with different write ranges are not supported with zone_reset_threshold (zone_reset_threshold=0.4: ",
        ),
        ("ZONED --rw=trim", "f: trim block size 4096 is not the zone size 65536 (rw=trim: "),
        (
            "--filename=f --zonesize=64k --rw=write",
            "--zonemode=none and --zonesize are not compatible. (zonesize=65536: ",
        ),
        (
            "--filename=f --zonemode=strided --rw=write",
            "--zonesize must be specified when using --zonemode=strided. (zonemode=strided: ",
        ),
    ];
    let links = scratch();
    let ours = Program::called_fio(links.path());
    // (3.33 lacks some of the options and has other words for some mistakes.)
    let newest = Program::peers().into_iter().filter(|peer| peer.release.minor >= 41);
    let programs: Vec<Program> = std::iter::once(ours).chain(newest).collect();
    if programs.len() == 1 {
        partly_skipped(&this_test!(), "fio 3.41 is not installed");
    }
    for (line, words) in cases {
        for program in &programs {
            let dir = scratch();
            std::fs::write(dir.path().join("f"), vec![0; 512 * K as usize]).expect("it can be written");
            let (sentence, _) = words.split_once(" (").expect("our reason begins there");
            let words = if program.is_peer { sentence } else { words };
            let line = format!("--name=j {}", line.replace("ZONED", ZONED));
            let finished = program.line(dir.path(), &line);
            assert!(finished.code() != 0 && finished.output().contains(words), "{line}: {words}\n{finished}");
        }
    }
    // What only fio refuses.
    let dir = scratch();
    for more in [
        "--verify=md5 --experimental_verify=1",
        "--size=128k --numjobs=2 --offset_increment=128k --zone_reset_threshold=.4 --zone_reset_frequency=.1",
    ] {
        std::fs::write(dir.path().join("f"), vec![0; 512 * K as usize]).expect("it can be written");
        Program::under_test().line(dir.path(), &format!("--name=j {ZONED} {more}")).ok();
    }
}

/// The zones of an ordinary file exist only in the run, and trims reset them: the file itself is not trimmed.
#[test]
fn trims_reset_the_zones_of_a_file() {
    let links = scratch();
    let mut programs = vec![Program::called_fio(links.path())];
    programs.extend(Program::all());
    for program in programs {
        // (Random trims choose zones that are not empty, and all are when a run begins.)
        for (rw, writes, trims) in [("trim", 0, 8), ("randtrim", 0, 0), ("trimwrite", 8, 8)] {
            let dir = scratch();
            let file = dir.path().join("f");
            std::fs::write(&file, vec![7; 512 * K as usize]).expect("it can be written");
            let line = format!(
                "--name=j --filename=f --zonemode=zbd --zonesize=64k --bs=64k --rw={rw} --output-format=json"
            );
            let finished = program.line(dir.path(), &line);
            let ios = Json::parse(&finished.ok().stdout).job().ios();
            assert_eq!(ios, [0, writes, trims], "{rw} {}", program.version());
            let is_unchanged = std::fs::read(&file).expect("it is there") == vec![7; 512 * K as usize];
            assert_eq!(is_unchanged, writes == 0, "{rw} {}", program.version());
        }
    }
}

/// Nonsensical combinations are refused before anything is written.
#[test]
fn refusals_name_the_option() {
    let dir = scratch();
    for (line, message) in [
        ("--rw=randread --random_distribution=pareto:2", "random_distribution=pareto:2"),
        ("--rw=randread --random_distribution=zoned:60/10", "the shares add up to 60"),
        ("--rw=randread --random_distribution=zipf:1.2:3", "centre 3 is not between 0 and 1"),
        ("--rw=read --zonesize=8k", "zonesize=8192: needs zonemode=strided"),
        ("--rw=read --zonemode=strided", "needs a zonesize="),
        ("--rw=read --zonemode=zbd", "zonesize"),
        ("--rw=write --sprandom=1", "sprandom=1: needs rw=randwrite"),
    ] {
        if Program::under_test().is_peer {
            skip!("the words are ours");
        }
        Program::under_test().line(dir.path(), &format!("--name=j --size=1m {line}")).refused().says(message);
        assert_eq!(std::fs::read_dir(dir.path()).expect("it is there").count(), 0, "{line}");
    }
}
