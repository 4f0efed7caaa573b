//! The job files in `examples/`, scaled down: a new user's first steps have to work.

use crate::common::devices::Loop;
use crate::common::{Json, Program, files_in, scratch};
use crate::skip;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A copy of an example in `dir` with sizes and times cut down.
fn scaled(name: &str, dir: &Path) -> String {
    scale(name, dir);
    for entry in fs::read_dir(examples()).expect("there are examples") {
        let include = entry.expect("a directory can be read").file_name().to_string_lossy().into_owned();
        if include.ends_with(".inc") {
            scale(&include, dir);
        }
    }
    name.to_string()
}

fn scale(name: &str, dir: &Path) {
    let text = fs::read_to_string(examples().join(name)).expect("an example can be read");
    let mut scaled = String::new();
    for line in text.lines() {
        scaled += match line.split_once('=') {
            Some(("size", _)) => "size=4M",
            Some(("io_size", _)) => "io_size=1M",
            Some(("runtime", _)) => "runtime=500ms",
            Some(("ramp_time", _)) => "ramp_time=200ms",
            Some(("latency_window", _)) => "latency_window=50ms",
            Some(("nrfiles", _)) => "nrfiles=40",
            _ => line,
        };
        scaled.push('\n');
    }
    fs::write(dir.join(name), scaled).expect("the copy can be written");
}

/// What it leaves behind is what it is for.
const LEAVES_DATA: &str = "verify-power-cut.fio";

/// Those that need a device.
const ON_DEVICES: [&str; 2] = ["block-device.fio", "trim.fio"];

/// Those that replay a trace, which has to be there.
const OF_TRACES: [&str; 2] = ["trace-block.fio", "trace-replay.fio"];

/// All that run on files of their own, by name.
fn names() -> Vec<String> {
    let entries = fs::read_dir(examples()).expect("there are examples");
    let names = entries
        .map(|entry| entry.expect("a directory can be read").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".fio") && !ON_DEVICES.contains(&name.as_str()) && *name != LEAVES_DATA)
        .collect();
    names.sort();
    names
}

/// Run one and return the names of its jobs; only the copy itself may be left in the directory.
#[track_caller]
fn run(name: &str) -> Vec<String> {
    let dir = scratch();
    let file = scaled(name, dir.path());
    let copy = files_in(dir.path());
    let run = Program::under_test().run(dir.path(), ["--output-format=json", &file]).ok();
    // Log files are what some examples are for.
    let mut left = files_in(dir.path());
    left.retain(|(name, _)| !name.ends_with(".log"));
    assert_eq!(left, copy, "the example cleans up: {run}");
    let json = Json::parse(&run.stdout);
    for job in json.jobs() {
        job.check_consistency();
        assert!(job.ios().iter().sum::<u64>() > 0, "{} did something: {run}", job.name());
    }
    json.jobs().iter().map(|job| job.name().to_string()).collect()
}

/// Both commands of the example, with SIGINT for the power cut.
#[test]
fn data_is_checked_after_an_interruption() {
    let dir = scratch();
    fs::copy(examples().join(LEAVES_DATA), dir.path().join(LEAVES_DATA)).unwrap();
    let program = Program::under_test();
    let running = program.start(dir.path(), [LEAVES_DATA, "--eta=never"]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    running.signal(libc::SIGINT);
    running.wait();
    let check = ["--verify_state_load=1", "--verify_only", "--verify_policy=fsynced"];
    // Options behind a job file belong to its last job.
    program.run(dir.path(), [LEAVES_DATA, check[0], check[1], check[2]]).ok();
}

#[test]
fn quickstart() {
    let expected = ["sequential-write", "sequential-read", "random-read", "random-write", "mixed"];
    assert_eq!(run("quickstart.fio"), expected);
}

#[test]
fn quickstart_prints_a_group_for_each_job() {
    let dir = scratch();
    let file = scaled("quickstart.fio", dir.path());
    let run = Program::under_test().run(dir.path(), [&file]).ok();
    for group in 0..5 {
        assert!(run.stdout.contains(&format!("Run status group {group} (all jobs):\n")), "{run}");
    }
}

/// Every fourth example from this one on: four tests share them, so that they run side by side.
fn every_fourth(first: usize) {
    let needs_trace = |name: &String| OF_TRACES.contains(&name.as_str());
    for name in names().iter().filter(|name| !needs_trace(name)).skip(first).step_by(4) {
        assert!(!run(name).is_empty(), "{name}");
    }
}

#[test]
fn a_quarter_of_the_examples() {
    every_fourth(0);
}

#[test]
fn a_second_quarter_of_the_examples() {
    every_fourth(1);
}

#[test]
fn a_third_quarter_of_the_examples() {
    every_fourth(2);
}

#[test]
fn the_last_quarter_of_the_examples() {
    every_fourth(3);
}

#[test]
fn there_are_enough_and_each_is_explained() {
    let names = names();
    assert!(names.len() >= 25, "{names:?}");
    let readme = fs::read_to_string(examples().join("../README.md")).expect("there is a README");
    for name in names {
        let text = fs::read_to_string(examples().join(&name)).expect("an example can be read");
        let comment: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(comment.len() >= 4, "{name} begins with what it is for");
        assert!(
            comment.iter().any(|line| line.contains(&format!("examples/{name}"))),
            "{name}: how it is run"
        );
        assert!(readme.contains(&format!("(examples/{name})")), "{name} is in the README's list");
    }
}

/// Options that the installed fio may not have: ours, and those of 3.42 that older ones do not know.
const OPTIONS_OF_OUR_OWN: [&str; 2] = ["lat_from_intended_start", "steadystate_check_interval"];

#[test]
fn fio_understands_them_too() {
    let Some(peer) = Program::peer() else { skip!("fio is not installed") };
    let dir = scratch();
    for name in names() {
        let file = scaled(&name, dir.path());
        let text = fs::read_to_string(dir.path().join(&file)).expect("the copy is there");
        // (An older fio does not find variables that are not set.)
        let text = text.replace("${TRACE}", "trace").replace("${TARGET}", "target");
        fs::write(dir.path().join(&file), &text).expect("the copy can be written");
        if !OPTIONS_OF_OUR_OWN.iter().any(|option| text.contains(option)) {
            peer.run(dir.path(), ["--parse-only", &file]).ok();
        }
    }
}

/// A copy of an example for a device, with its name in it.
fn scaled_for(device: &Loop, name: &str, dir: &Path) -> String {
    let file = scaled(name, dir);
    let text = fs::read_to_string(dir.join(&file)).expect("the copy is there");
    fs::write(dir.join(&file), text.replace("${DEVICE}", &device.path)).expect("the copy can be written");
    file
}

#[test]
fn the_device_examples_on_a_loop_device() {
    let dir = scratch();
    let device = match Loop::new(dir.path(), 32 << 20) {
        Ok(device) => device,
        Err(reason) => skip!("{reason}"),
    };
    let program = Program::under_test();
    let files: Vec<String> = ON_DEVICES.iter().map(|name| scaled_for(&device, name, dir.path())).collect();
    let before = files_in(dir.path()).len();
    // As its comment says: the read jobs alone, with writing forbidden.
    let sections = ["--section=read-latency", "--section=read-iops"];
    program.run(dir.path(), ["--readonly", sections[0], sections[1], &files[0]]).ok();
    program.run(dir.path(), ["--readonly", &files[0]]).refused();
    for file in &files {
        program.run(dir.path(), [file]).ok();
    }
    assert_eq!(files_in(dir.path()).len(), before, "nothing is left beside the device");
    drop(device);
}

#[test]
fn the_trace_examples_one_after_the_other() {
    let dir = scratch();
    let program = Program::under_test();
    let [record, replay, block] =
        ["trace-record.fio", "trace-replay.fio", "trace-block.fio"].map(|name| scaled(name, dir.path()));
    let json = |file: &str| Json::parse(&program.run(dir.path(), ["--output-format=json", file]).ok().stdout);
    let recorded = json(&record).job().ios();
    let report = json(&replay);
    let replayed: Vec<_> = report.jobs().iter().map(|job| (job.name().to_string(), job.ios())).collect();
    let names = ["as-recorded", "twice-as-fast", "no-waiting"];
    assert_eq!(replayed, names.map(|name| (name.to_string(), recorded)));
    // A block trace of one read, for any device: it is sent to a file.
    use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
    let action = action::QUEUE | category::READ;
    let mut trace = Vec::new();
    let read = BlkRecord { action, bytes: 4096, ..BlkRecord::default() };
    blk::write(&mut trace, ByteOrder::Little, &read).expect("memory takes everything");
    fs::write(dir.path().join("sda.bin"), trace).expect("the trace can be written");
    let text = fs::read_to_string(dir.path().join(&block)).expect("the copy is there");
    let text =
        text.replace("${TRACE}", "sda.bin").replace("${TARGET}", "target").replace("direct=1", "direct=0");
    fs::write(dir.path().join(&block), text).expect("the copy can be written");
    assert_eq!(json(&block).job().ios(), [1, 0, 0]);
}
