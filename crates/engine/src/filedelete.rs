//! `filedelete`: unlink(2).

use crate::names::{Act, NameEngine, answer};
use crate::{EngineConfig, EngineError, Errno};
use std::ffi::CStr;

/// Removes a file per unit.
pub type FileDeleteEngine = NameEngine<FileDelete>;

/// What `filedelete` does to a name.
#[derive(Debug)]
pub struct FileDelete;

impl FileDeleteEngine {
    /// An engine that knows no name yet.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(NameEngine::with(FileDelete, config))
    }
}

impl Act for FileDelete {
    #[inline]
    fn act(&mut self, name: &CStr) -> Result<(), Errno> {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::unlink(name.as_ptr()) })
    }
}
