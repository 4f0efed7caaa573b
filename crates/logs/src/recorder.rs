//! The worker's side of its logs.
//!
//! The worker puts one small entry per I/O (or per window) into a [`Queue`]. A thread of the same process formats the
//! entries as lines and writes them. At the end, the recorder reports how long the worker had to wait for the thread.

use crate::Job;
use crate::file::{self, LogFile};
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

/// The number of histograms that can be on their way to the writer, in addition to the three (one per direction) that
/// are being filled.
const SPARE_HISTOGRAMS: usize = 6;

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

/// The histograms of the current window.
#[derive(Debug)]
struct Histograms {
    period: u64,
    began: u64,
    due: u64,
    filling: [Box<Counts>; 3],
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
                period: settings.histogram_ns,
                began: 0,
                due: u64::MAX,
                filling: Direction::ALL.map(Counts::new),
                full,
                spare,
            }),
            zero: settings.zero.unwrap_or(0),
            zero_is_fixed: settings.zero.is_some(),
        })
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
            (histograms.began, histograms.due) = (now, now.saturating_add(histograms.period));
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
        if let Some(windows) = &mut self.windows
            && windows.add(&done, io.complete)
        {
            self.close_windows();
        }
        if let Some(histograms) = &mut self.histograms {
            let counts = &mut histograms.filling[io.direction.index()];
            counts.total += 1;
            counts.buckets[bucket_of(done.clat())] += 1;
            counts.length = io.length;
            if io.complete >= histograms.due {
                self.close_histograms(io.complete);
            }
        }
        !self.queue.has_failed()
    }

    #[cold]
    fn close_windows(&mut self) {
        if let Some(windows) = &mut self.windows {
            windows.close(|item| self.queue.push(item));
        }
    }

    #[cold]
    fn close_histograms(&mut self, now: u64) {
        let at = now.wrapping_sub(self.zero);
        for direction in Direction::ALL {
            self.hand_over(direction, at);
        }
        if let Some(histograms) = &mut self.histograms {
            let passed = now.saturating_sub(histograms.began) / histograms.period;
            histograms.due = histograms.began.saturating_add((passed + 1).saturating_mul(histograms.period));
        }
    }

    /// Sends the histogram of a direction to the writer, unless it is empty.
    fn hand_over(&mut self, direction: Direction, at: u64) {
        let Some(histograms) = &mut self.histograms else { return };
        if histograms.filling[direction.index()].total == 0 {
            return;
        }
        let has_spare = || histograms.spare.slots() > 0;
        if !has_spare() {
            self.queue.wait_until(|_| has_spare());
        }
        // Without a spare histogram, the writer is gone.
        if let Ok(mut empty) = histograms.spare.pop() {
            empty.direction = direction;
            let mut full = std::mem::replace(&mut histograms.filling[direction.index()], empty);
            full.at = at;
            // This cannot fail: there is room for all histograms.
            let _ = histograms.full.push(full);
        }
    }

    /// Ends the logs: the rest is written to the files. Returns how long the job has waited for its logs.
    ///
    /// # Errors
    ///
    /// The first error of writing a log.
    pub fn finish(mut self, now: u64) -> Result<Duration, LogError> {
        if let Some(windows) = &mut self.windows {
            windows.finish(|item| self.queue.push(item));
        }
        self.close_histograms(now);
        self.queue.end()?;
        Ok(self.queue.waited())
    }
}
