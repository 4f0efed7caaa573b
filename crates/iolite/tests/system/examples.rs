//! The job files in `examples/`, scaled down: a new user's first steps have to work.

use crate::common::devices::Loop;
use crate::common::{Json, Program, files_in, scratch, sizes};
use crate::skip;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A copy of an example in `dir` with sizes and times cut down.
fn scaled(name: &str, dir: &Path) -> String {
    let text = fs::read_to_string(examples().join(name)).expect("an example can be read");
    let mut scaled = String::new();
    for line in text.lines() {
        scaled += match line.split_once('=') {
            Some(("size", _)) => "size=4M",
            Some(("io_size", _)) => "io_size=1M",
            Some(("runtime", _)) => "runtime=1",
            Some(("ramp_time", _)) => "ramp_time=200ms",
            Some(("nrfiles", _)) => "nrfiles=20",
            _ => line,
        };
        scaled.push('\n');
    }
    fs::write(dir.join(name), scaled).expect("the copy can be written");
    name.to_string()
}

/// Run one and return the names of its jobs; only the copy itself may be left in the directory.
#[track_caller]
fn run(name: &str) -> Vec<String> {
    let dir = scratch();
    let file = scaled(name, dir.path());
    let copy = files_in(dir.path());
    let run = Program::under_test().run(dir.path(), ["--output-format=json", &file]).ok();
    assert_eq!(files_in(dir.path()), copy, "the example cleans up: {run}");
    let json = Json::parse(&run.stdout);
    for job in json.jobs() {
        job.check_consistency();
        assert!(job.ios().iter().sum::<u64>() > 0, "{} did something: {run}", job.name());
    }
    json.jobs().iter().map(|job| job.name().to_string()).collect()
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

#[test]
fn every_other_example() {
    let mut seen = Vec::new();
    for entry in fs::read_dir(examples()).expect("there are examples") {
        let name = entry.expect("a directory can be read").file_name().to_string_lossy().into_owned();
        if name.ends_with(".fio") && !["quickstart.fio", "block-device.fio"].contains(&name.as_str()) {
            assert!(!run(&name).is_empty());
            seen.push(name);
        }
    }
    assert!(seen.len() >= 6, "examples: {seen:?}");
}

#[test]
fn the_device_example_on_a_loop_device() {
    let dir = scratch();
    let device = match Loop::new(dir.path(), 32 << 20) {
        Ok(device) => device,
        Err(reason) => skip!("{reason}"),
    };
    let file = scaled("block-device.fio", dir.path());
    let text = fs::read_to_string(dir.path().join(&file)).expect("the copy is there");
    fs::write(dir.path().join(&file), text.replace("${DEVICE}", &device.path))
        .expect("the copy can be written");
    let program = Program::under_test();
    // As its comment says: the read jobs alone, with writing forbidden.
    let sections = ["--section=read-latency", "--section=read-iops"];
    program.run(dir.path(), ["--readonly", sections[0], sections[1], &file]).ok();
    program.run(dir.path(), ["--readonly", &file]).refused();
    program.run(dir.path(), [&file]).ok();
    assert_eq!(files_in(dir.path()).len(), 2, "the image and the job file");
    drop(device);
    assert_ne!(files_in(dir.path()), sizes(&[]));
}
