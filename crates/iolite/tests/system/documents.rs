//! Rules for the source tree: ARCHITECTURE.md names existing files, lower crates do not depend on upper ones, and one
//! helper removes error numbers from the system's words.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All files and folders below a directory, relative to `base`.
fn places(directory: &Path, base: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        found.insert(path.strip_prefix(base).unwrap().to_owned());
        if path.is_dir() {
            places(&path, base, found);
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_file_that_the_architecture_names_is_there() {
    let crates = root().join("crates");
    let mut places_found = BTreeSet::new();
    places(&crates, &crates, &mut places_found);
    places(&root().join("bench"), &root(), &mut places_found);
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("    "))
        .flat_map(quoted)
        .filter(|name| !name.contains(' ') && (name.ends_with(".rs") || name.contains("/src/")))
        .collect();
    assert!(names.len() > 100, "only {} names were found", names.len());
    let is_there = |name: &str| {
        let name = name.trim_start_matches("crates/");
        // The name may stand for several files: `defs/*.rs`, `engine/src/NAME.rs`.
        let name = Path::new(name);
        let stands_for_some = name.file_stem().is_some_and(|stem| stem == "*" || stem == "NAME");
        let name = if stands_for_some { name.parent().unwrap() } else { name };
        places_found.iter().any(|place| place.ends_with(name))
    };
    let missing: Vec<&&str> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that do not exist: {missing:?}");
}

#[test]
fn crates_below_the_plan_do_not_depend_on_options() {
    for name in [
        "types", "host", "os", "workload", "content", "verify", "logs", "trace", "stats", "worker", "run",
        "stored", "store", "compare", "sweep",
    ] {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let dependencies = text.split("[dev-dependencies]").next().unwrap();
        assert!(!dependencies.contains("iolite-options"), "{} needs no options", path.display());
    }
}

/// The standard library appends error numbers to the system's messages. `iolite_types::describe_error` removes them;
/// any copy of it would contain the text that this test searches for.
#[test]
fn error_numbers_are_removed_in_one_place() {
    let sought = ["(os", "error"].join(" ");
    let mut files = BTreeSet::new();
    for directory in ["crates", "bench", "campaign"] {
        places(&root().join(directory), &root(), &mut files);
    }
    let sources: Vec<PathBuf> = files
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    assert!(sources.len() > 500, "only {} sources were found", sources.len());
    let has_it =
        |path: &PathBuf| std::fs::read_to_string(root().join(path)).is_ok_and(|text| text.contains(&sought));
    let found: Vec<PathBuf> = sources.into_iter().filter(has_it).collect();
    assert_eq!(found, [Path::new("crates/types/src/system_error.rs")]);
}
