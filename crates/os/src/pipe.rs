//! Pipes that data is spliced through.

use crate::memory;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A pipe and its capacity in bytes.
#[derive(Debug)]
pub struct Pipe {
    /// The end that is read.
    pub read: OwnedFd,
    /// The end that is written.
    pub write: OwnedFd,
    /// Bytes that it holds.
    pub capacity: usize,
}

impl Pipe {
    /// A pipe for units of this many bytes; it may hold fewer.
    ///
    /// # Errors
    /// The system makes no pipe (too many open files, say).
    pub fn new(wanted: usize) -> io::Result<Pipe> {
        let mut ends = [0; 2];
        // SAFETY: the system writes two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were opened just now, and nothing else owns them.
        let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        let mut capacity = size(write.as_raw_fd())?;
        if wanted > capacity {
            // A buffer that begins within a page needs an additional page.
            let wanted = wanted.saturating_add(memory::page_size()).min(largest());
            // SAFETY: takes nothing but integers. A refusal (too much for this user) leaves the pipe as it is.
            unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETPIPE_SZ, wanted as libc::c_int) };
            capacity = size(write.as_raw_fd())?;
        }
        Ok(Pipe { read, write, capacity })
    }
}

/// The capacity of a pipe in bytes.
fn size(pipe: RawFd) -> io::Result<usize> {
    // SAFETY: takes nothing but integers.
    match unsafe { libc::fcntl(pipe, libc::F_GETPIPE_SZ) } {
        -1 => Err(io::Error::last_os_error()),
        bytes => Ok(bytes as usize),
    }
}

/// The largest capacity without privileges; 1 MiB if the system does not report it.
fn largest() -> usize {
    std::fs::read_to_string("/proc/sys/fs/pipe-max-size")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(1 << 20)
}

/// Moves bytes of a buffer into or out of a pipe, by vmsplice(2). Returns their number, or -1 with errno. The caller's
/// buffer is valid for this many bytes.
pub fn through_memory(end: &OwnedFd, bytes: *mut u8, length: usize, flags: libc::c_uint) -> isize {
    let rest = libc::iovec { iov_base: bytes.cast(), iov_len: length };
    // SAFETY: the caller's buffer is valid for that many bytes.
    unsafe { libc::vmsplice(end.as_raw_fd(), &rest, 1, flags) }
}
