//! Connections, plain or encrypted, with a deadline for reads, and one for writes.

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long writing to a reader may make no progress.
const PATIENCE: Duration = Duration::from_secs(10);

/// The minimum rate of a reader, in bytes per second. Data stays in memory until the reader accepts it, so a reader
/// that accepts a byte now and then is disconnected.
const MIN_RATE: u32 = 64 << 10;

/// How long a refused request is read after its answer, and how many bytes.
const DISCARDING: Duration = Duration::from_secs(1);
const MOST_DISCARDED: usize = 8 << 20;

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
    /// Shared with whoever may close it.
    stream: Arc<TcpStream>,
    /// The deadline of reads.
    until: Instant,
    /// The deadline of writes; `None` = only [`PATIENCE`] limits them.
    write_deadline: Option<Instant>,
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        (&*self.stream).read(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left =
            self.write_deadline.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_write_timeout(Some(left.min(PATIENCE)))?;
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.stream).flush()
    }
}

impl Wire {
    /// An accepted connection, with this encryption.
    pub fn new(stream: Arc<TcpStream>, security: Option<&Arc<ServerConfig>>) -> io::Result<Wire> {
        // Without this, answers are a little slower.
        let _ = stream.set_nodelay(true);
        let socket = Socket { stream, until: Instant::now(), write_deadline: None };
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

    /// Sends all of these parts. Fails if the reader takes longer than the minimum rate allows.
    pub fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let count: usize = parts.iter().map(|part| part.len()).sum();
        let time = PATIENCE + Duration::from_secs_f64(count as f64 / f64::from(MIN_RATE));
        self.send_until(parts, Instant::now() + time)
    }

    fn send_until(&mut self, parts: &[&[u8]], until: Instant) -> io::Result<()> {
        self.socket().write_deadline = Some(until);
        for part in parts {
            self.write_all(part)?;
        }
        self.flush()
    }

    /// Ends writing.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Inner::Encrypted(stream) = &mut self.0 {
            stream.conn.send_close_notify();
            stream.flush()?;
        }
        self.socket().stream.shutdown(Shutdown::Write)
    }

    /// Reads and drops the rest of a refused request, within limits: closing a connection with unread data resets it,
    /// and its reader may lose the answer.
    pub fn discard_rest(&mut self) {
        let _ = self.socket().stream.shutdown(Shutdown::Write);
        self.read_within(DISCARDING);
        let mut left = MOST_DISCARDED;
        let mut room = [0; 16 << 10];
        while left > 0 {
            match self.socket().read(&mut room) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => left = left.saturating_sub(bytes),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    /// A reader that takes four KiB each millisecond would get everything after some time.
    #[test]
    fn a_reader_that_takes_too_little_is_given_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut wire = Wire::new(listener.accept().unwrap().0.into(), None).unwrap();
        wire.send(&[b"head", b"body"]).unwrap();
        let taker = thread::spawn(move || {
            let mut part = [0; 4096];
            while !matches!(reader.read(&mut part), Ok(0) | Err(_)) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let much = vec![0; 64 << 20];
        let sent = wire.send_until(&[&much], Instant::now() + Duration::from_millis(50));
        assert!(
            matches!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock),
            "it has not taken all of it"
        );
        drop(wire);
        taker.join().unwrap();
    }
}
