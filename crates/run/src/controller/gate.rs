//! The gate of a run that is a part of one on several machines: everything is set up, and then waits until it is told at
//! which moment to begin. Whoever tells it is expected to stay: without him the run ends.

use super::{Controller, Events};
use crate::shared::Phase;
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_stats::EventKind;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Where a run is told when to begin: messages of eight bytes, the moment in nanoseconds of the system's monotonic
/// clock, with the lowest byte first.
#[derive(Clone, Debug)]
pub struct StartGate(Arc<Socket>);

impl StartGate {
    /// The other end of this socket tells the moment.
    pub fn new(socket: Socket) -> StartGate {
        StartGate(Arc::new(socket))
    }
}

/// The state of the gate.
#[derive(Debug)]
pub(super) struct Gate {
    /// `None` = nobody is there who tells anything, and the gate is open.
    socket: Option<StartGate>,
    is_open: bool,
    told_ready: bool,
    /// When it opens; `u64::MAX` = that is not known.
    opens_at: u64,
    /// The moment that was told, in the system's monotonic clock. It may have passed already when it was told.
    moment: Option<u64>,
}

impl Gate {
    pub(super) fn new(socket: Option<StartGate>) -> Gate {
        Gate { is_open: socket.is_none(), socket, told_ready: false, opens_at: u64::MAX, moment: None }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// When it opens; `u64::MAX` = it is open, or that is not known.
    pub(super) fn due(&self) -> u64 {
        if self.is_open { u64::MAX } else { self.opens_at }
    }

    /// The descriptor that becomes readable when there is something to hear.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().map(|gate| gate.0.as_raw_fd())
    }

    /// Hears what was said until now.
    ///
    /// # Errors
    /// `UnexpectedEof` = whoever tells the moment is gone.
    fn hear(&mut self, now: u64) -> io::Result<()> {
        let Some(gate) = self.socket.clone() else { return Ok(()) };
        let mut bytes = [0; 8];
        loop {
            match gate.0.try_receive_or_end(&mut bytes) {
                Ok(Some(8)) => {
                    let moment = u64::from_le_bytes(bytes);
                    let left = moment.saturating_sub(time::monotonic_ns());
                    self.moment = Some(moment);
                    self.opens_at = now.saturating_add(left);
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.socket = None;
                    return Err(error);
                }
            }
        }
    }

    /// How much later than it was told to it opens, if that is at this moment of the system's monotonic clock; `None` =
    /// it was told no moment.
    fn lateness(&self, monotonic_ns: u64) -> Option<u64> {
        Some(monotonic_ns.saturating_sub(self.moment?))
    }
}

impl Controller<'_> {
    /// Tells when everything is ready, and opens the gate when its moment has come: whether it opens now.
    pub(super) fn mind_the_gate(&mut self, events: &mut Events<'_>) -> bool {
        let now = self.now();
        if self.gate.hear(now).is_err() {
            self.end_by(libc::SIGTERM, events);
        }
        if self.gate.is_open {
            return false;
        }
        if !self.gate.told_ready && self.is_ready() {
            self.gate.told_ready = true;
            self.tell(None, EventKind::Ready, events);
        }
        // Asked to end, nobody waits for a moment.
        if self.gate.opens_at > now && self.signal.is_none() {
            return false;
        }
        self.gate.is_open = true;
        // Times count from here.
        self.begun = now;
        self.begin_wave();
        true
    }

    /// Tells how late the gate was opened, if it was not opened only so that everything can end.
    pub(super) fn tell_start(&mut self, events: &mut Events<'_>) {
        if self.signal.is_some() {
            return;
        }
        if let Some(late) = self.gate.lateness(time::monotonic_ns()) {
            self.tell(None, EventKind::Started(late), events);
        }
    }

    /// Whether all workers that begin together are set up.
    fn is_ready(&self) -> bool {
        self.present().filter(|&index| !self.is_late(index)).all(|index| {
            self.members[index].end.is_some() || self.arena.slot(index).control.phase() >= Phase::Ready
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_has_passed_counts_as_late() {
        let (theirs, mine) = Socket::pair().unwrap();
        let mut gate = Gate::new(Some(StartGate::new(mine)));
        assert_eq!(gate.lateness(7), None, "nothing was told");
        theirs.send(&1000_u64.to_le_bytes()).unwrap();
        gate.hear(5).unwrap();
        assert_eq!(gate.due(), 5, "it opens at once");
        assert_eq!(gate.lateness(1_500), Some(500));
    }
}
