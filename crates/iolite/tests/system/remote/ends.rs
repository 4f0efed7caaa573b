//! How runs on other machines end: kills, signals, silence.

use super::{Agent, ENDLESS, TWO, job};
use crate::common::{Json, Program, scratch};
use iolite_testing::Luck;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// Whichever process is killed, at any moment: nothing keeps running, nothing hangs, and the others' results are kept.
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
            // SAFETY: a plain system call; the process is one of this test, and if it has ended, nobody has its number yet.
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
        // Of a killed agent, nothing of its group may be left.
        if who == "agent" {
            first.running.wait();
        } else {
            first.end();
        }
    }
}

/// A machine that is stopped, or cut off, says nothing, and is given up.
#[test]
pub fn who_is_silent_is_lost() {
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
        let runtime =
            json.0["client_stats"].as_array().unwrap().iter().rev().nth(1).unwrap()["write"]["runtime"]
                .as_u64();
        // Its run was as long as it was to be, or it was ended.
        assert!(policy == "abort" || runtime >= Some(5900), "{}", json.0);
        first.wait_until_idle();
        second.wait_until_idle();
    }
    first.end();
    second.end();
}

/// An agent ends the jobs of a client that says nothing any more, as when its machine is cut off.
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

/// Asked to end while its jobs are still being read, a machine takes that as a request, and is not killed by it.
#[test]
pub fn a_run_that_is_asked_to_end_early_reports() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    let far = dir.path().join("a/far.fio");
    assert!(Command::new("mkfifo").arg(&far).status().unwrap().success());
    let mut client = Program::own().start(dir.path(), ["--remote-config=far.fio", &agent.client()]);
    // This waits for the rank that reads the jobs.
    let mut jobs = fs::File::options().write(true).open(&far).unwrap();
    let reader = agent.family()[0];
    client.signal(libc::SIGINT);
    client.wait_until("the signal at the other end", |_| {
        let status = fs::read_to_string(format!("/proc/{reader}/status")).unwrap_or_default();
        let waiting = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let waiting = waiting.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
        status.contains("Z (zombie)") || status.is_empty() || waiting & (1 << (libc::SIGINT - 1)) != 0
    });
    // If the reader was killed, nobody takes it.
    let _ = jobs.write_all(ENDLESS.as_bytes());
    drop(jobs);
    let finished = client.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    assert!(!finished.stderr.contains("lost"), "{finished}");
    assert!(!finished.stdout.contains("started within"), "nothing was started: {finished}");
    agent.end();
}

/// The agent's user ends the run there: that is no success.
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

/// A silent connection does not keep the client from ending.
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
