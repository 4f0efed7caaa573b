//! The summary of `scripts/test` at its end: skipped tests do not count as passed.

use std::path::Path;
use std::process::Command;

fn summary(name: &str, status: u8, output: &str, skips: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |kind: &str, text: &str| {
        let path = directory.join(format!("summary-{name}-{kind}"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test-summary");
    let run = Command::new(script)
        .arg(status.to_string())
        .args([file("output", output), file("skips", skips)])
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn skipped_tests_are_listed_and_not_counted_as_passed() {
    let output = "running 13 tests\n\
                  test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 5 filtered out; finished in 0.1s\n\
                  test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 12.34s\n";
    let skips = "part\ta::one\tno strace\n\
                 whole\ta::one\tno fio\n\
                 whole\ta::one\tno fio\n\
                 whole\tb::two\tno fio\n\
                 part\tb::three\tno fio\n\
                 step\tlints\tthere is no clippy\n";
    let expected = "skipped in part, because no fio: b::three\n\
                    skipped, because there is no clippy: lints\n\
                    skipped, because no fio: a::one, b::two\n\
                    skipped, because they are marked so: 1 tests\n\
                    12 passed, 2 failed, 4 skipped\n";
    assert_eq!(summary("all", 101, output, skips), expected);
}

#[test]
fn a_run_that_fails_before_its_tests_has_failed() {
    assert_eq!(summary("none", 1, "", ""), "0 passed, 1 failed, 0 skipped\n");
}

#[test]
fn a_run_without_skips_has_only_a_summary_line() {
    let output =
        "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s\n";
    assert_eq!(summary("passed", 0, output, ""), "4 passed, 0 failed, 0 skipped\n");
}

#[test]
fn the_slowest_tests_are_listed() {
    let times = (1..=12).map(|n| format!("test t{n} ... ok <{n}.5s>\n")).collect::<String>();
    let output =
        format!("{times}test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
    let found = summary("slow", 0, &output, "");
    let expected = "The slowest tests, in seconds:\n12.5 t12\n11.5 t11\n";
    assert!(
        found.starts_with(expected) && found.contains("3.5 t3\n\n12 passed") && !found.contains("t2"),
        "{found}"
    );
}
