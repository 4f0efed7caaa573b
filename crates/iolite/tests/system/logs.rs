//! Logs: their content, when they are written, and messages if they cannot be.

use crate::common::program::{Finished, Running, is_full};
use crate::common::{Json, Program, files_in, is_root, peers, scratch};
use iolite_testing::{partly_skipped, this_test};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn ours() -> Program {
    Program::own()
}

/// The lines of a log as numbers, which may be hexadecimal.
#[track_caller]
fn log(dir: &Path, name: &str) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    lines(&text)
}

#[track_caller]
fn lines(text: &str) -> Vec<Vec<u64>> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines()
        .map(|line| line.split(", ").map(|text| number(text).unwrap_or_else(|_| panic!("{line}"))).collect())
        .collect()
}

/// Runs a job under Iolite with a JSON report.
#[track_caller]
fn run(dir: &Path, line: &str) -> Json {
    let line = format!("--output-format=json --name=j {line}");
    Json::parse(&ours().line(dir, &line).ok().stdout)
}

/// A job of 64 queued writes.
const QUEUED: &str = "--ioengine=libaio --iodepth=4 --filename=f --size=256k --rw=write";

#[test]
fn one_line_per_io_in_each_log() {
    let dir = scratch();
    let json = run(
        dir.path(),
        &format!("{QUEUED} --write_bw_log=x --write_lat_log=x --write_iops_log=j --log_offset=1"),
    );
    assert_eq!(json.job().ios(), [0, 64, 0]);
    let read = |name: &str| log(dir.path(), name);
    let [bw, iops, slat, clat, lat] =
        ["x_bw.1.log", "j_iops.1.log", "x_slat.1.log", "x_clat.1.log", "x_lat.1.log"].map(read);
    for lines in [&bw, &iops, &slat, &clat, &lat] {
        assert_eq!(lines.len(), 64);
        let mut offsets: Vec<u64> = lines.iter().map(|line| line[4]).collect();
        offsets.sort_unstable();
        assert!(offsets.iter().enumerate().all(|(index, &offset)| offset == index as u64 * 4096));
        // Each line is a write of 4 KiB without a real-time priority.
        assert!(lines.iter().all(|line| line.len() == 6 && (line[2], line[3], line[5]) == (1, 4096, 0)));
        assert!(lines.is_sorted_by_key(|line| line[0]));
    }
    for index in 0..64 {
        assert_eq!(slat[index][1] + clat[index][1], lat[index][1]);
        assert_eq!(bw[index][1], 4096 * 1_000_000 / clat[index][1]);
        assert_eq!(iops[index][1], 1);
    }
    // The report is computed from the same I/Os.
    let sum: u64 = clat.iter().map(|line| line[1]).sum();
    assert!((json.job().float("write.clat_ns.mean") - sum as f64 / 64.0).abs() < 1.0);
    assert_eq!(json.job().int("write.lat_ns.max"), lat.iter().map(|line| line[1]).max().unwrap());
}

#[test]
fn without_a_name_a_log_has_the_jobs() {
    let dir = scratch();
    let jobs = "[global]\nioengine=null\nsize=16k\n[a]\nnumjobs=2\nwrite_bw_log\n[b]\nwrite_iops_log=\n";
    fs::write(dir.path().join("job.fio"), jobs).unwrap();
    for program in Program::all() {
        program.line(dir.path(), "job.fio").ok();
        // Workers are numbered through all jobs.
        for name in ["a_bw.1.log", "a_bw.2.log", "b_iops.3.log"] {
            assert_eq!(log(dir.path(), name).len(), 4);
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
}

#[test]
fn the_same_files_and_lines_as_the_peer() {
    for peer in peers!() {
        for job in [
            QUEUED,
            "--ioengine=psync --filename=f --size=64k --rw=write --log_offset=1 --log_prio=1 --prio=3 --numjobs=2",
            "--ioengine=psync --filename=f --size=64k --rw=randread --prioclass=1 --prio=0",
            "--ioengine=null --size=64k --rw=trim --disable_clat=1",
            "--ioengine=null --size=64k --rw=write --per_job_logs=0 --numjobs=3 --thread --name=k --rw=read --size=8k \
         --ioengine=null --write_bw_log=x",
            "--ioengine=null --size=64k --rw=write --loops=3 --disable_slat=1 --disable_lat=1",
            "--ioengine=null --size=64k --rw=read --write_hist_log=h --log_hist_msec=1000 --log_store_compressed=1",
            "--ioengine=psync --filename=f --size=16k --bs=1k,4k --rw=readwrite --log_compression=1024",
        ] {
            let [(files, ours), (their_files, theirs)] = [ours(), peer.clone()].map(|program| {
                let dir = scratch();
                let line = format!("--name=j --write_bw_log=x --write_lat_log --write_iops_log=sub_x {job}");
                let line = line.replace("--write_lat_log", "--write_lat_log=j");
                program.line(dir.path(), &line).ok();
                let names: Vec<String> = files_in(dir.path())
                    .into_iter()
                    .map(|(name, _)| name)
                    .filter(|name| name.contains(".log"))
                    .collect();
                let shapes: Vec<_> = names.iter().map(|name| shape(&program, dir.path(), name)).collect();
                (names, shapes)
            });
            assert_eq!(files, their_files, "{job}");
            for ((name, ours), theirs) in files.iter().zip(ours).zip(theirs) {
                // fio omits the histogram of the last window at the end of a run.
                if !name.contains("hist") {
                    assert_eq!(ours, theirs, "{job}: {name}");
                }
            }
        }
    }
}

/// The parts of a log that must be the same in both programs: all except times, values and order.
fn shape(program: &Program, dir: &Path, name: &str) -> Vec<Vec<String>> {
    let text = if name.ends_with(".fz") {
        // (fio leaves an empty file if nothing was logged, but cannot read it.)
        if fs::metadata(dir.join(name)).unwrap().len() == 0 || name.contains("hist") {
            return Vec::new();
        }
        program.run(dir, [format!("--inflate-log={name}")]).ok().stdout
    } else {
        fs::read_to_string(dir.join(name)).unwrap()
    };
    let mut lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split(", ").skip(2).map(str::to_owned).collect()).collect();
    lines.sort();
    lines
}

#[test]
fn windows_hold_averages_maxima_or_both() {
    let dir = scratch();
    let job = "--ioengine=null --rw=randrw --size=1g --time_based --runtime=1 --log_avg_msec=100 --write_lat_log=x \
               --write_bw_log=x --write_iops_log=x --log_offset=1 --thinktime=200";
    let json = run(dir.path(), &format!("{job} --log_window_value=both"));
    let [reads, writes, _] = json.job().ios();
    let both = log(dir.path(), "x_lat.1.log");
    let most = 2 * (json.job().int("job_runtime") as usize / 100 + 1);
    assert!((2..=most).contains(&both.len()), "{most}: {both:?}");
    assert!(both.iter().all(|line| line.len() == 7 && line[1] <= line[2] && line[4..] == [0, 0, 0]));
    assert!(both.iter().any(|line| line[1] < line[2]));
    let iops = log(dir.path(), "x_iops.1.log");
    for (direction, count) in [(0, reads), (1, writes)] {
        let mut before = 0;
        let mut sum = 0.0;
        for line in iops.iter().filter(|line| line[3] == direction) {
            sum += line[1] as f64 * (line[0] - before) as f64 / 1000.0;
            before = line[0];
        }
        // Rates and times are whole numbers.
        assert!((sum - count as f64).abs() < count as f64 / 20.0 + 12.0, "{sum} of {count}: {iops:?}");
    }
    let bw = log(dir.path(), "x_bw.1.log");
    assert!(bw.iter().zip(&iops).all(|(bw, iops)| bw[1].abs_diff(iops[1] * 4) <= 4), "4 KiB each");
    run(dir.path(), &format!("{job} --log_window_value=max"));
    let most = log(dir.path(), "x_lat.1.log");
    assert!(most.iter().all(|line| line.len() == 6));
    assert!(most.iter().map(|line| line[1]).max() > both.iter().map(|line| line[1]).min());
}

/// The sum of the values of each direction in a log of windows of 100 ms, times their lengths in milliseconds, after a check
/// that the windows lie on their grid: all end at multiples of their length, except that the last one ends with the job.
#[track_caller]
fn summed(lines: &[Vec<u64>]) -> [u64; 3] {
    const LENGTH: u64 = 100;
    let mut sums = [0; 3];
    let mut last = [0_u64; 3];
    for line in lines {
        let direction = line[2] as usize;
        assert!(last[direction].is_multiple_of(LENGTH) && line[0] > last[direction], "{lines:?}");
        last[direction] = line[0];
        // A window that is shorter than a tenth joins the one before it.
        let beyond = line[0] % LENGTH;
        let span = match beyond {
            0 => LENGTH,
            1..10 if line[0] > LENGTH => LENGTH + beyond,
            _ => beyond,
        };
        sums[direction] += line[1] * span;
    }
    sums
}

/// Whether a sum of rates times milliseconds is this amount. The last rate of each of two logs is a whole number as well.
fn is_total(sum: u64, amount: u64) -> bool {
    sum.abs_diff(amount * 1000) <= 2 * (110 / 2 + 1)
}

/// Bursts with pauses, longer ones than a window too, I/Os in flight at the end, and a ramp.
#[test]
fn windows_lie_on_a_grid_and_add_up() {
    for options in [
        "--ioengine=null --rw=randrw --thinktime=35ms --thinktime_blocks=100 --runtime=350ms",
        "--ioengine=null --rw=write --thinktime=220ms --thinktime_blocks=300 --runtime=500ms",
        "--ioengine=null --rw=read --rate_iops=1000 --ramp_time=150ms --runtime=240ms",
        "--ioengine=libaio --iodepth=32 --filename=f --rw=randrw --runtime=250ms",
        "--ioengine=null --rw=rw --unified_rw_reporting=both --thinktime=30ms --runtime=220ms",
    ] {
        let dir = scratch();
        let json = run(
            dir.path(),
            &format!(
                "--bs=4k --size=16m --time_based --numjobs=2 --group_reporting --log_avg_msec=100 --write_bw_log=x \
                 --write_iops_log=x --write_lat_log=x --write_hist_log=x --log_hist_msec=100 --log_hist_coarseness=6 {options}"
            ),
        );
        let (mut ios, mut bandwidth, mut counts) = ([0; 3], [0; 3], [0; 3]);
        for worker in [1, 2] {
            let lines = |kind: &str| log(dir.path(), &format!("x_{kind}.{worker}.log"));
            let times = |lines: &[Vec<u64>], direction: usize| {
                lines.iter().map(|line| (line[0], line[direction])).collect::<Vec<_>>()
            };
            let of_iops = lines("iops");
            for kind in ["bw", "lat", "clat"] {
                assert_eq!(times(&lines(kind), 2), times(&of_iops, 2), "{options}: {kind}");
            }
            let histograms = lines("clat_hist");
            assert_eq!(times(&histograms, 1), times(&of_iops, 2), "{options}");
            for line in &histograms {
                counts[line[1] as usize] += line[3..].iter().sum::<u64>();
            }
            let add = |sum: &mut [u64; 3], more: [u64; 3]| {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            };
            add(&mut ios, summed(&of_iops));
            add(&mut bandwidth, summed(&lines("bw")));
        }
        assert_eq!(counts, json.job().ios(), "{options}");
        for direction in 0..3 {
            assert!(is_total(ios[direction], counts[direction]), "{options}: {ios:?} {counts:?}");
            assert!(
                is_total(bandwidth[direction], 4 * counts[direction]),
                "{options}: {bandwidth:?} {counts:?}"
            );
        }
    }
}

/// A job that is prepared for a while, and ends between the edges of windows.
#[test]
fn series_and_the_bandwidth_log_have_the_windows_of_logs() {
    let dir = scratch();
    fs::write(dir.path().join("pause"), "sleep 0.25").unwrap();
    let line = "--bandwidth-log --ioengine=null --rw=read --bs=4k --size=1g --rate_iops=1000 --number_ios=350 \
                --write_bw_log=x --log_avg_msec=100 --exec_prerun=sh<pause";
    let json = run(dir.path(), line);
    let windows: Vec<u64> = log(dir.path(), "x_bw.1.log").iter().map(|line| line[0]).collect();
    let series = &json.0["iolite"]["series"];
    let ends: Vec<u64> =
        series["end_us"].as_array().unwrap().iter().map(|end| end.as_u64().unwrap() / 1000).collect();
    assert!(windows.iter().all(|end| ends.contains(end)), "{windows:?} {ends:?}");
    assert_eq!((ends.last(), &series["begin_us"]), (windows.last(), &0.into()), "{windows:?}");
    assert_eq!(log(dir.path(), "agg-read_bw.log").last().map(|line| line[0]), windows.last().copied());
}

/// As with fio, a window without I/O has no line.
#[test]
fn empty_windows_have_no_line() {
    let job = "--name=j --ioengine=null --size=1g --bs=4k --thinktime=300ms --thinktime_blocks=100 --runtime=500ms --time_based \
               --write_iops_log=x --write_lat_log=x --log_avg_msec=20";
    for program in [vec![ours()], Program::peers()].concat() {
        let dir = scratch();
        program.line(dir.path(), job).ok();
        for name in ["x_iops.1.log", "x_lat.1.log"] {
            let lines = log(dir.path(), name);
            // Two bursts, each of which may lie in two of the 25 windows.
            assert!((1..=4).contains(&lines.len()), "{} {name} {lines:?}", program.version());
            assert!(lines.iter().all(|line| line[1] > 0), "{} {name} {lines:?}", program.version());
        }
    }
}

#[test]
fn averages_of_the_report_are_no_coarser_than_the_logs() {
    let dir = scratch();
    let samples = |options: &str| {
        let json = run(
            dir.path(),
            &format!(
                "--ioengine=null --rw=read --size=1m --time_based --runtime=2 --rate_iops=1000 {options}"
            ),
        );
        (json.job().int("read.bw_samples"), json.job().int("read.iops_samples"))
    };
    let (bw, iops) = samples("--write_bw_log=x --log_avg_msec=100");
    assert!((1..=21).contains(&bw) && iops <= 5, "{bw} {iops}");
    let (bw, iops) = samples("--write_iops_log=x --log_avg_msec=100");
    assert!((1..=21).contains(&iops) && bw <= 5, "{bw} {iops}");
}

#[test]
fn times_begin_after_the_ramp_and_go_on_through_loops() {
    let dir = scratch();
    let json = run(
        dir.path(),
        "--ioengine=null --rw=read --size=16k --ramp_time=1 --runtime=1 --time_based --thinktime=20ms --write_lat_log=x",
    );
    let lines = log(dir.path(), "x_lat.1.log");
    assert_eq!(lines.len() as u64, json.job().ios()[0], "I/Os of the ramp are logged");
    // The ramp is as long as the logged time, so times that included it would exceed the runtime.
    assert!(lines.last().unwrap()[0] <= json.job().int("read.runtime") + 1, "{lines:?}");
    run(dir.path(), "--ioengine=null --rw=read --size=16k --loops=3 --thinktime=10ms --write_lat_log=x");
    let lines = log(dir.path(), "x_lat.1.log");
    assert_eq!(lines.len(), 12);
    assert!(lines.is_sorted_by_key(|line| line[0]) && lines[11][0] >= 100, "{lines:?}");
}

/// The time of a clock in milliseconds.
fn milliseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

#[test]
pub fn times_of_another_clock() {
    let dir = scratch();
    let job = "--ioengine=null --rw=read --size=16k --write_lat_log=x --log_alternate_epoch=1";
    for (clock, more) in [
        (libc::CLOCK_REALTIME, ""),
        (libc::CLOCK_MONOTONIC, "--log_alternate_epoch_clock_id=1 --log_issue_time=1"),
    ] {
        let before = milliseconds(clock);
        run(dir.path(), &format!("{job} {more}"));
        // Rounding may change a time by one millisecond in either direction.
        let between = before - 1..=milliseconds(clock) + 1;
        for line in log(dir.path(), "x_clat.1.log") {
            assert!(between.contains(&line[0]), "{between:?} {line:?}");
            // Both times have the same epoch, and an I/O is issued before it completes.
            let issued = line.get(5).map(|ns| ns / 1_000_000);
            assert!(issued.is_none_or(|ms| between.contains(&ms) && ms <= line[0]), "{between:?} {line:?}");
        }
    }
    let refused = ours().line(
        dir.path(),
        &format!("--name=j {job} --log_alternate_epoch_clock_id=99 --filename=made --ioengine=psync"),
    );
    refused.refused().says("log_alternate_epoch_clock_id=99: this system has no such clock");
    assert!(!dir.path().join("made").exists());
}

#[test]
fn priorities_and_times_of_issue() {
    let dir = scratch();
    let job = "--ioengine=psync --filename=f --rw=write --size=64k --write_lat_log=x --log_issue_time=1";
    run(dir.path(), &format!("{job} --prioclass=2 --prio=5 --log_prio=1"));
    let text = fs::read_to_string(dir.path().join("x_lat.1.log")).unwrap();
    assert!(text.lines().all(|line| line.split(", ").nth(4) == Some("0x4005")), "{text}");
    for clat in log(dir.path(), "x_clat.1.log") {
        let done = (clat[5] + clat[1]) / 1_000_000;
        assert_eq!(done, clat[0], "done when it was issued, and its latency later");
    }
}

/// As in fio, logs of slat and clat contain the time of issue, and other or averaged logs contain 0 in its place.
#[test]
fn times_of_issue_are_where_fio_has_them() {
    let job = format!(
        "--name=j {QUEUED} --bs=16k --write_lat_log=x --write_bw_log=x --write_iops_log=x --log_offset=1 --log_issue_time=1"
    );
    let kinds = ["slat", "clat", "lat", "bw", "iops"];
    for program in [vec![ours()], Program::peers()].concat() {
        if program.is_peer && program.version() == "fio-3.33" {
            partly_skipped(&this_test!(), "log_issue_time came after fio 3.33");
            continue;
        }
        let dir = scratch();
        let columns = |more: &str| {
            program.line(dir.path(), &format!("{job} {more}")).ok();
            kinds.map(|kind| {
                let lines = log(dir.path(), &format!("x_{kind}.1.log"));
                // fio omits an incomplete window of bandwidth or IOPS.
                assert!(
                    (!lines.is_empty() || !more.is_empty()) && lines.iter().all(|line| line.len() == 7),
                    "{kind} {lines:?}"
                );
                lines.iter().map(|line| line[6]).collect::<Vec<u64>>()
            })
        };
        let [slat, clat, others @ ..] = columns("");
        let set = |times: &[u64]| times.iter().copied().collect::<BTreeSet<u64>>();
        assert!(slat.iter().any(|&time| time > 0), "{} {slat:?}", program.version());
        assert_eq!(set(&slat), set(&clat), "an I/O is issued once");
        assert!(others.iter().flatten().all(|&time| time == 0), "{} {others:?}", program.version());
        let averages = columns("--log_avg_msec=1");
        assert!(averages.iter().flatten().all(|&time| time == 0), "{} {averages:?}", program.version());
    }
}

#[test]
fn own_files_begin_anew_and_shared_ones_go_on() {
    let dir = scratch();
    for (options, name, lines) in
        [("", "x_iops.1.log", 4), ("--per_job_logs=0 --numjobs=2", "x_iops.log", 1 + 2 * 4)]
    {
        fs::write(dir.path().join(name), "0, 7, 0, 0, 0\n").unwrap();
        ours()
            .line(
                dir.path(),
                &format!("--name=j --ioengine=null --rw=read --size=16k --write_iops_log=x {options}"),
            )
            .ok();
        assert_eq!(log(dir.path(), name).len(), lines);
    }
}

#[test]
fn a_log_is_written_while_its_job_runs_or_held_back() {
    let dir = scratch();
    let job = "--name=j --ioengine=null --rw=read --size=1m --time_based --runtime=100 --rate_iops=2000 \
               --output-format=json --write_iops_log=";
    let size = |name: &str| fs::metadata(dir.path().join(name)).map_or(0, |file| file.len());
    let mut open = ours().start(dir.path(), format!("{job}open").split_whitespace());
    let mut held = ours().start(dir.path(), format!("{job}held --log_compression=1024").split_whitespace());
    open.wait_until("the log grows", |_| size("open_iops.1.log") > 10_000);
    held.wait_until("it has run for a while", |_| size("open_iops.1.log") > 40_000);
    assert_eq!(size("held_iops.1.log"), 0, "it is compressed in memory meanwhile");
    let [_, held] = [open, held].map(|running| {
        running.signal(libc::SIGINT);
        running.wait()
    });
    assert_eq!(held.code(), 128, "{held}");
    // (The number of lines depends on how the two programs were scheduled.)
    let lines = log(dir.path(), "held_iops.1.log");
    assert_eq!(lines.len() as u64, Json::parse(&held.stdout).job().ios()[0]);
    assert!(!lines.is_empty() && lines.iter().all(|line| line[1..] == [1, 0, 4096, 0]));
}

#[test]
fn an_interrupted_job_keeps_every_entry() {
    let dir = scratch();
    for (index, options) in ["", "--thread", "--log_store_compressed=1"].into_iter().enumerate() {
        let line = format!(
            "--output-format=json --name=j --ioengine=null --rw=randread --size=1g --time_based --runtime=100 \
             --write_lat_log={index} {options}"
        );
        let mut running = ours().start(dir.path(), line.split_whitespace());
        let name = &format!("{index}_lat.1.log{}", if index == 2 { ".fz" } else { "" });
        running.wait_until("entries are written", |_| {
            fs::metadata(dir.path().join(name)).is_ok_and(|file| file.len() > 100_000)
        });
        running.signal(libc::SIGINT);
        let run = running.wait();
        assert_eq!(run.code(), 128, "{run}");
        let done = Json::parse(&run.stdout).job().ios()[0];
        let count = if name.ends_with(".fz") {
            ours().run(dir.path(), [format!("--inflate-log={name}")]).ok().stdout.lines().count()
        } else {
            log(dir.path(), name).len()
        };
        assert_eq!(count as u64, done, "{options}");
    }
}

/// Runs a job whose log goes to a pipe. Reading begins after the pipe has been full for `wait`.
fn run_into_a_pipe(dir: &Path, options: &str, wait: Duration) -> (Finished, Vec<Vec<u64>>) {
    let pipe = dir.join("x_lat.1.log");
    let path = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the string is terminated and lives through the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let line = format!(
        "--output-format=json --name=j --ioengine=null --rw=read --number_ios=40000 --size=1g --disable_clat=1 \
         --disable_slat=1 --write_lat_log=x {options}"
    );
    let mut running: Running = ours().start(dir, line.split_whitespace());
    let reader = fs::File::open(&pipe).unwrap();
    running.wait_until("the pipe is full", |_| is_full(&reader));
    std::thread::sleep(wait);
    let text = std::io::read_to_string(reader).unwrap();
    fs::remove_file(&pipe).unwrap();
    (running.wait().ok(), lines(&text))
}

#[test]
pub fn a_job_waits_for_its_log_and_says_so() {
    let dir = scratch();
    // 40000 lines are about 700 KiB: more than a pipe, the buffer of a log, and a queue of 1024 entries hold.
    let (run, lines) = run_into_a_pipe(dir.path(), "--log_entries=1024", Duration::from_millis(1000));
    assert_eq!(lines.len(), 40_000, "nothing is lost");
    let json = Json::parse(&run.stdout);
    assert!(json.job().int("log_wait_ms") > 0, "{run}");
    // The default queue has room for all entries.
    let (run, lines) = run_into_a_pipe(dir.path(), "", Duration::from_millis(100));
    assert_eq!(lines.len(), 40_000);
    assert!(!run.stdout.contains("log_wait_ms"), "{run}");
    let normal = "--output-format=normal --log_entries=1024";
    let (run, _) = run_into_a_pipe(dir.path(), normal, Duration::from_millis(1000));
    run.says("j: waited ").says("for its logs");
}

#[test]
pub fn the_writer_keeps_to_its_processors() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --thread --rw=read --size=1m --time_based --runtime=100 --rate_iops=1000 \
                --write_lat_log=x --log_compression_cpus=0";
    let mut running = ours().start(dir.path(), line.split_whitespace());
    let allowed = || {
        let tasks = fs::read_dir("/proc").unwrap().flatten().filter_map(|process| {
            let cwd = fs::read_link(process.path().join("cwd")).ok()?;
            (cwd == dir.path().canonicalize().unwrap())
                .then(|| fs::read_dir(process.path().join("task")).ok())?
        });
        let mut tasks = tasks.flatten().flatten();
        tasks.find_map(|task| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let list =
                status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned();
            (name.trim() == "iolite-log").then_some(list)
        })
    };
    running.wait_until("the writer runs", |_| allowed().as_deref() == Some("0"));
    running.signal(libc::SIGINT);
    running.wait();
    ours()
        .line(
            dir.path(),
            "--name=j --ioengine=null --rw=read --size=1m --write_lat_log=x --log_compression_cpus=1020",
        )
        .refused()
        .says("log_compression_cpus");
}

#[test]
fn logs_that_cannot_be_written_are_errors() {
    let dir = scratch();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("file"), "").unwrap();
    fs::create_dir(path("taken_lat.1.log")).unwrap();
    let closed = path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let mut cases = vec![
        (
            "--write_lat_log=no/such/x",
            "write_lat_log=no/such/x: there is no directory no/such; mkdir -p no/such",
        ),
        ("--write_bw_log=file/x", "write_bw_log=file/x: file is not a directory"),
        ("--write_lat_log=taken", "taken_lat.1.log is a directory"),
    ];
    if !is_root() {
        cases.push(("--write_iops_log=closed/x", "no file can be made in closed"));
    }
    for (options, reason) in cases {
        let line = format!("--name=j --filename=data --size=64k --rw=write {options}");
        ours().line(dir.path(), &line).refused().says(reason);
        assert!(!path("data").exists(), "nothing was done: {options}");
    }
    // A mistake in a job file is reported with its place.
    fs::write(
        path("job.fio"),
        "[j]\nfilename=data\nsize=64k\nrw=write\nwrite_hist_log=no/h\nlog_hist_msec=10\n",
    )
    .unwrap();
    ours()
        .line(dir.path(), "job.fio")
        .refused()
        .says("job.fio:5:")
        .says("j: write_hist_log=no/h: there is no directory no");
    // Write errors end the job, with the reason.
    std::os::unix::fs::symlink("/dev/full", path("full_lat.1.log")).unwrap();
    for options in ["", "--thread", "--log_store_compressed=1", "--time_based --runtime=100"] {
        let name = if options.contains("compressed") { "full_lat.1.log.fz" } else { "full_lat.1.log" };
        if !path(name).exists() {
            std::os::unix::fs::symlink("/dev/full", path(name)).unwrap();
        }
        let line = format!("--name=j --ioengine=null --size=16m --rw=write --write_lat_log=full {options}");
        let run = ours().line(dir.path(), &line).refused();
        assert!(run.output().contains(&format!("func=log({name}), error=No space left on device")), "{run}");
    }
}

#[test]
fn a_log_is_kept_for_a_job_that_measures_nothing_else() {
    let dir = scratch();
    for options in ["--stats=0", "--gtod_reduce=1"] {
        let line = format!(
            "--name=j --ioengine=null --rw=read --size=64k --write_bw_log=x --write_lat_log=x {options}"
        );
        ours().line(dir.path(), &line).ok();
        let lines = log(dir.path(), "x_bw.1.log");
        assert_eq!(lines.len(), 16, "{options}");
        assert!(lines.iter().any(|line| line[1] > 0));
        // Disabled latencies have no log.
        assert_eq!(dir.path().join("x_lat.1.log").exists(), options == "--stats=0");
        for (name, _) in files_in(dir.path()) {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
}

#[test]
pub fn compressed_logs_go_both_ways() {
    let dir = scratch();
    let job = "--name=j --ioengine=psync --filename=f --rw=randrw --size=8m --log_store_compressed=1 --log_offset=1 \
               --log_prio=1 --log_compression=64k --write_lat_log=";
    ours().line(dir.path(), &format!("{job}ours")).ok();
    let inflate = |program: &Program, name: &str| {
        program.run(dir.path(), [format!("--inflate-log={name}_lat.1.log.fz")]).ok().stdout
    };
    let text = inflate(&ours(), "ours");
    let entries = lines(&text);
    assert_eq!(entries.len(), 2048);
    assert!(entries.iter().all(|line| line.len() == 6 && line[3] == 4096));
    let size = fs::metadata(dir.path().join("ours_lat.1.log.fz")).unwrap().len();
    assert!(size < text.len() as u64 / 2, "{size} of {}", text.len());
    for peer in peers!() {
        if !peer.release.packs_logs_otherwise {
            assert_eq!(inflate(&peer, "ours"), text, "fio reads ours");
            let job = job.replace("--log_prio=1", "--log_issue_time=1");
            ours().line(dir.path(), &format!("{job}issued")).ok();
            assert_eq!(inflate(&peer, "issued"), inflate(&ours(), "issued"), "with times of issue");
        }
        peer.line(dir.path(), &format!("{job}theirs")).ok();
        assert_eq!(inflate(&ours(), "theirs"), inflate(&peer, "theirs"), "and we read its");
    }
}

#[test]
fn invalid_compressed_logs_are_errors() {
    let dir = scratch();
    fs::write(dir.path().join("text"), "0, 1, 0, 4096, 0\n").unwrap();
    fs::write(dir.path().join("empty.fz"), "").unwrap();
    ours().line(dir.path(), "--inflate-log=text").refused().says("text: not a compressed log at byte");
    ours().line(dir.path(), "--inflate-log=nosuch").refused().says("nosuch: No such file or directory");
    assert_eq!(ours().line(dir.path(), "--inflate-log=empty.fz").ok().stdout, "");
}

#[test]
pub fn histograms_count_every_io() {
    let dir = scratch();
    for (coarseness, columns) in [(0, 1856), (3, 232), (6, 29)] {
        let json = run(
            dir.path(),
            &format!(
                "--ioengine=null --rw=randrw --size=1g --time_based --runtime=1 --thinktime=100 --write_hist_log=h \
                 --log_hist_msec=300 --log_hist_coarseness={coarseness}"
            ),
        );
        let lines = log(dir.path(), "h_clat_hist.1.log");
        // There is one line per direction and 300 ms, and one at the end.
        let most = 2 * (json.job().int("job_runtime") as usize / 300 + 1);
        assert!((2..=most).contains(&lines.len()), "{most}: {}", lines.len());
        assert!(lines.iter().all(|line| line.len() == columns + 3 && line[2] == 4096));
        let [reads, writes, _] = json.job().ios();
        for (direction, count) in [(0, reads), (1, writes)] {
            let of = lines.iter().filter(|line| line[1] == direction);
            assert_eq!(of.flat_map(|line| &line[3..]).sum::<u64>(), count);
        }
    }
    let warned =
        ours().line(dir.path(), "--name=j --ioengine=null --rw=read --size=1m --write_hist_log=h").ok();
    warned.says("stays empty without log_hist_msec");
    assert_eq!(fs::metadata(dir.path().join("h_clat_hist.1.log")).unwrap().len(), 0);
}

#[test]
fn the_bandwidth_of_all_jobs_together() {
    let dir = scratch();
    fs::create_dir(dir.path().join("aux")).unwrap();
    let line = "--bandwidth-log --aux-path=aux --output-format=json --name=a --ioengine=null --rw=randread \
                --rate_iops=1000 --size=1g --time_based --runtime=2 --numjobs=2 --write_iops_log=x";
    ours().line(dir.path(), line).ok();
    let read = log(dir.path(), "agg-read_bw.log");
    assert!(read.len() >= 3, "{read:?}");
    assert!(read.iter().all(|line| line.len() == 5 && line[2..] == [0, 0, 0]));
    // Each of two jobs has 1000 I/Os of 4 KiB per second, except at the beginning and the end.
    let most = read.iter().map(|line| line[1]).max().unwrap();
    assert!((6000..=10_000).contains(&most), "{read:?}");
    for (name, direction) in [("agg-write_bw.log", 1), ("agg-trim_bw.log", 2)] {
        assert!(log(dir.path(), name).iter().all(|line| (line[1], line[2]) == (0, direction)));
    }
    // If one of the logs cannot be written, none is written, and the others keep their content.
    let kept = fs::read(dir.path().join("agg-read_bw.log")).unwrap();
    fs::remove_file(dir.path().join("agg-trim_bw.log")).unwrap();
    fs::create_dir(dir.path().join("agg-trim_bw.log")).unwrap();
    ours().line(dir.path(), line).refused().says("agg-trim_bw.log: Is a directory");
    assert_eq!(fs::read(dir.path().join("agg-read_bw.log")).unwrap(), kept);
    fs::remove_dir(dir.path().join("agg-trim_bw.log")).unwrap();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("agg-trim_bw.log")).unwrap();
    let full = ours().line(dir.path(), line).refused();
    full.says("agg-trim_bw.log cannot be written any more: No space left on device").says("\"jobs\"");
    // --aux-path does not apply to logs, as in fio.
    assert!(files_in(&dir.path().join("aux")).is_empty());
    assert!(dir.path().join("x_iops.2.log").exists());
}

#[test]
fn each_io_has_its_own_priority() {
    let dir = scratch();
    run(
        dir.path(),
        "--ioengine=libaio --iodepth=4 --filename=f --rw=randread --size=2m --cmdprio_percentage=50 --cmdprio_class=3 \
         --cmdprio=1 --write_lat_log=x --log_prio=1",
    );
    let text = fs::read_to_string(dir.path().join("x_lat.1.log")).unwrap();
    let of = |priority: &str| text.lines().filter(|line| line.ends_with(priority)).count();
    // For 512 random choices, a quarter to three quarters is more than ten standard deviations.
    assert!((128..=384).contains(&of("0x6001")), "{}", of("0x6001"));
    assert_eq!(of("0x6001") + of("0x0000"), 512);
}

#[test]
fn verification_reads_are_logged_as_in_fio() {
    let counts = |program: &Program| {
        let dir = scratch();
        let line = "--name=j --filename=f --rw=write --size=64k --verify=crc32c --write_lat_log=x";
        program.line(dir.path(), line).ok();
        let lines = log(dir.path(), "x_lat.1.log");
        (lines.len(), lines.iter().filter(|line| line[2] == 0).count())
    };
    assert_eq!(counts(&ours()), (32, 16));
    for peer in Program::peers() {
        assert_eq!(counts(&peer), (32, 16));
    }
}

#[test]
fn memory_does_not_grow_with_a_log() {
    let dir = scratch();
    let home = dir.path().canonicalize().unwrap();
    let line = "--name=j --ioengine=null --rw=randread --size=1g --time_based --runtime=100 --write_lat_log=x \
                --write_bw_log=x --write_iops_log=x --log_offset=1";
    let mut running = ours().start(dir.path(), line.split_whitespace());
    // A million I/Os would take 128 MiB if they were kept until the end.
    running.wait_until("much is logged", |_| {
        fs::metadata(dir.path().join("x_iops.1.log")).is_ok_and(|file| file.len() > 20_000_000)
    });
    let mut seen = 0;
    for process in fs::read_dir("/proc").unwrap().flatten() {
        if fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == home) {
            let status = fs::read_to_string(process.path().join("status")).unwrap_or_default();
            let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            let own: u64 = own.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
            assert!(own < 16 << 10, "{own} KiB: {status}");
            seen += 1;
        }
    }
    assert!(seen >= 3, "the controller, the spawner and the worker: {seen}");
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().code(), 128);
}
