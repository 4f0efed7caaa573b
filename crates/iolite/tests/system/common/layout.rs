//! The files that a run leaves.

use std::fs;
use std::path::Path;

/// Files below `dir` with their sizes, as paths relative to it, sorted.
#[track_caller]
pub fn files_in(dir: &Path) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    collect(dir, "", &mut files);
    files.sort();
    files
}

fn collect(dir: &Path, prefix: &str, files: &mut Vec<(String, u64)>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let entry = entry.expect("a directory can be read");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let metadata = fs::symlink_metadata(entry.path()).expect("a file that was just listed");
        if metadata.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push((name, metadata.len()));
        }
    }
}

/// The expected files of a test: `sizes(&[("a/test.0.0", 10)])`.
pub fn sizes(files: &[(&str, u64)]) -> Vec<(String, u64)> {
    let mut files: Vec<_> = files.iter().map(|&(name, size)| (name.to_string(), size)).collect();
    files.sort();
    files
}
