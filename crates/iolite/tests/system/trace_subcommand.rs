//! `iolite trace`: describes a trace, and converts it to job files and logs.

use crate::common::{Json, Program, scratch};
use iolite_testing::{Luck, or_skip};
use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

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

/// Smallest, mean, largest and count of each step between two states of an I/O, as text.
type Steps = BTreeMap<String, [String; 4]>;

/// The steps of this program that btt has, too.
const STEPS: [&str; 7] = ["Q2G", "G2I", "Q2M", "I2D", "M2D", "D2C", "Q2C"];

fn steps<'a>(lines: impl Iterator<Item = &'a str>) -> Steps {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // btt has other names if devices are mapped; here a word says what some of them mean.
        let name = words.first()?.trim_end_matches("dm").to_owned();
        let from = 1 + usize::from(words.get(1)?.starts_with(|c: char| c.is_ascii_alphabetic()));
        let figures: [String; 4] =
            std::array::from_fn(|at| words.get(from + at).map_or("", |word| word).to_owned());
        STEPS.contains(&name.as_str()).then_some((name, figures))
    };
    lines.filter_map(row).collect()
}

/// The steps in the output of btt, of all devices.
pub fn of_btt(text: &str) -> Steps {
    steps(text.lines().take_while(|line| !line.contains("Device Overhead")))
}

/// The steps in a summary of this program.
pub fn ours(text: &str) -> Steps {
    steps(text.lines().skip_while(|line| !line.contains("block layer")))
}

/// Whether btt is installed.
pub fn has_btt() -> Result<(), String> {
    let found = Command::new("btt").arg("--version").output();
    found.map(drop).map_err(|error| format!("btt (package blktrace): {error}"))
}

/// Records of a device that make little sense: lost, repeated, of I/Os that overlap, are split, merged and returned.
fn made_up(luck: &mut Luck) -> Vec<u8> {
    const ACTIONS: [u32; 10] = [
        action::QUEUE,
        action::QUEUE,
        action::GET_REQUEST,
        action::INSERT,
        action::BACK_MERGE,
        action::FRONT_MERGE,
        action::ISSUE,
        action::REQUEUE,
        action::COMPLETE,
        action::COMPLETE,
    ];
    const KINDS: [u32; 6] = [
        category::READ,
        category::WRITE,
        category::WRITE | category::DISCARD,
        category::WRITE | category::FLUSH,
        category::WRITE | category::FUA,
        category::READ | category::PASSTHROUGH,
    ];
    const DISJOINT: [(u64, u32); 5] = [(0, 8), (8, 8), (64, 8), (100, 32), (64, 0)];
    let overlaps = luck.below(2) == 0;
    let mut bytes = Vec::new();
    let mut time = 1000;
    for sequence in 1..40 {
        time += 1 + luck.below(5000);
        let what = ACTIONS[luck.below(10) as usize] | KINDS[luck.below(6) as usize];
        // With three I/Os of which two overlap, it depends on the shape of its tree which one btt finds.
        let (sector, sectors) = match overlaps {
            true => [(0, 8), (8, 8), (0, 16)][luck.below(3) as usize],
            false if what & action::MASK == action::QUEUE => DISJOINT[luck.below(5) as usize],
            false => [(0, 8), (8, 8), (0, 16), (64, 8), (100, 32), (48, 96)][luck.below(6) as usize],
        };
        let device = BlkRecord::device_number(8, 16 * (1 + luck.below(2) as u32));
        let record = BlkRecord {
            sequence,
            time,
            sector,
            bytes: sectors * 512,
            action: what,
            device,
            ..Default::default()
        };
        blk::write(&mut bytes, ByteOrder::Little, &record).unwrap();
    }
    bytes
}

/// To the last digit, of what a real machine did and of records that make no sense.
#[test]
fn steps_take_as_long_as_for_btt() {
    or_skip!(has_btt());
    let dir = scratch();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/both.dump");
    let mut luck = Luck::new();
    let made_up = (0..50).map(|_| made_up(&mut luck));
    let traces = std::iter::once(fs::read(recorded).unwrap()).chain(made_up);
    let mut found = BTreeSet::new();
    for trace in traces {
        fs::write(dir.path().join("trace"), &trace).unwrap();
        let output =
            Command::new("btt").args(["-i", "trace"]).current_dir(dir.path()).output().expect("btt runs");
        let theirs = of_btt(&String::from_utf8_lossy(&output.stdout));
        let text = Program::under_test().line(dir.path(), "trace trace").ok().stdout;
        assert_eq!(ours(&text), theirs, "{luck:?}: {text}");
        found.extend(theirs.into_keys());
    }
    assert_eq!(found, STEPS.map(str::to_owned).into());
}

/// What a recording shows of the stages: the time in queues and that of the device make up the whole.
#[test]
fn a_block_trace_shows_queue_and_device() {
    let dir = scratch();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/vda.blktrace.1");
    fs::copy(recorded, dir.path().join("trace")).unwrap();
    let summary = value(dir.path(), "trace --json trace");
    let of = |step: &str, key: &str| {
        summary["steps"][step][key].as_f64().unwrap_or_else(|| panic!("{step}.{key}"))
    };
    for step in ["q2d_ns", "d2c_ns", "q2c_ns"] {
        assert!(of(step, "min") <= of(step, "mean") && of(step, "mean") <= of(step, "max"), "{step}");
    }
    assert_eq!(of("q2d_ns", "N"), of("q2c_ns", "N"));
    let sum = of("q2d_ns", "mean") + of("d2c_ns", "mean");
    assert!((sum - of("q2c_ns", "mean")).abs() < 1.0, "{sum}");
    let text = Program::under_test().line(dir.path(), "trace trace").ok().stdout;
    for words in ["Q2D queue ", "D2C device ", "Q2C total "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    log(dir.path());
    assert_eq!(value(dir.path(), "trace --json log")["steps"], Value::Null);
    assert!(!Program::under_test().line(dir.path(), "trace log").ok().stdout.contains("block layer"));
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
