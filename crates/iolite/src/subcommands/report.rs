//! `iolite report`: a stored result as a page, a summary, Markdown or a table.

mod logs;

use super::{input, stored_run};
use crate::output_file::Destination;
use crate::{console, terminal};
use iolite_options::ColorWhen;
use iolite_options::commands::Asked;
use iolite_page::logs::Drawings;
use iolite_stored::{NoReport, last_report};
use iolite_summary::screen::Terminal;
use iolite_types::is_standard_stream;
use serde_json::Value;
use std::io::{BufReader, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The answer, or nothing if it went to a file.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let [file] = &asked.operands[..] else {
        return Err(
            "needs the name of one result in JSON (- is standard input), or run:12 of the store".to_owned()
        );
    };
    let (name, text, source) = if stored_run::is_kept(file) {
        let word = file.to_string_lossy();
        let Some(text) = of_kept(asked, &word)? else { return Ok(String::new()) };
        (word.into_owned(), text, None)
    } else {
        let path = Path::new(file);
        let name =
            if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
        let told = |error: std::io::Error| format!("{name}: {error}");
        let opened = input::open(program, path).map_err(told)?;
        let text = input::text(&mut BufReader::with_capacity(64 << 10, opened)).map_err(told)?;
        // Writing the page would destroy the result, even if it was given by another name (a link, standard input).
        let source = if is_standard_stream(path) { Path::new("/dev/stdin") } else { path };
        (name, text, Some(source.to_owned()))
    };
    let mut report = last_report(&text).map_err(|error| error.of(&name))?;
    drop(text);
    let format = format(asked)?;
    let files = logs::given(asked, &report)?;
    if format != "html" {
        if !files.is_empty() {
            return Err(format!("--logs: only a page has pictures of logs, and this is {format}"));
        }
        let color = ColorWhen::parse(asked.value("color").unwrap_or("auto"))?;
        let is_terminal = !asked.has("output") && std::io::stdout().is_terminal();
        let answer = in_short(&report, format, terminal::of_output(color, is_terminal));
        let answer = answer.map_err(|error| error.of(&name))?;
        if format == "summary" && !asked.has("output") {
            // Its only control characters are those of colours.
            return console::print(&answer)
                .map(|()| String::new())
                .map_err(|error| format!("standard output: {error}"));
        }
        return deliver(asked, answer, source.iter().map(|source| (source.as_path(), "the result itself")));
    }
    if !files.is_empty() {
        let drawings = Drawings::of_all(&report, &files).map_err(|why| format!("--logs: {why}"))?;
        for note in &drawings.notes {
            crate::messages::complain(program, &format_args!("report: warning: {note}"));
        }
        drawings.add_to(&mut report);
    }
    let page = iolite_page::of_value(&report).map_err(|error| error.of(&name))?;
    let logs = files.iter().map(|log| (log.path.as_path(), "one of the logs"));
    deliver(asked, page, source.iter().map(|source| (source.as_path(), "the result itself")).chain(logs))
}

/// The requested format. What people read on a terminal is not a page.
fn format(asked: &Asked) -> Result<&str, String> {
    match (asked.value("output-format"), asked.has("csv")) {
        (Some(format), true) if format != "csv" => Err(format!("--csv: the format is {format} already")),
        (_, true) => Ok("csv"),
        (Some(format), false) => Ok(format),
        (None, false) => {
            let is_read = !asked.has("output") && !asked.has("logs") && std::io::stdout().is_terminal();
            Ok(if is_read { "summary" } else { "html" })
        }
    }
}

/// A report in a format other than a page.
pub fn in_short(report: &Value, format: &str, terminal: Terminal) -> Result<String, NoReport> {
    match format {
        "md" => iolite_summary::markdown::of(report),
        "csv" => iolite_summary::csv::of(report),
        _ => iolite_summary::screen::of(report, terminal),
    }
}

/// Writes an answer to the file of `--output`, if given; returns the text that is left to print. `sources`: files that
/// must not be overwritten, and descriptions of them.
pub fn deliver<'a>(
    asked: &Asked,
    answer: String,
    mut sources: impl Iterator<Item = (&'a Path, &'a str)>,
) -> Result<String, String> {
    let Some(output) = asked.value("output").map(Path::new) else { return Ok(answer) };
    if let Some((_, what)) = sources.find(|(source, _)| is_same(source, output)) {
        return Err(format!("--output={}: that is {what}; give another name", output.display()));
    }
    write(output, answer.as_bytes()).map_err(|error| format!("--output={}: {error}", output.display()))?;
    Ok(String::new())
}

/// Whether these names refer to the same file.
fn is_same(source: &Path, output: &Path) -> bool {
    match (source.metadata(), output.metadata()) {
        (Ok(from), Ok(to)) => from.is_file() && (from.dev(), from.ino()) == (to.dev(), to.ino()),
        _ => false,
    }
}

/// A run of the store; the newest if several have the label.
fn of_kept(asked: &Asked, word: &str) -> Result<Option<String>, String> {
    let opened = stored_run::Opened::of(asked)?;
    let found = opened.named(word)?.into_iter().next_back();
    found.map(|run| opened.report(run)).transpose()
}

/// Writes the page, and replaces an old file once the page is complete.
pub fn write(output: &Path, page: &[u8]) -> std::io::Result<()> {
    let mut destination = Destination::open(output)?;
    destination.write(page, |file, part| file.write_all(part))?;
    destination.complete()
}
