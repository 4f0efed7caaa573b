//! Exports reports from a store, and imports them.

use super::chosen;
use crate::saving;
use crate::subcommands::stored_run::Opened;
use crate::subcommands::{input, report};
use iolite_options::commands::Asked;
use iolite_types::is_standard_stream;
use std::fmt::Write;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The largest result that is imported.
const LARGEST: usize = 256 << 20;
/// The most results that are imported at once.
const MOST: usize = 10_000;

/// Exports unchanged reports: one to standard output or a file, several to files in a directory.
pub fn export(asked: &Asked, words: &[String]) -> Result<String, String> {
    let opened = Opened::of(asked)?;
    let runs = chosen(&opened, asked, words)?;
    let output = asked.value("output").map(Path::new);
    if let Some(directory) = output.filter(|output| output.is_dir()) {
        for run in &runs {
            let path = directory.join(format!("run-{}.json", run.number));
            write(&path, &opened.report(run)?)?;
        }
        return Ok(format!("{} runs are in {}\n", runs.len(), directory.display()));
    }
    let [run] = runs[..] else {
        return Err(format!(
            "{} runs: of one, the report goes to standard output or a file; of several, to a directory that is there \
             (--output=DIR)",
            runs.len()
        ));
    };
    let text = opened.report(run)?;
    match output {
        None => Ok(text),
        Some(path) => write(path, &text).map(|()| String::new()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    report::write(path, text.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))
}

/// Imports result files of Iolite and fio into the store. Files that cannot be imported are reported; the others are
/// imported all the same.
pub fn import(program: &str, asked: &Asked) -> Result<String, String> {
    let files = files(&asked.operands[1..])?;
    let label = asked.value("label").unwrap_or_default();
    iolite_store::check_label(label).map_err(|why| format!("--label={label}: {why}"))?;
    let path = saving::place(asked.value("store").map(Path::new))?;
    let mut store = saving::open(&path)?;
    let (mut told, mut failed) = (String::new(), Vec::new());
    for file in &files {
        let kept = read(program, file).and_then(|report| {
            let kept = store.import(&report, label, saving::now_ms());
            kept.map_err(|error| format!("{}: {error}", file.display()))
        });
        match kept {
            Ok(kept) => {
                line!(told, "{}: run {}", file.display(), kept.number);
                saving::dropped(program, &kept.dropped);
            }
            Err(why) => failed.push(why),
        }
    }
    if failed.is_empty() {
        return Ok(told);
    }
    // The successful ones are listed even if others failed.
    let _ = crate::console::print(&told);
    Err(failed.join("; "))
}

fn read(program: &str, path: &Path) -> Result<String, String> {
    let name =
        if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let told = |error: std::io::Error| format!("{name}: {error}");
    let opened = input::open(program, path).map_err(told)?;
    let text = input::text_up_to(&mut BufReader::with_capacity(64 << 10, opened), LARGEST).map_err(told)?;
    let report = iolite_stored::last_report(&text).map_err(|error| error.of(&name))?;
    iolite_stored::jobs(&report).map_err(|error| error.of(&name))?;
    // fio writes options as given, including secrets.
    serde_json::to_string_pretty(&iolite_page::masked(&report)).map_err(|error| format!("{name}: {error}"))
}

/// Files, and those of directories that end with `.json`.
fn files(words: &[std::ffi::OsString]) -> Result<Vec<PathBuf>, String> {
    if words.is_empty() {
        return Err("import needs results in JSON: runs import old/*.json".to_owned());
    }
    let mut files = Vec::new();
    for word in words {
        let path = Path::new(word);
        if path.is_dir() {
            files.extend(input::results_in(path, MOST)?);
        } else {
            files.push(path.to_owned());
        }
    }
    if files.len() > MOST {
        return Err(format!("more than {MOST} results are not imported at once"));
    }
    Ok(files)
}
