//! Recording and replaying: each program replays traces of the other with the same I/O in the same order, and a bad
//! trace is reported with its place before anything happens.

use crate::common::devices::{Loop, Mounted, image};
use crate::common::program::{Running, is_full};
use crate::common::trace::{Call, asked_sleeps, io_calls, system_calls, whole_calls};
use crate::common::{Finished, Json, Program, files_in, peers, scratch, words};
use iolite_testing::{or_skip, skip};
use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const V3: &str = "fio version 3 iolog\n";

/// A log of two files with all kinds of I/O for regular files.
const LOG: &str = "0 f add\n0 g add\n10 f open\n20 f write 8192 4096\n900 f read 0 4096\n1000 g open\n\
                   2000 g write 20480 8192\n2500 f sync 0 0\n2600 g datasync 0 0\n3000 g close\n3100 f read 8192 512\n\
                   40000 f close\n";

fn log(dir: &Path, name: &str, lines: &str) {
    fs::write(dir.join(name), format!("{V3}{lines}")).unwrap();
}

fn run(dir: &Path, line: &str) -> Finished {
    Program::under_test().line(dir, line)
}

fn json(dir: &Path, line: &str) -> Json {
    Json::parse(&run(dir, &format!("{line} --output-format=json")).ok().stdout)
}

fn names(dir: &Path) -> Vec<String> {
    files_in(dir).into_iter().map(|(name, _)| name).collect()
}

fn size(dir: &Path, name: &str) -> u64 {
    fs::metadata(dir.join(name)).unwrap().len()
}

/// The calls that a program makes, in order; `None` = tracing is not possible.
fn calls(program: &Program, dir: &Path, line: &str) -> Option<Vec<Call>> {
    let (finished, calls) = io_calls(program, dir, &words(line))?;
    finished.ok();
    Some(calls)
}

/// The system call that strace shows for an entry of a log on existing regular files.
fn call(file: &str, write: bool, offset: u64, length: u64) -> Call {
    let name = if write { "pwrite64" } else { "pread64" };
    Call { file: file.into(), name: name.into(), offset, length }
}

#[test]
fn a_recording_is_replayed_by_either_program_in_the_same_order() {
    for peer in peers!() {
        let ours = Program::under_test();
        let record = "--name=r --rw=randrw --bsrange=512-16k --size=256k --nrfiles=3 --fsync=7 --fdatasync=5 \
                  --write_iolog=log";
        for (recorder, player) in [(&ours, &peer), (&peer, &ours), (&ours, &ours)] {
            let dir = scratch();
            // The files exist before, so that only the job itself is traced.
            recorder
                .line(dir.path(), &format!("{record} --create_only=1").replace("--write_iolog=log", ""))
                .ok();
            let Some(recorded) = calls(recorder, dir.path(), record) else {
                skip!("strace may not trace here")
            };
            assert!(recorded.len() > 20);
            let replayed =
                calls(player, dir.path(), "--name=p --read_iolog=log --replay_no_stall=1").unwrap();
            assert_eq!(replayed, recorded, "recorded by {:?}", recorder.path);
            let syncs = |text: String| text.lines().filter(|line| line.contains("sync ")).count() as u64;
            let in_log = syncs(fs::read_to_string(dir.path().join("log")).unwrap());
            let report = json(dir.path(), "--name=p --read_iolog=log --replay_no_stall=1");
            assert!(in_log > 5);
            assert_eq!(report.job().int("sync.total_ios"), in_log);
        }
    }
}

#[test]
fn trims_and_ranges_are_replayed_whoever_recorded_them() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "image", 1 << 20)));
    let device = &device.path;
    let lines = |what: &str| -> Vec<String> {
        let text = fs::read_to_string(dir.path().join("log")).unwrap();
        let of = |line: &str| line.split_once(device.as_str()).map(|(_, rest)| rest.trim().to_owned());
        text.lines().filter_map(of).filter(|line| line.starts_with(what)).collect()
    };
    for recorder in Program::all() {
        let _ = fs::remove_file(dir.path().join("log"));
        let job = format!("--name=r --filename={device} --size=64k --bs=4k --write_iolog=log");
        recorder.line(dir.path(), &format!("{job} --rw=trimwrite")).ok();
        let line = words("--name=p --read_iolog=log --replay_no_stall=1");
        let Some((_, seen)) = system_calls(&Program::under_test(), dir.path(), "ioctl", &line) else {
            skip!("strace may not trace here")
        };
        let trims: Vec<String> = whole_calls(&seen)
            .iter()
            .filter_map(|call| call.split_once("BLKDISCARD, [")?.1.split_once(']'))
            .map(|(range, _)| format!("trim {}", range.replace(',', "")))
            .collect();
        assert_eq!(trims, lines("trim"), "{:?}", recorder.path);
        assert_eq!(trims.len(), 16);
    }
    log(dir.path(), "log", "0 f add\n0 f open\n1 f write 4096 4096\n2 f sync_file_range 4096 4096\n");
    let line = words("--name=p --read_iolog=log");
    let seen = system_calls(&Program::under_test(), dir.path(), "sync_file_range", &line).unwrap().1;
    assert!(seen.contains("4096, 4096, SYNC_FILE_RANGE_WRITE)"), "{seen}");
}

#[test]
fn version_2_is_replayed_like_the_peer_does() {
    let text = "fio version 2 iolog\nf add\ng add\nf open\ng open\nf write 0 4096\nf wait 20 0\ng write 4096 512\n\
                f sync 0 0\ng wait 30 0\nf read 0 512\nf close\ng close\n";
    let expected = [call("f", true, 0, 4096), call("g", true, 4096, 512), call("f", false, 0, 512)];
    for program in Program::all() {
        let dir = scratch();
        fs::write(dir.path().join("log"), text).unwrap();
        fs::write(dir.path().join("f"), vec![1; 8192]).unwrap();
        let Some(seen) = calls(&program, dir.path(), "--name=p --read_iolog=log") else {
            skip!("strace may not trace here")
        };
        assert_eq!(seen, expected, "{:?}", program.path);
    }
    let dir = scratch();
    fs::write(dir.path().join("log"), text).unwrap();
    let report = json(dir.path(), "--name=p --read_iolog=log");
    assert!(report.job().int("job_runtime") >= 30, "the last wait ends 30 ms after the start");
}

#[test]
fn files_get_the_size_the_trace_needs() {
    let dir = scratch();
    log(dir.path(), "log", LOG);
    let report = json(dir.path(), "--name=p --read_iolog=log");
    assert_eq!(report.job().ios(), [2, 2, 0]);
    assert_eq!(report.job().bytes(), [4608, 12_288, 0]);
    assert_eq!(report.job().int("sync.total_ios"), 2);
    assert_eq!(size(dir.path(), "f"), 12_288);
    assert_eq!(size(dir.path(), "g"), 28_672);
    // A trace that only reads opens its files read-only.
    log(dir.path(), "reads", "0 h add\n0 h open\n0 h read 4096 4096\n");
    run(dir.path(), "--name=p --read_iolog=reads --allow_file_create=0").refused().says("h does not exist");
    json(dir.path(), "--name=p --read_iolog=reads");
    assert_eq!(size(dir.path(), "h"), 8192);
}

#[test]
fn times_are_kept_scaled_or_ignored() {
    let dir = scratch();
    let lines: String = (0..50).map(|i| format!("{} f write {} 512\n", i * 10_000, i * 512)).collect();
    log(dir.path(), "log", &format!("0 f add\n0 f open\n{lines}"));
    let time = |line: &str| {
        let report = json(dir.path(), &format!("--name=p --read_iolog=log {line}"));
        assert_eq!(report.job().ios(), [0, 50, 0]);
        let timed = report.job().0.get("replay").is_some();
        if timed {
            assert_eq!(report.job().int("replay.issue_error_ns.N"), 50);
            let percentiles = &report.job().0["replay"]["issue_error_ns"]["percentile"];
            assert!(percentiles["50.000000"].as_u64().is_some());
        }
        let line = words(&format!("--name=p --read_iolog=log {line}"));
        let asked = asked_sleeps(&Program::under_test(), dir.path(), &line);
        (
            report.job().int("job_runtime"),
            asked.map(|(run, asked)| (run.ok(), asked.iter().sum::<Duration>().as_millis()).1),
            timed,
        )
    };
    let (kept, Some(asked), timed) = time("") else { skip!("strace may not trace here") };
    assert!(kept >= 490 && asked <= 490 && timed, "{kept} {asked}");
    let (twice, asked, _) = time("--replay_time_scale=200");
    assert!(twice >= 245 && asked <= Some(245), "{twice} {asked:?}");
    let (half, _, _) = time("--replay_time_scale=50");
    assert!(half >= 980, "{half}");
    let (_, asked, timed) = time("--replay_no_stall=1");
    assert!(asked == Some(0) && !timed, "{asked:?}");
    let text = run(dir.path(), "--name=p --read_iolog=log --replay_time_scale=500").ok();
    assert!(text.stdout.contains("replay    : issue error (usec): median="), "{text}");
}

#[test]
fn offsets_and_kinds_are_mapped() {
    let dir = scratch();
    log(dir.path(), "log", LOG);
    let ours = Program::under_test();
    json(dir.path(), "--name=p --read_iolog=log");
    let seen = |line: &str| calls(&ours, dir.path(), &format!("--name=p --read_iolog=log {line}"));
    let Some(plain) = seen("") else { skip!("strace may not trace here") };
    let all = [
        call("f", true, 8192, 4096),
        call("f", false, 0, 4096),
        call("g", true, 20_480, 8192),
        call("f", false, 8192, 512),
    ];
    assert_eq!(plain, all);
    let mapped = seen("--replay_scale=3 --replay_align=4096").unwrap();
    assert_eq!(mapped.iter().map(|call| call.offset).collect::<Vec<_>>(), [0, 0, 4096, 0]);
    let skipped = seen("--replay_skip=read,sync").unwrap();
    assert_eq!(skipped, [all[0].clone(), all[2].clone()]);
    fs::write(dir.path().join("other"), vec![1; 32_768]).unwrap();
    let redirected = seen("--replay_redirect=other").unwrap();
    assert!(redirected.iter().all(|call| call.file == "other") && redirected.len() == 4);
    fs::create_dir(dir.path().join("d")).unwrap();
    let below = seen("--directory=d").unwrap();
    assert!(below.iter().filter(|call| call.name == "pwrite64").any(|call| call.file == "d/g"), "{below:?}");
    // fio maps in the same way, if it has the option.
    for peer in Program::peers() {
        // (If files are redirected to one, fio loses all I/O behind a close.)
        log(dir.path(), "log", &LOG.replace("3000 g close\n", ""));
        let line = "--name=p --read_iolog=log --replay_scale=3 --replay_align=4096 --replay_redirect=other";
        assert_eq!(calls(&peer, dir.path(), line), calls(&ours, dir.path(), line));
    }
}

/// In block traces, lengths are aligned as well, because a device with large sectors would refuse the I/O.
#[test]
fn aligned_block_traces_have_aligned_lengths() {
    let dir = scratch();
    let events =
        [(0, 1, 512, READ), (100, 3, 1024, WRITE), (200, 300, 4096, READ), (300, 200, 66_048, WRITE)];
    binary(&dir.path().join("b"), ByteOrder::Little, BlkRecord::device_number(4000, 1), &events);
    fs::write(dir.path().join("f"), vec![1; 1 << 20]).unwrap();
    let line = "--name=p --read_iolog=b --replay_redirect=f --replay_scale=2 --replay_align=4096";
    let Some(seen) = calls(&Program::under_test(), dir.path(), line) else {
        skip!("strace may not trace here")
    };
    let all = [
        call("f", false, 0, 4096),
        call("f", true, 0, 4096),
        call("f", false, 73_728, 4096),
        call("f", true, 49_152, 69_632),
    ];
    assert_eq!(seen, all);
    for peer in Program::peers() {
        assert_eq!(calls(&peer, dir.path(), line).unwrap(), all);
    }
}

/// Editors and scripts may omit the last newline.
#[test]
fn the_last_line_of_a_log_may_have_no_end() {
    let dir = scratch();
    log(dir.path(), "log", "0 f add\n0 f open\n10 f read 0 4096\n20 f write 4096 512");
    fs::write(dir.path().join("f"), vec![1; 8192]).unwrap();
    for program in Program::all() {
        let report = program.line(dir.path(), "--name=p --read_iolog=log --output-format=json").ok();
        assert_eq!(Json::parse(&report.stdout).job().bytes(), [4096, 512, 0], "{:?}", program.path);
    }
}

#[test]
fn every_engine_replays() {
    let dir = scratch();
    log(dir.path(), "log", LOG);
    let engines = ["sync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "null"];
    let engines = engines.map(|engine| format!("--ioengine={engine} --iodepth=4"));
    let others =
        ["--thread", "--io_submit_mode=offload", "--lockfile=readwrite", "--lat_from_intended_start=1"];
    for how in engines.iter().map(String::as_str).chain(others) {
        let report = json(dir.path(), &format!("--name=p --read_iolog=log --replay_time_scale=1000 {how}"));
        assert_eq!(report.job().bytes(), [4608, 12_288, 0], "{how}");
        assert_eq!(report.job().int("sync.total_ios"), 2, "{how}");
        assert_eq!(report.job().int("replay.issue_error_ns.N"), 6, "{how}");
    }
}

#[test]
fn clones_have_a_trace_each_and_loops_start_over() {
    let dir = scratch();
    log(dir.path(), "one", "0 f add\n0 f open\n0 f write 0 512\n0 f close\n");
    log(dir.path(), "t:wo", "0 g add\n0 g open\n0 g write 0 512\n0 g write 512 1024\n");
    let report = json(dir.path(), "--name=p --read_iolog=one:t\\:wo --numjobs=2");
    let bytes: Vec<u64> = report.jobs().iter().map(|job| job.bytes()[1]).collect();
    assert_eq!(bytes, [512, 1536]);
    let report = json(dir.path(), "--name=p --read_iolog=one --loops=3");
    assert_eq!(report.job().ios(), [0, 3, 0]);
}

/// Runs our program with these arguments. Its standard input comes from a shell command.
pub fn shell(dir: &Path, input: &str, line: &str) -> Finished {
    let program = Program::under_test().path;
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{input} | {} {line}", program.display())).current_dir(dir);
    Running::start(&mut command).wait()
}

#[test]
pub fn traces_come_from_anywhere() {
    let dir = scratch();
    log(dir.path(), "log", LOG);
    for chunked in ["", "--read_iolog_chunked=1"] {
        let line = format!("--name=p --output-format=json {chunked}");
        let ios = |finished: Finished| Json::parse(&finished.ok().stdout).job().ios();
        assert_eq!(ios(run(dir.path(), &format!("{line} --read_iolog=log"))), [2, 2, 0], "{chunked}");
        // The log comes in two pieces, with a pause within a line.
        let pieces = "(head -c 150 log; sleep 0.1; tail -c +151 log)";
        assert_eq!(ios(shell(dir.path(), pieces, &format!("{line} --read_iolog=-"))), [2, 2, 0], "{chunked}");
        let _ = fs::remove_file(dir.path().join("pipe"));
        Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
        let fifo = "(sleep 0.1; cat log > pipe)";
        assert_eq!(
            ios(shell(dir.path(), fifo, &format!("{line} --read_iolog=pipe"))),
            [2, 2, 0],
            "{chunked}"
        );
        let path = dir.path().join("socket");
        let _ = fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let text = format!("{V3}{LOG}");
        let server = std::thread::spawn(move || {
            use std::io::Write as _;
            listener.accept().unwrap().0.write_all(text.as_bytes()).unwrap();
        });
        assert_eq!(ios(run(dir.path(), &format!("{line} --read_iolog=socket"))), [2, 2, 0], "{chunked}");
        server.join().unwrap();
    }
}

#[test]
fn a_silent_pipe_does_not_hold_a_replay_that_is_to_stop() {
    let dir = scratch();
    Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    let line = "--name=p --read_iolog=pipe --read_iolog_chunked=1 --runtime=1 --output-format=json";
    assert_eq!(Json::parse(&run(dir.path(), line).ok().stdout).job().ios(), [0, 0, 0]);
    // The same with a pipe that becomes silent within a line.
    let begun = format!(
        "(printf '{}0 f add\\n0 f open\\n0 f wri'; sleep 6; printf 'te 0 4096\\n')",
        V3.replace('\n', "\\n")
    );
    let line = line.replace("pipe", "-");
    assert_eq!(Json::parse(&shell(dir.path(), &begun, &line).ok().stdout).job().ios(), [0, 0, 0]);
}

#[test]
fn bad_traces_are_reported_before_the_run() {
    let dir = scratch();
    for (text, words) in [
        (format!("{V3}{LOG}5 f rea 0 512\n"), "bad:14: there is no action \"rea\""),
        (format!("{V3}{LOG}nonsense\n"), "bad:14: \"nonsense\" is not a time"),
        (format!("{V3}0 f add\n0 f open\n0 f write 0"), "bad:4: the trace is cut off"),
        (format!("{V3}0 f open\n"), "bad:2: \"f\" was not added"),
        ("0, 0, 4096\n".into(), "bad: this is not a trace"),
        (String::new(), "bad: it is empty"),
        (V3.into(), "there is no I/O in it"),
    ] {
        fs::write(dir.path().join("bad"), &text).unwrap();
        let refused = run(dir.path(), "--name=p --read_iolog=bad").refused();
        assert!(refused.stderr.contains(words), "{text:?}: {refused}");
        assert_eq!(names(dir.path()), ["bad"], "{text:?}");
    }
    run(dir.path(), "--name=p --read_iolog=none").refused().says("none: No such file or directory");
    log(dir.path(), "bad", LOG);
    run(dir.path(), "--name=p --read_iolog=bad --readonly").refused().says("--readonly forbids that");
    log(dir.path(), "bad", "0 f add\n0 f open\n0 f trim 0 512\n");
    run(dir.path(), "--name=p --read_iolog=bad").refused().says("replay_skip=trim leaves trims out");
    assert_eq!(names(dir.path()), ["bad"]);
}

#[test]
fn a_live_trace_that_goes_bad_ends_the_job_with_its_place() {
    let dir = scratch();
    log(dir.path(), "log", &format!("{LOG}x\n"));
    let line = "--name=p --read_iolog=log --read_iolog_chunked=1";
    let failed = run(dir.path(), line).refused().says("log:14: \"x\" is not a time");
    assert!(failed.stdout.contains("err=22 (func=read_iolog"), "{failed}");
    log(dir.path(), "log", "0 f add\n0 f open\n0 f write 0 4194304\n");
    run(dir.path(), line).refused().says("larger than the buffers").says("bs=4194304 makes room");
    assert_eq!(json(dir.path(), &format!("{line} --bs=4M")).job().bytes(), [0, 4 << 20, 0]);
    log(dir.path(), "log", "0 f add\n0 f open\n0 f write 0 512\n");
    run(dir.path(), &format!("{line} --readonly")).refused().says("--readonly forbids that");
    log(dir.path(), "log", "0 /dev/none add\n0 /dev/none open\n0 /dev/none write 0 512\n");
    run(dir.path(), line).refused().says("no file is made among devices");
}

#[test]
fn a_mounted_device_is_not_written_to() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let device = &mounted.device.path;
    log(dir.path(), "log", &format!("0 {device} add\n0 {device} open\n0 {device} write 4096 4096\n"));
    for chunked in ["", "--read_iolog_chunked=1"] {
        let line = format!("--name=p --read_iolog=log {chunked}");
        run(dir.path(), &line)
            .refused()
            .says("it is mounted on")
            .says("allow_mounted_write=1 overrides this");
    }
    log(dir.path(), "log", &format!("0 {device} add\n0 {device} open\n0 {device} read 4096 4096\n"));
    for chunked in ["", "--read_iolog_chunked=1"] {
        let line = format!("--name=p --read_iolog=log {chunked}");
        assert_eq!(json(dir.path(), &line).job().ios(), [1, 0, 0], "reading is harmless");
    }
}

#[test]
fn recordings_are_appended_to_nothing_but_recordings() {
    let dir = scratch();
    for _ in 0..2 {
        run(dir.path(), "--name=w --filename=f --rw=write --bs=4k --size=16k --write_iolog=log").ok();
    }
    let text = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(text.lines().filter(|line| *line == V3.trim()).count(), 2);
    assert_eq!(json(dir.path(), "--name=p --read_iolog=log").job().ios(), [0, 8, 0]);
    for peer in Program::peers() {
        let report = peer.line(dir.path(), "--name=p --read_iolog=log --output-format=json").ok();
        assert_eq!(Json::parse(&report.stdout).job().ios(), [0, 8, 0]);
    }
    fs::write(dir.path().join("precious"), "thesis").unwrap();
    let line = "--name=w --filename=f --rw=write --size=16k --write_iolog=precious";
    run(dir.path(), line).refused().says("holds something other than a trace");
    assert_eq!(fs::read_to_string(dir.path().join("precious")).unwrap(), "thesis");
    let full = "--name=w --filename=f --rw=write --size=16k --write_iolog=/dev/full";
    run(dir.path(), full).refused().says("func=write_iolog");
    run(dir.path(), "--name=w --filename=f --rw=write --size=16k --write_iolog=no/log")
        .refused()
        .says("write_iolog");
}

#[test]
fn a_recording_misses_nothing_however_long_it_is() {
    let dir = scratch();
    let line = "--name=w --filename=f --rw=randwrite --bs=512 --size=4M --ioengine=io_uring --iodepth=16 \
                --write_iolog=log --zero_buffers";
    run(dir.path(), line).ok();
    let text = fs::read_to_string(dir.path().join("log")).unwrap();
    let mut offsets: Vec<u64> = text
        .lines()
        .filter(|line| line.contains(" write "))
        .map(|line| line.split(' ').nth(3).unwrap().parse().unwrap())
        .collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..8192).map(|block| block * 512).collect::<Vec<u64>>());
}

#[test]
fn a_job_waits_for_its_recording_and_says_so() {
    let record = |options: &str| {
        let dir = scratch();
        let pipe = dir.path().join("pipe");
        Command::new("mkfifo").arg(&pipe).status().unwrap();
        let line = format!(
            "--name=j --filename=f --ioengine=null --rw=read --number_ios=40000 --size=1g --write_iolog=pipe {options}"
        );
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        let reader = fs::File::open(&pipe).unwrap();
        running.wait_until("the pipe is full", |_| is_full(&reader));
        std::thread::sleep(Duration::from_millis(1000));
        let lines = std::io::read_to_string(reader).unwrap().lines().count();
        assert_eq!(lines, 1 + 3 + 40_000, "nothing is lost");
        running.wait().ok()
    };
    // There are more lines than a pipe, the buffer and a queue of 1024 entries can hold.
    let json = Json::parse(&record("--log_entries=1024 --output-format=json").stdout);
    assert!(json.job().int("log_wait_ms") > 0);
    record("--log_entries=1024").says("j: waited ").says("for its recording (write_iolog)");
    // The default queue has room for all entries.
    assert!(!record("--output-format=json").stdout.contains("log_wait_ms"));
}

/// Writes a block trace with these events: time in ns, sector, bytes, action with categories.
pub fn binary(path: &Path, order: ByteOrder, device: u32, events: &[(u64, u64, u32, u32)]) {
    let mut bytes = Vec::new();
    for (sequence, &(time, sector, length, action)) in (0..).zip(events) {
        let record = BlkRecord {
            sequence,
            time,
            sector,
            bytes: length,
            action,
            device,
            pid: 77,
            ..BlkRecord::default()
        };
        blk::write(&mut bytes, order, &record).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

/// As it was queued.
pub const READ: u32 = action::QUEUE | category::READ;
/// As it was queued.
pub const WRITE: u32 = action::QUEUE | category::WRITE | category::SYNC;
const TRIM: u32 = action::QUEUE | category::DISCARD;
const FLUSH: u32 = action::QUEUE | category::FLUSH | category::WRITE;
const DONE: u32 = action::COMPLETE | category::READ;

/// Reads, writes, a flush and completions within 30 ms.
const EVENTS: [(u64, u64, u32, u32); 8] = [
    (1_000_000, 0, 4096, READ),
    (2_000_000, 16, 8192, WRITE),
    (2_100_000, 0, 4096, DONE),
    (3_000_000, 64, 512, READ),
    (3_000_000, 8, 4096, WRITE),
    (4_000_000, 0, 0, FLUSH),
    (30_000_000, 0, 0, READ),
    (31_000_000, 1, 512, WRITE),
];

#[test]
fn block_traces_of_both_byte_orders_are_replayed_like_the_peer_does() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let dir = scratch();
        binary(&dir.path().join("trace"), order, BlkRecord::device_number(4000, 1), &EVENTS);
        fs::write(dir.path().join("target"), vec![1; 1 << 20]).unwrap();
        let expected = [
            call("target", false, 0, 4096),
            call("target", true, 8192, 8192),
            call("target", false, 32_768, 512),
            call("target", true, 4096, 4096),
            call("target", true, 512, 512),
        ];
        let line = "--name=p --read_iolog=trace --replay_redirect=target";
        for program in Program::all() {
            let Some(seen) = calls(&program, dir.path(), line) else { skip!("strace may not trace here") };
            assert_eq!(seen, expected, "{order:?} {:?}", program.path);
        }
        let report = json(dir.path(), line);
        assert!(report.job().int("job_runtime") >= 30);
        assert_eq!(report.job().int("sync.total_ios"), 1);
        run(dir.path(), "--name=p --read_iolog=trace")
            .refused()
            .says("the device 4000:1")
            .says("replay_redirect");
        let cut = fs::read(dir.path().join("trace")).unwrap();
        fs::write(dir.path().join("cut"), &cut[..48 * 3 + 20]).unwrap();
        run(dir.path(), "--name=p --read_iolog=cut --replay_redirect=target")
            .refused()
            .says("cut: record 4: ");
    }
}

#[test]
fn a_block_trace_finds_its_devices() {
    let dir = scratch();
    let devices: Vec<Loop> = or_skip!(
        (0..2).map(|number| Loop::on(&image(dir.path(), &format!("image{number}"), 1 << 20))).collect()
    );
    let number = |device: &Loop| {
        use std::os::unix::fs::MetadataExt;
        let number = fs::metadata(&device.path).unwrap().rdev();
        BlkRecord::device_number(libc::major(number), libc::minor(number))
    };
    let trim = [(0, 0, 4096, WRITE), (1000, 8, 4096, TRIM), (2000, 0, 4096, READ)];
    binary(&dir.path().join("one"), ByteOrder::Little, number(&devices[0]), &trim);
    binary(&dir.path().join("two"), ByteOrder::Little, number(&devices[1]), &[(500, 0, 512, WRITE)]);
    let mut both = fs::read(dir.path().join("one")).unwrap();
    both.extend(fs::read(dir.path().join("two")).unwrap());
    fs::write(dir.path().join("both"), both).unwrap();
    for program in Program::all() {
        let report = program.line(dir.path(), "--name=p --read_iolog=both --output-format=json").ok();
        let report = Json::parse(&report.stdout);
        assert_eq!(report.job().ios(), [1, 2, 1], "{:?}", program.path);
        assert_eq!(report.job().bytes(), [4096, 4608, 4096], "{:?}", program.path);
    }
    // The device is too small for the trace; the message has a remedy.
    binary(&dir.path().join("far"), ByteOrder::Little, number(&devices[0]), &[(0, 4096, 512, READ)]);
    run(dir.path(), "--name=p --read_iolog=far").refused().says("replay_scale=3 would make it fit");
}

#[test]
fn debugging_shows_the_content_and_target_of_block_traces() {
    let dir = scratch();
    binary(&dir.path().join("a"), ByteOrder::Big, BlkRecord::device_number(4000, 1), &EVENTS);
    binary(&dir.path().join("b"), ByteOrder::Big, BlkRecord::device_number(4000, 2), &[(0, 8, 512, READ)]);
    fs::write(dir.path().join("target"), vec![1; 1 << 20]).unwrap();
    let line = "--debug=blktrace --name=p --read_iolog=a:b --merge_blktrace_file=m --merge_blktrace_iters=1:2 \
                --replay_redirect=target";
    let told = run(dir.path(), line).ok();
    for words in [
        "merged: b in 100 % of its time, 2 times",
        "merged into m: 10 records",
        "p: m (records of blktrace): 4 reads, 3 writes, 0 trims and 1 syncs in 0.0",
        "p: 4000:1 is replayed on target: 2 reads, 3 writes, 0 trims, up to byte 33280",
        "p: 4000:2 is replayed on target: 2 reads, 0 writes, 0 trims, up to byte 4608",
        "m: read to its end",
    ] {
        assert!(told.stdout.contains(words), "{words}: {told}");
    }
}

#[test]
pub fn traces_are_merged_by_time() {
    let dir = scratch();
    let device = BlkRecord::device_number(4000, 1);
    let reads =
        |times: &[u64], sector| -> Vec<_> { times.iter().map(|&time| (time, sector, 512, READ)).collect() };
    binary(&dir.path().join("a"), ByteOrder::Big, device, &reads(&[0, 100, 200], 0));
    binary(&dir.path().join("b"), ByteOrder::Little, device, &reads(&[50, 150], 8));
    fs::write(dir.path().join("target"), vec![1; 65_536]).unwrap();
    let line = "--name=p --read_iolog=a:b --merge_blktrace_file=m --replay_redirect=target";
    run(dir.path(), &format!("{line} --merge-blktrace-only")).ok();
    let merged = fs::read(dir.path().join("m")).unwrap();
    assert_eq!(merged.len(), 5 * blk::RECORD_BYTES);
    let ours = Program::under_test();
    let expected = [0, 4096, 0, 4096, 0].map(|offset| call("target", false, offset, 512));
    let Some(seen) = calls(&ours, dir.path(), line) else { skip!("strace may not trace here") };
    assert_eq!(seen, expected);
    for peer in Program::peers() {
        let seen = calls(&peer, dir.path(), "--name=p --read_iolog=m --replay_redirect=target").unwrap();
        assert_eq!(seen, expected, "the peer reads what was merged");
    }
    let twice =
        format!("{line} --merge_blktrace_scalars=50:100 --merge_blktrace_iters=2:1 --replay_no_stall=1");
    assert_eq!(json(dir.path(), &twice).job().ios(), [8, 0, 0]);
    run(dir.path(), &format!("{line} --merge_blktrace_iters=2")).refused().says("1 values for 2 traces");
    let onto_input = "--name=p --read_iolog=a:b --merge_blktrace_file=b --merge-blktrace-only";
    run(dir.path(), onto_input).refused().says("is one of the traces");
    // An existing file is replaced only if it is a trace of this kind.
    for other in ["precious data", "fio version 3 iolog\n", "x"] {
        fs::write(dir.path().join("data"), other).unwrap();
        for more in ["--merge-blktrace-only", ""] {
            run(dir.path(), &format!("{} {more}", line.replace("=m", "=data")))
                .refused()
                .says("merge_blktrace_file: data holds something other than a block trace");
        }
        assert_eq!(fs::read(dir.path().join("data")).unwrap(), other.as_bytes());
    }
    fs::write(dir.path().join("data"), "").unwrap();
    run(dir.path(), &format!("{} --merge-blktrace-only", line.replace("=m", "=data"))).ok();
    fs::write(dir.path().join("b"), [0; 100]).unwrap();
    run(dir.path(), &line.replace("=m", "=new")).refused().says("b: record 1: ");
    assert!(names(dir.path()).iter().all(|file| !file.contains("new")), "nothing is left behind");
}

/// A trace that an earlier job of the run writes is not checked before the run.
#[test]
fn one_run_records_and_replays() {
    let program = Program::under_test();
    let recording = "--name=a --filename=f --size=256k --rw=randrw --write_iolog=log";
    for behind in
        ["--stonewall", "--wait_for=a", "--stonewall --read_iolog_chunked=1", "--wait_for=a --loops=2"]
    {
        let dir = scratch();
        // In the second run, the log still has the content of the first.
        for times in 1..=2 {
            let line = format!("--output-format=json {recording} --name=b {behind} --read_iolog=./log");
            let report = Json::parse(&program.line(dir.path(), &line).ok().stdout);
            let [recorded, replayed] = [0, 1].map(|job| report.jobs()[job].ios());
            assert_eq!(recorded.iter().sum::<u64>(), 64);
            let loops = if behind.contains("loops") { 2 } else { 1 };
            assert_eq!(replayed, recorded.map(|ios| ios * times * loops), "{behind}");
        }
    }
    for (more, why) in [
        (
            "",
            "read_iolog=log: job a records it in this run and is not over before; let this job begin behind it",
        ),
        (
            "--stonewall --ioengine=mmap",
            "job a makes it in this run; ioengine=mmap has to know the sizes of files",
        ),
        (
            "--stonewall --write_iolog=log",
            "write_iolog=log: the log would go into the trace that is replayed",
        ),
    ] {
        let dir = scratch();
        let line = format!("{recording} --name=b {more} --read_iolog=log");
        program.line(dir.path(), &line).refused().says(why);
        assert!(!dir.path().join("f").exists() && !dir.path().join("log").exists(), "{line}");
    }
}
