//! The I/O loop: the one place where workload, content, engine and statistics meet.
//!
//! It is generic over the engine and the generator, and over whether anything beyond the plain loop is needed
//! (`FULL`): syncs between I/Os, overlap checks, locks, files opened on the way. A plain job pays for none of that.
//! In steady state it allocates nothing, takes no lock, formats nothing, and makes no system call of its own.
//!
//! A unit has three time stamps: *start* (it was made), *issue* (it was handed to the system: just before the call of
//! a synchronous engine, after queue and commit of one that queues) and *complete* (it was reaped). Units of one
//! commit share their issue stamp, units of one reap their completion stamp.

mod blocks;
mod buffers;
mod errors;
mod extras;
mod failure;
mod full;
mod intended;
mod rare;
mod script;
mod spans;
mod verify;

pub use blocks::BlockLives;
use buffers::UnitBuffers;
pub use errors::ErrorPolicy;
pub use extras::Extras;
pub use failure::{Attempt, Failure, Missed};
pub use intended::IntendedStarts;
use script::Script;

use super::files::FileTable;
use crate::clock::Clock;
use crate::shared::Control;
use iolite_content::Content;
use iolite_engine::{Completion, Engine, Outcome, Queued, Unit};
use iolite_plan::resolve::IssueRules;
use iolite_stats::live::LiveStats;
use iolite_stats::{batch_class, depth_class};
use iolite_types::{Direction, Operation};
use iolite_workload::{Generator, Io, Next};
use std::sync::atomic::Ordering::Relaxed;

/// Without time stamps in the loop, the clock is read once in so many I/Os, to see whether the time is over.
const CLOCK_INTERVAL: u32 = 16;

/// Counting so many units takes no longer than reading the clock: the stamp of their commit or reaping is still fresh.
const FRESH_BATCH: u32 = 2;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// The workload has no more I/O for this pass.
    Finished,
    /// Told to stop, out of time, full, or failed.
    Stopped,
}

/// When a unit was made and issued, in nanoseconds of the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    start: u64,
    issue: u64,
    /// Why not everything about it is counted: [`UNCOUNTED`], [`REST`]; 0 = it is.
    marks: u8,
}

/// Up to so many bytes, changing the old data of a buffer takes no longer than reading the clock.
const SOON_SCRAMBLED: u64 = 16 << 10;

/// It was in flight when the ramp ended: it belongs to the ramp.
const UNCOUNTED: u8 = 1;
/// It is the rest of a short I/O, whose submission was counted with its first part.
const REST: u8 = 2;

/// When a unit that is done was made, issued and reaped, in nanoseconds of the clock; zeros when no time is read.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// It was made.
    start: u64,
    /// It was issued.
    issue: u64,
    /// It was reaped.
    complete: u64,
    /// It waited in a queue, and was not done at once.
    queued: bool,
}

/// The loop and everything it works with.
pub struct IoLoop<'a, E: Engine, G: Generator, const FULL: bool> {
    /// The engine.
    pub engine: E,
    /// The workload.
    pub generator: G,
    /// The worker's files.
    pub files: FileTable,
    /// What ended the job, if something did.
    pub failure: Option<Failure>,
    /// Why, in words, where the failure does not say it.
    pub trouble: Option<String>,
    rules: IssueRules,
    errors: ErrorPolicy<'a>,
    control: &'a Control,
    stats: &'a LiveStats,
    clock: Clock,
    content: Option<Content>,
    /// What only a full loop uses.
    pub extras: Box<Extras<'a>>,
    /// The first block that was wrong, where that ends the job only with its pass.
    wrong: Option<Attempt>,
    script: Script,
    /// Most units in flight at present.
    limit: u32,
    units: Vec<Unit>,
    stamps: Vec<Stamps>,
    buffers: UnitBuffers,
    free: Vec<u32>,
    /// Queued, not committed yet.
    pending: Vec<u32>,
    done: Vec<Completion>,
    /// Units whose rest has to be issued.
    partial: Vec<u32>,
    /// Rests of short I/Os among those that wait to be committed.
    rests: u32,
    in_flight: u32,
    stopping: bool,
    /// It stops because the time is over.
    timed_out: bool,
    /// It stops because there is no more room.
    device_full: bool,
    /// The time at which something has to be decided: the end of the ramp, or of the job.
    next_event: u64,
    /// The next event, while the end of the time is not looked at.
    put_off: Option<u64>,
    /// When the ramp is over as far as time goes.
    ramp_until: u64,
    ramping: bool,
    /// What is issued at present is not the workload's: it reads back, or trims.
    beside: bool,
    until_clock: u32,
    barrier_countdown: u32,
    /// The stamp of the last commit, of the last completion of a synchronous engine, or of the last reaping of a unit or
    /// two, while nothing but the plain loop's own few steps has come after it: then it is also the moment at which the
    /// next unit is made. 0 = there is none.
    fresh_stamp: u64,
}

/// What [`IoLoop::new`] needs beside engine and generator.
pub struct Parts<'a> {
    /// The numbers.
    pub rules: IssueRules,
    /// What is done about failed I/Os.
    pub errors: ErrorPolicy<'a>,
    /// Between controller and worker.
    pub control: &'a Control,
    /// Where the measurements go.
    pub stats: &'a LiveStats,
    /// The job's clock.
    pub clock: Clock,
    /// Prepares buffers before writes; `None` when nothing has to be done then.
    pub content: Option<Content>,
    /// What only a full loop uses.
    pub extras: Box<Extras<'a>>,
    /// The I/O priority of the worker; 0 = none was given.
    pub priority: u16,
    /// The files.
    pub files: FileTable,
    /// Not all files are open from the start.
    pub opens_on_the_way: bool,
    /// The first buffer.
    pub buffers: *mut u8,
    /// Bytes from one buffer to the next.
    pub stride: usize,
}

impl Parts<'_> {
    /// Whether anything is asked for that the plain loop leaves out.
    pub fn needs_full_loop(&self) -> bool {
        self.rules.serialize_overlap
            || self.rules.write_barrier > 0
            || self.rules.limits_latency()
            || self.opens_on_the_way
            || self.files.needs_full_loop()
            || self.extras.any()
            // Only a full loop tells about single I/Os.
            || tracing::enabled!(target: "io", tracing::Level::TRACE)
            || tracing::enabled!(target: "random", tracing::Level::TRACE)
    }
}

impl<'a, E: Engine, G: Generator, const FULL: bool> IoLoop<'a, E, G, FULL> {
    /// Puts the loop together. The clock starts with [`IoLoop::start`].
    pub fn new(engine: E, generator: G, parts: Parts<'a>) -> Self {
        let depth = parts.rules.depth as usize;
        let buffers = UnitBuffers::new(parts.buffers, parts.stride);
        let units = (0..parts.rules.depth)
            .map(|index| Unit {
                buffer: buffers.start_of(index),
                length: 0,
                offset: 0,
                index,
                file: 0,
                operation: Operation::Read,
                priority: parts.priority,
            })
            .collect();
        IoLoop {
            engine,
            generator,
            files: parts.files,
            failure: None,
            trouble: None,
            script: Script::default(),
            rules: parts.rules,
            errors: parts.errors,
            control: parts.control,
            stats: parts.stats,
            clock: parts.clock,
            content: parts.content,
            extras: parts.extras,
            wrong: None,
            limit: parts.rules.depth,
            units,
            stamps: vec![Stamps::default(); depth],
            buffers,
            free: (0..depth as u32).rev().collect(),
            pending: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            partial: Vec::with_capacity(depth),
            rests: 0,
            in_flight: 0,
            stopping: false,
            timed_out: false,
            device_full: false,
            next_event: u64::MAX,
            put_off: None,
            ramp_until: 0,
            ramping: false,
            beside: false,
            until_clock: 0,
            barrier_countdown: parts.rules.write_barrier,
            fresh_stamp: 0,
        }
    }

    /// The job begins now.
    pub fn start(&mut self) {
        let now = self.clock.now();
        self.control.started_ns.store(now, Relaxed);
        self.control.counting_ns.store(now, Relaxed);
        // The first pass begins with the schedule, not when the worker comes to it.
        self.stats.begin_span(self.rules.moves, now);
        self.ramping = self.rules.ramp_ns > 0 || self.extras.sized_ramp.is_some();
        let span = if self.ramping { self.rules.ramp_ns } else { self.rules.runtime_ns };
        self.next_event = now.saturating_add(span);
        self.ramp_until = self.next_event;
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
            self.limit = target.start(now);
            self.control.found_depth.store(self.limit, Relaxed);
        }
        self.control.set_phase(self.phase());
    }

    /// Whether no further pass should begin.
    pub fn is_over(&self) -> bool {
        self.stopping || self.failure.is_some()
    }

    /// Issues I/O until the workload has no more, or something ends the job. Nothing is in flight afterwards.
    pub fn pass(&mut self) -> PassEnd {
        self.fresh_stamp = 0;
        if FULL {
            self.begin_script();
        }
        let end = self.issue_all();
        self.drain();
        end
    }

    fn issue_all(&mut self) -> PassEnd {
        loop {
            if self.control.attention() != 0 {
                self.attend();
            }
            if self.stopping {
                return PassEnd::Stopped;
            }
            let mut moment = 0;
            if FULL && (self.extras.pace.is_some() || self.extras.target.is_some()) {
                self.seek_depth();
                moment = self.keep_pace();
                if self.stopping {
                    return PassEnd::Stopped;
                }
            }
            if FULL && self.extras.verification.is_some() {
                self.read_back_some();
            }
            match self.generator.next() {
                Next::Io(io) => {
                    // A sync comes between two I/Os, and nobody waits for the turn of an I/O that there is not:
                    // neither is after the last.
                    if FULL && !self.await_turn(moment) {
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
                    self.files.refresh(&self.engine);
                    self.fresh_stamp = 0;
                }
                Next::Done => return PassEnd::Finished,
                Next::Script(step) => {
                    if FULL {
                        self.follow(step);
                    }
                }
            }
            if !E::SYNCHRONOUS {
                if self.in_flight >= self.limit {
                    self.make_room();
                } else if self.rules.complete_min == 0 && self.pending.is_empty() && self.in_flight > 0 {
                    // What waits to be committed may be complete already with some engines, and has no stamp yet.
                    self.reap(0);
                }
            }
        }
    }

    /// Makes and issues the unit for an I/O.
    #[inline(always)]
    fn submit(&mut self, io: Io) {
        let mut start = self.start_stamp();
        if self.stopping {
            return;
        }
        let mut ready = start;
        if FULL && !self.before(&io) {
            return;
        }
        if FULL && self.free.is_empty() {
            self.await_unit();
        }
        let Some(index) = self.free.pop() else {
            // The loop makes room before it comes here.
            unreachable!("a unit is always free");
        };
        let slot = index as usize;
        let unit = &mut self.units[slot];
        let bytes = self.buffers.of_io(index, &io);
        unit.buffer = bytes.cast();
        unit.length = io.length;
        unit.offset = io.offset;
        unit.file = io.file;
        unit.operation = io.direction.into();
        if FULL && let Some(priorities) = &mut self.extras.priorities {
            unit.priority = priorities.draw(io.direction, io.length);
        }
        if FULL && let Some(verification) = &mut self.extras.verification {
            // SAFETY: as below.
            verification.made(index, &io, unsafe { &mut *bytes });
            if !E::SYNCHRONOUS && io.direction == Direction::Write && self.rules.timed() {
                ready = self.clock.now();
            }
        }
        if io.direction == Direction::Write
            && let Some(content) = &mut self.content
        {
            // SAFETY: the bytes are within the buffer of this unit, which is not in flight.
            content.prepare_write(unsafe { &mut *bytes }, io.offset);
            let takes_time = content.refills() || (!E::SYNCHRONOUS && io.length > SOON_SCRAMBLED);
            if takes_time && self.rules.timed() {
                ready = self.clock.now();
                // New data is made before the I/O begins. (As with fio: what is changed in old data belongs to it.)
                if content.refills() {
                    start = ready;
                }
            }
        }
        self.stats.directions[io.direction.index()].issued.add(1);
        if FULL && io.direction == Direction::Write {
            self.extras.syncs.wrote(io.file, io.offset, io.length);
        }
        if FULL && !self.is_check(index) {
            if let Some(pace) = &mut self.extras.pace {
                let moment = pace.issued(io.direction, io.length);
                if let Some(intended) = &mut self.extras.intended {
                    intended.set(index, moment);
                }
            }
            if let Some(flow) = &self.extras.flow {
                flow.issued();
            }
        }
        if FULL {
            // What is read back or trimmed beside the script has no moment in it.
            if !self.beside {
                self.note_punctuality(Some(index));
            }
            self.record(io.direction.into(), io.file, io.offset, io.length);
        }
        self.issue(index, start, ready, 0);
        if FULL {
            self.after(&io);
        }
    }

    /// The moment at which a unit is made; decides on the way whether the time is over.
    #[inline(always)]
    fn start_stamp(&mut self) -> u64 {
        if self.rules.timed() {
            let fresh = std::mem::take(&mut self.fresh_stamp);
            let start =
                if !FULL && fresh != 0 && !self.generator.took_long() { fresh } else { self.clock.now() };
            if start >= self.next_event {
                self.event(start, true);
            }
            return start;
        }
        if self.until_clock == 0 {
            self.until_clock = CLOCK_INTERVAL;
            let now = self.clock.now();
            if now >= self.next_event {
                self.event(now, true);
            }
        }
        self.until_clock -= 1;
        0
    }

    /// Hands a unit to the engine, and counts it at once when the engine completes it at once. It was begun at `start`, and
    /// its data was `ready` a little later.
    #[inline(always)]
    fn issue(&mut self, index: u32, start: u64, ready: u64, marks: u8) {
        let slot = index as usize;
        if E::SYNCHRONOUS {
            let issue = if self.rules.timed() { self.clock.now() } else { 0 };
            // SAFETY: the unit's buffer is valid (see `submit`), its file open, and it is not in flight.
            let queued = unsafe { self.engine.queue(&self.units[slot]) };
            let Queued::Completed(outcome) = queued else {
                unreachable!("a synchronous engine completes at once");
            };
            let now = if self.rules.timed() { self.clock.now() } else { 0 };
            self.stats.begin();
            self.stats.level[0].add(u64::from(marks & REST == 0));
            self.stats.submit[1].add(1);
            self.stats.complete[1].add(1);
            // What is unusual takes it back.
            self.fresh_stamp = now;
            self.complete(index, outcome, Times { start, issue, complete: now, queued: false });
            self.stats.end();
            if !self.partial.is_empty() {
                self.issue_partial();
            }
            return;
        }
        loop {
            // SAFETY: as above.
            match unsafe { self.engine.queue(&self.units[slot]) } {
                Queued::Queued => {
                    self.stamps[slot] = Stamps { start, issue: 0, marks };
                    self.in_flight += 1;
                    self.pending.push(index);
                    self.rests += u32::from(marks & REST != 0);
                    if self.pending.len() as u32 >= self.rules.batch || self.in_flight >= self.limit {
                        self.commit();
                    }
                    return;
                }
                Queued::Completed(outcome) => {
                    let now = if self.rules.timed() { self.clock.now() } else { 0 };
                    self.stats.begin();
                    self.stats.level[depth_class(self.in_flight + 1)].add(u64::from(marks & REST == 0));
                    if E::CALLS {
                        self.stats.submit[1].add(1);
                        self.stats.complete[1].add(1);
                    }
                    // What is unusual takes it back.
                    self.fresh_stamp = now;
                    self.complete(
                        index,
                        outcome,
                        Times { start, issue: ready, complete: now, queued: false },
                    );
                    self.stats.end();
                    if !self.partial.is_empty() {
                        self.issue_partial();
                    }
                    return;
                }
                Queued::Busy => {
                    self.commit();
                    if self.in_flight > 0 {
                        self.reap(1);
                    }
                    if self.failure.is_some() {
                        self.drop_unit(index);
                        return;
                    }
                }
            }
        }
    }

    /// Hands everything pending to the system.
    #[inline(always)]
    fn commit(&mut self) {
        let count = self.pending.len() as u32;
        if count == 0 {
            return;
        }
        if FULL {
            tracing::trace!(target: "io", "commit: {count}, {} in flight", self.in_flight);
        }
        if let Err(errno) = self.engine.commit() {
            self.fail(Failure { errno, attempt: None, missed: None });
        }
        let issue = if self.rules.timed() { self.clock.now() } else { 0 };
        self.stats.begin();
        let rests = std::mem::take(&mut self.rests);
        self.stats.level[depth_class(self.in_flight)].add(u64::from(count - rests));
        self.stats.submit[batch_class(count)].add(1);
        for &index in &self.pending {
            let stamps = &mut self.stamps[index as usize];
            stamps.issue = issue;
            let start = stamps.start;
            if self.rules.slat && !E::STAMPS && stamps.marks == 0 {
                self.record_submission(index, start, issue);
            }
        }
        self.stats.end();
        self.pending.clear();
        self.fresh_stamp = if count <= FRESH_BATCH { issue } else { 0 };
    }

    /// Counts the submission latency of a unit.
    #[inline(always)]
    fn record_submission(&self, index: u32, start: u64, issue: u64) {
        if let Some(direction) = self.units[index as usize].operation.direction() {
            let latency = issue.saturating_sub(start);
            let slat = &self.stats.directions[direction.index()].slat;
            slat.record(latency);
            if self.rules.slat_buckets {
                slat.record_bucket(latency);
            }
        }
    }

    /// There is no room: waits as the rules for completion say.
    #[inline(always)]
    fn make_room(&mut self) {
        self.commit();
        loop {
            self.reap(self.rules.complete_min);
            if self.in_flight <= self.rules.low.min(self.limit - 1) || self.failure.is_some() {
                break;
            }
            if self.control.attention() != 0 {
                self.attend();
            }
        }
    }

    /// Fetches completions: at least `min` (0 = those that are there), at most what the rules say.
    #[inline(always)]
    fn reap(&mut self, min: u32) {
        let min = min.min(self.in_flight);
        let max = self.rules.complete_max.max(min);
        self.reap_between(min, max);
    }

    #[inline(always)]
    fn reap_between(&mut self, min: u32, max: u32) {
        self.fresh_stamp = 0;
        if let Err(errno) = self.engine.reap(min as usize, max as usize, None, &mut self.done) {
            self.fail(Failure { errno, attempt: None, missed: None });
        }
        if !self.done.is_empty() {
            self.count_done();
        }
    }

    /// Fetches what completes within this time; 0 = what is there.
    fn reap_within(&mut self, time: std::time::Duration) {
        let min = usize::from(!time.is_zero());
        let max = self.in_flight as usize;
        if let Err(errno) = self.engine.reap(min, max, Some(time), &mut self.done) {
            self.fail(Failure { errno, attempt: None, missed: None });
        }
        if !self.done.is_empty() {
            self.count_done();
        }
    }

    /// Counts the completions that were fetched.
    #[inline(always)]
    fn count_done(&mut self) {
        let count = self.done.len() as u32;
        let now = if self.rules.timed() { self.clock.now() } else { 0 };
        self.in_flight -= count;
        let done = std::mem::take(&mut self.done);
        // What is unusual takes it back.
        self.fresh_stamp = if count <= FRESH_BATCH { now } else { 0 };
        self.stats.begin();
        self.stats.complete[batch_class(count)].add(1);
        for completion in &done {
            let stamps = self.stamps[completion.unit as usize];
            if stamps.marks & UNCOUNTED != 0 && self.finish_uncounted(completion) {
                continue;
            }
            let mut times = Times { start: stamps.start, issue: stamps.issue, complete: now, queued: true };
            if E::STAMPS && self.rules.timed() {
                (times.issue, times.complete) = self.engine.times(completion.unit);
                if self.rules.slat && stamps.marks == 0 {
                    self.record_submission(completion.unit, times.start, times.issue);
                }
            }
            self.complete(completion.unit, completion.outcome, times);
        }
        self.stats.end();
        self.done = done;
        self.done.clear();
        if !self.partial.is_empty() {
            self.issue_partial();
        }
    }

    /// Counts a unit that is done, and frees it.
    #[inline(always)]
    fn complete(&mut self, index: u32, outcome: Outcome, times: Times) {
        let Times { start, issue, complete: now, .. } = times;
        let unit = &self.units[index as usize];
        let Some(direction) = unit.operation.direction() else {
            self.complete_sync(index, outcome, issue, now);
            return;
        };
        let counters = &self.stats.directions[direction.index()];
        if outcome != Ok(unit.length) {
            self.complete_unusually(index, outcome, times);
            return;
        }
        counters.ios.add(1);
        counters.bytes.add(unit.length);
        if self.rules.clat {
            let latency = now.saturating_sub(issue);
            counters.clat.record(latency);
            if self.rules.clat_buckets {
                counters.clat.record_bucket(latency);
            }
        }
        if self.rules.lat {
            let latency = now.saturating_sub(start);
            counters.lat.record(latency);
            if self.rules.lat_buckets {
                counters.lat.record_bucket(latency);
            }
        }
        if FULL && self.completed(index, direction, times) {
            return;
        }
        self.release(index);
    }

    /// The unit is free for another I/O.
    #[inline(always)]
    fn release(&mut self, index: u32) {
        if FULL {
            let unit = &mut self.units[index as usize];
            unit.length = 0;
            self.files.left(unit.file);
            if let Some(verification) = &mut self.extras.verification
                && let Some(turns) = &mut verification.turns
            {
                turns.left(index);
            }
        }
        self.free.push(index);
    }

    /// Waits for everything in flight.
    fn drain(&mut self) {
        self.commit();
        while self.in_flight > 0 {
            let before = self.in_flight;
            let failed_before = self.failure.is_some();
            self.reap_between(1, self.in_flight);
            self.commit();
            if self.in_flight == before && failed_before {
                // The engine cannot even say what became of the rest.
                break;
            }
        }
        if FULL && self.extras.verification.is_some() {
            self.collect_all();
        }
    }

    /// The thread's resources, once more, at the end.
    pub fn finish(&self) {
        let now = self.clock.now();
        // A span that was cut short by an error is over as well.
        self.stats.end_span([true; 3], now);
        self.control.ended_ns.store(now, Relaxed);
        super::publish_usage(self.control);
    }
}
