//! The content of files: how well compressors compress it, and which blocks repeat.

use crate::common::{Program, scratch};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// The content of the files that a job leaves, sorted by name.
fn written(program: &Program, line: &str) -> Vec<Vec<u8>> {
    let dir = scratch();
    let line = format!("--name=job --ioengine=psync --rw=write {line}");
    program.line(dir.path(), &line).ok();
    let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn one_file(program: &Program, line: &str) -> Vec<u8> {
    let mut files = written(program, line);
    assert_eq!(files.len(), 1, "{line}");
    files.remove(0)
}

/// The percentage that zlib saves.
fn deflated(data: &[u8]) -> f64 {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, data).unwrap();
    saved(data, encoder.finish().unwrap().len())
}

/// The percentage that lz4 saves.
fn lz4(data: &[u8]) -> f64 {
    saved(data, lz4_flex::compress(data).len())
}

fn saved(data: &[u8], compressed: usize) -> f64 {
    100.0 - 100.0 * compressed as f64 / data.len() as f64
}

/// The percentage of blocks that repeat an earlier one.
fn duplicates(data: &[u8], block: usize) -> f64 {
    let blocks = data.chunks(block).count();
    let distinct = data.chunks(block).collect::<HashSet<_>>().len();
    100.0 * (blocks - distinct) as f64 / blocks as f64
}

#[track_caller]
fn near(got: f64, asked: f64, what: &str) {
    assert!((got - asked).abs() <= 2.0, "{what}: asked for {asked}%, got {got:.2}%");
}

#[test]
fn files_compress_by_what_was_asked() {
    let program = Program::under_test();
    let mut cases = Vec::new();
    for percentage in [0, 1, 10, 25, 33, 50, 75, 90, 99, 100] {
        cases.push((percentage, "4k", None));
    }
    for (bs, chunk) in [("4k", 0), ("64k", 0), ("128k", 512), ("128k", 4096), ("12k", 5000), ("4k", 65536)] {
        cases.extend([20, 50, 80].map(|percentage| (percentage, bs, Some(chunk))));
    }
    for (percentage, bs, chunk) in cases {
        if program.is_peer && percentage == 0 {
            continue; // fio treats 0 as unset and writes one buffer again and again.
        }
        let chunk = chunk.map_or(String::new(), |chunk| format!("--buffer_compress_chunk={chunk}"));
        let line = format!("--size=1536k --bs={bs} --buffer_compress_percentage={percentage} {chunk}");
        let data = one_file(&program, &line);
        near(deflated(&data), percentage.into(), &format!("zlib {line}"));
        near(lz4(&data), percentage.into(), &format!("lz4 {line}"));
        // Compressible data does not repeat between blocks.
        if percentage < 100 {
            let block = bs.trim_end_matches('k').parse::<usize>().unwrap() << 10;
            assert_eq!(duplicates(&data, block), 0.0, "{line}");
        }
    }
}

#[test]
fn blocks_repeat_as_often_as_was_asked() {
    let program = Program::under_test();
    for (bs, bytes, size) in [("4k", 4096, "4m"), ("512", 512, "1m"), ("64k", 65536, "32m")] {
        for percentage in [0, 1, 10, 50, 90, 100] {
            let line = format!("--bs={bs} --size={size} --dedupe_percentage={percentage}");
            let data = one_file(&program, &line);
            // fio decides at random for each block; the standard deviation for 512 blocks is 2.2%.
            if !program.is_peer || bytes < 65536 {
                near(duplicates(&data, bytes), percentage.into(), &line);
            }
            // By default, a block repeats the one directly before it.
            let mut last = HashMap::new();
            for (place, block) in data.chunks(bytes).enumerate() {
                assert!(
                    last.insert(block, place).is_none_or(|before| before + 1 == place),
                    "{line}: {place}"
                );
            }
        }
    }
}

#[test]
fn blocks_of_several_sizes_repeat_too() {
    let line = "--bsrange=4k-16k --size=16m --dedupe_percentage=40";
    near(duplicates(&one_file(&Program::under_test(), line), 4096), 40.0, line);
}

#[test]
fn in_any_order_and_at_any_depth() {
    let program = Program::under_test();
    for engine in ["--ioengine=libaio --iodepth=8", "--ioengine=psync --thread", "--rw=randwrite"] {
        let line =
            format!("--bs=4k --size=8m {engine} --dedupe_percentage=50 --buffer_compress_percentage=60");
        let data = one_file(&program, &line);
        near(duplicates(&data, 4096), 50.0, &line);
        let distinct: HashSet<&[u8]> = data.chunks(4096).collect();
        near(lz4(&distinct.into_iter().collect::<Vec<_>>().concat()), 60.0, &line);
    }
}

#[test]
fn a_working_set_is_a_share_of_the_file() {
    let program = Program::under_test();
    for (percentage, set) in [(10u32, 5u32), (50, 1), (50, 20), (90, 10)] {
        let line = format!(
            "--bs=4k --size=8m --dedupe_percentage={percentage} --dedupe_mode=working_set \
             --dedupe_working_set_percentage={set}"
        );
        let data = one_file(&program, &line);
        near(duplicates(&data, 4096), percentage.into(), &line);
        let mut counts = HashMap::new();
        data.chunks(4096).for_each(|block| *counts.entry(block).or_insert(0) += 1);
        let repeated = counts.values().filter(|count| **count > 1).count();
        // Of 2048 blocks, enough are repeats that nearly each member of a small set occurs more than once.
        let members = (2048 * set / 100) as usize;
        assert!(repeated <= members, "{line}: {repeated} of {members}");
        if percentage >= 50 && percentage + set <= 60 {
            assert!(repeated >= members * 95 / 100, "{line}: {repeated} of {members}");
        }
    }
}

/// Each worker writes a part of the common set, and all repeat blocks of the whole set. Workers are processes or
/// threads.
#[test]
pub fn workers_share_a_working_set() {
    let program = Program::under_test();
    for kind in ["", "--thread"] {
        let line = format!(
            "--bs=4k --size=8m --numjobs=4 {kind} --dedupe_percentage=50 --dedupe_mode=working_set \
             --dedupe_global=1"
        );
        let files = written(&program, &line);
        assert_eq!(files.len(), 4);
        near(duplicates(&files.concat(), 4096), 50.0, &line);
        let each = files.iter().map(|file| file.chunks(4096).collect::<HashSet<_>>());
        let common = each.reduce(|a, b| &a & &b).unwrap().len();
        // The set is 5% of 2048 blocks, and each worker draws from it about 1024 times.
        assert!((90..=102).contains(&common), "{common}");

        let apart = written(&program, &line.replace("--dedupe_global=1", ""));
        let each = apart.iter().map(|file| file.chunks(4096).collect::<HashSet<_>>());
        assert_eq!(each.reduce(|a, b| &a & &b).unwrap().len(), 0);
    }
}

#[test]
fn the_pattern_is_the_compressible_part() {
    let program = Program::under_test();
    let data =
        one_file(&program, r#"--bs=4k --size=1m --buffer_compress_percentage=50 --buffer_pattern="abcdefg""#);
    for chunk in data.chunks(512) {
        assert!(chunk[256..].iter().zip(b"abcdefg".iter().cycle()).all(|(a, b)| a == b));
    }
    assert_eq!(duplicates(&data, 256), 50.0 - 100.0 / 4096.0, "one block of pattern, and random ones");
}

/// A file that is laid out to be read has the content that the job would write.
#[test]
fn files_that_are_read_are_of_the_same_kind() {
    let program = Program::under_test();
    let laid_out = |line: &str| one_file(&program, &format!("--rw=read --bs=4k --size=2m {line}"));
    near(lz4(&laid_out("--buffer_compress_percentage=50")), 50.0, "layout");
    assert!(laid_out("--zero_buffers").iter().all(|&byte| byte == 0));
    if !program.is_peer {
        near(duplicates(&laid_out("--dedupe_percentage=30"), 4096), 30.0, "layout");
    }
    let mixed = one_file(&program, "--rw=rw --bs=4k --size=4m --buffer_compress_percentage=70");
    near(lz4(&mixed), 70.0, "mixed");
}

#[test]
fn two_runs_write_the_same() {
    let program = Program::under_test();
    let line = "--bs=4k --size=1m --dedupe_percentage=50 --buffer_compress_percentage=30";
    assert!(one_file(&program, line) == one_file(&program, line));
    assert!(one_file(&program, line) != one_file(&program, &format!("{line} --randseed=7")));
}

#[test]
fn options_without_effect_are_reported() {
    let program = Program::under_test();
    if program.is_peer {
        iolite_testing::skip!("fio says nothing");
    }
    let dir = scratch();
    let run = |line: &str| {
        program.line(dir.path(), &format!("--name=job --filename=f --rw=write --bs=4k --size=1m {line}"))
    };
    run("--dedupe_percentage=50 --zero_buffers").ok().says("zero_buffers: has no effect together with");
    run("--buffer_compress_percentage=50 --refill_buffers=0").ok().says("refill_buffers: has no effect");
    let data = fs::read(Path::new(dir.path()).join("f")).unwrap();
    assert_eq!(duplicates(&data, 4096), 0.0);
}

#[test]
fn impossible_working_sets_are_refused() {
    let program = Program::under_test();
    let dir = scratch();
    let set = "--name=job --rw=write --bs=4k --dedupe_percentage=50 --dedupe_mode=working_set";
    for (line, reason) in [
        ("--size=1m --dedupe_working_set_percentage=60", "dedupe"),
        ("--filesize=1m", "size"),
        ("--size=1m --nrfiles=2", "file"),
    ] {
        program.line(dir.path(), &format!("{set} {line}")).refused().says(reason);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{line}: nothing is created");
    }
}
