//! Files and times to which a run reacts: triggers, and requests for a status.

use crate::common::program::Running;
use crate::common::{Json, Program, files_in, scratch};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A run that would take minutes, with its temporary directory below `dir`.
fn endless(dir: &Path, arguments: &[&str]) -> Running {
    let mut command = Command::new(&Program::under_test().path);
    let job = "--name=j --filename=f --rw=write --bs=4k --size=64k --thinktime=1ms --time_based --runtime=5m --eta=never";
    command.args(arguments).args(job.split_whitespace()).current_dir(dir).env("TMPDIR", dir);
    Running::start(&mut command)
}

fn exists(dir: &Path, name: &str) -> bool {
    dir.join(name).exists()
}

#[test]
pub fn a_trigger_file_runs_the_command_and_ends_the_run() {
    let dir = scratch();
    let arguments = ["--trigger-file=go", "--trigger=echo fired; touch done", "--output-format=json"];
    let mut run = endless(dir.path(), &arguments);
    run.wait_until("its file", |_| exists(dir.path(), "f"));
    fs::write(dir.path().join("go"), "").expect("the trigger file can be made");
    let finished = run.wait().ok();
    assert!(finished.stdout.contains("fired"), "{finished}");
    assert!(exists(dir.path(), "done") && !exists(dir.path(), "go"), "{:?}", files_in(dir.path()));
    let json = Json::parse(&finished.stdout);
    assert!(json.job().int("write.runtime") < 300_000, "{finished}");
}

#[test]
pub fn a_trigger_by_time_ends_the_run() {
    let dir = scratch();
    // Later jobs do not begin any more.
    let run = endless(dir.path(), &["--trigger-timeout=2s", "--name=global", "--stonewall"]).wait().ok();
    assert!(run.stdout.contains("\ntrigger: the run ends here\n"), "{run}");
    assert!(run.stdout.contains("WRITE: bw="), "what was measured is reported: {run}");
}

#[test]
pub fn a_failing_trigger_is_reported() {
    let dir = scratch();
    let run = endless(dir.path(), &["--trigger-timeout=0", "--trigger=exit 7"]).wait().ok();
    assert!(run.stderr.contains("the trigger \"exit 7\" ended with exit status: 7"), "{run}");
}

#[test]
pub fn a_file_asks_for_a_status() {
    for (argument, place) in
        [("--output-format=normal", "fio-dump-status"), ("--aux-path=aux", "aux/fio-dump-status")]
    {
        let dir = scratch();
        fs::create_dir(dir.path().join("aux")).expect("a directory can be made");
        let mut run = endless(dir.path(), &[argument]);
        run.wait_until("its file", |_| exists(dir.path(), "f"));
        for times in 1..=2 {
            fs::write(dir.path().join(place), "").expect("the status file can be made");
            run.wait_until("a report", |run| run.stdout().matches("Run status group 0").count() >= times);
            assert!(!exists(dir.path(), place), "it is removed");
        }
        run.signal(libc::SIGINT);
        assert_eq!(run.wait().code(), 128);
    }
}

#[test]
fn every_format_can_be_a_status() {
    for (format, mark) in [
        ("normal", "Run status group 0"),
        ("json", "\"jobs\" : ["),
        ("json+", "\"jobs\" : ["),
        ("terse", ";j;0;0;"),
    ] {
        let dir = scratch();
        let format = format!("--output-format={format}");
        let mut run = endless(dir.path(), &[&format, "--status-interval=50ms"]);
        run.wait_until("two reports", |run| run.stdout().matches(mark).count() >= 2);
        run.signal(libc::SIGINT);
        assert_eq!(run.wait().code(), 128);
    }
}

#[test]
fn the_machines_clock_and_copies() {
    let dir = scratch();
    let program = Program::under_test();
    let clock = program.line(dir.path(), "--cpuclock-test");
    // Whether the clock passes the test depends on the machine.
    assert!(clock.output().contains("clock: ") && clock.output().contains("readings"), "{clock}");
    let copies = program.line(dir.path(), "--memcpytest=simple").ok();
    let rows: Vec<&str> = copies.stdout.lines().collect();
    assert_eq!((rows[0], rows.len()), ("simple", 12), "{copies}");
    assert!(rows[1..].iter().all(|row| row.ends_with(" MiB/sec")), "{copies}");
    let sums = program.line(dir.path(), "--crctest=crc32c,md5").ok();
    let names: Vec<&str> = sums.stdout.lines().filter_map(|row| row.split(':').next()).collect();
    assert_eq!(names, ["md5", "crc32c"], "{sums}");
    assert_eq!(program.line(dir.path(), "--crctest").ok().stdout.lines().count(), 14);
    program.line(dir.path(), "--crctest=nope").refused().says("sha3-512");
    program.line(dir.path(), "--memcpytest=nope").refused().says("memmove");
}
