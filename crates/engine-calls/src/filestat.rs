//! `filestat` and `dirstat`: stat(2), lstat(2) or statx(2).

use crate::names::{Act, HERE, RingAct, answer};
use ::io_uring::opcode;
use ::io_uring::squeue::Entry;
use iolite_engine::Outcome;
use iolite_options::engines::{StatCall, StatOptions};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// Looks up a file or a directory per unit.
#[derive(Debug)]
pub struct Stat(StatCall);

impl Stat {
    /// With the system call that the options select.
    pub fn new(options: &StatOptions) -> Self {
        Stat(options.stat_type)
    }
}

impl Act for Stat {
    #[inline]
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        let name = name.as_ptr();
        let mut found = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the name ends with a zero, and the result has room for the structure.
        let result = unsafe {
            match self.0 {
                StatCall::Stat => libc::stat(name, found.as_mut_ptr()),
                StatCall::Lstat => libc::lstat(name, found.as_mut_ptr()),
                StatCall::Statx => {
                    let mut found = MaybeUninit::<libc::statx>::uninit();
                    iolite_os::by_number::statx(libc::AT_FDCWD, name, 0, libc::STATX_ALL, found.as_mut_ptr())
                }
            }
        };
        answer(result, length)
    }
}

impl RingAct for Stat {
    const COMMAND: (u8, &'static str) = (opcode::Statx::CODE, "statx");

    /// A ring has only statx(2), which is asked for the same attributes as the other calls return.
    fn command(&self, name: &CStr, _slot: u32, found: *mut libc::statx) -> Entry {
        let (flags, mask) = match self.0 {
            StatCall::Stat => (0, libc::STATX_BASIC_STATS),
            StatCall::Lstat => (libc::AT_SYMLINK_NOFOLLOW, libc::STATX_BASIC_STATS),
            StatCall::Statx => (0, libc::STATX_ALL),
        };
        opcode::Statx::new(HERE, name.as_ptr(), found.cast()).flags(flags).mask(mask).build()
    }
}
