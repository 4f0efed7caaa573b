//! `write_iolog`: a log of the worker's I/O in the order of issue.
//!
//! Like other logs it goes through a queue to a thread that formats it, so the worker waits only when the queue is
//! full, and counts that time. Each write to the file contains only complete lines, because several workers may append
//! to one file.

use iolite_logs::{LogError, Outlet, Queue, Sink};
use iolite_os::clock::Clock;
use iolite_trace::{Event, TextVersion, TextWriter};
use iolite_types::Operation;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Bytes of lines that are collected before they are written.
const BUFFER: usize = 64 << 10;

/// An event of a file. Two entries fit into a cache line.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time_us: u64,
    offset: u64,
    length: u64,
    file: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A file was added. Its name comes through another channel.
    Add,
    Open,
    Close,
    Io(Operation),
}

/// Records the I/Os of a worker.
#[derive(Debug)]
pub struct TraceRecorder {
    queue: Queue<Entry>,
    names: mpsc::Sender<PathBuf>,
    clock: Clock,
    /// When the job started, in nanoseconds of the clock; 0 = not yet.
    began: u64,
}

impl TraceRecorder {
    /// Starts a recording of this name that appends to the outlet. The queue holds `room` entries. The writing thread
    /// calls `prepare` first.
    ///
    /// # Errors
    /// There is no memory for the lines or no thread for the writer, or `prepare` fails.
    pub fn start(
        name: &str,
        outlet: Outlet,
        clock: Clock,
        room: usize,
        prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
    ) -> Result<Self, LogError> {
        let lines = TextWriter::new(Vec::with_capacity(BUFFER + 4096), TextVersion::V3)
            .map_err(|error| LogError::new(name, error))?;
        let (names, named) = mpsc::channel();
        let job = outlet.job().clone();
        let recording = Recording { name: name.to_owned(), outlet, lines, named, files: Vec::new() };
        Ok(TraceRecorder { queue: Queue::start(room, recording, job, prepare)?, names, clock, began: 0 })
    }

    /// The job starts now. Earlier events are recorded at time 0.
    pub fn begin(&mut self, now: u64) {
        self.began = now;
    }

    /// A file was added. The first is number 0.
    pub fn added(&mut self, path: &Path) {
        // Sending fails only if the writer has ended, and then its error is reported.
        let _ = self.names.send(path.to_owned());
        self.put(What::Add, 0, 0, 0);
    }

    /// A file was opened.
    pub fn opened(&mut self, file: u32) {
        self.put(What::Open, file, 0, 0);
    }

    /// A file was closed.
    pub fn closed(&mut self, file: u32) {
        self.put(What::Close, file, 0, 0);
    }

    /// An I/O is being issued.
    #[inline]
    pub fn io(&mut self, operation: Operation, file: u32, offset: u64, length: u64) {
        self.put(What::Io(operation), file, offset, length);
    }

    #[inline]
    fn put(&mut self, what: What, file: u32, offset: u64, length: u64) {
        let time_us = match self.began {
            0 => 0,
            began => self.clock.now().saturating_sub(began) / 1000,
        };
        self.queue.push(Entry { time_us, offset, length, file, what });
    }

    /// Whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.queue.has_failed()
    }

    /// Writes the rest. Returns how long the job has waited for its recording.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish(mut self) -> Result<Duration, LogError> {
        self.queue.end()?;
        Ok(self.queue.waited())
    }
}

/// The writing thread's side.
struct Recording {
    name: String,
    outlet: Outlet,
    lines: TextWriter<Vec<u8>>,
    named: mpsc::Receiver<PathBuf>,
    files: Vec<PathBuf>,
}

impl Recording {
    fn put(&mut self, entry: &Entry) -> io::Result<()> {
        let (file, event) = match entry.what {
            What::Add => {
                // The name was sent before the entry was queued.
                self.files.push(self.named.try_recv().map_err(io::Error::other)?);
                (self.files.len() - 1, Event::Add)
            }
            What::Open => (entry.file as usize, Event::Open),
            What::Close => (entry.file as usize, Event::Close),
            What::Io(operation) => {
                let Entry { offset, length, file, .. } = *entry;
                (file as usize, Event::Io { operation, offset, length })
            }
        };
        self.lines.write(entry.time_us, &self.files[file], event)?;
        if self.lines.output().len() >= BUFFER { self.write_lines() } else { Ok(()) }
    }

    fn write_lines(&mut self) -> io::Result<()> {
        let lines = self.lines.output();
        let written = self.outlet.write(lines);
        lines.clear();
        written
    }
}

impl Sink for Recording {
    type Entry = Entry;

    fn take(&mut self, entries: &[Entry]) -> Result<(), LogError> {
        let put = entries.iter().try_for_each(|entry| self.put(entry));
        put.map_err(|error| LogError::new(&self.name, error))
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.write_lines().map_err(|error| LogError::new(&self.name, error))
    }

    fn finish(&mut self) -> Result<(), LogError> {
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_logs::Job;

    fn recorder(path: &Path) -> TraceRecorder {
        let outlet = Outlet::open(path, true, &Job::stopping_when(|| false)).unwrap();
        TraceRecorder::start(path.to_str().unwrap(), outlet, Clock::calibrate(), 64, || Ok(())).unwrap()
    }

    #[test]
    fn two_entries_in_a_line_of_the_cache() {
        assert_eq!(size_of::<Entry>(), 32);
    }

    #[test]
    fn all_lines_are_appended_however_small_the_queue() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut expected = 0;
        for _ in 0..2 {
            let mut recorder = recorder(&path);
            recorder.added(Path::new("f"));
            recorder.added(Path::new("g"));
            recorder.opened(1);
            recorder.begin(1);
            for block in 0..5000 {
                recorder.io(Operation::Write, (block % 2) as u32, block * 4096, 4096);
            }
            recorder.closed(1);
            assert!(!recorder.has_failed());
            recorder.finish().unwrap();
            expected += 5005;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), expected);
        assert!(text.starts_with("fio version 3 iolog\n0 f add\n0 g add\n0 g open\n"));
        assert!(text.contains(" f write 20471808 4096\n"));
        assert!(text.ends_with(" g close\n"));
        let offsets = text.lines().skip(4).take(5000).map(|line| line.split(' ').nth(3).unwrap());
        assert!(offsets.eq((0..5000).map(|block| (block * 4096).to_string())), "in order");
    }

    #[test]
    fn a_full_disk_is_noticed() {
        let mut recorder = recorder(Path::new("/dev/full"));
        recorder.added(Path::new("f"));
        let error = recorder.finish().unwrap_err();
        assert_eq!((error.what.as_str(), error.error.raw_os_error()), ("/dev/full", Some(libc::ENOSPC)));
    }
}
