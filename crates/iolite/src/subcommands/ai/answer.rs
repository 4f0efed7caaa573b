//! The answer of a test: words, figures, and a file with the whole report.

use crate::output_file::Destination;
use serde_json::Value;
use std::path::PathBuf;

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
    pub path: PathBuf,
    is_page: bool,
    /// Open until it has been written.
    destination: Option<Destination>,
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
        Ok(File { path, is_page, destination: Some(destination) })
    }

    /// Where a search keeps what it has found so far: `NAME.json.part`. `None` = the file is a page.
    pub fn part(&self) -> Option<File> {
        let path = PathBuf::from(format!("{}.part", self.path.display()));
        (!self.is_page).then_some(File { path, is_page: false, destination: None })
    }

    /// Writes a report with the figures of the test, in the place of what it has.
    pub fn write(&mut self, answer: &Answer) -> Result<(), String> {
        let told = |why: &dyn std::fmt::Display| format!("--output={}: {why}", self.path.display());
        let report = answer.whole();
        let text = match self.is_page {
            true => iolite_page::of_value(&report).map_err(|why| told(&why))?,
            false => format!("{report:#}\n"),
        };
        let opened = self.destination.take().map_or_else(|| Destination::open(&self.path), Ok);
        let write = |mut destination: Destination| {
            destination.write(text.as_bytes(), |file, part| file.write_all(part))?;
            destination.complete()
        };
        opened.and_then(write).map_err(|why| told(&why))
    }
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
