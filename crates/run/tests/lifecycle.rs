//! The lives of processes: how they end when they are killed, interrupted, or fail.
//!
//! A run forks and takes signals, so it needs a process with one thread: this file has its own `main` in place of the
//! test harness, and runs one scene after the other. An alarm ends it if it hangs.

use iolite_host::ThisMachine;
use iolite_options::engines::engine;
use iolite_options::{ExtentOptions, Fallocate, JobOptions, LockFile, ReadWrite, RunOptions, SizeValue};
use iolite_plan::Plan;
use iolite_run::{Outcome, Prepared, Settings};
use iolite_stats::{Event, EventKind, JobError, Snapshot};
use iolite_types::Direction;
use std::ffi::CString;
use std::path::Path;
use std::time::Duration;

/// Far more than everything here takes together, also on a machine that hardly lets it run.
const HANGING_S: u32 = 600;

/// Acts at certain moments, and records the events.
#[derive(Default)]
struct Scene<'a> {
    on_note: Option<&'a dyn Fn()>,
    on_snapshot: Option<&'a dyn Fn(&Snapshot)>,
    failures: Vec<JobError>,
    reports: usize,
}

impl Scene<'_> {
    fn take(&mut self, event: Event) {
        match event.kind {
            EventKind::Note(_) => self.on_note.iter().for_each(|act| act()),
            EventKind::Snapshot(snapshot) => self.on_snapshot.iter().for_each(|act| act(&snapshot)),
            EventKind::Failed { error, .. } => self.failures.push(error),
            EventKind::Status(_) => self.reports += 1,
            _ => {}
        }
    }
}

fn job(name: &str, change: impl FnOnce(&mut JobOptions)) -> JobOptions {
    let mut options = JobOptions {
        name: name.into(),
        ioengine: "null".into(),
        extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
        ..JobOptions::default()
    };
    change(&mut options);
    options
}

/// A job that would run for minutes.
fn long(options: &mut JobOptions) {
    options.schedule.time_based = true;
    options.schedule.runtime = 300_000_000;
}

fn run(jobs: Vec<JobOptions>, scene: &mut Scene<'_>) -> Outcome {
    let machine = ThisMachine::new();
    let plan = Plan::build(jobs, &RunOptions::default(), &machine).expect("the plan is in order");
    let settings = Settings { eta_interval: Some(Duration::from_millis(20)), ..Settings::default() };
    Prepared::new(&plan, &machine)
        .expect("the files are in order")
        .perform(settings, &mut |event| scene.take(event))
        .expect("it can be run")
}

/// A signal may come when its run has ended and has unblocked the signals: then it is lost, and must not end this
/// process. (An ignored signal still reaches a process that blocks it, as a run does.)
fn survive_late_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
        // SAFETY: no handler is installed.
        assert_ne!(unsafe { libc::signal(signal, libc::SIG_IGN) }, libc::SIG_ERR);
    }
}

fn signal_self(signal: i32) {
    // SAFETY: no pointers are involved.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// The letters of the workers' states.
fn states(snapshot: &Snapshot) -> String {
    snapshot.workers.iter().map(|worker| worker.state).collect()
}

/// Whether a worker has done I/O. (A running worker may not have received any CPU time yet.)
fn has_begun(snapshot: &Snapshot) -> bool {
    snapshot.workers.iter().any(|worker| worker.counters[Direction::Read].ios > 0)
}

fn children() -> Vec<i32> {
    let text = std::fs::read_to_string("/proc/thread-self/children").expect("the kernel tells children");
    text.split_whitespace().map(|pid| pid.parse().expect("a number")).collect()
}

fn a_killed_spawner_ends_the_run() {
    for thread in [false, true] {
        let kill = |snapshot: &Snapshot| {
            if has_begun(snapshot) {
                // SAFETY: no pointers are involved; the children are this run's own.
                children().into_iter().for_each(|pid| unsafe {
                    libc::kill(pid, libc::SIGKILL);
                });
            }
        };
        let mut scene = Scene { on_snapshot: Some(&kill), ..Scene::default() };
        let behind = job("behind", |o| o.schedule.stonewall = true);
        let endless = job("a", |o| {
            long(o);
            o.schedule.thread = thread;
        });
        let outcome = run(vec![endless, behind], &mut scene);
        assert!(outcome.failed);
        assert_eq!(scene.failures.len(), 2, "what never began has failed too: {:?}", scene.failures);
        assert!(outcome.report.jobs[0].directions[Direction::Read].ios > 0, "what was measured is kept");
    }
}

/// Bytes that a file in this directory may have.
fn room_in(directory: &Path) -> u64 {
    let path = CString::new(directory.to_str().expect("a plain name")).expect("no zero in it");
    // SAFETY: the structure is plain data, valid as zeros, and filled in by the call; a terminated string.
    let (result, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found), found)
    };
    assert_eq!(result, 0);
    found.f_bavail * found.f_frsize
}

fn signals_end_the_layout(directory: &Path) {
    // A file that does not fit is refused, and the layout may end before a signal is noticed.
    let size = room_in(directory) / 2;
    for times in 1..=2 {
        let file = directory.join("large");
        let interrupt = || (0..times).for_each(|_| signal_self(libc::SIGINT));
        let mut scene = Scene { on_note: Some(&interrupt), ..Scene::default() };
        let outcome = run(
            vec![job("a", |o| {
                o.ioengine = "psync".into();
                o.files.filename = vec![file.display().to_string()];
                o.extent.size = Some(SizeValue::Bytes(size));
                o.files.fallocate = Fallocate::None;
            })],
            &mut scene,
        );
        assert_eq!(outcome.signal, Some(libc::SIGINT), "{:?}", scene.failures);
        assert!(std::fs::metadata(&file).map_or(0, |found| found.len()) < size);
        // It may have ended before the file was begun.
        if file.exists() {
            std::fs::remove_file(&file).expect("a file can be removed");
        }
    }
}

fn signals_before_anything_runs() {
    let waiting = || {
        job("a", |o| {
            o.schedule.startdelay = Some(iolite_options::Range { low: 300_000_000, high: 300_000_000 })
        })
    };
    let interrupt = |_: &Snapshot| {
        signal_self(libc::SIGUSR1);
        signal_self(libc::SIGTERM);
    };
    let mut scene = Scene { on_snapshot: Some(&interrupt), ..Scene::default() };
    let outcome = run(vec![waiting()], &mut scene);
    assert_eq!(outcome.signal, Some(libc::SIGTERM));
    assert!(!outcome.failed);
    assert_eq!(scene.reports, 1);
}

fn files_that_cannot_be_made_stop_their_job_only(directory: &Path) {
    let on_disk = |name: &str, path: String| {
        job(name, |o| {
            o.ioengine = "psync".into();
            o.pattern.rw = ReadWrite::Write;
            o.files.filename = vec![path];
        })
    };
    let good = directory.join("good").display().to_string();
    let mut scene = Scene::default();
    let outcome = run(vec![on_disk("bad", "/proc/none".into()), on_disk("good", good)], &mut scene);
    assert!(outcome.failed);
    let [failure] = scene.failures.as_slice() else { panic!("one failure: {:?}", scene.failures) };
    assert_eq!(failure.errno, libc::ENOENT);
    assert_eq!(failure.what, "func=layout: /proc/none: No such file or directory");
    let written: Vec<u64> =
        outcome.report.jobs.iter().map(|job| job.directions[Direction::Write].bytes).collect();
    assert_eq!(written, [0, 1 << 20]);
}

fn a_wait_ends_when_the_run_is_to_end(directory: &Path) {
    let path = directory.join("pipe");
    let name = CString::new(path.to_str().expect("a plain name")).expect("no zero in it");
    // SAFETY: a terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    // Both ends are open and nothing is written: reading waits for ever.
    let _held = std::fs::File::options().read(true).write(true).open(&path).expect("a pipe can be opened");
    for thread in [false, true] {
        let interrupt = |snapshot: &Snapshot| {
            if states(snapshot) == "R" {
                signal_self(libc::SIGINT);
            }
        };
        let mut scene = Scene { on_snapshot: Some(&interrupt), ..Scene::default() };
        let outcome = run(
            vec![job("a", |o| {
                o.ioengine = "sync".into();
                o.files.filename = vec![path.display().to_string()];
                o.schedule.thread = thread;
            })],
            &mut scene,
        );
        assert_eq!(outcome.signal, Some(libc::SIGINT));
        assert_eq!(scene.failures, [], "to be interrupted is not a failure");
    }
}

fn locks_on_several_files_never_wait_for_each_other(directory: &Path) {
    let names: Vec<String> =
        (0..2).map(|n| directory.join(format!("locked{n}")).display().to_string()).collect();
    for lockfile in [LockFile::Exclusive, LockFile::ReadWrite] {
        let outcome = run(
            vec![job("a", |o| {
                o.choose_engine(engine("libaio").expect("it is in the catalogue"));
                o.depth.iodepth = 8;
                o.pattern.rw = ReadWrite::RandRw;
                o.files.filename = names.clone();
                o.files.lockfile = lockfile;
                o.schedule.numjobs = 4;
            })],
            &mut Scene::default(),
        );
        assert!(!outcome.failed);
    }
}

fn a_time_based_job_syncs_once_at_its_end(directory: &Path) {
    let file = directory.join("synced");
    let phases = std::cell::RefCell::new(String::new());
    let look = |snapshot: &Snapshot| phases.borrow_mut().push_str(&states(snapshot));
    let mut scene = Scene { on_snapshot: Some(&look), ..Scene::default() };
    let outcome = run(
        vec![job("a", |o| {
            o.ioengine = "psync".into();
            o.pattern.rw = ReadWrite::Write;
            o.files.filename = vec![file.display().to_string()];
            o.extent.size = Some(SizeValue::Bytes(64 << 10));
            o.schedule.time_based = true;
            o.schedule.runtime = 400_000;
            o.durability.end_fsync = true;
            o.files.unlink_each_loop = true;
        })],
        &mut scene,
    );
    assert!(!outcome.failed);
    let phases = phases.into_inner();
    let first_sync = phases.find('F').unwrap_or(phases.len());
    assert!(!phases[first_sync..].contains('W'), "{phases}");
    assert!(file.exists(), "there is no second loop to unlink it for");
}

fn nothing_is_left() {
    // Orphans of a run become children of this process.
    // SAFETY: no pointers are involved.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
    for interrupted in [false, true] {
        let twice = |snapshot: &Snapshot| {
            if interrupted && states(snapshot).contains('R') {
                signal_self(libc::SIGINT);
                signal_self(libc::SIGINT);
            }
        };
        let mut scene = Scene { on_snapshot: Some(&twice), ..Scene::default() };
        let of = |name: &str, thread: bool| {
            job(name, |o| {
                o.schedule.numjobs = 3;
                o.schedule.thread = thread;
                if interrupted {
                    long(o);
                }
            })
        };
        run(vec![of("processes", false), of("threads", true)], &mut scene);
        assert_eq!(children(), [0; 0]);
    }
}

fn main() {
    // SAFETY: no pointers are involved. The signal has no handler, so it ends this process.
    unsafe { libc::alarm(HANGING_S) };
    survive_late_signals();
    let directory = tempfile::tempdir().expect("a directory can be made");
    let directory = directory.path();
    let scenes: [(&str, &dyn Fn()); 8] = [
        ("a killed spawner ends the run", &a_killed_spawner_ends_the_run),
        ("signals end the layout", &|| signals_end_the_layout(directory)),
        ("signals before anything runs", &signals_before_anything_runs),
        ("files that cannot be made stop their job only", &|| {
            files_that_cannot_be_made_stop_their_job_only(directory)
        }),
        ("a wait ends when the run is to end", &|| a_wait_ends_when_the_run_is_to_end(directory)),
        ("locks never wait for each other", &|| locks_on_several_files_never_wait_for_each_other(directory)),
        ("a time-based job syncs once", &|| a_time_based_job_syncs_once_at_its_end(directory)),
        ("nothing is left", &nothing_is_left),
    ];
    for (name, scene) in &scenes {
        println!("{name}");
        scene();
    }
    // In the format of the test harness, for scripts that count tests.
    println!("test result: ok. {} passed; 0 failed; 0 ignored", scenes.len());
}
