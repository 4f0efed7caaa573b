//! Text logs, versions 2 and 3: one event per line.
//!
//! ```text
//! fio version 3 iolog
//! 17 data add
//! 95 data open
//! 99 data write 0 4096
//! 180 data sync 0 0
//! ```
//!
//! In version 3, a line begins with its time in microseconds. Version 2 has no times, but `FILE wait MS 0` waits until
//! this many milliseconds after the start. Lines are parsed from their end, so names may contain spaces. If several
//! recordings were appended to one log, it has several first lines, and each recording begins when the previous one has
//! ended.

use crate::{Event, FileName, MOST_FILES, Place, Record, TraceError};
use iolite_types::Operation;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The longest line: a path, an action and three numbers, with room to spare.
pub(crate) const LONGEST_LINE: u64 = 8192;

/// The beginning of every first line.
pub(crate) const SIGNATURE: &[u8] = b"fio version ";

/// The largest offset or end of an I/O, as for the system.
pub(crate) const HIGHEST: u64 = i64::MAX as u64;

/// The version of a text log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextVersion {
    /// Lines have no times, but there is `wait`.
    V2,
    /// Each line has a time.
    V3,
}

impl TextVersion {
    /// The first line of a log, without the line feed.
    pub fn header(self) -> &'static str {
        match self {
            TextVersion::V2 => "fio version 2 iolog",
            TextVersion::V3 => "fio version 3 iolog",
        }
    }

    fn of_line(line: &[u8]) -> Option<TextVersion> {
        [TextVersion::V2, TextVersion::V3].into_iter().find(|version| line == version.header().as_bytes())
    }
}

/// Reads a text log.
#[derive(Debug)]
pub struct TextReader<R> {
    input: R,
    name: String,
    version: TextVersion,
    line: u64,
    buffer: Vec<u8>,
    /// Whether the last line has no line feed: it may be cut off.
    is_cut: bool,
    files: Vec<FileName>,
    open: Vec<bool>,
    places: HashMap<Vec<u8>, u32>,
    /// The start of this recording in the time of the trace.
    base_ns: u64,
    /// The time of the last record.
    time_ns: u64,
}

impl<R: BufRead> TextReader<R> {
    /// A reader of `input`. Errors call the trace `name`.
    ///
    /// # Errors
    ///
    /// The input cannot be read, or its first line is not that of a log.
    pub fn new(input: R, name: &str) -> Result<Self, TraceError> {
        let mut reader = TextReader {
            input,
            name: name.to_owned(),
            version: TextVersion::V3,
            line: 0,
            buffer: Vec::new(),
            is_cut: false,
            files: Vec::new(),
            open: Vec::new(),
            places: HashMap::new(),
            base_ns: 0,
            time_ns: 0,
        };
        if !reader.read_line()? {
            return Err(reader.wrong("it is empty"));
        }
        reader.version = reader.header_version()?;
        Ok(reader)
    }

    /// The files named so far.
    pub fn files(&self) -> &[FileName] {
        &self.files
    }

    /// The line of the last record, from 1.
    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }

    /// The version of the log.
    pub fn version(&self) -> TextVersion {
        self.version
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// A line makes no sense, or the log cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        while self.read_line()? {
            if self.buffer.is_empty() {
                continue;
            }
            if self.buffer.starts_with(SIGNATURE) {
                self.begin_recording()?;
                continue;
            }
            let line = std::mem::take(&mut self.buffer);
            let record = self.parse(&line);
            self.buffer = line;
            return record.map(Some).map_err(|message| self.wrong(self.with_cut(message)));
        }
        Ok(None)
    }

    /// Reads a line without its line feed. Returns false at the end of the log.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.buffer.clear();
        let place = Place::Line(self.line + 1);
        let count = (&mut self.input)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| TraceError::io(&self.name, place, error))?;
        if count == 0 {
            return Ok(false);
        }
        self.line += 1;
        // A log that was written by hand may lack the last line feed, and fio accepts it.
        self.is_cut = self.buffer.last() != Some(&b'\n');
        if self.is_cut && count as u64 == LONGEST_LINE {
            return Err(self.wrong("the line is too long for a trace"));
        }
        if !self.is_cut {
            self.buffer.pop();
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        Ok(true)
    }

    fn header_version(&self) -> Result<TextVersion, TraceError> {
        TextVersion::of_line(&self.buffer).ok_or_else(|| {
            self.wrong(format!(
                "the first line is \"{}\", not \"{}\" or \"{}\"",
                shown(&self.buffer),
                TextVersion::V2.header(),
                TextVersion::V3.header()
            ))
        })
    }

    /// Begins a recording that was appended to the previous one.
    fn begin_recording(&mut self) -> Result<(), TraceError> {
        if self.header_version()? != self.version {
            return Err(self.wrong("a recording of another version begins here; split the log at this line"));
        }
        self.base_ns = self.time_ns;
        self.open.fill(false);
        Ok(())
    }

    fn wrong(&self, message: impl Into<String>) -> TraceError {
        TraceError::new(&self.name, self.place(), message)
    }

    /// The message for a line that makes no sense.
    fn with_cut(&self, message: String) -> String {
        if self.is_cut {
            format!("the trace is cut off: its last line has no end; {message}")
        } else {
            message
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, String> {
        let rest = match self.version {
            TextVersion::V2 => line.trim_ascii(),
            TextVersion::V3 => {
                let line = line.trim_ascii_start();
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                let (time, rest) = line.split_at(end);
                let time = number(time).ok_or_else(|| format!("\"{}\" is not a time in µs", shown(time)))?;
                self.time_ns = self.later(time, 1000)?;
                rest.trim_ascii()
            }
        };
        let (before, last) = split_last(rest).ok_or("a line needs a file and an action")?;
        let simple = match last {
            b"add" => Some(Event::Add),
            b"open" => Some(Event::Open),
            b"close" => Some(Event::Close),
            _ => None,
        };
        match simple {
            Some(event) => self.file_action(before, event),
            None => self.io_action(before, last),
        }
    }

    /// The time that is `count` units of `unit_ns` after the start of the recording.
    fn later(&self, count: u64, unit_ns: u64) -> Result<u64, String> {
        count
            .checked_mul(unit_ns)
            .and_then(|time| time.checked_add(self.base_ns))
            .filter(|&time| time <= HIGHEST)
            .ok_or_else(|| format!("the time {count} is too large"))
    }

    fn file_action(&mut self, name: &[u8], event: Event) -> Result<Record, String> {
        let file = match (event, self.places.get(name)) {
            (_, Some(&file)) => file,
            (Event::Add, None) => self.add(name)?,
            (_, None) => return Err(format!("\"{}\" was not added before", shown(name))),
        };
        match event {
            Event::Open => self.open[file as usize] = true,
            Event::Close => self.open[file as usize] = false,
            _ => {}
        }
        Ok(Record { time_ns: self.time_ns, file, event })
    }

    fn add(&mut self, name: &[u8]) -> Result<u32, String> {
        if name.is_empty() || name.contains(&0) {
            return Err("a line needs the name of a file".into());
        }
        if self.files.len() >= MOST_FILES {
            return Err(format!("more than {MOST_FILES} files"));
        }
        let file = self.files.len() as u32;
        self.files.push(FileName::Path(PathBuf::from(OsStr::from_bytes(name))));
        self.open.push(false);
        self.places.insert(name.to_vec(), file);
        Ok(file)
    }

    fn io_action(&mut self, before: &[u8], last: &[u8]) -> Result<Record, String> {
        let words = || {
            let (before, offset) = split_last(before)?;
            let (name, action) = split_last(before)?;
            Some((name, action, offset))
        };
        let (name, action, offset) = words().ok_or_else(|| {
            format!("\"{}\" is neither add, open, close nor the length of an I/O", shown(last))
        })?;
        let operation = match action {
            b"read" => Some(Operation::Read),
            b"write" => Some(Operation::Write),
            b"trim" => Some(Operation::Trim),
            b"sync" => Some(Operation::Sync),
            b"datasync" => Some(Operation::DataSync),
            b"sync_file_range" => Some(Operation::SyncFileRange),
            b"wait" => None,
            _ => return Err(format!("there is no action \"{}\"", shown(action))),
        };
        let bytes = |word: &[u8]| number(word).ok_or_else(|| format!("\"{}\" is not a number", shown(word)));
        let (offset, length) = (bytes(offset)?, bytes(last)?);
        let Some(&file) = self.places.get(name) else {
            return Err(format!("\"{}\" was not added before", shown(name)));
        };
        let Some(operation) = operation else {
            return self.wait(file, offset);
        };
        if !self.open[file as usize] {
            return Err(format!("\"{}\" is not open", shown(name)));
        }
        if offset.checked_add(length).is_none_or(|end| end > HIGHEST) {
            return Err(format!("{length} bytes at {offset} are beyond what a file can have"));
        }
        Ok(Record { time_ns: self.time_ns, file, event: Event::Io { operation, offset, length } })
    }

    fn wait(&mut self, file: u32, milliseconds: u64) -> Result<Record, String> {
        if self.version == TextVersion::V3 {
            return Err("version 3 has no wait: each line has its time".into());
        }
        self.time_ns = self.later(milliseconds, 1_000_000)?;
        Ok(Record { time_ns: self.time_ns, file, event: Event::Wait })
    }
}

/// The text before the last word, and the last word.
fn split_last(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    let (before, word) = line.split_at(start);
    (!word.is_empty()).then(|| (before.trim_ascii_end(), word))
}

fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The words in printable form: characters that are not printable are replaced, and long text is cut.
fn shown(word: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(word).chars().take(60).collect();
    text.replace(|c: char| c.is_control(), "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Result<Vec<Record>, String> {
        let words = |error: TraceError| error.to_string();
        let mut reader = TextReader::new(text.as_bytes(), "t.log").map_err(words)?;
        std::iter::from_fn(|| reader.next_record().transpose()).collect::<Result<_, _>>().map_err(words)
    }

    fn io(time_us: u64, file: u32, operation: Operation, offset: u64, length: u64) -> Record {
        Record { time_ns: time_us * 1000, file, event: Event::Io { operation, offset, length } }
    }

    #[test]
    fn version_3_has_times() {
        let records = all(
            "fio version 3 iolog\n5 a b add\n6 a b open\n7 a b write 4096 512\r\n\n9 a b datasync 4096 0\n9 a b close\n",
        )
        .unwrap();
        assert_eq!(records[0], Record { time_ns: 5000, file: 0, event: Event::Add });
        assert_eq!(records[2], io(7, 0, Operation::Write, 4096, 512));
        assert_eq!(records[3], io(9, 0, Operation::DataSync, 4096, 0));
        assert_eq!(records.len(), 5);
    }

    #[test]
    fn version_2_waits() {
        let records =
            all("fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 20 0\nf trim 512 512\n").unwrap();
        assert_eq!(records[2], io(0, 0, Operation::Read, 0, 512));
        assert_eq!(records[3], Record { time_ns: 20_000_000, file: 0, event: Event::Wait });
        assert_eq!(records[4], io(20_000, 0, Operation::Trim, 512, 512));
    }

    #[test]
    fn recordings_that_were_appended_follow_each_other() {
        let one = "fio version 3 iolog\n0 f add\n1 f open\n7 f read 0 512\n";
        let records = all(&format!("{one}{one}")).unwrap();
        assert_eq!(records[4].time_ns, 8000);
        assert_eq!(records[4].event, Event::Open);
    }

    #[test]
    fn the_last_line_may_have_no_end() {
        let whole = all("fio version 3 iolog\n0 f add\n1 f open\n7 f read 0 512\n").unwrap();
        assert_eq!(all("fio version 3 iolog\n0 f add\n1 f open\n7 f read 0 512").unwrap(), whole);
        assert_eq!(all("fio version 2 iolog").unwrap(), []);
    }

    #[test]
    fn mistakes_have_a_line() {
        let body =
            |line: &str| all(&format!("fio version 3 iolog\n0 f add\n0 f open\n{line}\n")).unwrap_err();
        for (line, words) in [
            ("x f read 0 512", "t.log:4: \"x\" is not a time"),
            ("5 f read 0 +512", "\"+512\" is not a number"),
            ("5 f read 0x10 512", "\"0x10\" is not a number"),
            ("5 f rea 0 512", "no action \"rea\""),
            ("5 g read 0 512", "\"g\" was not added"),
            ("5 g open", "\"g\" was not added"),
            ("5 f", "\"f\" is neither"),
            ("5", "needs a file"),
            ("5 f wait 10 0", "version 3 has no wait"),
            ("5 f read 9223372036854775807 1", "beyond"),
            ("18446744073709551615 f close", "too large"),
            ("5 f close\n6 f read 0 512", "t.log:5: \"f\" is not open"),
            ("fio version 2 iolog", "another version"),
        ] {
            assert!(body(line).contains(words), "{line}: {}", body(line));
        }
        assert!(all("").unwrap_err().contains("empty"));
        assert!(all("fio version 1 iolog\n").unwrap_err().contains("t.log:1: the first line is"));
        assert!(
            all("fio version 3 iolog\n0 f add\n0 f op")
                .unwrap_err()
                .contains("t.log:3: the trace is cut off: its last line has no end; \"op\" is neither")
        );
        let long = "x".repeat(10_000);
        assert!(all(&format!("fio version 3 iolog\n0 {long} add\n")).unwrap_err().contains("too long"));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut text = b"fio version 3 iolog\n0 f add\n0 f open\n".to_vec();
            text.extend(bytes);
            if let Ok(mut reader) = TextReader::new(&text[..], "t") {
                while let Ok(Some(_)) = reader.next_record() {}
            }
        }
    }
}
