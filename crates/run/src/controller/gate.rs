//! The barriers of a run that is part of one on several machines: the jobs behind a barrier are set up, and then wait
//! until the coordinator sends the moment at which to begin. The first barrier is the start of the run. If the
//! coordinator goes away, the run ends.

use super::{Controller, Events};
use crate::shared::Phase;
use iolite_os::socket::Socket;
use iolite_os::time;
use iolite_plan::{Barrier, Plan};
use iolite_stats::{EventKind, Word};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// The connection to the coordinator, which carries messages of type [`Word`].
#[derive(Clone, Debug)]
pub struct StartGate(Arc<Socket>);

impl StartGate {
    /// The other end of this socket sends the moments.
    pub fn new(socket: Socket) -> StartGate {
        StartGate(Arc::new(socket))
    }

    /// Waits for the next word; `None` = the other end is closed.
    pub fn next(&self) -> Option<Word> {
        let mut bytes = [0; 64];
        loop {
            match self.0.receive(&mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(length) => {
                    if let Some(word) = Word::from_bytes(&bytes[..length.min(bytes.len())]) {
                        return Some(word);
                    }
                }
            }
        }
    }
}

/// The state of all barriers.
#[derive(Debug)]
pub(super) struct Gate {
    /// `None` = no coordinator; all barriers are open.
    socket: Option<StartGate>,
    barriers: Vec<Bar>,
    /// Whether the coordinator knows the barriers and steady states of this run.
    is_announced: bool,
    /// Joint steady states of all machines that were reached since the last call of `take_steady`.
    steady: Vec<u32>,
}

/// The state of one barrier.
#[derive(Clone, Copy, Debug)]
struct Bar {
    what: Barrier,
    is_open: bool,
    told_ready: bool,
    /// When it opens; `u64::MAX` = unknown.
    opens_at: u64,
    /// The moment that was received, in the system's monotonic clock. It may have been in the past on arrival.
    moment: Option<u64>,
}

/// A barrier that has just been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    number: u32,
    moment: Option<u64>,
}

impl Opened {
    /// The delay from the given moment to this moment of the system's monotonic clock, at which the barrier was opened;
    /// `None` = no moment was given.
    fn lateness(self, monotonic_ns: u64) -> Option<u64> {
        Some(monotonic_ns.saturating_sub(self.moment?))
    }
}

impl Gate {
    pub(super) fn new(socket: Option<StartGate>, plan: &Plan) -> Gate {
        let barriers = if socket.is_some() { plan.barriers() } else { Vec::new() };
        let closed = |what| Bar { what, is_open: false, told_ready: false, opens_at: u64::MAX, moment: None };
        Gate {
            socket,
            barriers: barriers.into_iter().map(closed).collect(),
            is_announced: false,
            steady: Vec::new(),
        }
    }

    /// Whether this may begin as far as barriers are concerned.
    pub(super) fn is_open(&self, what: Barrier) -> bool {
        self.barriers.iter().all(|bar| bar.what != what || bar.is_open)
    }

    /// Whether there is a coordinator.
    pub(super) fn is_minded(&self) -> bool {
        self.socket.is_some()
    }

    /// When the next barrier opens; `u64::MAX` = unknown.
    pub(super) fn due(&self) -> u64 {
        let closed = self.barriers.iter().filter(|bar| !bar.is_open);
        closed.map(|bar| bar.opens_at).min().unwrap_or(u64::MAX)
    }

    /// The descriptor that becomes readable when a message arrives.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.socket.as_ref().map(|gate| gate.0.as_raw_fd())
    }

    /// The steady states that were reached since the last call.
    pub(super) fn take_steady(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.steady)
    }

    /// Receives all messages that have arrived.
    ///
    /// # Errors
    /// `UnexpectedEof` = the coordinator is gone.
    pub(super) fn hear(&mut self, now: u64) -> io::Result<()> {
        let Some(gate) = self.socket.clone() else { return Ok(()) };
        let mut bytes = [0; 64];
        loop {
            let length = match gate.0.try_receive_or_end(&mut bytes) {
                Ok(Some(length)) => length.min(bytes.len()),
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.socket = None;
                    return Err(error);
                }
            };
            match Word::from_bytes(&bytes[..length]) {
                Some(Word::Start { barrier, at_ns }) => {
                    if let Some(bar) = self.barriers.get_mut(barrier as usize) {
                        let left = at_ns.saturating_sub(time::monotonic_ns());
                        bar.moment = Some(at_ns);
                        bar.opens_at = now.saturating_add(left);
                    }
                }
                Some(Word::Steady(place)) => self.steady.push(place),
                // These come after the run.
                Some(Word::Send | Word::Trigger) | None => {}
            }
        }
    }
}

impl Controller<'_> {
    /// Receives messages, and ends the run if the coordinator is gone.
    pub(super) fn hear_the_gate(&mut self, events: &mut Events<'_>) {
        let now = self.now();
        if self.gate.hear(now).is_err() {
            self.end_by(libc::SIGTERM, events);
        }
    }

    /// Reports when everything behind a barrier is ready. Opens the barriers whose moments have come, and returns them.
    pub(super) fn mind_the_gate(&mut self, events: &mut Events<'_>) -> Vec<Opened> {
        self.hear_the_gate(events);
        if !std::mem::replace(&mut self.gate.is_announced, true) && self.gate.is_minded() {
            let together = self.in_step();
            self.tell(None, EventKind::InStep(together), events);
        }
        let mut opened = Vec::new();
        for number in 0..self.gate.barriers.len() {
            opened.extend(self.mind_one(number, events));
        }
        opened
    }

    fn mind_one(&mut self, number: usize, events: &mut Events<'_>) -> Option<Opened> {
        let now = self.now();
        let Bar { what, is_open, told_ready, opens_at, moment } = self.gate.barriers[number];
        if is_open {
            return None;
        }
        let barrier = number as u32;
        if self.is_passed(what) {
            self.gate.barriers[number].is_open = true;
            self.tell(None, EventKind::Passed(barrier), events);
            return None;
        }
        if !told_ready && self.is_ready(what) {
            self.gate.barriers[number].told_ready = true;
            self.tell(None, EventKind::Ready(barrier), events);
        }
        // A run that was asked to end does not wait for the moment.
        if opens_at > now && self.signal.is_none() {
            return None;
        }
        self.gate.barriers[number].is_open = true;
        if number == 0 {
            self.begin_time(now);
        }
        match what {
            Barrier::Wave(wave) if wave == self.wave => self.begin_wave(),
            Barrier::Ramp(job) => {
                self.behind(job).for_each(|index| self.arena.slot(index).control.release_ramp())
            }
            Barrier::Wave(_) | Barrier::Job(_) => {}
        }
        Some(Opened { number: barrier, moment })
    }

    /// Reports how late barriers were opened, unless they were opened only so that the run can end.
    pub(super) fn tell_starts(&mut self, opened: &[Opened], events: &mut Events<'_>) {
        if self.signal.is_some() {
            return;
        }
        for one in opened {
            if let Some(late_ns) = one.lateness(time::monotonic_ns()) {
                let kind = EventKind::Started { barrier: one.number, late_ns };
                self.tell(None, kind, events);
            }
        }
    }

    /// Whether all workers that begin together are set up.
    fn is_ready(&self, what: Barrier) -> bool {
        let is_ready = |index: usize| {
            self.members[index].end.is_some() || self.arena.slot(index).control.phase() >= Phase::Ready
        };
        match what {
            Barrier::Wave(wave) => {
                wave == self.wave && self.present().filter(|&index| !self.is_late(index)).all(is_ready)
            }
            Barrier::Job(job) => self.behind(job).all(is_ready),
            Barrier::Ramp(job) => self.behind(job).all(|index| {
                self.members[index].end.is_some() || self.arena.slot(index).control.is_ramp_moved()
            }),
        }
    }

    /// Whether no more workers will begin behind a barrier.
    fn is_passed(&self, what: Barrier) -> bool {
        match what {
            Barrier::Wave(wave) => self.wave > wave,
            Barrier::Job(job) | Barrier::Ramp(job) => {
                self.behind(job).all(|index| self.members[index].end.is_some())
            }
        }
    }

    /// Holds the ramps that must end on all machines at once.
    pub(super) fn hold_ramps(&self) {
        for bar in &self.gate.barriers {
            if let Barrier::Ramp(job) = bar.what {
                self.behind(job).for_each(|index| self.arena.slot(index).control.hold_ramp());
            }
        }
    }

    fn behind(&self, job: usize) -> std::ops::Range<usize> {
        self.plan.clones(&self.plan.jobs[job])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_has_passed_counts_as_late() {
        let (theirs, mine) = Socket::pair().unwrap();
        let plan = Plan { jobs: Vec::new(), workers: Vec::new(), waves: 1, readonly: false };
        let mut gate = Gate::new(Some(StartGate::new(mine)), &plan);
        assert_eq!(gate.due(), u64::MAX, "nothing was told");
        theirs.send(&Word::Start { barrier: 0, at_ns: 1000 }.to_bytes()).unwrap();
        // A barrier that does not exist.
        theirs.send(&Word::Start { barrier: 1, at_ns: 1 }.to_bytes()).unwrap();
        theirs.send(&Word::Steady(3).to_bytes()).unwrap();
        gate.hear(5).unwrap();
        assert_eq!(gate.due(), 5, "it opens at once");
        assert_eq!((gate.take_steady(), gate.take_steady()), (vec![3], Vec::new()));
        let opened = Opened { number: 0, moment: gate.barriers[0].moment };
        assert_eq!(opened.lateness(1_500), Some(500));
        assert!(!gate.is_open(Barrier::Wave(0)) && gate.is_open(Barrier::Wave(1)));
        drop(theirs);
        assert!(gate.hear(6).is_err());
        assert_eq!(gate.descriptor(), None, "an end is not heard again and again");
    }

    #[test]
    fn without_others_nothing_waits() {
        let plan = Plan { jobs: Vec::new(), workers: Vec::new(), waves: 1, readonly: false };
        let gate = Gate::new(None, &plan);
        assert!(gate.is_open(Barrier::Wave(0)) && !gate.is_minded());
    }
}
