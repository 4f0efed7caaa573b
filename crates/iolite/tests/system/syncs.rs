//! The requested syncs: their number, files and times, also if files are closed meanwhile.

use crate::common::json::Json;
use crate::common::trace::{system_calls, whole_calls};
use crate::common::{Program, scratch, words};
use iolite_testing::skip;

/// The job's operations on its existing files: `W0 S0 C0` is a write, an fsync and a close of the first file; `None` =
/// tracing is not possible.
fn steps(line: &str) -> Option<String> {
    const CALLS: [(&str, &str); 6] = [
        ("pwrite64", "W"),
        ("pread64", "R"),
        ("fsync", "S"),
        ("fdatasync", "D"),
        ("sync_file_range", "P"),
        ("close", "C"),
    ];
    let (dir, program) = (scratch(), Program::under_test());
    let line = format!("--name=j --filename_format=f.$filenum --bs=4k --rw=write {line}");
    program.line(dir.path(), &format!("{line} --create_only=1")).ok();
    let calls = CALLS.map(|(call, _)| call).join(",");
    let (run, log) = system_calls(&program, dir.path(), &calls, &words(&line))?;
    run.ok();
    let step = |call: &String| {
        let (name, rest) = call.split_once('(')?;
        let (_, rest) = rest.split_once("/f.")?;
        let (file, rest) = rest.split_once('>')?;
        let (_, step) = CALLS.iter().find(|(call, _)| *call == name)?;
        let range = match *step {
            "P" => rest.split(", ").skip(1).take(2).map(|number| format!(":{number}")).collect(),
            _ => String::new(),
        };
        Some(format!("{step}{file}{range}"))
    };
    Some(whole_calls(&log).iter().filter_map(step).collect::<Vec<_>>().join(" "))
}

fn syncs(program: &Program, line: &str) -> u64 {
    let dir = scratch();
    let line = format!("--output-format=json --name=j --rw=write --bs=4k {line}");
    Json::parse(&program.line(dir.path(), &line).ok().stdout).job().int("sync.total_ios")
}

/// A due sync of a finished file is made before the file is closed, but only if another I/O follows.
#[test]
fn due_syncs_come_before_the_close() {
    for (line, expected) in [
        ("--nrfiles=3 --filesize=4k --openfiles=1 --fsync=1", "W0 S0 C0 W1 S1 C1 W2 C2"),
        (
            "--nrfiles=2 --filesize=8k --openfiles=1 --fdatasync=2 --loops=2",
            "W0 W0 D0 C0 W1 W1 D1 C1 W0 W0 D0 C0 W1 W1 C1",
        ),
        ("--nrfiles=3 --filesize=8k --openfiles=2 --fsync=1", "W0 S0 W1 S1 W0 S0 W1 C0 S1 C1 W2 S2 W2 C2"),
        ("--nrfiles=2 --filesize=8k --openfiles=1 --sync_file_range=write:2", "W0 W0 P0:0:8192 C0 W1 W1 C1"),
        // The sync comes after a window has been read back.
        (
            "--nrfiles=2 --filesize=4k --openfiles=1 --fsync=1 --verify=crc32c --verify_backlog=1 --create_serialize=1",
            "W0 R0 S0 C0 W1 R1 S1 S0 C0 C1",
        ),
        // Reading back opens other files.
        (
            "--nrfiles=2 --filesize=8k --openfiles=1 --fsync=3 --verify=crc32c --verify_backlog=3",
            "W0 W0 C0 W1 S1 C1 R0 R0 C0 R1 W1 S1 S0 C0 R1 C1",
        ),
    ] {
        let Some(steps) = steps(line) else { skip!("strace may not trace here") };
        assert_eq!(steps, expected, "{line}");
    }
}

/// The range of a sync covers all writes to its file since the last sync of that file.
#[test]
fn ranges_lose_nothing_to_other_files() {
    let line = "--nrfiles=2 --filesize=16k --sync_file_range=write:3";
    let Some(steps) = steps(line) else { skip!("strace may not trace here") };
    assert_eq!(steps, "W0 W1 W0 P0:0:8192 W1 W0 W1 P1:0:12288 W0 W1 C0 C1");
}

/// The end of a pass syncs all written files, even if they have been closed.
#[test]
fn the_end_syncs_files_that_were_closed() {
    for (line, expected) in [
        ("--end_fsync=1", "W0 C0 W1 C1 W2 S2 S0 C0 S1 C1 C2"),
        ("--end_fsync=1 --fsync_on_close=1", "W0 S0 C0 W1 S1 C1 W2 S2 S2 C2"),
        ("--end_fsync=1 --number_ios=2", "W0 C0 W1 S1 S0 C0 C1"),
        ("--end_fsync=1 --fsync=1", "W0 S0 C0 W1 S1 C1 W2 S2 S0 C0 S1 C1 C2"),
    ] {
        let line = format!("--nrfiles=3 --filesize=4k --openfiles=1 {line}");
        let Some(steps) = steps(&line) else { skip!("strace may not trace here") };
        assert_eq!(steps, expected, "{line}");
    }
}

/// There is a sync for each interval that is followed by a write, however files are opened and closed, as in fio.
#[test]
fn no_sync_is_lost() {
    for (line, expected) in [
        ("--nrfiles=10 --filesize=4k --openfiles=1 --fsync=1", 9),
        ("--nrfiles=25 --size=400k --openfiles=1 --fsync=1", 99),
        ("--nrfiles=25 --size=400k --fsync=1", 99),
        ("--nrfiles=10 --size=400k --openfiles=9 --fsync=4 --file_service_type=sequential", 24),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=3 --file_service_type=random:4", 33),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=7 --file_service_type=zipf:1.2", 14),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=5 --ioengine=mmap", 19),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=5 --ioengine=null", 19),
    ] {
        for program in Program::all() {
            assert_eq!(syncs(&program, line), expected, "{:?}: {line}", program.path);
        }
    }
    // fio syncs more often between passes, and less often with a queue depth.
    for (line, expected) in [
        ("--nrfiles=10 --filesize=4k --openfiles=1 --fsync=1 --loops=5", 49),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=4 --verify=crc32c --verify_backlog=8", 24),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=1 --ioengine=libaio --iodepth=8", 99),
        ("--nrfiles=10 --size=400k --openfiles=3 --fsync=1 --ioengine=io_uring --iodepth=8", 99),
        ("--nrfiles=10 --size=400k --openfiles=1 --fsync=1 --ioengine=io_uring --io_submit_mode=offload", 99),
    ] {
        assert_eq!(syncs(&Program::under_test(), line), expected, "{line}");
    }
}

/// If less than a block is left at the end of a pass, the job notices the end only when it looks for the next write,
/// and the sync comes before that. So etcd's disk check has as many syncs as writes.
#[test]
fn a_partial_last_block_brings_a_last_sync() {
    let mut cases = vec![
        ("--size=10000 --fsync=1", 2),
        ("--size=8192 --fsync=1", 1),
        ("--size=18000 --fsync=2", 2),
        ("--size=22000 --fsync=2", 2),
        ("--size=10000 --fsync=1 --rw=randwrite", 2),
        ("--nrfiles=3 --filesize=10000 --fsync=1 --openfiles=1", 6),
        ("--size=10000 --fsync=1 --loops=3", 6),
        ("--size=10000 --fsync=1 --number_ios=2", 1),
        ("--size=8192 --io_size=18000 --fsync=1", 4),
        ("--size=10000 --io_size=16384 --fsync=1", 3),
        ("--size=10000 --fsync=1 --ioengine=libaio --iodepth=4", 2),
        ("--size=10000 --fsync=1 --ioengine=mmap", 2),
        ("--size=10000 --fsync=1 --end_fsync=1", 2),
        ("--size=10000 --fsync=1 --verify=crc32c", 2),
        ("--size=8192 --fsync=1 --verify=crc32c", 1),
        ("--size=20000 --fsync=1 --rw=write:4k", 2),
    ];
    for (line, expected) in &cases {
        for peer in Program::peers().into_iter().filter(|peer| !peer.release.counts_last_syncs_otherwise) {
            assert_eq!(syncs(&peer, line), *expected, "{}, {line}", peer.version());
        }
    }
    // (With synchronous engines, fio counts only fsync.)
    cases.extend([
        ("--ioengine=sync --fdatasync=1 --size=220k --bs=2300", 97),
        ("--size=10000 --sync_file_range=write:1", 2),
    ]);
    for (line, expected) in &cases {
        assert_eq!(syncs(&Program::under_test(), line), *expected, "{line}");
    }
}

/// A timed job has several laps.
#[test]
fn no_sync_is_lost_between_laps() {
    let dir = scratch();
    let line = "--output-format=json --name=j --rw=write --bs=4k --nrfiles=3 --filesize=8k --openfiles=1 --fsync=3 \
                --time_based --runtime=1";
    let report = Json::parse(&Program::under_test().line(dir.path(), line).ok().stdout);
    let [_, writes, _] = report.job().ios();
    let due = [writes, writes - 1].map(|followed| followed / 3);
    assert!(
        due.contains(&report.job().int("sync.total_ios")),
        "{} of {writes}",
        report.job().int("sync.total_ios")
    );
}
