//! `iolite pts`: safety, whole procedures on small devices, interruptions, made-up devices whose answers are known.

use crate::common::browser::Browser;
use crate::common::devices::{Loop, Mounted, Ramfs};
use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch};
use iolite_testing::{or_skip, write_program};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

fn ours() -> Program {
    Program::own()
}

fn value(path: &Path) -> Value {
    Json::parse(&fs::read_to_string(path).unwrap()).0
}

/// The words of a small procedure on a device.
fn small(device: &str, more: &str) -> String {
    format!("pts {device} --destroy={device} --cell=10ms --class=client {more}")
}

/// The files of all steps that are done, with their content.
fn cells(results: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(results.join("cells")).into_iter().flatten();
    let named = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
    named.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn nothing_is_destroyed_by_mistake() {
    let dir = scratch();
    let content = vec![7; 32 << 20];
    fs::write(dir.path().join("file"), &content).unwrap();
    fs::write(dir.path().join("tiny"), [7; 4096]).unwrap();
    let refused = |line: &str, words: &str| {
        ours().line(dir.path(), line).refused().says(words);
    };
    refused("pts", "needs one device");
    refused("pts none", "No such file or directory");
    refused("pts .", "this is no block device");
    refused("pts file --destroy=file", "--allow-file tries it out");
    refused("pts file --allow-file", "repeat its name (there is no serial number): --destroy=file");
    refused("pts file --allow-file --destroy=other", "nothing was written");
    refused("pts tiny --allow-file --destroy=tiny", "needs 16 MiB at least");
    refused("pts file --allow-file --destroy=file --range=64m", "file has only 32 MiB");
    refused("pts file --allow-file --destroy=file --range=0%", "must be above 0%");
    refused(
        "pts file --allow-file --destroy=file --test=iops,speed",
        "\"speed\" is not one of iops, tp, lat",
    );
    refused("pts file --allow-file --destroy=file --cell=1ms", "must be at least 10ms");
    refused(
        "pts file --allow-file --destroy=file --pattern=ones",
        "not one of random, zeroes, compress:PERCENT",
    );
    refused("pts file --allow-file --destroy=file --purge=shred", "not one of auto, format, sanitize");
    refused("pts file --allow-file --destroy=file --purge=format", "this is for NVMe namespaces");
    refused("pts file --allow-file --destroy=file --resume", "there is no procedure that was interrupted");
    refused("pts file --allow-file --destroy=file --depth=9999", "must be at most 4096");
    // Another procedure is not resumed, and none is begun.
    fs::create_dir(dir.path().join("file.pts")).unwrap();
    fs::write(dir.path().join("file.pts/plan.json"), "{}").unwrap();
    refused("pts file --allow-file --destroy=file --resume", "nothing was begun: file.pts is another one:");
    fs::remove_dir_all(dir.path().join("file.pts")).unwrap();
    let shown = ours().line(dir.path(), "pts file --allow-file --show-job --test=all --cell=10ms").ok();
    fs::write(dir.path().join("shown.fio"), &shown.stdout).unwrap();
    ours().line(dir.path(), "--parse-only shown.fio").ok();
    for words in
        ["rw=randrw", "rwmixread=65", "startdelay=", "bssplit=", "[dirth-01-t32-q32]", "[iops-01-0r-4k]"]
    {
        assert!(shown.stdout.contains(words), "{words}: {shown}");
    }
    assert!(fs::read(dir.path().join("file")).unwrap() == content, "the file is as it was");
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", "shown.fio", "tiny"], "nothing was made");
}

#[test]
fn a_device_in_use_is_refused() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 64 << 20));
    fs::write(mounted.directory.join("precious"), "data").unwrap();
    let run = ours().line(dir.path(), &small(&mounted.device.path, "")).refused();
    run.says("it is mounted on");
    assert_eq!(fs::read_to_string(mounted.directory.join("precious")).unwrap(), "data");
}

/// Locks are those of flock(2), which also keep udev and partitioning tools away.
#[test]
fn a_device_of_another_procedure_is_refused() {
    let dir = scratch();
    let file = File::create(dir.path().join("file")).unwrap();
    file.set_len(32 << 20).unwrap();
    file.try_lock().unwrap();
    let line = "pts file --allow-file --destroy=file --quick --output=r";
    ours().line(dir.path(), line).refused().says("another process has locked it");
    drop(file);
    // A running one has it, too.
    let mut running = ours().start(dir.path(), line.split_whitespace());
    running.wait_until("its first step", |running| running.output().contains("all data on it is lost"));
    let second = line.replace("--output=r", "--output=s");
    ours().line(dir.path(), &second).refused().says("another process has locked it");
    assert!(!dir.path().join("s").exists());
    running.signal(libc::SIGINT);
    running.wait();
}

#[test]
fn the_file_below_a_loop_device_is_refused() {
    let dir = scratch();
    let _device = or_skip!(Loop::new(dir.path(), 32 << 20));
    let run = ours().line(dir.path(), "pts loop.img --allow-file --destroy=loop.img").refused();
    run.says("is built on it; a file in use is never written to");
}

#[test]
fn a_whole_procedure_on_a_loop_device() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 32 << 20));
    let line = small(&device.path, "--test=tp,lat,wsat --range=16m --output=r --save --store=runs.db");
    let run = ours().line(dir.path(), &line);
    // Whether it becomes steady depends on what else the machine does.
    assert!([0, 1].contains(&run.code()), "{run}");
    let result = value(&dir.path().join("r/result.json"));
    assert_eq!(
        (&result["iolite pts"], &result["complete"], &result["conforming"]),
        (&1.into(), &true.into(), &false.into())
    );
    let header = &result["header"];
    assert_eq!(header["device"]["size_bytes"], 32 << 20);
    assert_eq!(header["parameters"]["range_bytes"], 16 << 20);
    assert_eq!(header["purges"]["lat"], "discards of all blocks");
    assert!(header["write_cache"].as_str().unwrap().starts_with("not settable"), "{header}");
    assert!(header["machine"]["kernel"].is_string(), "{header}");
    let names: Vec<&str> =
        result["tests"].as_array().unwrap().iter().map(|test| test["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tp-1024k", "lat", "wsat"]);
    for (test, count) in result["tests"].as_array().unwrap().iter().zip([2, 9]) {
        let rounds = test["rounds"].as_u64().unwrap() as usize;
        let matrix = test["matrix"].as_array().unwrap();
        assert_eq!(matrix.len(), count);
        assert!(matrix.iter().all(|cell| cell["rounds"]["iops"].as_array().unwrap().len() == rounds));
        // Preconditioning writes twice the capacity.
        assert_eq!(test["preconditioning"]["written_bytes"], 64 << 20);
        let is_reached = test["steady"]["reached"] == true;
        assert!(is_reached || rounds == 25, "{test}");
        let told = if is_reached { "Steady state in rounds" } else { "No steady state in 25 rounds" };
        assert!(run.stdout.contains(told), "{run}");
    }
    let all_steady =
        result["tests"].as_array().unwrap()[..2].iter().all(|test| test["steady"]["reached"] == true);
    assert_eq!(run.code() == 0, all_steady, "the status says whether all became steady");
    let saturation = result["tests"][2]["cells"].as_array().unwrap();
    let last = saturation.last().unwrap()["written_bytes"].as_u64().unwrap();
    assert!(
        last >= 4 * (32 << 20) || saturation.len() == 1440,
        "{last} bytes in {} minutes",
        saturation.len()
    );
    assert!(run.stdout.contains("NOT CONFORMING: cells do not take a minute"), "{run}");
    // It is finished: the same command begins no other one here, and there is nothing to resume.
    ours().line(dir.path(), &line).refused().says("this pts was finished");
    ours().line(dir.path(), &format!("{line} --resume")).refused().says("this pts was finished");
    let table = ours().line(dir.path(), "compare r r/result.json").ok();
    assert!(table.stdout.contains("0/100 1024 KiB") && table.stdout.contains("+0.00%"), "{table}");
    assert!(table.stdout.contains("Note: base does not conform"), "{table}");
    let compared = ours().line(dir.path(), "compare r r --output-format=json").ok();
    assert_eq!(
        Json::parse(&compared.stdout).0["cells"].as_array().unwrap().len(),
        // Throughput, latency with its long run at the end, and write saturation.
        2 + (2 * 9 + 1) + 1,
        "{compared}"
    );
    ours().line(dir.path(), "compare r r --output-format=csv").ok();
    // It is in the store of runs as well.
    ours().line(dir.path(), "runs --store=runs.db").ok().says("pts: tp-1024k, lat, wsat");
    ours().line(dir.path(), "runs --store=runs.db show 1").ok().says("by iolite pts").says("NOT CONFORMING");
    let kept = ours().line(dir.path(), "compare r run:1 --store=runs.db --output-format=json").ok();
    assert_eq!(Json::parse(&kept.stdout).0["cells"], Json::parse(&compared.stdout).0["cells"]);
    ours().line(dir.path(), "runs --store=runs.db show 1 --output=kept.html").ok();
    let kept = fs::read_to_string(dir.path().join("kept.html")).unwrap();
    assert!(kept.contains("<title>PTS: "), "{kept}");
    ours().line(dir.path(), "compare r r --fail-if=iops<-5%").refused().says("have no verdicts");
    let page = fs::read_to_string(dir.path().join("r/result.html")).unwrap();
    assert!(page.contains("(not conforming)</title>") && page.contains("cells do not take a minute"));
    let browser = or_skip!(Browser::start());
    browser.open(&dir.path().join("r/result.html"));
    browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
    browser.check("pts");
    browser.check_tables("pts");
}

/// Kills the program as soon as this many steps are done, and waits until its workers are gone.
fn kill(mut running: Running, results: &Path, steps: usize) {
    running.wait_until("some steps", |_| cells(results).len() >= steps);
    assert!(!running.has_ended(), "it ended before it could be killed: {}", running.output());
    running.signal(libc::SIGKILL);
    running.wait();
}

/// What is there stays as it is, the interrupted step is repeated, and at the end no step is missing.
fn check_resumed(dir: &Path, line: &str, kills: &[usize]) -> Finished {
    let results = dir.join("r");
    let mut running = ours().start(dir, line.split_whitespace());
    let mut before = BTreeMap::new();
    for steps in kills {
        kill(running, &results, *steps);
        let now = cells(&results);
        assert!(before.iter().all(|(name, content)| now.get(name) == Some(content)), "a step was repeated");
        before = now;
        ours().line(dir, line).refused().says("--resume continues it");
        let line = format!("{line} --resume");
        running = ours().start(dir, line.split_whitespace());
    }
    let run = running.wait();
    let now = cells(&results);
    assert!(
        before.iter().all(|(name, content)| now.get(name) == Some(content)),
        "a step was repeated: {run}"
    );
    run
}

#[test]
fn a_killed_procedure_goes_on_where_it_was() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 32 << 20));
    let line = small(&device.path, "--test=lat --output=r");
    let mut running = ours().start(dir.path(), line.split_whitespace());
    let page = dir.path().join("r/result.html");
    running.wait_until("a round is on the page", |_| {
        fs::read_to_string(&page).is_ok_and(|page| page.contains("there is no steady state yet"))
    });
    running.signal(libc::SIGKILL);
    running.wait();
    fs::remove_dir_all(dir.path().join("r")).unwrap();
    // After the purge, in the first round, and in the fourth.
    let run = check_resumed(dir.path(), &line, &[1, 4, 30]);
    assert!([0, 1].contains(&run.code()), "{run}");
    let result = value(&dir.path().join("r/result.json"));
    let rounds = result["tests"][0]["rounds"].as_u64().unwrap() as usize;
    // The purge, the preconditioning, the rounds, and the histogram.
    let names: Vec<String> = cells(&dir.path().join("r")).into_keys().collect();
    assert_eq!(names.len(), 2 + 9 * rounds + 1, "{names:?}");
    assert!(names.iter().all(|name| !name.contains("again")), "nothing was begun again: {names:?}");
    let interruptions = result["interruptions"].as_array().unwrap();
    assert_eq!(interruptions.len(), 3, "{interruptions:?}");
    let words = interruptions[2].as_str().unwrap();
    assert!(
        words.contains("is repeated; the device was not written meanwhile (the counter of the kernel)")
            || words.contains("it goes on with"),
        "{words}"
    );
    let deviations = result["deviations"].to_string();
    assert!(deviations.contains("lat was interrupted, and went on"), "{deviations}");
}

#[test]
fn a_device_that_was_written_meanwhile_is_preconditioned_again() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 64 << 20));
    let line = small(&device.path, "--test=lat --output=r");
    kill(ours().start(dir.path(), line.split_whitespace()), &dir.path().join("r"), 6);
    // More than a killed case could have written: the notes have its rate.
    let state = value(&dir.path().join("r/state.json"));
    let rate = state["fastest_bytes"].as_u64().unwrap();
    let times = (rate * 3 / (32 << 20) + 2).to_string();
    let copy =
        "for _ in $(seq $2); do dd if=/dev/zero of=$1 bs=1M count=32 oflag=direct status=none || exit; done";
    let written = Command::new("sh").args(["-c", copy, "sh", &device.path, &times]).status().unwrap();
    assert!(written.success());
    let run = ours().line(dir.path(), &format!("{line} --resume"));
    assert!([0, 1].contains(&run.code()), "{run}");
    assert!(run.stderr.contains("all of it is repeated, from the purge and the preconditioning on"), "{run}");
    assert!(run.stderr.contains("were written to it meanwhile"), "{run}");
    let names: Vec<String> = cells(&dir.path().join("r")).into_keys().collect();
    for name in ["lat-again2-purge.json", "lat-again2-wipc.json", "lat-again2-h.json"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
}

#[test]
fn writes_of_others_during_a_cell_are_told() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 32 << 20));
    let line = format!("pts {0} --destroy={0} --cell=2s --class=client --test=lat --output=r", device.path);
    let mut running = ours().start(dir.path(), line.split_whitespace());
    running.wait_until("a round begins", |_| cells(&dir.path().join("r")).len() >= 2);
    let copy = "while dd if=/dev/zero of=$1 bs=4k count=1 oflag=direct status=none; do sleep 0.1; done";
    let mut others = Command::new("sh").args(["-c", copy, "sh", &device.path]).spawn().unwrap();
    running.wait_until("it is told", |running| running.output().contains("to the device during lat-01-"));
    others.kill().unwrap();
    others.wait().unwrap();
    running.signal(libc::SIGINT);
    let run = running.wait();
    run.says("others wrote");
    let state = value(&dir.path().join("r/state.json"));
    assert!(!state["written_by_others"].as_array().unwrap().is_empty(), "{state}");
}

#[test]
fn a_signal_and_a_full_disk_lose_no_more_than_a_cell() {
    let dir = scratch();
    fs::write(dir.path().join("file"), vec![1; 16 << 20]).unwrap();
    let place = or_skip!(Ramfs::tmpfs(dir.path(), 1 << 20));
    let results = place.directory.join("r");
    let line =
        format!("pts file --allow-file --destroy=file --cell=10ms --test=lat --output={}", results.display());
    let mut running = ours().start(dir.path(), line.split_whitespace());
    running.wait_until("some cells", |_| cells(&results).len() > 3);
    running.signal(libc::SIGINT);
    let run = running.wait();
    assert_eq!(run.code(), 128, "{run}");
    run.says("--resume continues");
    // Whatever room there is, is taken.
    let ballast = place.directory.join("ballast");
    let _ = fs::write(&ballast, vec![0; 1 << 20]);
    let resume = format!("{line} --resume");
    let run = ours().line(dir.path(), &resume);
    assert_eq!(run.code(), 1, "{run}");
    assert!(run.stderr.contains("No space left on device") && run.stderr.contains("r/"), "{run}");
    let kept = cells(&results);
    assert!(kept.len() > 3, "{run}");
    fs::remove_file(&ballast).unwrap();
    // What is on the disk is enough: 9 KiB for each of at most 228 cells are more than it has, so it may fill up again.
    let run = ours().line(dir.path(), &resume);
    let now = cells(&results);
    assert!(
        kept.iter().all(|(name, content)| now.get(name) == Some(content)) && now.len() > kept.len(),
        "{run}"
    );
}

/// A device served by nbdkit and shown as a file by nbdfuse. Its script counts rounds: reads, then writes.
struct MadeUp {
    server: std::process::Child,
    file: std::path::PathBuf,
    state: std::path::PathBuf,
}

/// Its pauses are multiples of the time that it takes itself, so that its rounds differ as much on a busy machine.
const SCRIPT: &str = r#"#!/bin/bash
begun=${EPOCHREALTIME/[.,]/}
pause() {
    local spent=$((${EPOCHREALTIME/[.,]/} - begun))
    spent=$(($1 * (spent > 5000 ? spent : 5000)))
    sleep $((spent / 1000000)).$(printf %06d $((spent % 1000000)))
}
case "$1" in
open) echo ;;
get_size) echo 16777216 ;;
can_write) exit 0 ;;
thread_model) echo serialize_all_requests ;;
pread)
    : >STATE/reading
    dd if=STATE/data bs=$3 count=1 skip=$4 iflag=skip_bytes,fullblock status=none
    ;;
pwrite)
    if [ -e STATE/reading ]; then rm STATE/reading; echo >>STATE/rounds; fi
    dd of=STATE/data bs=1M seek=$4 oflag=seek_bytes conv=notrunc status=none
    n=$(stat -c %s STATE/rounds)
    case $(<STATE/mode):$n in
    *:0 | *:1) ;;
    never:*) ((n % 2)) || pause 8 ;;
    *:2) pause 4 ;;
    *) pause 16 ;;
    esac
    ;;
*) exit 2 ;;
esac
"#;

impl MadeUp {
    /// Starts it. `mode`: `never` is slow in each second round; otherwise it is fast in the first round, slower in the second, and
    /// slow from the third on.
    fn start(dir: &Path, mode: &str) -> Result<MadeUp, String> {
        let state = dir.join("state");
        let mount = dir.join("mount");
        [&state, &mount].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::write(state.join("data"), vec![0; 16 << 20]).unwrap();
        fs::write(state.join("rounds"), "").unwrap();
        fs::write(state.join("mode"), mode).unwrap();
        let script = dir.join("device");
        let text = SCRIPT.replace("STATE", &state.display().to_string());
        write_program(&script, &text).expect("the script can be written");
        let file = mount.join("device");
        fs::write(&file, "").unwrap();
        // nbdfuse ends with its file system, and nbdkit with it.
        let mut command = Command::new("nbdfuse");
        command.arg(&file).args(["--command", "nbdkit", "-s", "--exit-with-parent", "sh"]).arg(&script);
        let server = command.spawn().map_err(|error| format!("nbdfuse cannot be started: {error}"))?;
        let mut made = MadeUp { server, file, state };
        for _ in 0..1000 {
            if fs::metadata(&made.file).is_ok_and(|found| found.len() > 0) {
                return Ok(made);
            }
            if made.server.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("nbdfuse shows no file; it needs root, /dev/fuse and nbdkit".to_owned())
    }

    /// Runs the throughput test on it.
    fn test(&self, dir: &Path) -> (Finished, Value) {
        let device = self.file.display();
        let line = format!(
            "pts {device} --allow-file --destroy={device} --class=client --range=100% --test=tp --depth=2 --cell=100ms --purge=none --output=r"
        );
        let run = ours().line(dir, &line);
        assert!(run.stderr.contains("the device is not purged"), "{run}");
        let result = value(&dir.join("r/result.json"));
        (run, result["tests"][0].clone())
    }

    fn rounds(&self) -> u64 {
        fs::metadata(self.state.join("rounds")).unwrap().len()
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        for program in ["fusermount3", "fusermount"] {
            if Command::new(program)
                .args(["-u"])
                .arg(&self.file)
                .status()
                .is_ok_and(|status| status.success())
            {
                break;
            }
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// It falls by factors until the third round, so no window before that is steady, however busy this machine is.
#[test]
fn a_device_that_settles_is_found_steady() {
    let dir = scratch();
    let device = or_skip!(MadeUp::start(dir.path(), "settles"));
    let (run, test) = device.test(dir.path());
    let steady = &test["steady"];
    let rounds = test["rounds"].as_u64().unwrap();
    assert_eq!(device.rounds(), rounds, "the device saw as many rounds");
    if steady["reached"] == true {
        let first = steady["window"]["first"].as_u64().unwrap();
        assert!(first >= 3 && first + 4 == rounds, "{steady}");
        assert_eq!(run.code(), 0, "{run}");
    } else {
        assert_eq!((rounds, run.code()), (25, 1), "{run}");
    }
    // By the rule, it is the first window that is steady: all values are there.
    let values: Vec<f64> =
        steady["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let is_steady = |window: &[f64]| {
        let average = window.iter().sum::<f64>() / 5.0;
        let spread =
            window.iter().copied().fold(0.0, f64::max) - window.iter().copied().fold(f64::MAX, f64::min);
        let rise: f64 =
            window.iter().zip([-2.0, -1.0, 0.0, 1.0, 2.0]).map(|(value, place)| value * place).sum::<f64>()
                / 10.0;
        spread <= 0.2 * average && (4.0 * rise).abs() <= 0.1 * average
    };
    let found = values.windows(5).position(is_steady).map(|place| place as u64 + 1);
    let told = steady["window"]["first"].as_u64().filter(|_| steady["reached"] == true);
    assert_eq!(found, told, "{steady}");
}

#[test]
fn a_device_that_never_settles_is_told() {
    let dir = scratch();
    let device = or_skip!(MadeUp::start(dir.path(), "never"));
    let (run, test) = device.test(dir.path());
    assert_eq!((&test["steady"]["reached"], &test["rounds"]), (&false.into(), &25.into()), "{run}");
    assert_eq!((run.code(), device.rounds()), (1, 25), "{run}");
    assert!(
        run.stdout.contains("No steady state in 25 rounds")
            && run.stdout.contains("not those of a steady state"),
        "{run}"
    );
    let page = fs::read_to_string(dir.path().join("r/result.html")).unwrap();
    assert!(page.contains("<p class=\"notice error\">No steady state in 25 rounds"));
}
