//! Reads reports and logs without trusting them: a report is kept in memory, up to a limit, and a log is read line by
//! line.

use super::windows::Log;
use crate::subcommands::input::{self, text};
use iolite_logs::reading::{self, Broken};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The first byte of every zlib stream.
const ZLIB: u8 = 0x78;

/// A file with its content.
pub struct Source {
    /// Its name.
    pub name: String,
    /// The text of a report; `None` = it is a log.
    pub report: Option<String>,
    /// The unread rest.
    rest: Box<dyn BufRead>,
}

impl Source {
    /// Opens a file and detects its type: a report begins with a brace, possibly below notes; a log begins with a
    /// number, or is compressed.
    pub fn open(program: &str, path: &Path) -> Result<Source, String> {
        let name = path.display().to_string();
        let reader = input::open(program, path).map(|file: File| BufReader::with_capacity(64 << 10, file));
        let opened = reader.and_then(|reader| Source::of(name.clone(), Box::new(reader)));
        opened.map_err(|error| format!("{name}: {error}"))
    }

    fn of(name: String, mut rest: Box<dyn BufRead>) -> io::Result<Source> {
        let start = rest.fill_buf()?;
        let first = start.iter().find(|byte| !byte.is_ascii_whitespace()).copied();
        if first.is_none_or(|first| first.is_ascii_digit() || first == ZLIB) {
            return Ok(Source { name, report: None, rest });
        }
        let text = text(&mut rest)?;
        Ok(if first == Some(b'{') || text.lines().any(|line| line == "{") {
            Source { name, report: Some(text), rest }
        } else {
            // Anything else is read as a log, which reports what is wrong with it.
            Source { name, report: None, rest: Box::new(io::Cursor::new(text)) }
        })
    }

    /// Reads the lines of a log, inflated if compressed.
    ///
    /// # Errors
    /// The mistake, after its place or a space.
    pub fn lines_to(&mut self, log: &mut Log<'_>) -> Result<(), String> {
        match reading::lines(&mut *self.rest, &mut |line| log.line(line)) {
            Ok(()) => Ok(()),
            Err(Broken::NoEnd(line)) => log.line(&line),
            Err(Broken::Line(why)) => Err(why),
            Err(Broken::CutOff(error) | Broken::Unreadable(error)) => Err(format!(" {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subcommands::log2csv::windows::{Grouping, Windows};
    use std::io::Read;

    fn source(bytes: &[u8]) -> io::Result<Source> {
        Source::of("f".into(), Box::new(io::Cursor::new(bytes.to_vec())))
    }

    #[test]
    fn reports_logs_and_binary_files_are_distinguished() {
        let is_report = |text: &str| source(text.as_bytes()).unwrap().report.is_some();
        assert!(is_report("{\n}") && is_report("note: cold\n{\n}\n"));
        assert!(!is_report("10, 0, 4096, 1\n") && !is_report("") && !is_report("hello"));
        assert_eq!(source(&[0; 100]).err().unwrap().to_string(), "it is not a text");
    }

    /// Endless input is detected before its end.
    #[test]
    fn endless_input_is_refused() {
        let endless = |byte: u8| {
            let start: &'static [u8] = b"1, 0";
            let rest = Box::new(BufReader::new(start.chain(io::repeat(byte))));
            let mut source = Source::of("f".into(), rest).unwrap();
            let mut windows = Windows::new(Grouping { together: None, all_directions: false });
            source.lines_to(&mut windows.log()).unwrap_err()
        };
        assert_eq!(endless(b'1'), " a line is longer than any of a log");
        assert_eq!(endless(0), " a line is longer than any of a log");
        assert!(Source::of("f".into(), Box::new(BufReader::new(io::repeat(0)))).is_err());
    }
}
