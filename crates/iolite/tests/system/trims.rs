//! Verified jobs that trim: `trim_percentage`, and the trims of `rw=trimwrite`.

use crate::common::devices::{Loop, Ramfs, image};
use crate::common::program::Finished;
use crate::common::trace::system_calls;
use crate::common::{Json, Program, scratch, words};
use iolite_testing::{or_skip, skip};
use std::fs;

/// The I/Os of the only job.
#[track_caller]
fn ios(run: Finished) -> [u64; 3] {
    Json::parse(&run.ok().stdout).job().ios()
}

/// Blocks that were trimmed after they were written have to be zeros, on a device that zeros trimmed blocks.
#[test]
pub fn trimmed_blocks_are_zeros() {
    let dir = scratch();
    let path = image(dir.path(), "disk.img", 4 << 20);
    let device = or_skip!(Loop::on(&path));
    let base =
        format!("--name=v --filename={} --size=1m --bs=4k --verify=crc32c --output-format=json", device.path);
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{base} {args}"));
    for (args, reads, trims) in [
        ("--rw=write --trim_percentage=100", 256..=256, 256..=256),
        ("--rw=randwrite --trim_percentage=30", 256..=256, 40..=120),
        ("--rw=randwrite --trim_percentage=30 --trim_verify_zero=0", 136..=216, 40..=120),
        ("--rw=randwrite --trim_percentage=50 --trim_backlog=16", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --trim_backlog=16 --trim_backlog_batch=2", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --verify_backlog=16", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --norandommap --io_size=4m", 200..=256, 80..=500),
        (
            "--rw=randwrite --trim_percentage=50 --norandommap --trim_backlog=8 --io_size=4m",
            200..=256,
            80..=700,
        ),
        ("--rw=randwrite --trim_percentage=50 --ioengine=io_uring --iodepth=16", 256..=256, 80..=176),
        ("--rw=trimwrite", 256..=256, 256..=256),
    ] {
        let [read, written, trimmed] = ios(run(args));
        assert!(
            written >= 256 && reads.contains(&read) && trims.contains(&trimmed),
            "{args}: {read} {trimmed}"
        );
        // A later run knows which blocks were trimmed.
        if args.contains("trim_percentage") {
            let [again, ..] = ios(run(&format!("{args} --verify_only")));
            assert_eq!(again, read, "{args}");
        }
    }
    // A lost trim is found.
    run("--rw=write --trim_percentage=50 --do_verify=0").ok();
    fs::write(&path, vec![7; 4 << 20]).unwrap();
    run("--rw=write --trim_percentage=100 --verify_only --invalidate=1")
        .refused()
        .says("wanted '00 (it was trimmed)'");
}

/// `verify=null` checks only trimmed blocks for zeros. After a run with several clones, it is unknown whether another
/// clone has rewritten a trimmed block.
#[test]
fn verify_null_still_requires_zeros_after_trims() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    let job = format!("--filename={} --size=256k --rw=randwrite --verify=null", device.path);
    let run = |line: &str| Program::under_test().line(dir.path(), line);
    let trims = format!("--name=v {job} --trim_percentage=30");
    run(&format!("{trims} --numjobs=2")).ok();
    run(&format!("{trims} --numjobs=2 --verify_only")).refused().says("another clone wrote to");
    run(&format!("{trims} --name=w {}", job.replace("--verify=null", "")))
        .refused()
        .says("job w writes to")
        .says("without verify");
    // A single job, or jobs without the check for zeros, are accepted.
    run(&trims).ok();
    run(&format!("{trims} --verify_only")).ok();
    run(&format!("{trims} --numjobs=2 --trim_verify_zero=0")).ok();
    run(&format!("{trims} --numjobs=2 --trim_verify_zero=0 --verify_only")).ok();
}

/// `trim_backlog` writes are followed by `trim_backlog_batch` trims. The remaining trims come before reading back.
#[test]
pub fn trims_wait_for_the_configured_number_of_writes() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    let base = format!(
        "--name=v --filename={} --size=48k --bs=4k --rw=write --verify=crc32c --trim_percentage=100",
        device.path
    );
    for (args, expected) in [
        ("", "wwwwwwwwwwwwtttttttttttt"),
        ("--trim_backlog=4", "wwwwttttwwwwttttwwwwtttt"),
        ("--trim_backlog=3 --trim_backlog_batch=1", "wwwtwwwtwwwtwwwttttttttt"),
        ("--trim_backlog=6 --trim_backlog_batch=4", "wwwwwwttttwwwwwwtttttttt"),
        ("--trim_backlog=5 --trim_backlog_batch=100", "wwwwwtttttwwwwwtttttwwtt"),
        // do_verify=0 does not affect trims.
        ("--do_verify=0", "wwwwwwwwwwwwtttttttttttt"),
        ("--do_verify=0 --trim_backlog=3 --trim_backlog_batch=1", "wwwtwwwtwwwtwwwttttttttt"),
    ] {
        let line = words(&format!("{base} {args}"));
        let calls = system_calls(&Program::under_test(), dir.path(), "pwrite64,ioctl,fallocate", &line);
        let Some((run, log)) = calls else { skip!("needs strace") };
        run.ok();
        let letter = |line: &str| match line {
            _ if !line.contains(&device.path) => None,
            _ if line.contains("pwrite64(") => Some('w'),
            _ if line.contains("BLKDISCARD") || line.contains("fallocate(") => Some('t'),
            _ => None,
        };
        assert_eq!(log.lines().filter_map(letter).collect::<String>(), expected, "{args}: {log}");
    }
}

/// A later run finds the expected zeros, whether or not the writing run read them back.
#[test]
fn blocks_are_trimmed_even_if_not_read_back() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    let base =
        format!("--name=v --filename={} --size=1m --bs=4k --verify=crc32c --output-format=json", device.path);
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{base} {args}"));
    for args in [
        "--rw=randwrite --trim_percentage=30",
        "--rw=randwrite --trim_percentage=30 --trim_backlog=100 --trim_backlog_batch=10",
        "--rw=randwrite --trim_percentage=30 --norandommap --ioengine=libaio --iodepth=8",
        "--rw=write --trim_percentage=100 --loops=2",
    ] {
        let [_, _, trims] = ios(run(&format!("{args} --do_verify=0")));
        assert!(trims > 0, "{args}");
        ios(run(&format!("{args} --verify_only")));
    }
    let [_, writes, trims] =
        ios(run("--rw=write --trim_percentage=100 --time_based --runtime=30ms --do_verify=0"));
    assert_eq!(trims, writes.min(256));
}

/// Blocks that the workload has trimmed need not hold data until they are written again, even if the job ends before.
#[test]
fn blocks_trimmed_by_the_workload_need_not_hold_data() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    let base = format!("--name=v --filename={} --bs=4k --verify=crc32c --output-format=json", device.path);
    let run = |args: &str| ios(Program::under_test().line(dir.path(), &format!("{base} {args}")));
    for args in [
        "--size=1m --rw=randtrimwrite --norandommap --io_size=4m",
        "--size=1m --rw=randtrimwrite --norandommap --io_size=4m --verify_backlog=1 --ioengine=io_uring --iodepth=16",
        "--size=1m --rw=trimwrite --verify_backlog=8",
    ] {
        let [reads, writes, trims] = run(args);
        assert!(reads > 0 && writes >= 256 && trims == writes, "{args}: {reads} {writes} {trims}");
        run(&format!("{args} --verify_only"));
    }
    for args in ["--rw=trimwrite", "--rw=randtrimwrite", "--rw=trimwrite --ioengine=libaio --iodepth=8"] {
        for _ in 0..6 {
            run(&format!("--size=256k --time_based --runtime=40ms {args}"));
        }
    }
}

/// A mix of reads, writes and trims: blocks hold what was written, unless they were trimmed behind it.
#[test]
fn mixes_with_trims_are_verified() {
    let dir = scratch();
    let path = image(dir.path(), "disk.img", 1 << 20);
    let device = or_skip!(Loop::on(&path));
    let base = format!(
        "--name=v --filename={} --size=1m --bs=4k --direct=1 --verify=crc32c --output-format=json",
        device.path
    );
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{base} {args}"));
    for args in [
        "--rw=randrw --rwtmix=30/50/20 --norandommap --io_size=4m",
        "--rw=randrw --rwtmix=30/50/20 --norandommap --io_size=4m --ioengine=io_uring --iodepth=16",
        "--rw=randrw --rwtmix=30/50/20 --bsrange=4k-32k",
        "--rw=rw --rwtmix=20/50/30",
        "--rw=rw --rwtmix=0/50/50 --io_size=3m --ioengine=libaio --iodepth=8",
        "--rw=rw --rwtmix=10/50/40 --verify_backlog=16",
        "--rw=randrw --rwtmix=30/50/20 --norandommap --ioengine=pvsync2 --iodepth=4 --io_submit_mode=offload",
        "--rw=randrw --rwtmix=30/50/20 --numjobs=2 --offset_increment=512k --size=512k --group_reporting",
    ] {
        let [reads, writes, trims] = ios(run(args));
        assert!(reads > 0 && writes > 0 && trims > 0, "{args}: {reads} {writes} {trims}");
        let [again, none, nothing] = ios(run(&format!("{args} --verify_only")));
        assert!(again > 0 && again <= writes, "{args}: {again} of {writes}");
        assert_eq!([none, nothing], [0, 0], "{args}");
    }
    // With a map, each block is read, written or trimmed once.
    let written = std::iter::repeat_n(7, 1 << 20).collect::<Vec<u8>>();
    fs::write(&path, &written).unwrap();
    let args = "--rw=randrw --rwtmix=0/70/30 --ioengine=io_uring --iodepth=8 --invalidate=1";
    let [reads, writes, trims] = ios(run(args));
    assert_eq!((reads, writes + trims), (writes, 256));
    let disk = fs::read(&path).unwrap();
    let blocks_of = |byte: u8| disk.chunks(4096).filter(|block| block.iter().all(|one| *one == byte)).count();
    assert_eq!((blocks_of(0) as u64, blocks_of(7)), (trims, 0));
    // What a later run finds is not what was written.
    fs::write(&path, &written).unwrap();
    run(&format!("{args} --verify_only")).refused().says("verify");
}

#[test]
fn shares_that_make_no_sense_are_refused() {
    let dir = scratch();
    let run = |line: &str| {
        let line = format!("--name=j --size=64k --output-format=json {line}");
        Program::own().line(dir.path(), &line)
    };
    for (line, words) in [
        (
            "--ioengine=null --rw=rw --rwtmix=60/30",
            "rwtmix=60/30: gives the percentages of reads, writes and trims",
        ),
        ("--ioengine=null --rw=rw --rwtmix=60/30/20", "the sum of the percentages is 110; make it 100"),
        (
            "--filename=f --rw=rw --rwtmix=60/30/10",
            "rwtmix=60/30/10: f would be a regular file, and only block devices can be trimmed",
        ),
        ("--filename=f --rw=rw --rwtmix=60/30/10 --zonemode=zbd --zonesize=16k", "rwtmix: with zonemode=zbd"),
    ] {
        run(line).refused().says(words);
    }
    run("--ioengine=null --rw=randread --rwtmix=60/30/10").ok().says("a mix (rw=rw or rw=randrw)");
    // The latest of the three options counts.
    let [_, writes, trims] = ios(run("--ioengine=null --rw=rw --rwtmix=60/30/10 --rwmixread=50"));
    assert!(writes > 0 && trims == 0);
    assert_eq!(ios(run("--ioengine=null --rw=rw --rwmixwrite=50 --rwtmix=0/0/100")), [0, 0, 16]);
}

/// Submitters keep the order of a write and a trim of the same block.
#[test]
fn a_trim_does_not_overtake_its_write() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    for rw in ["trimwrite", "randtrimwrite"] {
        let line = format!(
            "--name=v --filename={} --size=1m --bs=4k --rw={rw} --verify=crc32c --ioengine=pvsync2 --iodepth=4 \
             --io_submit_mode=offload",
            device.path
        );
        Program::under_test().line(dir.path(), &line).ok();
    }
}

/// The time may end between any two trims.
#[test]
fn trims_that_wait_when_the_time_is_over_are_done() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    for args in [
        "--rw=randwrite --bs=4k --trim_backlog=3",
        "--rw=write --bs=16k --ioengine=io_uring --iodepth=4 --verify_backlog=8",
    ] {
        let line = format!(
            "--name=v --filename={} --size=256k --verify=crc32c --trim_percentage=50 --time_based --runtime=40ms \
             {args}",
            device.path
        );
        for _ in 0..8 {
            Program::under_test().line(dir.path(), &line).ok();
        }
    }
}

/// After a failed trim, the content of the block is undefined.
#[test]
fn a_trim_that_has_failed_leaves_nothing_to_demand() {
    let dir = scratch();
    let ramfs = or_skip!(Ramfs::new(dir.path()));
    let device = or_skip!(Loop::on(&image(&ramfs.directory, "disk.img", 1 << 20)));
    for args in ["", "--trim_backlog=4", "--verify_backlog=8", "--norandommap"] {
        let line = format!(
            "--name=v --filename={} --size=256k --bs=4k --rw=randwrite --verify=crc32c --trim_percentage=30 \
             --ignore_error=,EOPNOTSUPP --output-format=json {args}",
            device.path
        );
        let run = Program::under_test().line(dir.path(), &line).ok();
        let json = Json::parse(&run.stdout);
        let ([reads, writes, trims], errors) = (json.job().ios(), json.job().int("total_err"));
        assert!(trims > 0 && errors == trims && reads > 0 && reads < writes, "{args}: {run}");
    }
}
