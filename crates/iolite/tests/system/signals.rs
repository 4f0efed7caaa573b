//! Signals, killed workers, and many workers: nothing hangs, and no measurement is lost.

use crate::common::program::{Finished, Running, is_full, send, waiting};
use crate::common::{Json, Program, scratch};
use iolite_testing::{engine_of, or_skip};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// A job that would run for minutes.
const LONG: &str = "--name=long --filename=f --rw=read --size=1M --time_based --runtime=100";

/// A process and all its descendants.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut family = vec![pid];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next];
        family.extend(processes().filter(|&(_, ppid)| ppid == parent).map(|(pid, _)| pid));
        next += 1;
    }
    family
}

/// The descendants of a running program that have `file` open.
pub fn workers_on(running: &Running, file: &Path) -> Vec<i32> {
    let is_open = |pid: &i32| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        descriptors.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == file))
    };
    descendants(running.pid()).into_iter().filter(is_open).collect()
}

/// All processes with their parents.
fn processes() -> impl Iterator<Item = (i32, i32)> {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in parentheses may contain anything; after it come the state and the parent.
        let ppid = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((pid, ppid))
    })
}

/// Whether all threads of this process are stopped by a signal.
fn is_stopped(pid: i32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// The number of killed workers according to the messages of fio or Iolite.
fn deaths(run: &Finished) -> usize {
    let said = |line: &&str| {
        let message = line.starts_with("fio: pid=") || line.starts_with("iolite: pid=");
        message && (line.contains("got signal=9") || line.contains("func=killed by signal 9"))
    };
    run.output().lines().filter(said).count()
}

/// Whether these readers of the file `f` have counted I/Os.
pub fn have_read(pids: &[i32]) -> bool {
    let read = |pid: &i32| -> Option<u64> {
        let counts = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        counts.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
    };
    pids.iter().filter_map(read).any(|bytes| bytes > 4 << 20)
}

/// Starts a run in `dir` and waits until the workers read the file `f`.
#[track_caller]
fn start_on_f(dir: &Path, line: &str) -> Running {
    fs::write(dir.join("f"), vec![1; 1 << 20]).expect("a file can be written");
    let file = dir.canonicalize().expect("the directory exists").join("f");
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("the workers run", |running| have_read(&workers_on(running, &file)));
    running
}

/// As in fio, SIGINT and SIGTERM end a run even if they were ignored at its start (a shell's `&`), but `nohup` works.
#[test]
fn signals_that_were_ignored() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let dir = scratch();
        fs::write(dir.path().join("f"), vec![1; 1 << 20]).expect("a file can be written");
        let file = dir.path().canonicalize().expect("the directory exists").join("f");
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' HUP INT TERM; exec \"$0\" \"$@\""]).arg(Program::under_test().path);
        let mut running = Running::start(command.args(LONG.split_whitespace()).current_dir(dir.path()));
        running.wait_until("the workers run", |running| have_read(&workers_on(running, &file)));
        running.signal(signal);
        if signal == libc::SIGHUP {
            running.signal(libc::SIGTERM);
        }
        let run = running.wait();
        assert_eq!(run.code(), 128, "signal {signal}: {run}");
    }
}

#[test]
fn interrupted_jobs_are_reported() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        for mode in ["--thread=0", "--thread=1"] {
            let dir = scratch();
            let running = start_on_f(dir.path(), &format!("{LONG} {mode}"));
            running.signal(signal);
            let run = running.wait();
            assert_eq!(run.code(), 128, "{run}");
            assert!(run.output().contains(&format!("terminating on signal {signal}")), "{run}");
            assert!(run.stdout.contains("long: (groupid=0, jobs=1): err= 0:"), "{run}");
            assert!(run.stdout.contains("  read: IOPS="), "{run}");
            assert!(run.stdout.contains("Run status group 0 (all jobs):\n   READ: bw="), "{run}");
        }
    }
}

#[test]
fn interrupted_jobs_are_reported_in_json() {
    let dir = scratch();
    let running = start_on_f(dir.path(), &format!("{LONG} --output-format=json --output=report"));
    running.signal(libc::SIGINT);
    let run = running.wait();
    assert_eq!(run.code(), 128, "{run}");
    let json = Json::parse(&fs::read_to_string(dir.path().join("report")).expect("the report is there"));
    assert!(json.job().ios()[0] > 0, "{run}");
}

#[test]
fn jobs_behind_a_stonewall_do_not_start_after_an_interrupt() {
    let dir = scratch();
    let line = format!("{LONG} --name=later --stonewall --filename=later --rw=write --size=64k");
    let running = start_on_f(dir.path(), &line);
    running.signal(libc::SIGINT);
    let run = running.wait();
    assert_eq!(run.code(), 128, "{run}");
    assert!(run.stdout.contains("long: (groupid=0, jobs=1)"), "{run}");
    assert!(!run.stdout.contains("WRITE: bw="), "{run}");
}

/// A job that only verifies recomputes the earlier writes before its first read. For a large file, this takes hours.
#[test]
fn a_check_can_be_interrupted_before_its_first_read() {
    for more in ["--rw=randwrite --thread", "--rw=write --loops=2"] {
        let dir = scratch();
        fs::File::create(dir.path().join("f")).and_then(|file| file.set_len(8 << 40)).unwrap();
        let line = format!("--name=j --filename=f --bs=512 --verify=crc32c --verify_only {more}");
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        running.wait_until("it has begun", |running| running.stdout().contains("Starting 1"));
        std::thread::sleep(std::time::Duration::from_millis(500));
        running.signal(libc::SIGINT);
        let run = running.wait();
        assert_eq!(run.code(), 128, "{more}: {run}");
    }
}

fn make_pipe(path: &Path) {
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a terminated string and a number.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Holds the other end of a pipe open without reading or writing.
fn hold_pipe(path: &Path) -> fs::File {
    fs::File::options().read(true).write(true).open(path).unwrap()
}

/// Starts a run, interrupts it once, this many milliseconds after it has begun, and waits for its end.
#[track_caller]
fn interrupted(dir: &Path, line: &str, after_ms: u64) -> Finished {
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("it has begun", |running| running.stdout().contains("Starting 1"));
    std::thread::sleep(std::time::Duration::from_millis(after_ms));
    running.signal(libc::SIGINT);
    running.wait()
}

/// Opening a pipe waits for its other end, and reading waits for data. An interrupt ends both.
#[test]
fn one_interrupt_ends_a_job_on_a_pipe_that_nobody_serves() {
    let dir = scratch();
    let pipe = dir.path().join("pipe");
    make_pipe(&pipe);
    for other_end in [false, true] {
        for more in ["--rw=read", "--rw=read --thread", "--rw=read --io_submit_mode=offload", "--rw=write"] {
            let held = other_end.then(|| hold_pipe(&pipe));
            let line = format!("--name=j --filename=pipe --size=100M {more}");
            let run = interrupted(dir.path(), &line, 300);
            assert_eq!(run.code(), 128, "{more}, {other_end}: {run}");
            drop(held);
        }
    }
}

/// The log is such a pipe. The loss is reported.
#[test]
fn one_interrupt_ends_a_job_with_a_log_that_nobody_reads() {
    let dir = scratch();
    let pipe = dir.path().join("p_lat.1.log");
    for (function, log) in [
        ("log", "--disable_slat=1 --disable_clat=1 --write_lat_log=p"),
        ("write_iolog", "--write_iolog=p_lat.1.log"),
    ] {
        for (thread, other_end) in [("", false), ("", true), ("--thread", false), ("--thread", true)] {
            // A new pipe each time, because a process that another test has just started may still hold the old one.
            make_pipe(&pipe);
            let held = other_end.then(|| hold_pipe(&pipe));
            let line = format!("--name=j --ioengine=null --size=1t {log} {thread}");
            let run = interrupted(dir.path(), &line, 500);
            assert_eq!(run.code(), 128, "{run}");
            let told = match other_end {
                false => "j: did not begin, because nothing reads from the pipe p_lat.1.log".to_owned(),
                true => format!(
                    "func={function}(p_lat.1.log): nobody reads from it, and the job was asked to stop"
                ),
            };
            assert!(run.output().contains(&told), "{line} {other_end}: {run}");
            drop(held);
            fs::remove_file(&pipe).unwrap();
        }
    }
}

/// The capacity of a pipe.
const PIPE: usize = 64 << 10;

/// A finished run whose report goes to a pipe and does not fit into it.
fn reporting_into_a_pipe(dir: &Path) -> (Running, fs::File) {
    let path = dir.join("pipe");
    make_pipe(&path);
    let pipe = hold_pipe(&path);
    let line = "--name=j --ioengine=null --size=4k --numjobs=50 --thread --output-format=json --output=pipe";
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("the pipe is full", |_| is_full(&pipe));
    (running, pipe)
}

/// Signals after the end of the jobs, while the report is written, do not lose the report.
#[test]
fn late_signals_cost_no_report() {
    let dir = scratch();
    let (mut running, mut pipe) = reporting_into_a_pipe(dir.path());
    for signal in [libc::SIGUSR1, libc::SIGINT, libc::SIGTERM] {
        running.signal(signal);
    }
    // The report ends with a bracket in the first column.
    let mut report = Vec::new();
    while !report.ends_with(b"\n}\n") {
        running.wait_until("more of it is there", |_| waiting(&pipe) > 0);
        let mut part = [0; PIPE];
        let length = pipe.read(&mut part).expect("a pipe can be read");
        report.extend_from_slice(&part[..length]);
    }
    running.wait().ok();
    assert_eq!(Json::parse(&String::from_utf8(report).expect("JSON is text")).jobs().len(), 50);
}

/// If nothing reads the report, repeated signals end the run.
#[test]
fn a_report_that_nobody_reads_can_be_left() {
    let dir = scratch();
    let (running, _pipe) = reporting_into_a_pipe(dir.path());
    let run = insist(running);
    assert_eq!(run.code(), 128);
    assert!(run.stderr.contains("the report is given up: nothing reads it"), "{run}");
}

/// GNU `timeout` signals its child and then the child's group. This counts as one request to end.
#[test]
fn two_signals_close_together_lose_nothing() {
    for mode in ["--thread=0", "--thread=1"] {
        let dir = scratch();
        fs::write(dir.path().join("f"), vec![1; 1 << 20]).unwrap();
        // Writing the log takes long: it is a pipe, and its reader begins only when the run is to end.
        let log = dir.path().join("st_lat.1.log");
        make_pipe(&log);
        let held = hold_pipe(&log);
        let logs = "--write_lat_log=st --disable_slat=1 --disable_clat=1 --log_entries=100000";
        let line = format!("{LONG} {mode} {logs} --rate_iops=20000 --output-format=json");
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        running.wait_until("the log waits for its reader", |_| is_full(&held));
        let reader = fs::File::open(&log).expect("a pipe can be opened");
        for _ in 0..2 {
            running.signal(libc::SIGTERM);
        }
        // Also sends a different signal, because two pending signals of one kind are merged.
        running.signal(libc::SIGINT);
        drop(held);
        let lines = std::io::read_to_string(reader).expect("a log is text").lines().count() as u64;
        let run = running.wait();
        assert_eq!(run.code(), 128, "{run}");
        let json = Json::parse(&run.stdout);
        assert_eq!((json.job().ios()[0], json.job().int("error")), (lines, 0), "{mode}: {run}");
    }
}

/// Sends signals until the run ends.
fn insist(mut running: Running) -> Finished {
    let mut signals = 0;
    while !running.has_ended() {
        running.signal(libc::SIGINT);
        signals += 1;
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(signals > 1, "one was enough");
    running.wait()
}

/// The number of processes with this argument.
fn running_with(word: &str) -> usize {
    let has_word = |entry: &fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).any(|one| one == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_word).count()
}

/// An interrupt ends a command before a job with all its children, and the job does no I/O.
#[test]
fn an_interrupt_ends_the_command_before_a_job() {
    // The number of seconds identifies this test's `sleep`.
    let seconds = format!("{}", 1_000_000 + u64::from(std::process::id()));
    for mode in ["--thread=0", "--thread=1"] {
        for deaf in ["", "trap '' TERM; "] {
            let dir = scratch();
            let prerun = format!("--exec_prerun={deaf}touch begun; sleep {seconds}; true");
            let words = ["--name=j", "--ioengine=null", "--size=1M", "--output-format=json", mode, &prerun];
            let mut running = Program::under_test().start(dir.path(), words);
            running.wait_until("the command", |_| dir.path().join("begun").exists());
            running.signal(libc::SIGINT);
            let run = running.wait();
            assert_eq!(run.code(), 128, "{mode} {deaf}: {run}");
            assert_eq!(Json::parse(&run.stdout).job().ios(), [0; 3], "{mode} {deaf}: {run}");
            assert_eq!(running_with(&seconds), 0, "{mode} {deaf}: the command still runs");
        }
        // The command also ends if the controller is killed.
        let dir = scratch();
        let prerun = format!("--exec_prerun=touch begun; sleep {seconds}; true");
        let words = ["--name=j", "--ioengine=null", "--size=1M", mode, &prerun];
        let mut running = Program::under_test().start(dir.path(), words);
        running.wait_until("the command", |_| dir.path().join("begun").exists());
        running.signal(libc::SIGKILL);
        running.wait();
        while running_with(&seconds) > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// A repeated signal kills hanging processes, with a message. Other processes are not affected.
#[test]
fn hanging_workers_are_killed_at_a_later_signal() {
    for mode in ["--thread=0", "--thread=1"] {
        let dir = scratch();
        let line = format!(
            "{LONG} {mode} --write_lat_log=hangs --name=other --filename=g --rw=read --size=1M --time_based \
             --runtime=100 --write_lat_log=other --output-format=json"
        );
        let running = start_on_f(dir.path(), &line);
        let file = dir.path().canonicalize().unwrap().join("f");
        // (It is not observable when the first I/Os have been logged in memory.)
        std::thread::sleep(std::time::Duration::from_secs(1));
        let workers = workers_on(&running, &file);
        assert!(!workers.is_empty());
        workers.iter().for_each(|&pid| send(pid, libc::SIGSTOP));
        while !workers.iter().all(|&pid| is_stopped(pid)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let run = insist(running);
        assert_eq!(run.code(), 128, "{run}");
        let run = run.says("func=given up: it hung while it was running");
        assert!(run.stderr.contains("long: log entries in memory are lost"), "{run}");
        let json = Json::parse(&run.stdout);
        let [long, other] = &json.jobs()[..] else { panic!("two jobs: {run}") };
        assert!(long.int("error") != 0 && long.ios()[0] > 0, "{run}");
        assert_eq!(other.int("error"), 0, "{run}");
        let log = fs::read_to_string(dir.path().join("other_lat.2.log")).unwrap();
        assert_eq!(log.lines().count() as u64, other.ios()[0], "{run}");
    }
}

/// The logs in memory of a hanging worker are written to disk.
#[test]
fn logs_of_a_hanging_worker_are_kept() {
    let text = "#include \"iolite-engine.h\"\n#include <unistd.h>\n\
        static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)\n\
        { (void)worker; (void)why; (void)room; *state = 0; return 0; }\n\
        static int64_t queue(void *state, const struct iolite_unit *unit)\n\
        { static int done; (void)state; while (done == 1000) pause(); done++; return unit->length; }\n\
        const struct iolite_engine iolite_engine = { IOLITE_ENGINE_HEAD, .name = \"x\", .data = IOLITE_NOWHERE,\n\
            .create = create, .queue = queue };";
    let dir = scratch();
    or_skip!(engine_of(text, "hangs", dir.path()));
    for (mode, form) in [
        ("--thread=0", ""),
        ("--thread=1", ""),
        ("--thread=0", "--log_compression=1m"),
        ("--thread=0", "--log_compression=1m --log_store_compressed=1"),
    ] {
        let logs = format!("--write_lat_log=l --disable_slat=1 --disable_clat=1 {form} --write_iolog=trace");
        let _ = fs::remove_file(dir.path().join("trace"));
        let line = format!(
            "--name=j --ioengine=./hangs.so --size=1g --bs=4k {mode} {logs} --eta=always --output-format=json"
        );
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        // (Before it runs, it reads nothing either.)
        running.wait_until("it hangs", |running| {
            let output = running.output();
            let mut statuses = output.split('\r').filter(|status| status.contains("[R(1)]"));
            statuses.any(|status| !status.contains("[r=0KiB/s]"))
                && statuses.any(|status| status.contains("[r=0KiB/s]"))
        });
        let run = insist(running);
        assert_eq!(run.code(), 128, "{run}");
        let run = run.says("func=given up: it hung while it was running, with a read of ");
        let run = run.says(" at offset 4096000 in flight for ");
        // The status line precedes the report.
        let report = &run.stdout[run.stdout.find("{\n").expect("a report")..];
        assert_eq!(Json::parse(report).job().ios()[0], 1000, "{run}");
        let log = match form.contains("store") {
            true => Program::under_test().line(dir.path(), "--inflate-log=l_lat.1.log.fz").ok().stdout,
            false => fs::read_to_string(dir.path().join("l_lat.1.log")).unwrap(),
        };
        assert_eq!(log.lines().count(), 1000, "{mode} {form}");
        let trace = fs::read_to_string(dir.path().join("trace")).unwrap();
        let ios = trace.lines().filter(|line| line.contains(" read ")).count();
        // The trace may contain the hanging I/O.
        assert!((1000..=1001).contains(&ios), "{mode} {form}: {ios}");
    }
}

/// A repeated signal also ends the command of a trigger.
#[test]
fn a_trigger_that_hangs_is_given_up() {
    let dir = scratch();
    let words =
        ["--trigger-timeout=0", "--trigger=touch begun; sleep 1000; true", "--name=j", "--ioengine=null"];
    let words = words.into_iter().chain(["--size=1M", "--time_based", "--runtime=100"]);
    let mut running = Program::under_test().start(dir.path(), words);
    running.wait_until("the command", |_| dir.path().join("begun").exists());
    let run = insist(running);
    assert_eq!(run.code(), 128, "{run}");
    assert!(run.stderr.contains("did not end, and is given up"), "{run}");
    assert!(run.stdout.contains("Run status group 0"), "{run}");
}

#[test]
fn usr1_prints_a_report_and_the_run_goes_on() {
    let dir = scratch();
    let line = "--name=j --filename=f --rw=read --size=1M --time_based --runtime=6";
    let mut running = start_on_f(dir.path(), line);
    let reports = |running: &Running| running.stdout().matches("Run status group 0 (all jobs):").count();
    assert_eq!(reports(&running), 0);
    running.signal(libc::SIGUSR1);
    running.wait_until("the report that was asked for", |running| reports(running) >= 1);
    let run = running.wait().ok();
    assert_eq!(run.stdout.matches("Run status group 0 (all jobs):").count(), 2, "{run}");
    assert_eq!(run.stdout.matches("j: (groupid=0, jobs=1): err= 0:").count(), 2, "{run}");
    // The counts of the second report continue those of the first.
    let issued: Vec<u64> = run
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("     issued rwts: total="))
        .map(|counts| counts.split(',').next().expect("reads").parse().expect("a number"))
        .collect();
    assert!(issued[0] > 0 && issued[0] < issued[1], "{issued:?}");
}

#[test]
fn a_killed_worker_is_reported_and_the_others_are_kept() {
    let dir = scratch();
    let line = "--name=victim --filename=f --rw=read --size=1M --time_based --runtime=100 \
                --name=other --filename=g --rw=read --size=1M --bs=4k --output-format=normal,json";
    let running = start_on_f(dir.path(), line);
    let file = dir.path().canonicalize().expect("the directory exists").join("f");
    for pid in workers_on(&running, &file) {
        send(pid, libc::SIGKILL);
    }
    let run = running.wait();
    assert_eq!(deaths(&run), 1, "{run}");
    let json = Json::parse(&run.stdout);
    let jobs = json.jobs();
    assert_eq!((jobs[0].name(), jobs[1].name()), ("victim", "other"));
    assert!(jobs[0].ios()[0] > 0, "the victim's I/Os are lost: {run}");
    assert!(
        jobs[0].float("usr_cpu") + jobs[0].float("sys_cpu") > 0.0,
        "the victim's CPU time is lost: {run}"
    );
    assert_eq!((jobs[1].int("error"), jobs[1].ios()), (0, [256, 0, 0]));
}

/// The controller does not busily wait for a killed worker.
#[test]
fn a_killed_worker_keeps_nobody_busy() {
    let dir = scratch();
    let line = "--debug=helperthread --name=victim --filename=f --rw=read --size=1M --time_based --runtime=100 \
                --name=other --ioengine=null --size=1G --time_based --runtime=3 --rate_iops=10";
    let running = start_on_f(dir.path(), line);
    let file = dir.path().canonicalize().expect("the directory exists").join("f");
    for pid in workers_on(&running, &file) {
        send(pid, libc::SIGKILL);
    }
    let run = running.wait();
    assert_eq!(deaths(&run), 1, "{run}");
    let waits = run.output().matches("waits, at most").count();
    assert!((1..1000).contains(&waits), "{waits} waits");
}

/// Two stages of a hundred workers each, half of them threads, with one killed in each stage.
#[test]
fn two_hundred_workers_with_killed_ones_among_them() {
    let dir = scratch();
    let job = "
        [global]
        size=64k
        bs=4k
        ioengine=null
        [processes-1]
        numjobs=50
        [threads-1]
        thread
        numjobs=49
        [victim-1]
        ioengine=psync
        filename=f
        time_based
        runtime=100
        [processes-2]
        stonewall
        numjobs=50
        [threads-2]
        thread
        numjobs=49
        [victim-2]
        ioengine=psync
        filename=g
        time_based
        runtime=100
        ";
    let job: String = job.lines().map(|line| line.trim_start().to_string() + "\n").collect();
    fs::write(dir.path().join("job.fio"), job).expect("a job file can be written");
    let mut running = start_on_f(dir.path(), "--output-format=json --output=report job.fio");
    for victim in ["f", "g"] {
        let file = dir.path().canonicalize().expect("the directory exists").join(victim);
        // (Layout opens the file as well, but reads nothing.)
        running.wait_until("the victim's start", |running| have_read(&workers_on(running, &file)));
        for pid in workers_on(&running, &file) {
            send(pid, libc::SIGKILL);
        }
    }
    let run = running.wait();
    assert_eq!(deaths(&run), 2, "{run}");
    let json = Json::parse(&fs::read_to_string(dir.path().join("report")).expect("the report is there"));
    let jobs = json.jobs();
    assert_eq!(jobs.len(), 200);
    for job in jobs {
        let second_stage = job.name().ends_with("-2");
        assert_eq!(job.int("groupid"), u64::from(second_stage), "{}", job.name());
        if job.name().starts_with("victim") {
            assert!(job.ios()[0] > 0, "{}", job.name());
        } else {
            assert_eq!((job.int("error"), job.ios()), (0, [16, 0, 0]), "{}", job.name());
        }
    }
}

#[test]
fn two_hundred_workers_at_once() {
    for mode in ["--thread=0", "--thread=1"] {
        let dir = scratch();
        let line = format!(
            "--name=many --filename=f --rw=randread --size=64k --bs=4k --numjobs=200 --group_reporting {mode} --output-format=json"
        );
        let run = Program::under_test().line(dir.path(), &line).ok();
        let json = Json::parse(&run.stdout);
        json.job().check_consistency();
        assert_eq!(json.job().ios(), [200 * 16, 0, 0], "{mode}");
    }
}

#[test]
fn wait_for_orders_jobs_without_a_group() {
    let dir = scratch();
    let line = "--name=first --rw=write --size=64k --filename=f --startdelay=300ms \
                --name=second --wait_for=first --rw=read --size=64k --filename=f --output-format=json";
    let run = Program::under_test().line(dir.path(), line).ok();
    let json = Json::parse(&run.stdout);
    let groups: Vec<u64> = json.jobs().iter().map(|job| job.int("groupid")).collect();
    assert_eq!(groups, [0, 0]);
    assert_eq!(json.jobs()[1].ios(), [16, 0, 0]);
}

#[test]
fn exitall_ends_the_others_with_the_first() {
    let dir = scratch();
    let line = "--exitall --name=short --ioengine=null --size=64k \
                --name=long --ioengine=null --size=1M --time_based --runtime=100 --output-format=json";
    // Without the option, this would exceed the time limit of the tests.
    let run = Program::under_test().line(dir.path(), line).ok();
    let json = Json::parse(&run.stdout);
    assert_eq!(json.jobs()[0].ios(), [16, 0, 0]);
}
