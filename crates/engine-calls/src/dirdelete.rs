//! `dirdelete`: rmdir(2).

use crate::names::{Act, HERE, RingAct, answer};
use ::io_uring::opcode;
use ::io_uring::squeue::Entry;
use iolite_engine::Outcome;
use std::ffi::CStr;

/// Removes an empty directory per unit.
#[derive(Debug)]
pub struct DirDelete;

impl Act for DirDelete {
    #[inline]
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        // SAFETY: the name ends with a zero.
        answer(unsafe { libc::rmdir(name.as_ptr()) }, length)
    }
}

impl RingAct for DirDelete {
    const COMMAND: (u8, &'static str) = (opcode::UnlinkAt::CODE, "unlinkat");

    fn command(&self, name: &CStr, _slot: u32, _found: *mut libc::statx) -> Entry {
        opcode::UnlinkAt::new(HERE, name.as_ptr()).flags(libc::AT_REMOVEDIR).build()
    }
}
