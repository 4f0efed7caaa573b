//! Units of engines that talk to a peer: the peer may block a unit or end the job.

use super::{Common, IoLoop};
use crate::in_flight::{REST, UNCOUNTED};
use iolite_engine::{Engine, Outcome, Queued, WITHDRAWN};
use iolite_os::message::Message;
use iolite_types::Operation;
use iolite_workload::{Fate, Generator};

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Repeats a unit until a synchronous engine completes it. Returns `None` if it was withdrawn, or the other end has
    /// finished.
    #[cold]
    #[inline(never)]
    pub(super) fn await_other_end(&mut self, index: u32, mut queued: Queued, marks: u8) -> Option<Outcome> {
        loop {
            match queued {
                Queued::Completed(Err(WITHDRAWN)) => {
                    self.take_back(index, marks);
                    return None;
                }
                Queued::Completed(outcome) => return Some(outcome),
                Queued::Over => {
                    self.common.other_end_is_done(index);
                    self.take_back(index, marks);
                    return None;
                }
                Queued::Busy => self.look_up(index),
                Queued::Queued => unreachable!("a synchronous engine does not queue"),
            }
            if self.common.end.stopping {
                self.engine.leave();
            }
            // SAFETY: the unit's buffer is valid (see `submit`), its file open, and it is not in flight.
            queued = unsafe { self.engine.queue(&self.common.flight.table.units[index as usize]) };
        }
    }

    /// Checks whether the job must end while a queueing engine refuses a unit and nothing is in flight, because only
    /// the other end can make room. Withdraws the unit and returns true if so.
    #[cold]
    #[inline(never)]
    pub(super) fn waits_in_vain(&mut self, index: u32, marks: u8) -> bool {
        self.look_up(index);
        if self.common.end.stopping {
            self.take_back(index, marks);
        }
        self.common.end.stopping
    }

    /// Checks whether the job, or the ramp, must end while this unit waits.
    fn look_up(&mut self, index: u32) {
        if self.common.control.attention() != 0 {
            self.attend();
        }
        let now = self.common.clock.now();
        if self.common.end.stopping || now < self.common.time.next_event {
            return;
        }
        let was_ramping = self.common.time.ramping;
        self.event(now, true);
        if was_ramping
            && !self.common.time.ramping
            && let Some(direction) = self.common.flight.table.units[index as usize].operation.direction()
        {
            // The reset at the end of the ramp cleared the count of issued units, so count it again.
            self.common.stats.directions[direction.index()].issued.add(1);
        }
    }

    /// Withdraws a unit before any of its data was transferred, or the rest of a unit.
    #[cold]
    pub(super) fn take_back(&mut self, index: u32, marks: u8) {
        self.common.flight.fresh_stamp = 0;
        if FULL {
            self.learn(index, Fate::Withdrawn);
            self.common.forget_role(index);
        }
        // A short I/O whose rest is withdrawn remains issued, and counts as short.
        if marks & (REST | UNCOUNTED) == 0
            && let Some(direction) = self.common.flight.table.units[index as usize].operation.direction()
        {
            let issued = &self.common.stats.directions[direction.index()].issued;
            issued.set(issued.get().saturating_sub(1));
        }
        self.release(index);
    }
}

impl Common<'_> {
    /// Ends the job. A sender warns if it had more to send, unless its time is limited.
    #[cold]
    pub(super) fn other_end_is_done(&mut self, index: u32) {
        self.end.stopping = true;
        let sends = self.flight.table.units[index as usize].operation == Operation::Write;
        if sends && self.rules.runtime_ns == u64::MAX {
            let name = self.files.name(self.flight.table.units[index as usize].file);
            let text =
                format!("{name}: the other end has finished; the job ends before it has sent all its data");
            Message::Warning(self.errors.worker(), text).send(self.errors.messages());
        }
    }
}
