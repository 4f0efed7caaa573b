//! How a connection ends: the goodbye, and what a sender learns about the data that it has sent.

use super::{Connection, GOODBYES, SENDS_AS_WELL, is_goodbye, socket};
use iolite_engine::Errno;
use iolite_options::engines::Protocol;
use iolite_os::explained;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a receiver that has finished keeps reading late data.
const PARTING: Duration = Duration::from_millis(100);
/// How long a sender that has finished waits until the peer ends the connection, before it asks the kernel what was
/// delivered.
pub(super) const HEARD: Duration = Duration::from_secs(1);
/// How long a sender that has finished waits while the peer accepts no data.
const STUCK: Duration = Duration::from_secs(10);
/// How often a receiver that has finished reads late data.
const DISCARDED: u32 = 64;

/// The error of a sender that has finished and does not get a goodbye.
const GONE: &str = "the other end closed the connection before it received everything";

impl<const SPLICED: bool> Connection<SPLICED> {
    /// Tells the peer that this end has finished.
    ///
    /// # Errors
    /// The peer has not received the data.
    pub(super) fn part(&mut self) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let is_udp = self.options.protocol.is_udp();
        if self.failed.is_some() && !is_udp {
            // The missing goodbye tells the peer about the failure.
            return Ok(());
        }
        if is_udp {
            return self.part_by_datagrams(socket);
        }
        // With `pingpong`, each block was answered, so it has arrived. Over vsock, the transport decides what is known
        // about an ended connection.
        let can_know = !self.options.pingpong && self.options.protocol != Protocol::Vsock;
        let is_known = !self.sends || self.over || !can_know || self.listen_for_end(socket)?;
        let is_full = self.sends && self.waits && !self.over && !matches!(self.heard(), Ok(Some(true)));
        let said = self.say(&GOODBYES[0]);
        if !is_known {
            // It fails if the other end has reset the connection since it was last listened to, and it alone tells so:
            // the kernel tells an error once, and later an end of the stream.
            if let Err(errno @ Errno(libc::ECONNRESET | libc::EPIPE)) = said
                && self.heard()? != Some(true)
            {
                return Err(self.ended(errno.0, GONE));
            }
            // SAFETY: takes nothing but integers.
            unsafe { libc::shutdown(self.descriptor, libc::SHUT_WR) };
            if !self.await_end(socket)? {
                let place = self.place();
                self.doubt = Some(format!(
                    "{place}: the other end did not read to the end within a second: it may not have received the last of \
                     what counts as sent"
                ));
            }
            return Ok(());
        }
        // Otherwise a failed goodbye is fine: the other end said goodbye as well, or has received everything.
        let unsent = if is_full { socket::unsent(self.descriptor) } else { 0 };
        if unsent > 0 {
            let place = self.place();
            self.doubt = Some(format!(
                "{place}: when the job ended, the last {unsent} bytes of what counts as sent had not arrived"
            ));
        }
        if !self.sends && !self.over {
            // Closing the connection while data arrives would look like an accident to the sender.
            // SAFETY: takes nothing but integers.
            unsafe { libc::shutdown(self.descriptor, libc::SHUT_WR) };
            let until = Instant::now() + PARTING;
            let mut left = DISCARDED;
            while left > 0 && Instant::now() < until && self.discard() {
                left -= 1;
            }
        }
        Ok(())
    }

    /// Checks whether the peer has ended already, before this end announces the end of the data. False = not ended, and
    /// only its reaction will show whether it receives everything.
    ///
    /// # Errors
    /// The peer did not receive all data, or it sent anything but a goodbye.
    fn listen_for_end(&self, socket: &OwnedFd) -> io::Result<bool> {
        let heard = self.heard()?;
        if heard == Some(true) || self.waits {
            // The peer said goodbye, or was not accepting data and knows that some is missing.
            return Ok(true);
        }
        // With a local socket, the kernel knows what was received. A TCP peer that has closed its side has to
        // acknowledge everything.
        let tells = self.options.protocol == Protocol::Unix || heard.is_some();
        if tells {
            self.await_taken(socket)?;
        }
        Ok(tells)
    }

    /// Waits until the peer ends its side, once it knows that all data was sent. False = it did not end, and only its
    /// machine has received everything.
    ///
    /// # Errors
    /// The peer did not receive all data, or it sent anything but a goodbye.
    pub(super) fn await_end(&self, socket: &OwnedFd) -> io::Result<bool> {
        let until = Instant::now() + HEARD;
        let mut has_ended = false;
        while !has_ended && Instant::now() < until {
            let is_ready = socket::is_ready(socket, libc::POLLIN, 100)?;
            match is_ready.then(|| self.heard()).transpose()?.flatten() {
                Some(true) => return Ok(true),
                Some(false) => has_ended = true,
                None => {}
            }
        }
        let was_told = self.await_taken(socket)?;
        Ok(has_ended || was_told)
    }

    /// Waits until the peer's machine has acknowledged everything, or with a local socket, until the peer has received
    /// it. Returns whether the peer said goodbye meanwhile: then it has read to the end, or has finished.
    fn await_taken(&self, socket: &OwnedFd) -> io::Result<bool> {
        let mut least = libc::c_int::MAX;
        let mut until = Instant::now();
        loop {
            let left = socket::unsent(self.descriptor);
            // A reset connection fails here, or has a pending error.
            if self.heard()? == Some(true) {
                return Ok(true);
            }
            let errno = socket::pending_error(socket)?;
            if errno != 0 {
                return Err(self.ended(errno, GONE));
            }
            match left {
                0 => return Ok(false),
                _ if left < least => (least, until) = (left, Instant::now() + STUCK),
                _ if Instant::now() >= until => {
                    let what = format!("the other end does not take the last {left} bytes");
                    return Err(self.ended(libc::ETIMEDOUT, &what));
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What this sender has received from the other end: a goodbye (`true`), only the end of its stream (`false`), or
    /// nothing yet.
    fn heard(&self) -> io::Result<Option<bool>> {
        let mut message = [0u8; 8];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: the message has as much room as is said.
        match unsafe { libc::recv(self.descriptor, message.as_mut_ptr().cast(), message.len(), flags) } {
            0 => Ok(Some(false)),
            8 if is_goodbye(&message) => Ok(Some(true)),
            1.. => Err(self.ended(libc::EPROTO, SENDS_AS_WELL)),
            _ => match Errno::last() {
                Errno(libc::EAGAIN | libc::EINTR) => Ok(None),
                Errno(errno) => Err(self.ended(errno, GONE)),
            },
        }
    }

    /// The error for a connection that ended too early.
    fn ended(&self, errno: libc::c_int, what: &str) -> io::Error {
        explained(&io::Error::from_raw_os_error(errno), format!("{}: {what}", self.place()))
    }

    /// Sends the goodbye repeatedly, because it may get lost; a receiver answers with its own goodbye.
    fn part_by_datagrams(&self, socket: &OwnedFd) -> io::Result<()> {
        let tries = if self.sends && !self.over { 3 } else { 1 };
        for _ in 0..tries {
            match self.say(&GOODBYES[0]) {
                Err(Errno(libc::ECONNREFUSED)) if self.sends && !self.was_told_goodbye() => {
                    let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
                    return Err(explained(&refused, format!("{}: nothing receives there", self.place())));
                }
                Err(_) => return Ok(()),
                Ok(()) if !self.sends => return Ok(()),
                Ok(()) => {}
            }
            if self.options.group().is_none() && socket::is_ready(socket, libc::POLLIN, 100).unwrap_or(true) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads and drops data for a slice; false = the stream has ended.
    fn discard(&self) -> bool {
        let mut room = [0u8; 4096];
        // SAFETY: there is as much room as is said.
        match unsafe { libc::recv(self.descriptor, room.as_mut_ptr().cast(), room.len(), 0) } {
            0 => false,
            1.. => true,
            _ => matches!(Errno::last(), Errno(libc::EAGAIN | libc::EINTR)),
        }
    }
}
