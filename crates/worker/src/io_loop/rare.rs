//! Rare events: syncs, short I/Os, errors, requests of the controller, the end of the ramp and of the time.

use super::errors::NOTHING_MOVED;
use super::failure::Failure;
use super::flight::Times;
use super::{Common, IoLoop};
use crate::in_flight::{GIVEN_UP, REST, Stamps, UNCOUNTED};
use crate::usage;
use iolite_engine::{Completion, Engine, Outcome, Requests, WITHDRAWN};
use iolite_os::shared::{Phase, attention};
use iolite_workload::{Fate, Generator};
use std::sync::atomic::Ordering::Relaxed;
use tracing::debug;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    #[cold]
    pub(super) fn complete_sync(&mut self, index: u32, outcome: Outcome, issue: u64, now: u64) {
        self.common.flight.fresh_stamp = 0;
        if FULL && let Some(state) = self.common.state() {
            state.flushed(index, outcome.is_ok());
        }
        match outcome {
            Ok(_) => {
                self.common.stats.syncs.add(1);
                if self.common.rules.timed() {
                    let latency = now.saturating_sub(issue);
                    self.common.stats.sync.record(latency);
                    self.common.stats.sync.record_bucket(latency);
                }
            }
            Err(errno) => self.io_failed(index, errno),
        }
        self.release(index);
    }

    /// Handles an error or a short I/O. The rest of a short I/O is issued like a unit that was made when the first part
    /// was, so its total latency is that of the whole I/O, and its completion latency that of the rest.
    #[cold]
    pub(super) fn complete_unusually(&mut self, index: u32, outcome: Outcome, times: Times) {
        self.common.flight.fresh_stamp = 0;
        let marks = if times.queued { self.common.flight.table.stamps[index as usize].marks } else { 0 };
        self.common.trace_unusual(index, &outcome);
        let unit = &mut self.common.flight.table.units[index as usize];
        match outcome {
            Ok(bytes) if bytes > 0 && bytes < unit.length => {
                if let Some(direction) = unit.operation.direction() {
                    if marks & UNCOUNTED == 0 {
                        let counters = &self.common.stats.directions[direction.index()];
                        counters.short.add(1);
                        counters.bytes.add(bytes);
                    }
                    if FULL && let Some(pace) = &mut self.common.extras.pace {
                        pace.partly_completed(direction, bytes);
                    }
                }
                unit.buffer = unit.buffer.wrapping_add(bytes as usize);
                unit.offset += bytes;
                unit.length -= bytes;
                self.common.flight.table.stamps[index as usize] =
                    Stamps { start: times.start, issue: 0, marks: marks | REST };
                self.common.flight.partial.push(index);
                return;
            }
            Err(errno) if FULL && self.common.reads_what_differs(index, errno) => {
                self.common.flight.table.stamps[index as usize] =
                    Stamps { start: times.start, issue: 0, marks: marks | REST };
                self.common.flight.partial.push(index);
                return;
            }
            Err(WITHDRAWN) => {
                // Its commit has recorded how long its submission took.
                if self.common.rules.slat
                    && marks == 0
                    && let Some(direction) =
                        self.common.flight.table.units[index as usize].operation.direction()
                {
                    let slat = &self.common.stats.directions[direction.index()].slat;
                    slat.forget(times.issue.saturating_sub(times.start));
                }
                self.take_back(index, marks);
                return;
            }
            Ok(_) if self.common.found_end(&self.generator, index) => {}
            // No bytes were moved: the file ends here, although the job expected more.
            Ok(_) => self.io_failed(index, NOTHING_MOVED),
            Err(errno) => self.io_failed(index, errno),
        }
        self.release(index);
    }

    /// Finishes a unit that belongs to the ramp. Returns false if it failed or is short, so that it is not finished
    /// here.
    #[cold]
    pub(super) fn finish_uncounted(&mut self, completion: &Completion) -> bool {
        let index = completion.unit;
        if self.common.flight.table.stamps[index as usize].marks & GIVEN_UP != 0 {
            self.came_back(index);
            return true;
        }
        let unit = &self.common.flight.table.units[index as usize];
        let is_sync = unit.operation.direction().is_none();
        if completion.outcome.is_err() || (!is_sync && completion.outcome != Ok(unit.length)) {
            return false;
        }
        if FULL {
            let length = unit.length;
            self.land(index);
            self.learn(index, Fate::Done);
            self.count_for_pace(index, length);
        }
        if FULL
            && is_sync
            && let Some(state) = self.common.state()
        {
            state.flushed(index, true);
        }
        if FULL && let Some(verification) = &mut self.common.extras.verification {
            let role = verification.role(index);
            if self.act_on(index, role) {
                self.common.flight.table.stamps[index as usize].issue = 0;
                return true;
            }
        }
        self.release(index);
        true
    }

    /// Issues the rests of short I/Os.
    #[cold]
    pub(super) fn issue_partial(&mut self) {
        while let Some(index) = self.common.flight.partial.pop() {
            if self.common.end.failure.is_some() {
                self.drop_unit(index);
                continue;
            }
            let Stamps { start, marks, .. } = self.common.flight.table.stamps[index as usize];
            let ready = if self.common.rules.timed() { self.common.clock.now() } else { 0 };
            self.issue(index, start, ready, marks);
        }
        // A caller that waits for units in flight does not wait for a batch to fill.
        self.commit();
    }

    /// Frees a unit that was made but will not be issued (again).
    #[cold]
    pub(super) fn drop_unit(&mut self, index: u32) {
        if let Some(direction) = self.common.flight.table.units[index as usize].operation.direction() {
            self.common.stats.directions[direction.index()].dropped.add(1);
        }
        if FULL {
            self.learn(index, Fate::Failed);
        }
        self.release(index);
    }

    /// Handles requests of the controller.
    #[cold]
    pub(super) fn attend(&mut self) {
        self.common.flight.fresh_stamp = 0;
        let asked = self.common.control.attention();
        if asked & attention::TERMINATE != 0 {
            self.common.end.stopping = true;
            self.engine.stop_repeating();
        }
        if asked & attention::USAGE != 0 {
            usage::publish(self.common.control);
            self.common.control.answered(attention::USAGE);
        }
        if asked & attention::RAMP != 0 {
            self.common.control.answered(attention::RAMP);
            if self.common.time.ramping {
                self.common.time.next_event = self.common.time.ramp_until;
            }
        }
    }

    /// Handles a wait without completions. Waiting for a peer may outlast the job's time.
    #[cold]
    pub(super) fn nothing_came(&mut self) {
        let now = self.common.clock.now();
        if now >= self.common.time.next_event && !self.common.time.ramping && !self.common.end.stopping {
            self.event(now, false);
        }
        if self.common.end.stopping {
            self.engine.leave();
        }
    }

    /// The ramp or the job's time is over. `in_hand` = an I/O of the workload is still to be issued.
    #[cold]
    pub(super) fn event(&mut self, now: u64, in_hand: bool) {
        if self.common.ends_ramp(now) {
            self.generator.count_anew(in_hand && !self.common.beside);
            self.count_anew(now);
            self.common.begin_counting(now);
        }
    }

    /// Discards the measurements so far. Units in flight belong to them and will not be counted.
    pub(super) fn count_anew(&mut self, now: u64) {
        if E::REQUESTS {
            self.common.time.requests_before = self.engine.requests();
        }
        self.common.count_anew(now);
    }
}

impl Common<'_> {
    fn trace_unusual(&self, index: u32, outcome: &Outcome) {
        let unit = &self.flight.table.units[index as usize];
        debug!(
            target: "io",
            "complete: off={:#x}, len={:#x}, {}, file number {}, {}",
            unit.offset, unit.length, unit.operation.name(), unit.file,
            match outcome {
                Ok(bytes) => format!("only {bytes} bytes"),
                Err(errno) => format!("error {}", errno.0),
            }
        );
    }

    /// Whether the ramp is over. If there is none, the job's time is over.
    fn ends_ramp(&mut self, now: u64) -> bool {
        if !self.time.ramping {
            debug!(target: "time", "the time is over after {} ns", now - self.control.started_ns.load(Relaxed));
            self.end.timed_out = true;
            self.end.stopping = true;
            return false;
        }
        if self.extras.sized_ramp.as_ref().is_some_and(|ramp| !ramp.is_over()) {
            // The ramp goes on until enough bytes have been moved.
            self.time.next_event = u64::MAX;
            return false;
        }
        debug!(target: "time", "the ramp is over after {} ns; counting begins", now - self.control.started_ns.load(Relaxed));
        self.time.ramping = false;
        true
    }

    fn begin_counting(&mut self, now: u64) {
        if let Some(pace) = &mut self.extras.pace {
            pace.watch_from(now);
        }
        if let Some(accelerator) = &self.extras.accelerator {
            accelerator.count_from(now);
        }
        if let Some(log) = &mut self.extras.log {
            log.begin(now);
        }
        let end = now.saturating_add(self.rules.runtime_ns);
        self.time.next_event = match &mut self.time.put_off {
            Some(put_off) => {
                *put_off = end;
                u64::MAX
            }
            None => end,
        };
        // The worker may be reading back, which is another phase.
        if self.control.phase() == Phase::Ramping {
            self.control.set_phase(Phase::Running);
        }
    }

    fn count_anew(&mut self, now: u64) {
        self.flight.table.stamps.iter_mut().for_each(|stamps| stamps.marks |= UNCOUNTED);
        self.stats.reset(now);
        usage::reset(self.control);
        self.control.counting_ns.store(now, Relaxed);
    }

    /// Makes another unit and fills its buffer like those that were prepared at the start. Returns the unit and the
    /// time at which it is ready: filling the buffer does not count for the I/O that was to begin at `start`.
    #[cold]
    #[inline(never)]
    pub(super) fn another_unit(&mut self, start: u64) -> (u32, u64) {
        let index = self.flight.another();
        let Some(content) = &mut self.extras.later_units else { return (index, start) };
        // SAFETY: the bytes are the whole buffer of this unit, which is still unused.
        content.fill(unsafe { &mut *self.flight.buffers.whole(index) });
        (index, if self.rules.timed() { self.clock.now() } else { start })
    }

    #[cold]
    pub(super) fn fail(&mut self, failure: Failure) {
        self.end.failure.get_or_insert(failure);
        self.end.stopping = true;
    }

    /// Whether counting has not started yet.
    pub fn is_ramping(&self) -> bool {
        self.time.ramping
    }

    /// Requests to a server that do not count: those of the ramp.
    pub fn requests_before(&self) -> Requests {
        self.time.requests_before
    }
}
