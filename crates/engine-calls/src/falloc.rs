//! `falloc`: fallocate(2) reserves and releases space of files without writing to it.
//!
//! A read reserves the range and keeps the size of the file (`FALLOC_FL_KEEP_SIZE`), a write reserves it and extends
//! the file if it ends earlier, and a trim punches a hole. All of these need a writable descriptor, so files are opened
//! for writing in any case.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, OpenMode, Outcome, Unit};
use iolite_types::Operation;

/// One fallocate per unit.
#[derive(Debug)]
pub struct FallocEngine {
    files: Files,
}

impl FallocEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(FallocEngine { files: Files::new(config) })
    }

    /// Reserves or releases the range of a unit, which then counts with its full length.
    fn allocate(&self, unit: &Unit, flags: libc::c_int) -> Outcome {
        retry(&self.files, unit.file, |descriptor| {
            // SAFETY: takes nothing but integers.
            unsafe { libc::fallocate(descriptor, flags, unit.offset as i64, unit.length as i64) as isize }
        })
        .map(|_| unit.length)
    }
}

impl Transfer for FallocEngine {
    has_files!();

    fn mode(mode: OpenMode) -> OpenMode {
        OpenMode { write: true, ..mode }
    }

    fn control(&mut self, unit: &Unit) -> Outcome {
        match unit.operation {
            Operation::Trim => self.allocate(unit, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE),
            _ => self.files.control(unit),
        }
    }

    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        self.allocate(unit, if write { 0 } else { libc::FALLOC_FL_KEEP_SIZE })
    }
}
