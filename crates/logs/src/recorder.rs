//! A worker's side of its logs.
//!
//! The worker puts one small entry per I/O (or per window) into a queue of fixed size; a thread of the same process
//! takes them out, makes lines of them and writes them. So memory is known at the start, nothing is lost, and a job that
//! is faster than the disk under its logs waits for it: how long, it tells at the end.

use crate::file::{self, LogFile};
use crate::histogram::Counts;
use crate::item::{Done, Io, Item};
use crate::line::{Columns, LineMaker};
use crate::windows::{WindowValue, Windows};
use crate::writer::{Signs, Writer};
use crate::{Form, LogError, LogKind};
use iolite_stats::bucket_of;
use iolite_types::Direction;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Histograms on their way to the writer, beside the three (one per direction) that are being filled.
const SPARE_HISTOGRAMS: usize = 6;

/// A queue has room for a few entries in any case.
const LEAST_ROOM: usize = 16;

/// How long a worker without room sleeps before it looks again. A writer empties a good part of its queue meanwhile,
/// and never all of it.
const PATIENCE: Duration = Duration::from_micros(50);

/// What is to be logged, and where.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The files.
    pub files: Vec<(LogKind, PathBuf)>,
    /// Other workers write to the same files.
    pub shared: bool,
    /// Columns of the lines.
    pub columns: Columns,
    /// Nanoseconds of an averaged window; 0 = each I/O has an entry.
    pub average_ns: u64,
    /// Which value of a window is logged.
    pub shown: WindowValue,
    /// Nanoseconds of a histogram's window; 0 = no histograms.
    pub histogram_ns: u64,
    /// How often neighbouring buckets are added together.
    pub coarseness: u32,
    /// How entries are stored.
    pub form: Form,
    /// Entries for which the queue has room.
    pub room: usize,
    /// Where the times of another clock begin, in nanoseconds of the worker's; `None` = times count from the beginning.
    pub zero: Option<u64>,
}

/// The histograms of the present window.
#[derive(Debug)]
struct Histograms {
    period: u64,
    began: u64,
    due: u64,
    filling: [Box<Counts>; 3],
    full: Producer<Box<Counts>>,
    spare: Consumer<Box<Counts>>,
}

/// Takes what a worker tells of its I/Os.
#[derive(Debug)]
pub struct Recorder {
    items: Producer<Item>,
    /// Entries until the writer is woken.
    until_wake: usize,
    wake_every: usize,
    /// Each I/O has an entry.
    each: bool,
    windows: Option<Windows>,
    histograms: Option<Histograms>,
    zero: u64,
    zero_is_fixed: bool,
    waited: Duration,
    signs: Arc<Signs>,
    writer: Option<JoinHandle<Result<(), LogError>>>,
}

impl Recorder {
    /// Opens the files and starts the writer, which first does `prepare`.
    ///
    /// # Errors
    /// The file that cannot be opened, or what else cannot be had.
    pub fn start(
        settings: &Settings,
        prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
    ) -> Result<Recorder, LogError> {
        // Four bytes for each entry of the queue: both shrink together when there are many workers.
        let room = settings.room.max(LEAST_ROOM);
        let open = |path| {
            LogFile::open(path, settings.shared, settings.columns, settings.form, (room * 4).min(256 << 10))
        };
        let files = file::open_all(&settings.files, open)?;
        let (items, taken) = RingBuffer::new(room);
        let (full, histograms) = RingBuffer::new(SPARE_HISTOGRAMS + 3);
        let (mut back, spare) = RingBuffer::new(SPARE_HISTOGRAMS + 3);
        let has = |kind| settings.files.iter().any(|(given, _)| *given == kind);
        let histograms_wanted = settings.histogram_ns > 0 && has(LogKind::Histogram);
        if histograms_wanted {
            for _ in 0..SPARE_HISTOGRAMS {
                // There is room for all.
                let _ = back.push(Counts::new(Direction::Read));
            }
        }
        let signs = Arc::new(Signs::default());
        let writer = Writer {
            items: taken,
            histograms,
            spare: back,
            signs: Arc::clone(&signs),
            files,
            maker: LineMaker::new(settings.columns),
            coarseness: settings.coarseness,
            wide: None,
        };
        let values = LogKind::VALUES.into_iter().any(has);
        let wake_every = (room / 4).max(1);
        Ok(Recorder {
            items,
            until_wake: wake_every,
            wake_every,
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
            waited: Duration::ZERO,
            signs,
            writer: Some(spawn(writer, prepare)?),
        })
    }

    /// Counting begins now, in nanoseconds of the worker's clock.
    pub fn begin(&mut self, now: u64) {
        if !self.zero_is_fixed {
            self.zero = now;
        }
        if let Some(windows) = &mut self.windows {
            windows.begin(now);
        }
        if let Some(histograms) = &mut self.histograms {
            (histograms.began, histograms.due) = (now, now.saturating_add(histograms.period));
        }
    }

    /// An I/O is done. False = logs cannot be written any more; [`Recorder::finish`] tells why.
    #[inline]
    pub fn record(&mut self, io: &Io) -> bool {
        let done = Done::new(io, self.zero);
        if self.each {
            if let Some(upper) = done.upper() {
                self.push(upper);
            }
            self.push(done.lower());
        }
        if let Some(windows) = &mut self.windows
            && windows.add(&done, io.complete)
        {
            self.close_windows(io.complete);
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
        !self.signs.failed.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn push(&mut self, item: Item) {
        if let Err(PushError::Full(item)) = self.items.push(item) {
            self.push_when_there_is_room(item);
        }
        self.until_wake -= 1;
        if self.until_wake == 0 {
            self.until_wake = self.wake_every;
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }

    #[cold]
    fn push_when_there_is_room(&mut self, item: Item) {
        let wanted = self.wake_every;
        self.wait_until(|recorder| recorder.items.slots() >= wanted);
        // It fails only when the writer is gone, and then its error is what counts.
        let _ = self.items.push(item);
    }

    /// Waits for the writer, and counts the time.
    fn wait_until(&mut self, ready: impl Fn(&Recorder) -> bool) {
        let began = Instant::now();
        while !ready(self) && !self.items.is_abandoned() {
            self.wake();
            thread::sleep(PATIENCE);
        }
        self.waited += began.elapsed();
    }

    #[cold]
    fn close_windows(&mut self, now: u64) {
        let Some(mut windows) = self.windows.take() else { return };
        windows.close(now, now.wrapping_sub(self.zero), |item| self.push(item));
        self.windows = Some(windows);
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

    /// Gives the writer a direction's histogram, if there is anything in it.
    fn hand_over(&mut self, direction: Direction, at: u64) {
        let total = |histograms: &Histograms| histograms.filling[direction.index()].total;
        if self.histograms.as_ref().is_none_or(|histograms| total(histograms) == 0) {
            return;
        }
        let has_spare = |recorder: &Recorder| {
            recorder.histograms.as_ref().is_none_or(|histograms| histograms.spare.slots() > 0)
        };
        if !has_spare(self) {
            self.wait_until(has_spare);
        }
        let Some(histograms) = &mut self.histograms else { return };
        // There is none only when the writer is gone.
        if let Ok(mut empty) = histograms.spare.pop() {
            empty.direction = direction;
            let mut full = std::mem::replace(&mut histograms.filling[direction.index()], empty);
            full.at = at;
            // There is room for as many as there are.
            let _ = histograms.full.push(full);
        }
    }

    /// The job is over: what is left goes to the files. Tells for how long the job has waited for its logs.
    ///
    /// # Errors
    /// The first log that could not be written.
    pub fn finish(mut self, now: u64) -> Result<Duration, LogError> {
        self.close_windows(now);
        self.close_histograms(now);
        self.end()?;
        Ok(self.waited)
    }

    fn end(&mut self) -> Result<(), LogError> {
        self.signs.over.store(true, Ordering::Release);
        self.wake();
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.join().unwrap_or_else(|_| {
            Err(LogError::new("the log writer", io::Error::other("it ran into a defect of this program")))
        })
    }
}

/// A worker that ends otherwise still leaves what it has told so far.
impl Drop for Recorder {
    fn drop(&mut self) {
        // Whatever made the worker end is told instead.
        let _ = self.end();
    }
}

/// Starts the writer's thread, and waits until it is prepared.
fn spawn(
    writer: Writer,
    prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
) -> Result<JoinHandle<Result<(), LogError>>, LogError> {
    let (tell, prepared) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("iolite-log".into())
        .spawn(move || {
            let result = prepare();
            let failed = result.is_err();
            // Somebody waits for it below.
            let _ = tell.send(result);
            if failed { Ok(()) } else { writer.run() }
        })
        .map_err(|error| LogError::new("the log writer cannot be started", error))?;
    match prepared.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(LogError::new("the log writer", io::Error::other("it ended at once"))),
    }
}
