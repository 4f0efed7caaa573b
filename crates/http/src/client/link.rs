//! Sends the request of a connection, and receives its answer.

use super::request::{Marks, Request, Sink};
use crate::answer::{Expected, Incoming, Place};
use crate::connection::Connection;
use std::io;
use std::time::Instant;

/// A connection and its current request.
pub(super) struct Link {
    pub(super) connection: Connection,
    /// The index of the host that it goes to.
    pub(super) host: usize,
    pub(super) generation: u32,
    pub(super) flight: Option<Flight>,
    pub(super) inbox: Box<[u8]>,
    /// How many bytes the inbox holds.
    pub(super) filled: usize,
}

/// A request in flight.
pub(super) struct Flight {
    pub(super) token: u32,
    pub(super) request: Request,
    pub(super) incoming: Incoming,
    /// How many bytes of head and body the connection has accepted.
    pub(super) sent: usize,
    /// The connection has served an earlier request.
    pub(super) is_reused: bool,
    pub(super) is_connected: bool,
    /// The index of the address that it connects to.
    pub(super) address: usize,
    /// How many addresses could not be connected to.
    pub(super) unreachable: usize,
    /// The request was sent more than once.
    pub(super) is_repeated: bool,
    /// When the attempt is ended even if data still moves.
    pub(super) latest: Option<Instant>,
    /// Retries so far.
    pub(super) retries: u32,
    /// The number of authentication challenges so far.
    pub(super) questions: u32,
    /// When the head was signed.
    pub(super) signed: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) marks: Marks,
}

/// Resets a flight so that its request can be sent again.
pub(super) fn again(flight: Flight) -> Flight {
    Flight { sent: 0, incoming: Incoming::new(), marks: Marks::default(), is_repeated: true, ..flight }
}

impl Link {
    /// Sends and receives as much as is possible now. Returns whether the answer is complete. `is_over`: the server
    /// will send no more data.
    pub(super) fn advance(&mut self, receives: bool, is_over: bool) -> io::Result<bool> {
        let sent = self.send();
        if !receives && sent.is_ok() {
            return Ok(false);
        }
        // A server may refuse a request, and end the connection, before all of the request has been sent.
        let received = self.receive(is_over || sent.is_err());
        match (sent, received) {
            (_, Ok(true)) => Ok(true),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(()), Ok(false)) => {
                // TLS may have needed the data that arrived before it could send more.
                self.send()?;
                Ok(false)
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let Some(flight) = &mut self.flight else { return Ok(()) };
        let head = flight.request.head.text.as_bytes();
        let (start, length) = flight.request.body;
        let body: &[u8] = match length {
            0 => &[],
            // SAFETY: the owner of the request promises that the body is valid until the request is over.
            _ => unsafe { std::slice::from_raw_parts(start, length) },
        };
        let all = head.len() + body.len();
        let is_new = !flight.is_reused;
        while flight.sent < all {
            let before = (is_new && flight.marks.connected.is_none()).then(Instant::now);
            let head_left = &head[flight.sent.min(head.len())..];
            let body_left = &body[flight.sent.saturating_sub(head.len())..];
            match self.connection.send(head_left, body_left) {
                Ok(count) => {
                    flight.sent += count;
                    // It was connected before these bytes were accepted.
                    flight.marks.connected = flight.marks.connected.or(before);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if self.connection.holds_back()
            && let Err(error) = self.connection.flush()
            && error.kind() != io::ErrorKind::WouldBlock
        {
            return Err(error);
        }
        if flight.marks.sent.is_none() && self.connection.is_ready() && !self.connection.holds_back() {
            flight.marks.sent = Some(Instant::now());
        }
        if is_new {
            flight.marks.secured = self.connection.secured();
        }
        Ok(())
    }

    fn receive(&mut self, is_over: bool) -> io::Result<bool> {
        let Some(flight) = &mut self.flight else { return Ok(false) };
        let memory: &mut [u8] = match flight.request.sink {
            Sink::Memory(_, 0) | Sink::Text => &mut [],
            // SAFETY: the owner of the request promises that the memory is valid and that nothing else accesses it
            // until the request is over.
            Sink::Memory(start, length) => unsafe { std::slice::from_raw_parts_mut(start, length) },
        };
        let expected = Expected { head_only: flight.request.head_only, fields: flight.request.fields };
        while !flight.incoming.is_complete() {
            let straight =
                flight.incoming.straight().filter(|(at, _)| self.filled == 0 && *at < memory.len());
            let (room, behind): (&mut [u8], &mut [u8]) = match straight {
                Some((at, left)) => {
                    let memory = &mut memory[at..];
                    let count = left.min(memory.len() as u64) as usize;
                    // Any bytes after the answer go to the inbox, so that they are noticed and not mistaken for the
                    // next answer.
                    let behind = if count as u64 == left { &mut self.inbox[..] } else { &mut [] };
                    (&mut memory[..count], behind)
                }
                None if self.filled < self.inbox.len() => (&mut self.inbox[self.filled..], &mut []),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the head of the answer is too long",
                    ));
                }
            };
            let asked = room.len();
            let count = match self.connection.receive(room, behind) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if count == 0 {
                flight.incoming.end()?;
                continue;
            }
            if straight.is_some() {
                self.filled = count.saturating_sub(asked);
                flight.incoming.received((count - self.filled) as u64);
            } else {
                flight.marks.first_byte.get_or_insert_with(Instant::now);
                if !flight.is_reused {
                    // The end of the handshake and the answer may both have come since the last look.
                    flight.marks.secured = self.connection.secured();
                    let all = flight.request.head.text.len() + flight.request.body.1;
                    if flight.sent == all && !self.connection.holds_back() {
                        flight.marks.sent = flight.marks.sent.or(flight.marks.secured);
                    }
                }
                self.filled += count;
                let mut place = match flight.request.sink {
                    Sink::Memory(..) => Place::Memory(memory),
                    Sink::Text => Place::Text,
                };
                let used = flight.incoming.take(&self.inbox[..self.filled], &mut place, expected)?;
                self.inbox.copy_within(used..self.filled, 0);
                self.filled -= used;
            }
            // There was room for more bytes, so the socket is empty. epoll reports when more arrive.
            if count < asked && !is_over && !self.connection.is_encrypted() && !flight.incoming.is_complete()
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
