//! Jobs of a flow, and ramps that are measured in bytes.

use crate::common::program::send;
use crate::common::{Json, Program, scratch, trace, words};
use crate::signals::workers_on;
use iolite_testing::skip;
use std::time::Duration;

/// The names of the jobs and their numbers of reads, in order.
fn ios(program: &Program, line: &str) -> Vec<(String, f64)> {
    let dir = scratch();
    let run = program.line(dir.path(), &format!("--output-format=json {line}")).ok();
    let report = Json::parse(&run.stdout);
    report.jobs().iter().map(|job| (job.name().to_owned(), job.ios()[0] as f64)).collect()
}

/// The run time of each job in milliseconds.
fn runtimes(program: &Program, line: &str) -> Vec<u64> {
    let dir = scratch();
    let run = program.line(dir.path(), &format!("--output-format=json {line}")).ok();
    Json::parse(&run.stdout).jobs().iter().map(|job| job.int("read.runtime")).collect()
}

/// The first job takes at least a second. The second one could end at once, but takes long because of the flow. (Unit
/// tests without time check the exact ratio.)
#[test]
pub fn jobs_of_a_flow_keep_the_ratio_of_their_weights() {
    let jobs = "--ioengine=null --size=1t --flow_id=7 --name=slow --flow=3 --number_ios=3000 --rate_iops=3000 \
                --name=fast --flow=1 --number_ios=1000 --rate_iops=0";
    let check = |program: &Program, more: &str| {
        let times = runtimes(program, &format!("{more} {jobs}"));
        assert!(times[0] >= 990 && times[1] >= times[0] / 3, "{more}: {times:?}");
    };
    for more in ["", "--thread", "--flow_sleep=100", "--iodepth=8"] {
        check(&Program::under_test(), more);
    }
    for peer in Program::peers() {
        check(&peer, "");
    }
}

/// The job that is not ahead waits at most half a millisecond for its rate. Without flow_sleep, neither job sleeps
/// longer.
#[test]
pub fn jobs_ahead_of_their_flow_sleep_for_flow_sleep() {
    let longest = |sleep: &str| {
        let line = format!(
            "--ioengine=null --size=1t --flow=1 --number_ios=200 {sleep} --name=slow --rate_iops=2000 --name=fast \
             --rate_iops=0"
        );
        let dir = scratch();
        let (run, sleeps) = trace::asked_sleeps(&Program::under_test(), dir.path(), &words(&line))?;
        run.ok();
        Some(sleeps.into_iter().max().unwrap_or_default())
    };
    let (Some(without), Some(with)) = (longest(""), longest("--flow_sleep=9000")) else {
        skip!("needs strace")
    };
    let milliseconds = Duration::from_millis;
    assert!(without < milliseconds(1), "{without:?}");
    assert!((milliseconds(8)..=milliseconds(9)).contains(&with), "{with:?}");
}

#[test]
fn clones_count_each_for_itself() {
    let line = "--ioengine=null --size=1t --name=slow --flow=2 --numjobs=2 --number_ios=2000 --rate_iops=2000 \
                --name=fast --flow=1 --numjobs=1 --number_ios=1000 --rate_iops=0";
    let times = runtimes(&Program::under_test(), line);
    assert!(times[2] >= times[0] / 3, "{times:?}");
}

#[test]
pub fn ended_jobs_and_other_flows_delay_no_job() {
    let line =
        "--ioengine=null --flow=1 --name=a --size=4m --name=b --size=400m --name=c --flow_id=3 --size=40m";
    let counts: Vec<f64> = ios(&Program::under_test(), line).into_iter().map(|(_, ios)| ios).collect();
    assert_eq!(counts, [1024.0, 102400.0, 10240.0]);
}

#[test]
pub fn a_ramp_of_bytes_is_not_counted() {
    let program = Program::under_test();
    for engine in ["psync", "libaio --iodepth=8"] {
        let line = format!("--name=j --filename=f --size=4m --ramp_size=1m --ioengine={engine}");
        let counted = ios(&program, &line)[0].1;
        // I/Os in flight at the end of the ramp belong to the ramp.
        assert!((760.0..=768.0).contains(&counted), "{engine}: {counted}");
    }
    // Jobs of a reporting group share their ramp.
    let line = "--name=j --ioengine=null --size=40m --ramp_size=20m --numjobs=2";
    let apart: f64 = ios(&program, line).iter().map(|(_, ios)| ios).sum();
    assert_eq!(apart, 10240.0);
    let together = ios(&program, &format!("{line} --group_reporting"))[0].1;
    assert!(together > 10240.0, "{together}");
}

/// I/Os of the ramp do not count towards number_ios, wherever the ramp ends.
#[test]
fn ios_of_a_ramp_do_not_count_towards_number_ios() {
    let program = Program::under_test();
    let counted = |line: &str, number: f64| {
        let dir = scratch();
        let run = program.line(dir.path(), &format!("--output-format=json --name=j {line}")).ok();
        let counted: u64 = Json::parse(&run.stdout).job().ios().iter().sum();
        assert_eq!(counted as f64, number, "{line}");
    };
    for shape in [
        "--rw=read",
        "--rw=randread",
        "--rw=rw",
        "--rw=randrw --nrfiles=8",
        "--rw=randread:4",
        "--rw=randwrite --fsync=3",
        "--rw=randwrite --verify=crc32c --do_verify=0",
    ] {
        for engine in ["psync", "libaio --iodepth=32", "io_uring --iodepth=4 --io_submit_mode=offload"] {
            let line = format!(
                "--filename_format=f.$filenum --size=4m --ramp_size=1m --number_ios=300 --ioengine={engine}"
            );
            counted(&format!("{line} {shape}"), 300.0);
        }
        // The job ends in its ramp.
        counted(
            &format!("--filename_format=f.$filenum --size=4m --ramp_size=1m --number_ios=100 {shape}"),
            100.0,
        );
    }
    for depth in [1, 32] {
        for rw in ["read", "randrw"] {
            let line = format!("--ioengine=null --size=1t --ramp_time=5ms --iodepth={depth} --rw={rw}");
            counted(&format!("{line} --number_ios=500000"), 500_000.0);
        }
    }
}

/// Writes are verified although their number is not known in advance.
#[test]
fn a_ramp_may_be_verified() {
    let dir = scratch();
    let line = "--name=j --filename=f --size=4m --rw=randwrite --verify=crc32c --ramp_size=1m --number_ios=300 --loops=2";
    for more in ["", "--randrepeat=0 --verify_backlog=7", "--ioengine=libaio --iodepth=16 --randrepeat=0"] {
        let run = Program::under_test().line(dir.path(), &format!("{line} {more} --output-format=json")).ok();
        let [reads, writes, _] = Json::parse(&run.stdout).job().ios();
        assert!(writes == 600 && reads > 600, "{reads} {writes} {run}");
    }
    // The ramp ends after 252 I/Os, within a batch of reading back.
    let amid = "--name=j --filename=f --size=4m --rw=write --verify=crc32c --verify_backlog=8 --ramp_size=1032192 \
                --number_ios=300 --output-format=json";
    let run = Program::under_test().line(dir.path(), amid).ok();
    assert_eq!(Json::parse(&run.stdout).job().ios()[1], 300, "{run}");
    let run = Program::under_test().line(dir.path(), &format!("{line} --verify_only"));
    run.refused().says("verify_only cannot know how many I/Os number_ios was");
}

#[test]
fn a_killed_job_does_not_delay_its_flow() {
    let dir = scratch();
    let file = dir.path().canonicalize().unwrap().join("f");
    std::fs::write(&file, vec![0; 1 << 20]).unwrap();
    // Because of the flow with the slow job, the other one would take an hour.
    let line = "--output-format=json --flow=1 --name=slow --filename=f --size=1m --rate_iops=1 --time_based --runtime=1h \
                --name=other --ioengine=null --size=1t --number_ios=3600";
    let mut running = Program::under_test().start(dir.path(), words(line));
    running.wait_until("the slow one runs", |running| !workers_on(running, &file).is_empty());
    for worker in workers_on(&running, &file) {
        send(worker, libc::SIGKILL);
    }
    let run = running.wait();
    let report = Json::parse(&run.stdout[run.stdout.find('{').unwrap()..]);
    let jobs = report.jobs();
    assert_eq!(jobs[1].name(), "other");
    assert_eq!(jobs[1].ios()[0], 3600, "{run}");
}
