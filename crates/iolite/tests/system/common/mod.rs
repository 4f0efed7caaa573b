//! Helpers of all tests: run a program with a time limit, and parse its output.

pub mod browser;
pub mod comparison;
pub mod devices;
pub mod json;
pub mod layout;
pub mod program;
pub mod s3;
pub mod skeleton;
pub mod tmux;
pub mod trace;
pub mod wires;

pub use json::Json;
pub use layout::{files_in, sizes};
pub use program::{Finished, Program};
use std::path::Path;

/// All releases of fio to compare with; leaves the test if there is none.
macro_rules! peers {
    () => {{
        let peers = crate::common::Program::peers();
        if peers.is_empty() {
            iolite_testing::skip!("fio is not installed");
        }
        peers
    }};
}
pub(crate) use peers;

/// A fresh directory that is removed at the end of the test.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("iolite-test-").tempdir().expect("a temporary directory can be made")
}

/// Calls a function with each item, in some threads at once: programs that wait need not wait for each other. A failure
/// ends its thread, and is the test's in the end.
#[track_caller]
pub fn at_once<T: Send>(threads: usize, items: impl IntoIterator<Item = T>, act: impl Fn(T) + Sync) {
    let left = std::sync::Mutex::new(items.into_iter().collect::<std::collections::VecDeque<T>>());
    let next = || left.lock().unwrap().pop_front();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // The name is that of the test, for what it skips.
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            let work = || std::iter::from_fn(next).for_each(&act);
            std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)
                .expect("a thread can be started");
        }
    });
}

/// Runs the program, under its own name.
pub fn start(dir: &Path, line: &str) -> Finished {
    Program::own().line(dir, line)
}

/// The report of a run that succeeds.
#[track_caller]
pub fn report(dir: &Path, line: &str) -> Json {
    let json = Json::parse(&start(dir, &format!("{line} --output-format=json")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// The arguments of a command line, split at spaces.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

/// Whether the tests run as root, so that they can create devices and mounts.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, changes nothing, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
