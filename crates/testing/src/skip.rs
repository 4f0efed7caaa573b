//! Skips: a test that cannot run here says so on the terminal at once, and is recorded so that it does not count as
//! passed.
//!
//! If a test finds out only while it runs that it cannot continue, the test harness counts it as passed. So each skip
//! is appended to the file that `IOLITE_TEST_SKIPS` names, as a line with three fields separated by tabs:
//!
//! ```text
//! whole   system::trims::a_trimmed_block_is_zero   loop devices need root
//! part    system::rates::a_mix_reads               fio is not installed
//! ```
//!
//! `scripts/test` sets the variable, subtracts the tests that were skipped as a whole from those that passed, and lists
//! all skips at its end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Leaves the test and records why it cannot run here. Takes the arguments of `format!`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::skip::wholly_skipped(&$crate::this_test!(), &format!($($reason)*));
        return;
    }};
}

/// Evaluates to something that a test needs; skips the test with the reason if it is unavailable.
#[macro_export]
macro_rules! or_skip {
    ($needed:expr) => {
        match $needed {
            Ok(needed) => needed,
            Err(reason) => $crate::skip!("{reason}"),
        }
    };
}

/// The name of the running test, preceded by the name of its crate.
#[macro_export]
macro_rules! this_test {
    () => {{
        fn here() {}
        $crate::skip::test_name(std::any::type_name_of_val(&here))
    }};
}

/// The name of the running test. The harness usually runs each test in a thread with the test's name. If it does not
/// (`--test-threads=1`), the name is taken from the path of the function `here` within the caller.
pub fn test_name(here: &str) -> String {
    let function = here.trim_end_matches("::here").replace("::{{closure}}", "");
    let package = here.split("::").next().unwrap_or_default();
    match std::thread::current().name() {
        Some(test) if test != "main" => format!("{package}::{test}"),
        _ => function,
    }
}

/// Records that a test did not run. Usually [`skip!`](crate::skip!) does this, and leaves the test as well.
pub fn wholly_skipped(test: &str, reason: &str) {
    tell("whole", test, reason);
}

/// Records that a part of a test did not run. The test counts as passed, and the skipped part is listed. `test` comes
/// from [`this_test!`](crate::this_test!).
pub fn partly_skipped(test: &str, reason: &str) {
    tell("part", test, reason);
}

fn tell(extent: &str, test: &str, reason: &str) {
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    // Written to the file descriptor directly, because the harness hides the `eprintln!` output of passing tests.
    let told = if extent == "part" { "SKIPPED IN PART" } else { "SKIPPED" };
    writeln!(std::io::stderr(), "{told} {test}: {reason}").expect("standard error is writable");
    if let Some(path) = std::env::var_os("IOLITE_TEST_SKIPS") {
        record(Path::new(&path), &format!("{extent}\t{test}\t{reason}\n"));
    }
}

/// Appends a line in one write, so that lines of several processes do not mix.
fn record(path: &Path, line: &str) {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("a skip cannot be recorded in {}: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_knows_its_name() {
        let expected = "iolite_testing::skip::tests::a_test_knows_its_name";
        assert_eq!(crate::this_test!(), expected);
        assert_eq!(Some(()).map(|()| crate::this_test!()).as_deref(), Some(expected));
        // In a thread without the test's name.
        let unnamed = std::thread::spawn(|| test_name("system::rates::thinktime::{{closure}}::here"));
        assert_eq!(unnamed.join().unwrap(), "system::rates::thinktime");
    }

    #[test]
    fn or_skip_returns_the_value() {
        fn needed() -> Result<u8, String> {
            Ok(7)
        }
        let seven = crate::or_skip!(needed());
        assert_eq!(seven, 7);
    }
}
