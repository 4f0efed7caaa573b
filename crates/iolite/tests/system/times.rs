//! Which phases the reported times include: writing, reading back, ramps.

use crate::common::{Json, Program, scratch};
use std::fs;

/// Each figure is rounded to milliseconds separately.
const ROUNDING: u64 = 3;

#[test]
fn writing_and_reading_back_have_times_of_their_own() {
    // 400 writes at 2000 per second; reading back has no rate.
    let job = "--name=j --filename=f --bs=4k --verify=crc32c --rate_iops=,2000 --output-format=json";
    for args in [
        "--rw=write --size=1600k",
        "--rw=randwrite --size=400k --loops=4",
        "--rw=write --size=800k --time_based --runtime=200ms",
        "--rw=randwrite --size=1600k --iodepth=8 --ioengine=libaio --verify_async=2",
    ] {
        let dir = scratch();
        let run = Program::under_test().line(dir.path(), &format!("{job} {args}")).ok();
        let json = Json::parse(&run.stdout);
        let job = json.job();
        job.check_consistency();
        let [read, write, all] = ["read.runtime", "write.runtime", "job_runtime"].map(|key| job.int(key));
        assert!(
            read > 0 && write > 0 && read + write <= all + ROUNDING,
            "{args}: {read} + {write} of {all} ms"
        );
        // The rate is never exceeded, but a later loop makes up for the time of reading back.
        let most = 2 * (write + ROUNDING);
        let writes = job.ios()[1];
        assert!(args.contains("loops") || writes <= most, "{args}: {writes} writes in {write} ms");
    }
}

#[test]
fn reading_back_between_writes_has_its_own_time_and_is_part_of_that_of_the_writes() {
    let dir = scratch();
    let line = "--name=j --filename=f --rw=write --size=1600k --bs=4k --verify=crc32c --verify_backlog=16 \
                --rate_iops=,1000 --output-format=json";
    let run = Program::under_test().line(dir.path(), line).ok();
    let json = Json::parse(&run.stdout);
    let job = json.job();
    assert_eq!(job.ios(), [400, 400, 0]);
    // 400 blocks are read back between writes that take 400 ms.
    let [read, write, all] = ["read.runtime", "write.runtime", "job_runtime"].map(|key| job.int(key));
    assert!(write >= 399, "{run}");
    assert!(read > 0 && read < write && write <= all + ROUNDING, "{read} and {write} of {all} ms: {run}");
}

#[test]
fn the_lines_of_the_group_say_the_same() {
    let dir = scratch();
    let line = "--name=j --filename=f --rw=write --size=800k --bs=4k --verify=crc32c --rate_iops=,2000 \
                --output-format=normal,json";
    let run = Program::under_test().line(dir.path(), line).ok();
    let json = Json::parse(&run.stdout);
    for (line, direction) in [("   READ: ", "read"), ("  WRITE: ", "write")] {
        let line = run.stdout.lines().find(|found| found.starts_with(line)).expect("a line of the group");
        let runtime = json.job().int(&format!("{direction}.runtime"));
        assert!(line.ends_with(&format!("run={runtime}-{runtime}msec")), "{runtime} ms, but {line}");
    }
}

#[test]
fn a_verification_has_a_letter_of_its_own() {
    let dir = scratch();
    // Half of the time is spent reading back, until the job is interrupted.
    let line = "--eta=always --eta-interval=250ms --name=j --filename=f --rw=write --size=4M --bs=4k \
                --verify=sha512 --loops=1000000";
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    let is_shown = |line: &str| line.contains("[V(1)][") && line.contains("[r=") && line.contains(",w=");
    running.wait_until("a verification is shown", |running| running.output().split('\r').any(is_shown));
    running.signal(libc::SIGINT);
    running.wait();
}

#[test]
fn the_bandwidth_log_outlasts_the_end_of_a_ramp() {
    let dir = scratch();
    let line = "--bandwidth-log --ioengine=null --rw=randread --bs=4k --size=100G --time_based --name=b --rate_iops=2000 \
                --runtime=3500ms --name=a --rate_iops=2000 --ramp_time=2500ms --runtime=1";
    Program::under_test().line(dir.path(), line).ok();
    let log = fs::read_to_string(dir.path().join("agg-read_bw.log")).expect("the log");
    let mut before = 0;
    let mut moved = 0;
    for line in log.lines() {
        let mut numbers = line.split(", ").map(|number| number.parse::<u64>().expect("a number"));
        let (time, rate) = (numbers.next().expect("a time"), numbers.next().expect("a rate"));
        moved += rate * (time - before) / 1000;
        before = time;
    }
    // The rate is never exceeded: each of two jobs reads 2000 blocks of 4 KiB per second.
    let most = 2 * 2000 * 4 * before / 1000;
    assert!(moved > 0 && moved <= most + most / 50, "{moved} of at most {most} KiB:\n{log}");
}

/// A timed job on zones ends at once if no zone has anything to read, and says so.
#[test]
fn a_timed_job_without_anything_to_do_ends() {
    let dir = scratch();
    for words in [
        "--rw=read",
        "--rw=randread --numjobs=2 --group_reporting",
        "--rw=randread --iodepth=4 --ioengine=io_uring",
    ] {
        let line = format!(
            "--name=j --filename=f --size=16m --zonemode=zbd --zonesize=4m --bs=64k --time_based --runtime=1h {words} \
             --output-format=json"
        );
        fs::File::create(dir.path().join("f")).unwrap().set_len(16 << 20).unwrap();
        let run = Program::under_test().line(dir.path(), &line).ok();
        assert_eq!(Json::parse(&run.stdout).job().ios(), [0, 0, 0], "{words}");
        run.says("j: ended before its runtime: no zone had anything to read");
    }
}
