//! One log file. Its lines, or its compressed entries, are written in blocks while the job runs.

use crate::line::{LONGEST_LINE, LineMaker};
use crate::outlet::Outlet;
use crate::{Columns, Form, LogError, LogKind, Sample, inflate, packed};
use std::path::PathBuf;
use tracing::debug;

/// The most memory for the compressed entries that a log holds back (see [`Form::Held`]). When there are more, the log
/// begins to write them.
pub(crate) const MOST_HELD: usize = 16 << 20;

/// A log file that is being written.
pub(crate) struct LogFile {
    path: PathBuf,
    outlet: Outlet,
    columns: Columns,
    form: Form,
    /// Entries have the time of issue if there is a column for it; otherwise it is 0.
    has_issue_time: bool,
    /// Lines to be written. The buffer grows only for histograms, whose lines may be longer than any buffer.
    lines: Vec<u8>,
    used: usize,
    /// Entries to be compressed.
    entries: Vec<u8>,
    /// Compressed streams that are held back.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
}

impl LogFile {
    /// A log without any entries yet.
    pub fn new(
        kind: LogKind,
        path: PathBuf,
        outlet: Outlet,
        columns: Columns,
        form: Form,
        room: usize,
    ) -> LogFile {
        LogFile {
            path,
            outlet,
            columns,
            form,
            has_issue_time: kind.has_issue_time(),
            lines: if form == Form::Text { vec![0; room.max(2 * LONGEST_LINE)] } else { Vec::new() },
            used: 0,
            entries: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Adds an entry: the line from `maker`, or in compressed form the entry from `sample`.
    #[inline(always)]
    pub fn entry(
        &mut self,
        maker: &LineMaker,
        value: u64,
        most: u64,
        sample: impl FnOnce() -> Sample,
    ) -> Result<(), LogError> {
        if self.form == Form::Text {
            if self.lines.len() - self.used < LONGEST_LINE {
                self.write_lines()?;
            }
            self.used += maker.put(&mut self.lines[self.used..], value, most, self.has_issue_time);
            return Ok(());
        }
        let sample = sample();
        let issue_ns = if self.has_issue_time { sample.issue_ns } else { 0 };
        packed::put(&mut self.entries, &Sample { value, most, issue_ns, ..sample }, self.columns);
        self.compress_what_is_enough()
    }

    /// Adds a complete line.
    pub fn text(&mut self, line: impl FnOnce(&mut Vec<u8>)) -> Result<(), LogError> {
        line(&mut self.entries);
        if self.form == Form::Text {
            let written = self.outlet.write(&self.entries);
            self.entries.clear();
            return written.map_err(|error| LogError::at(&self.path, error));
        }
        self.compress_what_is_enough()
    }

    fn compress_what_is_enough(&mut self) -> Result<(), LogError> {
        let (Form::Compressed { stream } | Form::Held { stream }) = self.form else { return Ok(()) };
        if self.entries.len() < stream {
            return Ok(());
        }
        self.compress()
    }

    fn compress(&mut self) -> Result<(), LogError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let stream = packed::compress(&self.entries);
        debug!(
            target: "compress",
            "{}: {} bytes of entries became {}",
            self.path.display(),
            self.entries.len(),
            stream.len()
        );
        self.entries.clear();
        if matches!(self.form, Form::Held { .. }) {
            self.held_bytes += stream.len();
            self.held.push(stream);
            if self.held_bytes > MOST_HELD {
                return self.release();
            }
            return Ok(());
        }
        self.outlet.write(&stream).map_err(|error| LogError::at(&self.path, error))
    }

    /// Writes the streams that were held back, as lines.
    fn release(&mut self) -> Result<(), LogError> {
        if !self.held.is_empty() {
            let (path, streams) = (self.path.display(), self.held.len());
            debug!(target: "compress", "{path}: {streams} streams of {} bytes are written as lines", self.held_bytes);
        }
        self.held_bytes = 0;
        for stream in std::mem::take(&mut self.held) {
            let mut lines = Vec::new();
            inflate::streams(&mut stream.as_slice(), &mut lines)
                .and_then(|()| self.outlet.write(&lines))
                .map_err(|error| LogError::at(&self.path, error))?;
        }
        Ok(())
    }

    /// Writes the complete lines to the file, so that readers that follow the file see them.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.used == 0 { Ok(()) } else { self.write_lines() }
    }

    /// Writes everything to the file.
    pub fn finish(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.compress()?;
        self.release()
    }

    #[cold]
    fn write_lines(&mut self) -> Result<(), LogError> {
        let used = std::mem::take(&mut self.used);
        self.outlet.write(&self.lines[..used]).map_err(|error| LogError::at(&self.path, error))
    }
}

/// A table with at most one log file of each kind.
pub(crate) type Table = [Option<LogFile>; 9];

/// A table with an open file for each of these logs.
pub(crate) fn open_all(
    files: &[(LogKind, PathBuf)],
    open: impl Fn(LogKind, PathBuf) -> Result<LogFile, LogError>,
) -> Result<Table, LogError> {
    let mut table = Table::default();
    for (kind, path) in files {
        table[kind.index()] = Some(open(*kind, path.clone())?);
    }
    Ok(table)
}
