//! Ends of runs on other machines: kills, signals, silence.

use super::{Agent, ENDLESS, TWO, job, run};
use crate::coming_back::agent_with;
use crate::common::program::Running;
use crate::common::{Json, Program, scratch};
use iolite_testing::Luck;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Whichever process is killed, and whenever: no process is left, nothing hangs, and the results of others are kept.
#[test]
pub fn kills_at_any_moment() {
    let mut luck = Luck::new();
    for who in ["client", "agent", "run", "workers"] {
        let dir = scratch();
        let [mut first, mut second] = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
        job(dir.path(), &ENDLESS.replace("runtime=5m", "runtime=3s"));
        let words = ["--output-format=json", &first.client(), "job.fio", &second.client(), "job.fio"];
        let client = Program::own().start(dir.path(), words);
        std::thread::sleep(Duration::from_millis(luck.below(600)));
        let kill = |pid: i32| {
            // SAFETY: a plain system call; the process is one of this test, or has just ended.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        };
        match who {
            "client" => client.signal(libc::SIGKILL),
            "agent" => first.running.signal(libc::SIGKILL),
            "run" => iolite_os::process::children_of(first.running.pid()).into_iter().for_each(kill),
            _ => first.family().into_iter().rev().take(1).for_each(kill),
        }
        let finished = client.wait();
        if who == "client" {
            first.wait_until_idle();
        } else {
            let is_reached = !finished.stdout.is_empty();
            assert_eq!(is_reached, !finished.stderr.contains("--client=sock:"), "{who}: {finished}");
            let mut has_failed = !is_reached;
            if is_reached {
                let json = Json::parse(&finished.stdout);
                let place = |name: &str| dir.path().join(name).join("s").display().to_string();
                let jobs = |name: &str| {
                    let stats = json.0["client_stats"].as_array().unwrap().iter();
                    stats.filter(|job| job["hostname"] == place(name)).collect::<Vec<_>>()
                };
                let is_lost = json.0["hosts"][0]["lost"].is_string();
                has_failed = is_lost || jobs("a").iter().any(|job| job["error"] != 0);
                assert!(is_lost || who == "workers" || !has_failed, "{who}: {finished}");
                // The other machine has completed its work.
                assert!(json.0["hosts"][1].get("lost").is_none(), "{who}: {finished}");
                for job in jobs("b") {
                    let is_whole = job["error"] == 0 && job["write"]["runtime"].as_u64() >= Some(2900);
                    assert!(is_whole, "{who}: {finished}");
                }
                assert_eq!(jobs("b").len(), 2, "{who}: {finished}");
            }
            assert_eq!(finished.code(), i32::from(has_failed), "{who}: {finished}");
            assert!(has_failed || who != "agent", "{finished}");
        }
        second.wait_until_idle();
        second.end();
        // (This checks that no process of a killed agent's group is left.)
        if who == "agent" {
            first.running.wait();
        } else {
            first.end();
        }
    }
}

/// A stopped or disconnected machine is silent and counts as lost.
#[test]
pub fn a_silent_host_is_lost() {
    let dir = scratch();
    let [mut first, mut second] = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    for policy in ["continue", "abort"] {
        job(dir.path(), &ENDLESS.replace("runtime=5m", "runtime=6s"));
        let lost = format!("--client-lost={policy}");
        let words = [
            "--client-timeout=1s",
            &lost,
            "--output-format=json",
            &first.client(),
            "job.fio",
            &second.client(),
            "job.fio",
        ];
        let mut client = Program::own().start(dir.path(), words);
        client.wait_until("its jobs", |_| first.family().len() >= 4 && second.family().len() >= 4);
        first.running.signal(libc::SIGSTOP);
        let finished = client.wait();
        first.running.signal(libc::SIGCONT);
        assert_eq!(finished.code(), 1, "{finished}");
        assert!(finished.stderr.contains("a/s> the host is lost: it was silent for 1s"), "{finished}");
        let json = Json::parse(&finished.stdout);
        assert!(json.0["hosts"][0]["lost"].is_string(), "{}", json.0);
        assert!(json.0["hosts"][1].get("lost").is_none(), "{}", json.0);
        let end = &json.0["iolite"];
        assert_eq!(end["status"], "interrupted", "{end}");
        assert!(end["status_reason"].as_str().unwrap().contains(" was lost: it was silent for 1s"), "{end}");
        let runtime =
            json.0["client_stats"].as_array().unwrap().iter().rev().nth(1).unwrap()["write"]["runtime"]
                .as_u64();
        // The other machine's run was complete, or was aborted.
        assert!(policy == "abort" || runtime >= Some(5900), "{}", json.0);
        first.wait_until_idle();
        second.wait_until_idle();
    }
    first.end();
    second.end();
}

/// An agent ends the jobs of a client that has become silent, for example because its machine was disconnected.
#[test]
pub fn the_jobs_of_a_silent_client_are_ended() {
    let dir = scratch();
    let home = dir.path().join("a");
    fs::create_dir(&home).unwrap();
    let server = format!("--server=sock:{}", home.join("s").display());
    let mut agent = Agent::start(&home, &[&server, "--client-timeout=1s"]);
    job(dir.path(), ENDLESS);
    let mut client = Program::own().start(dir.path(), [&agent.client(), "job.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    client.signal(libc::SIGSTOP);
    agent.wait_until_idle();
    agent
        .running
        .wait_until("its reason", |running| running.output().contains("the client was silent for 1s"));
    client.signal(libc::SIGCONT);
    let client = client.wait();
    assert_eq!(client.code(), 1, "{client}");
    agent.end();
}

/// A signal while the jobs are still being read ends the run in order, and does not kill it.
#[test]
pub fn a_run_that_is_asked_to_end_early_reports() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    let far = dir.path().join("a/far.fio");
    assert!(Command::new("mkfifo").arg(&far).status().unwrap().success());
    let mut client = Program::own().start(dir.path(), ["--remote-config=far.fio", &agent.client()]);
    // This waits until the agent's process opens the job file.
    let mut jobs = fs::File::options().write(true).open(&far).unwrap();
    let reader = agent.family()[0];
    client.signal(libc::SIGINT);
    client.wait_until("the signal at the other end", |_| {
        let status = fs::read_to_string(format!("/proc/{reader}/status")).unwrap_or_default();
        let waiting = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let waiting = waiting.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
        status.contains("Z (zombie)") || status.is_empty() || waiting & (1 << (libc::SIGINT - 1)) != 0
    });
    // (This fails if the reader was killed.)
    let _ = jobs.write_all(ENDLESS.as_bytes());
    drop(jobs);
    let finished = client.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    assert!(!finished.stderr.contains("lost"), "{finished}");
    assert!(!finished.stdout.contains("started within"), "nothing was started: {finished}");
    agent.end();
}

/// If the run is ended on its machine, it has failed.
#[test]
pub fn a_run_that_is_ended_where_it_runs_has_failed() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    job(dir.path(), ENDLESS);
    let mut client = Program::own().start(dir.path(), ["--output-format=json", &agent.client(), "job.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    for child in iolite_os::process::children_of(agent.running.pid()) {
        crate::common::program::send(child, libc::SIGTERM);
    }
    let finished = client.wait();
    assert_eq!(finished.code(), 1, "{finished}");
    assert!(finished.stderr.contains("its run was ended there by signal 15"), "{finished}");
    let json = Json::parse(&finished.stdout);
    assert!(json.0["hosts"][0]["lost"].is_string(), "{}", json.0);
    agent.end();
}

/// An interrupt ends a client whose connection is silent.
#[test]
pub fn interrupted_while_it_connects() {
    let dir = scratch();
    job(dir.path(), TWO);
    let silent = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    let words = ["--client-timeout=10m", "--client=sock:s", "job.fio"];
    let client = Program::own().start(dir.path(), words);
    let _connection = silent.accept().unwrap();
    client.signal(libc::SIGINT);
    let finished = client.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    assert!(finished.stderr.contains("interrupted before all hosts were reached"), "{finished}");
}

fn left_in(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// However a run ends, one line of the agent's log says how, and no files are left.
#[test]
pub fn ends_are_logged_and_leave_no_files() {
    let dir = scratch();
    let served = dir.path().join("a");
    let mut agent = agent_with(dir.path(), "a", &[&format!("--serve-only={}", served.display())]);
    let temporary = served.join("tmp");
    job(dir.path(), "[one]\nioengine=null\nsize=64k\nwrite_bw_log=x\nlog_avg_msec=1\n");
    fs::write(
        dir.path().join("bad.fio"),
        "[b]\nrw=read\nsize=64k\nfilename=missing\nallow_file_create=0\nwrite_bw_log=x\n",
    )
    .unwrap();
    fs::write(dir.path().join("worse.fio"), "[b]\nrw=raed\n").unwrap();
    for _ in 0..4 {
        run(dir.path(), &[&agent.client(), "job.fio"]).ok();
        run(dir.path(), &[&agent.client(), "bad.fio"]).refused();
        run(dir.path(), &[&agent.client(), "worse.fio"]).refused();
    }
    agent.wait_until_idle();
    fs::write(dir.path().join("endless.fio"), ENDLESS).unwrap();
    let mut client = Program::own().start(dir.path(), [&agent.client(), "endless.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    client.signal(libc::SIGKILL);
    client.wait();
    // The numbers of log lines: runs begun, completed, refused, ended early.
    let ends = |running: &Running| {
        let said = running.output();
        let count = |words: &str| said.lines().filter(|line| line.contains(words)).count();
        let ended = count(" were ended: ");
        (
            count(": runs jobs for "),
            count("is done with the jobs of "),
            count("has refused the jobs of "),
            ended,
        )
    };
    agent.running.wait_until("the last line", |running| ends(running).3 == 1);
    let mut client = Program::own().start(dir.path(), [&agent.client(), "endless.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    iolite_os::process::children_of(agent.running.pid())
        .into_iter()
        .for_each(|child| crate::common::program::send(child, libc::SIGKILL));
    assert_eq!(client.wait().code(), 1);
    agent.running.wait_until("the last line", |running| ends(running).3 == 2);
    let said = agent.end();
    assert!(said.stderr.contains(" were ended: the client is gone\n"), "{said}");
    assert!(said.stderr.contains(" were ended: the process of the run was killed by signal 9\n"), "{said}");
    let count = |words: &str| said.stderr.matches(words).count();
    assert_eq!(
        [": runs jobs for ", "is done with the jobs of ", "has refused the jobs of ", " were ended: "]
            .map(count),
        [14, 4, 8, 2],
        "{said}"
    );
    assert!(!said.stderr.contains("Broken pipe") && !said.stderr.contains("logs stay"), "{said}");
    assert_eq!(left_in(&temporary), [] as [PathBuf; 0], "{said}");
    assert!(!served.join("s").exists(), "the socket is removed");
}

/// After SIGINT to the agent, also one behind a SIGTERM, its run ends in order, and the client gets the report and the
/// logs.
#[test]
pub fn an_agent_that_is_interrupted_ends_its_run_first() {
    let dir = scratch();
    fs::create_dir(dir.path().join("client")).unwrap();
    job(&dir.path().join("client"), &format!("{ENDLESS}write_bw_log=x\nlog_avg_msec=1\n"));
    for signals in [&[libc::SIGINT][..], &[libc::SIGTERM, libc::SIGINT]] {
        let mut agent = agent_with(dir.path(), &format!("a{}", signals.len()), &[]);
        let home = dir.path().join(format!("a{}", signals.len()));
        let words = ["--output-format=json", &agent.client(), "job.fio"];
        let mut client = Program::own().start(&dir.path().join("client"), words);
        client.wait_until("its jobs", |_| agent.family().len() >= 4);
        client.wait_until("its first I/Os", |_| {
            let written = |file: &str| fs::read(home.join(file)).unwrap_or_default();
            ["long.0.0", "long.1.0"].iter().all(|file| written(file).iter().any(|&byte| byte > 0))
        });
        for signal in signals {
            agent.running.signal(*signal);
            if *signal == libc::SIGTERM {
                agent.running.wait_until("its wait", |running| running.output().contains(WAITS));
            }
        }
        let said = agent.running.wait();
        assert!(said.stderr.contains(" were ended: this server is ended by signal 2\n"), "{said}");
        assert!(!said.stderr.contains("logs stay"), "{said}");
        assert_eq!(said.status.signal(), Some(signals[0]), "{said}");
        let client = client.wait();
        assert_eq!(client.code(), 1, "{client}");
        assert!(client.stderr.contains("its run was ended there by signal 15"), "{client}");
        let json = Json::parse(&client.stdout);
        assert!(json.0["client_stats"][0]["write"]["total_ios"].as_u64() > Some(0), "{client}");
        let logs = left_in(&dir.path().join("client"));
        assert!(logs.iter().any(|name| name.to_string_lossy().contains("x_bw.1.log")), "{logs:?}");
        assert_eq!(left_in(&home.join("tmp")), [] as [PathBuf; 0], "{said}");
        assert!(!home.join("s").exists());
        logs.iter().filter(|log| !log.ends_with("job.fio")).for_each(|log| fs::remove_file(log).unwrap());
    }
}

/// What an agent with a run says after SIGTERM.
const WAITS: &str = "was asked to end: waits for its run, and begins no other one";

/// A service manager stops and restarts programs by SIGTERM: the run goes on to its end, and no other one begins.
#[test]
pub fn an_agent_that_is_asked_to_end_finishes_its_run() {
    let dir = scratch();
    let manager = std::os::unix::net::UnixDatagram::bind(dir.path().join("manager")).unwrap();
    let told = || {
        let mut bytes = [0; 200];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let home = dir.path().join("a");
    fs::create_dir(&home).unwrap();
    let mut command = Command::new(&Program::own().path);
    command.arg(format!("--server=sock:{}", home.join("s").display())).current_dir(&home);
    // It ends when the test says so.
    let (go, long) = (home.join("go"), "[long]\nioengine=null\nsize=64k\nexec_prerun=cat go\n");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    job(dir.path(), long);
    command.arg("--serve-exec").env("NOTIFY_SOCKET", dir.path().join("manager"));
    let mut agent = Agent::of(Running::start(&mut command));
    assert_eq!(told(), "READY=1");
    let mut client = Program::own().start(dir.path(), ["--output-format=json", &agent.client(), "job.fio"]);
    client.wait_until("its job", |_| agent.family().len() >= 4);
    agent.running.signal(libc::SIGTERM);
    agent.running.wait_until("its wait", |running| running.output().contains(WAITS));
    assert_eq!(told(), "STOPPING=1\nSTATUS=waits for its run; SIGINT ends that in order");
    let second = run(dir.path(), &[&agent.client(), "job.fio"]).refused();
    assert!(second.stderr.contains("was asked to end (signal 15), and begins no more runs"), "{second}");
    fs::write(&go, "").unwrap();
    let said = agent.running.wait();
    assert_eq!(said.status.signal(), Some(libc::SIGTERM), "{said}");
    assert!(
        said.stderr.contains("is done with the jobs of ") && !said.stderr.contains("were ended"),
        "{said}"
    );
    assert!(!home.join("s").exists(), "the socket is removed");
    let client = client.wait().ok();
    assert_eq!(Json::parse(&client.stdout).0["client_stats"][0]["read"]["total_ios"], 16, "{client}");

    // A second one does not wait.
    agent = Agent::of(Running::start(&mut command));
    job(dir.path(), ENDLESS);
    let mut client = Program::own().start(dir.path(), [&agent.client(), "job.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    agent.running.signal(libc::SIGTERM);
    agent.running.wait_until("its wait", |running| running.output().contains(WAITS));
    agent.running.signal(libc::SIGTERM);
    // (This checks that no process of the run is left.)
    assert_eq!(agent.running.wait().status.signal(), Some(libc::SIGTERM));
    assert_eq!(client.wait().code(), 1);
    assert!(!home.join("s").exists(), "the socket is removed");
}

/// The next agent removes the files of a killed agent, and nothing else.
#[test]
pub fn files_of_a_killed_agent_are_removed() {
    let dir = scratch();
    job(dir.path(), &format!("{ENDLESS}write_bw_log=x\nlog_avg_msec=1\n"));
    let agent = agent_with(dir.path(), "a", &[]);
    let temporary = dir.path().join("a/tmp");
    let mut client = Program::own().start(dir.path(), [&agent.client(), "job.fio"]);
    client.wait_until("its jobs", |_| agent.family().len() >= 4);
    let [left] = left_in(&temporary).try_into().expect("the directory of its logs");
    // Another agent does not touch the files of a running one.
    let other = agent_with(dir.path(), "a", &["--server=sock:other"]);
    assert_eq!(left_in(&temporary), [left.as_path()]);
    other.end();
    agent.running.signal(libc::SIGKILL);
    agent.running.wait();
    assert_eq!(client.wait().code(), 1);
    let own = temporary.join("iolite-run-notes");
    fs::create_dir(&own).unwrap();
    let mut next = agent_with(dir.path(), "a", &[]);
    let told = format!("removes {}, which a killed server has left", left.display());
    next.running.wait_until("its message", |running| running.output().contains(&told));
    assert_eq!(left_in(&temporary), [own]);
    next.end();
}
