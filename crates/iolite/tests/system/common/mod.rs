//! What all tests share: running a program without ever hanging, and reading what it printed.

pub mod devices;
pub mod json;
pub mod layout;
pub mod peer_differences;
pub mod program;
pub mod skeleton;
pub mod trace;
pub mod volatile;

pub use json::Json;
pub use layout::{files_in, sizes};
pub use program::{Finished, Program};

use std::io::Write as _;

/// Say why a test does not run here. Written to the file descriptor itself, because what a passing test
/// prints through `eprintln!` is swallowed, and a skip must be seen.
pub fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("standard error is writable");
}

/// Leave the test, with the reason printed.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        fn here() {}
        let name = std::any::type_name_of_val(&here).trim_end_matches("::here");
        $crate::common::skipped(name, &format!($($reason)*));
        return;
    }};
}

/// What a test needs, or leave the test with the reason why it is not to be had.
#[macro_export]
macro_rules! or_skip {
    ($needed:expr) => {
        match $needed {
            Ok(needed) => needed,
            Err(reason) => $crate::skip!("{reason}"),
        }
    };
}

/// A fresh directory that is removed at the end of the test.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("iolite-test-").tempdir().expect("a temporary directory can be made")
}

/// Words of a command line, split at spaces: tables of commands stay readable.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

/// Whether the tests run with the rights to make devices and mounts.
pub fn is_root() -> bool {
    // SAFETY: geteuid takes nothing, changes nothing, and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
