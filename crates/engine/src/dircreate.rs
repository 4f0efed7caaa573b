//! `dircreate`: mkdir(2).

use crate::names::{Act, NameEngine, answer};
use crate::{EngineConfig, EngineError, Errno};
use std::ffi::CStr;

/// A new directory's permission bits, before the umask.
const DIRECTORY_MODE: libc::mode_t = 0o777;

/// Makes a directory per unit.
pub type DirCreateEngine = NameEngine<DirCreate>;

/// What `dircreate` does to a name.
#[derive(Debug)]
pub struct DirCreate;

impl DirCreateEngine {
    /// An engine that knows no name yet.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(NameEngine::with(DirCreate, config))
    }
}

impl Act for DirCreate {
    #[inline]
    fn act(&mut self, name: &CStr) -> Result<(), Errno> {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::mkdir(name.as_ptr(), DIRECTORY_MODE) })
    }
}
