//! Steps that the machines of a client take together, besides the start: stages, steady states, rates.

use crate::common::program::Running;
use crate::common::{Json, Program, scratch};
use crate::remote::{Agent, job, run};
use std::fs;
use std::path::Path;
use std::process::Command;

/// An agent that may run programs, in a separate directory.
fn agent(dir: &Path, name: &str) -> Agent {
    let home = dir.join(name);
    fs::create_dir(&home).unwrap();
    let mut command = Command::new(&Program::own().path);
    command.arg(format!("--server=sock:{}", home.join("s").display())).arg("--serve-exec");
    command.current_dir(&home).env("WHO", name);
    Agent::of(Running::start(&mut command))
}

/// A stage on `a` takes until it is let go, and a later one on `b`: the other one does not go on meanwhile.
#[test]
pub fn stages_begin_together() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| agent(dir.path(), name));
    // `stage NAME WHO BEFORE`: both machines have ended the stage before, and machine WHO waits. The engine ignores how
    // the command ends.
    let stage = "[ $3 = none ] || { [ -e ../a/$3.done ] && [ -e ../b/$3.done ]; } || : > $1.early\n\
                 if [ $WHO = $2 ]; then while ! [ -e ../$1.go ]; do sleep 0.01; done; fi\n: > $1.done\n";
    fs::write(dir.path().join("stage"), stage).unwrap();
    let text = "[global]\nioengine=exec\nprogram=sh\nstd_redirect=0\n\
                [one]\narguments=../stage one a none\n\
                [waits]\nwait_for=one\nclient_barrier=1\narguments=../stage two b one\n\
                [alone]\narguments=../stage three nobody none\n\
                [last]\nstonewall\nclient_barrier=1\narguments=../stage four nobody two\n\
                [later]\nstonewall\narguments=../stage five nobody four\n";
    job(dir.path(), text);
    let [a, b] = agents.each_ref().map(Agent::client);
    let mut running = Program::own().start(dir.path(), [a.as_str(), b.as_str(), "job.fio"]);
    let done = |who: &str, stage: &str| dir.path().join(who).join(format!("{stage}.done")).exists();
    running.wait_until("what waits for nobody", |_| done("b", "one") && done("a", "three"));
    // If it did not wait for the other machine, it would be seen now.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!done("a", "one"));
    fs::write(dir.path().join("one.go"), "").unwrap();
    running.wait_until("the second stage of one machine", |_| done("a", "two"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!done("b", "two"));
    fs::write(dir.path().join("two.go"), "").unwrap();
    let finished = running.wait().ok();
    assert_eq!(finished.stderr, "", "{finished}");
    for stage in ["two", "four"] {
        let early = |who: &str| dir.path().join(who).join(format!("{stage}.early")).exists();
        assert!(done("a", stage) && done("b", stage) && !early("a") && !early("b"), "{stage}: {finished}");
    }
    // A machine that has ended, or has no such stage, is waited for by nobody.
    fs::write(dir.path().join("short.fio"), "[only]\nioengine=null\nsize=4k\n").unwrap();
    run(dir.path(), &[&a, "short.fio", &b, "job.fio"]).ok();
    // Interrupted, nobody waits.
    fs::remove_file(dir.path().join("one.go")).unwrap();
    for (who, stage) in [("a", "one"), ("b", "one")] {
        fs::remove_file(dir.path().join(who).join(format!("{stage}.done"))).unwrap();
    }
    let mut running = Program::own().start(dir.path(), [a.as_str(), b.as_str(), "job.fio"]);
    running.wait_until("one that waits", |_| done("b", "one"));
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().code(), 128);
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn a_steady_state_is_that_of_all() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    let [a, b] = agents.each_ref().map(Agent::client);
    let told = |more: &str| {
        job(
            dir.path(),
            &format!(
                "[j]\nioengine=null\nsize=1g\nrate_iops=400\ntime_based\nruntime=5m\nss=iops:900%\nss_dur=1\n\
                 ss_interval=250ms\n{more}\n"
            ),
        );
        let run = run(dir.path(), &[&a, &b, "job.fio", "--output-format=json"]).ok();
        let json = Json::parse(&run.stdout);
        let stats = json.0["client_stats"].as_array().unwrap().clone();
        stats.into_iter().map(|job| job["steadystate"].clone()).collect::<Vec<_>>()
    };
    let alone = told("");
    assert!(alone[2].is_null() && alone[0]["attained"] == 1 && alone[1]["attained"] == 1, "{alone:?}");
    let together = told("client_barrier=1");
    assert!(together.iter().all(|state| state["attained"] == 1), "{together:?}");
    let sums = together[2]["data"]["iops"].as_array().expect("measurements of all");
    assert_eq!(sums.len(), 4, "{together:?}");
    // Ramps in bytes end on each machine by themselves.
    job(dir.path(), "[j]\nioengine=null\nsize=1g\nramp_size=4k\nclient_barrier=1\n");
    let refused = run(dir.path(), &[&a, &b, "job.fio"]).refused();
    assert!(
        refused.stderr.contains("ramp_size: not supported yet together with client_barrier"),
        "{refused}"
    );
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn rates_are_shared() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| Agent::on_socket(dir.path(), name));
    let [a, b] = agents.each_ref().map(Agent::client);
    let with = |options: &str, words: &[&str]| {
        job(
            dir.path(),
            &format!("[j]\nioengine=null\nsize=1g\ntime_based\nruntime=500ms\nrate_scope=all\n{options}\n"),
        );
        run(dir.path(), &[words, &["job.fio", "--output-format=json"]].concat())
    };
    let shared = with("rate_iops=401", &[&a, &b]).ok();
    let json = Json::parse(&shared.stdout);
    let all = json.0["client_stats"].as_array().unwrap().last().unwrap().clone();
    let (ios, ms) = (all["read"]["total_ios"].as_u64().unwrap(), all["read"]["runtime"].as_u64().unwrap());
    // Each begins with one at once.
    assert!(ios > 0 && ios <= 401 * (ms + 1) / 1000 + 2, "{ios} in {ms} ms");
    let refused = with("rate_iops=1\nrate_iops_min=1", &[&a, &b]).refused();
    assert!(refused.stderr.contains("rate_iops=1: 2 hosts cannot share it (rate_scope=all)"), "{refused}");
    // One alone has all of it.
    with("rate_iops=1", &[&a]).ok();
    let wrong = with("rate_scope=some", &[&a]).refused();
    assert!(wrong.stderr.contains("rate_scope"), "{wrong}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}
