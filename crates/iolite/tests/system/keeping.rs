//! The store of runs: `--save`, `iolite runs`, and stored runs as input of other subcommands.

use crate::common::{Json, Program, program::Finished, program::Running, scratch};
use iolite_testing::seed::{Luck, seed};
use iolite_testing::{partly_skipped, this_test};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const JOB: &str = "--name=a --rw=randread --bs=4k --size=256k --filename=f";

fn ours() -> Program {
    Program::own()
}

fn json(finished: &Finished) -> Value {
    Json::parse(&finished.stdout).0
}

/// The runs of the store in `dir`, as listed by `iolite runs list` with these options.
fn runs(dir: &Path, words: &str) -> Vec<Value> {
    let listed = ours().line(dir, &format!("runs list -F json --store=s.db {words}")).ok();
    json(&listed)["runs"].as_array().unwrap().clone()
}

fn numbers(dir: &Path, words: &str) -> Vec<i64> {
    runs(dir, words).iter().map(|run| run["run"].as_i64().unwrap()).collect()
}

/// Runs a line with these environment variables.
fn with(dir: &Path, variables: &[(&str, &str)], line: &str) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolite"));
    command.args(line.split_whitespace()).current_dir(dir).env_remove("XDG_DATA_HOME");
    command.envs(variables.iter().copied());
    Running::start(&mut command).wait()
}

#[test]
pub fn a_run_is_kept_with_all_that_was_measured() {
    let dir = scratch();
    let first = ours().line(dir.path(), &format!("{JOB} --save=base --store=s.db")).ok();
    assert!(first.stderr.contains("the run is kept as run 1 in s.db"), "{first}");
    // The report is the same as without --save: it has no lists of bins here.
    let second = ours().line(dir.path(), &format!("{JOB} --store=s.db --save --output-format=json")).ok();
    let printed = json(&second);
    assert!(printed["jobs"][0]["read"]["clat_ns"].get("bins").is_none());
    let found = runs(dir.path(), "");
    assert_eq!((found[0]["label"].as_str(), found[1]["label"].as_str()), (Some("base"), Some("")));
    assert_eq!((&found[0]["jobs"], &found[1]["run"]), (&json!(["a"]), &json!(2)));
    assert_eq!(found[1]["iops"], printed["jobs"][0]["read"]["iops"]);
    assert!(found[0]["host"].is_string() && found[0]["began_ms"].as_u64() <= found[0]["kept_ms"].as_u64());
    let kept = json(&ours().line(dir.path(), "runs export 2 --store=s.db").ok());
    assert!(kept["jobs"][0]["read"]["clat_ns"]["bins"].is_object(), "a kept run has its histograms");
    assert_eq!(kept["jobs"][0]["read"]["total_ios"], printed["jobs"][0]["read"]["total_ios"]);
    assert!(kept["iolite"]["series"].is_object() && kept["iolite"]["host"]["kernel"].is_string());
    assert_eq!(kept["jobs"][0]["job options"]["bs"], "4k");
    let mode = fs::metadata(dir.path().join("s.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        2,
        "the job's file and the store, and no other file"
    );
}

#[test]
fn the_store_is_in_the_users_data() {
    let dir = scratch();
    let data = dir.path().join("data");
    let data = data.to_str().unwrap();
    with(dir.path(), &[("IOLITE_SAVE", "1"), ("XDG_DATA_HOME", data)], JOB).ok().says("data/iolite/runs.db");
    with(dir.path(), &[("HOME", dir.path().to_str().unwrap())], &format!("{JOB} --save")).ok();
    assert!(dir.path().join(".local/share/iolite/runs.db").is_file());
    for (value, kept) in [("0", false), ("", false), ("yes", false), ("1", true)] {
        let run = with(dir.path(), &[("IOLITE_SAVE", value), ("XDG_DATA_HOME", data)], JOB).ok();
        assert_eq!(run.stderr.contains("the run is kept"), kept, "{run}");
        assert_eq!(run.stderr.contains("not 0 or 1"), value == "yes", "{run}");
    }
    let listed = with(dir.path(), &[("XDG_DATA_HOME", data)], "runs").ok();
    assert_eq!(listed.stdout.lines().count(), 3, "{listed}");
    with(dir.path(), &[("HOME", "")], &format!("{JOB} --save"))
        .refused()
        .says("neither XDG_DATA_HOME nor HOME");
}

/// If an option asks for a store that cannot be used, the run is refused. If the environment does, there is only a
/// message.
#[test]
fn unusable_stores_are_reported() {
    let dir = scratch();
    let text = "somebody's text, which is longer than the hundred bytes that SQLite looks at to know what it has made; not it";
    fs::write(dir.path().join("text"), text).unwrap();
    fs::write(dir.path().join("f"), vec![7; 256 << 10]).unwrap();
    let made = Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap();
    assert!(made.success());
    for (store, why) in [
        ("text", "it is not an SQLite file, so it is not a store of runs; nothing was changed"),
        (".", "it is not a regular file"),
        ("pipe", "it is not a regular file"),
        ("/dev/null", "it is not a regular file"),
        ("text/below.db", "text/below.db"),
        ("f", "f cannot be the store of runs: it is"),
    ] {
        let run =
            ours().line(dir.path(), &format!("{JOB} --save --store={store} --output=r")).refused().says(why);
        assert!(run.stdout.is_empty() && !dir.path().join("r").exists(), "{run}");
        for command in ["runs list", "runs remove 1", "runs check"] {
            let run = ours().line(dir.path(), &format!("{command} --store={store}"));
            assert_eq!(run.code(), 1, "{run}");
        }
        if store != "f" {
            let run = with(dir.path(), &[("IOLITE_SAVE", "1")], &format!("{JOB} --store={store}")).ok();
            assert!(run.stderr.contains(why) && run.stdout.contains("Run status group 0"), "{run}");
        }
    }
    assert_eq!(fs::read_to_string(dir.path().join("text")).unwrap(), text);
    for (label, why) in [("a\nb", "no control characters"), (" a", "a blank"), ("\u{1b}[2J", "control")] {
        let args =
            JOB.split(' ').map(str::to_owned).chain([format!("--save={label}"), "--store=s.db".to_owned()]);
        ours().run(dir.path(), args).refused().says(why);
    }
    let args = JOB.split(' ').map(str::to_owned).chain([format!("--save={}", "x".repeat(201))]);
    ours().run(dir.path(), args).refused().says("at most 200 characters");
    ours().line(dir.path(), &format!("{JOB} --store=s.db")).ok().says("without --save the run is not kept");
    assert!(!dir.path().join("s.db").exists());
    let fio = Program::called_fio(dir.path());
    fio.line(dir.path(), &format!("{JOB} --save")).refused().says("unknown option \"save\"");
}

/// If the run does not fit into the store, the report is still printed, and the exit status shows the failure.
#[test]
fn a_failure_to_save_the_run_leaves_the_report() {
    let dir = scratch();
    ours()
        .line(dir.path(), "runs limits --quota=100 --store=s.db")
        .ok()
        .says("0 of 10000 runs, 0 B of 100 B");
    let run = ours().line(dir.path(), &format!("{JOB} --save --store=s.db")).refused();
    assert!(run.stdout.contains("Run status group 0"), "{run}");
    assert!(run.stderr.contains("all runs together may take 100"), "{run}");
    let run = with(dir.path(), &[("IOLITE_SAVE", "1")], &format!("{JOB} --store=s.db")).ok();
    assert!(run.stderr.contains("the run cannot be kept"), "{run}");
    // If the report cannot be written, the run is kept in the store.
    ours().line(dir.path(), "runs limits --quota=1m --store=s.db").ok();
    ours().line(dir.path(), &format!("{JOB} --save --store=s.db --output=/dev/full")).refused();
    assert_eq!(runs(dir.path(), "").len(), 1);
}

#[test]
fn secrets_are_not_kept() {
    let dir = scratch();
    // The run fails because no server listens at that address, but it is kept.
    let line = "--name=h --ioengine=http --http_host=127.0.0.1:1 --filename=/b/x --rw=write --bs=4k --size=4k --http_mode=s3 \
                --http_s3_key=T0PSECRET --http_s3_keyid=me --save --store=s.db";
    let run = ours().line(dir.path(), line);
    assert_ne!(run.code(), 0, "{run}");
    assert!(run.stderr.contains("the run is kept as run 1"), "{run}");
    let export = ours().line(dir.path(), "runs export 1 --store=s.db").ok();
    assert!(export.stdout.contains("http_s3_key") && !export.stdout.contains("T0PSECRET"), "{export}");
    // Reports of fio contain secrets.
    let report = json!({"fio version": "fio-3.33", "global options": {"http_pass": "T0PSECRET"}, "jobs": [
        {"jobname": "j", "job options": {"filename": "http://me:T0PSECRET@host/x"}, "read": {"iops": 5.0, "total_ios": 5}}]});
    fs::write(dir.path().join("theirs.json"), report.to_string()).unwrap();
    ours().line(dir.path(), "runs import theirs.json --store=s.db").ok().says("theirs.json: run 2");
    let export = ours().line(dir.path(), "runs export 2 --store=s.db").ok();
    assert!(export.stdout.contains("http_pass") && !export.stdout.contains("T0PSECRET"), "{export}");
}

/// Whenever runs are killed or interrupted, the store is intact and contains all runs that were reported as kept.
#[test]
fn a_kill_leaves_the_store_whole() {
    let dir = scratch();
    let mut luck = Luck::of(seed());
    let line = "--name=a --ioengine=null --size=1m --bs=4k --save --store=s.db";
    let mut told = Vec::new();
    let journal = dir.path().join("s.db-journal");
    let mut in_the_middle = 0;
    for attempt in 0..25 {
        let mut running = ours().start(dir.path(), line.split(' '));
        // Kills at a random moment, or while the store is written.
        if attempt % 2 == 0 {
            std::thread::sleep(Duration::from_millis(luck.below(150)));
        } else {
            while !journal.exists() && !running.has_ended() {}
        }
        if !running.has_ended() {
            in_the_middle += u32::from(journal.exists());
            running.signal(libc::SIGKILL);
        }
        let finished = running.wait();
        let number = finished.stderr.split("kept as run ").nth(1).and_then(|rest| rest.split(' ').next());
        told.extend(number.map(|number| number.parse::<i64>().unwrap()));
    }
    if in_the_middle == 0 {
        partly_skipped(
            &this_test!(),
            "no kill came while the store was written: its journal is there for too short",
        );
    }
    // Another run can be kept, whatever the last kill has left behind.
    ours().line(dir.path(), line).ok();
    ours().line(dir.path(), "runs check --store=s.db").ok().says("whole");
    let kept = numbers(dir.path(), "");
    assert!(told.iter().all(|number| kept.contains(number)), "{told:?} {kept:?}");
}

#[test]
fn several_runs_are_kept_at_once() {
    let dir = scratch();
    let started: Vec<Running> = (0..6)
        .map(|job| {
            let line = format!("--name=j{job} --ioengine=null --size=64k --bs=4k --save=l{job} --store=s.db");
            ours().start(dir.path(), line.split(' '))
        })
        .collect();
    for running in started {
        running.wait().ok();
    }
    assert_eq!(numbers(dir.path(), ""), [1, 2, 3, 4, 5, 6]);
    ours().line(dir.path(), "runs check --store=s.db").ok();
}

/// The version of the store's format is at offset 60 of SQLite's header.
#[test]
fn newer_stores_are_refused_and_damaged_ones_reported() {
    let dir = scratch();
    ours().line(dir.path(), &format!("{JOB} --save --store=s.db")).ok();
    let path = dir.path().join("s.db");
    let whole = fs::read(&path).unwrap();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, &newer).unwrap();
    let words = "the store has format 99, and this version knows formats up to 2";
    ours().line(dir.path(), &format!("{JOB} --save --store=s.db")).refused().says(words);
    ours().line(dir.path(), "runs --store=s.db").refused().says(words);
    assert_eq!(fs::read(&path).unwrap(), newer);
    let mut other = whole.clone();
    other[68..72].fill(1);
    fs::write(&path, &other).unwrap();
    ours().line(dir.path(), "runs --store=s.db").refused().says("an SQLite file of another program");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    ours().line(dir.path(), "runs check --store=s.db").refused().says("the store is damaged");
    let run = with(dir.path(), &[("IOLITE_SAVE", "1")], &format!("{JOB} --store=s.db")).ok();
    assert!(run.stdout.contains("Run status group 0"), "{run}");
}

/// Imports results that vary slightly, as repeats do.
fn import(dir: &Path, label: &str, rate: f64) {
    fs::create_dir_all(dir.join("results")).unwrap();
    for (run, off) in [0.0, 0.01, -0.012, 0.006, -0.004].into_iter().enumerate() {
        let begin = 1_700_000_000_000_u64 + run as u64 * 86_400_000 + (rate * 1000.0) as u64;
        let report = json!({"fio version": "fio-3.33", "timestamp_ms": begin + 10_000, "jobs": [{"jobname": "job",
            "job options": {"rw": "read"}, "job_start": begin, "error": 0,
            "read": {"iops": 20_000.0 * rate * (1.0 + off), "runtime": 10_000, "total_ios": 200_000, "io_bytes": 819_200_000}}]});
        fs::write(dir.join(format!("results/{run}.json")), report.to_string()).unwrap();
    }
    fs::write(dir.join("results/notes.txt"), "no result").unwrap();
    ours().run(dir, ["runs", "import", "results", &format!("--label={label}"), "--store=s.db"]).ok();
}

#[test]
fn kept_runs_are_compared_and_shown() {
    let dir = scratch();
    let hostile = "new, 'x' \"<b>\"; --";
    import(dir.path(), "base", 1.0);
    import(dir.path(), hostile, 0.5);
    for words in [
        ["compare", "label:base", &format!("label:{hostile}"), "--store=s.db", "-F", "csv"],
        ["compare", "run:1-5", "run:6,7,8-10", "--store=s.db", "-F", "csv"],
    ] {
        let run = ours().run(dir.path(), words).ok();
        assert!(run.stdout.contains(",job,read,iops,1/s,5,") && run.stdout.contains(",worse,"), "{run}");
    }
    let run = ours().line(dir.path(), "compare run:1 vs run:2 results/3.json --store=s.db").ok();
    assert!(run.stdout.contains("NEW   run:2 and 1 more: 2 runs"), "{run}");
    ours().line(dir.path(), "report label:base --store=s.db -o page.html").ok();
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(
        page.contains("data-iops=\"19920\"") && page.contains("<!doctype html>"),
        "the newest of the label"
    );
    let shown = ours().line(dir.path(), "runs show 10 --store=s.db").ok();
    assert!(shown.stdout.contains("run 10: new, 'x'") && shown.stdout.contains("9.96k"), "{shown}");
    ours().line(dir.path(), "runs show 10 -o page.html --store=s.db").ok();
    assert!(fs::read_to_string(dir.path().join("page.html")).unwrap().contains("data-iops=\"9960\""));
    for (line, why) in [
        ("compare run:1 run:99 --store=s.db", "there is no run 99"),
        ("compare run:1 label:none --store=s.db", "no run with the label \"none\""),
        ("compare run:1 run:x --store=s.db", "\"run:x\" is not a run of a store"),
        ("compare run:1 run:5-2 --store=s.db", "is not a run of a store"),
        ("compare run:1,1 run:2,1 --store=none.db", "none.db: there is no store yet"),
        ("compare run:1 nosuch --store=s.db", "nosuch: No such file"),
        ("report run:77 --store=s.db", "there is no run 77"),
    ] {
        ours().line(dir.path(), line).refused().says(why);
    }
    assert!(!dir.path().join("none.db").exists());
}

#[test]
fn runs_are_filtered_labelled_and_removed() {
    let dir = scratch();
    import(dir.path(), "base", 1.0);
    import(dir.path(), "other", 2.0);
    ours().line(dir.path(), &format!("{JOB} --save --store=s.db")).ok();
    for (words, expected) in [
        ("--label=ba*", vec![1, 2, 3, 4, 5]),
        ("--label=", vec![11]),
        ("--job=a", vec![11]),
        ("--job=j?b --last=2", vec![9, 10]),
        ("--host=?*", vec![11]),
        ("--status=ended", vec![11]),
        ("--status=unknown --last=2", vec![9, 10]),
        ("--since=1h", vec![11]),
        ("--before=2023-11-16 --label=base", vec![1, 2]),
        ("3 label:other --last=3", vec![8, 9, 10]),
        ("--label=none", vec![]),
    ] {
        let found = numbers(dir.path(), words);
        // The date on which the second run began depends on the time zone.
        assert!(
            found == expected || (words.contains("2023") && found.len().abs_diff(2) <= 1),
            "{words}: {found:?}"
        );
    }
    ours().run(dir.path(), ["runs", "label", "run:2,4", "it's", "--store=s.db"]).ok();
    assert_eq!(numbers(dir.path(), "--label=it's"), [2, 4]);
    ours().run(dir.path(), ["runs", "label", "4", "", "--store=s.db"]).ok();
    ours().line(dir.path(), "runs remove label:it's 5 --store=s.db").ok().says("2 runs are removed: 2, 5");
    ours().line(dir.path(), "runs remove --label=other --store=s.db").ok().says("5 runs are removed");
    assert_eq!(numbers(dir.path(), ""), [1, 3, 4, 11]);
    ours().line(dir.path(), "runs remove 2 --store=s.db").refused().says("there is no run 2");
    ours().line(dir.path(), "runs remove --store=s.db").refused().says("remove needs runs or filters");
    // Exports from one store and imports into another.
    fs::create_dir(dir.path().join("out")).unwrap();
    ours().line(dir.path(), "runs export --output=out --store=s.db").ok().says("4 runs are in out");
    ours().line(dir.path(), "runs import out --store=t.db").ok();
    let again = ours().line(dir.path(), "runs export 4 --store=t.db").ok();
    let there = json(&ours().line(dir.path(), "runs export 4 --store=s.db").ok());
    assert_eq!(json(&again), there);
    // The runs that would be dropped are listed first.
    let told = ours().line(dir.path(), "runs limits --most=2 --store=s.db").refused();
    assert!(
        told.stderr.contains("would drop 2 of 4 runs: 4 (") && told.stderr.contains("add --drop"),
        "{told}"
    );
    assert_eq!(numbers(dir.path(), "").len(), 4);
    let gone = ours().line(dir.path(), "runs limits --most=2 --drop --store=s.db").ok();
    assert!(gone.stderr.contains("dropped runs 4 (") && gone.stdout.contains("2 of 2 runs"), "{gone}");
    // Runs without a label are dropped first, and the newest never.
    assert_eq!(numbers(dir.path(), ""), [1, 3]);
    ours().line(dir.path(), &format!("{JOB} --save --store=s.db")).ok().says("dropped run 1 (label base, ");
    assert_eq!(numbers(dir.path(), ""), [3, 12]);
    // An import drops no run with a label.
    ours().line(dir.path(), "runs label 3,12 mine --store=s.db").ok();
    ours()
        .line(dir.path(), "runs import out/run-4.json --store=s.db")
        .refused()
        .says("full of runs with labels");
    assert_eq!(numbers(dir.path(), ""), [3, 12]);
}

#[test]
fn mistakes_are_reported() {
    let dir = scratch();
    fs::write(dir.path().join("words"), "no report").unwrap();
    fs::write(dir.path().join("null"), "{\"jobs\": null}").unwrap();
    fs::File::create(dir.path().join("huge")).unwrap().set_len(300 << 20).unwrap();
    for (line, why) in [
        ("runs lost", "lost is not one of list, show"),
        ("runs show --store=s.db", "show needs one run"),
        ("runs show 1 --store=s.db", "s.db: there is no store yet"),
        ("runs show x --store=s.db", "\"x\" is not a run of a store"),
        ("runs show 1 --label=x --store=s.db", "show has no option --label"),
        ("runs label 1 --store=s.db", "label needs a run and a label"),
        ("runs list --since=yesterday --store=s.db", "--since=yesterday: not a date"),
        ("runs list --last=0 --store=s.db", "must be at least 1"),
        ("runs list -F xml --store=s.db", "not one of table, json"),
        (
            "runs list --status=over --store=s.db",
            "--status=over: not one of ended, interrupted, failed, unknown",
        ),
        ("runs limits --quota=0 --store=s.db", "must be at least 1"),
        ("runs limits --quota=many --store=s.db", "many"),
        ("runs export --store=s.db", "0 runs: of one"),
        ("runs import --store=s.db", "import needs results"),
        ("runs import nosuch --store=s.db", "nosuch: No such file"),
        ("runs import words null --store=s.db", "words: there is no report in JSON in it"),
        ("runs import huge --store=s.db", "huge: it is not a text"),
        ("runs import words --label=a\u{7}b --store=s.db", "no control characters"),
        ("runs import words --label=a\u{202e}b --store=s.db", "that turn text around"),
        ("runs check --store=none.db", "there is no store yet"),
        ("runs --nosuch", "unknown option --nosuch"),
    ] {
        ours().line(dir.path(), line).refused().says(why);
    }
    ours().line(dir.path(), "runs --store=none.db").refused().says("there is no store of runs here");
    ours().line(dir.path(), "runs --store=none.db -F json").refused().says("there is no store of runs here");
    assert!(!dir.path().join("none.db").exists());
}

/// No output file is written over the store: all runs would be lost.
#[test]
fn nothing_replaces_the_store() {
    let dir = tempfile::tempdir().unwrap();
    ours().line(dir.path(), &format!("{JOB} --save=base --store=s.db")).ok();
    for line in [
        format!("{JOB} --save --store=s.db --output=s.db"),
        format!("{JOB} --output=s.db"),
        format!("{JOB} --output=s.db-journal"),
        format!("{JOB} --save --store=new.db --output=new.db"),
        format!("{JOB} --trigger-file=s.db --trigger=true"),
        "runs show 1 --store=s.db -o s.db".to_owned(),
        "runs export 1 --store=s.db -o s.db".to_owned(),
        "report run:1 --store=s.db -o s.db".to_owned(),
    ] {
        ours().line(dir.path(), &line).refused().says("a store of runs");
        assert_eq!(numbers(dir.path(), ""), [1], "{line}");
    }
    ours().line(dir.path(), "runs check --store=s.db").ok().says("whole, 1 runs");
}
