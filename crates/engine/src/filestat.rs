//! `filestat` and `dirstat`: stat(2), lstat(2) or statx(2).

use crate::names::{Act, NameEngine, answer};
use crate::{EngineConfig, EngineError, Errno};
use iolite_options::engines::{StatCall, StatOptions};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// Looks up a file or a directory per unit.
pub type StatEngine = NameEngine<Stat>;

/// What `filestat` and `dirstat` do to a name.
#[derive(Debug)]
pub struct Stat(StatCall);

impl StatEngine {
    /// An engine that knows no name yet.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig, options: &StatOptions) -> Result<Self, EngineError> {
        Ok(NameEngine::with(Stat(options.stat_type), config))
    }
}

impl Act for Stat {
    #[inline]
    fn act(&mut self, name: &CStr) -> Result<(), Errno> {
        let name = name.as_ptr();
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the name ends with a zero, and there is room for what the call writes.
        answer(unsafe {
            match self.0 {
                StatCall::Stat => libc::stat(name, found.as_mut_ptr()),
                StatCall::Lstat => libc::lstat(name, found.as_mut_ptr()),
                StatCall::Statx => {
                    let mut found = MaybeUninit::<libc::statx>::uninit();
                    libc::statx(libc::AT_FDCWD, name, 0, libc::STATX_ALL, found.as_mut_ptr())
                }
            }
        })
    }
}
