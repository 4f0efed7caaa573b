//! Engines without I/O: CPU load, and programs that run beside the jobs.

use crate::common::program::{Running, send, try_send};
use crate::common::{Json, Program, at_once, peers, scratch};
use crate::signals::descendants;
use iolite_testing::write_program;
use std::fs;
use std::path::Path;

fn json(dir: &Path, line: &str) -> Json {
    let run = Program::under_test().line(dir, &format!("--output-format=json {line}")).ok();
    Json::parse(&run.stdout)
}

#[test]
fn busy_spells_are_counted_as_reads_of_nothing() {
    let dir = scratch();
    for mode in ["noop", "qsort"] {
        let line =
            format!("--name=c --ioengine=cpuio --cpuload=50 --cpuchunks=5000 --cpumode={mode} --runtime=1");
        let run = Program::under_test().line(dir.path(), &line).ok();
        run.says(&format!("c ({mode}): ioengine=cpuio, cpuload=50, cpucycle=5000\n"));
        let json = json(dir.path(), &line);
        let job = json.job();
        let [reads, writes, trims] = job.ios();
        // At most this many spells of 5 ms fit into half a second.
        assert!((1..=101).contains(&reads) && writes + trims == 0, "{reads}");
        assert_eq!(job.bytes(), [0; 3]);
        assert!(job.float("usr_cpu") > 0.0);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "it has no files");
}

#[test]
fn a_load_of_more_than_everything_is_everything() {
    let dir = scratch();
    let run =
        Program::under_test().line(dir.path(), "--name=c --ioengine=cpuio --cpuload=150 --runtime=100ms");
    run.ok().says("cpuload=100,");
}

/// The separate test of the options of cpuio.
#[test]
pub fn spells_are_as_long_and_as_frequent_as_asked_for() {
    let dir = scratch();
    let job = |load, chunk, mode| {
        json(
            dir.path(),
            &format!(
                "--name=c --ioengine=cpuio --cpuload={load} --cpuchunks={chunk} --cpumode={mode} --runtime=600ms"
            ),
        )
    };
    // A spell takes at least the CPU time of the chunk, and the load determines the pause between spells.
    let few = job(10, 20_000, "noop");
    assert!(few.job().int("read.clat_ns.min") >= 20_000_000 || few.job().ios()[0] <= 1);
    assert!(few.job().ios()[0] <= 4, "a fifth of a second from one to the next");
    let short = job(10, 2000, "qsort");
    assert!(short.job().ios()[0] <= 31, "20 ms from one to the next");
}

#[test]
pub fn busy_jobs_end_with_the_io() {
    let dir = scratch();
    for mode in ["", "--thread"] {
        let line = format!(
            "--name=c {mode} --ioengine=cpuio --cpuload=20 --exit_on_io_done=1 --name=d --ioengine=null --size=4k"
        );
        let json = json(dir.path(), &line);
        assert_eq!(json.jobs().len(), 2);
        assert_eq!(json.jobs()[1].ios(), [1, 0, 0]);
    }
}

/// (Whether fio reports a job that begins and ends at once is random.)
#[test]
fn busy_jobs_do_not_outlast_io_that_is_over_before_they_begin() {
    let peers = peers!();
    let io = "--name=d --ioengine=null --size=4k";
    let busy = "--name=c --ioengine=cpuio --cpuload=20 --exit_on_io_done=1";
    for program in peers.iter().chain([&Program::under_test()]) {
        for after in ["--stonewall", "--stonewall --numjobs=2 --thread=0", "--wait_for=d", "--startdelay=2"] {
            let dir = scratch();
            let line = format!("--output-format=json --thread {io} {busy} {after}");
            let run = program.line(dir.path(), &line).ok();
            let begin = run.stdout.find("{\n").unwrap();
            let json = Json::parse(&run.stdout[begin..]);
            let what = format!("{}: {after}", program.version());
            assert_eq!(json.jobs().len(), if after.contains("numjobs") { 3 } else { 2 }, "{what}");
            assert_eq!(json.jobs()[0].ios(), [1, 0, 0], "{what}");
        }
    }
}

/// (fio would wait for ever, because it counts the I/O of later waves as well.)
#[test]
fn io_of_later_waves_is_not_waited_for() {
    let dir = scratch();
    let busy = "--stonewall --ioengine=cpuio --cpuload=20 --exit_on_io_done=1";
    let line = format!(
        "--name=d --ioengine=null --size=4k --name=c {busy} --name=e --stonewall --ioengine=null --size=8k --name=f {busy}"
    );
    let json = json(dir.path(), &line);
    let ios: Vec<_> = json.jobs().iter().map(|job| job.ios()[0]).collect();
    assert_eq!(ios, [1, 0, 2, 0]);
}

#[test]
fn a_busy_job_without_a_runtime_ends_with_a_signal() {
    let dir = scratch();
    let line = "--status-interval=100ms --name=c --ioengine=cpuio --cpuload=20 --cpuchunks=1000 --name=d --rw=write \
                --size=4k";
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    running.wait_until("the job has begun", |running| running.output().contains("c: (groupid=0"));
    running.signal(libc::SIGINT);
    let ended = running.wait().output();
    assert!(ended.contains("c: (groupid=0, jobs=1): err= 0"), "{ended}");
}

#[test]
fn missing_or_invalid_options_of_cpuio_and_exec_are_refused() {
    let dir = scratch();
    let refused = |line: &str, why: &str| Program::under_test().line(dir.path(), line).refused().says(why);
    refused("--name=c --ioengine=cpuio --runtime=1", "cpuload= is missing");
    refused("--name=c --ioengine=cpuio --cpuload=0 --runtime=1", "cpuload= is missing");
    refused("--name=c --ioengine=cpuio --cpuload=5 --cpumode=dance", "qsort");
    refused("--name=e --ioengine=exec --runtime=1", "program= is missing");
    refused("--name=e --ioengine=exec --program=./none --runtime=1", "program=./none cannot be run");
    refused("--name=e --ioengine=exec --program=/etc/passwd --runtime=1", "Permission denied");
}

/// A missing interpreter is only noticed when the program is started.
#[test]
fn a_missing_interpreter_is_named() {
    let dir = scratch();
    let missing = dir.path().join("missing").display().to_string();
    for (name, text) in [("script", format!("#! {missing} -x\n")), ("dos", "#!/bin/sh\r\n".to_owned())] {
        write_program(&dir.path().join(name), &text).unwrap();
    }
    for (program, interpreter) in [("./script", missing.as_str()), ("./dos", "/bin/sh\\r")] {
        let line = format!("--name=e --ioengine=exec --program={program} --runtime=1");
        let why = format!("exec: program={program} cannot be run: its interpreter {interpreter} is missing");
        Program::under_test().line(dir.path(), &line).refused().says(&why);
    }
    fs::create_dir(dir.path().join("f.stdout")).unwrap();
    let line = "--name=f --ioengine=exec --program=true --runtime=1";
    let run = Program::under_test().line(dir.path(), line);
    run.refused()
        .says("exec: program=true cannot be run: its output cannot be kept in f.stdout: Is a directory");
}

#[test]
pub fn a_program_gets_its_arguments_and_its_output_is_kept() {
    let dir = scratch();
    let line =
        |rest: &str| format!("--name=e --ioengine=exec --program=echo --arguments=%n@%r --runtime=2 {rest}");
    let run = |rest: &str| {
        let words: Vec<String> = line(rest).split_whitespace().map(|word| word.replace('@', "  ")).collect();
        Program::under_test().run(dir.path(), &words).ok()
    };
    run("").says("e : program=echo, arguments=%n  %r\n").says("stdout=e.stdout stderr=e.stderr");
    assert_eq!(fs::read_to_string(dir.path().join("e.stdout")).unwrap(), "e 2\n");
    assert_eq!(fs::read_to_string(dir.path().join("e.stderr")).unwrap(), "");
    fs::remove_file(dir.path().join("e.stdout")).unwrap();
    run("--std_redirect=0").says("e : Running echo e  2\n").says("\ne 2\n");
    assert!(!dir.path().join("e.stdout").exists());
    fs::create_dir(dir.path().join("aux")).unwrap();
    run("--aux-path=aux");
    assert!(dir.path().join("aux/e.stdout").exists() && !dir.path().join("e.stdout").exists());
}

#[test]
fn nothing_is_run_under_parse_only() {
    let dir = scratch();
    let line = "--name=e --ioengine=exec --program=touch --arguments=made --runtime=1 --parse-only";
    Program::under_test().line(dir.path(), line).ok();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn without_a_runtime_the_job_ends_with_its_program() {
    let dir = scratch();
    let line = "--name=e --ioengine=exec --program=sleep --arguments=0.1";
    Program::under_test().line(dir.path(), line).ok();
}

/// Writes a script that starts two other processes, the second in a new session, records the IDs of all three, and runs
/// until a signal ends it.
fn script(dir: &Path, on_term: &str) {
    let text = format!(
        "trap '{on_term}' TERM\nsleep 1000 &\nfirst=$!\nsetsid sleep 1000 &\necho $$ $first $! > pids.new\nmv pids.new pids\nwhile :; do wait; sleep 0.1; done\n"
    );
    fs::write(dir.join("script"), text).unwrap();
}

/// The recorded processes that exist.
fn noted(dir: &Path) -> Vec<i32> {
    let text = fs::read_to_string(dir.join("pids")).unwrap_or_default();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

fn is_there(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn start(dir: &Path, rest: &str) -> Running {
    let line = format!("--name=e --ioengine=exec --program=sh --arguments=script {rest}");
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("the program runs", |_| noted(dir).len() == 3);
    running
}

#[test]
pub fn a_program_has_time_to_end_and_is_killed_after_that() {
    for mode in ["", "--thread"] {
        let dir = scratch();
        script(dir.path(), "echo ended > ended; exit");
        let running = start(dir.path(), &format!("--runtime=1 --grace_time=100 {mode}"));
        running.wait().ok();
        assert_eq!(fs::read_to_string(dir.path().join("ended")).unwrap(), "ended\n");
        assert!(!noted(dir.path()).into_iter().any(is_there), "a child of the program is left");
        fs::remove_file(dir.path().join("pids")).unwrap();
        script(dir.path(), "echo asked > asked");
        start(dir.path(), &format!("--runtime=1 --grace_time=0 {mode}")).wait().ok();
        assert!(!noted(dir.path()).into_iter().any(is_there), "a program that does not end was not killed");
    }
}

/// (fio waits for the whole `grace_time`. Sometimes it does not ask, and kills the program at once. On a busy machine, the
/// script may take seconds to react to the signal.)
#[test]
fn a_program_is_asked_to_end() {
    let ours = Program::under_test();
    let peers = peers!();
    at_once(3, peers.iter().chain([&ours]), |program| {
        let dir = scratch();
        let text = "trap 'echo asked > asked; exit 3' TERM\necho $$ > pids\nwhile :; do sleep 0.1; done\n";
        fs::write(dir.path().join("script"), text).unwrap();
        let line = "--name=e --ioengine=exec --program=sh --arguments=script --runtime=10 --grace_time=15";
        program.line(dir.path(), line).ok();
        assert!(!noted(dir.path()).into_iter().any(is_there), "{}: it is gone", program.version());
        let asked = dir.path().join("asked").exists();
        assert!(asked || program.is_peer, "{} has not asked it to end", program.version());
    });
}

/// The name of a process, and its command line.
fn names(pid: i32) -> [String; 2] {
    ["comm", "cmdline"].map(|file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default())
}

/// Kills some of the processes of a run, and checks that nothing is left. The order of the processes is: controller,
/// spawner, worker or host of threads.
fn nothing_is_left_after(what: &str, kill: impl Fn(&[i32])) {
    for mode in ["", "--thread"] {
        let dir = scratch();
        script(dir.path(), "");
        let running = start(dir.path(), &format!("--runtime=100 {mode}"));
        let family = descendants(running.pid());
        let processes = noted(dir.path());
        assert!(processes.iter().all(|pid| family.contains(pid)), "{family:?} {processes:?}");
        kill(&family);
        // (The other processes end when they notice the end of the controller.)
        running.wait();
        for _ in 0..6000 {
            if !processes.iter().any(|&pid| is_there(pid)) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!processes.into_iter().any(is_there), "{what} {mode}");
    }
}

#[test]
fn nothing_is_left_whoever_is_killed() {
    for victim in 0..3 {
        nothing_is_left_after(&victim.to_string(), |family| send(family[victim], libc::SIGKILL));
    }
}

/// Kills the processes like `pkill` and `killall` do, and like a shell does (`kill %1`).
#[test]
fn nothing_is_left_when_all_are_killed_by_name_or_by_group() {
    nothing_is_left_after("by name", |family| {
        let [name, line] = names(family[0]);
        let ours: Vec<i32> = family.iter().copied().filter(|&pid| names(pid)[0] == name).collect();
        assert_eq!(ours, [family[0], family[2]], "{family:?}");
        assert_eq!(names(family[2])[1], line);
        let program = line.split('\0').next().and_then(|path| path.rsplit('/').next()).unwrap();
        let spawner = names(family[1]);
        assert!(!spawner.iter().any(|name| name.contains(program)), "{spawner:?}");
        // (A worker may already have ended together with its controller.)
        for pid in ours {
            let _ = try_send(pid, libc::SIGKILL);
        }
    });
    nothing_is_left_after("by group", |family| send(-family[0], libc::SIGKILL));
}
