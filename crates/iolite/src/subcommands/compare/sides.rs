//! Assigns results, as repeats, to sides.

use crate::subcommands::input;
use crate::subcommands::stored_run::{self, Opened};
use iolite_compare::{Run, Side};
use iolite_options::commands::Asked;
use iolite_types::is_standard_stream;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of a result from standard input.
pub const STDIN: &str = "standard input";
/// The separator of sides whose results are separate words: `base/*.json vs new/*.json`.
const BETWEEN: &str = "vs";
/// The most results of a comparison.
const MOST_RESULTS: usize = 10_000;

/// Where a result is.
enum Place {
    File(PathBuf),
    /// In the store, with this number.
    Store(i64),
}

/// The sides that the words name. `look` is called with each result and the position of its side.
pub fn read(program: &str, asked: &Asked, mut look: impl FnMut(usize, &Value)) -> Result<Vec<Side>, String> {
    let operands = &asked.operands[..];
    let is_any_kept = operands.iter().any(|word| stored_run::is_kept(word));
    let opened = is_any_kept.then(|| Opened::of(asked)).transpose()?;
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
        let mut places = Vec::new();
        for word in words {
            places.extend(places_of(word, opened.as_ref())?);
        }
        count += places.len();
        if count > MOST_RESULTS {
            return Err(format!("more than {MOST_RESULTS} results are not compared at once"));
        }
        found.push((name_of(words), places));
    }
    let sides = found.into_iter().enumerate();
    let side = |(position, (name, places)): (usize, (String, Vec<Place>))| {
        let runs = runs(program, &places, opened.as_ref(), &mut |report| look(position, report))?;
        Ok(Side { name, runs })
    };
    sides.map(side).collect()
}

fn name_of(words: &[OsString]) -> String {
    let first = words[0].to_string_lossy();
    if words.len() == 1 { first.into_owned() } else { format!("{first} and {} more", words.len() - 1) }
}

/// The results that a word stands for: runs of the store, files.
fn places_of(word: &OsStr, opened: Option<&Opened>) -> Result<Vec<Place>, String> {
    if let (Some(opened), true) = (opened, stored_run::is_kept(word)) {
        let runs = opened.named(&word.to_string_lossy())?;
        return Ok(runs.into_iter().map(|run| Place::Store(run.number)).collect());
    }
    Ok(files_of(word)?.into_iter().map(Place::File).collect())
}

/// The files that a word stands for.
fn files_of(word: &OsStr) -> Result<Vec<PathBuf>, String> {
    let path = Path::new(word);
    if is_standard_stream(path) || path.exists() {
        return if path.is_dir() { input::results_in(path, MOST_RESULTS) } else { Ok(vec![path.to_owned()]) };
    }
    let parts: Vec<&OsStr> = word.as_bytes().split(|&byte| byte == b',').map(OsStr::from_bytes).collect();
    if let [only] = parts[..] {
        let name = only.to_string_lossy();
        return Err(format!(
            "{name}: No such file or directory (compare takes results in JSON, directories of them, and runs of the \
             store: run:12 or label:NAME)"
        ));
    }
    let mut files = Vec::new();
    for part in parts {
        if part.is_empty() {
            return Err(format!("{}: there is an empty name in this list", word.to_string_lossy()));
        }
        files.extend(if Path::new(part).is_dir() {
            input::results_in(Path::new(part), MOST_RESULTS)?
        } else {
            vec![part.into()]
        });
    }
    Ok(files)
}

fn runs(
    program: &str,
    places: &[Place],
    opened: Option<&Opened>,
    look: &mut dyn FnMut(&Value),
) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for place in places {
        let (name, text) = match (place, opened) {
            (Place::File(file), _) => result(program, file)?,
            (Place::Store(number), Some(opened)) => stored(*number, opened)?,
            (Place::Store(_), None) => continue,
        };
        let report = iolite_stored::last_report(&text).map_err(|error| error.of(&name))?;
        let run = Run::of(&name, &report).map_err(|error| error.of(&name))?;
        if let Some(other) = runs.iter().find(|other| other.is_same_run(&run)) {
            return Err(format!(
                "{} and {} are results of the same run (their jobs began in the same millisecond), and no repeats; \
                 leave one out",
                other.name, run.name
            ));
        }
        look(&report);
        runs.push(run);
    }
    Ok(runs)
}

/// The name and the text of a run in the store.
fn stored(number: i64, opened: &Opened) -> Result<(String, String), String> {
    let name = format!("run:{number}");
    let run = opened.named(&name)?.into_iter().next();
    let run = run.ok_or_else(|| format!("{name} does not exist"))?;
    let text = opened.report(run)?;
    Ok((name, text))
}

/// The name and the text of a file.
fn result(program: &str, path: &Path) -> Result<(String, String), String> {
    let name = if is_standard_stream(path) { STDIN.to_owned() } else { path.display().to_string() };
    let told = |error: std::io::Error| format!("{name}: {error}");
    let opened = input::open(program, path).map_err(told)?;
    let text = input::text(&mut BufReader::with_capacity(64 << 10, opened)).map_err(told)?;
    Ok((name, text))
}
