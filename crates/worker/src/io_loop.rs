//! The I/O loop: the one place where workload, content, engine and statistics meet.
//!
//! It is generic over the engine, the generator, and whether the job needs more than the plain loop (`FULL`): syncs
//! between I/Os, overlap checks, locks, files that are opened during a pass. A plain job pays for none of that. In
//! steady state the loop does not allocate, lock, format, or make system calls of its own.
//!
//! A unit has three time stamps: *start* (it was made), *issue* (it was handed to the system: just before the call of a
//! synchronous engine, or after queue and commit) and *complete* (it was reaped). Units of one commit share their issue
//! stamp. Units of one reap share their completion stamp, which is the issue stamp of the commit just before if the engine
//! completes units there ([`Engine::COMPLETES_IN_COMMIT`]). If sending a unit is a part of it ([`IssueRules::times_sending`]),
//! it is issued when it is handed to the engine.

mod any_loop;
mod blocks;
mod buffers;
mod connected;
mod ending;
mod errors;
mod extras;
pub mod failure;
mod flight;
mod full;
mod intended;
mod overdue;
mod ranges;
mod rare;
mod script;
mod spans;
mod stages;
mod timing;
mod verify;
mod waiting;
mod work;

pub use any_loop::AnyLoop;
pub use blocks::BlockLives;
pub use buffers::NO_DATA;
use buffers::UnitBuffers;
use ending::Ending;
pub use ending::PassEnd;
pub use errors::ErrorPolicy;
pub use extras::Extras;
pub use failure::{Attempt, Failure, Missed, failed_check, failed_operation};
use flight::{Flight, Times};
pub use intended::IntendedStarts;
pub use ranges::Ranges;
use script::Script;
pub use stages::StageStamps;
use timing::Timing;

use crate::files::FileTable;
use crate::in_flight::{GIVEN_UP, REST, Stamps, Table, UNCOUNTED};
use crate::usage;
use iolite_content::Content;
use iolite_engine::{Engine, Outcome, Queued};
use iolite_os::clock::Clock;
use iolite_os::shared::Control;
use iolite_plan::resolve::IssueRules;
use iolite_stats::live::LiveStats;
use iolite_stats::{batch_class, depth_class};
use iolite_types::Direction;
use iolite_workload::{Fate, Generator, Io, Next};
use std::sync::atomic::Ordering::Relaxed;

/// Without time stamps, the loop reads the clock once in this many I/Os to see whether the time is over.
const CLOCK_INTERVAL: u32 = 16;

/// Counting this many units takes no longer than reading the clock, so the stamp of their commit or reap is still
/// fresh.
const FRESH_BATCH: u32 = 2;

/// Scrambling up to this many bytes of a buffer takes no longer than reading the clock.
const SOON_SCRAMBLED: u64 = 16 << 10;

/// The loop with everything it uses.
pub struct IoLoop<'a, E: Engine, G: Generator, const FULL: bool> {
    engine: E,
    generator: G,
    common: Common<'a>,
}

/// What the loop has whatever it is compiled for. What happens rarely is a method of this, because such a method is
/// compiled once.
pub struct Common<'a> {
    /// The worker's files.
    pub files: FileTable,
    /// Parts that only the full loop uses.
    pub extras: Box<Extras<'a>>,
    /// Why and how the loop ends.
    pub end: Ending,
    /// This is the full loop.
    is_full: bool,
    flight: Flight<'a>,
    time: Timing,
    rules: IssueRules,
    errors: ErrorPolicy<'a>,
    control: &'a Control,
    stats: &'a LiveStats,
    clock: Clock,
    content: Option<Content>,
    script: Script,
    /// The I/O being issued is not part of the workload: it reads back or trims writes.
    beside: bool,
    /// Number of writes until the next write barrier (a write with nothing else in flight).
    barrier_countdown: u32,
}

/// Everything that [`IoLoop::new`] needs besides engine and generator.
pub struct Parts<'a> {
    /// How the job issues I/O.
    pub rules: IssueRules,
    /// How the job reacts to failed I/Os.
    pub errors: ErrorPolicy<'a>,
    /// The words shared with the controller.
    pub control: &'a Control,
    /// The worker's measurements.
    pub stats: &'a LiveStats,
    /// The job's clock.
    pub clock: Clock,
    /// Prepares buffers before writes; `None` = buffers need no preparation.
    pub content: Option<Content>,
    /// Parts that only the full loop uses.
    pub extras: Box<Extras<'a>>,
    /// Where the units are.
    pub(crate) table: Table<'a>,
    /// The worker's I/O priority; 0 = not set.
    pub priority: u16,
    /// The files.
    pub files: FileTable,
    /// Files are opened during the pass, too.
    pub opens_on_the_way: bool,
    /// The first buffer.
    pub buffers: *mut u8,
    /// Bytes from one buffer to the next.
    pub stride: usize,
    /// How many buffers are ready for use.
    pub ready: u32,
}

impl Parts<'_> {
    /// Whether the job needs anything that the plain loop does not have.
    pub fn needs_full_loop(&self) -> bool {
        self.rules.need_full_loop()
            || self.opens_on_the_way
            || self.files.needs_full_loop()
            || self.extras.any()
            // Only the full loop traces single I/Os.
            || tracing::enabled!(target: "io", tracing::Level::TRACE)
            || tracing::enabled!(target: "random", tracing::Level::TRACE)
    }
}

impl<'a, E: Engine, G: Generator, const FULL: bool> IoLoop<'a, E, G, FULL> {
    /// Assembles the loop. The job's clock starts with [`Common::start`].
    pub fn new(engine: E, generator: G, parts: Parts<'a>) -> Self {
        let common = Common {
            files: parts.files,
            extras: parts.extras,
            end: Ending::default(),
            is_full: FULL,
            flight: Flight::new(
                parts.table,
                parts.rules.depth,
                parts.ready,
                UnitBuffers::new(parts.buffers, parts.stride),
                parts.priority,
            ),
            time: Timing::default(),
            rules: parts.rules,
            errors: parts.errors,
            control: parts.control,
            stats: parts.stats,
            clock: parts.clock,
            content: parts.content,
            script: Script::default(),
            beside: false,
            barrier_countdown: parts.rules.write_barrier,
        };
        IoLoop { engine, generator, common }
    }

    /// Issues I/O until the pass is finished or something ends the job. Returns when nothing is in flight.
    pub fn pass(&mut self) -> PassEnd {
        self.common.flight.fresh_stamp = 0;
        if FULL {
            self.begin_script();
        }
        let end = if FULL && self.common.rules.works { self.work_all() } else { self.issue_all() };
        self.drain();
        end
    }

    fn issue_all(&mut self) -> PassEnd {
        loop {
            if self.common.control.attention() != 0 {
                self.attend();
            }
            if self.common.end.stopping {
                return PassEnd::Stopped;
            }
            let mut moment = 0;
            if FULL && (self.common.extras.pace.is_some() || self.common.extras.target.is_some()) {
                self.seek_depth();
                moment = self.keep_pace();
                if self.common.end.stopping {
                    return PassEnd::Stopped;
                }
            }
            if FULL && self.common.extras.verification.is_some() {
                self.read_back_some();
            }
            match self.next_step() {
                Next::Io(io) => {
                    if FULL {
                        self.common.end.was_busy = true;
                    }
                    // Syncs and waits come between two I/Os, so they happen only when the workload has another I/O.
                    if FULL && !self.await_turn(&io, moment) {
                        self.withdraw(&io);
                        return PassEnd::Stopped;
                    }
                    self.submit(io);
                }
                Next::Close(file) => {
                    if FULL {
                        self.close_file(file);
                    }
                }
                Next::Lap => {
                    self.common.files.refresh(&self.engine);
                    self.common.flight.fresh_stamp = 0;
                }
                Next::Done => {
                    if FULL && self.common.extras.syncs.end_pass() {
                        self.sync_what_is_due();
                    }
                    return PassEnd::Finished;
                }
                Next::Script(step) => {
                    if FULL {
                        self.follow(step);
                    }
                }
            }
            if !E::SYNCHRONOUS {
                if self.common.flight.count >= self.common.flight.limit {
                    self.make_room();
                } else if self.common.rules.complete_min == 0
                    && self.common.flight.pending.is_empty()
                    && self.common.flight.count > 0
                {
                    // Some engines may have completed units that are not committed yet and have no issue stamp. So reap
                    // only when no unit waits to be committed.
                    self.reap(0);
                }
            }
        }
    }

    /// Makes the unit for an I/O and issues it.
    #[inline(always)]
    fn submit(&mut self, io: Io) {
        let mut start = self.start_stamp();
        if self.common.end.stopping {
            self.withdraw(&io);
            return;
        }
        let mut ready = start;
        if FULL && !self.before(&io) {
            self.withdraw(&io);
            return;
        }
        if FULL && self.common.flight.table.free.is_empty() {
            self.await_unit();
            if self.common.flight.is_exhausted() {
                self.common.files.left(io.file);
                self.withdraw(&io);
                return;
            }
        }
        let index = match self.common.flight.table.free.pop() {
            Some(index) => index,
            None => {
                let (index, made) = self.common.another_unit(start);
                (start, ready) = (made, made);
                index
            }
        };
        let slot = index as usize;
        let unit = &mut self.common.flight.table.units[slot];
        let bytes = self.common.flight.buffers.of_io(index, &io);
        unit.buffer = bytes.cast();
        unit.length = io.length;
        unit.offset = io.offset;
        unit.file = io.file;
        unit.operation = io.direction.into();
        if FULL && let Some(priorities) = &mut self.common.extras.priorities {
            unit.priority = priorities.draw(io.direction, io.length);
        }
        if FULL && let Some(verification) = &mut self.common.extras.verification {
            // SAFETY: as below.
            verification.made(index, &io, unsafe { &mut *bytes });
            if E::PLACES && verification.compares(index) {
                self.engine.compares(index);
            }
            if !E::SYNCHRONOUS && io.direction == Direction::Write && self.common.rules.timed() {
                ready = self.common.clock.now();
            }
        }
        if io.direction == Direction::Write
            && let Some(content) = &mut self.common.content
        {
            // SAFETY: the bytes are within the buffer of this unit, which is not in flight.
            content.prepare_write(unsafe { &mut *bytes }, io.offset);
            let takes_time = content.refills() || (!E::SYNCHRONOUS && io.length > SOON_SCRAMBLED);
            if takes_time && self.common.rules.timed() {
                ready = self.common.clock.now();
                // New data is prepared before the I/O begins. As with fio, scrambling old data is part of the I/O.
                if content.refills() {
                    start = ready;
                }
            }
        }
        self.common.stats.directions[io.direction.index()].issued.add(1);
        if FULL && !self.common.beside {
            self.tell_ranges(index, &io);
            self.common.extras.syncs.issued(io.direction, io.length);
        }
        if FULL && io.direction == Direction::Write {
            self.common.extras.syncs.wrote(io.file, io.offset, io.length);
        }
        if FULL && !self.common.is_check(index) {
            if let Some(pace) = &mut self.common.extras.pace {
                let moment = pace.issued(io.direction, io.length);
                if let Some(intended) = &mut self.common.extras.intended {
                    intended.set(index, moment);
                }
            }
            if let Some(flow) = &self.common.extras.flow {
                flow.issued();
            }
        }
        if FULL {
            // I/O that reads back or trims is not part of the script, so the script has no time for it.
            if !self.common.beside {
                self.note_punctuality(Some(index));
            }
            self.record(io.direction.into(), io.file, io.offset, io.length);
        }
        self.issue(index, start, ready, 0);
        if FULL {
            self.after(&io);
        }
    }

    /// Returns the time at which a unit is made. Also checks whether the time is over.
    #[inline(always)]
    fn start_stamp(&mut self) -> u64 {
        if self.common.rules.timed() {
            let fresh = std::mem::take(&mut self.common.flight.fresh_stamp);
            let start = if !FULL && fresh != 0 && !self.generator.took_long() {
                fresh
            } else {
                self.common.clock.now()
            };
            if start >= self.common.time.next_event {
                self.event(start, true);
            }
            return start;
        }
        if self.common.time.until_clock == 0 {
            self.common.time.until_clock = CLOCK_INTERVAL;
            let now = self.common.clock.now();
            if now >= self.common.time.next_event {
                self.event(now, true);
            }
        }
        self.common.time.until_clock -= 1;
        0
    }

    /// Hands a unit to the engine. If the engine completes it at once, counts it at once. The unit was made at `start`;
    /// its data was ready at `ready`.
    #[inline(always)]
    fn issue(&mut self, index: u32, start: u64, ready: u64, marks: u8) {
        let slot = index as usize;
        if E::SYNCHRONOUS {
            let issue = if self.common.rules.timed() { self.common.clock.now() } else { 0 };
            // SAFETY: the unit's buffer is valid (see `submit`), its file open, and it is not in flight.
            let queued = unsafe { self.engine.queue(&self.common.flight.table.units[slot]) };
            let outcome = match queued {
                Queued::Completed(outcome) => outcome,
                other => match self.await_other_end(index, other, marks) {
                    Some(outcome) => outcome,
                    None => return,
                },
            };
            let now = if self.common.rules.timed() { self.common.clock.now() } else { 0 };
            self.common.stats.begin();
            self.common.stats.level[0].add(u64::from(marks & REST == 0));
            self.common.stats.submit[1].add(1);
            self.common.stats.complete[1].add(1);
            // Slower paths reset it to 0.
            self.common.flight.fresh_stamp = now;
            self.complete(index, outcome, Times { start, issue, complete: now, queued: false });
            self.common.stats.end();
            if !self.common.flight.partial.is_empty() {
                self.issue_partial();
            }
            return;
        }
        let times_sending = E::REQUESTS && self.common.rules.times_sending;
        let ready = if times_sending && self.common.rules.timed() { self.common.clock.now() } else { ready };
        loop {
            // SAFETY: as above.
            match unsafe { self.engine.queue(&self.common.flight.table.units[slot]) } {
                Queued::Queued => {
                    self.common.flight.table.stamps[slot] = Stamps { start, issue: ready, marks };
                    self.common.flight.count += 1;
                    self.common.flight.pending.push(index);
                    self.common.flight.rests += u32::from(marks & REST != 0);
                    if self.common.flight.pending.len() as u32 >= self.common.rules.batch
                        || self.common.flight.count >= self.common.flight.limit
                    {
                        self.commit();
                    }
                    return;
                }
                Queued::Completed(outcome) => {
                    let now = if self.common.rules.timed() { self.common.clock.now() } else { 0 };
                    self.common.stats.begin();
                    self.common.stats.level[depth_class(self.common.flight.count + 1)]
                        .add(u64::from(marks & REST == 0));
                    if E::CALLS {
                        self.common.stats.submit[1].add(1);
                        self.common.stats.complete[1].add(1);
                    }
                    // Slower paths reset it to 0.
                    self.common.flight.fresh_stamp = now;
                    self.complete(
                        index,
                        outcome,
                        Times { start, issue: ready, complete: now, queued: false },
                    );
                    self.common.stats.end();
                    if !self.common.flight.partial.is_empty() {
                        self.issue_partial();
                    }
                    return;
                }
                Queued::Over => {
                    self.common.other_end_is_done(index);
                    self.take_back(index, marks);
                    return;
                }
                Queued::Busy => {
                    // The stamp of the unit's last I/O must not be taken for its own.
                    self.common.flight.table.stamps[slot].issue = 0;
                    self.commit();
                    if self.common.flight.count > 0 {
                        self.reap(1);
                    } else if self.waits_in_vain(index, marks) {
                        return;
                    }
                    if self.common.end.failure.is_some() {
                        self.drop_unit(index);
                        return;
                    }
                }
            }
        }
    }

    /// Commits all queued units.
    #[inline(always)]
    fn commit(&mut self) {
        let count = self.common.flight.pending.len() as u32;
        if count == 0 {
            return;
        }
        if FULL {
            tracing::trace!(target: "io", "commit: {count}, {} in flight", self.common.flight.count);
        }
        if let Err(errno) = self.engine.commit() {
            self.common.fail(Failure { errno, attempt: None, missed: None });
        }
        let issue = if self.common.rules.timed() { self.common.clock.now() } else { 0 };
        self.common.stats.begin();
        let rests = std::mem::take(&mut self.common.flight.rests);
        self.common.stats.level[depth_class(self.common.flight.count)].add(u64::from(count - rests));
        self.common.stats.submit[batch_class(count)].add(1);
        for &index in &self.common.flight.pending {
            let stamps = &mut self.common.flight.table.stamps[index as usize];
            if !(E::REQUESTS && self.common.rules.times_sending) {
                stamps.issue = issue;
            }
            let start = stamps.start;
            if self.common.rules.slat && !E::STAMPS && stamps.marks == 0 {
                self.common.record_submission(index, start, issue);
            }
        }
        self.common.stats.end();
        if FULL && self.common.extras.stages.is_some() {
            self.note_places();
        }
        self.common.flight.pending.clear();
        self.common.flight.fresh_stamp = if count <= FRESH_BATCH { issue } else { 0 };
    }

    /// Makes room for another unit: reaps as the job's completion rules say.
    #[inline(always)]
    fn make_room(&mut self) {
        self.commit();
        let mut stamp = self.common.flight.fresh_stamp;
        loop {
            self.reap_after(std::mem::take(&mut stamp), self.common.rules.complete_min);
            if self.common.flight.count <= self.common.rules.low.min(self.common.flight.limit - 1)
                || self.common.end.failure.is_some()
            {
                break;
            }
            if self.common.control.attention() != 0 {
                self.attend();
            }
        }
    }

    /// Reaps completions: at least `min` (0 = do not wait), at most as many as the job's rules allow.
    #[inline(always)]
    fn reap(&mut self, min: u32) {
        self.reap_after(0, min);
    }

    /// The same, after a commit with this stamp; 0 = there was none just before.
    #[inline(always)]
    fn reap_after(&mut self, stamp: u64, min: u32) {
        let min = min.min(self.common.flight.count);
        let max = self.common.rules.complete_max.max(min);
        self.reap_between(min, max, stamp);
    }

    /// The same, at least and at most so many.
    #[inline(always)]
    fn reap_between(&mut self, min: u32, max: u32, stamp: u64) {
        self.common.flight.fresh_stamp = 0;
        let timeout = if FULL { self.common.patience() } else { None };
        if let Err(errno) =
            self.engine.reap(min as usize, max as usize, timeout, &mut self.common.flight.done)
        {
            self.common.fail(Failure { errno, attempt: None, missed: None });
        }
        if !self.common.flight.done.is_empty() {
            self.count_done(if E::COMPLETES_IN_COMMIT && !FULL { stamp } else { 0 });
        } else if min > 0 {
            self.nothing_came();
        }
        if FULL {
            self.look_for_overdue();
        }
    }

    /// Reaps completions for at most this time; 0 = do not wait.
    fn reap_within(&mut self, time: std::time::Duration) {
        let min = usize::from(!time.is_zero());
        let max = (self.common.flight.count + self.common.flight.given_up) as usize;
        if let Err(errno) = self.engine.reap(min, max, Some(time), &mut self.common.flight.done) {
            self.common.fail(Failure { errno, attempt: None, missed: None });
        }
        if !self.common.flight.done.is_empty() {
            self.count_done(0);
        }
        if FULL {
            self.look_for_overdue();
        }
    }

    /// Counts the completions of a reap, which happened at `fresh`; 0 = now.
    #[inline(always)]
    fn count_done(&mut self, fresh: u64) {
        let count = self.common.flight.done.len() as u32;
        let now = match &self.common.flight.done[..] {
            _ if !self.common.rules.timed() => 0,
            // A unit that was issued just then took longer than nothing.
            [only] if fresh != 0 && self.common.flight.table.stamps[only.unit as usize].issue != fresh => {
                fresh
            }
            _ => self.common.clock.now(),
        };
        // (Those that come back after they were given up are not counted, so this may go below 0 for a moment.)
        self.common.flight.count = self.common.flight.count.wrapping_sub(count);
        let done = std::mem::take(&mut self.common.flight.done);
        // Slower paths, such as that of a short I/O, reset it to 0.
        self.common.flight.fresh_stamp = if count <= FRESH_BATCH { now } else { 0 };
        self.common.stats.begin();
        self.common.stats.complete[batch_class(count)].add(1);
        for completion in &done {
            let stamps = self.common.flight.table.stamps[completion.unit as usize];
            if stamps.marks & (UNCOUNTED | GIVEN_UP) != 0 && self.finish_uncounted(completion) {
                continue;
            }
            let mut times = Times { start: stamps.start, issue: stamps.issue, complete: now, queued: true };
            if E::STAMPS && self.common.rules.timed() {
                (times.issue, times.complete) = self.engine.times(completion.unit);
                if self.common.rules.slat && stamps.marks == 0 {
                    self.common.record_submission(completion.unit, times.start, times.issue);
                }
            }
            self.complete(completion.unit, completion.outcome, times);
        }
        self.common.stats.end();
        self.common.flight.done = done;
        self.common.flight.done.clear();
        if !self.common.flight.partial.is_empty() {
            self.issue_partial();
        }
    }

    /// Counts a completed unit and frees it.
    #[inline(always)]
    fn complete(&mut self, index: u32, outcome: Outcome, times: Times) {
        let Times { start, issue, complete: now, .. } = times;
        let unit = &self.common.flight.table.units[index as usize];
        let Some(direction) = unit.operation.direction() else {
            self.complete_sync(index, outcome, issue, now);
            return;
        };
        let counters = &self.common.stats.directions[direction.index()];
        if outcome != Ok(unit.length) {
            self.complete_unusually(index, outcome, times);
            return;
        }
        counters.ios.add(1);
        counters.bytes.add(unit.length);
        if self.common.rules.clat {
            let latency = now.saturating_sub(issue);
            counters.clat.record(latency);
            if self.common.rules.clat_buckets {
                counters.clat.record_bucket(latency);
            }
        }
        if self.common.rules.lat {
            let latency = now.saturating_sub(start);
            counters.lat.record(latency);
            if self.common.rules.lat_buckets {
                counters.lat.record_bucket(latency);
            }
        }
        if E::REQUESTS
            && self.common.rules.first_bytes
            && let Some(time) = self.engine.first_byte(index)
        {
            counters.first_byte.record(time);
            counters.first_byte.record_bucket(time);
            if let Some(time) = self.engine.visible(index) {
                counters.visible.record(time);
                counters.visible.record_bucket(time);
            }
        }
        if FULL {
            self.land(index);
            self.learn(index, Fate::Done);
        }
        if FULL && self.completed(index, direction, times) {
            // It is no longer in flight.
            self.common.flight.table.stamps[index as usize].issue = 0;
            return;
        }
        self.release(index);
    }

    /// Frees a unit for another I/O.
    #[inline(always)]
    fn release(&mut self, index: u32) {
        if FULL {
            let unit = &mut self.common.flight.table.units[index as usize];
            unit.length = 0;
            self.common.files.left(unit.file);
            if let Some(verification) = &mut self.common.extras.verification
                && let Some(turns) = &mut verification.turns
            {
                turns.left(index);
            }
        }
        self.common.flight.table.free.push(index);
    }

    /// Waits until nothing is in flight.
    fn drain(&mut self) {
        self.commit();
        while self.common.flight.count > 0 {
            if E::REQUESTS && self.common.control.terminating() {
                self.engine.stop_repeating();
            }
            let before = self.common.flight.count;
            let failed_before = self.common.end.failure.is_some();
            self.reap_between(1, self.common.flight.count, 0);
            self.commit();
            if self.common.flight.count == before && failed_before && !self.common.rules.limits_time() {
                // The engine cannot report on the units that are left.
                break;
            }
        }
        if FULL && self.common.extras.verification.is_some() {
            self.collect_all();
        }
    }
}

impl Common<'_> {
    /// Starts the job's clock.
    pub fn start(&mut self) {
        let now = self.clock.now();
        self.control.started_ns.store(now, Relaxed);
        self.control.counting_ns.store(now, Relaxed);
        // The first span begins with the job's schedule, not when the worker reaches the first pass.
        self.stats.begin_span(self.rules.moves, now);
        self.time.ramping = self.rules.ramp_ns > 0 || self.extras.sized_ramp.is_some();
        let span = if self.time.ramping { self.rules.ramp_ns } else { self.rules.runtime_ns };
        self.time.next_event = now.saturating_add(span);
        self.time.ramp_until = self.time.next_event;
        self.files.begin_recording(now);
        if let Some(pace) = &mut self.extras.pace {
            pace.start(now);
        }
        if let Some(flow) = &mut self.extras.flow {
            flow.start();
        }
        if let Some(log) = &mut self.extras.log {
            log.begin(now);
        }
        if let Some(target) = &mut self.extras.target {
            self.flight.limit = target.start(now);
            self.control.found_depth.store(self.flight.limit, Relaxed);
        }
        self.control.set_phase(self.phase());
    }

    /// Whether the job starts no more passes.
    pub fn is_over(&self) -> bool {
        self.end.stopping || self.end.failure.is_some()
    }

    /// Records the submission latency of a unit.
    #[inline(always)]
    fn record_submission(&self, index: u32, start: u64, issue: u64) {
        if let Some(direction) = self.flight.table.units[index as usize].operation.direction() {
            let latency = issue.saturating_sub(start);
            let slat = &self.stats.directions[direction.index()].slat;
            slat.record(latency);
            if self.rules.slat_buckets {
                slat.record_bucket(latency);
            }
        }
    }

    /// Publishes the thread's resource usage and its counts of errors at the end.
    pub fn finish(&mut self) {
        let now = self.clock.now();
        // An error may have cut a span short. End it now.
        self.stats.end_span([true; 3], now);
        self.control.ended_ns.store(now, Relaxed);
        usage::publish(self.control);
        self.count_tolerated();
    }
}
