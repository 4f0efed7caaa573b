//! The manual in the repository matches the option tables, and the programs that display it report no errors.

use iolite_options::manual;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn checked_in_manuals_are_up_to_date() {
    for (name, text) in [("options.md", manual::markdown()), ("iolite.1", manual::roff())] {
        let present = std::fs::read_to_string(docs(name)).unwrap_or_default();
        assert!(
            present == text,
            "docs/{name} is stale; write it anew: cargo run -p iolite-options --example manual"
        );
    }
}

/// The complaints of a program about the page, if the program is installed.
fn complaints(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .arg(docs("iolite.1"))
        .env("LC_ALL", "C.UTF-8")
        .env("MANROFFSEQ", "")
        .env("MANWIDTH", "80")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stderr).into_owned() + &status(output.status.success()))
}

fn status(success: bool) -> String {
    if success { String::new() } else { "failed".to_owned() }
}

#[test]
fn the_man_page_is_well_formed() {
    let man = complaints("man", &["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]);
    assert!(man.as_deref().unwrap_or_default().is_empty(), "{man:?}");
    let mandoc = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(docs("iolite.1")).output();
    if let Ok(output) = mandoc {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.is_empty(), "{text}");
    }
}
