//! Runs the job files in `examples/` with smaller sizes, as their comments say, because new users start with them.

use crate::common::devices::{Loop, Mounted};
use crate::common::program::Running;
use crate::common::{Finished, Json, Program, peers, scratch};
use iolite_testing::{or_skip, write_program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn text_of(name: &str) -> String {
    fs::read_to_string(examples().join(name)).expect("an example can be read")
}

/// The entries of a directory, by name.
fn entries(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory can be read");
    let entries = entries.map(|entry| entry.expect("a directory can be read"));
    // Engines in C, and jobs that need a server, have separate directories and tests.
    let entries = entries.filter(|entry| entry.file_name() != "engines" && entry.file_name() != "servers");
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Copies all examples, with smaller sizes and times, to the paths that their comments use, and links the program
/// under its name.
fn stage(dir: &Path) {
    for made in ["examples", "bin", "mnt", "safe"] {
        fs::create_dir(dir.join(made)).expect("a directory can be made");
    }
    for name in entries(&examples()) {
        fs::write(dir.join("examples").join(&name), scaled(&name)).expect("the copy can be written");
    }
    fs::write(dir.join("data"), vec![b'x'; 64 << 10]).expect("a file can be written");
    monitor(&dir.join("bin/vmstat"));
    std::os::unix::fs::symlink(Program::under_test().path, dir.join("bin/iolite"))
        .expect("a link can be made");
}

/// Creates a stand-in for a monitoring program, which may not be installed.
fn monitor(path: &Path) {
    write_program(path, "#!/bin/sh\nexec sleep 100\n").expect("a program can be written");
}

fn scaled(name: &str) -> String {
    let mut scaled = String::new();
    for line in text_of(name).lines() {
        scaled += match line.split_once('=') {
            Some(("size", _)) => "size=4M",
            Some(("io_size", _)) => "io_size=1M",
            Some(("runtime", _)) => "runtime=500ms",
            Some(("ramp_time", _)) => "ramp_time=200ms",
            Some(("latency_window", _)) => "latency_window=50ms",
            // Even a busy machine meets this target, so the output is known.
            Some(("latency_target", _)) => "latency_target=10s",
            Some(("nrfiles", _)) => "nrfiles=40",
            _ => line,
        };
        scaled.push('\n');
    }
    scaled
}

/// The command lines in the comment at the head of an example: `iolite ...`, possibly preceded by a variable.
fn commands(name: &str) -> Vec<String> {
    let text = text_of(name);
    let comment = text.lines().map_while(|line| line.strip_prefix('#'));
    let indented = comment.filter(|line| line.starts_with("   ")).map(str::trim);
    let calls = |line: &&str| line.split(' ').find(|word| !word.contains('=')) == Some("iolite");
    indented.filter(calls).map(str::to_owned).collect()
}

/// The report of the last run, unless the command writes one itself.
const REPORT: &str = "report.json";

/// Starts a command line from a comment in a staged directory. Paths for the reader's machine are replaced, and
/// `DEVICE` becomes the device.
fn start(dir: &Path, command: &str, device: Option<&Loop>) -> Running {
    let mut line = command.replace("/mnt/home", "mnt").replace("/mnt/log", "mnt").replace("/safe", "safe");
    line = line.replace("FILE", "data").replace("/dev/sdX", "target");
    line = line.replace("/dev/nvme1n1", device.map_or("no-device-here", |device| &device.path));
    // (Subcommands have no report.)
    if line.contains(".fio") {
        line = line.replace("iolite ", &format!("iolite --output-format=json --output={REPORT} "));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-ec", &line]).current_dir(dir);
    Running::start(shell.env("PATH", format!("{}:{path}", dir.join("bin").display())))
}

fn report(dir: &Path) -> Json {
    Json::parse(&fs::read_to_string(dir.join(REPORT)).expect("there is a report"))
}

/// An example whose purpose is to leave data behind.
const LEAVES_DATA: &str = "verify-power-cut.fio";

/// Examples that need a device.
const ON_DEVICES: [&str; 3] = ["block-device.fio", "ssd-precondition.fio", "trim.fio"];

/// Examples that need a device of the virtual machine and are run there (`emulated`).
pub const ON_EMULATED_DEVICES: [&str; 10] = [
    "flash.fio",
    "nvme-commands.fio",
    "nvme-placement.fio",
    "nvme-protection.fio",
    "persistent-memory.fio",
    "persistent-memory-device.fio",
    "scsi-commands.fio",
    "scsi-ring.fio",
    "zone-append.fio",
    "zoned.fio",
];

/// An example that needs ext4.
const ON_EXT4: &str = "defragment.fio";

/// Examples that replay an existing trace.
const OF_TRACES: [&str; 2] = ["trace-block.fio", "trace-replay.fio"];

/// The names of all examples that create their own files.
fn names() -> Vec<String> {
    let mut names = entries(&examples());
    names.retain(|name| {
        let has_its_own_test =
            ON_DEVICES.contains(&name.as_str()) || ON_EMULATED_DEVICES.contains(&name.as_str());
        name.ends_with(".fio") && !has_its_own_test && *name != LEAVES_DATA && *name != ON_EXT4
    });
    names
}

/// Runs all commands of an example, and returns the names of the first command's jobs. Each command has to do I/O, and
/// only logs may be left.
#[track_caller]
fn run(name: &str) -> Vec<String> {
    run_on(name, None)
}

#[track_caller]
fn run_on(name: &str, device: Option<&Loop>) -> Vec<String> {
    let dir = scratch();
    stage(dir.path());
    let places = ["", "mnt", "examples"].map(|place| dir.path().join(place));
    let everything = || places.each_ref().map(|place| entries(place));
    let before = everything();
    let mut jobs = Vec::new();
    for command in commands(name) {
        let run = start(dir.path(), &command, device).wait().ok();
        if command.contains(&format!("examples/{name}")) {
            jobs.push(names_of_busy_jobs(dir.path(), &run));
            fs::remove_file(dir.path().join(REPORT)).expect("the report was there");
        }
    }
    let mut after = everything();
    // Some examples write logs, or files with a program's output; a slow machine has not verified everything in the time
    // given, and what was written is then in a state.
    after[0].retain(|name| {
        ![".log", ".stdout", ".stderr", "-verify.state"].iter().any(|end| name.ends_with(end))
    });
    assert_eq!(after, before, "{name} cleans up");
    jobs.swap_remove(0)
}

/// The names of the jobs in the report. Checks that all of them did I/O.
#[track_caller]
fn names_of_busy_jobs(dir: &Path, run: &Finished) -> Vec<String> {
    let json = report(dir);
    for job in json.jobs() {
        // (Engines that only work count reads without bytes.)
        if job.bytes() != [0; 3] {
            job.check_consistency();
        }
        assert!(job.ios().iter().sum::<u64>() > 0, "{} did something: {run}", job.name());
    }
    json.jobs().iter().map(|job| job.name().to_string()).collect()
}

/// Both commands of the example, with SIGINT for the power cut.
#[test]
fn data_is_checked_after_an_interruption() {
    let dir = scratch();
    stage(dir.path());
    fs::copy(examples().join(LEAVES_DATA), dir.path().join("examples").join(LEAVES_DATA)).unwrap();
    let [write, check] = &commands(LEAVES_DATA)[..] else { panic!("two commands") };
    let mut running = start(dir.path(), &format!("exec {write}"), None);
    let data = dir.path().join("power-cut.data");
    running.wait_until("writes", |_| fs::metadata(&data).is_ok_and(|data| data.len() > 0));
    std::thread::sleep(std::time::Duration::from_millis(1000));
    running.signal(libc::SIGINT);
    running.wait();
    assert!(!entries(&dir.path().join("safe")).is_empty(), "a state is kept at the safe place");
    start(dir.path(), check, None).wait().ok();
    assert!(report(dir.path()).job().ios()[0] > 0, "something was checked");
}

#[test]
fn quickstart() {
    let expected = ["sequential-write", "sequential-read", "random-read", "random-write", "mixed"];
    assert_eq!(run("quickstart.fio"), expected);
}

#[test]
fn quickstart_prints_a_group_for_each_job() {
    let dir = scratch();
    stage(dir.path());
    let run = Program::under_test().run(dir.path(), ["examples/quickstart.fio"]).ok();
    for group in 0..5 {
        assert!(run.stdout.contains(&format!("Run status group {group} (all jobs):\n")), "{run}");
    }
}

/// Runs every fourth example, beginning with this one. Four tests share the examples, so that they run in parallel.
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
    let all: Vec<String> = entries(&examples()).into_iter().filter(|name| name.ends_with(".fio")).collect();
    assert!(all.len() >= 25, "{all:?}");
    let readme = fs::read_to_string(examples().join("README.md")).expect("there is a list");
    for name in all {
        let text = text_of(&name);
        let comment = text.lines().take_while(|line| line.starts_with('#'));
        assert!(comment.count() >= 4, "{name} begins with what it is for");
        let told = commands(&name).iter().any(|command| command.contains(&format!("examples/{name}")));
        assert!(told, "{name}: how it is run");
        assert!(readme.contains(&format!("({name})")), "{name} is in the list");
    }
}

/// An option before a job file is only a default, which the file's settings override. So a command must not give an
/// option that the file sets.
#[test]
fn commands_give_no_option_that_the_file_sets() {
    for name in entries(&examples()).iter().filter(|name| name.ends_with(".fio")) {
        let text = text_of(name);
        let sets = |option: &str| text.lines().any(|line| line.split('=').next() == Some(option));
        for command in commands(name) {
            let before = command.split(".fio").next().unwrap_or_default();
            let given = before.split(' ').filter_map(|word| word.strip_prefix("--")?.split('=').next());
            for option in given {
                assert!(!sets(option), "{name} sets {option} itself: {command}");
            }
        }
    }
}

/// Options that the installed fio may lack: those of Iolite, those of 3.42 that older releases do not have, and engines for
/// which it was built without the library.
const OPTIONS_OF_OUR_OWN: [&str; 7] = [
    "batch_size",
    "lat_from_intended_start",
    "steadystate_check_interval",
    "tree_depth",
    "ioengine=dircreate",
    "ioengine=page_fault",
    "ioengine=xnvme",
];

#[test]
fn fio_understands_them_too() {
    for peer in peers!() {
        let dir = scratch();
        stage(dir.path());
        for name in names() {
            let file = format!("examples/{name}");
            // (An older fio does not accept unset variables.)
            let text = scaled(&name).replace("${TRACE}", "trace").replace("${TARGET}", "target");
            fs::write(dir.path().join(&file), &text).expect("the copy can be written");
            if !OPTIONS_OF_OUR_OWN.iter().any(|option| text.contains(option)) {
                peer.run(dir.path(), ["--parse-only", &file]).ok();
            }
        }
    }
}

#[test]
fn a_file_of_ext4_is_defragmented() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 64 << 20));
    stage(&mounted.directory);
    let [command] = &commands(ON_EXT4)[..] else { panic!("one command") };
    let run = start(&mounted.directory, &command.replace("/mnt/ext4", "mnt"), None).wait().ok();
    let jobs = names_of_busy_jobs(&mounted.directory, &run);
    assert_eq!(jobs, ["lay-out", "read-alone", "read-beside", "defragment", "remove"]);
    assert_eq!(entries(&mounted.directory.join("mnt")), ["iolite-donor.tmp"], "it says that the donor stays");
}

#[test]
fn the_device_examples_on_a_loop_device() {
    const SIZE: usize = 32 << 20;
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), SIZE as u64));
    for name in ON_DEVICES {
        fs::write(&device.path, vec![0; SIZE]).expect("the device can be written");
        assert!(!run_on(name, Some(&device)).is_empty(), "{name}");
        let content = fs::read(&device.path).expect("the device can be read");
        assert!(content.iter().any(|&byte| byte != 0), "{name} wrote to the device that was named");
    }
    stage(dir.path());
    let text = scaled("block-device.fio").replace("${DEVICE}", &device.path);
    fs::write(dir.path().join("block.fio"), text).expect("the copy can be written");
    // The refusal is described in the example's comment.
    Program::under_test().run(dir.path(), ["--readonly", "block.fio"]).refused();
}

#[test]
fn the_trace_examples_one_after_the_other() {
    let dir = scratch();
    stage(dir.path());
    let [recorder, summary] = &commands("trace-record.fio")[..] else { panic!("two commands") };
    start(dir.path(), recorder, None).wait().ok();
    let recorded = report(dir.path()).job().ios();
    start(dir.path(), summary, None).wait().ok().says("write");
    let [both] = &commands("trace-replay.fio")[..] else { panic!("one command") };
    let (_, replayer) = both.split_once(" && ").expect("a recording comes first");
    start(dir.path(), replayer, None).wait().ok();
    let json = report(dir.path());
    let replayed: Vec<_> = json.jobs().iter().map(|job| (job.name().to_string(), job.ios())).collect();
    let names = ["as-recorded", "twice-as-fast", "no-waiting"];
    assert_eq!(replayed, names.map(|name| (name.to_string(), recorded)));
    // A block trace with one read of any device, which is redirected to a file.
    use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
    let action = action::QUEUE | category::READ;
    let mut trace = Vec::new();
    let read = BlkRecord { action, bytes: 4096, ..BlkRecord::default() };
    blk::write(&mut trace, ByteOrder::Little, &read).expect("memory takes everything");
    fs::write(dir.path().join("sda.bin"), trace).expect("the trace can be written");
    let text = scaled("trace-block.fio").replace("direct=1", "direct=0");
    fs::write(dir.path().join("examples/trace-block.fio"), text).expect("the copy can be written");
    let [block] = &commands("trace-block.fio")[..] else { panic!("one command of ours") };
    start(dir.path(), block, None).wait().ok();
    assert_eq!(report(dir.path()).job().ios(), [1, 0, 0]);
}
