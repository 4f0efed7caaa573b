//! Sockets between the processes of a run.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::error::check;

/// One end of a pair of connected sockets that keep message boundaries.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Creates a connected pair.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for two descriptors.
        check(unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr())
        })?;
        // SAFETY: fresh descriptors that nobody else owns.
        Ok(unsafe { (Socket(OwnedFd::from_raw_fd(ends[0])), Socket(OwnedFd::from_raw_fd(ends[1]))) })
    }

    /// Sends one message. Waits until there is room. If the other end is gone, returns an error; no signal is raised.
    ///
    /// # Errors
    /// The other end is gone, or the message is too long.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.send_with(bytes, 0)
    }

    /// Sends one message unless there is no room for it now. Returns whether it was sent.
    ///
    /// # Errors
    /// As for [`Socket::send`].
    pub fn send_if_there_is_room(&self, bytes: &[u8]) -> io::Result<bool> {
        match self.send_with(bytes, libc::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn send_with(&self, bytes: &[u8], flags: libc::c_int) -> io::Result<()> {
        let flags = flags | libc::MSG_NOSIGNAL;
        loop {
            // SAFETY: the buffer is valid for its length.
            let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
        loop {
            // SAFETY: the buffer is valid for its length.
            let received =
                unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
            if received >= 0 {
                return Ok(received as usize);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Waits for the next message and returns its length; 0 = the other end is gone.
    ///
    /// # Errors
    /// The socket cannot be read.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive_with(buffer, 0)
    }

    /// Receives the next message and returns its length; `None` = no message is waiting.
    ///
    /// # Errors
    /// `UnexpectedEof` if the other end is gone. Otherwise the socket cannot be read.
    pub fn try_receive_or_end(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.receive_with(buffer, libc::MSG_DONTWAIT) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            // The other end is gone and had not read everything. The kernel reports that once.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the other end that no more messages will come. Receiving still works.
    pub fn finish_sending(&self) {
        // SAFETY: no pointers are involved. The call fails only if the other end is gone, which is not a problem here.
        unsafe { libc::shutdown(self.0.as_raw_fd(), libc::SHUT_WR) };
    }
}

/// For a socket that another program has passed to this one.
impl From<OwnedFd> for Socket {
    fn from(descriptor: OwnedFd) -> Socket {
        Socket(descriptor)
    }
}

/// For passing it to another program.
impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
