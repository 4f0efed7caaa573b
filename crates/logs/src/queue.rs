//! The way from a worker to a thread of the same process that writes for it.
//!
//! The worker puts small entries into a queue of fixed size; the thread hands them to a [`Sink`], many at a time. So memory
//! is known at the start, nothing is lost, and a worker that is faster than the disk under its files waits for it. The
//! thread sleeps until a part of the queue is full, or a while has passed: many entries at a time cost both sides less
//! than one by one, and a slow job is not disturbed by a thread that wakes up all the time.

use crate::LogError;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A queue has room for a few entries in any case.
const LEAST_ROOM: usize = 16;

/// How long a worker without room sleeps before it looks again. A writer empties a good part of its queue meanwhile,
/// and never all of it.
const PATIENCE: Duration = Duration::from_micros(50);

/// How long the thread sleeps at most.
const NAP: Duration = Duration::from_millis(100);

/// Entries are in the file after this time at the latest, and a nap.
const FLUSH: Duration = Duration::from_millis(250);

/// What the thread does with entries.
pub trait Sink: Send + 'static {
    /// What comes through the queue.
    type Entry: Send + 'static;

    /// Takes entries, in order.
    ///
    /// # Errors
    /// They cannot be written; then nothing more comes.
    fn take(&mut self, entries: &[Self::Entry]) -> Result<(), LogError>;

    /// Takes what came another way than the queue. Called after entries were taken.
    ///
    /// # Errors
    /// As those of [`Sink::take`].
    fn take_others(&mut self) -> Result<(), LogError> {
        Ok(())
    }

    /// What is ready goes to the file, so that somebody who follows it sees it.
    ///
    /// # Errors
    /// As those of [`Sink::take`].
    fn flush(&mut self) -> Result<(), LogError>;

    /// Nothing more comes: everything goes to the file.
    ///
    /// # Errors
    /// As those of [`Sink::take`].
    fn finish(&mut self) -> Result<(), LogError>;
}

/// What worker and writer tell each other beside the queue.
#[derive(Debug, Default)]
struct Signs {
    /// The worker has nothing more to say.
    over: AtomicBool,
    /// The writer cannot write.
    failed: AtomicBool,
}

/// The worker's end.
#[derive(Debug)]
pub struct Queue<T> {
    entries: Producer<T>,
    /// Entries until the writer is woken.
    until_wake: usize,
    wake_every: usize,
    waited: Duration,
    signs: Arc<Signs>,
    writer: Option<JoinHandle<Result<(), LogError>>>,
}

/// For how many entries there will be room when so many are asked for.
pub(crate) fn room(wanted: usize) -> usize {
    wanted.max(LEAST_ROOM)
}

impl<T: Send + 'static> Queue<T> {
    /// Starts the thread, which first does `prepare`, and waits until that is done.
    ///
    /// # Errors
    /// There is no thread to be had, or `prepare` fails.
    pub fn start<S: Sink<Entry = T>>(
        wanted: usize,
        sink: S,
        prepare: impl FnOnce() -> Result<(), LogError> + Send + 'static,
    ) -> Result<Queue<T>, LogError> {
        let room = room(wanted);
        let (entries, taken) = RingBuffer::new(room);
        let signs = Arc::new(Signs::default());
        let writer = spawn(Writing { taken, sink, signs: Arc::clone(&signs) }, prepare)?;
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

    /// Puts an entry into the queue; when there is no room it waits.
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

    /// Whether entries cannot be written any more; [`Queue::end`] tells why.
    #[inline(always)]
    pub fn has_failed(&self) -> bool {
        self.signs.failed.load(Ordering::Relaxed)
    }

    /// For how long the worker has waited for the writer.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    #[cold]
    fn push_when_there_is_room(&mut self, entry: T) {
        let wanted = self.wake_every;
        self.wait_until(|queue| queue.entries.slots() >= wanted);
        // It fails only when the writer is gone, and then its error is what counts.
        let _ = self.entries.push(entry);
    }

    /// Waits for the writer, and counts the time.
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
    /// The worker has nothing more to say: what is left goes to the file.
    ///
    /// # Errors
    /// The first thing that could not be written.
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

/// A worker that ends otherwise still leaves what it has told so far.
impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        // Whatever made the worker end is told instead.
        let _ = self.end();
    }
}

/// The thread's end.
struct Writing<S: Sink> {
    taken: Consumer<S::Entry>,
    sink: S,
    signs: Arc<Signs>,
}

impl<S: Sink> Writing<S> {
    /// Writes until there is nothing more to come.
    fn run(mut self) -> Result<(), LogError> {
        let written = self.write_all();
        if written.is_err() {
            self.signs.failed.store(true, Ordering::Release);
        }
        written
    }

    fn write_all(&mut self) -> Result<(), LogError> {
        let enough = self.taken.buffer().capacity() / 8;
        let mut flushed = Instant::now();
        loop {
            // Asked before the queue is emptied: what comes before the end is not missed.
            let over = self.signs.over.load(Ordering::Acquire);
            let count = self.take()?;
            self.sink.take_others()?;
            if over {
                return self.sink.finish();
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

    /// Takes what is in the queue; how much that was.
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
            let result = prepare();
            let failed = result.is_err();
            // Somebody waits for it below.
            let _ = tell.send(result);
            if failed { Ok(()) } else { writing.run() }
        })
        .map_err(|error| LogError::new("the log writer cannot be started", error))?;
    match prepared.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(LogError::new("the log writer", io::Error::other("it ended at once"))),
    }
}
