//! The steps that only the full loop takes: waiting for the right time, syncs between I/Os, overlap checks, locks, and
//! opening and closing files during a pass.

use super::IoLoop;
use super::failure::{Attempt, Failure, Missed};
use super::flight::Times;
use super::verify::is_check;
use crate::accelerator::Leave;
use crate::depth_search::Step;
use crate::in_flight::GIVEN_UP;
use crate::pace::Pause;
use crate::syncs::Due;
use iolite_engine::{Engine, Errno, Unit};
use iolite_os::counter;
use iolite_types::{Direction, Operation};
use iolite_verify::Role;
use iolite_workload::{Fate, Generator, Io};
use std::sync::atomic::Ordering::Relaxed;
use tracing::trace;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Lets the search for a depth that meets the latency target take its next step.
    pub(super) fn seek_depth(&mut self) {
        let Some(target) = &mut self.common.extras.target else { return };
        let now = self.common.clock.now();
        if now >= self.common.time.next_event {
            // Changing the depth after the end would only discard the measurements at the last depth.
            return;
        }
        let anew = target.counts_anew() && !self.common.time.ramping;
        match target.step(now) {
            Step::Stay => {}
            Step::Depth(depth) => {
                self.common.flight.limit =
                    depth.min(self.common.rules.depth - self.common.flight.given_up).max(1);
                self.common.control.found_depth.store(depth, Relaxed);
                if anew {
                    self.count_anew(now);
                }
                while self.common.flight.count >= depth && self.common.end.failure.is_none() {
                    self.commit();
                    self.reap(1);
                }
            }
            Step::Finished => self.common.end.stopping = true,
        }
    }

    /// Waits while this worker is ahead of its flow.
    pub(super) fn keep_in_step(&mut self) {
        /// How often to check the others when there is no sleep.
        const LOOK_NS: u64 = 1000;
        while let Some(flow) = &mut self.common.extras.flow
            && !flow.may_go()
            && !self.common.end.stopping
        {
            let nap = flow.sleep_ns();
            self.wait_until(self.common.clock.now().saturating_add(nap.max(LOOK_NS)), true);
            if nap == 0 {
                // The others may need this processor to catch up.
                std::thread::yield_now();
            }
        }
    }

    /// Takes a pause if one is due, and tells the workload the direction of the next I/O. Returns the time for which
    /// that I/O has to wait; 0 = none.
    pub(super) fn keep_pace(&mut self) -> u64 {
        let Some(pace) = &mut self.common.extras.pace else { return 0 };
        let most = pace.most_in_flight();
        while u64::from(self.common.flight.count) >= most && !self.common.end.stopping {
            self.commit();
            self.reap(1);
            if self.common.control.attention() != 0 {
                self.attend();
            }
        }
        let mut now = self.common.clock.now();
        let Some(pace) = &mut self.common.extras.pace else { return 0 };
        if !self.common.time.ramping
            && let Some(missed) = pace.missed(now)
        {
            let missed = Some(Missed::Rate(missed));
            self.common.fail(Failure { errno: Errno(libc::EIO), attempt: None, missed });
            return 0;
        }
        if let Some(pause) = pace.pause(now) {
            self.think(pause);
            now = self.common.clock.now();
        }
        let Some(pace) = &mut self.common.extras.pace else { return 0 };
        let turn = pace.turn(now);
        trace!(target: "rate", "next {} {} ns from now", turn.direction.map_or("I/O", Direction::name), turn.at.saturating_sub(now));
        self.generator.steer(turn.direction);
        if turn.at > now { turn.at } else { 0 }
    }

    /// Waits while the samples that were read are far enough ahead of the accelerator.
    fn await_accelerator(&mut self, io: &Io) {
        /// How often to check whether others have finished their samples.
        const LOOK_NS: u64 = 20_000;
        if self.common.extras.accelerator.is_none() || io.direction != Direction::Read {
            return;
        }
        let mut now = self.common.clock.now();
        while let Some(accelerator) = &mut self.common.extras.accelerator
            && !self.common.end.stopping
        {
            let moment = match accelerator.ask(io.file, io.length, now, self.common.flight.count == 0) {
                Leave::Now => return,
                Leave::At(moment) => moment,
                Leave::Later => now.saturating_add(LOOK_NS),
            };
            self.wait_until(moment, true);
            now = self.common.clock.now();
        }
    }

    /// Performs the steps before the next I/O: due syncs, and waiting until it may be issued. Returns false if the job
    /// ends meanwhile.
    pub(super) fn await_turn(&mut self, io: &Io, moment: u64) -> bool {
        self.sync_what_is_due();
        self.keep_in_step();
        self.await_accelerator(io);
        if moment > 0 {
            self.wait_until(moment, true);
        }
        !self.common.end.stopping
    }

    /// Issues the syncs that are due. Then closes the file that waited for them.
    pub(super) fn sync_what_is_due(&mut self) {
        while let Some(sync) = self.common.extras.syncs.due() {
            self.submit_sync(sync);
        }
        if let Some(file) = self.common.extras.syncs.take_closing() {
            self.close_file(file);
        }
    }

    /// Between two passes: issues the syncs that are due while the files are open. Returns when nothing is in flight.
    pub fn sync_between_passes(&mut self) {
        self.sync_what_is_due();
        self.drain();
    }

    /// Takes a pause with nothing in flight: spins first, then sleeps.
    pub(super) fn think(&mut self, pause: Pause) {
        /// Cycles to burn between two checks of the clock and the controller's requests: less than a millisecond.
        const SLICE_CYCLES: u64 = 1_000_000;
        self.drain();
        let began = self.common.clock.now();
        trace!(target: "rate", "thinks for {} ns, {} of them busily", pause.length_ns, pause.spin_ns);
        let busy_until = began.saturating_add(pause.spin_ns);
        while !self.is_called_off(false) && self.common.clock.now() < busy_until {
            std::hint::spin_loop();
        }
        let mut cycles = pause.cycles;
        while cycles > 0 && !self.is_called_off(false) {
            let slice = cycles.min(SLICE_CYCLES);
            counter::burn(slice);
            cycles -= slice;
        }
        self.wait_until(began.saturating_add(pause.length_ns), false);
        let now = self.common.clock.now();
        if let Some(pace) = &mut self.common.extras.pace {
            pace.paused(began, now);
        }
    }

    /// Whether to stop waiting: handles the end of the ramp or of the time, and the controller's requests. `in_hand` =
    /// an I/O of the workload is still to be issued.
    pub(super) fn is_called_off(&mut self, in_hand: bool) -> bool {
        let now = self.common.clock.now();
        if now >= self.common.time.next_event {
            self.event(now, in_hand);
        }
        if self.common.control.attention() != 0 {
            self.attend();
        }
        self.common.end.stopping
    }

    /// Performs the steps that this I/O requires first. Returns false if it cannot be issued.
    pub(super) fn before(&mut self, io: &Io) -> bool {
        if !self.is_possible(io) {
            return false;
        }
        trace!(target: "random", "file {}: {} at {:#x}", io.file, io.direction.name(), io.offset);
        trace!(target: "io", "fill: {}", self.in_words(&Attempt::at(io)));
        if !self.common.files.is_open(io.file)
            && let Err(error) = self.common.files.open(&mut self.engine, io.file)
        {
            self.common.refused(Attempt::at(io), error.into());
            return false;
        }
        if self.common.rules.serialize_overlap {
            while self.overlaps(io) && self.common.end.failure.is_none() {
                self.commit();
                if self.common.flight.count > 0 {
                    self.reap(1);
                } else {
                    self.collect(true);
                }
            }
        }
        if self.common.rules.write_barrier > 0 && io.direction == Direction::Write {
            self.common.barrier_countdown -= 1;
            if self.common.barrier_countdown == 0 {
                self.drain();
            }
        }
        if self.common.files.must_drain_for(io.file, io.direction) {
            self.drain();
        }
        if let Err(error) = self.common.files.enter(io.file, io.direction) {
            self.common.refused(Attempt::at(io), error.into());
        }
        if self.common.end.failure.is_none() && !self.take_turn(io) {
            return false;
        }
        trace!(target: "io", "queue: {}, {} in flight", self.in_words(&Attempt::at(io)), self.common.flight.count);
        self.common.end.failure.is_none()
    }

    /// The engine chose the offset of this write; use that one.
    #[inline(always)]
    pub(super) fn land(&mut self, index: u32) {
        if !E::PLACES {
            return;
        }
        let Some(offset) = self.engine.placed(index) else { return };
        self.common.flight.table.units[index as usize].offset = offset;
        if let Some(verification) = &mut self.common.extras.verification {
            verification.landed(index, offset);
        }
    }

    /// Reports the fate of a unit to the workload, if the workload tracks it and has issued the unit.
    #[inline(always)]
    pub(super) fn learn(&mut self, index: u32, fate: Fate) {
        if self.generator.learns() && !self.common.is_check(index) {
            let Attempt { operation, file, offset, length } =
                self.whole(&self.common.flight.table.units[index as usize]);
            if let Some(direction) = operation.direction() {
                self.generator.completed(&Io { offset, length, file, direction }, fate);
            }
        }
    }

    /// Tells the workload that an I/O is not issued.
    #[inline(always)]
    pub(super) fn withdraw(&mut self, io: &Io) {
        if FULL && self.generator.learns() && !self.common.beside {
            self.generator.completed(io, Fate::Withdrawn);
        }
    }

    /// Performs the steps that have to follow this I/O at once.
    pub(super) fn after(&mut self, io: &Io) {
        if self.common.rules.write_barrier > 0
            && io.direction == Direction::Write
            && self.common.barrier_countdown == 0
        {
            self.common.barrier_countdown = self.common.rules.write_barrier;
            self.drain();
        }
    }

    /// A description of an I/O for the trace output.
    fn in_words(&self, attempt: &Attempt) -> String {
        let Attempt { operation, file, offset, length } = attempt;
        format!(
            "off={offset:#x}, len={length:#x}, {}, file={}",
            operation.name(),
            self.common.files.name(*file)
        )
    }

    /// Whether this I/O overlaps one in flight. A short I/O counts with all of its bytes until its rest is complete:
    /// otherwise its rest could overtake a write to the part already moved.
    pub(super) fn overlaps(&self, io: &Io) -> bool {
        self.common.flight.table.units.iter().any(|unit| {
            let whole = self.whole(unit);
            unit.file == io.file
                && whole.offset < io.offset + io.length
                && io.offset < whole.offset + whole.length
                // Units that are not in flight have length 0 (see `release`).
                && unit.length > 0
                && self.common.flight.table.stamps[unit.index as usize].marks & GIVEN_UP == 0
        })
    }

    /// The complete I/O of a unit, even if the unit now is the rest of a short I/O.
    fn whole(&self, unit: &Unit) -> Attempt {
        let start = self.common.flight.buffers.start_of(unit.index);
        let moved = (unit.buffer.addr() - start.addr()) as u64;
        let rest = Attempt::of(unit);
        Attempt { offset: rest.offset - moved, length: rest.length + moved, ..rest }
    }

    /// Issues a sync.
    pub(super) fn submit_sync(&mut self, sync: Due) {
        let start = self.start_stamp();
        if self.common.end.stopping || !self.common.files.is_open(sync.file) {
            return;
        }
        if self.common.files.must_drain_for(sync.file, Direction::Write) {
            self.drain();
        }
        if let Err(error) = self.common.files.enter(sync.file, Direction::Write) {
            let Due { operation, file, offset, length } = sync;
            self.common.refused(Attempt { operation, file, offset, length }, error.into());
            return;
        }
        self.await_unit();
        if self.common.flight.is_exhausted() {
            self.common.files.left(sync.file);
            return;
        }
        let index = self.common.flight.table.free.pop().unwrap_or_else(|| self.common.another_unit(start).0);
        let buffer = self.common.flight.buffers.start_of(index);
        let unit = &mut self.common.flight.table.units[index as usize];
        unit.buffer = buffer;
        unit.operation = sync.operation;
        unit.file = sync.file;
        unit.offset = sync.offset;
        unit.length = sync.length;
        self.record(sync.operation, sync.file, sync.offset, sync.length);
        if sync.operation != Operation::SyncFileRange
            && let Some(state) = self.common.state()
        {
            state.flush(index, sync.file);
        }
        self.issue(index, start, start, 0);
        if !E::SYNCHRONOUS && self.common.flight.count >= self.common.rules.depth {
            self.make_room();
        }
    }

    /// Closes a file that the workload has finished with, at once or after its pending syncs. (Those are
    /// not issued here: syncs come between two I/Os, and there may be no other I/O.)
    pub(super) fn close_file(&mut self, file: u32) {
        if self.common.extras.syncs.holds_open(file) || self.common.has_given_up() {
            return;
        }
        if self.common.files.must_drain_to_close() {
            self.drain();
        }
        if let Err(error) = self.common.files.close(&mut self.engine, file) {
            self.common
                .refused(Attempt { operation: Operation::Sync, file, offset: 0, length: 0 }, error.into());
        }
    }

    /// Counts the unit's I/O for the pace, as completed with this many bytes. Syncs and checks do not count.
    pub(super) fn count_for_pace(&mut self, index: u32, bytes: u64) {
        if self.common.is_check(index) {
            return;
        }
        let direction = self.common.flight.table.units[index as usize].operation.direction();
        if let (Some(pace), Some(direction)) = (&mut self.common.extras.pace, direction) {
            pace.completed(direction, bytes);
        }
        if self.common.extras.accelerator.is_some() && direction == Some(Direction::Read) {
            self.count_for_accelerator(index);
        }
    }

    /// Counts the unit's read as (a part of) a sample. One that failed is a sample as well: a reader goes on with the next one.
    fn count_for_accelerator(&mut self, index: u32) {
        let whole = self.whole(&self.common.flight.table.units[index as usize]);
        let now = self.common.clock.now();
        if let Some(accelerator) = &mut self.common.extras.accelerator {
            accelerator.completed(whole.file, whole.length, now);
        }
    }

    /// The full loop's part of completing an I/O. Returns whether the unit is still in use.
    pub(super) fn completed(&mut self, index: u32, direction: Direction, times: Times) -> bool {
        let role = self
            .common
            .extras
            .verification
            .as_mut()
            .map_or(Role::Plain, |verification| verification.role(index));
        let latency = times.complete.saturating_sub(times.start);
        let unit = &self.common.flight.table.units[index as usize];
        let whole = self.whole(unit);
        trace!(target: "io", "complete: {}, {latency} ns", self.in_words(&whole));
        if self.common.time.ramping
            && let Some(ramp) = &self.common.extras.sized_ramp
        {
            ramp.moved(whole.length);
            if ramp.is_over() {
                // The ramp also has a minimum time, which may be over or not.
                self.common.time.next_event =
                    self.common.time.next_event.min(times.complete.max(self.common.time.ramp_until));
            }
        }
        if let Some(log) = &mut self.common.extras.log
            && !self.common.time.ramping
        {
            let io = iolite_logs::Io {
                direction,
                length: whole.length,
                offset: whole.offset,
                start: times.start,
                issue: times.issue,
                complete: times.complete,
                queued: times.queued && (E::STAMPS || !self.common.rules.times_sending),
                priority: unit.priority,
                first_byte: if E::REQUESTS { self.engine.first_byte(index) } else { None },
            };
            if !log.record(&io) {
                // The error is reported when the log is finished.
                self.common.end.stopping = true;
            }
        }
        if let Some(blocks) = &mut self.common.extras.blocks {
            blocks.done(&whole, false);
        }
        if self.common.extras.priorities.is_some() {
            let (measured, from) = if self.common.rules.lat_buckets {
                (self.common.rules.lat, times.start)
            } else {
                (self.common.rules.clat, times.issue)
            };
            if measured {
                let priorities = &self.common.stats.directions[direction.index()].priorities;
                priorities.record(unit.priority, times.complete.saturating_sub(from));
            }
        }
        if is_check(&role) {
            // It is not part of the workload, so pace and latency target do not count it.
            return self.act_on(index, role);
        }
        if let Some(stages) = &self.common.extras.stages
            && !self.common.time.ramping
        {
            let told = if stages.asks_engine() { self.engine.stage_ends(index) } else { None };
            stages.record(unit, &whole, direction, times, told);
        }
        if let Some(pace) = &mut self.common.extras.pace {
            pace.completed(direction, unit.length);
        }
        if let Some(accelerator) = &mut self.common.extras.accelerator
            && direction == Direction::Read
        {
            let now = if self.common.rules.timed() { times.complete } else { self.common.clock.now() };
            accelerator.completed(whole.file, whole.length, now);
        }
        if let Some(target) = &mut self.common.extras.target {
            target.completed(latency);
        }
        if let Some(intended) = &self.common.extras.intended {
            let into = &self.common.stats.directions[direction.index()].intended;
            intended.record(index, times.start, times.complete, into);
        }
        if latency > self.common.rules.max_latency_ns[direction.index()] {
            let attempt = whole;
            self.common.count_error(attempt.operation, Errno(libc::ETIMEDOUT));
            self.common.fail(Failure {
                errno: Errno(libc::ETIMEDOUT),
                attempt: Some(attempt),
                missed: Some(Missed::Latency(latency)),
            });
        }
        self.act_on(index, role)
    }
}
