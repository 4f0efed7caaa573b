//! Jobs that verify their writes while other jobs write to the same blocks: runs without damage report none, and real
//! damage is found.

use crate::common::devices::{Loop, image};
use crate::common::{Json, Program, scratch};
use iolite_testing::or_skip;
use std::fs;
use std::os::unix::fs::FileExt;

const ENGINES: &[&str] = &[
    "psync",
    "mmap",
    "libaio --iodepth=8",
    "io_uring --iodepth=5 --io_submit_mode=offload",
    "pvsync2",
    "posixaio --iodepth=4",
    "io_uring --iodepth=8",
];

/// One or several block sizes, aligned and unaligned.
const SIZES: &[&str] = &[
    "--bs=4k",
    "--bssplit=4k/50:8k/50",
    "--bs_unaligned --bsrange=700-9000",
    "--bs=8k --blockalign=4k",
    "--bs=4k --offset=2k",
    "--bs=64k",
    "--bsrange=1k-6k",
    "--bs=512",
];

const TYPES: &[&str] = &[
    "crc32c",
    "pattern --verify_pattern=%o",
    "meta",
    "pattern_hdr --verify_pattern=0x616263",
    "pattern --verify_pattern=0x123456",
    "pattern --verify_pattern=0x1234%o --verify_pattern_interval=512",
    "xxhash --verify_header_format=3.33",
    "crc64 --verify_offset=100",
    "pattern_hdr --verify_pattern=%o",
];

const INTERVALS: &[&str] = &["", "--verify_interval=512", "--verify_interval=3000", "--verify_interval=4k"];

const WORKLOADS: &[&str] = &[
    "randwrite",
    "write",
    "randwrite --norandommap --io_size=400k",
    "randrw",
    "randwrite --loops=2 --thread",
    "write --verify_backlog=7",
    "randwrite --verify_async=2",
    "randwrite --norandommap --verify_backlog=3 --thread",
    "write --io_size=400k",
    "rw --verify_backlog=5 --verify_backlog_batch=2",
    "randwrite --do_verify=0",
];

/// Picks an element of a list, in an order that combines the elements of different lists quickly.
fn picked<'a>(list: &[&'a str], round: usize, stride: usize) -> &'a str {
    list[(round * stride + round / list.len()) % list.len()]
}

fn job(round: usize) -> String {
    format!(
        "--size=128k --ioengine={} {} --verify={} {} --rw={}",
        picked(ENGINES, round, 1),
        picked(SIZES, round, 3),
        picked(TYPES, round, 2),
        picked(INTERVALS, round, 1),
        picked(WORKLOADS, round, 4),
    )
}

#[test]
fn clones_report_no_false_damage() {
    for round in 0..72 {
        let dir = scratch();
        let line = format!("--name=j --filename=s --numjobs={} {}", 1 + round % 3, job(round));
        Program::under_test().line(dir.path(), &line).ok();
    }
}

#[test]
fn pairs_of_jobs_report_no_false_damage() {
    for round in 0..48 {
        let dir = scratch();
        // A second name for the same file.
        std::os::unix::fs::symlink("s", dir.path().join("alias")).unwrap();
        let (one, other) = (job(round), job(7 * round + 5));
        let line = format!("--name=j --filename=s {one} --name=k --numjobs=2 --filename=alias {other}");
        Program::under_test().line(dir.path(), &line).ok();
    }
}

/// Devices split large I/Os, and support trims.
#[test]
fn on_a_device_there_are_trims_as_well() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    for args in [
        "--rw=randwrite --bs=64k --verify=crc32c",
        "--rw=randwrite --bs=64k --verify=crc32c --ioengine=libaio --iodepth=4 --direct=1",
        "--rw=randwrite --bssplit=4k/50:8k/50 --verify=pattern --verify_pattern=%o --direct=1 --ioengine=io_uring --iodepth=8",
        "--rw=trimwrite --bs=8k --verify=crc32c",
        "--rw=randtrimwrite --bs=4k --verify=md5 --norandommap --verify_backlog=5",
        "--rw=randwrite --verify=crc32c --trim_percentage=50",
        "--rw=randwrite --verify=crc32c --trim_percentage=50 --trim_backlog=8 --ioengine=io_uring --iodepth=4",
    ] {
        let line = format!("--name=j --filename={} --size=512k --numjobs=3 {args}", device.path);
        Program::under_test().line(dir.path(), &line).ok();
    }
}

/// Another program damages the file while the jobs write.
#[test]
fn damage_is_found_where_jobs_share() {
    for (blocks, rival, found) in [
        ("--bs=4k --verify=crc32c", "", "verify: bad magic header"),
        (
            "--bssplit=4k/50:8k/50 --verify=pattern --verify_pattern=%o",
            "--name=b --numjobs=2",
            "pattern: verify failed",
        ),
        ("--bs=4k --verify=md5", "--name=b --bs=8k --verify=meta", "verify: bad magic header"),
    ] {
        let dir = scratch();
        // The jobs write for three seconds, and the damage comes in the middle.
        let shared = format!("--filename=s --size=128k --rw=write --rate=43k {blocks}");
        let rival = rival.replace("--name=b", &format!("--name=b {shared}"));
        let line = format!("--name=a {shared} --numjobs=2 {rival}");
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        let path = dir.path().join("s");
        let is_written = |block: &[u8]| block.iter().any(|&byte| byte != 0);
        running.wait_until("a half of it", |_| {
            fs::read(&path).is_ok_and(|bytes| bytes.get(64 << 10..68 << 10).is_some_and(is_written))
        });
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&b"y\n".repeat(8192), 0).unwrap();
        running.wait().refused().says(found);
    }
}

/// A block of another job in a file that the job does not use is damage.
#[test]
fn only_jobs_of_the_same_file_are_rivals() {
    let dir = scratch();
    for name in ["a", "b"] {
        image(dir.path(), name, 64 << 10);
    }
    // The damage comes when the job `one` has written all of b and pauses, and `other` has written all of a.
    fs::write(dir.path().join("vandal"), "dd if=a of=b bs=4k count=1 conv=notrunc status=none\n").unwrap();
    let jobs = "--bs=4k --verify=crc32c --rw=write --name=one --filename=b:a --size=128k --filesize=64k \
                --file_service_type=sequential --thinktime=6s --thinktime_blocks=16 --name=other --filename=a --size=64k --do_verify=0 \
                --startdelay=1s --name=z --ioengine=null --size=4k --wait_for=other";
    let args = jobs.split_whitespace().chain(["--exec_prerun=sh vandal"]);
    let run = Program::under_test().run(dir.path(), args.collect::<Vec<_>>()).refused();
    run.says("verify: bad header thread 2, wanted 1 at file b offset 0, length 4096").says("another write");
}

#[test]
fn blocks_trimmed_by_another_job_are_not_checked() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "disk.img", 1 << 20)));
    let line = format!(
        "--filename={} --size=256k --verify=crc32c --name=fill --rw=write --name=trim --stonewall --rw=randtrim \
         --rate_iops=200 --name=look --rw=randread --loops=20 --rate_iops=4k",
        device.path
    );
    Program::under_test().line(dir.path(), &line).ok();
}

/// A reader whose block is being checked must not block the writer for which it waits (`flow`).
#[test]
fn reading_a_block_keeps_no_other_job_from_writing_it() {
    let dir = scratch();
    let line = "--filename=f --size=4k --bs=4k --ioengine=psync --verify=crc32c --name=fill --rw=write \
                --name=look --stonewall --rw=read --io_size=4m --flow=1 --flow_id=1 --verify_async=1 \
                --name=write --rw=write --io_size=4m --do_verify=0 --flow=1 --flow_id=1";
    Program::under_test().line(dir.path(), line).ok();
}

#[test]
fn unverifiable_sharing_is_refused_before_files_are_created() {
    let verify = "--filename=s --size=64k --rw=randwrite --verify=crc32c";
    for (jobs, words) in [
        (format!("--name=a {verify} --name=b --filename=s --size=64k --rw=write"), "job b writes to s without verify"),
        (format!("--name=a {verify} --name=b --filename=./s --size=64k --rw=randrw --offset=32k"), "job b writes to s"),
        (format!("--name=a {verify} --bssplit=4k/50:8k/50 --bs_unaligned --numjobs=2 --verify_only"), "another clone wrote to s"),
        (format!("--name=a {verify} --verify_only --name=b {verify} --verify=md5 --verify_only"), "job b wrote to s as well"),
        (
            "--name=a --filename=s --size=64k --rw=write --verify=pattern --verify_pattern=%o --bssplit=4k/50:8k/50 \
             --numjobs=2 --verify_only"
                .to_owned(),
            "no %o in a verify_pattern",
        ),
        ("--name=a --filename=s:s --size=64k --rw=write --verify=md5".to_owned(), "filename: s is named twice"),
        ("--name=a --filename=s:./s --size=64k --rw=write --verify=md5".to_owned(), "s and ./s are the same file"),
    ] {
        let dir = scratch();
        let run = Program::under_test().line(dir.path(), &jobs).refused().says(words);
        assert!(!dir.path().join("s").exists(), "{run}");
    }
}

#[test]
fn jobs_that_can_share_a_file_are_accepted() {
    let verify = "--filename=s --size=64k --rw=randwrite --verify=crc32c";
    for jobs in [
        // The jobs run one after the other, use separate blocks, or do not check.
        format!("--name=a {verify} --name=b --filename=s --size=64k --rw=write --stonewall"),
        format!("--name=a {verify} --name=b --filename=s --size=64k --rw=write --wait_for=a"),
        format!("--name=a {verify} --name=b --filename=s --size=64k --rw=write --offset=64k"),
        format!("--name=a {verify} --do_verify=0 --name=b --filename=s --size=64k --rw=write"),
        format!("--name=a {verify} --name=b --filename=s --size=64k --rw=write --ioengine=null"),
        format!("--name=a {verify} --name=b --filename=s --size=64k --rw=read"),
        format!("--name=a {verify} --verify=null --name=b --filename=s --size=64k --rw=write"),
        format!("--name=a {verify} --name=b {verify} --verify=null --bs=8k"),
        "--name=a --filename=s:s --size=64k --rw=write --verify=null".to_owned(),
        format!(
            "--name=a {verify} --numjobs=2 --offset_increment=64k --bssplit=4k/50:8k/50 --verify_pattern=%o"
        ),
    ] {
        let dir = scratch();
        Program::under_test().line(dir.path(), &jobs).ok();
    }
    // A later run can check a block if its writer does not matter, or if there was no other writer.
    for args in [
        "--bs=4k --numjobs=3",
        "--bssplit=4k/50:8k/50 --numjobs=2",
        "--bs=8k --blockalign=4k --verify_interval=1k --numjobs=2",
        "--verify=pattern --verify_pattern=0x12345678 --bssplit=4k/50:12k/50 --numjobs=2",
        "--verify=pattern --verify_pattern=%o --verify_pattern_interval=1k --bssplit=4k/50:12k/50 --numjobs=2",
        "--verify=pattern --verify_pattern=%o --bs=8k --numjobs=2",
        "--bs_unaligned --bsrange=700-9000 --numjobs=2 --offset_increment=64k",
    ] {
        let dir = scratch();
        let line = format!("--name=a {verify} {args} --output-format=json");
        Program::under_test().line(dir.path(), &line).ok();
        let run = Program::under_test().line(dir.path(), &format!("{line} --verify_only")).ok();
        for job in Json::parse(&run.stdout).jobs() {
            assert!(job.ios()[0] > 0 && job.ios()[1] == 0, "{run}");
        }
    }
}
