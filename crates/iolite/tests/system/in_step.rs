//! What the machines of a client coordinate besides the start: stages, steady states, ramps, rates.

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

/// First a stage on `a` is held up, and later one on `b`. The other machine does not continue meanwhile.
#[test]
pub fn stages_begin_together() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| agent(dir.path(), name));
    // `stage NAME WHO BEFORE` checks that both machines have ended the stage BEFORE, and waits on machine WHO. The
    // engine ignores the exit status of the command.
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
    running.wait_until("the jobs without a barrier", |_| done("b", "one") && done("a", "three"));
    // Without the barrier, the next stage would begin within this time.
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
    // Machines that have ended, or have no such stage, do not delay the others.
    fs::write(dir.path().join("short.fio"), "[only]\nioengine=null\nsize=4k\n").unwrap();
    run(dir.path(), &[&a, "short.fio", &b, "job.fio"]).ok();
    // An interrupt ends the wait for other machines.
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
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

/// Without a barrier, the ramp of `a` ends with its first I/O. With one, it waits for that of `b`.
#[test]
pub fn ramps_in_bytes_end_together() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| agent(dir.path(), name));
    let [a, b] = agents.each_ref().map(Agent::client);
    // The ramp of `b` never ends, and its job ends only on an interrupt.
    let endless = "[j]\nioengine=null\nramp_size=1t\ntime_based\nruntime=5m\nsize=1m\nthinktime=1ms\nclient_barrier=1\n";
    fs::write(dir.path().join("endless.fio"), endless).unwrap();
    let short = "[j]\nioengine=null\nramp_size=4k\nsize=1m\nexec_postrun=: > done\n";
    let ramps_of_a = |more: &str| {
        job(dir.path(), &format!("{short}{more}"));
        let mut running = Program::own().start(dir.path(), [&a, "job.fio", &b, "endless.fio"]);
        let done = dir.path().join("a/done");
        running.wait_until("the end of the short job", |_| done.exists());
        fs::remove_file(done).unwrap();
        running.signal(libc::SIGINT);
        let finished = running.wait();
        let ended = |who: &str| {
            let ramp = |line: &&str| line.contains(who) && line.contains("ended within its ramp (ramp_size)");
            finished.output().lines().filter(ramp).count()
        };
        assert_eq!(ended(&agents[1].address), 1, "{finished}");
        ended(&agents[0].address)
    };
    assert_eq!(ramps_of_a(""), 0);
    assert_eq!(ramps_of_a("client_barrier=1\n"), 1);
    // Counting begins when all ramps are over. Machines without a ramp do not delay the others.
    fs::write(dir.path().join("none.fio"), "[j]\nioengine=null\nsize=4k\n").unwrap();
    let timed = "[j]\nioengine=null\nramp_size=4m\nsize=1m\ntime_based\nruntime=200ms\nnumjobs=2\ngroup_reporting\n\
                 client_barrier=1\n";
    job(dir.path(), timed);
    for other in ["job.fio", "none.fio"] {
        let run = run(dir.path(), &[&a, "job.fio", &b, other, "--output-format=json"]).ok();
        assert_eq!(run.stderr, "", "{run}");
        let json = Json::parse(&run.stdout);
        let stats = json.0["client_stats"].as_array().unwrap();
        let counted = |job: &&serde_json::Value| job["read"]["total_ios"].as_u64() > Some(0);
        assert_eq!(stats.iter().filter(counted).count(), stats.len(), "{run}");
        assert!(stats[0]["read"]["runtime"].as_u64() >= Some(200), "{run}");
    }
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
    // Each machine begins with one I/O at once.
    assert!(ios > 0 && ios <= 401 * (ms + 1) / 1000 + 2, "{ios} in {ms} ms");
    let refused = with("rate_iops=1\nrate_iops_min=1", &[&a, &b]).refused();
    assert!(refused.stderr.contains("rate_iops=1: 2 hosts cannot share it (rate_scope=all)"), "{refused}");
    // A single machine has the whole rate.
    with("rate_iops=1", &[&a]).ok();
    let wrong = with("rate_scope=some", &[&a]).refused();
    assert!(wrong.stderr.contains("rate_scope"), "{wrong}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}
