//! `filedelete`: unlink(2).

use crate::names::{Act, HERE, RingAct, answer};
use ::io_uring::opcode;
use ::io_uring::squeue::Entry;
use iolite_engine::Outcome;
use std::ffi::CStr;

/// Removes a file per unit.
#[derive(Debug)]
pub struct FileDelete;

impl Act for FileDelete {
    #[inline]
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::unlink(name.as_ptr()) }, length)
    }
}

impl RingAct for FileDelete {
    const COMMAND: (u8, &'static str) = (opcode::UnlinkAt::CODE, "unlinkat");

    fn command(&self, name: &CStr, _slot: u32, _found: *mut libc::statx) -> Entry {
        opcode::UnlinkAt::new(HERE, name.as_ptr()).build()
    }
}
