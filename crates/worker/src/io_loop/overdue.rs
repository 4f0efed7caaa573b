//! `io_timeout`: an I/O that takes too long has failed, and the loop no longer waits for it.
//!
//! The kernel or a library may still use its buffer, so its unit stays out of use until it comes back, and the depth is
//! smaller by one until then. If it never comes back, engine and buffers are left as they are when the worker ends.
//!
//! All this is for engines that queue. A worker that hangs in a call can do nothing: the controller sees it from outside
//! (`run/src/controller/overdue.rs`).

use super::failure::too_long;
use super::{Common, IoLoop};
use crate::in_flight::{GIVEN_UP, Stamps};
use iolite_engine::{Engine, Errno};
use iolite_workload::Generator;
use std::time::Duration;

/// The longest wait for one of several I/Os that were given up, until the time and the controller's requests are looked
/// at again.
const LOOK: Duration = Duration::from_millis(20);

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Gives up I/Os that have taken too long.
    pub(super) fn look_for_overdue(&mut self) {
        if !self.common.rules.limits_time() {
            return;
        }
        let now = self.common.clock.now();
        if now < self.common.time.next_overdue {
            return;
        }
        let mut waits = vec![true; self.common.flight.table.units.len()];
        let (pending, partial) = (self.common.flight.pending.iter(), self.common.flight.partial.iter());
        for index in pending.chain(partial).copied().chain(self.common.flight.table.free.iter()) {
            waits[index as usize] = false;
        }
        let limit = self.common.rules.io_timeout_ns;
        // Those that are issued later are due later.
        let mut next = now.saturating_add(limit);
        for index in (0..waits.len()).filter(|&index| waits[index]) {
            let Stamps { issue, marks, .. } = self.common.flight.table.stamps[index];
            if issue == 0 || marks & GIVEN_UP != 0 {
                continue;
            }
            match issue.saturating_add(limit) {
                due if due > now => next = next.min(due),
                _ => self.give_up_unit(index as u32, now - issue),
            }
        }
        self.common.time.next_overdue = next;
    }

    fn give_up_unit(&mut self, index: u32, age_ns: u64) {
        self.common.flight.table.stamps[index as usize].marks |= GIVEN_UP;
        self.common.flight.count -= 1;
        self.common.flight.given_up += 1;
        self.common.flight.limit = (self.common.flight.limit - 1).max(1);
        self.io_failed_because(index, Errno(libc::ETIMEDOUT), &too_long(age_ns));
    }

    /// An I/O that was given up has come back: its unit is free again.
    pub(super) fn came_back(&mut self, index: u32) {
        self.common.flight.table.stamps[index as usize] = Stamps::default();
        self.common.flight.count = self.common.flight.count.wrapping_add(1);
        self.common.flight.given_up -= 1;
        self.common.flight.limit =
            (self.common.flight.limit + 1).min(self.common.rules.depth - self.common.flight.given_up);
        self.release(index);
    }

    /// Waits a while for an I/O that was given up, because no unit is free. Returns whether to wait longer.
    pub(super) fn await_return(&mut self) -> bool {
        if !self.common.has_given_up() || self.is_called_off(true) {
            return false;
        }
        self.commit();
        self.reap_within(LOOK);
        true
    }
}

impl Common<'_> {
    /// Whether I/Os were given up that have not come back.
    pub fn has_given_up(&self) -> bool {
        self.flight.given_up > 0
    }

    /// How long a reap may wait; `None` = for ever.
    pub(super) fn patience(&self) -> Option<Duration> {
        const LEAST: Duration = Duration::from_millis(1);
        self.rules.limits_time().then(|| {
            let due = self.time.next_overdue;
            Duration::from_nanos(due.saturating_sub(self.clock.now())).clamp(LEAST, Duration::from_secs(1))
        })
    }
}
