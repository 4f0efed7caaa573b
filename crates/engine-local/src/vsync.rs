//! `vsync`: readv(2) and writev(2), with a queue emulated by coalescing.
//!
//! Successive units (same file, same direction, each starting at the end of the one before) are gathered and become the
//! segments of one call when the worker commits. A unit that does not continue the gathered ones is answered `Busy`:
//! the worker commits and asks again.

use iolite_engine::file::{Files, opens_files};
use iolite_engine::{Completion, Engine, EngineConfig, EngineError, Errno, Queued, Unit};
use iolite_types::Operation;
use std::time::Duration;

/// Most segments of one call (IOV_MAX on Linux).
const MOST_SEGMENTS: usize = 1024;

/// Gathers adjacent units into one readv or writev.
#[derive(Debug)]
pub struct VsyncEngine {
    files: Files,
    depth: usize,
    /// The gathered units: their indices in the slab, and their buffers.
    units: Vec<u32>,
    segments: Vec<libc::iovec>,
    /// The file and the start of the gathered units, and where the next one must start.
    file: u32,
    write: bool,
    start: u64,
    end: u64,
    /// Units that were performed and not reaped yet.
    ready: Vec<Completion>,
}

// SAFETY: the segments point to buffers of the worker, which moves with the engine.
unsafe impl Send for VsyncEngine {}

impl VsyncEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let depth = config.depth;
        let most = depth.min(MOST_SEGMENTS);
        Ok(VsyncEngine {
            files: Files::new(config),
            depth,
            units: Vec::with_capacity(most),
            segments: Vec::with_capacity(most),
            file: 0,
            write: false,
            start: 0,
            end: 0,
            ready: Vec::with_capacity(depth),
        })
    }

    /// Whether the unit can join the gathered ones.
    fn continues(&self, unit: &Unit, write: bool) -> bool {
        unit.offset == self.end
            && unit.file == self.file
            && write == self.write
            && self.units.len() < MOST_SEGMENTS
    }

    fn seek(&self) -> Result<(), Errno> {
        if self.files.is_pipe(self.file) {
            return Ok(());
        }
        // SAFETY: takes nothing but integers.
        match unsafe { libc::lseek(self.files.raw(self.file), self.start as i64, libc::SEEK_SET) } {
            -1 => Err(Errno::last()),
            _ => Ok(()),
        }
    }

    /// Performs the gathered units.
    ///
    /// If a call ends early, another call follows for the remaining units, so that each unit gets its own outcome: its
    /// error, or the end of the file.
    fn perform(&mut self) {
        let mut first = 0;
        let mut refused = None;
        while first < self.units.len() && refused.is_none() {
            match self.transfer(first) {
                Ok(bytes) => first = self.account(first, bytes),
                Err(Errno(libc::EINTR)) if !self.files.is_pipe(self.file) => continue,
                Err(errno) => refused = Some(errno),
            }
        }
        if let Some(errno) = refused {
            self.ready
                .extend(self.units[first..].iter().map(|&unit| Completion { unit, outcome: Err(errno) }));
        }
        self.units.clear();
        self.segments.clear();
    }

    /// One call for the units from `first` on.
    fn transfer(&self, first: usize) -> Result<usize, Errno> {
        self.seek()?;
        let descriptor = self.files.raw(self.file);
        let segments = &self.segments[first..];
        let count = segments.len() as libc::c_int;
        let result = if self.write {
            // SAFETY: the caller of `queue` promised that the units' buffers are valid until they are reaped.
            unsafe { libc::writev(descriptor, segments.as_ptr(), count) }
        } else {
            // SAFETY: as above.
            unsafe { libc::readv(descriptor, segments.as_ptr(), count) }
        };
        if result < 0 { Err(Errno::last()) } else { Ok(result as usize) }
    }

    /// Distributes `bytes` over the units from `first` on, the last of them perhaps short. Returns the first unit that
    /// got none.
    fn account(&mut self, first: usize, mut bytes: usize) -> usize {
        for next in first..self.units.len() {
            let length = self.segments[next].iov_len;
            let given = bytes.min(length);
            self.ready.push(Completion { unit: self.units[next], outcome: Ok(given as u64) });
            self.start += length as u64;
            bytes -= given;
            if given < length || bytes == 0 {
                return next + 1;
            }
        }
        self.units.len()
    }
}

impl Engine for VsyncEngine {
    const SYNCHRONOUS: bool = false;

    opens_files!();

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let write = match unit.operation {
            Operation::Read => false,
            Operation::Write => true,
            _ if self.units.is_empty() => return Queued::Completed(self.files.control(unit)),
            _ => return Queued::Busy,
        };
        if self.units.len() + self.ready.len() >= self.depth {
            return Queued::Busy;
        }
        if self.units.is_empty() {
            self.file = unit.file;
            self.write = write;
            self.start = unit.offset;
        } else if !self.continues(unit, write) {
            return Queued::Busy;
        }
        self.end = unit.offset + unit.length;
        self.units.push(unit.index);
        self.segments.push(libc::iovec { iov_base: unit.buffer.cast(), iov_len: unit.length as usize });
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let gone = self.units.len();
        self.perform();
        Ok(gone)
    }

    fn reap(
        &mut self,
        _min: usize,
        max: usize,
        _timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let count = self.ready.len().min(max);
        done.extend(self.ready.drain(..count));
        Ok(())
    }
}
