//! `filecreate`: open(2) with O_CREAT, and close(2).

use crate::names::{Act, NameEngine, answer};
use crate::{EngineConfig, EngineError, Errno};
use std::ffi::CStr;

/// How it is opened. A name that is there already is no error, as with fio.
const FLAGS: libc::c_int = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC;

/// A new file's permission bits, as with fio.
const CREATE_MODE: libc::c_uint = 0o600;

/// Makes a file per unit, or opens the one that is there.
pub type FileCreateEngine = NameEngine<FileCreate>;

/// What `filecreate` does to a name.
#[derive(Debug)]
pub struct FileCreate;

impl FileCreateEngine {
    /// An engine that knows no name yet.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(NameEngine::with(FileCreate, config))
    }
}

impl Act for FileCreate {
    #[inline]
    fn act(&mut self, name: &CStr) -> Result<(), Errno> {
        // SAFETY: the name ends with a zero.
        match unsafe { libc::open(name.as_ptr(), FLAGS, CREATE_MODE) } {
            -1 => Err(Errno::last()),
            // SAFETY: the descriptor was opened here and is forgotten now.
            descriptor => answer(unsafe { libc::close(descriptor) }),
        }
    }
}
