//! Memory: unused buffers take none, requests that cannot be satisfied are refused before anything is allocated, and
//! reaching a limit is an error with a message.

use crate::common::program::{Finished, Running};
use crate::common::{Program, scratch};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// The peak memory in MiB of the worker's process, or of the process of all workers if they are threads.
#[track_caller]
fn peak(dir: &Path, line: &str) -> u64 {
    let peak = "--exec_postrun=grep VmHWM /proc/$PPID/status";
    let args = line.split_whitespace().chain(["--name=j", peak, "--eta=never"]);
    Program::under_test().run(dir, args.collect::<Vec<_>>()).ok();
    let told = fs::read_to_string(dir.join("j.postrun.txt")).expect("it was run");
    let kib = told.trim_start_matches("VmHWM:").trim().trim_end_matches("kB").trim();
    kib.parse::<u64>().unwrap_or_else(|_| panic!("no memory in {told}")) >> 10
}

/// How much more memory in MiB a worker takes with these options than a minimal one.
#[track_caller]
fn more_than_little(dir: &Path, options: &str) -> u64 {
    let little = peak(dir, "--ioengine=null --size=4k");
    peak(dir, options).saturating_sub(little)
}

#[test]
fn unused_buffers_take_no_memory() {
    let dir = scratch();
    for (options, most) in [
        // 400 MB of buffers through which no data moves; fio 3.41 takes 56 MB in total.
        ("--ioengine=null --iodepth=100000 --size=1g", 40),
        ("--ioengine=null --iodepth=1000000 --size=16g --number_ios=1000", 4),
        // 10 GB or more of buffers, of which only one or a few are used.
        ("--ioengine=psync --iodepth=100000 --bs=128k --size=1m --rw=write", 4),
        ("--ioengine=io_uring --iodepth=4000 --bs=4m --size=16m --number_ios=3 --rw=randread", 20),
        ("--ioengine=libaio --iodepth=4000 --bs=4m --size=16m --number_ios=3 --rw=randwrite", 20),
        (
            "--ioengine=posixaio --iodepth=4000 --bs=4m --size=16m --number_ios=3 --rw=randwrite --mem=mmap",
            20,
        ),
        ("--ioengine=psync --iodepth=100 --bs=1m --size=16m --io_submit_mode=offload --rate_iops=100", 24),
    ] {
        let taken = more_than_little(dir.path(), options);
        assert!(taken <= most, "{options}: {taken} MiB");
    }
}

/// Units that are allocated during the run have proper data like the initial ones.
#[test]
fn units_allocated_during_the_run_have_proper_data() {
    let dir = scratch();
    // Only 256 MiB of buffers are allocated at the start.
    let job = "--name=j --filename=f --bs=64m --size=384m --rw=write --ioengine=io_uring --iodepth=6 --fallocate=none";
    for content in ["--scramble_buffers=0", "--buffer_pattern=0x4142 --scramble_buffers=0", "--verify=crc32c"]
    {
        Program::under_test().line(dir.path(), &format!("{job} {content} --eta=never")).ok();
        let data = fs::read(dir.path().join("f")).unwrap();
        let heads: Vec<&[u8]> = data.chunks(64 << 20).map(|block| &block[..512]).collect();
        assert_eq!(heads.len(), 6);
        for (number, head) in heads.iter().enumerate() {
            assert!(head.iter().any(|&byte| byte != 0), "{content}: block {number} holds nothing");
            let same = heads[..number].iter().any(|other| other == head);
            assert_eq!(same, content.contains("pattern") && number > 0, "{content}: block {number}");
        }
    }
}

#[test]
fn buffers_for_which_there_is_no_memory_are_refused() {
    let dir = scratch();
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let total =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("the kernel reports the total");
    let total: u64 = total.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10;
    let block = total.next_power_of_two();
    for (job, blamed) in [
        (format!("--rw=write --bs={block} --size={block}"), "bs"),
        (format!("--rw=randread --bs=64m --iodepth={} --size=8t --ioengine=libaio", total >> 25), "iodepth"),
    ] {
        let line = format!("--name=j --filename=f {job} --fallocate=none");
        let run = Program::under_test().line(dir.path(), &line).refused();
        assert!(run.stderr.contains(&format!("j: {blamed}: the buffers need ")), "{run}");
        assert!(run.stderr.contains("MiB are available; use "), "{run}");
        assert!(!dir.path().join("f").exists(), "{run}");
    }
}

/// A run in a shell with this limit.
fn limited(dir: &Path, limit: &str, line: &str) -> Finished {
    let program = Program::under_test().path;
    let script = format!("ulimit {limit}; exec {} {line}", program.display());
    Running::start(Command::new("bash").args(["-c", &script]).current_dir(dir)).wait()
}

/// If the program is larger than the limit on addresses, the kernel kills it during exec. With higher limits, the run
/// succeeds or has an error message; a segmentation fault is a failure of this test.
#[test]
fn an_address_space_limit_gives_an_error_message() {
    let dir = scratch();
    let run = |kib: u64, job: &str| {
        // Without memory for a backtrace, the Rust runtime may deadlock.
        let limits = format!("-v {kib}; ulimit -c 0; unset RUST_BACKTRACE");
        limited(dir.path(), &limits, &format!("--name=j --eta=never {job}"))
    };
    let little = "--ioengine=null --size=64k";
    let (mut refused, mut started) = (0, 1 << 20);
    while started - refused > 100 {
        let middle = (refused + started) / 2;
        match run(middle, little).status.signal() {
            Some(libc::SIGSEGV) => refused = middle,
            _ => started = middle,
        }
    }
    let much = "--ioengine=libaio --iodepth=64 --bs=64k --size=4m --rw=randwrite --verify=crc32c --numjobs=3 \
                --write_lat_log=l";
    let threads = "--thread --rw=randrw --size=1m --verify=md5 --verify_async=2 --numjobs=3";
    for (job, step, steps) in [(little, 200, 24), (much, 1500, 16), (threads, 1500, 16)] {
        for limit in (0..steps).map(|number| started + number * step) {
            let run = run(limit, job);
            let in_words = match (run.status.code(), run.status.signal()) {
                (Some(0), _) => true,
                // The loader reports libraries that do not fit.
                (Some(1 | 127), _) => !run.stderr.is_empty() || run.stdout.contains("error="),
                // The Rust runtime aborts before the program begins.
                (None, Some(libc::SIGABRT)) => run.stderr.contains("alloca"),
                _ => false,
            };
            assert!(in_words, "{limit} KiB: {run}");
        }
    }
    run(1 << 20, much).ok();
}
