//! The worker's side of its logs.
//!
//! The worker puts one small entry per I/O (or per window) into a [`Queue`]. A thread of the same process formats the
//! entries as lines and writes them. At the end, the recorder reports how long the worker had to wait for the thread.

use crate::Job;
use crate::asked::{Asked, Demand};
use crate::file::{self, LogFile};
use crate::grid::Grid;
use crate::histogram::Counts;
use crate::item::{Done, Io, Item};
use crate::line::{Columns, LineMaker};
use crate::outlet::Outlet;
use crate::queue::{self, Queue};
use crate::windows::{WindowValue, Windows};
use crate::writer::Writer;
use crate::{Form, LogError, LogKind};
use iolite_stats::bucket_of;
use iolite_types::Direction;
use rtrb::{Consumer, Producer, RingBuffer};
use std::path::PathBuf;
use std::time::Duration;

/// The number of histograms that can be on their way to the writer, or belong to the window before the current one, in
/// addition to the three (one per direction) that are being filled.
const SPARE_HISTOGRAMS: usize = 9;

/// The length of a window of a schedule, if no other is given, in nanoseconds.
const ASKED_NS: u64 = 1_000_000_000;

/// The values to log, and the files.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, PartialEq, Eq)]
pub struct Settings {
    /// The files.
    pub files: Vec<(LogKind, PathBuf)>,
    /// Whether other workers write to the same files.
    pub shared: bool,
    /// Columns of the lines.
    pub columns: Columns,
    /// Length of a window that is averaged, in nanoseconds; 0 = each I/O has an entry.
    pub average_ns: u64,
    /// The value of a window that is logged.
    pub shown: WindowValue,
    /// Length of a histogram's window in nanoseconds; 0 = no histograms.
    pub histogram_ns: u64,
    /// The number of times that pairs of neighbouring buckets are added together, at most
    /// [`MOST_COARSENESS`](crate::MOST_COARSENESS).
    pub coarseness: u32,
    /// How entries are stored.
    pub form: Form,
    /// Size of the queue in entries.
    pub room: usize,
    /// The zero of the log's times, in nanoseconds of the worker's clock; `None` = the times count from
    /// [`Recorder::begin`].
    pub zero: Option<u64>,
}

/// The histograms of the current window and of the one before it, which the last window may join.
#[derive(Debug)]
struct Histograms {
    grid: Grid,
    filling: [Box<Counts>; 3],
    before: [Option<Box<Counts>>; 3],
    full: Producer<Box<Counts>>,
    spare: Consumer<Box<Counts>>,
}

/// Records the I/Os of a worker.
#[derive(Debug)]
pub struct Recorder {
    queue: Queue<Item>,
    /// Whether each I/O has an entry.
    each: bool,
    windows: Option<Windows>,
    histograms: Option<Histograms>,
    asked: Option<Asked>,
    zero: u64,
    zero_is_fixed: bool,
}

impl Recorder {
    /// Opens the files and starts the writer, which first calls `prepare`. This waits for the readers of pipes unless
    /// the job is to stop.
    ///
    /// # Errors
    ///
    /// A file cannot be opened, the thread cannot be started, or `prepare` fails.
    pub fn start(
        settings: &Settings,
        job: &Job,
        prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
    ) -> Result<Recorder, LogError> {
        // Four bytes for each entry of the queue. So both shrink together if there are many workers.
        let room = queue::room(settings.room);
        let open = |kind, path: PathBuf| {
            // Workers append to a shared file; a worker's own file is truncated.
            let outlet =
                Outlet::open(&path, settings.shared, job).map_err(|error| LogError::at(&path, error))?;
            let room = (room * 4).min(256 << 10);
            Ok(LogFile::new(kind, path, outlet, settings.columns, settings.form, room))
        };
        let files = file::open_all(&settings.files, open)?;
        let (full, histograms) = RingBuffer::new(SPARE_HISTOGRAMS + 3);
        let (mut back, spare) = RingBuffer::new(SPARE_HISTOGRAMS + 3);
        let has = |kind| settings.files.iter().any(|(given, _)| *given == kind);
        let histograms_wanted = settings.histogram_ns > 0 && has(LogKind::Histogram);
        if histograms_wanted {
            for _ in 0..SPARE_HISTOGRAMS {
                // This cannot fail: there is room for all.
                let _ = back.push(Counts::new(Direction::Read));
            }
        }
        let writer = Writer {
            histograms,
            spare: back,
            files,
            maker: LineMaker::new(settings.columns),
            coarseness: settings.coarseness,
            wide: None,
            first_byte: None,
        };
        let values = LogKind::VALUES.into_iter().any(has);
        Ok(Recorder {
            queue: Queue::start(room, writer, job.clone(), prepare)?,
            each: values && settings.average_ns == 0,
            windows: (values && settings.average_ns > 0)
                .then(|| Windows::new(settings.average_ns, settings.shown)),
            histograms: histograms_wanted.then(|| Histograms {
                grid: Grid::new(settings.histogram_ns),
                filling: Direction::ALL.map(Counts::new),
                before: [const { None }; 3],
                full,
                spare,
            }),
            asked: None,
            zero: settings.zero.unwrap_or(0),
            zero_is_fixed: settings.zero.is_some(),
        })
    }

    /// Also records what a schedule asks for, if there is a log for it.
    #[must_use]
    pub fn with_demand(mut self, settings: &Settings, demand: Demand) -> Recorder {
        let period = if settings.average_ns > 0 { settings.average_ns } else { ASKED_NS };
        let kind = settings.files.iter().map(|(kind, _)| *kind).find(|kind| kind.is_asked());
        self.asked = kind.map(|kind| Asked::new(kind, demand, period));
        self
    }

    /// Starts the windows, and the times of the log unless [`Settings::zero`] is set. `now` is in nanoseconds of the
    /// worker's clock.
    pub fn begin(&mut self, now: u64) {
        if !self.zero_is_fixed {
            self.zero = now;
        }
        if let Some(windows) = &mut self.windows {
            windows.begin(now, self.zero);
        }
        if let Some(histograms) = &mut self.histograms {
            histograms.grid.begin(now);
        }
        if let Some(asked) = &mut self.asked {
            asked.begin(now, self.zero);
        }
    }

    /// Records a completed I/O. Returns false if the logs cannot be written any more; [`Recorder::finish`] returns the
    /// reason.
    #[inline]
    pub fn record(&mut self, io: &Io) -> bool {
        let done = Done::new(io, self.zero);
        if self.each {
            if let Some(time) = done.first_byte {
                self.queue.push(Item::FirstByte(time));
            }
            if let Some(upper) = done.upper() {
                self.queue.push(upper);
            }
            self.queue.push(done.lower());
        }
        if let Some(windows) = &mut self.windows {
            if windows.is_over(io.complete) {
                windows.close(io.complete, |item| self.queue.push(item));
            }
            windows.add(&done);
        }
        if let Some(histograms) = &self.histograms
            && histograms.grid.is_over(io.complete)
        {
            self.close_histograms(io.complete);
        }
        if let Some(histograms) = &mut self.histograms {
            let counts = &mut histograms.filling[io.direction.index()];
            counts.total += 1;
            counts.buckets[bucket_of(done.clat())] += 1;
            counts.length = io.length;
        }
        if let Some(asked) = &mut self.asked
            && asked.is_over(io.complete)
        {
            asked.log_until(io.complete, |item| self.queue.push(item));
        }
        !self.queue.has_failed()
    }

    /// Goes on to the window in which `now` lies.
    #[cold]
    fn close_histograms(&mut self, now: u64) {
        let Some(histograms) = &mut self.histograms else { return };
        let at = histograms.grid.advance(now).wrapping_sub(self.zero);
        for index in 0..3 {
            self.hand_over(index);
            self.put_aside(index, at);
        }
    }

    /// Ends the last window with the job, which ended `now`.
    fn finish_histograms(&mut self, now: u64) {
        let Some(histograms) = &mut self.histograms else { return };
        let rest = histograms.grid.rest(now);
        let at = rest.end.wrapping_sub(self.zero);
        let before = at - rest.span;
        for index in 0..3 {
            let Some(histograms) = &mut self.histograms else { return };
            let last = &mut histograms.filling[index];
            if rest.joins
                && last.total > 0
                && let Some(joined) = histograms.before[index].take_if(|joined| joined.at == before)
            {
                last.add(&joined);
            }
            self.hand_over(index);
        }
        for index in 0..3 {
            self.put_aside(index, at);
            self.hand_over(index);
        }
    }

    /// Ends the histogram that is being filled, unless it is empty: from now on it belongs to the window before the
    /// current one.
    fn put_aside(&mut self, index: usize, at: u64) {
        let Some(histograms) = &mut self.histograms else { return };
        if histograms.filling[index].total == 0 {
            return;
        }
        let has_spare = || histograms.spare.slots() > 0;
        if !has_spare() {
            self.queue.wait_until(|_| has_spare());
        }
        // Without a spare histogram, the writer is gone.
        if let Ok(mut empty) = histograms.spare.pop() {
            empty.direction = Direction::ALL[index];
            let mut full = std::mem::replace(&mut histograms.filling[index], empty);
            full.at = at;
            histograms.before[index] = Some(full);
        }
    }

    /// Sends the histogram of the window before the current one to the writer, if there is one.
    fn hand_over(&mut self, index: usize) {
        if let Some(histograms) = &mut self.histograms
            && let Some(full) = histograms.before[index].take()
        {
            // This cannot fail: there is room for all histograms.
            let _ = histograms.full.push(full);
        }
    }

    /// Ends the logs with the job, which ended `now`: the rest is written to the files. Returns how long the job has
    /// waited for its logs.
    ///
    /// # Errors
    ///
    /// The first error of writing a log.
    pub fn finish(mut self, now: u64) -> Result<Duration, LogError> {
        if let Some(windows) = &mut self.windows {
            windows.finish(now, |item| self.queue.push(item));
        }
        self.finish_histograms(now);
        if let Some(asked) = &mut self.asked {
            asked.finish(now, |item| self.queue.push(item));
        }
        self.queue.end()?;
        Ok(self.queue.waited())
    }
}
