//! `ftruncate`: a write sets the size of the file to the offset of the unit, ftruncate(2).
//!
//! Nothing else is defined: reads and trims are refused when the job is planned.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Errno, Outcome, Unit};

/// One ftruncate per unit.
#[derive(Debug)]
pub struct FtruncateEngine {
    files: Files,
}

impl FtruncateEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(FtruncateEngine { files: Files::new(config) })
    }
}

impl Transfer for FtruncateEngine {
    has_files!();

    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        if !write {
            return Err(Errno(libc::EINVAL));
        }
        retry(&self.files, unit.file, |descriptor| {
            // SAFETY: takes nothing but integers.
            unsafe { libc::ftruncate(descriptor, unit.offset as i64) as isize }
        })
        .map(|_| unit.length)
    }
}
