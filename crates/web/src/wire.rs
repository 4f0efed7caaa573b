//! Connections, plain or encrypted, with a deadline for reads.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long writing to a reader may make no progress.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection.
#[derive(Debug)]
pub struct Wire(Inner);

enum Inner {
    Plain(Socket),
    Encrypted(Box<StreamOwned<ServerConnection, Socket>>),
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Inner::Plain(_) => "plain",
            Inner::Encrypted(_) => "encrypted",
        })
    }
}

/// The socket below, with the deadline.
struct Socket {
    stream: TcpStream,
    /// Nothing is read later.
    until: Instant,
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Wire {
    /// An accepted connection, with this encryption.
    pub fn new(stream: TcpStream, security: Option<&Arc<ServerConfig>>) -> io::Result<Wire> {
        // Without it, answers come a little later.
        let _ = stream.set_nodelay(true);
        stream.set_write_timeout(Some(PATIENCE))?;
        let socket = Socket { stream, until: Instant::now() };
        Ok(Wire(match security {
            None => Inner::Plain(socket),
            Some(config) => {
                let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                Inner::Encrypted(Box::new(StreamOwned::new(connection, socket)))
            }
        }))
    }

    fn socket(&mut self) -> &mut Socket {
        match &mut self.0 {
            Inner::Plain(socket) => socket,
            Inner::Encrypted(stream) => &mut stream.sock,
        }
    }

    /// Sets the deadline for reading; later reads fail as timed out.
    pub fn read_within(&mut self, time: Duration) {
        self.socket().until = Instant::now() + time;
    }

    /// Nothing more is written.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Inner::Encrypted(stream) = &mut self.0 {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.socket().stream.shutdown(Shutdown::Write)
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Plain(socket) => socket.read(bytes),
            Inner::Encrypted(stream) => stream.read(bytes),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Plain(socket) => socket.write(bytes),
            Inner::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Inner::Plain(socket) => socket.flush(),
            // Sends data that rustls has encrypted but not sent.
            Inner::Encrypted(stream) => stream.flush(),
        }
    }
}
