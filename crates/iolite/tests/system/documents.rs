//! Rules for the source tree: ARCHITECTURE.md and the crates' own documentation name existing files, the picture of the
//! crates is true, and one helper removes error numbers from the system's words.

use std::collections::{BTreeMap, BTreeSet};
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

/// The crates of the product by name, each with the crates that it depends on.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let entries = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let text = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
            let dependencies = text.split("[dev-dependencies]").next().unwrap();
            let used = dependencies.lines().filter_map(|line| {
                line.strip_prefix("iolite-").and_then(|rest| rest.strip_suffix(".workspace = true"))
            });
            (path.file_name().unwrap().to_str().unwrap().to_owned(), used.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn every_file_that_the_architecture_names_is_there() {
    let crates_directory = root().join("crates");
    let mut places_found = BTreeSet::new();
    places(&crates_directory, &crates_directory, &mut places_found);
    let is_there = |name: &str, below: &str| {
        let name = name.trim_start_matches("crates/");
        // The name may stand for several files: `defs/*.rs`, `engine/src/NAME.rs`.
        let name = Path::new(name);
        let stands_for_some = name.file_stem().is_some_and(|stem| stem == "*" || stem == "NAME");
        let name = if stands_for_some { name.parent().unwrap() } else { name };
        places_found.iter().any(|place| place.starts_with(below) && place.ends_with(name))
            || (name.to_str().is_some_and(|name| name.contains("/src/"))
                && places_found.iter().any(|place| place.ends_with(name)))
    };
    let mut missing = Vec::new();
    let mut count = 0;
    let mut check = |text: &str, below: &str, place: &Path| {
        let names = quoted(text)
            .filter(|name| !name.contains(' ') && (name.ends_with(".rs") || name.contains("/src/")));
        for name in names {
            count += 1;
            if !is_there(name, below) {
                missing.push(format!("{}: {name}", place.display()));
            }
        }
    };
    for line in std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap().lines() {
        if !line.starts_with("    ") {
            check(line, "", Path::new("ARCHITECTURE.md"));
        }
    }
    for name in crates().keys() {
        for file in ["lib.rs", "main.rs"] {
            let path = crates_directory.join(name).join("src").join(file);
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for line in text.lines().take_while(|line| line.starts_with("//!")) {
                check(line, name, &path);
            }
        }
    }
    assert!(count > 150, "only {count} names were found");
    assert!(missing.is_empty(), "these files do not exist: {missing:#?}");
}

/// The picture has a line for each floor: indented names, then two or more blanks and an explanation.
#[test]
fn the_picture_of_the_crates_is_true() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, picture) = text.split_once("A crate depends only on crates in lines below its own").unwrap();
    let (_, picture) = picture.split_once("\n\n").unwrap();
    let floors: Vec<Vec<&str>> = picture
        .lines()
        .take_while(|line| line.starts_with("    "))
        .map(|line| {
            let names = line.trim_start();
            let end = names.find("    ").unwrap_or(names.len());
            names[..end].split_whitespace().collect()
        })
        .collect();
    let floor_of = |name: &str| floors.iter().position(|floor| floor.contains(&name));
    let drawn: Vec<&str> = floors.iter().flatten().copied().collect();
    let crates = crates();
    for (name, used) in crates.iter().filter(|(name, _)| *name != "fuzz") {
        let floor = floor_of(name).unwrap_or_else(|| panic!("{name} is not in the picture"));
        for used in used {
            assert!(
                floor_of(used).is_some_and(|below| below > floor),
                "{name} depends on {used}: not below it"
            );
        }
    }
    for name in &drawn {
        assert!(crates.contains_key(*name), "{name} is in the picture, and is no crate");
        assert_eq!(drawn.iter().filter(|other| *other == name).count(), 1, "{name} is drawn twice");
    }
}

#[test]
fn crates_below_the_plan_do_not_depend_on_options() {
    for name in [
        "types", "host", "os", "workload", "content", "verify", "logs", "trace", "stats", "worker", "run",
        "stored", "store", "compare", "sweep", "findings",
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
