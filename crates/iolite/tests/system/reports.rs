//! The file of `--output`: an old report is only replaced by a complete new one, whatever happens.

use super::signals::descendants;
use crate::common::devices::Mounted;
use crate::common::program::Running;
use crate::common::{Json, Program, files_in, scratch};
use iolite_testing::or_skip;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

const FORMATS: [&str; 5] = ["normal", "json", "json+", "terse", "normal,json"];
const OLD: &str = "what an earlier run has found\n";
const LONG: &str = "--name=j --ioengine=null --size=1M --time_based --runtime=100 --rate_iops=1000";

/// Begins a long run whose report will replace an old one.
fn begin(dir: &Path, format: &str, more: &str) -> Running {
    fs::write(dir.join("report"), OLD).unwrap();
    let line = format!("--output=report --output-format={format} --debug=mutex {LONG} {more}");
    let mut running = Program::under_test().start(dir, line.split_whitespace());
    running.wait_until("it runs", |running| running.output().contains("gate opened"));
    running
}

#[test]
fn a_killed_run_leaves_the_old_report() {
    for format in FORMATS {
        let dir = scratch();
        let running = begin(dir.path(), format, "");
        running.signal(libc::SIGKILL);
        running.wait();
        assert_eq!(fs::read_to_string(dir.path().join("report")).unwrap(), OLD, "{format}");
        // The next run keeps the unfinished file, which may be a user's.
        let line = format!("--output=report --output-format={format} --name=j --ioengine=null --size=64k");
        Program::under_test().line(dir.path(), &line).ok();
        let report = fs::read_to_string(dir.path().join("report")).unwrap();
        assert!(!report.contains(OLD) && report.contains('j'), "{format}: {report}");
        let names: Vec<String> = files_in(dir.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["report", "report.unfinished"], "{format}");
    }
}

/// Status reports go to the file in which the new report grows, so that a reader can follow everything there.
#[test]
fn the_new_report_can_be_followed() {
    for format in FORMATS {
        let dir = scratch();
        let mut running = begin(dir.path(), format, "");
        let path = |name: &str| dir.path().join(name);
        let grown = || fs::metadata(path("report.unfinished")).unwrap().len();
        let (mut followed, before) = (fs::File::open(path("report.unfinished")).unwrap(), grown());
        let mut seen = String::new();
        running.signal(libc::SIGUSR1);
        running.wait_until("the status", |_| grown() > before);
        assert_eq!(fs::read_to_string(path("report")).unwrap(), OLD, "{format}");
        followed.read_to_string(&mut seen).unwrap();
        assert!(!seen.is_empty());
        running.signal(libc::SIGINT);
        assert_eq!(running.wait().code(), 128);
        followed.read_to_string(&mut seen).unwrap();
        assert_eq!(fs::read_to_string(path("report")).unwrap(), seen, "{format}");
        assert!(!path("report.unfinished").exists(), "{format}");
    }
}

/// If there is no old report, the new one grows in the file of `--output` itself.
#[test]
fn a_report_that_replaces_nothing_grows_in_place() {
    for before in [None, Some("")] {
        let dir = scratch();
        let path = dir.path().join("report");
        before.map_or(Ok(()), |text| fs::write(&path, text)).unwrap();
        let line = format!("--output=report {LONG}");
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        running.wait_until("its beginning", |_| {
            fs::read_to_string(&path).is_ok_and(|text| text.contains("Starting 1 process"))
        });
        running.signal(libc::SIGINT);
        assert_eq!(running.wait().code(), 128);
        assert!(fs::read_to_string(&path).unwrap().contains("Run status group 0"));
    }
}

/// On a full disk, the old report is kept, and the new one goes to standard output.
#[test]
fn a_full_disk_costs_no_report() {
    for format in FORMATS {
        let dir = scratch();
        let mounted = or_skip!(Mounted::new(dir.path(), 4 << 20));
        let path = |name: &str| mounted.directory.join(name);
        fs::write(path("report"), OLD).unwrap();
        let mut filler = fs::File::create(path("filler")).unwrap();
        // Fills the disk to the last block.
        while filler.write_all(&[1; 1024]).and_then(|()| filler.sync_all()).is_ok() {}
        drop(filler);
        let line =
            format!("--output=mounted/report --output-format={format} --name=j --ioengine=null --size=64k");
        let run = Program::under_test().line(dir.path(), &line).refused();
        assert_eq!(fs::read_to_string(path("report")).unwrap(), OLD, "{run}");
        assert!(run.stderr.contains("No space left on device"), "{run}");
        assert!(run.stderr.contains("it is on standard output, and the old one is kept"), "{run}");
        assert!(!path("report.unfinished").exists(), "{run}");
        if format == "json" {
            assert_eq!(Json::parse(&run.stdout).job().ios(), [16, 0, 0]);
        }
        assert!(!run.stdout.is_empty(), "{run}");
        drop(mounted);
    }
}

/// A run that cannot begin has no normal report.
#[test]
fn a_run_that_is_refused_leaves_the_old_report() {
    let dir = scratch();
    fs::write(dir.path().join("report"), OLD).unwrap();
    let line = "--output=report --name=j --filename=none/at/all --rw=read --size=4k --allow_file_create=0";
    Program::under_test().line(dir.path(), line).refused();
    assert_eq!(fs::read_to_string(dir.path().join("report")).unwrap(), OLD);
    // The temporary file must not be a file that the run needs.
    let line = "--output=report --name=j --filename=report.unfinished --rw=write --size=4k";
    let run = Program::under_test().line(dir.path(), line).refused();
    run.says("the report would grow in")
        .says("report.unfinished, which is the data of job j; give another name");
}

/// If the controller is killed, all processes of the run end.
#[test]
fn a_killed_controller_takes_all_with_it() {
    let dir = scratch();
    let running = begin(
        dir.path(),
        "json",
        "--numjobs=3 --name=t --ioengine=null --size=1M --time_based --runtime=100 --thread",
    );
    assert!(descendants(running.pid()).len() > 4);
    running.signal(libc::SIGKILL);
    // (This checks that no process is left.)
    running.wait();
}
