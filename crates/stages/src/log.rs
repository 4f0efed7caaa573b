//! The log of stages: one line for each I/O whose stages are known.

use crate::area::IoStamps;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A log file. Workers may share one.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    file: BufWriter<File>,
    /// Why it is not complete.
    error: Option<io::Error>,
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Log> {
        let state = State { file: BufWriter::new(File::create(path)?), error: None };
        Ok(Log { path: path.to_owned(), state: RefCell::new(state) })
    }

    /// Adds a line: milliseconds since the first I/O, nanoseconds of each stage, direction, bytes, offset.
    pub(crate) fn write(&self, io: &IoStamps, stages: &[u64], base: u64) {
        let mut state = self.state.borrow_mut();
        if state.error.is_some() {
            return;
        }
        let at_ms = io.completed.saturating_sub(base) / 1_000_000;
        let file = &mut state.file;
        let written = write!(file, "{at_ms}")
            .and_then(|()| stages.iter().try_for_each(|stage| write!(file, ", {stage}")))
            .and_then(|()| writeln!(file, ", {}, {}, {}", io.direction, io.length, io.offset));
        state.error = written.err();
    }

    /// Writes what is left. The words for an error, if there was one.
    pub(crate) fn finish(&self) -> Option<String> {
        let mut state = self.state.borrow_mut();
        let error = state.error.take().or_else(|| state.file.flush().err())?;
        Some(format!("write_stages_log: {} is not complete: {error}", self.path.display()))
    }
}
