//! The output during a run, and the destination of the report.

use crate::common::program::{Finished, Running, send};
use crate::common::skeleton::skeleton_of;
use crate::common::{Json, Program, files_in, scratch, sizes};
use crate::signals::descendants;
use iolite_testing::skip;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The complete live lines of an output that begin with this text. Each ends with a carriage return or a newline, and
/// the text after the last of these may be incomplete.
fn live_lines(output: &str, beginning: &str) -> Vec<String> {
    let ended = output.rfind(['\r', '\n']).unwrap_or(0);
    let lines = output[..ended].split(['\r', '\n']);
    lines.filter(|line| line.starts_with(beginning) && line.contains("[eta ")).map(str::to_owned).collect()
}

/// Runs jobs until this many live lines begin with this text. Returns the last of them and the whole output. The jobs
/// have to run long enough for that, even on a busy machine.
#[track_caller]
fn shown(line: &str, beginning: &str, times: usize) -> (String, String) {
    let dir = scratch();
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    let lines = |running: &Running| live_lines(&running.output(), beginning);
    running.wait_until(beginning, |running| lines(running).len() >= times);
    let shown = (lines(&running).pop().expect("there is one"), running.output());
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().code(), 128);
    shown
}

/// The bracketed fields of a live line.
#[track_caller]
fn fields(line: &str) -> Vec<String> {
    let (_, brackets) = line.split_once(": [").unwrap_or_else(|| panic!("no fields in {line:?}"));
    brackets.trim_end().trim_end_matches(']').split("][").map(String::from).collect()
}

/// A number with one of these units, as `20.5MiB/s`.
fn is_rate(text: &str, unit: &str) -> bool {
    let number = text.strip_suffix(unit).unwrap_or("");
    let number = number.trim_end_matches(['k', 'K', 'M', 'G', 'i']);
    number.parse::<f64>().is_ok()
}

#[test]
fn ten_readers_and_ten_writers() {
    let job = "--size=1M --bs=64k --direct=1 --numjobs=10 --time_based --runtime=1h";
    let line = format!("--eta=always --name=r --rw=read {job} --name=w --rw=write {job}");
    // Documents show: Jobs: 20 (f=20): [R(10),W(10)][4.0%][r=20.5MiB/s,w=23.5MiB/s][r=82,w=94 IOPS][eta 57m:36s]
    let (live, _) = shown(&line, "Jobs: 20 (f=20): [R(10),W(10)][", 3);
    let fields = fields(&live);
    assert_eq!(fields.len(), 5, "{live}");
    assert!(fields[1].ends_with('%'), "{live}");
    let (read, write) = fields[2].split_once(',').expect("both directions");
    assert!(is_rate(&read.replace("r=", ""), "B/s") && is_rate(&write.replace("w=", ""), "B/s"), "{live}");
    let (read, write) = fields[3].strip_suffix(" IOPS").and_then(|iops| iops.split_once(',')).expect("IOPS");
    assert!(is_rate(&read.replace("r=", ""), "") && is_rate(&write.replace("w=", ""), ""), "{live}");
    assert!(fields[4].starts_with("eta 59m:") || fields[4].starts_with("eta 01h:00m:"), "{live}");
}

#[test]
fn the_letter_of_each_workload() {
    for (rw, letter) in
        [("read", 'R'), ("randread", 'r'), ("write", 'W'), ("randwrite", 'w'), ("rw", 'M'), ("randrw", 'm')]
    {
        let line = format!(
            "--eta=always --name=j --filename=f --rw={rw} --size=1M --direct=1 --time_based --runtime=1h"
        );
        shown(&line, &format!("Jobs: 1 (f=1): [{letter}(1)]["), 1);
    }
}

#[test]
fn a_ramp_has_a_letter_of_its_own() {
    let line = "--eta=always --name=j --filename=f --rw=read --size=1M --direct=1 --time_based --runtime=1 --ramp_time=1h";
    shown(line, "Jobs: 1 (f=1): [/(1)][", 1);
}

#[test]
fn finished_workers_are_shown_too() {
    let line = "--eta=always --name=short --ioengine=null --size=4k \
                --name=long --filename=f --rw=read --size=1M --direct=1 --time_based --runtime=1h";
    shown(line, "Jobs: 1 (f=1): [_(1),R(1)][", 1);
}

/// Running jobs are shown even if the duration of later ones is unknown because their size limits them.
#[test]
fn running_jobs_are_shown_without_an_eta_for_later_waves() {
    let line = "--eta=always --eta-newline=500ms --eta-interval=500ms --ioengine=null --size=4m --bs=4k \
                --name=a --rw=read --rate_iops=5 --name=b --stonewall --rw=write";
    let first = "Jobs: 1 (f=1), 0-5 IOPS: [R(1),P(1)]";
    let (_, output) = shown(line, first, 2);
    for line in &live_lines(&output, first) {
        let fields = fields(line);
        assert_eq!(fields[1], "-.-%", "{line}");
        assert!(is_rate(&fields[2].replace("r=", ""), "B/s") && fields[3].ends_with(" IOPS"), "{line}");
        assert_eq!(fields[4], "eta --", "{line}");
    }
}

#[test]
fn directions_that_are_over_are_shown_no_more() {
    let line = "--eta=always --name=short --ioengine=null --rw=write --size=4k \
                --name=long --filename=f --rw=read --size=1M --direct=1 --time_based --runtime=1h";
    // The first line may cover a time when the short job was still running.
    let (live, _) = shown(line, "Jobs: 1 (f=1): [_(1),R(1)][", 3);
    let fields = fields(&live);
    assert!(fields[2].starts_with("r=") && !fields[2].contains(','), "{live}");
    assert!(fields[3].starts_with("r=") && !fields[3].contains(','), "{live}");
}

/// Each of these runs takes 200 s.
#[test]
fn the_time_left_is_that_until_all_is_done() {
    let dir = scratch();
    for jobs in [
        "--time_based --runtime=1 --startdelay=199 --name=a",
        "--time_based --runtime=100 --name=a --name=b --wait_for=a",
        "--time_based --runtime=99 --name=a --name=b --stonewall --startdelay=2",
        "--rate_iops=50 --number_ios=5000 --loops=2 --name=a",
    ] {
        let line = format!("--eta=always --eta-interval=500ms --ioengine=null --size=1g {jobs}");
        let mut run = Program::under_test().start(dir.path(), line.split_whitespace());
        run.wait_until("time left", |run| run.output().contains("[eta 03m:"));
        run.signal(libc::SIGINT);
        run.wait();
    }
}

/// As in fio, every job has the remaining time of the whole run, but not in the first two seconds.
#[test]
fn reports_tell_the_time_left_of_the_run() {
    let dir = scratch();
    let line = "--status-interval=500ms --output-format=json --ioengine=null --size=1M --rate_iops=100 \
                --time_based --runtime=1500ms --name=a --name=b --stonewall --name=c";
    let run = Program::under_test().line(dir.path(), line).ok();
    let reports = serde_json::Deserializer::from_str(&run.stdout).into_iter();
    let reports: Vec<Json> = reports.map(|report| Json(report.expect("reports are JSON"))).collect();
    for report in &reports {
        let eta = report.jobs()[0].int("eta");
        assert_eq!(eta == i32::MAX as u64, report.jobs()[0].int("elapsed") <= 2, "{run}");
        assert!(report.jobs().iter().all(|job| job.int("eta") == eta), "{run}");
    }
    let last = reports.last().expect("there is one at the end");
    assert_eq!((last.jobs().len(), last.jobs()[0].int("eta")), (3, 0), "{run}");
}

#[test]
fn no_live_line_unless_asked_for() {
    let dir = scratch();
    for eta in ["--eta=never", "--eta=auto"] {
        let line = format!("{eta} --name=j --filename=f --rw=read --size=1M --time_based --runtime=2");
        let run = Program::under_test().line(dir.path(), &line).ok();
        assert!(!run.output().contains("Jobs: "), "{eta}, not on a terminal: {run}");
    }
}

/// Starts a run on a pseudo-terminal.
fn started_on_a_terminal(dir: &Path, line: &str) -> Option<Running> {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let program = Program::under_test();
    let inner = format!("{} {line}", program.path.display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]).current_dir(dir);
    Some(Running::start(&mut command))
}

/// Runs a line on a pseudo-terminal.
fn on_a_terminal(dir: &Path, line: &str) -> Option<Finished> {
    started_on_a_terminal(dir, line).map(Running::wait)
}

#[test]
fn the_live_line_is_redrawn_in_place_on_a_terminal() {
    let dir = scratch();
    let line = "--output-format=normal --eta-interval=250ms --name=j --filename=f --rw=randread --size=1M --direct=1 --time_based --runtime=1h";
    let Some(mut running) = started_on_a_terminal(dir.path(), line) else {
        skip!("script(1) is not installed")
    };
    running.wait_until("the line is redrawn", |running| {
        live_lines(&running.stdout(), "Jobs: 1 (f=1): [r(1)][").len() >= 2
    });
    // The first descendant is the program or the shell that runs it; only the program is interrupted.
    let program = Program::under_test().path;
    let is_it = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    send(descendants(running.pid()).into_iter().find(is_it).expect("it runs"), libc::SIGINT);
    let run = running.wait();
    assert_eq!(run.code(), 128, "{run}");
    assert!(run.stdout.contains("Jobs: 1 (f=1)\r") || run.stdout.contains("]\r"), "in place: {run:?}");
    assert!(run.stdout.contains("j: (groupid=0, jobs=1): err= 0:"), "{run}");
}

#[test]
fn never_means_never_on_a_terminal() {
    let dir = scratch();
    let line = "--eta=never --name=j --filename=f --rw=randread --size=1M --time_based --runtime=2";
    let Some(run) = on_a_terminal(dir.path(), line) else { skip!("script(1) is not installed") };
    assert!(!run.stdout.contains("Jobs: "), "{run}");
}

#[test]
fn eta_newline_keeps_the_lines() {
    let dir = scratch();
    let line = "--eta=always --eta-newline=1 --name=j --filename=f --rw=read --size=1M --direct=1 --time_based --runtime=1h";
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    let is_kept = |line: &&str| line.trim_end().ends_with(']') && line.contains("[eta ");
    running.wait_until("two lines are kept", |running| running.output().lines().filter(is_kept).count() >= 2);
    running.signal(libc::SIGINT);
    running.wait();
}

#[test]
fn status_interval_prints_whole_reports() {
    let dir = scratch();
    let line = "--status-interval=1 --name=j --filename=f --rw=read --size=1M --time_based --runtime=1h";
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    let reports = |text: &str| text.matches("Run status group 0 (all jobs):").count();
    running.wait_until("two reports", |running| reports(&running.stdout()) >= 2);
    running.signal(libc::SIGINT);
    let run = running.wait();
    let reports = reports(&run.stdout);
    assert!(reports >= 3, "one at the end as well: {run}");
    assert_eq!(run.stdout.matches("j: (groupid=0, jobs=1): err= 0:").count(), reports, "{run}");
}

#[test]
fn the_report_goes_to_a_file() {
    let dir = scratch();
    let run =
        Program::under_test().line(dir.path(), "--output=report --name=j --ioengine=null --size=1M").ok();
    assert_eq!(run.stdout, "", "{run}");
    let report = fs::read_to_string(dir.path().join("report")).expect("the report is there");
    let skeleton = skeleton_of(&report, Program::under_test().release);
    assert!(skeleton[0].starts_with("j: (g=0): rw=read, bs=(R) 4096B-4096B"), "{report}");
    assert!(
        skeleton
            .iter()
            .any(|line| line == "   READ: bw=NB/s (NB/s), NB/s-NB/s (NB/s-NB/s), io=NB (NB), run=N-Nmsec")
    );
}

#[test]
fn a_report_file_is_replaced() {
    let dir = scratch();
    fs::write(dir.path().join("report"), "old\n".repeat(10_000)).unwrap();
    Program::under_test().line(dir.path(), "--output=report --name=j --ioengine=null --size=1M").ok();
    assert!(!fs::read_to_string(dir.path().join("report")).unwrap().contains("old"));
}

#[test]
fn an_unwritable_report_file_is_refused() {
    let dir = scratch();
    let run = Program::under_test().line(dir.path(), "--output=nosuch/report --name=j --rw=write --size=4k");
    assert_eq!(run.code(), 1, "{run}");
    assert_eq!(files_in(dir.path()), sizes(&[]), "{run}");
}

#[test]
fn several_formats_at_once() {
    let dir = scratch();
    let line = "--output-format=normal,json --name=j --ioengine=null --size=1M";
    let run = Program::under_test().line(dir.path(), line).ok();
    assert!(run.stdout.contains("j: (groupid=0, jobs=1): err= 0:"), "{run}");
    assert_eq!(Json::parse(&run.stdout).job().ios(), [256, 0, 0]);
}

#[test]
fn json_alone_is_nothing_but_json() {
    let dir = scratch();
    let line = "--output-format=json --name=j --rw=write --size=64k";
    let run = Program::under_test().line(dir.path(), line).ok();
    let value: serde_json::Value =
        crate::common::json::strict(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    assert_eq!(value["jobs"][0]["jobname"], "j");
}

#[test]
fn json_contains_the_given_options() {
    let dir = scratch();
    let text = "[global]\nsize=64k\nrw=randread\n[one]\nbs=4k\n[two]\nbs=8k\niodepth=1\n";
    fs::write(dir.path().join("job.fio"), text).unwrap();
    let run = Program::under_test().line(dir.path(), "--output-format=json job.fio").ok();
    let json = Json::parse(&run.stdout);
    let expect = |value: &serde_json::Value, expected: &[(&str, &str)]| {
        let object = value.as_object().unwrap_or_else(|| panic!("an object: {value}"));
        let found: Vec<(&str, &str)> =
            object.iter().map(|(key, value)| (key.as_str(), value.as_str().expect("a string"))).collect();
        assert_eq!(found, expected);
    };
    expect(&json.0["global options"], &[("size", "64k"), ("rw", "randread")]);
    expect(&json.0["jobs"][0]["job options"], &[("bs", "4k")]);
    expect(&json.0["jobs"][1]["job options"], &[("bs", "8k"), ("iodepth", "1")]);
}
