//! `libhdfs`: files on HDFS, in chunks.
//!
//! HDFS files cannot be modified in place, so a file of the job is stored as many HDFS files, its chunks (see
//! `chunks.rs`). The client is written in Rust: it needs neither Java nor the library after which the engine
//! is named. It runs on its own thread, which completes the units. The job's depth limits how many run concurrently.

mod chunks;
mod cluster;
mod failure;
mod storage;

use self::chunks::{Chunks, Line, Part, Place, Slot, Syncs, is_idle, parts, take_place};
use self::cluster::Cluster;
use self::failure::Failure;
use bytes::Bytes;
use iolite_engine::by_index::ByIndex;
use iolite_engine::completed_later::tickets::{Act, Ticket, Tickets, has_tickets};
use iolite_engine::{Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Storage, Unit};
use iolite_options::engines::HdfsOptions;
use iolite_os::explained;
use iolite_types::Operation;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::OwnedMutexGuard;

/// The engine.
pub struct LibhdfsEngine {
    cluster: Arc<Cluster>,
    files: ByIndex<File>,
    tickets: Tickets,
    words: Arc<Words>,
    /// Written data must survive ([`EngineConfig::keeps_writes`]).
    keeps_writes: bool,
}

/// An open file.
struct File {
    chunks: Arc<Chunks>,
    writes: bool,
    /// The queues of the chunks that have been written, by chunk.
    lines: HashMap<u64, Line>,
    /// When there are this many queues, idle ones are removed.
    most_lines: usize,
}

/// Idle queues are not removed while there are fewer queues than this.
const FEW_LINES: usize = 64;

/// Why units failed, indexed by unit.
#[derive(Default)]
struct Words(Mutex<HashMap<u32, String>>);

impl Words {
    fn note(&self, unit: u32, words: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(unit, words);
    }

    fn of(&self, unit: u32) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&unit).cloned()
    }
}

/// The memory of a unit in flight.
struct Memory(*mut u8);

// SAFETY: the memory belongs to the unit, and the worker does not access it until the unit is complete.
unsafe impl Send for Memory {}

impl Memory {
    /// # Safety
    /// The `length` bytes at `at` are valid, and nothing else uses them in the meantime.
    unsafe fn part(&mut self, at: usize, length: usize) -> &mut [u8] {
        // SAFETY: the caller promises it.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(at), length) }
    }
}

/// Completes its unit even if it is dropped early, as by a panic.
struct Promise {
    ticket: *const Ticket,
    unit: u32,
    words: Arc<Words>,
    is_kept: bool,
}

// SAFETY: any thread may complete tickets, and tickets exist until all units are complete.
unsafe impl Send for Promise {}

impl Promise {
    fn keep(&mut self, result: Result<u64, Failure>) {
        self.is_kept = true;
        let result = result.map_or_else(
            |failure| {
                self.words.note(self.unit, failure.words);
                -i64::from(failure.errno)
            },
            |bytes| bytes as i64,
        );
        // SAFETY: this is the ticket of a unit in flight, which is completed once.
        unsafe { (*self.ticket).complete(result) };
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.is_kept {
            self.keep(Err(Failure::new(libc::EIO, "the client of HDFS has failed")));
        }
    }
}

/// The name of a file in the directory on HDFS.
fn hdfs_name(path: &Path) -> io::Result<&str> {
    path.to_str().map(|name| name.trim_start_matches('/')).ok_or_else(|| {
        let words = format!("{}: names on HDFS are UTF-8", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, words)
    })
}

impl LibhdfsEngine {
    /// Makes an engine and connects to its cluster.
    ///
    /// # Errors
    /// An option is wrong, or the cluster cannot be reached.
    pub fn new(config: &EngineConfig, options: &HdfsOptions) -> Result<Self, EngineError> {
        Ok(LibhdfsEngine {
            cluster: Cluster::open(options)?,
            files: ByIndex::with_room(config.files),
            tickets: Tickets::new(false),
            words: Arc::default(),
            keeps_writes: config.keeps_writes,
        })
    }

    fn given_up_in_words(&self) -> Option<String> {
        let silence = self.tickets.why_given_up()?;
        Some(format!("{silence}: servers of HDFS are down or hang; what was written last may be lost"))
    }

    /// Passes a unit to the client.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn begin(&mut self, unit: &Unit) -> Result<(), Errno> {
        let file = self.files.get_mut(unit.file);
        let file = file.ok_or(Errno(libc::EBADF))?;
        let act = match unit.operation {
            Operation::Read => Act::Read,
            Operation::Write if !file.writes => return Err(Errno(libc::EBADF)),
            Operation::Write | Operation::Sync | Operation::DataSync | Operation::SyncFileRange => Act::Other,
            Operation::Trim => return Err(Errno(libc::EOPNOTSUPP)),
            Operation::Work => return Err(Errno(libc::ENOSYS)),
        };
        let ticket = self.tickets.begin(unit, act)?;
        let mut promise = Promise { ticket, unit: unit.index, words: self.words.clone(), is_kept: false };
        let (chunks, length) = (file.chunks.clone(), unit.length);
        let memory = Memory(unit.buffer);
        let queued = Instant::now();
        let turns = match unit.operation {
            Operation::Read => file.turns_to_read(unit),
            Operation::Write => file.turns_to_write(unit),
            _ => {
                let turns = file.turns_of_all();
                self.cluster.handle.spawn(async move {
                    let result = sync(&chunks, turns, queued).await;
                    promise.keep(result.map(|()| length));
                });
                return Ok(());
            }
        };
        let writes = unit.operation == Operation::Write;
        self.cluster.handle.spawn(async move {
            let done = transfer(&chunks, turns, memory, writes, queued).await;
            promise.keep(done.map(|()| length));
        });
        Ok(())
    }
}

/// The parts of a unit, each with its place in its chunk's queue. Reads of chunks that are not being written do not
/// queue.
type Turns = Vec<(Part, Option<Place>)>;

impl File {
    fn turns_to_read(&self, unit: &Unit) -> Turns {
        let parts = parts(unit.offset, unit.length, self.chunks.cluster.chunk_size);
        parts.map(|part| (part, self.lines.get(&part.chunk).map(take_place))).collect()
    }

    fn turns_to_write(&mut self, unit: &Unit) -> Turns {
        if self.lines.len() >= self.most_lines {
            self.lines.retain(|_, line| !is_idle(line));
            self.most_lines = (2 * self.lines.len()).max(FEW_LINES);
        }
        let parts = parts(unit.offset, unit.length, self.chunks.cluster.chunk_size);
        parts.map(|part| (part, Some(take_place(self.lines.entry(part.chunk).or_default())))).collect()
    }

    fn turns_of_all(&mut self) -> Vec<(u64, Place)> {
        self.lines.retain(|_, line| !is_idle(line));
        self.lines.iter().map(|(&chunk, line)| (chunk, take_place(line))).collect()
    }

    /// Syncs all writes to stable storage. No unit is in flight.
    fn sync(&mut self) -> Result<(), Failure> {
        let turns = self.turns_of_all();
        self.chunks.cluster.handle.block_on(sync(&self.chunks, turns, Instant::now()))
    }

    /// Closes the chunks that are being written, all at the same time, so that a hanging server costs the time limit
    /// only once. No unit is in flight.
    fn finish(&mut self) -> Result<(), Failure> {
        let turns = self.turns_of_all();
        let handle = &self.chunks.cluster.handle;
        let closing: Vec<_> = turns
            .into_iter()
            .map(|(chunk, place)| handle.spawn(finish(self.chunks.clone(), chunk, place)))
            .collect();
        let failed = |_| Err(Failure::new(libc::EIO, "the client of HDFS has failed"));
        let finished = closing.into_iter().map(|task| handle.block_on(task).unwrap_or_else(failed));
        Failure::of_all(finished.filter_map(Result::err).collect())
    }
}

/// Closes a chunk. A failure reports how much of it may be lost.
async fn finish(chunks: Arc<Chunks>, chunk: u64, place: Place) -> Result<(), Failure> {
    let mut held: Option<OwnedMutexGuard<Slot>> = None;
    let closing = async { Ok::<_, Failure>(chunks.finish(&mut *held.insert(place.await), chunk).await) };
    let finished = chunks.cluster.within(closing).await;
    let finished = finished.unwrap_or_else(|timeout| Err(timeout.about(&chunks.name(chunk))));
    finished.map_err(|failure| match &mut held {
        Some(slot) => slot.with_losses(failure),
        None => failure,
    })
}

/// Reads or writes the parts of a unit as their turns come. The time limit of a part starts with its turn.
async fn transfer(
    chunks: &Chunks,
    turns: Turns,
    mut memory: Memory,
    writes: bool,
    queued: Instant,
) -> Result<(), Failure> {
    let mut at = 0;
    for (part, place) in turns {
        let mut slot = match place {
            Some(place) => Some(place.await),
            None => None,
        };
        if let Some(slot) = &slot {
            slot.check_timeout(queued)?;
        }
        let part_of_unit = async {
            // SAFETY: together, the parts of a unit are as long as its buffer, which belongs to the unit until it is
            // complete.
            let bytes = unsafe { memory.part(at, part.length) };
            match &mut slot {
                Some(slot) if writes => chunks.write(slot, part, Bytes::copy_from_slice(bytes)).await,
                Some(slot) => {
                    chunks.finish(slot, part.chunk).await?;
                    chunks.read(part, bytes).await
                }
                None => chunks.read(part, bytes).await,
            }
        };
        let done = chunks.cluster.within(part_of_unit).await;
        if let Some(slot) = &mut slot {
            slot.note_timeout(&done);
        }
        done?;
        at += part.length;
    }
    Ok(())
}

/// Syncs the writes to these chunks to stable storage.
async fn sync(chunks: &Chunks, turns: Vec<(u64, Place)>, queued: Instant) -> Result<(), Failure> {
    for (chunk, place) in turns {
        let mut slot = place.await;
        slot.check_timeout(queued)?;
        let done = chunks.cluster.within(chunks.sync(&mut slot, chunk)).await;
        slot.note_timeout(&done);
        done?;
    }
    Ok(())
}

impl Engine for LibhdfsEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let place = self.cluster.place(hdfs_name(&spec.path)?);
        let each_write = mode.sync || mode.dsync;
        let syncs = Syncs { each_write, each_chunk: each_write || self.keeps_writes };
        let chunks = Arc::new(Chunks::new(self.cluster.clone(), place, spec.size, syncs));
        let lines = HashMap::new();
        self.files.set(index, File { chunks, writes: mode.write, lines, most_lines: FEW_LINES });
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        if let Some(words) = self.given_up_in_words() {
            // Closing could hang like the units.
            return Err(explained(&io::Error::from_raw_os_error(libc::ETIMEDOUT), words));
        }
        match self.files.take(index) {
            Some(mut file) => file.finish().map_err(io::Error::from),
            None => Ok(()),
        }
    }

    has_tickets!();

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        // SAFETY: the caller upholds the same contract.
        match unsafe { self.begin(unit) } {
            Ok(()) => Queued::Queued,
            Err(errno) => Queued::Completed(Err(errno)),
        }
    }

    fn threads(&self) -> Vec<i32> {
        self.cluster.threads.clone()
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.given_up_in_words().or_else(|| self.words.of(unit))
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Drop for LibhdfsEngine {
    fn drop(&mut self) {
        if !self.tickets.drain() {
            // The client still works on these units.
            self.tickets.leave();
            return;
        }
        for file in self.files.iter_mut() {
            // A caller that needs the result has closed the file, and has seen the error.
            let _ = file.finish();
        }
    }
}
