//! Sends and receives records on one socket.
//!
//! Calls are collected and sent together. The data of a write stays in the caller's memory until the socket accepts
//! it. Many replies are received at a time. If only a part of a reply's data has arrived, the rest is received
//! directly into its destination instead of the buffer.

use crate::NfsError;
use crate::rpc::LAST;
use crate::socket::wait;
use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How many bytes are received at once.
const ROOM: usize = 256 << 10;

/// An upper bound for the length of the head of a reply to a read.
const HEAD: usize = 640;

/// The maximum length of a reply.
const LONGEST: usize = 64 << 20;

/// The maximum number of pieces of memory in one message.
const AT_ONCE: usize = 128;

/// The longest sleep of a receive, before the caller checks whether it should stop.
const NAP: Duration = Duration::from_millis(100);

/// The heads of consecutive calls, with the data of the last call.
struct Outgoing {
    head: Vec<u8>,
    body: *const u8,
    length: usize,
    /// The number of zeros after the data.
    padding: usize,
    sent: usize,
}

/// The destination for the data of a reply that has not arrived completely.
pub(crate) struct Landing {
    /// The slot of the call.
    pub(crate) slot: usize,
    /// The length of the reply's head, which precedes the data.
    pub(crate) head: usize,
    pub(crate) to: *mut u8,
    pub(crate) length: usize,
    /// The file ends after the data.
    pub(crate) is_end: bool,
}

/// The receiver of replies, which knows their calls.
pub(crate) trait Sink {
    /// Takes a whole reply.
    fn record(&mut self, record: &[u8]) -> Result<(), NfsError>;

    /// Takes the beginning of a reply of this length, and returns the destination of its data, if it is known.
    fn landing(&mut self, beginning: &[u8], length: usize) -> Option<Landing>;

    /// Notes that all data has arrived at its destination.
    fn landed(&mut self, landing: &Landing);
}

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    outgoing: VecDeque<Outgoing>,
    spare: Vec<Vec<u8>>,
    input: Vec<u8>,
    start: usize,
    end: usize,
    landing: Option<Landing>,
    /// How many bytes of the data have arrived at their destination.
    landed: usize,
    /// How many of the next bytes to skip.
    skipped: usize,
    /// The fragments of a record that has not arrived completely.
    fragments: Vec<u8>,
}

// SAFETY: the pointers are to memory that the caller keeps valid, and are used by one thread at a time.
unsafe impl Send for Connection {}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_read_timeout(Some(NAP))?;
        Ok(Connection {
            stream,
            outgoing: VecDeque::new(),
            spare: Vec::new(),
            input: vec![0; ROOM],
            start: 0,
            end: 0,
            landing: None,
            landed: 0,
            skipped: 0,
            fragments: Vec::new(),
        })
    }

    /// The buffer for the next call.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        if self.outgoing.back().is_none_or(|last| last.length > 0 || last.head.len() > ROOM) {
            let mut head = self.spare.pop().unwrap_or_default();
            head.clear();
            self.outgoing.push_back(Outgoing {
                head,
                body: std::ptr::null(),
                length: 0,
                padding: 0,
                sent: 0,
            });
        }
        &mut self.outgoing.back_mut().expect("there is one").head
    }

    /// Sets the data of the latest call.
    pub(crate) fn body(&mut self, body: *const u8, length: usize, padding: usize) {
        if let Some(last) = self.outgoing.back_mut() {
            (last.body, last.length, last.padding) = (body, length, padding);
        }
    }

    /// Sends as much as the socket accepts. Returns whether that was everything.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        while !self.outgoing.is_empty() {
            match self.send()? {
                Some(sent) => self.forget_sent(sent),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn send(&self) -> io::Result<Option<usize>> {
        const ZEROS: [u8; 4] = [0; 4];
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; AT_ONCE];
        let mut count = 0;
        for one in &self.outgoing {
            if count + 3 > pieces.len() {
                break;
            }
            let mut skip = one.sent;
            let parts =
                [(one.head.as_ptr(), one.head.len()), (one.body, one.length), (ZEROS.as_ptr(), one.padding)];
            for (start, length) in parts {
                let sent = skip.min(length);
                skip -= sent;
                if length > sent {
                    pieces[count] = libc::iovec {
                        iov_base: start.wrapping_add(sent).cast_mut().cast(),
                        iov_len: length - sent,
                    };
                    count += 1;
                }
            }
        }
        // SAFETY: zero is a valid value of all of it.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = pieces.as_mut_ptr();
        message.msg_iovlen = count as _;
        // SAFETY: the pieces are valid: the heads belong to this connection, and the caller keeps bodies valid.
        let sent = unsafe {
            libc::sendmsg(
                self.stream.as_raw_fd(),
                &raw const message,
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(sent) {
            Ok(sent) => Ok(Some(sent)),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Some(0)),
                error => Err(error),
            },
        }
    }

    fn forget_sent(&mut self, mut count: usize) {
        while let Some(one) = self.outgoing.front_mut() {
            let left = one.head.len() + one.length + one.padding - one.sent;
            if count < left {
                one.sent += count;
                return;
            }
            count -= left;
            let one = self.outgoing.pop_front().expect("there is one");
            self.spare.push(one.head);
        }
    }

    /// Sends pending data and receives, waiting for at most `timeout` and for at most [`NAP`]. Returns whether
    /// anything was received.
    ///
    /// # Errors
    /// The connection is lost, the server sends invalid data, or a signal interrupted the wait.
    pub(crate) fn exchange(
        &mut self,
        timeout: Option<Duration>,
        sink: &mut dyn Sink,
    ) -> Result<bool, Broken> {
        let is_sent = self.flush()?;
        // A single system call sleeps until data arrives, if the sleep may be so long.
        let sleeps = is_sent && timeout.is_none_or(|timeout| timeout >= NAP);
        if self.receive(sleeps, sink)? {
            return Ok(true);
        }
        if sleeps || timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Ok(false);
        }
        let events = if is_sent { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
        let limit = timeout.map_or(NAP, |timeout| timeout.min(NAP));
        if !wait(self.stream.as_raw_fd(), events, Some(limit))? {
            return Ok(false);
        }
        self.flush()?;
        self.receive(false, sink)
    }

    /// The number of bytes that are not sent yet.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.iter().map(|one| one.head.len() + one.length + one.padding - one.sent).sum()
    }

    fn receive(&mut self, sleeps: bool, sink: &mut dyn Sink) -> Result<bool, Broken> {
        let (direct, rest) = match &self.landing {
            Some(landing) => (landing.to.wrapping_add(self.landed), landing.length - self.landed),
            None => (std::ptr::null_mut(), 0),
        };
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.input.len() - self.end < ROOM / 4 {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let staged = &mut self.input[self.end..];
        let mut pieces = [
            libc::iovec { iov_base: direct.cast(), iov_len: rest },
            libc::iovec { iov_base: staged.as_mut_ptr().cast(), iov_len: staged.len() },
        ];
        let first = usize::from(rest == 0);
        // SAFETY: zero is a valid value of all of it.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = pieces[first..].as_mut_ptr();
        message.msg_iovlen = (2 - first) as _;
        let flags = if sleeps { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the pieces are valid: the buffer belongs to this connection, and the caller keeps the destination
        // valid.
        let received = unsafe { libc::recvmsg(self.stream.as_raw_fd(), &raw mut message, flags) };
        let mut received = match usize::try_from(received) {
            Ok(0) => {
                let words = "the server closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words).into());
            }
            Ok(received) => received,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                error => return Err(error.into()),
            },
        };
        if let Some(landing) = &self.landing {
            let landed = received.min(rest);
            self.landed += landed;
            received -= landed;
            if self.landed == landing.length {
                sink.landed(landing);
                self.landing = None;
            }
        }
        self.end += received;
        self.read(sink)?;
        Ok(true)
    }

    /// Passes received replies on to the sink.
    fn read(&mut self, sink: &mut dyn Sink) -> Result<(), NfsError> {
        while self.landing.is_none() {
            let skipped = self.skipped.min(self.end - self.start);
            self.skipped -= skipped;
            self.start += skipped;
            let staged = &self.input[self.start..self.end];
            if self.skipped > 0 || staged.len() < 4 {
                break;
            }
            let mark = u32::from_be_bytes([staged[0], staged[1], staged[2], staged[3]]);
            let (length, is_last) = ((mark & !LAST) as usize, mark & LAST != 0);
            if length > LONGEST || self.fragments.len() > LONGEST {
                return Err(NfsError::Malformed);
            }
            let is_whole = staged.len() >= 4 + length;
            match (is_last && self.fragments.is_empty(), is_whole) {
                (true, true) => {
                    sink.record(&staged[4..4 + length])?;
                    self.start += 4 + length;
                }
                (true, false) if staged.len() >= 4 + length.min(HEAD) => {
                    match sink.landing(&staged[4..], length) {
                        Some(landing) => self.land(landing, length, sink),
                        None => break,
                    }
                }
                (false, true) => {
                    self.fragments.extend_from_slice(&staged[4..4 + length]);
                    self.start += 4 + length;
                    if is_last {
                        let record = std::mem::take(&mut self.fragments);
                        sink.record(&record)?;
                    }
                }
                (_, false) => break,
            }
        }
        self.make_room();
        Ok(())
    }

    /// Copies the part of a reply's data that has arrived. The rest will be received directly into its destination.
    fn land(&mut self, landing: Landing, length: usize, sink: &mut dyn Sink) {
        let from = self.start + 4 + landing.head;
        let here = (self.end - from).min(landing.length);
        // SAFETY: the caller keeps the memory valid for its length.
        unsafe { landing.to.copy_from_nonoverlapping(self.input[from..].as_ptr(), here) };
        self.start = from + here;
        self.landed = here;
        self.skipped = length - landing.head - landing.length;
        if here == landing.length {
            sink.landed(&landing);
        } else {
            self.landing = Some(landing);
        }
    }

    /// Makes sure that there is room for the rest of a record that has only partly arrived.
    fn make_room(&mut self) {
        let staged = &self.input[self.start..self.end];
        if self.landing.is_some() || self.skipped > 0 || staged.len() < 4 {
            return;
        }
        let mark = u32::from_be_bytes([staged[0], staged[1], staged[2], staged[3]]);
        let needed = self.start + 4 + (mark & !LAST) as usize;
        if needed + ROOM / 4 > self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let needed = 4 + (mark & !LAST) as usize + ROOM / 2;
            if self.input.len() < needed {
                self.input.resize(needed, 0);
            }
        }
    }
}

/// Why a connection cannot be used any more.
pub(crate) enum Broken {
    /// An error of the system.
    System(io::Error),
    /// An invalid answer.
    Protocol(NfsError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::System(error)
    }
}

impl From<NfsError> for Broken {
    fn from(error: NfsError) -> Self {
        Broken::Protocol(error)
    }
}
