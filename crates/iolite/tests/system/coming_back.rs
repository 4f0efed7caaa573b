//! Logs and verify states that runs on other machines send back to their client.

use crate::common::program::Running;
use crate::common::wires::{Fault, Plan, Proxy, To};
use crate::common::{Json, Program, files_in, scratch};
use crate::remote::Agent;
use std::fs;
use std::path::Path;
use std::process::Command;

/// An agent with its own home directory and directory for temporary files.
fn agent(dir: &Path, name: &str) -> Agent {
    agent_with(dir, name, &[])
}

/// The same with more arguments.
pub fn agent_with(dir: &Path, name: &str, words: &[&str]) -> Agent {
    let home = dir.join(name);
    fs::create_dir_all(home.join("tmp")).unwrap();
    let mut command = Command::new(&Program::own().path);
    command.arg(format!("--server=sock:{}", home.join("s").display()));
    command.args(words).current_dir(&home).env("TMPDIR", home.join("tmp"));
    Agent::of(Running::start(&mut command))
}

fn client_of(dir: &Path) -> std::path::PathBuf {
    let client = dir.join("client");
    fs::create_dir_all(&client).unwrap();
    client
}

/// The names of a client's files, except job files.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = files_in(dir).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !name.ends_with(".fio"));
    names.sort();
    names
}

fn left_in(agent: &Path) -> Vec<String> {
    let mut names = names(agent);
    names.retain(|name| name != "s" && name != "f");
    names
}

#[test]
pub fn logs_come_back() {
    let dir = scratch();
    let agents = ["a", "b"].map(|name| agent(dir.path(), name));
    let client = client_of(dir.path());
    let job = "[global]\nioengine=null\nrw=write\nbs=4k\nsize=64k\n[one]\nwrite_bw_log=bw\nwrite_lat_log\n[two]\nsize=80m\n\
               write_iops_log=sub/x\nwrite_hist_log=/no/such/h\nlog_hist_msec=1\n[three]\nper_job_logs=0\nwrite_bw_log=../all\n\
               [four]\nwrite_bw_log=z\nlog_compression=64k\nlog_store_compressed=1\n";
    fs::write(client.join("job.fio"), job).unwrap();
    let run = |words: &[&str]| Program::own().run(&client, words);
    let json = run(&["--output-format=json", &agents[0].client(), "job.fio"]).ok();
    assert_eq!(json.stderr, "");
    let expected = [
        "all_bw.log",
        "bw_bw.1.log",
        "h_clat_hist.2.log",
        "one_clat.1.log",
        "one_lat.1.log",
        "one_slat.1.log",
        "x_iops.2.log",
        "z_bw.4.log.fz",
    ];
    assert_eq!(names(&client), expected.map(|name| format!("{name}.sock")));
    // The report has the job's options as given.
    let json = Json::parse(&json.stdout);
    assert_eq!(json.0["client_stats"][1]["job options"]["write_iops_log"], "sub/x", "{}", json.0);
    let lines = |name: &str| fs::read_to_string(client.join(name)).unwrap().lines().count();
    assert_eq!(lines("bw_bw.1.log.sock"), 16);
    assert_eq!(lines("all_bw.log.sock"), 16);
    // This log is sent in several parts.
    assert_eq!(lines("x_iops.2.log.sock"), 20_480);
    let inflated = run(&["--inflate-log=z_bw.4.log.fz.sock"]).ok();
    assert_eq!(inflated.stdout.lines().count(), 16, "{inflated}");
    // Each of two machines sends its own logs.
    let [a, b] = agents.each_ref().map(Agent::client);
    for name in names(&client) {
        fs::remove_file(client.join(name)).unwrap();
    }
    run(&[&a, &b, "job.fio"]).ok();
    assert_eq!(names(&client).len(), 2 * expected.len());
    let tag = |name: &str| dir.path().join(name).join("s").display().to_string()[1..].replace('/', "_");
    for name in ["a", "b"] {
        assert_eq!(lines(&format!("bw_bw.1.log.{}", tag(name))), 16);
        assert!(left_in(&dir.path().join(name)).is_empty(), "files are left there");
        assert_eq!(fs::read_dir(dir.path().join(name).join("tmp")).unwrap().count(), 0);
    }
    agents.into_iter().for_each(|agent| drop(agent.end()));
}

#[test]
pub fn logs_that_cannot_be_returned_are_refused() {
    let dir = scratch();
    let server = agent(dir.path(), "a");
    let client = client_of(dir.path());
    let run = |job: &str| {
        fs::write(client.join("job.fio"), job).unwrap();
        Program::own().run(&client, [server.client().as_str(), "job.fio"])
    };
    let common = "[global]\nioengine=null\nrw=write\nbs=4k\nsize=64k\n";
    // Both logs would have the same name here.
    let refused =
        run(&format!("{common}per_job_logs=0\n[one]\nwrite_bw_log=a/x\n[two]\nwrite_bw_log=b/x\n")).refused();
    assert!(refused.stderr.contains("job.fio:10:"), "{refused}");
    assert!(refused.stderr.contains("write_bw_log=b/x: logs come back by the last part"), "{refused}");
    assert!(refused.stderr.contains("a/x of job one has the same"), "{refused}");
    assert!(names(&client).is_empty() && left_in(&dir.path().join("a")).is_empty());
    // A directory here has the name of a log: the run fails, and the other logs come.
    fs::create_dir_all(client.join("x_bw.1.log.sock/full")).unwrap();
    let failed = run(&format!("{common}write_lat_log=x\nwrite_bw_log=x\n[one]\n"));
    assert_eq!(failed.code(), 1, "{failed}");
    assert!(failed.stderr.contains("x_bw.1.log.sock: "), "{failed}");
    assert!(failed.stdout.contains("All clients: (groupid=0, jobs=1): err= 0"), "{failed}");
    assert!(client.join("x_lat.1.log.sock").exists());
    let long = run(&format!("{common}[one]\nwrite_bw_log={}\n", "l".repeat(180))).refused();
    assert!(long.stderr.contains("_bw.1.log is too long a name to come back"), "{long}");
    // The logs are removed during the run.
    fs::write(
        client.join("job.fio"),
        format!("{common}time_based\nruntime=5m\nthinktime=1ms\n[one]\nwrite_bw_log=v\n"),
    )
    .unwrap();
    let mut running = Program::own().start(&client, [server.client().as_str(), "job.fio"]);
    let there = || fs::read_dir(dir.path().join("a/tmp")).unwrap().next().map(|entry| entry.unwrap().path());
    running.wait_until("its log", |_| there().is_some_and(|spool| spool.join("v_bw.1.log").exists()));
    fs::remove_dir_all(there().unwrap()).unwrap();
    running.signal(libc::SIGINT);
    let finished = running.wait();
    assert!(finished.stderr.contains("the logs do not come back: "), "{finished}");
    // One of the logs is removed at the end of the run.
    let removing = format!(
        "{common}[one]\nwrite_bw_log=v\nwrite_lat_log=v\nexec_postrun=rm {}/a/tmp/*/v_bw.1.log\n",
        dir.path().display()
    );
    server.end();
    let server = agent_with(dir.path(), "a", &["--serve-exec"]);
    fs::write(client.join("job.fio"), removing).unwrap();
    let failed = Program::own().run(&client, [server.client().as_str(), "job.fio"]);
    assert_eq!(failed.code(), 1, "{failed}");
    assert!(failed.stderr.contains("v_bw.1.log does not come back: it no longer exists"), "{failed}");
    assert!(client.join("v_lat.1.log.sock").exists());
    // The agent has no directory for temporary files.
    let run = |job: &str| {
        fs::write(client.join("job.fio"), job).unwrap();
        Program::own().run(&client, [server.client().as_str(), "job.fio"])
    };
    fs::remove_dir(dir.path().join("a/tmp")).unwrap();
    let refused = run(&format!("{common}[one]\nwrite_bw_log=x\n")).refused();
    assert!(refused.stderr.contains("logs: ") && refused.stderr.contains("No such file"), "{refused}");
    server.end();
}

/// A verify state is kept on both machines, and the next run loads it on the machine where it runs.
#[test]
pub fn states_come_back() {
    let dir = scratch();
    let server = agent(dir.path(), "a");
    let client = client_of(dir.path());
    let job = "[v]\nfilename=f\nrw=write\nbs=4k\nsize=1m\nverify=crc32c\nnumber_ios=20\ndo_verify=0\n";
    let endless = job.replace("number_ios=20", "thinktime=1ms\ntime_based\nruntime=5m");
    fs::write(client.join("long.fio"), endless).unwrap();
    let mut running = Program::own().start(&client, [server.client().as_str(), "long.fio"]);
    let file = dir.path().join("a/f");
    running.wait_until("some writes", |_| {
        fs::read(&file)
            .is_ok_and(|data| data.chunks(4096).filter(|block| block.iter().any(|&b| b > 0)).count() > 3)
    });
    running.signal(libc::SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    assert_eq!(names(&client), ["sock-v-0-verify.state"], "{finished}");
    assert_eq!(left_in(&dir.path().join("a")), ["local-v-0-verify.state"]);
    let [here, there] = ["client/sock-v-0-verify.state", "a/local-v-0-verify.state"]
        .map(|name| fs::read(dir.path().join(name)).unwrap());
    assert!(here == there && !here.is_empty());
    let check =
        "[v]\nfilename=f\nrw=write\nbs=4k\nsize=1m\nverify=crc32c\nverify_only=1\nverify_state_load=1\n";
    fs::write(client.join("check.fio"), check).unwrap();
    let json = Program::own().run(&client, ["--output-format=json", &server.client(), "check.fio"]).ok();
    let json = Json::parse(&json.stdout);
    assert!(json.0["client_stats"][0]["read"]["total_ios"].as_u64() > Some(3), "{}", json.0);
    server.end();
}

/// The logs of a finished machine are sent when all machines have finished. If the client is gone by then, the logs
/// stay on the machine.
#[test]
pub fn logs_wait_for_the_others() {
    let dir = scratch();
    let mut agents = ["a", "b"].map(|name| agent(dir.path(), name));
    let client = client_of(dir.path());
    fs::write(client.join("short.fio"), "[short]\nsize=64k\nbs=4k\nrw=write\nwrite_bw_log=s\n").unwrap();
    let endless = "[long]\nioengine=null\nsize=1m\nthinktime=1ms\ntime_based\nruntime=5m\n";
    fs::write(client.join("long.fio"), endless).unwrap();
    let [a, b] = agents.each_ref().map(Agent::client);
    let words = [a.as_str(), "short.fio", b.as_str(), "long.fio", "--status-interval=100ms"];
    let start = || {
        let mut running = Program::own().start(&client, words);
        // An interim report is printed when all machines have sent theirs or have finished.
        running.wait_until("the result of the first", |running| running.stdout().matches("bw=").count() > 2);
        running
    };
    let running = start();
    assert!(names(&client).iter().all(|name| !name.contains(".log")), "{:?}", names(&client));
    running.signal(libc::SIGINT);
    let finished = running.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    let log = names(&client).into_iter().find(|name| name.starts_with("s_bw.1.log.")).expect("its log");
    assert!(!log.ends_with(".part"), "{log}: {finished}");
    fs::remove_file(client.join(log)).unwrap();
    let running = start();
    running.signal(libc::SIGKILL);
    drop(running.wait());
    agents.iter_mut().for_each(Agent::wait_until_idle);
    agents[0].running.wait_until("its message", |running| running.output().contains("their logs stay in "));
    let kept: Vec<_> = fs::read_dir(dir.path().join("a/tmp")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].path().join("s_bw.1.log").exists());
    for agent in agents {
        let told = agent.end();
        let is_kept = told.stderr.contains("their logs stay in ");
        assert_eq!(is_kept, told.stderr.contains("/a/tmp/"), "{told}");
    }
}

/// The report comes before the logs: if the connection is cut while logs come, only they are lost.
#[test]
pub fn a_transfer_that_is_cut() {
    let dir = scratch();
    let mut agent = agent(dir.path(), "a");
    let client = client_of(dir.path());
    let proxy = Proxy::on_socket(&dir.path().join("proxy"), dir.path().join("a/s"));
    // The logs have megabytes; everything before them has only kilobytes.
    proxy.plan(Plan { fault: Fault::Cut, to: To::Client, after: 600_000 });
    let job = "[one]\nioengine=null\nbs=4k\nsize=160m\nwrite_lat_log=t\n";
    fs::write(client.join("job.fio"), job).unwrap();
    let through = format!("--client={}", proxy.address);
    let failed = Program::own().run(&client, ["--output-format=json", &through, "job.fio"]);
    assert!(proxy.has_come() && failed.code() == 1, "{failed}");
    assert!(failed.stderr.contains("what its run has left does not come back: "), "{failed}");
    let json = Json::parse(&failed.stdout);
    assert_eq!(json.0["client_stats"][0]["read"]["total_ios"], 40_960, "{failed}");
    assert!(json.0["hosts"][0].get("lost").is_none(), "{failed}");
    let came = names(&client);
    assert!(came.iter().any(|name| name.ends_with(".part")), "{came:?}");
    // The server keeps all of them.
    agent.wait_until_idle();
    agent.running.wait_until("its message", |running| running.output().contains("their logs stay in "));
    let kept: Vec<_> = fs::read_dir(dir.path().join("a/tmp")).unwrap().flatten().collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::read_dir(kept[0].path()).unwrap().count(), 3);
    agent.end();
}
