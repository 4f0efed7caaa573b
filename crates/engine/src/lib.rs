//! What an I/O engine is, and what engines that work on local files share.
//!
//! An engine performs units and gives completions; it knows neither why a unit was chosen nor how it will be
//! counted, and it takes no time stamps. The worker's loop is generic over [`Engine`], so that `queue`, `commit` and
//! `reap` are inlined into it.
//!
//! Engines are in rooms by what they need: `engine-local` (what the loop is compiled for, and other system calls on
//! files and block devices), `engine-devices` (commands of SCSI, NVMe, flash, persistent memory), `engine-calls` (names,
//! extents, work without I/O), `engine-servers` (servers and libraries that complete a unit later) and `engine-hdfs` (one of them,
//! with a large client). Only `engines` knows them all: it creates the engine that a job names.
//!
//! # Writing an engine
//!
//! The entry of the catalogue ([`iolite_options::engines`]) describes an engine and its options, and lists the other
//! places that a new engine touches. The engine itself is one file in its room and one line in
//! `engines/src/registry.rs`. Ready-made parts:
//!
//! | an engine that … | uses |
//! |---|---|
//! | works on local files | [`mod@file`]: opening, closing, syncs and trims |
//! | completes each unit in the call | [`transfer::Transfer`], which leaves only the transfer to be written |
//! | opens a vendor's library | [`library`] |
//! | has its own storage | [`Storage`], given by [`Engine::storage`] |
//! | must load a library to be tried | `loads_library` in its entry, and [`in_child_process()`] |
//! | has a server or a library that completes units later | [`completed_later`] |
//! | acts on names | `NameEngine` in `engine-calls/src/names.rs`, which leaves only the action on a name |
//! | acts on names or extents, or works without I/O | [`UnitKind`], which decides how its units are prepared and counted |
//!
//! [`UnitKind`]: iolite_options::engines::UnitKind

mod boxed;
pub mod by_index;
pub mod completed_later;
mod config;
mod error;
pub mod file;
mod in_child_process;
pub mod library;
mod stop_request;
mod storage;
pub mod transfer;

pub use self::boxed::{BoxedEngine, DynEngine};
pub use self::config::{AccessPattern, EngineConfig};
pub use self::error::{EngineError, FIXED_BUFFERS, memory_lock_limit, proc_number};
pub use self::in_child_process::{in_child_process, in_child_process_with_progress};
pub use self::stop_request::{LAST_WAIT, UNLIMITED, is_asked_to_stop, stop_when};
pub use self::storage::{LocalStorage, Room, Storage, StorageOf, Stored, open_as_allowed, sync_file};
pub use iolite_types::FileKind;

use iolite_types::Operation;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// One I/O in flight or about to be: the operation, the place and the buffer.
///
/// Units live in one slab per worker that does not move; engines refer to them by [`Unit::index`].
#[derive(Debug)]
#[repr(C)]
pub struct Unit {
    /// The memory of the data; null for work that is not an I/O. Engines that move no data ignore it.
    pub buffer: *mut u8,
    /// Bytes to transfer, starting at `buffer` and `offset`. If no data is moved, the length with which the unit
    /// counts.
    pub length: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// The unit's index in the worker's slab.
    pub index: u32,
    /// The file's index in the worker's list of files.
    pub file: u32,
    /// The operation.
    pub operation: Operation,
    /// The I/O priority in the kernel's encoding (`iolite_types::io_priority`); 0 = that of the thread. Only libaio and
    /// io_uring can pass one per I/O.
    pub priority: u16,
}

// SAFETY: the buffer belongs to the unit's slab, which moves with the unit.
unsafe impl Send for Unit {}

/// The outcome of a unit: bytes transferred, or an errno. A sync answers 0, a unit that acts on a name or an extent its
/// length, and a piece of work a value other than 0 while there is more to do.
pub type Outcome = Result<u64, Errno>;

/// An error number of the operating system (`ENOSPC`, …), always positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// The errno of the last failed system call of this thread.
    #[inline]
    pub fn last() -> Errno {
        Errno::from(io::Error::last_os_error())
    }
}

/// In place of an error number: no data was moved, because the other end of the connection has finished, or the job has
/// ([`Engine::leave`]). The unit was withdrawn, and has not failed.
pub const WITHDRAWN: Errno = Errno(i32::MAX);

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        io::Error::from_raw_os_error(errno.0)
    }
}

impl From<&io::Error> for Errno {
    fn from(error: &io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Errno::from(&error)
    }
}

/// The answer to [`Engine::queue`].
///
/// An engine that works without I/O answers `Busy` while a piece of work continues, and a synchronous engine while it
/// waits for the other end of a connection: then the caller checks whether the job must end, and asks again with the
/// same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// Already complete (synchronous engines, and syncs or trims of some others).
    Completed(Outcome),
    /// Accepted; its completion will come from [`Engine::reap`].
    Queued,
    /// Refused for now: commit and reap first, then ask again.
    Busy,
    /// Refused, as all later units will be: the peer has announced its end. The job is over.
    Over,
}

/// One finished unit.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The unit's index in the slab.
    pub unit: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// How to open files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMode {
    /// The job reads from the file.
    pub read: bool,
    /// The job writes to or trims the file.
    pub write: bool,
    /// O_DIRECT
    pub direct: bool,
    /// O_SYNC
    pub sync: bool,
    /// O_DSYNC
    pub dsync: bool,
    /// O_CREAT: create the file if it is missing.
    pub create: bool,
    /// The file is a device, or a regular file, whose zones the job knows: a trim resets a zone.
    pub trims_reset_zones: bool,
}

impl OpenMode {
    /// The requested modes, for a line of `--debug`: `reads, direct`.
    pub fn in_words(&self) -> String {
        let all = [
            (self.read, "reads"),
            (self.write, "writes"),
            (self.direct, "direct"),
            (self.sync, "sync"),
            (self.dsync, "dsync"),
            (self.create, "create"),
            (self.trims_reset_zones, "trims reset zones"),
        ];
        let asked: Vec<&str> = all.into_iter().filter(|(asked, _)| *asked).map(|(_, word)| word).collect();
        asked.join(", ")
    }
}

/// A file as an engine opens it.
#[derive(Clone, Debug)]
pub struct FileSpec {
    /// The path; `-` means standard input or output.
    pub path: std::path::PathBuf,
    /// The kind of the file.
    pub kind: FileKind,
    /// Its size in bytes (the end of the region a job may touch); 0 = no size (pipes).
    pub size: u64,
}

/// An operation on an engine whose type is known only at run time.
pub trait Visitor {
    /// Its result.
    type Out;
    /// Runs it.
    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out;
}

/// When stages of a unit ended, in nanoseconds of `CLOCK_MONOTONIC`. 0 = the stage was not needed, or the worker knows its
/// end, `u64::MAX` = it ended with the unit.
pub type StageEnds = [u64; 4];

/// An I/O engine inside one worker.
///
/// Life: `new` (in the worker) → `open` files → `prepare` (once: slab and buffers are known) → `queue`,
/// `commit`, `reap` over and over → `close` files → drop.
pub trait Engine {
    /// Whether [`Engine::queue`] always answers `Completed`: no depth, no submission latency.
    const SYNCHRONOUS: bool;

    /// Whether the plain loop of this engine is compiled once for each fast generator, rather than once for all. A loop
    /// for all chooses the generator for each I/O, which takes a nanosecond: that matters only where I/O costs nothing.
    const EACH_GENERATOR: bool = false;

    /// Whether units are complete once they are committed, so that the time stamp of a commit serves for the reap right after
    /// it, too.
    const COMPLETES_IN_COMMIT: bool = false;

    /// Whether units are issued and reaped on other threads, which take the time ([`Engine::times`]).
    const STAMPS: bool = false;

    /// Whether units may be requests to a server with more timing data ([`Engine::first_byte`]), or with sending as a
    /// part of their time (`TimeSending`).
    const REQUESTS: bool = false;

    /// Whether a write may land at another offset than its unit has ([`Engine::placed`]).
    const PLACES: bool = false;

    /// Whether a unit that is completed at once needed a system call, like trims of queueing engines.
    const CALLS: bool = true;

    /// Passes the engine to a visitor that is compiled for few engines: behind a pointer, unless the engine's own cost is
    /// below that of a call through one.
    fn visit_shared<V: Visitor>(self, visitor: V) -> V::Out
    where
        Self: Sized + 'static,
    {
        if Self::SYNCHRONOUS {
            visitor.visit(BoxedEngine::<true>::new(self))
        } else {
            visitor.visit(BoxedEngine::<false>::new(self))
        }
    }

    /// Opens the file at `index` of the worker's list, or only notes its name, if units act on names. Called before any unit
    /// names that file.
    ///
    /// # Errors
    /// The system refuses to open it, or the engine cannot use a file of this kind. The file is closed then.
    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()>;

    /// Closes the file at `index`; no unit of it is in flight, unless units act on names. By default there is nothing to
    /// close.
    ///
    /// # Errors
    /// Written data may be lost. The file is closed even so.
    fn close(&mut self, index: u32) -> io::Result<()> {
        let _ = index;
        Ok(())
    }

    /// The descriptor of an open file. Engines that work on local files have one for each file; advice, locks and final
    /// syncs use it. A missing descriptor proves nothing: whether there is data to sync is a facet of the engine.
    fn descriptor(&self, index: u32) -> Option<RawFd> {
        let _ = index;
        None
    }

    /// Called once, after the first files are open and before the first `queue`, with the places of units and buffers.
    ///
    /// # Errors
    /// The system refuses to register buffers or files.
    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        let _ = layout;
        Ok(())
    }

    /// Meets the peer of a connection. Called once, before the job's clock starts. While it waits, it calls `goes_on`
    /// every few milliseconds; an error from `goes_on` ends the wait.
    ///
    /// # Errors
    /// No peer is there, the peer is not the expected one, or the error of `goes_on`.
    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let _ = goes_on;
        Ok(())
    }

    /// Takes a unit. If the answer is `Queued`, the worker does not touch the unit until it is reaped.
    ///
    /// Syncs and trims that an engine performs itself are answered `Busy` while units wait for
    /// [`Engine::commit`], so that they come after the units queued before them.
    ///
    /// # Safety
    /// The unit's buffer must be valid for `length` bytes until its completion (or until the engine is dropped, which
    /// waits for units in flight), and its file open. No other unit in flight has the same index.
    unsafe fn queue(&mut self, unit: &Unit) -> Queued;

    /// Sets the ranges of the file that the next unit with this index trims, each with its offset and its length. The
    /// unit's own offset is that of the first one, its length that of all together. Called only for engines that can
    /// trim several ranges at once, and only for units that trim more than one.
    fn trims(&mut self, unit: u32, ranges: &[(u64, u64)]) {
        let _ = (unit, ranges);
    }

    /// Announces that the next read of this unit is a comparison: its buffer holds the expected data, and the storage
    /// reports a difference by `EILSEQ`. Called only for engines whose own options ask for comparisons.
    fn compares(&mut self, unit: u32) {
        let _ = unit;
    }

    /// The actual offset of a write that has just been reaped; `None` = the unit's offset. Called only for engines
    /// whose writes may land elsewhere ([`Engine::PLACES`]).
    fn placed(&self, unit: u32) -> Option<u64> {
        let _ = unit;
        None
    }

    /// Hands the queued units to the system. Returns their number. Engines that submit in `queue` answer 0.
    ///
    /// If the system refuses a unit, that is the unit's outcome, returned by [`Engine::reap`]. Units that the system is
    /// too busy to accept count as handed over, and are submitted with the next `commit` or `reap`.
    ///
    /// # Errors
    /// The engine cannot go on. Refusals of single units are their outcomes.
    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        Ok(0)
    }

    /// Appends at least `min` and at most `max` completions to `done`, waiting at most `timeout` (`None` = without
    /// limit); `min` 0 polls. A signal ends the wait early, with the completions so far; so does having nothing more in
    /// flight. Only committed units are waited for. Synchronous engines have nothing to reap, and leave this.
    ///
    /// # Errors
    /// The engine cannot go on, and the outcome of the units in flight is unknown.
    #[inline(always)]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let _ = (min, max, timeout, done);
        debug_assert!(Self::SYNCHRONOUS, "an engine that queues units has to reap them");
        Ok(())
    }

    /// The system's numbers of the threads that a library has started for this engine (`threads_started_by` in `engine-servers`). Their
    /// CPU time counts as the job's. Called once, before the first `queue`, and only if the worker shares its process
    /// with others: otherwise the complete process counts.
    fn threads(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Lines that announce to the user what the engine is about to do. Called once, when the first files are open.
    fn announcements(&self) -> Vec<String> {
        Vec::new()
    }

    /// The device's explanation of a unit that has just failed, in addition to the error number, if any.
    fn explain(&self, unit: u32) -> Option<String> {
        let _ = unit;
        None
    }

    /// Remarks for the user about events that are not failures. Called once, after the last unit.
    fn remarks(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Warnings about doubts in the outcome although nothing has failed. Called once, after the files are closed.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Nanoseconds from the issue of a unit that has just been reaped to the first byte of the answer, if units are
    /// requests to a server; `None` = the unit was several requests, or no request. Called only for engines that may
    /// know it ([`Engine::REQUESTS`]).
    fn first_byte(&self, unit: u32) -> Option<u64> {
        let _ = unit;
        None
    }

    /// Nanoseconds from the acknowledgement of a write that has just been reaped until a request was sent that saw what
    /// was written, if the engine looks for that; `None` = it does not. Called only as [`Engine::first_byte`].
    fn visible(&self, unit: u32) -> Option<u64> {
        let _ = unit;
        None
    }

    /// When the stages of a unit that has just been reaped ended, all but the last; `None` = not known, for example because
    /// the unit was several requests. Called only if the job measures stages.
    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        let _ = unit;
        None
    }

    /// Counts of all requests to a server so far.
    fn requests(&self) -> Requests {
        Requests::default()
    }

    /// Called again and again while the job waits with nothing in flight: an engine whose server forgets silent clients
    /// says something to it in time. Must not wait. Returns whether it wants to be called (about once a second).
    fn keep_alive(&mut self) -> bool {
        false
    }

    /// The job has been asked to end: failed requests are no longer repeated, and requests that a library does not
    /// complete are abandoned after a while.
    fn stop_repeating(&mut self) {}

    /// The job issues no more units: units that wait for the other end of a connection, possibly for ever, are
    /// withdrawn ([`WITHDRAWN`]), or abandoned after a while. A synchronous engine that can be busy must complete or
    /// withdraw its unit within about a second.
    fn leave(&mut self) {}

    /// Puts the data of the file at `index` on stable storage, if fsync(2) does not do that; `None` = fsync(2) does.
    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        let _ = index;
        None
    }

    /// The engine's own storage, if it has one. Called while nothing is in flight.
    fn storage(&mut self) -> Option<&mut dyn Storage> {
        None
    }

    /// When a unit that has just been reaped was issued and completed, in nanoseconds of the clock that the engine was
    /// created with. Called only for engines that take the time themselves ([`Engine::STAMPS`]).
    fn times(&self, unit: u32) -> (u64, u64) {
        let _ = unit;
        (0, 0)
    }
}

/// Counts of requests to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that were repeated.
    pub repeated: u64,
    /// Answers that asked for fewer requests (429 and 503).
    pub throttled: u64,
}

impl Requests {
    /// The requests after `earlier`.
    pub fn since(self, earlier: Requests) -> Requests {
        Requests {
            repeated: self.repeated.saturating_sub(earlier.repeated),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }

    /// A line about them; `None` = no such requests.
    pub fn in_words(self) -> Option<String> {
        let Requests { repeated, throttled } = self;
        (repeated > 0 || throttled > 0).then(|| {
            format!(
                "requests repeated: {repeated}, answers that ask for fewer requests (429 or 503): {throttled}"
            )
        })
    }
}

/// Where the worker's buffers are: `count` buffers of `stride` bytes each, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct BufferLayout {
    /// The first buffer.
    pub start: *mut u8,
    /// Bytes from one buffer to the next.
    pub stride: usize,
    /// The number of buffers; unit `i` owns the buffer `start + i × stride`.
    pub count: usize,
    /// Most units in flight.
    pub depth: usize,
    /// Files in the worker's list (open or not).
    pub files: usize,
}
