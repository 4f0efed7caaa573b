//! `--repeat`: runs job files several times in random order, and summarises the runs.

use crate::common::{Json, Program, scratch};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn ours() -> Program {
    Program::own()
}

fn json(text: &str) -> Value {
    Json::parse(text).0
}

/// Writes two job files with quick I/O, which differ in the block size.
fn jobs(dir: &Path, options: &str) {
    for (name, size) in [("base.fio", "4k"), ("new.fio", "8k")] {
        let text = format!("[j]\nioengine=null\nsize=1m\nrw=randread\nbs={size}\n{options}\n");
        fs::write(dir.join(name), text).unwrap();
    }
}

fn report(path: &Path) -> Value {
    json(&fs::read_to_string(path).unwrap())
}

/// The start time of a report's job.
fn began(path: &Path) -> u64 {
    report(path)["jobs"][0]["job_start"].as_u64().unwrap()
}

/// The job file of each run, from the progress messages.
fn told(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter_map(|line| line.split_once("] ")?.1.split_once(", run "));
    lines.map(|(file, _)| file.to_owned()).collect()
}

#[test]
fn warnings_are_reported_once() {
    let dir = scratch();
    // One warning is about the job file; the other one arises during the run.
    jobs(dir.path(), "thinktime_spin=5\nramp_time=100s");
    let run = ours().line(dir.path(), "--repeat=3 base.fio --output=out").ok();
    let count = |words: &str| run.stderr.matches(words).count();
    assert_eq!((count("thinktime_spin"), count("ended within its ramp")), (1, 1), "{run}");
    assert!(run.stderr.contains("warning: base.fio, run 1: "), "{run}");
}

#[test]
pub fn files_take_turns_and_are_compared() {
    let dir = scratch();
    jobs(dir.path(), "");
    let words = "--repeat=5:7 base.fio new.fio --output=out";
    let run = ours().line(dir.path(), &format!("{words} --output-format=json")).ok();
    let answer = json(&run.stdout);
    assert_eq!(
        (&answer["sides"][0]["name"], &answer["sides"][1]["name"]),
        (&"base.fio".into(), &"new.fio".into())
    );
    // They may differ in the block size, and five runs per side give a verdict.
    let block = &answer["comparisons"][0];
    assert_eq!(block["not_comparable"], serde_json::json!([]), "{run}");
    let iops = &block["figures"][0];
    assert_eq!(
        (&iops["figure"], &iops["base"]["runs"], &iops["new"]["runs"]),
        (&"iops".into(), &5.into(), &5.into())
    );
    assert!(iops["interval_percent"].is_array(), "{run}");
    let out = dir.path().join("out");
    assert_eq!(report(&out.join("result.json")), answer);
    // Each round has each file once, one after the other.
    let mut last = 0;
    for round in 1..=5 {
        let mut times = ["base", "new"].map(|side| began(&out.join(side).join(format!("run-{round}.json"))));
        times.sort_unstable();
        assert!(last < times[0] && times[0] < times[1], "round {round}: {last}, {times:?}");
        last = times[1];
    }
    let first = report(&out.join("base/run-1.json"));
    assert_eq!(first["jobs"][0]["job options"]["bs"], "4k");
    assert!(first["jobs"][0]["read"]["clat_ns"]["bins"].is_object());
    // The seed determines the order; without one, it is printed.
    let order = told(&run.stderr);
    assert_eq!(order.len(), 10, "{run}");
    for (seed, is_same) in [("5:7", true), ("5:8", false)] {
        let line = format!("--repeat={seed} base.fio new.fio --output=again-{}", &seed[2..]);
        assert_eq!(told(&ours().line(dir.path(), &line).ok().stderr) == order, is_same, "{seed}");
    }
    // A finished series is not continued.
    let again = ours().line(dir.path(), "--repeat=5 base.fio new.fio --output=out").refused();
    assert!(again.stderr.contains("this series of repeats was finished at 2"), "{again}");
    assert_eq!(report(&out.join("result.json")), answer);
    // As if it had been interrupted just before its end. (The seed need not be given again.)
    let mut plan = report(&out.join("plan.json"));
    plan["finished_ms"] = Value::Null;
    fs::write(out.join("plan.json"), plan.to_string()).unwrap();
    let again = ours().line(dir.path(), "--repeat=5 base.fio new.fio --output=out").ok();
    assert!(again.stderr.contains("(seed 7) (10 of them exist already, since 2"), "{again}");
    assert!(again.stdout.contains("The job files differ in bs"), "{again}");
    let command = again.stdout.lines().find_map(|line| line.split_once(": iolite compare ")).unwrap().1;
    let compared = ours().line(dir.path(), &format!("compare {command} -F json")).ok();
    assert_eq!(json(&compared.stdout)["comparisons"][0]["figures"], block["figures"]);
    // Other commands do not overwrite the series.
    for other in [
        "--repeat=6 base.fio new.fio",
        "--repeat=5:8 base.fio new.fio",
        "--repeat=5 base.fio",
        "--repeat=5 base.fio new.fio --iodepth=2",
    ] {
        let run = ours().line(dir.path(), &format!("{other} --output=out"));
        run.refused().says("there is another series of repeats");
    }
}

#[test]
fn one_file_shows_its_spread() {
    let dir = scratch();
    jobs(dir.path(), "");
    let run = ours().line(dir.path(), "--repeat=4 base.fio --output-format=json,html --loops=2").ok();
    let answer = json(&run.stdout);
    let figure = &answer["jobs"][0]["figures"][0];
    assert_eq!((&answer["jobs"][0]["direction"], &figure["figure"]), (&"read".into(), &"iops".into()));
    let out = dir.path().join("base.repeat");
    let values: Vec<f64> = (1..=4)
        .map(|number| {
            report(&out.join(format!("base/run-{number}.json")))["jobs"][0]["read"]["iops"].as_f64().unwrap()
        })
        .collect();
    let mean = values.iter().sum::<f64>() / 4.0;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    let geometric = (values.iter().map(|value| value.ln()).sum::<f64>() / 4.0).exp();
    let near = |found: &Value, expected: f64| {
        let found = found.as_f64().unwrap();
        assert!((found - expected).abs() <= 1e-4 * expected.abs(), "{found}, not {expected}");
    };
    near(&figure["mean"], geometric);
    near(&figure["variation_percent"], 100.0 * deviation / mean);
    let [low, high] = [0, 1].map(|end| figure["interval"][end].as_f64().unwrap());
    assert!(low < geometric && geometric < high, "{run}");
    // Options of the command line apply to each run, and each run has a page.
    assert_eq!(report(&out.join("base/run-2.json"))["jobs"][0]["read"]["io_bytes"], 2 << 20);
    assert!(fs::read_to_string(out.join("base/run-4.html")).unwrap().starts_with("<!doctype html>"));
    // A repetition of the command measures again, elsewhere.
    let table = ours().line(dir.path(), "--repeat=4 base.fio --loops=2 --eta=never").ok();
    let (first, _) = table.stdout.split_once('\n').expect("a line");
    assert!(first.starts_with("base.fio: 4 runs, 20") && first.contains(", host "), "{table}");
    assert!(table.stderr.is_empty(), "{table}");
    assert!(began(&dir.path().join("base-2.repeat/base/run-1.json")) > began(&out.join("base/run-4.json")));
    // Jobs on the command line, and on standard input.
    let run = ours().line(dir.path(), "--name=x --ioengine=null --size=4k --repeat=2").ok();
    assert!(run.stdout.starts_with("the command line: 2 runs"), "{run}");
    let script = format!("{} --repeat=2 - < base.fio", Program::own().path.display());
    let mut command = std::process::Command::new("sh");
    let run =
        crate::common::program::Running::start(command.args(["-c", &script]).current_dir(dir.path())).wait();
    assert!(run.ok().stdout.starts_with("-: 2 runs"));
    assert!(dir.path().join("stdin.repeat/stdin/run-2.json").exists());
}

/// Series that are interrupted or killed continue later. Another program cannot use the same directory meanwhile.
#[test]
fn interrupted_repeats_go_on() {
    let dir = scratch();
    // The runs are long enough to start another program meanwhile.
    jobs(dir.path(), "rate_iops=1000\ntime_based\nruntime=800ms");
    let words = "--repeat=3:1 base.fio new.fio --output=out --save=x --store=s.db";
    let out = dir.path().join("out");
    let reports = || {
        let of = |side: &str| fs::read_dir(out.join(side)).into_iter().flatten().flatten();
        let names = of("base").chain(of("new")).map(|entry| entry.path());
        names.filter(|path| path.extension().is_some_and(|ending| ending == "json")).count()
    };
    for (signal, done) in [(libc::SIGINT, 1), (libc::SIGKILL, 2)] {
        let mut running = ours().start(dir.path(), words.split(' '));
        running.wait_until("reports are there", |_| reports() >= done);
        if signal == libc::SIGINT {
            ours().line(dir.path(), words).refused().says("another program is at work in this directory");
        }
        running.signal(signal);
        let ended = running.wait();
        if signal == libc::SIGINT {
            assert_eq!(ended.code(), 128, "{ended}");
            assert!(ended.stderr.contains("the same command continues in out"), "{ended}");
        }
        assert!(reports() < 6, "{ended}");
    }
    let there = reports();
    let last = ours().line(dir.path(), words).ok();
    assert!(last.stderr.contains(&format!("({there} of them exist")), "{last}");
    assert_eq!(reports(), 6);
    // Interrupted runs are not kept. A kill after the store was written but before the report adds a run.
    let runs = json(&ours().line(dir.path(), "runs list -F json --store=s.db").ok().stdout);
    let runs = runs["runs"].as_array().unwrap();
    assert!((6..=7).contains(&runs.len()), "{runs:?}");
    assert!(runs.iter().all(|run| run["label"] == "x-base" || run["label"] == "x-new"), "{runs:?}");
}

#[test]
fn repeats_go_to_the_store() {
    let dir = scratch();
    jobs(dir.path(), "");
    let run = ours().line(dir.path(), "--repeat=2 base.fio new.fio --save=day --store=s.db").ok();
    assert!(
        run.stdout.contains("The same once more: iolite compare label:day-base label:day-new --allow=bs"),
        "{run}"
    );
    let compared =
        ours().line(dir.path(), "compare label:day-base label:day-new --allow=bs --store=s.db").ok();
    assert!(
        compared.stdout.starts_with("BASE  label:day-base: 2 runs\nNEW   label:day-new: 2 runs\n"),
        "{compared}"
    );
    // Without --output, no directory is left.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "two job files and the store");
    ours().line(dir.path(), "--repeat=2 base.fio --save=one --store=s.db --output=out").ok();
    assert!(dir.path().join("out/base/run-2.json").exists());
    assert_eq!(ours().line(dir.path(), "runs --store=s.db --label=one").ok().stdout.lines().count(), 3);
    let run = ours().line(dir.path(), "--repeat=2 base.fio --save=a --store=base.fio").refused();
    assert!(run.stderr.contains("base.fio"), "{run}");
    assert!(!dir.path().join("base.repeat").exists());
}

#[test]
fn a_failed_run_is_tried_again() {
    let dir = scratch();
    let text = "[j]\nrw=read\nbs=4k\nsize=4k\nfilename=f\nallow_file_create=0\n";
    fs::write(dir.path().join("job.fio"), text).unwrap();
    // What can be known is refused before anything is created.
    let run = ours().line(dir.path(), "--repeat=2 job.fio").refused();
    assert!(!run.stderr.contains("run 2") && !dir.path().join("job.repeat").exists(), "{run}");
    fs::write(dir.path().join("f"), vec![1; 4096]).unwrap();
    let run = ours().line(dir.path(), "--repeat=2 job.fio --exec_prerun=./ready").refused();
    assert!(run.stderr.contains("job.fio, run 2: failed: "), "{run}");
    assert!(run.stderr.contains("job.fio: all of its runs have failed"), "{run}");
    assert!(!dir.path().join("job.repeat").exists(), "nothing is kept without a result");
    iolite_testing::write_program(&dir.path().join("ready"), "#!/bin/sh\n").unwrap();
    ours().line(dir.path(), "--repeat=2 job.fio --exec_prerun=./ready").ok();
    // A job file that changes during the series is an error.
    let slow = format!("{text}rate_iops=1\ntime_based\nruntime=1s\n");
    fs::write(dir.path().join("slow.fio"), &slow).unwrap();
    let mut running = ours().start(dir.path(), ["--repeat=3", "slow.fio"]);
    running.wait_until("a run has begun", |_| dir.path().join("slow.repeat/slow/run-1.json.part").exists());
    fs::write(dir.path().join("slow.fio"), slow.replace("4k", "2k")).unwrap();
    running.wait().refused().says("slow.fio: the job file has changed since the first run");
}

#[test]
fn mistakes_are_reported_before_the_first_run() {
    let dir = scratch();
    jobs(dir.path(), "");
    fs::write(dir.path().join("bad.fio"), "[j]\nioengine=null\nsize=4kk\n").unwrap();
    fs::write(dir.path().join("worse.fio"), "[j]\nnosuch=1\n").unwrap();
    fs::create_dir(dir.path().join("used")).unwrap();
    fs::write(dir.path().join("used/notes"), "").unwrap();
    for (words, why) in [
        ("--repeat=0 base.fio", "--repeat=0: a number of runs from 1 to 1000"),
        ("--repeat=x base.fio", "--repeat=x: a number"),
        ("--repeat= base.fio", "option \"repeat\" requires a value"),
        ("--repeat=1001 base.fio", "from 1 to 1000"),
        ("--repeat=5:x base.fio", "--repeat=5:x: the seed is a number"),
        ("--repeat=5", "No job(s) defined"),
        ("--repeat=5 nosuch.fio base.fio", "nosuch.fio: "),
        ("--repeat=5 bad.fio base.fio worse.fio", "bad.fio:3:6"),
        ("--repeat=5 bad.fio base.fio worse.fio", "worse.fio:2:1"),
        ("--repeat=5 base.fio base.fio", "this job file is given twice"),
        ("--repeat=5 base.fio --output=used", "files of others"),
        ("--repeat=5 base.fio --output=new.fio", "--output=new.fio"),
        ("--repeat=5 base.fio --client=a", "--client: not supported together with --repeat"),
        ("--repeat=5 base.fio --mpi", "--mpi: not supported together with --repeat"),
        ("--repeat=5 --server", "--server: not supported together with --repeat"),
        ("--repeat=5 base.fio --web", "--web: not supported together with --repeat"),
        ("--repeat=5 base.fio --minimal", "--output-format=terse: not supported together with --repeat"),
        ("--repeat=5 base.fio --status-interval=1", "--status-interval: not supported"),
        ("--repeat=5 base.fio --save=a\u{1}", "a label has no control characters"),
        ("--repeat=5 bad.fio --parse-only", "bad.fio:3:6"),
    ] {
        let run = ours().line(dir.path(), words).refused();
        assert!(run.stderr.contains(why), "{why}: {run}");
    }
    let checked = ours().line(dir.path(), "--repeat=5 base.fio new.fio --parse-only").ok();
    assert!(checked.stdout.is_empty() && checked.stderr.is_empty(), "{checked}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 5);
    // Under the name fio, the option does not exist.
    let fio = Program::called_fio(dir.path());
    if !fio.is_peer {
        fio.line(dir.path(), "--repeat=5 base.fio").refused().says("unknown option \"repeat\"");
    }
    // Jobs of other names are not compared, and a message says so before they run.
    fs::write(dir.path().join("other.fio"), "[k]\nioengine=null\nsize=4k\n").unwrap();
    let run = ours().line(dir.path(), "--repeat=1 base.fio other.fio").ok();
    assert!(run.stderr.contains("no job of other.fio is called like one of base.fio"), "{run}");
}
