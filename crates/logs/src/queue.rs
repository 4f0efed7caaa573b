//! The queue from a worker to a thread of the same process that writes for it.
//!
//! The worker puts small entries into a queue of fixed size, and the thread passes them to a [`Sink`], many at a time.
//! So the memory is known at the start, no entry is lost, and a worker that is faster than the disk waits. The thread
//! sleeps until a part of the queue is full or some time has passed: entries in batches cost both sides less than
//! single ones, and a slow job is not disturbed by frequent wake-ups.

use crate::job::Holding;
use crate::{Job, LogError};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The smallest size of a queue, in entries.
const LEAST_ROOM: usize = 16;

/// How long a worker sleeps when the queue is full, before it looks again. In this time the writer empties a good part
/// of the queue, but never all of it.
const PATIENCE: Duration = Duration::from_micros(50);

/// The longest sleep of the thread.
const NAP: Duration = Duration::from_millis(100);

/// Entries are in the file after this time plus [`NAP`] at the latest.
const FLUSH: Duration = Duration::from_millis(250);

/// The destination of the entries, used by the thread.
pub trait Sink: Send + 'static {
    /// The type of entries in the queue.
    type Entry: Send + 'static;

    /// Takes entries, in order.
    ///
    /// # Errors
    ///
    /// The entries cannot be written. The queue then passes no more entries.
    fn take(&mut self, entries: &[Self::Entry]) -> Result<(), LogError>;

    /// Takes data that does not pass through the queue. Called after entries were taken.
    ///
    /// # Errors
    ///
    /// As for [`Sink::take`].
    fn take_others(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    /// Writes complete data to the file, so that readers that follow the file see it.
    ///
    /// # Errors
    ///
    /// As for [`Sink::take`].
    fn flush(&mut self) -> Result<(), LogError>;

    /// Writes everything to the file. More entries may follow if the job only had to save its buffered entries.
    ///
    /// # Errors
    ///
    /// As for [`Sink::take`].
    fn finish(&mut self) -> Result<(), LogError>;
}

/// Flags that worker and writer share in addition to the queue.
#[derive(Debug, Default)]
struct Signs {
    /// The worker sends no more entries.
    over: AtomicBool,
    /// The writer cannot write.
    failed: AtomicBool,
}

/// The worker's side.
#[derive(Debug)]
pub struct Queue<T> {
    entries: Producer<T>,
    /// Entries before the writer is woken.
    until_wake: usize,
    wake_every: usize,
    waited: Duration,
    signs: Arc<Signs>,
    writer: Option<JoinHandle<Result<(), LogError>>>,
}

/// The size of a queue, in entries, if this many are wanted.
pub(crate) fn room(wanted: usize) -> usize {
    wanted.max(LEAST_ROOM)
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread, which writes for this job and first calls `prepare`, and waits until that returns.
    ///
    /// # Errors
    ///
    /// The thread cannot be started, or `prepare` fails.
    pub fn start<S: Sink<Entry = T>>(
        wanted: usize,
        sink: S,
        job: Job,
        prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
    ) -> Result<Queue<T>, LogError> {
        let room = room(wanted);
        let (entries, taken) = RingBuffer::new(room);
        let signs = Arc::new(Signs::default());
        let writer = spawn(Writing { taken, sink, signs: Arc::clone(&signs), job }, prepare)?;
        let wake_every = (room / 4).max(1);
        Ok(Queue {
            entries,
            until_wake: wake_every,
            wake_every,
            waited: Duration::ZERO,
            signs,
            writer: Some(writer),
        })
    }

    /// Puts an entry into the queue, and waits while the queue is full.
    #[inline(always)]
    pub fn push(&mut self, entry: T) {
        if let Err(PushError::Full(entry)) = self.entries.push(entry) {
            self.push_when_there_is_room(entry);
        }
        self.until_wake -= 1;
        if self.until_wake == 0 {
            self.until_wake = self.wake_every;
            self.wake();
        }
    }

    /// Whether writing has failed; [`Queue::end`] returns the reason.
    #[inline(always)]
    pub fn has_failed(&self) -> bool {
        self.signs.failed.load(Ordering::Relaxed)
    }

    /// The time that the worker has spent waiting for the writer.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    #[cold]
    fn push_when_there_is_room(&mut self, entry: T) {
        let wanted = self.wake_every;
        self.wait_until(|queue| queue.entries.slots() >= wanted);
        // This fails only if the writer is gone, and then the writer's error is the one that counts.
        let _ = self.entries.push(entry);
    }

    /// Waits for the writer, and adds up the time.
    pub(crate) fn wait_until(&mut self, ready: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !ready(self) && !self.entries.is_abandoned() {
            self.wake();
            thread::sleep(PATIENCE);
        }
        self.waited += began.elapsed();
    }
}

impl<T> Queue<T> {
    /// Ends the queue: the thread writes everything that is left, and ends.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn end(&mut self) -> Result<(), LogError> {
        self.signs.over.store(true, Ordering::Release);
        self.wake();
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.join().unwrap_or_else(|_| {
            Err(LogError::new("the log writer", io::Error::other("it ran into a defect of this program")))
        })
    }

    fn wake(&self) {
        if let Some(writer) = &self.writer {
            writer.thread().unpark();
        }
    }
}

/// If a worker ends without [`Queue::end`], its entries so far are written nevertheless.
impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        // The reason for which the worker ended is reported instead.
        let _ = self.end();
    }
}

/// The thread's side.
struct Writing<S: Sink> {
    taken: Consumer<S::Entry>,
    sink: S,
    signs: Arc<Signs>,
    job: Job,
}

impl<S: Sink> Writing<S> {
    /// Writes until the worker sends no more.
    fn run(mut self, mut holding: Holding) -> Result<(), LogError> {
        let written = self.write_all(&mut holding);
        if written.is_err() {
            self.signs.failed.store(true, Ordering::Release);
        }
        written
    }

    fn write_all(&mut self, holding: &mut Holding) -> Result<(), LogError> {
        let enough = self.taken.buffer().capacity() / 8;
        let mut flushed = Instant::now();
        loop {
            // Read before the queue is emptied, so that no entry before the end is missed.
            let over = self.signs.over.load(Ordering::Acquire);
            let must_save = self.job.must_save();
            let count = self.take()?;
            self.sink.take_others()?;
            if over {
                return self.sink.finish();
            }
            if must_save {
                // The worker hangs or is slow. If it continues, so do its logs.
                self.sink.finish()?;
                holding.saved();
            }
            if flushed.elapsed() >= FLUSH {
                self.sink.flush()?;
                flushed = Instant::now();
            }
            if count < enough {
                thread::park_timeout(NAP);
            }
        }
    }

    /// Takes all entries in the queue. Returns their number.
    fn take(&mut self) -> Result<usize, LogError> {
        let count = self.taken.slots();
        let Ok(chunk) = self.taken.read_chunk(count) else { return Ok(0) };
        let (first, second) = chunk.as_slices();
        self.sink.take(first)?;
        self.sink.take(second)?;
        chunk.commit_all();
        Ok(count)
    }
}

/// Starts the writer's thread, and waits until it is prepared.
fn spawn<S: Sink>(
    writing: Writing<S>,
    prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
) -> Result<JoinHandle<Result<(), LogError>>, LogError> {
    let (tell, prepared) = std::sync::mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("iolite-log".into())
        .spawn(move || {
            let holding = match prepare() {
                Ok(()) => Holding::new(writing.job.clone()),
                Err(error) => {
                    // `spawn` waits for the result below.
                    let _ = tell.send(Err(error));
                    return Ok(());
                }
            };
            let _ = tell.send(Ok(()));
            writing.run(holding)
        })
        .map_err(|error| LogError::new("the log writer cannot be started", error))?;
    match prepared.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(LogError::new("the log writer", io::Error::other("it ended at once"))),
    }
}
