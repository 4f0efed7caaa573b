//! How a run ended: the report says it, and so do all commands that show, list or compare stored runs.

use crate::common::{Json, Program, program::Finished, scratch};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LONG: &str = "--name=a --filename=f --rw=write --bs=4k --size=1m --time_based --runtime=100";

fn ours() -> Program {
    Program::own()
}

fn json(finished: &Finished) -> Value {
    Json::parse(&finished.stdout).0
}

/// Starts a run with `--save`, sends a signal when its job has begun, and waits for its end.
fn ended_by(dir: &Path, signal: i32) -> Finished {
    let line = format!("{LONG} --save --store=s.db");
    let _ = fs::remove_file(dir.join("f"));
    let mut running = ours().start(dir, line.split(' '));
    running.wait_until("its file", |_| dir.join("f").exists());
    running.signal(signal);
    running.wait()
}

/// The table has, in the order of run numbers, the program's exit status, the run's status, and a part of the reason.
#[test]
fn a_kept_run_says_how_it_ended() {
    let dir = scratch();
    let kept = |line: &str| ours().line(dir.path(), &format!("{line} --save --store=s.db"));
    let short = "--name=a --ioengine=null --size=64k --bs=4k";
    let full = "--name=bad --filename=/dev/full --rw=write --bs=4k --size=4k --ioengine=psync --thread";
    let expected = [
        (kept(short), 0, "ended", ""),
        (ended_by(dir.path(), libc::SIGINT), 128, "interrupted", "ended by SIGINT"),
        (ended_by(dir.path(), libc::SIGTERM), 128, "interrupted", "ended by SIGTERM"),
        (kept(&format!("{LONG} --trigger-timeout=1")), 0, "interrupted", "ended by the trigger"),
        (kept(&format!("{short} {full}")), 1, "failed", "1 worker had an error"),
    ];
    let listed = json(&ours().line(dir.path(), "runs list -F json --store=s.db").ok());
    let table = ours().line(dir.path(), "runs --store=s.db").ok().stdout;
    for (place, (run, code, status, why)) in expected.iter().enumerate() {
        let number = place + 1;
        assert_eq!(run.code(), *code, "{run}");
        assert_eq!(listed["runs"][place]["status"], *status, "{listed}");
        assert!(table.lines().nth(number).unwrap().contains(status), "{table}");
        let report = json(&ours().line(dir.path(), &format!("runs export {number} --store=s.db")).ok());
        assert_eq!(report["iolite"]["status"], *status);
        assert_eq!(report["iolite"]["status_reason"].as_str().unwrap_or_default(), *why);
        let shown = ours().line(dir.path(), &format!("runs show {number} --store=s.db")).ok().stdout;
        let words = if why.is_empty() { (*status).to_owned() } else { format!("{status}: {why}") };
        assert!(shown.lines().any(|line| line == words), "{shown}");
        let page = ours().line(dir.path(), &format!("report run:{number} --store=s.db")).ok().stdout;
        let note = format!("The run was interrupted: {why}<");
        assert_eq!(page.contains(&note), *status == "interrupted", "{number}");
        assert_eq!(page.contains("1 of 2 jobs had errors"), *status == "failed", "{number}");
    }
    for (status, numbers) in [("ended", vec![1]), ("interrupted", vec![2, 3, 4]), ("failed", vec![5])] {
        let words = format!("runs list -F json --status={status} --store=s.db");
        let listed = json(&ours().line(dir.path(), &words).ok());
        let found = listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_i64().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), numbers, "{status}");
    }
    // An interrupted run cannot be compared. If one job of a run has an error, the others can be compared.
    let compared = ours().line(dir.path(), "compare run:1 run:2 --store=s.db").ok();
    let why = "NEW has runs that were interrupted, such as run:2 (ended by SIGINT)";
    assert!(compared.stdout.contains(&format!("not comparable: {why}")), "{compared}");
    let compared = ours().line(dir.path(), "compare run:1 run:5 --store=s.db").ok();
    assert!(compared.stdout.contains("note: other jobs had errors in runs of NEW"), "{compared}");
    let beside = compared.stdout.split("bad: write").next().unwrap();
    assert!(!beside.contains("not comparable"), "{compared}");
}

/// The JSON report of a run that could not begin says so. Interim reports and reports under the name `fio` lack this
/// key.
#[test]
fn other_reports() {
    let dir = scratch();
    let refused = ours().line(dir.path(), "--name=a --filename=unsized --rw=read --output-format=json");
    let report = json(&refused);
    assert_eq!(report["iolite"]["status"], "failed", "{refused}");
    assert_eq!(report["iolite"]["status_reason"], "it could not begin");
    let line = format!("{} --output-format=json --status-interval=500ms", LONG.replace("=100", "=2"));
    let run = ours().line(dir.path(), &line).ok();
    assert_eq!(run.stdout.matches("\"status\" : \"ended\"").count(), 1, "{run}");
    assert!(run.stdout.matches("\"jobs\" : [").count() > 1, "there are interim reports: {run}");
    let fio = Program::called_fio(dir.path());
    let run = fio.line(dir.path(), "--name=a --ioengine=null --size=64k --output-format=json").ok();
    assert!(!run.stdout.contains("status"), "{run}");
}
