//! Helpers of all tests: run a program with a time limit, and parse its output.

pub mod browser;
pub mod comparison;
pub mod devices;
pub mod json;
pub mod layout;
pub mod program;
pub mod skeleton;
pub mod tmux;
pub mod trace;
pub mod volatile;
pub mod wires;

pub use json::Json;
pub use layout::{files_in, sizes};
pub use program::{Finished, Program};

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

/// The arguments of a command line, split at spaces.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

/// Whether the tests run as root, so that they can create devices and mounts.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, changes nothing, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
