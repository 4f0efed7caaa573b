//! The answer of a test: words, figures, and a file with the whole report.

use crate::output_file::Destination;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What every answer says.
pub const NOTE: &str = "The same pattern as in MLPerf Storage; not a submission.";

/// An answer.
pub struct Answer {
    /// For people.
    pub text: String,
    /// The figures.
    pub value: Value,
    /// The report of the run (of several, the one that counts).
    pub report: Value,
    /// The exit status.
    pub status: u8,
}

impl Answer {
    /// The report with the figures of the test.
    pub fn whole(&self) -> Value {
        let mut report = self.report.clone();
        report["iolite"]["ai"] = self.value.clone();
        report["iolite"]["ai"]["answer"] = self.text.trim_end().into();
        report
    }
}

/// A file that the result will be written to.
pub struct File {
    path: PathBuf,
    is_page: bool,
    destination: Destination,
    /// Where a search keeps what it has found so far, until the result is written.
    part: Option<PathBuf>,
}

impl File {
    /// Opens the file, before anything is measured.
    pub fn open(name: &str) -> Result<File, String> {
        let path = PathBuf::from(name);
        let is_page = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => false,
            Some("html") => true,
            _ => {
                return Err(format!(
                    "--output={name}: the end of the name chooses the format, and this one does not: .json or .html"
                ));
            }
        };
        let destination = Destination::open(&path).map_err(|error| format!("--output={name}: {error}"))?;
        Ok(File { path, is_page, destination, part: None })
    }

    /// From now on, [`keep`](File::keep) writes to `NAME.json.part`. (A page keeps nothing.) Returns that name.
    ///
    /// # Errors
    /// Such a file is there already, and the search does not go on with it.
    pub fn begin_search(&mut self, resumes: bool) -> Result<Option<PathBuf>, String> {
        if self.is_page {
            return Ok(None);
        }
        let part = PathBuf::from(format!("{}.part", self.path.display()));
        if !resumes && part.symlink_metadata().is_ok() {
            return Err(format!(
                "{}: a search that was interrupted has left this file: --resume goes on with it; to begin anew, remove it, or give \
                 another --output",
                part.display()
            ));
        }
        self.part = Some(part.clone());
        Ok(Some(part))
    }

    /// The file of a search that was interrupted, if there is one.
    pub fn search_so_far(&self) -> Option<&Path> {
        self.part.as_deref().filter(|part| part.symlink_metadata().is_ok())
    }

    /// Writes what a search has found so far.
    pub fn keep(&self, answer: &Answer) -> Result<(), String> {
        let Some(part) = &self.part else { return Ok(()) };
        let written = Destination::open(part).and_then(|file| written(file, &json_of(answer)));
        written.map_err(|error| format!("{}: {error}", part.display()))
    }

    /// Writes a report with the figures of the test.
    pub fn write(self, answer: &Answer) -> Result<(), String> {
        let told = |why: &dyn std::fmt::Display| format!("--output={}: {why}", self.path.display());
        let text = match self.is_page {
            true => iolite_page::of_value(&answer.whole()).map_err(|why| told(&why))?,
            false => json_of(answer),
        };
        written(self.destination, &text).map_err(|why| told(&why))?;
        if let Some(part) = self.part {
            let _ = std::fs::remove_file(part);
        }
        Ok(())
    }
}

fn json_of(answer: &Answer) -> String {
    format!("{:#}\n", answer.whole())
}

/// Writes a whole file.
fn written(mut destination: Destination, text: &str) -> std::io::Result<()> {
    destination.write(text.as_bytes(), |file, part| file.write_all(part))?;
    destination.complete()
}

/// A table: the first column to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:<0$}", widths[0]),
            _ => format!("{cell:>0$}", widths[column]),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
