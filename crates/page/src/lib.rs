//! Reports as pages: one HTML file that opens anywhere, without a network.
//!
//! A page is made of a report in JSON, ours or fio's, and of nothing else; so a page that is made at the end of a run and
//! one that is made of a stored result are the same. What was run, on what, and the answer in a line per job are
//! markup that needs no script (`html.rs`), with words about how steady it was (`steadiness.rs`). The pictures and all other
//! figures are drawn by the scripts in `assets` from the report itself, which is in the page, compressed (`packed.rs`).
//!
//! Nothing of a report can become markup: texts are escaped here, the scripts make text nodes only, and the page's own
//! policy allows no script but those in `assets`.

mod html;
mod packed;
mod result;
mod steadiness;
mod text;

use iolite_report::{Exporter, Json, Program};
use iolite_stats::{Cluster, Report};
use serde_json::Value;
use std::io::{self, Write};

/// Why a text is no report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PageError {
    /// It is no JSON at this place.
    #[error("{line}:{column}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// It is JSON, and no report.
    #[error("{0}")]
    NoReport(&'static str),
}

/// The report as a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Exporter for Html {
    fn write(&self, report: &Report, program: &Program, out: &mut dyn Write) -> io::Result<()> {
        let mut json = Vec::new();
        Json { bins: true }.write(report, program, &mut json)?;
        let value = serde_json::from_slice(&json).map_err(io::Error::other)?;
        let page = of_value(&value).map_err(io::Error::other)?;
        out.write_all(page.as_bytes())
    }

    /// Pages of several machines are not made yet.
    fn write_cluster(&self, _: &Cluster, _: &Program, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "pages of several machines are not made yet"))
    }
}

/// The page of a report in JSON, with or without notes above it and other formats below it; of several reports, the last
/// (those before were made on the way).
///
/// # Errors
/// It is no report.
pub fn of_text(text: &str) -> Result<String, PageError> {
    let above = text.lines().take_while(|line| !line.starts_with('{')).count();
    let start: usize = text.split_inclusive('\n').take(above).map(str::len).sum();
    if start >= text.len() {
        return Err(PageError::NoReport("there is no report in JSON in it (--output-format=json makes one)"));
    }
    let mut last = None;
    for value in serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>() {
        match value {
            Ok(value) if value.is_object() => last = Some(value),
            // Something else follows, such as the normal report.
            _ if last.is_some() => break,
            Ok(_) => return Err(PageError::NoReport("it is JSON, but no report")),
            Err(error) => {
                let why = error.to_string();
                let why = why.split(" at line").next().unwrap_or_default().to_owned();
                return Err(PageError::Syntax { line: error.line() + above, column: error.column(), why });
            }
        }
    }
    of_value(&last.unwrap_or_default())
}

/// The page of a report in JSON.
///
/// # Errors
/// It is no report.
pub fn of_value(report: &Value) -> Result<String, PageError> {
    let result = result::Outcome::of(report).ok_or(PageError::NoReport(
        "it has no \"jobs\", so it is no report (--output-format=json makes one)",
    ))?;
    Ok(html::page(&result, &packed::packed(report)))
}

#[cfg(test)]
mod tests;
