//! Reading ahead of the units of a stream.
//!
//! With small blocks, most of a receiver's time would be calls, and most of both ends' time would be waking the
//! receiver for each piece of the stream. So a call also takes the data after the unit, as far as it has arrived, and
//! the next units find their data here. A receiver that was fast enough to get each piece as it came, at a high rate,
//! lets data gather in the socket for a moment before it is woken again.

use super::socket;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// Bytes to read ahead, and to gather in the socket. (L2 caches hold them; the kernel's pieces have 64 KiB at most.)
const ROOM: usize = 256 << 10;
/// How long data may gather. It gathers only if `ROOM` bytes arrive within this time.
const MOMENT: Duration = Duration::from_micros(500);

/// Data of a stream that arrived before its unit.
#[derive(Debug)]
pub(super) struct Ahead {
    store: Box<[u8]>,
    /// The data is in this part of the store.
    start: usize,
    end: usize,
    /// The socket counts as readable only if `ROOM` bytes are there.
    gathers: bool,
    /// The bytes that have arrived since this time.
    came: usize,
    since: Instant,
}

impl Ahead {
    /// Without any data.
    pub(super) fn new() -> Ahead {
        let store = vec![0; ROOM].into_boxed_slice();
        Ahead { store, start: 0, end: 0, gathers: false, came: 0, since: Instant::now() }
    }

    /// Moves up to `length` bytes to this place. Returns their number.
    #[inline(always)]
    pub(super) fn take(&mut self, place: *mut u8, length: usize) -> usize {
        let taken = length.min(self.end - self.start);
        let data = &self.store[self.start..self.start + taken];
        // SAFETY: the caller has that much room there, which is not part of the store.
        unsafe { place.copy_from_nonoverlapping(data.as_ptr(), taken) };
        self.start += taken;
        taken
    }

    /// Receives up to `length` bytes, and the data after them, once all data here has been taken. Returns the number of
    /// bytes at this place, 0 at the end of the stream, or -1 with errno.
    pub(super) fn receive(&mut self, socket: RawFd, place: *mut u8, length: usize) -> isize {
        debug_assert_eq!(self.start, self.end);
        if self.gathers && !socket::is_readable_within(socket, MOMENT) {
            self.gather(socket, false);
            // The other end may hold back the rest of a small block until earlier data is acknowledged (Nagle's
            // algorithm), and the kernel acknowledges unread data late.
            socket::acknowledge(socket);
        }
        // Large units are received directly.
        let after = if length < ROOM { ROOM } else { 0 };
        let parts = [(place, length), (self.store.as_mut_ptr(), after)];
        let came = socket::receive_parts(socket, parts, !self.gathers);
        let Ok(moved @ 1..) = usize::try_from(came) else { return came };
        (self.start, self.end) = (0, moved.saturating_sub(length));
        if !self.gathers {
            self.came += moved;
            self.judge(socket);
        }
        moved.min(length) as isize
    }

    /// Lets data gather if enough arrives at once.
    fn judge(&mut self, socket: RawFd) {
        if self.came < ROOM {
            return;
        }
        let now = Instant::now();
        if now - self.since <= MOMENT {
            self.gather(socket, true);
        }
        (self.came, self.since) = (0, now);
    }

    /// Sets whether data gathers in the socket.
    pub(super) fn gather(&mut self, socket: RawFd, gathers: bool) {
        let least = if gathers { ROOM } else { 1 };
        // If the system refuses that, the socket stays unchanged.
        if self.gathers != gathers && socket::is_readable_from(socket, least).is_ok() {
            self.gathers = gathers;
            (self.came, self.since) = (0, Instant::now());
        }
    }

    #[cfg(test)]
    pub(super) fn gathers(&self) -> bool {
        self.gathers
    }

    /// Forgets everything, at the end of the connection.
    pub(super) fn end(&mut self, socket: RawFd) {
        self.gather(socket, false);
        (self.start, self.end) = (0, 0);
    }
}
