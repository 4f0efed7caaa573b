//! `write_iolog`: a log of the worker's I/O, in the order in which it was issued.
//!
//! Lines are collected and written some at a time, always whole ones: several workers may append to one file.

use crate::clock::Clock;
use iolite_trace::{Event, TextVersion, TextWriter};
use iolite_types::Operation;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// How much is collected before it is written.
const BUFFER: usize = 64 << 10;

/// Writes the log.
#[derive(Debug)]
pub struct TraceRecorder {
    file: File,
    log: TextWriter<Vec<u8>>,
    clock: Clock,
    /// When the job began, in nanoseconds of the clock; 0 = it has not yet.
    began: u64,
    error: Option<io::Error>,
}

impl TraceRecorder {
    /// Begins a log behind what the file holds.
    pub fn new(path: &Path, clock: Clock) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let log = TextWriter::new(Vec::with_capacity(BUFFER + 4096), TextVersion::V3)?;
        Ok(TraceRecorder { file, log, clock, began: 0, error: None })
    }

    /// The job begins now; what was recorded before happened at time 0.
    pub fn begin(&mut self, now: u64) {
        self.began = now;
    }

    /// Something happened to a file.
    pub fn event(&mut self, path: &Path, event: Event) {
        let time_us = match self.began {
            0 => 0,
            began => self.clock.now().saturating_sub(began) / 1000,
        };
        let written = self.log.write(time_us, path, event);
        let full = self.log.output().len() >= BUFFER;
        let written = if full { written.and(self.flush()) } else { written };
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
    }

    /// An I/O is issued.
    pub fn io(&mut self, path: &Path, operation: Operation, offset: u64, length: u64) {
        self.event(path, Event::Io { operation, offset, length });
    }

    /// Whether something could not be written.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn flush(&mut self) -> io::Result<()> {
        let lines = self.log.output();
        let written = self.file.write_all(lines);
        lines.clear();
        written
    }

    /// Writes the rest.
    pub fn finish(mut self) -> io::Result<()> {
        let flushed = self.flush();
        match self.error.take() {
            Some(error) => Err(error),
            None => flushed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_arrive_behind_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut expected = 0;
        for _ in 0..2 {
            let mut recorder = TraceRecorder::new(&path, Clock::calibrate()).unwrap();
            recorder.event(Path::new("f"), Event::Add);
            recorder.begin(1);
            for block in 0..5000 {
                recorder.io(Path::new("f"), Operation::Write, block * 4096, 4096);
            }
            assert!(!recorder.has_failed());
            recorder.finish().unwrap();
            expected += 5002;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), expected);
        assert!(text.starts_with("fio version 3 iolog\n0 f add\n"));
        assert!(text.ends_with(" f write 20475904 4096\n"));
    }

    #[test]
    fn a_full_disk_is_noticed() {
        let mut recorder = TraceRecorder::new(Path::new("/dev/full"), Clock::calibrate()).unwrap();
        recorder.event(Path::new("f"), Event::Add);
        assert_eq!(recorder.finish().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
