//! `pvsync`: preadv(2) and pwritev(2).

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Outcome, Unit};

/// One preadv or pwritev with a single segment per unit.
#[derive(Debug)]
pub struct PvsyncEngine {
    files: Files,
}

impl PvsyncEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(PvsyncEngine { files: Files::new(config) })
    }
}

impl Transfer for PvsyncEngine {
    has_files!();

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let segment = libc::iovec { iov_base: unit.buffer.cast(), iov_len: unit.length as usize };
        let offset = unit.offset as i64;
        retry(&self.files, unit.file, |descriptor| {
            if write {
                // SAFETY: the caller promises a buffer of this length.
                unsafe { libc::pwritev(descriptor, &segment, 1, offset) }
            } else {
                // SAFETY: as above, and the worker does not touch it meanwhile.
                unsafe { libc::preadv(descriptor, &segment, 1, offset) }
            }
        })
    }
}
