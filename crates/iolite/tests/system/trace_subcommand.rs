//! `iolite trace`: describes a trace, and converts it to job files and logs.

use crate::common::{Json, Program, scratch};
use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes a log of a sequential scan in the first tenth of a file, random writes everywhere, and syncs, 100 µs apart.
fn log(dir: &Path) {
    let mut text = String::from("fio version 3 iolog\n0 data add\n0 data open\n");
    for i in 0..1000u64 {
        let time = i * 100;
        if i % 4 == 3 {
            let block = i * 7919 % 2560;
            writeln!(text, "{time} data write {} 8192", block * 4096).unwrap();
        } else {
            writeln!(text, "{time} data read {} 1024", (i - i / 4) * 1024).unwrap();
        }
        if i % 100 == 99 {
            writeln!(text, "{time} data sync 0 0").unwrap();
        }
    }
    fs::write(dir.join("log"), text).unwrap();
}

fn value(dir: &Path, line: &str) -> Value {
    crate::common::json::strict(&Program::under_test().line(dir, line).ok().stdout).expect("JSON")
}

#[test]
fn numbers_are_those_of_the_trace() {
    let dir = scratch();
    log(dir.path());
    let summary = value(dir.path(), "trace --json log");
    assert_eq!((&summary["ios"], &summary["syncs"]), (&Value::from(1000), &Value::from(10)));
    assert_eq!(summary["read"]["ios"], 750);
    assert_eq!(summary["read"]["bytes"], 750 * 1024);
    assert!(summary["read"]["sequential_percent"].as_f64().unwrap() > 99.0);
    assert_eq!(summary["read"]["sizes"][0]["bytes"], 1024);
    assert_eq!(summary["write"]["sizes"][0]["ios"], 250);
    assert_eq!(summary["duration_ns"], 99_900_000);
    assert_eq!(summary["inter_arrival_ns"]["min"], 100_000);
    assert_eq!(summary["depth"], Value::Null);
    assert!(summary["hot_ranges"][0]["ios"].as_u64().unwrap() >= 64);
    let text = Program::under_test().line(dir.path(), "trace log").ok().stdout;
    for words in ["1000 I/Os", "750 I/Os (75.0%)", "8192B 100.0%", "syncs      : 10", "has no completions"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_block_trace_summary_shows_depth_and_devices() {
    let dir = scratch();
    let mut bytes = Vec::new();
    let device = BlkRecord::device_number(8, 16);
    for request in 0..100u64 {
        for (time, what) in [(0, action::QUEUE), (1, action::ISSUE), (2500, action::COMPLETE)] {
            let action = what | category::READ;
            let time = request * 1000 + time;
            let record =
                BlkRecord { time, sector: request * 8, bytes: 4096, action, device, ..BlkRecord::default() };
            bytes.push((time, record));
        }
    }
    bytes.sort_by_key(|(time, _)| *time);
    let mut trace = Vec::new();
    bytes.iter().for_each(|(_, record)| blk::write(&mut trace, ByteOrder::Big, record).unwrap());
    fs::write(dir.path().join("blk"), &trace).unwrap();
    let summary = value(dir.path(), "trace --json blk");
    assert_eq!(summary["format"], "blktrace");
    assert_eq!(summary["ios"], 100);
    assert_eq!(summary["depth"]["max"], 3);
    assert!(summary["depth"]["mean_when_busy"].as_f64().unwrap() > 2.0);
    assert_eq!(summary["files"][0]["name"], "8:16");
    let job = Program::under_test().line(dir.path(), "trace --to-job blk").ok().stdout;
    assert!(job.contains("\nrw=read\n") && job.contains("iodepth=2"), "{job}");
    let log = Program::under_test().line(dir.path(), "trace --to-log=3 blk").ok().stdout;
    assert!(log.contains("\n99 /dev/block/8:16 read 405504 4096\n"), "{log}");
    fs::write(dir.path().join("cut"), &trace[..100]).unwrap();
    Program::under_test()
        .line(dir.path(), "trace cut")
        .refused()
        .says("trace: cut: record 3: the trace is cut off");
    Program::under_test().line(dir.path(), "trace none").refused().says("none: No such file");
    Program::under_test().line(dir.path(), "trace --json --to-job blk").refused().says("exclude each other");
}

#[test]
fn a_job_that_imitates_a_trace_is_like_it_under_both_programs() {
    let dir = scratch();
    log(dir.path());
    let job = Program::under_test().line(dir.path(), "trace --to-job log").ok().stdout;
    for line in ["rwmixread=75", "bs=1024,8192", "fsync=25", "rate_iops=7508,2503", "rw=randrw"] {
        assert!(job.lines().any(|found| found == line), "{line}: {job}");
    }
    assert!(job.contains("percentage_random=1,100"), "{job}");
    fs::write(dir.path().join("job.fio"), &job).unwrap();
    for program in Program::all() {
        let report = program.line(dir.path(), "--output-format=json job.fio").ok();
        let report = Json::parse(&report.stdout);
        let [reads, writes, trims] = report.job().ios();
        // The job transfers as many bytes, in about the same (random) proportions.
        let moved: u64 = report.job().bytes().iter().sum();
        assert!(moved.abs_diff(750 * 1024 + 250 * 8192) <= 8192, "{:?}: {moved}", program.path);
        let share = reads * 100 / (reads + writes);
        assert!((65..=85).contains(&share) && trims == 0, "{:?}: {reads} {writes}", program.path);
    }
    // The summary of a recording of the imitation is similar to the original's.
    Program::under_test().line(dir.path(), "--write_iolog=again job.fio").ok();
    let again = value(dir.path(), "trace --json again");
    assert!((60.0..90.0).contains(&again["read"]["percent"].as_f64().unwrap()), "{again}");
    assert_eq!(again["write"]["sizes"][0]["bytes"], 8192);
}

#[test]
fn a_log_is_converted_to_the_other_version_and_back() {
    let dir = scratch();
    fs::write(
        dir.path().join("log"),
        "fio version 3 iolog\n0 f add\n0 f open\n1000 f write 0 512\n5000 f read 0 512\n5000 f sync 0 0\n9000 f close\n",
    )
    .unwrap();
    let old = Program::under_test().line(dir.path(), "trace --to-log=2 log").ok().stdout;
    let expected = "fio version 2 iolog\nf add\nf open\nf wait 1 0\nf write 0 512\nf wait 5 0\nf read 0 512\nf sync 0 0\n\
                    f wait 9 0\nf close\n";
    assert_eq!(old, expected);
    fs::write(dir.path().join("old"), &old).unwrap();
    let new = Program::under_test().line(dir.path(), "trace --to-log 3 old").ok().stdout;
    assert_eq!(new, fs::read_to_string(dir.path().join("log")).unwrap());
}
