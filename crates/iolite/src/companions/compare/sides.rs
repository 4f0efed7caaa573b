//! Which results are the repeats of which side.

use crate::companions::source;
use iolite_compare::{Run, Side};
use iolite_types::is_standard_stream;
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Between sides whose results are words of their own: `base/*.json vs new/*.json`.
const BETWEEN: &str = "vs";
/// No comparison has more results.
const MOST_RESULTS: usize = 10_000;

/// The sides that these words name.
pub fn read(program: &str, operands: &[OsString]) -> Result<Vec<Side>, String> {
    let has_words_between = operands.iter().any(|word| word == BETWEEN);
    let sides: Vec<&[OsString]> = if has_words_between {
        operands.split(|word| word == BETWEEN).collect()
    } else {
        operands.chunks(1).collect()
    };
    if sides.iter().any(|side| side.is_empty()) {
        return Err(format!(
            "there is nothing before or behind a {BETWEEN:?} (a file of that name is ./{BETWEEN})"
        ));
    }
    if sides.len() < 2 {
        return Err("needs two or more sides, each a directory of results or a list of them with commas: \
                    compare base/ new/"
            .to_owned());
    }
    let mut found = Vec::new();
    let mut count = 0;
    for words in sides {
        let mut files = Vec::new();
        for word in words {
            files.extend(files_of(word)?);
        }
        count += files.len();
        if count > MOST_RESULTS {
            return Err(format!("more than {MOST_RESULTS} results are not compared at once"));
        }
        found.push((name_of(words), files));
    }
    found.into_iter().map(|(name, files)| Ok(Side { name, runs: runs(program, &files)? })).collect()
}

fn name_of(words: &[OsString]) -> String {
    let first = words[0].to_string_lossy();
    if words.len() == 1 { first.into_owned() } else { format!("{first} and {} more", words.len() - 1) }
}

/// The files that a word stands for.
fn files_of(word: &OsStr) -> Result<Vec<PathBuf>, String> {
    let path = Path::new(word);
    if is_standard_stream(path) || path.exists() {
        return if path.is_dir() { files_in(path) } else { Ok(vec![path.to_owned()]) };
    }
    let parts: Vec<&OsStr> = word.as_bytes().split(|&byte| byte == b',').map(OsStr::from_bytes).collect();
    if let [only] = parts[..] {
        let name = only.to_string_lossy();
        return Err(format!(
            "{name}: No such file or directory (what is compared are files and directories of results in JSON; runs and \
             labels of a store are not there yet)"
        ));
    }
    let mut files = Vec::new();
    for part in parts {
        if part.is_empty() {
            return Err(format!("{}: there is an empty name in this list", word.to_string_lossy()));
        }
        files.extend(if Path::new(part).is_dir() { files_in(Path::new(part))? } else { vec![part.into()] });
    }
    Ok(files)
}

/// The results in a directory, by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let name = directory.display();
    let told = |error: std::io::Error| format!("{name}: {error}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
        if files.len() > MOST_RESULTS {
            return Err(format!("{name}: more than {MOST_RESULTS} results are not compared at once"));
        }
    }
    if files.is_empty() {
        return Err(format!("{name}: there are no results (*.json) in this directory"));
    }
    files.sort();
    Ok(files)
}

fn runs(program: &str, files: &[PathBuf]) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for file in files {
        let run = result(program, file)?;
        if let Some(other) = runs.iter().find(|other| other.is_same_run(&run)) {
            return Err(format!(
                "{} and {} are results of the same run (their jobs began in the same millisecond), and no repeats; \
                 leave one out",
                other.name, run.name
            ));
        }
        runs.push(run);
    }
    Ok(runs)
}

fn result(program: &str, path: &Path) -> Result<Run, String> {
    let name =
        if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let told = |error: std::io::Error| format!("{name}: {error}");
    let opened = source::open(program, path).map_err(told)?;
    let text = source::text(&mut BufReader::with_capacity(64 << 10, opened)).map_err(told)?;
    let report = iolite_stored::last_report(&text).map_err(|error| error.of(&name))?;
    Run::of(&name, &report).map_err(|error| error.of(&name))
}
