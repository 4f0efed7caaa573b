//! Moves bytes to and from one socket, encrypted or not. Nothing here blocks: operations that would have to wait
//! return `WouldBlock`.

use iolite_os::explained;
use iolite_os::local_end::LocalEnd;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt,
};
use rustls::ClientConnection;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// The maximum number of bytes that rustls buffers before they are sent.
const ENCRYPTED_AHEAD: usize = 256 << 10;
/// How many encrypted bytes are received at once. On its own, rustls receives only 4 KiB at a time.
const ENCRYPTED_PIECE: usize = 64 << 10;

/// A connection that is established or being established.
pub(crate) struct Connection {
    socket: Socket,
    encryption: Option<Box<Encryption>>,
}

/// The encryption of a connection, and its received bytes.
struct Encryption {
    tls: ClientConnection,
    received: Box<[u8]>,
    /// The range of `received` that rustls has not taken yet.
    untaken: Range<usize>,
    /// When the handshake was over. What had been buffered until then went out at once.
    secured: Option<Instant>,
}

/// A socket with the traits that rustls needs.
struct Socket(OwnedFd);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.0, buffer, RecvFlags::empty())?.1)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut control = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(&self.0, parts, &mut control, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.0.as_fd()
    }
}

impl Connection {
    /// Begins to connect. When the socket becomes writable, [`Connection::refused`] tells whether that has failed.
    pub(crate) fn begin(
        address: &SocketAddr,
        source: Option<&LocalEnd>,
        encryption: Option<ClientConnection>,
    ) -> io::Result<Connection> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        // The rest of a body must not wait until the head is acknowledged.
        sockopt::set_tcp_nodelay(&socket, true)?;
        if let Some(source) = source {
            source.bind(&socket).map_err(|error| explained(&error, format!("bind={source}")))?;
        }
        match rustix::net::connect(&socket, address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let encryption = encryption.map(|mut tls| {
            tls.set_buffer_limit(Some(ENCRYPTED_AHEAD));
            Box::new(Encryption {
                tls,
                received: vec![0; ENCRYPTED_PIECE].into(),
                untaken: 0..0,
                secured: None,
            })
        });
        Ok(Connection { socket: Socket(socket), encryption })
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// When the handshake was over; `None` = it is not, or there is none.
    pub(crate) fn secured(&self) -> Option<Instant> {
        self.encryption.as_ref()?.secured
    }

    /// Why connecting failed; `None` = it has not failed.
    pub(crate) fn refused(&self) -> Option<io::Error> {
        match sockopt::socket_error(&self.socket.0) {
            Ok(Ok(())) => None,
            Ok(Err(error)) | Err(error) => Some(error.into()),
        }
    }

    /// Sends as many of these bytes as possible now, and returns their number. At least one of the two parts must not
    /// be empty. An encrypted connection may buffer some of the bytes that it counts as sent
    /// ([`Connection::holds_back`]).
    pub(crate) fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        let Some(Encryption { tls: encryption, .. }) = self.encryption.as_deref_mut() else {
            return match (head.is_empty(), body.is_empty()) {
                (false, false) => self.socket.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]),
                (false, true) => self.socket.write(head),
                _ => self.socket.write(body),
            };
        };
        loop {
            let mut taken = encryption.writer().write(head)?;
            if taken == head.len() {
                taken += encryption.writer().write(body)?;
            }
            match write_out(encryption, &mut self.socket) {
                // rustls has buffered the bytes that it took, even if they could not be sent now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && taken > 0 => return Ok(taken),
                Err(error) => return Err(error),
                Ok(()) if taken > 0 => return Ok(taken),
                // Nothing can be sent until the handshake is over, and the buffer is full.
                Ok(()) if encryption.is_handshaking() => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(()) => {}
            }
        }
    }

    /// Whether bytes that are sent now go out: there is no encryption, or its handshake is over.
    pub(crate) fn is_ready(&self) -> bool {
        self.encryption.as_ref().is_none_or(|encryption| !encryption.tls.is_handshaking())
    }

    /// Whether there are buffered bytes that have not been sent.
    pub(crate) fn holds_back(&self) -> bool {
        self.encryption.as_ref().is_some_and(|encryption| encryption.tls.wants_write())
    }

    /// Sends the buffered bytes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.encryption {
            Some(encryption) => write_out(&mut encryption.tls, &mut self.socket),
            None => Ok(()),
        }
    }

    /// Receives as many bytes as fit, first into `first` and then into `second`; 0 = the server has ended the
    /// connection. `first` must not be empty. An encrypted connection fills only `first`.
    pub(crate) fn receive(&mut self, first: &mut [u8], second: &mut [u8]) -> io::Result<usize> {
        let Some(Encryption { tls, received, untaken, secured }) = self.encryption.as_deref_mut() else {
            if second.is_empty() {
                return self.socket.read(first);
            }
            return Ok(rustix::io::readv(
                &self.socket.0,
                &mut [IoSliceMut::new(first), IoSliceMut::new(second)],
            )?);
        };
        loop {
            match tls.reader().read(first) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without close_notify could be forged, but the declared length of the answer shows whether
                // anything is missing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            if untaken.start == untaken.end {
                *untaken = 0..self.socket.read(received)?;
            }
            // rustls may take only some of the bytes, and takes none after a close_notify. An empty slice tells it
            // that the stream has ended.
            let count = tls.read_tls(&mut &received[untaken.clone()])?;
            untaken.start += count;
            if count == 0 {
                return Ok(0);
            }
            if let Err(error) = tls.process_new_packets() {
                // Tries to send the alert that explains the error to the server.
                let _ = write_out(tls, &mut self.socket);
                return Err(io::Error::other(error));
            }
            if !tls.is_handshaking() {
                secured.get_or_insert_with(Instant::now);
            }
            if tls.wants_write() {
                would_wait(write_out(tls, &mut self.socket))?;
            }
        }
    }
}

/// Treats `WouldBlock` as success.
fn would_wait(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        result => result,
    }
}

fn write_out(encryption: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while encryption.wants_write() {
        encryption.write_tls(socket)?;
    }
    Ok(())
}
