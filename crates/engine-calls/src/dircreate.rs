//! `dircreate`: mkdir(2).

use crate::names::{Act, HERE, RingAct, answer};
use ::io_uring::opcode;
use ::io_uring::squeue::Entry;
use iolite_engine::Outcome;
use std::ffi::CStr;

/// A new directory's permission bits, before the umask.
const DIRECTORY_MODE: libc::mode_t = 0o777;

/// Makes a directory per unit.
#[derive(Debug)]
pub struct DirCreate;

impl Act for DirCreate {
    #[inline]
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::mkdir(name.as_ptr(), DIRECTORY_MODE) }, length)
    }
}

impl RingAct for DirCreate {
    const COMMAND: (u8, &'static str) = (opcode::MkDirAt::CODE, "mkdirat");

    fn command(&self, name: &CStr, _slot: u32, _found: *mut libc::statx) -> Entry {
        opcode::MkDirAt::new(HERE, name.as_ptr()).mode(DIRECTORY_MODE).build()
    }
}
