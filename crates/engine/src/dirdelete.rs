//! `dirdelete`: rmdir(2).

use crate::names::{Act, NameEngine, answer};
use crate::{EngineConfig, EngineError, Errno};
use std::ffi::CStr;

/// Removes an empty directory per unit.
pub type DirDeleteEngine = NameEngine<DirDelete>;

/// What `dirdelete` does to a name.
#[derive(Debug)]
pub struct DirDelete;

impl DirDeleteEngine {
    /// An engine that knows no name yet.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(NameEngine::with(DirDelete, config))
    }
}

impl Act for DirDelete {
    #[inline]
    fn act(&mut self, name: &CStr) -> Result<(), Errno> {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::rmdir(name.as_ptr()) })
    }
}
