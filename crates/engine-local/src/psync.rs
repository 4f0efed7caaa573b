//! `psync`: pread(2) and pwrite(2).

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Outcome, Unit};

/// One pread or pwrite per unit.
#[derive(Debug)]
pub struct PsyncEngine {
    files: Files,
}

impl PsyncEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(PsyncEngine { files: Files::new(config) })
    }
}

impl Transfer for PsyncEngine {
    has_files!();

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let (buffer, length, offset) = (unit.buffer.cast(), unit.length as usize, unit.offset as i64);
        let stream = self.files.is_pipe(unit.file);
        retry(&self.files, unit.file, |descriptor| {
            if stream {
                // A pipe has no offsets to read or write at.
                // SAFETY: the caller promises a buffer of this length.
                return unsafe {
                    if write {
                        libc::write(descriptor, buffer, length)
                    } else {
                        libc::read(descriptor, buffer, length)
                    }
                };
            }
            if write {
                // SAFETY: the caller promises a buffer of this length.
                unsafe { libc::pwrite(descriptor, buffer, length, offset) }
            } else {
                // SAFETY: as above, and the worker does not touch it meanwhile.
                unsafe { libc::pread(descriptor, buffer, length, offset) }
            }
        })
    }
}
