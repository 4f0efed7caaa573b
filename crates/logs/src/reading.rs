//! Reads logs of Iolite and fio: the kind of a log file by its name, its lines, and their entries.

use crate::{LogKind, inflate};
use std::io::{self, BufRead, Write};

/// The first byte of every zlib stream.
const ZLIB: u8 = 0x78;
/// Lines are shorter: the finest histogram has 1856 counts.
const LONGEST_LINE: usize = 1 << 20;
/// The most columns of a line, except in histograms.
const MOST_COLUMNS: usize = 8;
/// The most lines that are kept while their columns are ambiguous.
const MOST_UNDECIDED: usize = 1 << 16;

/// The parts of a log file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogName {
    /// The prefix as given to the job's option, without a directory.
    pub prefix: String,
    /// The kind of its values.
    pub kind: LogKind,
    /// The number of the worker, from 1; `None` = all jobs with this prefix share the file.
    pub worker: Option<usize>,
    /// The machine that sent the log.
    pub host: Option<String>,
}

impl LogName {
    /// Parses `PREFIX_KIND[.N].log[.fz][.HOST]`; `None` = this is not the name of a log.
    pub fn of(name: &str) -> Option<LogName> {
        name.match_indices(".log").find_map(|(at, ending)| {
            let rest = &name[at + ending.len()..];
            let rest = rest
                .strip_prefix(".fz")
                .filter(|rest| rest.is_empty() || rest.starts_with('.'))
                .unwrap_or(rest);
            let host = match rest.strip_prefix('.') {
                Some(host) if !host.is_empty() => Some(host.to_owned()),
                None if rest.is_empty() => None,
                _ => return None,
            };
            let (stem, worker) =
                match name[..at].rsplit_once('.').map(|(stem, number)| (stem, number.parse())) {
                    Some((stem, Ok(number))) => (stem, Some(number)),
                    _ => (&name[..at], None),
                };
            // The longest name: `x_asked_bw` is not the bandwidth of `x_asked`.
            let (kind, prefix) = LogKind::all()
                .filter_map(|kind| Some((kind, stem.strip_suffix(kind.suffix())?.strip_suffix('_')?)))
                .min_by_key(|(_, prefix)| prefix.len())?;
            Some(LogName { prefix: prefix.to_owned(), kind, worker, host })
        })
    }
}

/// Why reading a log stopped early.
#[derive(Debug)]
pub enum Broken {
    /// A line was rejected, with this message.
    Line(String),
    /// The last line is incomplete: this is its beginning.
    NoEnd(String),
    /// A compressed log is truncated. The lines before that were read.
    CutOff(io::Error),
    /// The file cannot be read, or is damaged.
    Unreadable(io::Error),
}

/// Calls `each` with each line of a log, which may be compressed.
///
/// # Errors
/// Reading stopped early. The lines that were passed to `each` are valid.
pub fn lines(from: &mut dyn BufRead, each: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), Broken> {
    let mut lines = Lines { each, begun: Vec::new(), refused: None };
    let is_packed = from.fill_buf().is_ok_and(|start| start.first() == Some(&ZLIB));
    let mut from = from;
    let read = match is_packed {
        true => inflate::streams(&mut from, &mut lines),
        false => io::copy(&mut from, &mut lines).map(|_| ()),
    };
    match (lines.refused, read) {
        (Some(why), _) => Err(Broken::Line(why)),
        (None, Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Broken::CutOff(error)),
        (None, Err(error)) => Err(Broken::Unreadable(error)),
        (None, Ok(())) if !lines.begun.is_empty() => {
            Err(Broken::NoEnd(String::from_utf8_lossy(&lines.begun).into_owned()))
        }
        (None, Ok(())) => Ok(()),
    }
}

/// Splits the data written to it into lines.
struct Lines<'a> {
    each: &'a mut dyn FnMut(&str) -> Result<(), String>,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    refused: Option<String>,
}

impl Lines<'_> {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let line = std::str::from_utf8(line).map_err(|_| io::Error::other("it is not a text"))?;
        (self.each)(line.strip_suffix('\r').unwrap_or(line)).map_err(|why| {
            self.refused = Some(why);
            io::Error::other("a wrong line")
        })
    }
}

impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            if self.begun.is_empty() {
                self.line(&rest[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.begun);
                line.extend_from_slice(&rest[..end]);
                self.line(&line)?;
            }
            rest = &rest[end + 1..];
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() > LONGEST_LINE {
            return Err(io::Error::other("a line is longer than any of a log"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An entry of a log: an I/O or a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time in milliseconds.
    pub time_ms: u64,
    /// The value.
    pub value: u64,
    /// The largest value of the window, if it is logged too.
    pub most: Option<u64>,
    /// The number of the direction.
    pub direction: usize,
    /// The length in bytes; 0 for a window.
    pub length: u64,
}

type Row = ([u64; MOST_COLUMNS], usize);

/// Parses the lines of a log, except histograms. A log does not declare its columns: the third one is either the
/// largest value, or the direction, which is at most 2. Lines are kept until one of them settles this.
#[derive(Debug, Default)]
pub struct Entries {
    has_most: Option<bool>,
    undecided: Vec<Row>,
}

impl Entries {
    /// Parses a line, and calls `each` with the entries that are certain by now.
    ///
    /// # Errors
    /// The number of the invalid column (from 1), and the reason.
    pub fn line(&mut self, line: &str, each: &mut dyn FnMut(Entry)) -> Result<(), (usize, String)> {
        let row = row(line)?;
        let has_most = self.has_most.or_else(|| has_most(&row));
        let Some(has_most) = has_most.or_else(|| (self.undecided.len() >= MOST_UNDECIDED).then_some(false))
        else {
            self.undecided.push(row);
            return Ok(());
        };
        self.decide(has_most, each);
        each(entry(&row, has_most)?);
        Ok(())
    }

    /// Ends the log: passes on the remaining entries.
    pub fn end(&mut self, each: &mut dyn FnMut(Entry)) {
        self.decide(self.has_most.unwrap_or(false), each);
    }

    fn decide(&mut self, has_most: bool, each: &mut dyn FnMut(Entry)) {
        self.has_most = Some(has_most);
        // They were accepted because both meanings are valid.
        self.undecided.drain(..).filter_map(|row| entry(&row, has_most).ok()).for_each(each);
    }
}

fn row(line: &str) -> Result<Row, (usize, String)> {
    let mut columns = [0; MOST_COLUMNS];
    let mut count = 0;
    for (position, text) in line.split(',').enumerate() {
        let text = text.trim();
        let read = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let place = columns.get_mut(position).ok_or((
            position + 1,
            "a line of such a log has at most eight columns (that of a histogram log has more: its name ends in \
             _clat_hist.N.log)"
                .to_owned(),
        ))?;
        *place = read.map_err(|_| (position + 1, format!("\"{}\" is not a number", shortened(text))))?;
        count = position + 1;
    }
    if count < 4 {
        let told = format!("{count} columns are too few: TIME, VALUE, DIRECTION, BLOCKSIZE, …");
        return Err((count, told));
    }
    Ok((columns, count))
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Whether the third column is the largest value of a window; `None` = it may be either.
fn has_most(&(columns, count): &Row) -> Option<bool> {
    match count {
        ..=5 => Some(false),
        MOST_COLUMNS => Some(true),
        _ if columns[2] > 2 => Some(true),
        // It is a length, so the third column is the direction.
        _ if columns[3] > 2 => Some(false),
        _ => None,
    }
}

fn entry(&(columns, _): &Row, has_most: bool) -> Result<Entry, (usize, String)> {
    let at = if has_most { 3 } else { 2 };
    let direction = columns[at];
    if direction > 2 {
        return Err((at + 1, format!("{direction} is not a direction (0, 1 or 2)")));
    }
    Ok(Entry {
        time_ms: columns[0],
        value: columns[1],
        most: has_most.then_some(columns[2]),
        direction: direction as usize,
        length: columns[at + 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Sample, packed};

    #[test]
    fn names_of_logs() {
        let read = |name: &str| {
            LogName::of(name)
                .map(|found| (found.prefix, found.kind, found.worker, found.host.unwrap_or_default()))
        };
        let some =
            |prefix: &str, kind, worker, host: &str| Some((prefix.to_owned(), kind, worker, host.to_owned()));
        assert_eq!(read("x_bw.1.log"), some("x", LogKind::Bandwidth, Some(1), ""));
        assert_eq!(read("a_b_clat_hist.12.log.fz"), some("a_b", LogKind::Histogram, Some(12), ""));
        assert_eq!(read("x_lat.log"), some("x", LogKind::Total, None, ""));
        assert_eq!(
            read("x.log_clat.3.log.fz.one.example"),
            some("x.log", LogKind::Completion, Some(3), "one.example")
        );
        assert_eq!(read("agg-read_bw.log"), some("agg-read", LogKind::Bandwidth, None, ""));
        for none in ["x.log", "x_bw.1.logs", "x_bw.1.log.", "x_bw.1.txt", "bw.1.log", "x_size.1.log", ""] {
            assert_eq!(read(none), None, "{none}");
        }
        for kind in LogKind::VALUES.into_iter().chain([LogKind::Histogram]) {
            let name = kind.file_name("p", Some(4), true).display().to_string();
            assert_eq!(read(&name), some("p", kind, Some(5), ""));
        }
    }

    fn entries(text: &str) -> Result<Vec<Entry>, (usize, String)> {
        let (mut reader, mut found) = (Entries::default(), Vec::new());
        for line in text.lines() {
            reader.line(line, &mut |entry| found.push(entry))?;
        }
        reader.end(&mut |entry| found.push(entry));
        Ok(found)
    }

    /// With any choice of columns, for single I/Os and for windows.
    #[test]
    fn columns_are_found_out() {
        for flags in 0..16 {
            let columns = Columns {
                offset: flags & 1 != 0,
                priority: flags & 2 != 0,
                issue: flags & 4 != 0,
                both: flags & 8 != 0,
            };
            let single = Sample {
                time_ms: 5,
                value: 61_000,
                most: 61_000,
                direction: 1,
                length: 4096,
                offset: 8192,
                priority: 0x4003,
                issue_ns: 5_000_000,
            };
            let window = Sample { time_ms: 9, value: 2, most: 3, direction: 2, ..Sample::default() };
            let slow = Sample { value: 1, most: 1, ..window };
            let wanted = |sample: &Sample| Entry {
                time_ms: sample.time_ms,
                value: sample.value,
                most: columns.both.then_some(sample.most),
                direction: sample.direction as usize,
                length: sample.length,
            };
            // If largest values are logged, all entries are windows.
            let samples = if columns.both { vec![slow, window, slow] } else { vec![single, slow, window] };
            let text: String = samples.iter().map(|sample| sample.line(columns)).collect();
            assert_eq!(entries(&text), Ok(samples.iter().map(wanted).collect()), "{columns:?}");
            let alone = if columns.both { window } else { slow };
            assert_eq!(entries(&alone.line(columns)), Ok(vec![wanted(&alone)]), "{columns:?}");
        }
        assert_eq!(entries("7, 12, 0, 4096\n").unwrap()[0].length, 4096, "of old releases");
    }

    #[test]
    fn wrong_lines_have_their_column() {
        assert_eq!(entries("1, 2, 0, 4096, x"), Err((5, "\"x\" is not a number".into())));
        assert_eq!(entries("1, 2, 3, 4096, 0"), Err((3, "3 is not a direction (0, 1 or 2)".into())));
        assert_eq!(entries("1, 2").unwrap_err().0, 2);
        assert_eq!(entries("\n").unwrap_err().0, 1);
        assert!(entries(&"1, ".repeat(30)).unwrap_err().1.contains("at most eight columns"));
    }

    fn read(bytes: &[u8]) -> (Vec<String>, Result<(), Broken>) {
        let mut found = Vec::new();
        let mut from = bytes;
        let done = lines(&mut from, &mut |line| {
            found.push(line.to_owned());
            if line == "bad" { Err("refused".to_owned()) } else { Ok(()) }
        });
        (found, done)
    }

    #[test]
    fn lines_packed_or_not() {
        let (found, done) = read(b"1, 2\r\n3, 4\n");
        assert!(done.is_ok() && found == ["1, 2", "3, 4"], "{done:?}");
        let (found, done) = read(b"1, 2\n3, ");
        assert!(matches!(done, Err(Broken::NoEnd(rest)) if rest == "3, ") && found == ["1, 2"]);
        assert!(
            matches!(read(b"a\nbad\nb\n"), (found, Err(Broken::Line(why))) if why == "refused" && found.len() == 2)
        );
        assert!(matches!(read(b"\xff\xfe\n").1, Err(Broken::Unreadable(_))));
        let stream = packed::compress(b"10, 0, 4096, 1, 2, 3\n");
        let (found, done) = read(&stream);
        assert!(done.is_ok() && found == ["10, 0, 4096, 1, 2, 3"], "{done:?}");
        let two = [&stream[..], &stream[..stream.len() / 2]].concat();
        let (found, done) = read(&two);
        assert!(matches!(done, Err(Broken::CutOff(_))) && !found.is_empty(), "{done:?}");
        assert!(matches!(read(b"abc\n").1, Ok(())), "what a line means is not known here");
        assert!(matches!(read(&[ZLIB, 0, 1, 2, 3]).1, Err(Broken::Unreadable(_))));
    }
}
