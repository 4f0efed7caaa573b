//! A trace as the source of a worker's I/O.
//!
//! The trace is read during the replay, so memory does not grow with it. A *live* trace (`read_iolog_chunked`) names
//! files as it goes. If it comes through a pipe or socket, there may be nothing to read for a while; the generator
//! reports this, and the loop serves the I/Os in flight meanwhile.

use iolite_host::ThisMachine;
use iolite_plan::ReplayPlan;
use iolite_trace::{Event, Format, Record, TraceReader, WholeRecords};
use iolite_types::{Direction, is_standard_stream};
use iolite_workload::{Generator, Io, Next, Step};
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::debug;

/// The I/O of a trace.
pub struct Replay {
    plan: Arc<ReplayPlan>,
    source: Source,
    /// The files named so far by a live trace.
    named: Vec<PathBuf>,
    known: HashMap<PathBuf, u32>,
    /// For each file of the trace, the index of the worker's file.
    places: Vec<u32>,
    /// For each of the worker's files, how often it is open. Several files of the trace may be one file of the worker.
    opened: Vec<u32>,
    needs_devices: bool,
    /// The replay keeps the trace's times at this speed in percent; `None` = it ignores them.
    speed: Option<u64>,
    first_ns: Option<u64>,
    /// Steps to return before more of the trace is read.
    waiting: VecDeque<Next>,
    trouble: Option<String>,
}

/// A result of reading the trace.
enum Came {
    /// Nothing to read yet.
    Nothing,
    /// The next record, and the format of its trace.
    Record(Record, Format),
    /// The end of the trace.
    End,
}

/// The state of reading the trace.
enum Source {
    /// It will be opened for the next I/O.
    Closed,
    /// A stream that has not sent anything yet.
    Silent(WholeRecords<Stream>),
    /// A trace in a file.
    Open(Box<TraceReader<File>>),
    /// A stream that has sent something.
    Live(Box<TraceReader<WholeRecords<Stream>>>),
}

/// A stream that is read without waiting.
struct Stream(File);

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if is_readable(self.0.as_raw_fd()) {
            self.0.read(buffer)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}

impl Replay {
    /// The replay of this plan. The times between I/Os are scaled by 100 / `speed`; `None` = they are ignored.
    pub fn new(plan: &Arc<ReplayPlan>, speed: Option<u64>, needs_devices: bool) -> Self {
        Replay {
            plan: plan.clone(),
            source: Source::Closed,
            named: Vec::new(),
            known: HashMap::new(),
            places: plan.places.clone(),
            opened: vec![0; plan.needs.len()],
            needs_devices,
            speed,
            first_ns: None,
            waiting: VecDeque::with_capacity(4),
            trouble: None,
        }
    }

    fn advance(&mut self) -> Result<Next, String> {
        loop {
            if let Some(next) = self.waiting.pop_front() {
                return Ok(next);
            }
            match self.next_record()? {
                Came::Nothing => return Ok(Next::Script(Step::Idle)),
                Came::End => {
                    debug!(target: "blktrace", "{}: read to its end", self.plan.name.display());
                    return Ok(Next::Done);
                }
                Came::Record(record, format) => self.interpret(record, format)?,
            }
        }
    }

    /// Reads the next record of the trace.
    fn next_record(&mut self) -> Result<Came, String> {
        if matches!(self.source, Source::Closed) {
            self.source = self.begin()?;
        }
        if let Source::Silent(stream) = &mut self.source {
            let name = self.plan.name.display().to_string();
            if !stream.has_some().map_err(|error| format!("{name}: {error}"))? {
                return Ok(Came::Nothing);
            }
            let Source::Silent(stream) = std::mem::replace(&mut self.source, Source::Closed) else {
                unreachable!("it was looked at just now");
            };
            let reader = TraceReader::new(stream, &name).map_err(|error| error.to_string())?;
            self.source = Source::Live(Box::new(reader));
        }
        let (record, format) = match &mut self.source {
            Source::Open(reader) => (reader.next_record(), reader.format()),
            Source::Live(reader) => (reader.next_record(), reader.format()),
            Source::Closed | Source::Silent(_) => return Ok(Came::Nothing),
        };
        match record {
            Ok(None) => Ok(Came::End),
            Ok(Some(record)) => Ok(Came::Record(record, format)),
            Err(error) if error.is_nothing_yet() => Ok(Came::Nothing),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Opens the trace.
    fn begin(&self) -> Result<Source, String> {
        if !self.plan.is_live || !iolite_trace::is_stream(&self.plan.name) {
            let reader = self.plan.open().map_err(|error| error.to_string())?;
            return Ok(Source::Open(Box::new(reader)));
        }
        let stream = self.stream().map_err(|error| format!("{}: {error}", self.plan.name.display()))?;
        Ok(Source::Silent(WholeRecords::new(Stream(stream))))
    }

    /// Opens the stream without waiting for a pipe's other end.
    fn stream(&self) -> io::Result<File> {
        use std::os::unix::fs::FileTypeExt;
        let path = &self.plan.name;
        let is_pipe = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
        if is_pipe && !is_standard_stream(path) {
            return OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        }
        iolite_trace::open(path)
    }

    fn interpret(&mut self, record: Record, format: Format) -> Result<(), String> {
        let first = match self.first_ns {
            Some(first) => first,
            None => {
                // The times of a live trace count from its first event, however late that arrives.
                self.waiting.extend(self.plan.is_live.then_some(Next::Script(Step::Begin)));
                *self.first_ns.insert(record.time_ns)
            }
        };
        let file = self.place(record.file)?;
        let Some(event) = self.plan.mapping.apply(record.event, format) else { return Ok(()) };
        let next = match event {
            Event::Open => {
                let opened = &mut self.opened[file as usize];
                *opened += 1;
                (*opened == 1).then_some(Next::Script(Step::Open(file)))
            }
            Event::Close => {
                let opened = &mut self.opened[file as usize];
                let was_open = *opened > 0;
                *opened = opened.saturating_sub(1);
                (was_open && *opened == 0).then_some(Next::Close(file))
            }
            Event::Io { operation, offset, length } => Some(match operation.direction() {
                Some(direction) => {
                    if !self.plan.foresaw(file, direction, offset, length) {
                        return Err(self.changed(direction, offset, length));
                    }
                    Next::Io(Io { offset, length, file, direction })
                }
                None => Next::Script(Step::Sync { operation, file, offset, length }),
            }),
            Event::Wait => None,
            Event::Add | Event::Issued | Event::Returned => return Ok(()),
        };
        let is_timed = matches!(event, Event::Wait | Event::Io { .. });
        if let Some(percent) = self.speed.filter(|_| is_timed) {
            let after = u128::from(record.time_ns.saturating_sub(first)) * 100 / u128::from(percent);
            let after = u64::try_from(after).unwrap_or(u64::MAX);
            self.waiting.push_back(Next::Script(Step::At(after)));
        }
        self.waiting.extend(next);
        Ok(())
    }

    /// The error for an I/O that was not in the trace when the plan looked through it.
    fn changed(&self, direction: Direction, offset: u64, length: u64) -> String {
        format!(
            "{}: it has changed since it was looked through: there was no {} of {length} bytes at offset {offset} then; \
             read_iolog_chunked=1 is for traces that are still being made",
            self.plan.name.display(),
            direction.name()
        )
    }

    /// The worker's file for a file of the trace. Adds files that a live trace names for the first time.
    fn place(&mut self, file: u32) -> Result<u32, String> {
        if let Some(&place) = self.places.get(file as usize) {
            return Ok(place);
        }
        let names = match &self.source {
            Source::Open(reader) => reader.files(),
            Source::Live(reader) => reader.files(),
            Source::Closed | Source::Silent(_) => unreachable!("a record was read from it"),
        };
        for name in &names[self.places.len()..=file as usize] {
            let path = self.plan.target.of(name, self.needs_devices, &ThisMachine::new())?;
            let place = match self.known.get(&path) {
                Some(&place) => place,
                None => {
                    let place = self.named.len() as u32;
                    self.known.insert(path.clone(), place);
                    self.named.push(path);
                    self.opened.push(0);
                    self.waiting.push_back(Next::Script(Step::Added(place)));
                    place
                }
            };
            self.places.push(place);
        }
        Ok(self.places[file as usize])
    }
}

impl Generator for Replay {
    fn next(&mut self) -> Next {
        if self.trouble.is_some() {
            return Next::Script(Step::Failed);
        }
        self.advance().unwrap_or_else(|trouble| {
            self.trouble = Some(trouble);
            Next::Script(Step::Failed)
        })
    }

    fn restart(&mut self) {
        self.source = Source::Closed;
        self.first_ns = None;
        self.waiting.clear();
        self.opened.fill(0);
        // A live trace may name other files next time, or the same files in another order.
        if self.plan.is_live {
            self.places.clear();
        }
    }

    fn rewind(&mut self) {
        self.restart();
    }

    fn path(&self, file: u32) -> Option<&Path> {
        self.named.get(file as usize).map(PathBuf::as_path)
    }

    fn take_trouble(&mut self) -> Option<String> {
        self.trouble.clone()
    }
}

/// Whether a read would return without waiting.
fn is_readable(descriptor: RawFd) -> bool {
    let mut wanted = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, valid for the call.
    unsafe { libc::poll(&raw mut wanted, 1, 0) > 0 }
}
