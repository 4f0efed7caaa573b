//! `io_submit_mode=offload`: a pool of threads submits the worker's I/Os.

use crate::common::{Json, Program, scratch, trace, words};
use crate::engines::FILE_ENGINES;
use iolite_testing::skip;
use std::collections::BTreeSet;

const JOB: &str = "--name=j --filename=f --size=4m --iodepth=4 --io_submit_mode=offload --output-format=json";

#[test]
fn every_engine_does_the_same_ios_from_other_threads() {
    let program = Program::under_test();
    for (engine, _) in FILE_ENGINES {
        for thread in ["", "--thread"] {
            let dir = scratch();
            let line = format!("{JOB} --rw=randrw --ioengine={engine} --fsync=100 {thread}");
            let run = program.line(dir.path(), &line).ok();
            let report = Json::parse(&run.stdout);
            let job = report.job();
            let [reads, writes, trims] = job.ios();
            assert_eq!((reads + writes, trims), (1024, 0), "{engine}");
            let count = |kind: &str| {
                ["read", "write"]
                    .map(|direction| job.int(&format!("{direction}.{kind}.N")))
                    .iter()
                    .sum::<u64>()
            };
            assert_eq!((count("clat_ns"), count("lat_ns")), (1024, 1024), "{engine}");
            // The total latency includes the time between creating and issuing an I/O.
            assert!(job.float("read.lat_ns.mean") > job.float("read.clat_ns.mean"), "{engine}");
            assert_eq!(count("slat_ns"), 1024, "{engine}");
        }
    }
}

/// The time between creating and issuing an I/O is reported wherever latencies are, even if the engine is synchronous.
#[test]
fn submission_is_reported_and_logged_alike() {
    let dir = scratch();
    let line = format!(
        "{JOB} --output-format=normal,json+ --rw=randread --ioengine=psync --slat_percentiles=1 --lat_percentiles=1 \
         --write_lat_log=x"
    );
    let run =
        Program::under_test().line(dir.path(), &line).ok().says("    slat (").says("    slat percentiles (");
    let report = Json::parse(&run.stdout);
    let read = report.job();
    let bins = read.0["read"]["slat_ns"]["bins"].as_object().expect("bins");
    let bins: u64 = bins.values().filter_map(|count| count.as_u64()).sum();
    assert_eq!((bins, read.int("read.slat_ns.N")), (1024, 1024));
    let mean = |kind: &str| read.float(&format!("read.{kind}_ns.mean"));
    assert!((mean("lat") - mean("clat") - mean("slat")).abs() < 1.0);
    let log = std::fs::read_to_string(dir.path().join("x_slat.1.log")).unwrap();
    let logged: u64 = log.lines().map(|line| line.split(", ").nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert!((logged as f64 / 1024.0 - mean("slat")).abs() < 1.0);
}

#[test]
pub fn iodepth_decides_the_number_of_submitting_threads() {
    let dir = scratch();
    let line = format!("{JOB} --rw=randread --ioengine=psync");
    let Some((run, log)) =
        trace::system_calls(&Program::under_test(), dir.path(), "pread64,clone3,clone", &words(&line))
    else {
        skip!("needs strace")
    };
    run.ok();
    let reads = log.lines().filter(|line| line.contains("pread64(") && line.contains("/f>"));
    let threads: BTreeSet<&str> = reads.map(|line| line.split(' ').next().unwrap()).collect();
    // How many threads get work depends on its speed, but there are at most four.
    assert!((1..=4).contains(&threads.len()), "{threads:?}");
    let made = log.lines().filter(|line| line.contains("CLONE_THREAD")).count();
    // (strace may show a call in two halves.)
    assert!(made >= 4, "{log}");
}

#[test]
fn an_error_of_a_submitter_ends_the_job() {
    let program = Program::under_test();
    let dir = scratch();
    let line = "--name=j --filename=/dev/full --size=64k --rw=write --iodepth=4 --io_submit_mode=offload";
    program.line(dir.path(), line).refused().says("No space left on device");
}

/// Files are opened and closed while I/Os on other files are in flight.
#[test]
fn files_come_and_go() {
    let dir = scratch();
    let line = format!("{JOB} --nrfiles=20 --openfiles=5 --rw=randrw --loops=2 --unlink=1");
    let line = line.replace("--filename=f ", "");
    for engine in ["psync", "libaio"] {
        let run = Program::under_test().line(dir.path(), &format!("{line} --ioengine={engine}")).ok();
        let [reads, writes, _] = Json::parse(&run.stdout).job().ios();
        // 20 files of 51 whole blocks, in two passes.
        assert_eq!(reads + writes, 2 * 20 * 51, "{engine}");
    }
}
