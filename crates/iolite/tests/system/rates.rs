//! Rates, pauses and limits on latency, observed as the number of I/Os over time.
//!
//! Run times are only checked against a minimum, and numbers of I/Os against a maximum, because a busy machine is slow
//! but never too fast. Whether a job waits too long is checked by the sleeps that it requests.

use crate::common::{Json, Program, scratch, trace, words};
use iolite_testing::skip;
use std::fs;
use std::time::Duration;

fn report(line: &str) -> Json {
    let dir = scratch();
    let line = format!("--name=j --ioengine=null --size=1G --output-format=json {line}");
    Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout)
}

#[test]
fn rate_iops_spaces_ios_out() {
    // I/O number n is due after n/100 s, so the last of 21 begins after 200 ms.
    let report = report("--rate_iops=100 --number_ios=21");
    assert_eq!(report.job().ios(), [21, 0, 0]);
    assert!(report.job().int("read.runtime") >= 199);
}

#[test]
fn rate_counts_bytes() {
    // 256 KiB at 1 MiB/s; the last block is due when the time of all earlier ones is over.
    let report = report("--rate=1m --bs=32k --number_ios=8");
    assert!(report.job().int("read.runtime") >= 218);
}

/// Only checks that the rate is not exceeded. `iolite-bench --rates` measures the precision on an idle machine.
#[test]
fn rates_are_not_exceeded_from_a_few_to_very_many() {
    for rate in [10, 1_000, 20_000, 100_000] {
        let report = report(&format!("--rate_iops={rate} --time_based --runtime=2"));
        let [ios, ..] = report.job().ios();
        assert!((1..=2 * rate + 1).contains(&ios), "{ios} I/Os at {rate} IOPS");
    }
}

/// A job sleeps at most until the next I/O is due, even if it was delayed before.
#[test]
fn nobody_sleeps_beyond_the_schedule() {
    let dir = scratch();
    for rate in [10, 100, 1_000] {
        let line = format!("--name=j --ioengine=null --size=1G --rate_iops={rate} --number_ios={}", rate + 1);
        let slept = trace::asked_sleeps(&Program::under_test(), dir.path(), &words(&line));
        let Some((run, asked)) = slept else { skip!("needs strace") };
        run.ok();
        let asked: Duration = asked.iter().sum();
        // The last I/O is due after a second.
        assert!(asked <= Duration::from_secs(1), "{asked:?} at {rate} IOPS");
        assert!(!asked.is_zero(), "{rate} IOPS");
    }
}

/// After a delay, a job continues with its original schedule, as in fio, so the rate is that of the whole time.
#[test]
pub fn a_job_that_was_held_up_catches_up() {
    // The pauses take two thirds of the time, and the rate is still kept.
    let line = "--rate_iops=1000 --thinktime=20ms --thinktime_blocks=30 --number_ios=600";
    let with = report(line);
    let ignored = report(&format!("{line} --rate_ignore_thinktime=1"));
    // 600 I/Os at 1000 per second; then the same plus 19 pauses.
    assert!(with.job().int("read.runtime") >= 598);
    assert!(ignored.job().int("read.runtime") >= 978);
}

#[test]
fn each_direction_keeps_its_own_rate() {
    let report = report("--rw=rw --rate_iops=400,100 --time_based --runtime=1");
    let [reads, writes, _] = report.job().ios();
    // At most as many as the rate allows, plus one at the start.
    assert!(reads <= 401 && writes <= 101, "{reads} reads, {writes} writes");
    // Without rates, there would be as many writes as reads. (A few are due at once.)
    assert!(reads + 8 > 2 * writes, "{reads} reads, {writes} writes");
}

/// Rates limit the directions of a mix, but do not add directions.
#[test]
fn a_mix_that_only_reads_writes_nothing_whatever_its_rates() {
    let dir = scratch();
    let data = vec![7; 1 << 20];
    fs::write(dir.path().join("data"), &data).unwrap();
    let base = "--name=m --size=1m --bs=4k --output-format=json";
    for engine in ["psync", "libaio --iodepth=4"] {
        for rates in [
            "--rate_iops=20000",
            "--rate_iops=20000,",
            "--rate_iops=,500",
            "--rate=80m --rate_process=poisson",
        ] {
            let ios = |share: &str, program: &Program| {
                let line = format!("{base} --filename=data --ioengine={engine} --rw=randrw {share} {rates}");
                Json::parse(&program.line(dir.path(), &line).ok().stdout).job().ios()
            };
            let program = Program::under_test();
            assert_eq!(ios("--rwmixread=100", &program), [256, 0, 0], "{engine} {rates}");
            assert!(
                fs::read(dir.path().join("data")).unwrap() == data,
                "{engine} {rates}: something was written"
            );
            for peer in Program::peers() {
                assert_eq!(ios("--rwmixread=100", &peer), [256, 0, 0], "{engine} {rates}");
            }
        }
        for rates in ["--rate_iops=20000", "--rate_iops=500,", "--rate=,80m"] {
            let line =
                format!("{base} --filename=other --ioengine={engine} --rw=randrw --rwmixread=0 {rates}");
            let run = Program::under_test().line(dir.path(), &line).ok();
            assert_eq!(Json::parse(&run.stdout).job().ios(), [0, 256, 0], "{engine} {rates}");
        }
    }
}

/// When the last I/O is due follows from the schedule. (A busy machine is slow, but never too fast.)
#[test]
pub fn a_rate_follows_its_schedule() {
    let dir = scratch();
    let day = dir.path().join("day");
    fs::write(&day, "# a recorded day\n10\n10\n0\n100 # noon\n").unwrap();
    let file = format!("file:{}", day.display());
    for (schedule, more, ios, due_ms) in [
        // 20 until 0.2 s, then 1000 per second.
        ("0:100,200ms:1000", "", 121, 300),
        ("0:1000,100ms:0,400ms:repeat", "", 251, 850),
        ("0..1s:0..1000", "", 501, 1000),
        ("300ms:1000", "", 1, 300),
        ("0:100,10s:1000", "--rate_schedule_speed=100", 111, 200),
        // 1 MiB in half a second.
        ("0:2MB", "--bs=64k", 17, 500),
        (&file, "--rate_schedule_speed=10", 8, 350),
    ] {
        let report = report(&format!("--rate_schedule={schedule} {more} --number_ios={ios} --runtime=1h"));
        let took = report.job().int("read.runtime");
        assert!(took + 1 >= due_ms, "{schedule}: {took} ms instead of {due_ms}");
        assert_eq!(report.job().ios(), [ios, 0, 0], "{schedule}");
    }
    // At the end, the rate of the file is 0, and its time is over.
    let all = report(&format!("--rate_schedule={file} --rate_schedule_speed=20 --time_based --runtime=1"));
    assert_eq!(all.job().ios()[0], 6, "(2 * 10 + 100) / 20");
}

/// The series has what was asked in each window, which adds up to what the schedule asks for in all, however much was given.
#[test]
fn a_series_shows_what_was_asked() {
    let dir = scratch();
    let asked = |key: &str, line: &str| -> [Option<u64>; 2] {
        let line = format!("--name=j --ioengine=null --size=1G --time_based --output-format=json {line}");
        let json = Json::parse(&Program::own().line(dir.path(), &line).ok().stdout);
        let series = &json.0["iolite"]["series"];
        ["read", "write"].map(|direction| {
            let job = &series["jobs"][0][direction];
            let lists = [&job[key], &job["ios"]].map(|list| list.as_array());
            if let [Some(asked), Some(given)] = lists {
                assert_eq!(asked.len(), given.len(), "{job}");
            }
            Some(lists[0]?.iter().filter_map(serde_json::Value::as_u64).sum())
        })
    };
    let schedule = "--rate_schedule=0:200,300ms:2000,600ms:0 --runtime=700ms";
    assert_eq!(asked("ios_asked", schedule), [Some(660), None]);
    assert_eq!(asked("bytes_asked", schedule), [None, None]);
    // Each direction and each clone has the whole schedule.
    let both = format!("{schedule} --rw=randrw --numjobs=2 --group_reporting");
    assert_eq!(asked("ios_asked", &both), [Some(1320), Some(1320)]);
    // A device that is too slow: 10 I/Os of 1 MiB per second were not given.
    let slow = "--rate_schedule=0:10MB,500ms:0 --runtime=600ms --bs=1m --thinktime=400ms";
    assert_eq!(asked("bytes_asked", slow), [Some(5 << 20), None]);
    assert_eq!(asked("bytes_asked", &format!("{slow} --rate_ignore_thinktime=1")), [None, None]);
    assert_eq!(asked("ios_asked", "--rate_iops=100 --runtime=300ms"), [None, None]);
}

/// The log has a line for each window, also for those in which nothing was done.
#[test]
pub fn a_log_has_what_was_asked() {
    let dir = scratch();
    let run = |line: &str| {
        let line = format!(
            "--name=j --ioengine=null --size=1G --time_based --output-format=json --output=r.json {line}"
        );
        Program::own().line(dir.path(), &line).ok();
    };
    let lines = |log: &str| -> Vec<[u64; 4]> {
        let text = fs::read_to_string(dir.path().join(log)).unwrap();
        let columns = |line: &str| {
            let found: Vec<u64> = line.split(", ").map(|column| column.parse().unwrap()).collect();
            assert_eq!(found.len(), 5, "{line}");
            [found[0], found[1], found[2], found[3]]
        };
        text.lines().map(columns).collect()
    };
    // Nothing can be given in the first window, however slow the machine is.
    run(
        "--rate_schedule=0:0,100ms:200,300ms:2000,600ms:0 --runtime=700ms --rw=randrw --write_asked_log=log --write_iops_log=log \
         --log_avg_msec=100",
    );
    let asked = lines("log_asked_iops.1.log");
    let rates = [0, 200, 200, 2000, 2000, 2000];
    let expected =
        rates.iter().zip(1..).flat_map(|(&rate, window)| [0, 1].map(|kind| [100 * window, rate, kind, 0]));
    assert_eq!(asked[..12], expected.collect::<Vec<_>>());
    assert!(asked[12..].iter().all(|line| line[0] >= 700 && line[1] == 0), "{asked:?}");
    assert!(asked.len() > lines("log_iops.1.log").len(), "windows without I/Os are missing");
    // The page has both.
    let report = |more: &str| Program::own().line(dir.path(), &format!("report r.json {more}")).ok();
    report("--logs=log --output=page.html");
    // Too slow, and bytes; windows of a second.
    run("--rate_schedule=0:10MB --runtime=1200ms --bs=1m --thinktime=900ms --write_asked_log=slow");
    let [first, ..] = lines("slow_asked_bw.1.log")[..] else { panic!("a line") };
    assert_eq!(first, [1000, 10240, 0, 0]);
    let line = "--name=j --ioengine=null --size=1M --rate_iops=1M --write_asked_log=none";
    Program::own().line(dir.path(), line).ok().says("write_asked_log");
    assert!(!dir.path().join("none_asked_iops.1.log").exists());
}

#[test]
fn schedules_that_make_no_sense_are_refused() {
    let dir = scratch();
    fs::write(dir.path().join("day"), "10\n1k5\n").unwrap();
    for (line, words) in [
        ("--rate_schedule=0:100 --rate_iops=5", "rate_schedule and rate_iops exclude each other"),
        ("--rate_schedule=0:100,1s:0", "its last rate is 0, so the job would wait for ever; give a runtime"),
        ("--rate_schedule=0:100,0:5", "\"0:5\": is not later than the step in front of it"),
        ("--rate_schedule=file:day", "day:2: \"1k5\": "),
        ("--rate_schedule=file:none", "none: No such file or directory"),
        ("--rate_schedule=0:0", "all rates are 0"),
    ] {
        let line = format!("--name=j --ioengine=null --size=1M {line}");
        Program::under_test().line(dir.path(), &line).refused().says(words);
    }
}

#[test]
pub fn poisson_keeps_the_rate_but_not_the_distance() {
    let report = report("--rate_iops=2000 --rate_process=poisson --time_based --runtime=1");
    // 2000 are expected, with a standard deviation of 45.
    assert!(report.job().ios()[0] < 2300);
}

#[test]
fn thinktime_pauses_after_blocks() {
    let report = report("--thinktime=50ms --thinktime_blocks=4 --number_ios=13");
    // There are pauses after I/Os 4, 8 and 12.
    assert_eq!(report.job().ios()[0], 13);
    assert!(report.job().int("read.runtime") >= 149);
}

#[test]
fn no_more_ios_come_between_two_pauses_at_any_depth() {
    for kind in ["complete", "issue"] {
        for blocks in [1, 2, 4] {
            let report = report(&format!(
                "--iodepth=8 --thinktime=50ms --thinktime_blocks={blocks} --thinktime_blocks_type={kind} --number_ios={}",
                6 * blocks
            ));
            let pauses = report.job().int("read.runtime") / 50;
            assert!(pauses >= 5, "{pauses} pauses after {blocks} of {} I/Os, {kind}", 6 * blocks);
            assert_eq!(report.job().float("iodepth_level.8"), 0.0, "{blocks} {kind}");
        }
    }
}

/// The first pause comes when `blocks` I/Os have completed. Each of them but the last has made room for another one.
#[test]
fn completions_before_the_first_pause_allow_more_ios() {
    const PAUSE_MS: u64 = 60;
    let dir = scratch();
    let first = |program: &Program, kind: &str, blocks: usize| {
        // The null engine of fio has no depth.
        let line = format!(
            "--name=j --ioengine=libaio --filename=f --size=1M --bs=4k --iodepth=8 --thinktime={PAUSE_MS}ms \
             --thinktime_blocks={blocks} --thinktime_blocks_type={kind} --number_ios={} --write_bw_log=x",
            4 * blocks
        );
        program.line(dir.path(), &line).ok();
        let log = std::fs::read_to_string(dir.path().join("x_bw.1.log")).unwrap();
        let at = |line: &str| line.split(',').next().unwrap().parse::<u64>().unwrap();
        let times: Vec<u64> = log.lines().map(at).collect();
        times.windows(2).take_while(|two| two[1] - two[0] < PAUSE_MS - 1).count() + 1
    };
    let ours = Program::under_test();
    // (On a busy machine, some I/Os may be so late that they seem to come after the pause.)
    for blocks in [1, 3, 8] {
        assert!(first(&ours, "complete", blocks) < 2 * blocks);
        assert!(first(&ours, "issue", blocks) <= blocks);
    }
    for peer in Program::peers() {
        assert!(first(&peer, "complete", 8) < 16);
        assert!(first(&peer, "issue", 8) <= 8);
    }
}

#[test]
pub fn thinktime_can_come_by_time() {
    let report = report("--thinktime=100ms --thinktime_iotime=100ms --time_based --runtime=1");
    let busy = report.job().float("usr_cpu") + report.job().float("sys_cpu");
    assert!(busy < 80.0, "half of the time is pauses, but {busy}% were busy");
}

/// The job does not sleep in the busy part of a pause.
#[test]
pub fn thinktime_spin_is_not_slept() {
    let dir = scratch();
    let job =
        "--name=j --ioengine=null --size=1G --output-format=normal,json --thinktime=40ms --number_ios=6";
    let sleeps = |spin: &str| {
        let line = words(&format!("{job} --thinktime_spin={spin}"));
        let (run, log) =
            trace::system_calls(&Program::under_test(), dir.path(), "clock_nanosleep,futex", &line)?;
        let run = run.ok();
        let report = Json::parse(&run.stdout);
        // There is a pause between any two of the six I/Os.
        assert!(report.job().int("read.runtime") >= 199);
        let busy = report.job().float("usr_cpu") + report.job().float("sys_cpu");
        // Only the sleeps of the worker count, not those of other processes.
        let worker = run.stdout.split_once(": pid=").expect("the worker's ID is printed").1;
        let worker = format!("{} ", worker.split_once(':').expect("pid=N:").0);
        let slept = |line: &&str| {
            // (The wait for the start has no limit.)
            let is_rest = line.contains("FUTEX_WAIT, ") && line.contains("tv_sec=");
            line.starts_with(&worker) && (line.contains("clock_nanosleep(") || is_rest)
        };
        Some((log.lines().filter(slept).count(), busy))
    };
    let (Some((asleep, idle)), Some((spinning, busy))) = (sleeps("0"), sleeps("40ms")) else {
        skip!("needs strace")
    };
    assert!(asleep > 0 && spinning == 0, "{asleep} sleeps, {spinning} of them with spinning");
    assert!(busy > idle, "{busy}% busy with spinning, {idle}% without");
    let (half, _) = sleeps("20ms").expect("strace was there just now");
    assert!(half > 0, "{half} sleeps with a spinning half");
}

#[test]
fn a_rate_that_is_missed_ends_the_job() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=1G --rate_iops_min=1000000000 --rate_cycle=50 --runtime=20 --time_based";
    let run = Program::under_test().line(dir.path(), line).refused();
    assert!(run.stderr.contains("rate_iops_min=1000000000 not met"), "{run}");
    assert!(run.stdout.contains("err= 5"), "{run}");
}

#[test]
fn a_minimum_is_not_watched_while_the_job_gets_going() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=1G --rate_iops_min=1000000000 --rate_cycle=50 --runtime=1 --time_based";
    Program::under_test().line(dir.path(), line).ok();
}

/// The job's counters are reset at the end of a ramp, and for each tried depth.
#[test]
fn a_minimum_is_not_missed_because_counting_begins_anew() {
    let dir = scratch();
    for line in [
        "--ramp_time=2500ms --runtime=1 --rate_iops_min=2",
        "--ramp_time=2500ms --runtime=1 --rate=1m --rate_min=8k",
        "--ramp_size=1m --rate_iops=100 --rate_iops_min=2 --runtime=1",
        "--iodepth=64 --latency_target=1ms --latency_window=600ms --latency_percentile=50 --rate_iops=1000 \
         --rate_iops_min=2 --runtime=4",
    ] {
        let line = format!("--name=j --ioengine=null --size=1G --rw=randread --time_based {line}");
        Program::under_test().line(dir.path(), &line).ok();
    }
}

/// Each write is read back slowly before the next one. The workload itself keeps its rate.
#[test]
fn a_minimum_is_not_missed_because_of_reading_back() {
    let dir = scratch();
    let line = "--name=j --filename=f --rw=write --bs=4k --size=24k --verify=crc32c --verify_backlog=1 \
                --rate_iops_min=2 --rate_cycle=300";
    let Some(run) = trace::slowed(&Program::under_test(), dir.path(), "pread64", 1000, &words(line)) else {
        skip!("needs strace")
    };
    run.ok();
}

#[test]
fn a_minimum_is_watched_after_the_ramp() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=1G --ramp_time=2500ms --runtime=20 --time_based --thinktime=50ms \
                --rate_iops_min=1000 --rate_cycle=200";
    let run = Program::under_test().line(dir.path(), line).refused();
    assert!(run.stderr.contains("rate_iops_min=1000 not met"), "{run}");
}

/// The second I/O would be due in twelve days.
#[test]
fn the_job_does_not_wait_after_its_last_io() {
    let report = report("--rate=1 --bs=1m --number_ios=1");
    assert_eq!(report.job().ios(), [1, 0, 0]);
}

/// The writes (w), data syncs (s) and closes (c) of the file.
fn writes_and_syncs(line: &str) -> Option<String> {
    let dir = scratch();
    let line = format!("--name=j --filename=f --rw=write --fdatasync=1 {line}");
    let calls = "pwrite64,fdatasync,close";
    let (run, log) = trace::system_calls(&Program::under_test(), dir.path(), calls, &words(&line))?;
    run.ok();
    let calls = trace::whole_calls(&log).into_iter().filter(|call| call.contains("/f>"));
    Some(calls.map(|call| call[..1].replace('p', "w").replace('f', "s")).collect())
}

/// The time ends while the job waits for its next write.
#[test]
fn a_write_is_synced_before_the_next_one_is_waited_for() {
    let Some(calls) = writes_and_syncs("--size=1m --rate_iops=2 --runtime=1") else { skip!("needs strace") };
    assert!(["wswsc", "wsc"].iter().any(|expected| calls.ends_with(expected)), "{calls}");
}

#[test]
fn a_pass_is_synced_before_its_files_are_removed() {
    let Some(calls) = writes_and_syncs("--size=8k --loops=2 --unlink_each_loop=1") else {
        skip!("needs strace")
    };
    assert!(calls.ends_with("wswscwswc"), "{calls}");
}

#[test]
fn a_job_that_ends_within_its_ramp_says_so() {
    let dir = scratch();
    for ramp in ["ramp_time=1h", "ramp_size=1g"] {
        let line = format!("--name=j --ioengine=null --size=64k --{ramp}");
        let run = Program::under_test().line(dir.path(), &line).ok();
        assert!(run.stderr.contains("j: ended within its ramp (ramp_"), "{run}");
    }
}

#[test]
fn times_beyond_all_clocks_are_never_reached() {
    let dir = scratch();
    for times in [
        "--rate_min=1 --rate_cycle=9223372036854775807",
        "--steadystate=iops:1 --steadystate_duration=18446744073709 --steadystate_check_interval=18446744073709",
        "--steadystate=iops:1 --steadystate_duration=18446744073709 --steadystate_ramp_time=18446744073709",
        // The second job would never start; the first one ends both.
        "--exitall --name=k --ioengine=null --size=1m --startdelay=18446744073709",
    ] {
        Program::under_test().line(dir.path(), &format!("--name=j --ioengine=null --size=1m {times}")).ok();
    }
}

#[test]
fn rates_that_contradict_each_other_are_refused() {
    let dir = scratch();
    for (rates, message) in [
        ("--rate=1m --rate_iops=100", "j: rate and rate_iops exclude each other"),
        ("--rate=1m --rate_min=2m", "j: rate_min=2097152: is more than rate=1048576 allows"),
    ] {
        let run =
            Program::under_test().line(dir.path(), &format!("--name=j --ioengine=null --size=1m {rates}"));
        assert!(run.refused().stderr.contains(message), "{rates}");
    }
}

#[test]
fn an_io_that_takes_too_long_ends_the_job() {
    let dir = scratch();
    let line = "--name=j --filename=f --size=1M --rw=write --end_fsync=0 --sync=1 --max_latency=1us";
    let run = Program::under_test().line(dir.path(), line).refused();
    assert!(run.stderr.contains("exceeds max_latency=1us: "), "{run}");
    assert!(run.stdout.contains("err=110"), "{run}");
}

#[test]
pub fn a_latency_target_is_reported_with_its_depth() {
    let dir = scratch();
    let line = |target: &str| {
        format!(
            "--name=j --filename=f --size=1M --rw=randread --ioengine=libaio --direct=1 --iodepth=8 \
             --latency_target={target} --latency_window=20ms --latency_percentile=99 --time_based --runtime=1 \
             --output-format=json"
        )
    };
    let found = |target: &str| {
        let report = Json::parse(&Program::under_test().line(dir.path(), &line(target)).ok().stdout);
        (report.job().int("latency_depth"), report.job().float("latency_percentile"))
    };
    // Latencies count even if they are not reported.
    assert_eq!(found("1us --gtod_reduce=1").0, 1);
    // With a target of a minute, the full depth is good; with a target that no I/O meets, not even depth 1 is.
    assert_eq!(found("60s"), (8, 99.0));
    assert_eq!(found("1us"), (1, 99.0));
}

/// Every second I/O is late. This is too many if 95% have to be in time, but not if 20% have to.
#[test]
pub fn a_latency_percentile_says_how_many_may_be_late() {
    let dir = scratch();
    let found = |percentile: u64| {
        let line = format!(
            "--name=j --filename=/dev/zero --size=1t --ioengine=psync --iodepth=2 --latency_target=100ms \
             --latency_window=1s --latency_percentile={percentile} --time_based --runtime=5 --output-format=json"
        );
        let program = Program::under_test();
        let run = trace::slowed_when(&program, dir.path(), "pread64", 200, "2+2", &words(&line))?;
        Some(Json::parse(&run.ok().stdout).job().int("latency_depth"))
    };
    let (Some(few), Some(most)) = (found(20), found(95)) else { skip!("needs strace") };
    assert_eq!((few, most), (2, 1));
}

#[test]
fn a_long_pause_ends_on_request() {
    for thread in [false, true] {
        let dir = scratch();
        let file = dir.path().join("f");
        let first_is_done = || fs::read(&file).is_ok_and(|bytes| bytes.iter().any(|&byte| byte != 0));
        let pausing = format!(
            "--output-format=json --thread={} --name=j --filename=f --rw=write --bs=4k --size=8k --thinktime=1h",
            u8::from(thread)
        );
        let mut running = Program::under_test().start(dir.path(), pausing.split(' '));
        running.wait_until("its pause", |_| first_is_done());
        running.signal(libc::SIGINT);
        let finished = running.wait();
        assert_eq!(Json::parse(&finished.stdout).job().ios(), [0, 1, 0], "{finished}");
        // The end of another job ends it as well.
        let line = format!("{pausing} --name=k --ioengine=null --size=4k --startdelay=100ms --exitall=1");
        Program::under_test().line(dir.path(), &line).ok();
    }
}

#[test]
fn a_long_pause_ends_with_the_time_of_the_job() {
    for pause in ["--thinktime=1 --thinkcycles=99999999999999", "--thinktime=1h --thinktime_spin=1h"] {
        let report = report(&format!("{pause} --runtime=1 --time_based"));
        assert_eq!(report.job().ios()[0], 1, "{pause}");
        assert!(report.job().int("read.runtime") >= 999, "{pause}");
    }
}
