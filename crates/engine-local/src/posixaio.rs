//! `posixaio`: aio_read(3), aio_write(3) and aio_fsync(3), which the C library performs with threads.
//!
//! Each unit has its own control block and is handed over in `queue`. `reap` checks the blocks in flight, oldest first,
//! and waits with aio_suspend(3).

use iolite_engine::file::{Files, opens_files};
use iolite_engine::{BufferLayout, Completion, Engine, EngineConfig, EngineError, Errno, Queued, Unit};
use iolite_types::Operation;
use std::ptr;
use std::time::Duration;

/// Hands units to the threads of the C library.
#[derive(Debug)]
pub struct PosixAioEngine {
    files: Files,
    depth: usize,
    /// One per unit of the slab; must not move from queue to reap.
    blocks: Vec<Block>,
    /// Units in flight, oldest first, and (at the same places) their blocks for aio_suspend.
    units: Vec<u32>,
    waiting: Vec<*const libc::aiocb>,
}

struct Block(libc::aiocb);

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block").field("descriptor", &self.0.aio_fildes).finish_non_exhaustive()
    }
}

// SAFETY: the pointers are to the engine's own blocks and to buffers of the worker, which moves with it.
unsafe impl Send for PosixAioEngine {}

impl PosixAioEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(PosixAioEngine {
            files: Files::new(config),
            depth: config.depth,
            blocks: Vec::new(),
            units: Vec::with_capacity(config.depth),
            waiting: Vec::with_capacity(config.depth),
        })
    }

    /// Moves completed units from those in flight to `done`, keeping the order of the others. Returns their number.
    fn take_ready(&mut self, max: usize, done: &mut Vec<Completion>) -> usize {
        let mut kept = 0;
        let mut taken = 0;
        for place in 0..self.units.len() {
            let unit = self.units[place];
            let block = &mut self.blocks[unit as usize].0;
            // SAFETY: the block was handed over in `queue` and its result not yet fetched.
            if taken < max && unsafe { libc::aio_error(block) } != libc::EINPROGRESS {
                done.push(Completion { unit, outcome: result(block) });
                taken += 1;
            } else {
                self.units[kept] = unit;
                self.waiting[kept] = block;
                kept += 1;
            }
        }
        self.units.truncate(kept);
        self.waiting.truncate(kept);
        taken
    }

    /// Waits until at least one unit in flight is complete; false after the timeout or a signal.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<bool, Errno> {
        let limit = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as libc::time_t,
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the list names blocks in flight, which stay in their place.
        let result =
            unsafe { libc::aio_suspend(self.waiting.as_ptr(), self.waiting.len() as libc::c_int, limit) };
        if result == 0 {
            return Ok(true);
        }
        match Errno::last() {
            Errno(libc::EAGAIN | libc::EINTR) => Ok(false),
            errno => Err(errno),
        }
    }
}

/// The outcome of a block that is no longer in progress.
fn result(block: &mut libc::aiocb) -> Result<u64, Errno> {
    // SAFETY: the block is complete; its result is fetched once.
    let error = unsafe { libc::aio_error(block) };
    // SAFETY: as above.
    let bytes = unsafe { libc::aio_return(block) };
    match error {
        0 => Ok(bytes as u64),
        -1 => Err(Errno::last()),
        error => Err(Errno(error)),
    }
}

impl Engine for PosixAioEngine {
    const SYNCHRONOUS: bool = false;

    opens_files!();

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        // SAFETY: aiocb is plain data; all zeros is the state that the manual asks for.
        self.blocks = (0..layout.count).map(|_| Block(unsafe { std::mem::zeroed() })).collect();
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        if matches!(unit.operation, Operation::Trim | Operation::SyncFileRange) {
            return Queued::Completed(self.files.control(unit));
        }
        if self.units.len() >= self.depth {
            return Queued::Busy;
        }
        let Some(Block(block)) = self.blocks.get_mut(unit.index as usize) else {
            return Queued::Completed(Err(Errno(libc::EINVAL)));
        };
        // SAFETY: as in `prepare`; the block is not in flight, the unit's index being unique among those.
        *block = unsafe { std::mem::zeroed() };
        block.aio_fildes = self.files.raw(unit.file);
        block.aio_buf = unit.buffer.cast();
        block.aio_nbytes = unit.length as usize;
        block.aio_offset = unit.offset as i64;
        block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
        let refused = match unit.operation {
            // SAFETY: block and buffer stay valid until the unit is reaped.
            Operation::Read => unsafe { libc::aio_read(block) },
            // SAFETY: as above.
            Operation::Write => unsafe { libc::aio_write(block) },
            // SAFETY: as above; no buffer is used.
            Operation::DataSync => unsafe { libc::aio_fsync(libc::O_DSYNC, block) },
            // SAFETY: as above.
            _ => unsafe { libc::aio_fsync(libc::O_SYNC, block) },
        };
        if refused != 0 {
            return match Errno::last() {
                // The library lacks resources, which the units in flight will release.
                Errno(libc::EAGAIN) if !self.units.is_empty() => Queued::Busy,
                errno => Queued::Completed(Err(errno)),
            };
        }
        self.waiting.push(block);
        self.units.push(unit.index);
        Queued::Queued
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let mut count = 0;
        loop {
            count += self.take_ready(max - count, done);
            if count >= min || count >= max || self.units.is_empty() {
                return Ok(());
            }
            if !self.wait(timeout)? {
                self.take_ready(max - count, done);
                return Ok(());
            }
        }
    }
}

impl Drop for PosixAioEngine {
    /// Cancels units that have not begun and waits for the rest: the library writes into our buffers. A thread of the
    /// library that waits for an idle pipe cannot be cancelled, so neither can the wait for it.
    fn drop(&mut self) {
        for &unit in &self.units {
            let block = &mut self.blocks[unit as usize].0;
            // SAFETY: the block is in flight; whatever the answer, it is waited for below.
            unsafe { libc::aio_cancel(block.aio_fildes, block) };
        }
        let mut done = Vec::with_capacity(self.units.len());
        while !self.units.is_empty() {
            self.take_ready(usize::MAX, &mut done);
            if !self.units.is_empty() && self.wait(None).is_err() {
                // Blocks that cannot be waited for must not be freed.
                std::mem::forget(std::mem::take(&mut self.blocks));
                return;
            }
        }
    }
}
