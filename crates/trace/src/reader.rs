//! A reader of either kind of trace.

use crate::blk::{BinaryReader, ByteOrder};
use crate::source;
use crate::text::{SIGNATURE, TextReader};
use crate::{FileName, Place, Record, TextVersion, TraceError};
use iolite_types::is_standard_stream;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The bytes of a trace that are in memory at a time.
const BUFFER: usize = 64 << 10;

/// The kind of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A text log.
    Text(TextVersion),
    /// Records of blktrace.
    Blktrace,
}

/// The source of a trace, preceded by the bytes that were read to find out its kind.
type Input<S> = BufReader<io::Chain<io::Cursor<Vec<u8>>, S>>;

/// Reads a trace of either kind.
#[derive(Debug)]
pub enum TraceReader<S> {
    /// A text log.
    Text(TextReader<Input<S>>),
    /// Records of blktrace.
    Binary(BinaryReader<Input<S>>),
}

impl TraceReader<File> {
    /// Opens the trace of this name (see [`crate::open`]).
    ///
    /// # Errors
    ///
    /// It cannot be opened or read, or it is not a trace.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let name = name_of(path);
        let source = source::open(path).map_err(|error| TraceError::io(&name, Place::Whole, error))?;
        TraceReader::new(source, &name)
    }
}

impl<S: Read> TraceReader<S> {
    /// A reader of `source`, whose first bytes show which kind of trace it is. Errors call the trace `name`.
    ///
    /// # Errors
    ///
    /// The source cannot be read, is empty, or is not a trace.
    pub fn new(mut source: S, name: &str) -> Result<Self, TraceError> {
        let mut start = Vec::with_capacity(SIGNATURE.len());
        while start.len() < SIGNATURE.len() {
            let mut byte = [0];
            match source.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => start.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::io(name, Place::Whole, error)),
            }
        }
        let magic = start.first_chunk().copied().and_then(ByteOrder::of_magic);
        let is_text = start.starts_with(SIGNATURE);
        if start.is_empty() {
            return Err(TraceError::new(name, Place::Whole, "it is empty"));
        }
        if magic.is_none() && !is_text {
            return Err(TraceError::new(
                name,
                Place::Whole,
                "this is not a trace: it begins neither with \"fio version 2 iolog\" or \"fio version 3 iolog\" nor with \
                 a record of blktrace",
            ));
        }
        let input = BufReader::with_capacity(BUFFER, io::Cursor::new(start).chain(source));
        if is_text {
            return TextReader::new(input, name).map(TraceReader::Text);
        }
        Ok(TraceReader::Binary(BinaryReader::new(input, name)))
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or the record makes no sense. Reading cannot continue after an error, unless
    /// [`TraceError::is_nothing_yet`].
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        match self {
            TraceReader::Text(reader) => reader.next_record(),
            TraceReader::Binary(reader) => reader.next_record(),
        }
    }

    /// The files named so far.
    pub fn files(&self) -> &[FileName] {
        match self {
            TraceReader::Text(reader) => reader.files(),
            TraceReader::Binary(reader) => reader.files(),
        }
    }

    /// The place of the last record.
    pub fn place(&self) -> Place {
        match self {
            TraceReader::Text(reader) => reader.place(),
            TraceReader::Binary(reader) => reader.place(),
        }
    }

    /// The kind of the trace.
    pub fn format(&self) -> Format {
        match self {
            TraceReader::Text(reader) => Format::Text(reader.version()),
            TraceReader::Binary(_) => Format::Blktrace,
        }
    }
}

/// The name of a trace in errors.
pub(crate) fn name_of(path: &Path) -> String {
    if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide_the_trace_format() {
        let reader = TraceReader::new(&b"fio version 2 iolog\n"[..], "t").unwrap();
        assert_eq!(reader.format(), Format::Text(TextVersion::V2));
        let mut bytes = Vec::new();
        crate::blk::write(&mut bytes, ByteOrder::Big, &Default::default()).unwrap();
        let mut reader = TraceReader::new(&bytes[..], "t").unwrap();
        assert_eq!(reader.format(), Format::Blktrace);
        assert!(reader.next_record().unwrap().is_none());
        for bytes in [&b"0, 0, 4096\n"[..], b"fio", &[0; 100]] {
            let error = TraceReader::new(bytes, "t").unwrap_err().to_string();
            assert!(error.starts_with("t: this is not a trace"), "{error}");
        }
        assert_eq!(TraceReader::new(&b""[..], "t").unwrap_err().to_string(), "t: it is empty");
    }

    #[test]
    fn missing_traces_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none");
        let error = TraceReader::open(&path).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{}: No such file", path.display())), "{error}");
        assert!(error.source.is_some());
    }
}
