//! Moving data between a buffer and a socket through a pipe, by vmsplice(2) and splice(2).

use iolite_os::pipe::{Pipe, through_memory};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// A pipe and its content.
#[derive(Debug)]
pub(super) struct SocketPipe {
    pipe: Pipe,
    /// Bytes in the pipe. They belong to the current unit.
    waiting: usize,
}

impl SocketPipe {
    /// An empty pipe.
    pub(super) fn new() -> io::Result<SocketPipe> {
        Ok(SocketPipe { pipe: Pipe::new(0)?, waiting: 0 })
    }

    /// Makes the pipe as large as a unit, if the system allows that.
    pub(super) fn make_room(&mut self, wanted: usize) -> io::Result<()> {
        self.pipe = Pipe::new(wanted)?;
        Ok(())
    }

    /// Moves bytes to the socket. Returns their number, or -1 with errno. Bytes that are in the pipe already go first.
    pub(super) fn send(&mut self, socket: RawFd, bytes: *mut u8, length: usize) -> isize {
        if self.waiting == 0 {
            // Without the flag, the call would block until all data fits into the pipe. Some data fits, because the
            // pipe is empty.
            match through_memory(&self.pipe.write, bytes, length, libc::SPLICE_F_NONBLOCK) {
                moved @ 1.. => self.waiting = moved as usize,
                refused => return refused,
            }
        }
        let (pipe, nowhere) = (self.pipe.read.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: neither a pipe nor a socket has places.
        let moved = unsafe { libc::splice(pipe, nowhere, socket, nowhere, self.waiting, 0) };
        self.waiting -= moved.max(0) as usize;
        moved
    }

    /// Moves bytes from the socket. Returns their number, 0 at the end of the stream, or -1 with errno.
    pub(super) fn receive(&mut self, socket: RawFd, bytes: *mut u8, length: usize) -> isize {
        if self.waiting == 0 {
            let (pipe, nowhere) = (self.pipe.write.as_raw_fd(), std::ptr::null_mut());
            let wanted = length.min(self.pipe.capacity);
            // SAFETY: neither a pipe nor a socket has places.
            match unsafe { libc::splice(socket, nowhere, pipe, nowhere, wanted, 0) } {
                moved @ 1.. => self.waiting = moved as usize,
                ended => return ended,
            }
        }
        let moved = through_memory(&self.pipe.read, bytes, self.waiting.min(length), 0);
        self.waiting -= moved.max(0) as usize;
        moved
    }
}
