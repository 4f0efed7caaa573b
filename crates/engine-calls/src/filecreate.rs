//! `filecreate`: open(2) with O_CREAT, and close(2).

use crate::names::{Act, RingAct, answer, open};
use ::io_uring::opcode;
use ::io_uring::squeue::Entry;
use iolite_engine::{Errno, Outcome};
use std::ffi::CStr;

/// The flags of open(2). An existing name is not an error, as with fio.
const FLAGS: libc::c_int = libc::O_CREAT | libc::O_RDWR;

/// A new file's permission bits, as with fio.
const CREATE_MODE: libc::c_uint = 0o600;

/// Creates a file per unit, or opens it if it exists.
#[derive(Debug)]
pub struct FileCreate;

impl Act for FileCreate {
    #[inline]
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        // SAFETY: the name ends with a zero.
        match unsafe { libc::open(name.as_ptr(), FLAGS | libc::O_CLOEXEC, CREATE_MODE) } {
            -1 => Err(Errno::last()),
            // SAFETY: the descriptor was opened here and is forgotten now.
            descriptor => answer(unsafe { libc::close(descriptor) }, length),
        }
    }
}

impl RingAct for FileCreate {
    const COMMAND: (u8, &'static str) = (opcode::OpenAt::CODE, "open");
    const OPENS: bool = true;

    fn command(&self, name: &CStr, slot: u32, _found: *mut libc::statx) -> Entry {
        // A ring's table of files is not inherited: it takes no O_CLOEXEC.
        open(name, slot, FLAGS, CREATE_MODE)
    }
}
