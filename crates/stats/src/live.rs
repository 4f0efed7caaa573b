//! Measurements in shared memory: words that one worker writes and other processes read.
//!
//! A worker is the only writer of its block, and stores with relaxed ordering; readers only load, so nothing that a
//! reader does can stall a worker. A word is never torn. Values wider than a word (the sum of squares), and values
//! that belong together, are protected by a generation counter that is odd while they change: a reader that finds it
//! odd or changed reads again, a limited number of times.
//!
//! Memory of all zeros is a valid, empty block, so a fresh anonymous mapping needs no initialisation. Pages of
//! histograms without values are never touched: readers check a count before they read buckets.

mod blocks;
mod priorities;

pub use blocks::LiveBlocks;
pub use priorities::{LivePriorities, MOST_PRIORITIES};

use crate::distribution::{BATCH_CLASSES, DEPTH_CLASSES, Depths};
use crate::histogram::{BUCKETS, Histogram, bucket_of};
use crate::latency::Latency;
use crate::moments::Moments;
use crate::report::CheckedBlocks;
use crate::snapshot::{Counters, Failures};
use iolite_types::Direction;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, fence};

/// A word that one worker writes and others read.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// The value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Sets the value. Only the block's worker may call this.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// Adds to the value. Only the block's worker may call this: it is a load and a store, not an atomic addition.
    #[inline(always)]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }
}

/// [`Moments`] in shared memory.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LiveMoments {
    count: Word,
    /// `!minimum`, so that zeroed memory means "no values".
    inverted_min: Word,
    max: Word,
    sum: Word,
    squares_low: Word,
    squares_high: Word,
}

impl LiveMoments {
    /// Adds one value. The sum is a 64-bit word, which suffices for 584 years of latency.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        self.count.add(1);
        let inverted = !value;
        if inverted > self.inverted_min.get() {
            self.inverted_min.set(inverted);
        }
        if value > self.max.get() {
            self.max.set(value);
        }
        self.sum.add(value);
        let square = u128::from(value) * u128::from(value);
        let (low, carry) = self.squares_low.get().overflowing_add(square as u64);
        self.squares_low.set(low);
        let high = (square >> 64) as u64 + u64::from(carry);
        if high != 0 {
            self.squares_high.add(high);
        }
    }

    /// Removes a recorded value; the extremes keep it.
    fn forget(&self, value: u64) {
        self.count.set(self.count.get().saturating_sub(1));
        self.sum.set(self.sum.get().saturating_sub(value));
        let squares = u128::from(self.squares_high.get()) << 64 | u128::from(self.squares_low.get());
        let squares = squares.saturating_sub(u128::from(value) * u128::from(value));
        self.squares_low.set(squares as u64);
        self.squares_high.set((squares >> 64) as u64);
    }

    /// How many values were recorded.
    #[inline(always)]
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    fn read(&self) -> Moments {
        Moments {
            count: self.count.get(),
            min: !self.inverted_min.get(),
            max: self.max.get(),
            sum: u128::from(self.sum.get()),
            sum_squares: u128::from(self.squares_high.get()) << 64 | u128::from(self.squares_low.get()),
        }
    }

    fn reset(&self) {
        for word in
            [&self.count, &self.inverted_min, &self.max, &self.sum, &self.squares_low, &self.squares_high]
        {
            word.set(0);
        }
    }
}

/// A latency in shared memory: moments, and a histogram if one is kept.
#[derive(Debug)]
#[repr(C)]
pub struct LiveLatency {
    moments: LiveMoments,
    /// The number of values in the buckets; 0 = the pages of the buckets may be untouched.
    bucketed: Word,
    buckets: [Word; BUCKETS],
}

impl LiveLatency {
    /// Adds one value to the moments.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        self.moments.record(value);
    }

    /// Adds one value to the histogram.
    #[inline(always)]
    pub fn record_bucket(&self, value: u64) {
        self.bucketed.add(1);
        self.buckets[bucket_of(value)].add(1);
    }

    /// Removes a recorded value that turned out not to count. The extremes keep it, because those without it are
    /// unknown.
    #[cold]
    pub fn forget(&self, value: u64) {
        self.moments.forget(value);
        if self.bucketed.get() > 0 {
            self.bucketed.set(self.bucketed.get() - 1);
            let bucket = &self.buckets[bucket_of(value)];
            bucket.set(bucket.get().saturating_sub(1));
        }
    }

    /// The moments' count.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// The moments' sum.
    pub fn sum(&self) -> u64 {
        self.moments.sum.get()
    }

    fn read(&self) -> Latency {
        let histogram = if self.bucketed.get() == 0 {
            Histogram::default()
        } else {
            Histogram::from_counts(self.buckets.iter().map(Word::get).collect())
        };
        Latency { moments: self.moments.read(), histogram }
    }

    fn reset(&self) {
        self.moments.reset();
        if self.bucketed.get() != 0 {
            self.bucketed.set(0);
            self.buckets.iter().for_each(|word| word.set(0));
        }
    }
}

/// How long a direction has run: its finished spans and the current one. A pass of the workload is a span of its
/// directions; reading back is a span of reads. All times are in nanoseconds of the run's clock, which is never 0
/// once I/O has begun.
#[derive(Debug)]
#[repr(C)]
pub struct LiveClock {
    /// The length of all finished spans.
    spans: Word,
    /// When the current span began; 0 = no span is in progress.
    begun: Word,
    /// How many I/Os had been issued by then.
    issued: Word,
}

impl LiveClock {
    /// Whether a span is in progress.
    pub fn runs(&self) -> bool {
        self.begun.get() != 0
    }

    /// How long it has run until `now`.
    pub fn elapsed(&self, now: u64) -> u64 {
        let present = if self.runs() { now.saturating_sub(self.begun.get()) } else { 0 };
        self.spans.get() + present
    }

    /// When the current span began, and how many I/Os had been issued by then; `None` = there is no current span.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.runs().then(|| (self.begun.get(), self.issued.get()))
    }
}

/// The totals of a direction since its worker began, including those removed from its counters by resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
}

/// The measurements of one direction of one worker.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LiveDirection {
    /// I/Os completed.
    pub ios: Word,
    /// Bytes transferred.
    pub bytes: Word,
    /// I/Os issued.
    pub issued: Word,
    /// I/Os that transferred less than requested.
    pub short: Word,
    /// I/Os that were dropped.
    pub dropped: Word,
    /// How long it has run.
    pub clock: LiveClock,
    /// The I/Os removed from `ios` by resets; see [`LiveStats::moved`].
    forgotten_ios: Word,
    /// The bytes removed from `bytes` by resets.
    forgotten_bytes: Word,
    /// Submission latency.
    pub slat: LiveLatency,
    /// Completion latency.
    pub clat: LiveLatency,
    /// Total latency.
    pub lat: LiveLatency,
    /// Latency from the intended start.
    pub intended: LiveLatency,
    /// From the issue to the first byte of the answer, where I/Os are requests to a server.
    pub first_byte: LiveLatency,
    /// From the acknowledgement of a write until a request saw it, where engines look for that.
    pub visible: LiveLatency,
    /// Latency by priority, if I/Os have different ones.
    pub priorities: LivePriorities,
}

impl LiveDirection {
    fn moved(&self) -> Moved {
        Moved {
            ios: self.forgotten_ios.get() + self.ios.get(),
            bytes: self.forgotten_bytes.get() + self.bytes.get(),
        }
    }
}

/// Failed I/Os of one direction by their errno. Resets do not clear them.
#[derive(Debug)]
#[repr(C)]
pub struct LiveFailures {
    /// Errnos with their counts, in the order of their first failures.
    kinds: [(Word, Word); 7],
    /// Failures with other errnos.
    others: Word,
}

impl LiveFailures {
    /// Counts a failure. Only the worker may call this.
    #[cold]
    pub fn count(&self, errno: i32) {
        let errno = u64::from(errno.unsigned_abs());
        match self.kinds.iter().find(|(kind, count)| kind.get() == errno || count.get() == 0) {
            Some((kind, count)) => {
                // In this order: a reader does not look at a kind without failures.
                kind.set(errno);
                count.add(1);
            }
            None => self.others.add(1),
        }
    }

    /// Errnos with their counts; 0 stands for all others.
    fn read(&self) -> impl Iterator<Item = (i32, u64)> {
        let kinds = self.kinds.iter().map(|(kind, count)| (kind.get() as i32, count.get()));
        kinds.chain([(0, self.others.get())]).filter(|(_, count)| *count > 0)
    }
}

/// All measurements of one worker.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LiveStats {
    /// Odd while values that belong together change.
    generation: Word,
    /// The number of resets (at the end of a ramp), so that samplers know when counters went back to zero.
    pub resets: Word,
    /// How many resets have completed. During one, some values are still from before it.
    resets_over: Word,
    /// Units queued, by the depth that they raised the queue to.
    pub level: [Word; DEPTH_CLASSES],
    /// Submission calls by class.
    pub submit: [Word; BATCH_CLASSES],
    /// Completion calls by class.
    pub complete: [Word; BATCH_CLASSES],
    /// Syncs completed.
    pub syncs: Word,
    /// Zones reset. Resets of the measurements do not clear it.
    pub zone_resets: Word,
    /// Errors of the kinds that the job counts. Resets do not clear them.
    pub errors: Word,
    /// The errno of the first of them; 0 = none.
    pub first_error: Word,
    /// All failed I/Os: per direction, in the order of `Direction::ALL`, and those without one, such as syncs.
    pub failures: [LiveFailures; 4],
    /// Blocks compared with the data written to them. Resets do not clear it.
    pub checked_blocks: Word,
    /// Those of them that were wrong.
    pub wrong_blocks: Word,
    /// Per direction, in the order of `Direction::ALL`.
    pub directions: [LiveDirection; 3],
    /// Latency of syncs.
    pub sync: LiveLatency,
    /// The state of blocks, if it is tracked. Resets do not clear it.
    pub blocks: LiveBlocks,
    /// How late I/Os were issued, if there is a plan for them.
    pub lateness: LiveLatency,
    /// Requests that were repeated, known at the end.
    pub repeated: Word,
    /// Answers that asked for fewer requests, known at the end.
    pub throttled: Word,
}

impl LiveStats {
    /// The blocks that were verified so far.
    pub fn blocks_checked(&self) -> CheckedBlocks {
        CheckedBlocks { checked: self.checked_blocks.get(), wrong: self.wrong_blocks.get() }
    }

    /// Marks the start of a change to values that belong together. Only the worker may call this.
    #[inline(always)]
    pub fn begin(&self) {
        self.generation.add(1);
        // A release fence: it orders the stores (which x86 does by itself), and keeps the compiler from reordering
        // them.
        fence(std::sync::atomic::Ordering::Release);
    }

    /// Marks the end of the change.
    #[inline(always)]
    pub fn end(&self) {
        fence(std::sync::atomic::Ordering::Release);
        self.generation.add(1);
    }

    /// Runs `read` until nothing changed in the meantime, a limited number of times: a worker that died in the middle
    /// of a change, or that is faster than its reader, must not block the reader. In that case the result is off by a
    /// few I/Os at most.
    pub fn consistent<T>(&self, mut read: impl FnMut(&LiveStats) -> T) -> T {
        const ATTEMPTS: usize = 16;
        let mut value = None;
        for _ in 0..ATTEMPTS {
            let before = self.generation.get();
            fence(std::sync::atomic::Ordering::Acquire);
            value = Some(read(self));
            fence(std::sync::atomic::Ordering::Acquire);
            if before & 1 == 0 && before == self.generation.get() {
                break;
            }
        }
        value.unwrap_or_else(|| read(self))
    }

    /// Words that change with each I/O that is issued or completed.
    pub fn progress(&self) -> [u64; 2] {
        let issued = self.directions.iter().map(|direction| direction.issued.get());
        [self.generation.get(), issued.fold(0, u64::wrapping_add)]
    }

    /// The depth distributions.
    pub fn depths(&self) -> Depths {
        Depths {
            level: std::array::from_fn(|i| self.level[i].get()),
            submit: std::array::from_fn(|i| self.submit[i].get()),
            complete: std::array::from_fn(|i| self.complete[i].get()),
        }
    }

    /// The failed I/Os so far.
    pub fn failures(&self) -> Vec<Failures> {
        let directions = Direction::ALL.into_iter().map(Some).chain([None]);
        let all = directions.zip(&self.failures).flat_map(|(direction, failures)| {
            failures.read().map(move |(errno, count)| Failures { direction, errno, count })
        });
        all.collect()
    }

    /// The latencies of a direction: submission, completion, total.
    pub fn latencies(&self, direction: usize) -> [Latency; 3] {
        let direction = &self.directions[direction];
        [direction.slat.read(), direction.clat.read(), direction.lat.read()]
    }

    /// The latency of a direction from the intended start of its I/Os.
    pub fn intended_latency(&self, direction: usize) -> Latency {
        self.directions[direction].intended.read()
    }

    /// The time to the first byte of the answers, of a direction.
    pub fn first_byte_latency(&self, direction: usize) -> Latency {
        self.directions[direction].first_byte.read()
    }

    /// The time from the acknowledgement of writes until requests saw them, of a direction.
    pub fn visible_latency(&self, direction: usize) -> Latency {
        self.directions[direction].visible.read()
    }

    /// How late I/Os were issued, if there is a plan for them.
    pub fn lateness(&self) -> Latency {
        self.lateness.read()
    }

    /// The latency of syncs.
    pub fn sync_latency(&self) -> Latency {
        self.sync.read()
    }

    /// Starts a span of these directions (in the order of `Direction::ALL`), unless they are in one. Only the worker
    /// may call this.
    pub fn begin_span(&self, directions: [bool; 3], now: u64) {
        self.begin();
        for direction in
            self.directions.iter().zip(directions).filter_map(|(it, wanted)| wanted.then_some(it))
        {
            if !direction.clock.runs() {
                direction.clock.begun.set(now);
                direction.clock.issued.set(direction.issued.get());
            }
        }
        self.end();
    }

    /// Ends the span of these directions. If a direction issued nothing, its span does not count. Only the worker may
    /// call this.
    pub fn end_span(&self, directions: [bool; 3], now: u64) {
        self.begin();
        for direction in
            self.directions.iter().zip(directions).filter_map(|(it, wanted)| wanted.then_some(it))
        {
            let clock = &direction.clock;
            if direction.issued.get() != clock.issued.get() {
                clock.spans.set(clock.elapsed(now));
            }
            clock.begun.set(0);
        }
        self.end();
    }

    /// The totals of a direction since the worker began. Unlike its counters, they never decrease.
    pub fn moved(&self, direction: usize) -> Moved {
        self.consistent(|stats| stats.directions[direction].moved())
    }

    /// The counters of all directions, and the number of resets. Latencies are copied only on request: they are
    /// thousands of words, in cache lines that the worker writes to. They are copied once, while the worker continues,
    /// so they may include a few more I/Os than the counts. None of them is from before a reset that is counted here:
    /// if resets keep interfering, the latencies are left empty.
    pub fn counters(&self, with_latencies: bool) -> ([Counters; 3], u64) {
        const ATTEMPTS: usize = 4;
        let mut attempt = 1;
        loop {
            self.wait_for_the_end_of_a_change();
            let over = self.resets_over.get();
            fence(std::sync::atomic::Ordering::Acquire);
            let mut counters: [Counters; 3] = std::array::from_fn(|direction| {
                let Moved { ios, bytes } = self.moved(direction);
                let clat = &self.directions[direction].clat;
                let latency = if with_latencies { clat.read() } else { Latency::default() };
                Counters { ios, bytes, latency, asked: crate::Asked::default() }
            });
            fence(std::sync::atomic::Ordering::Acquire);
            let resets = self.resets.get();
            if resets == over {
                return (counters, resets);
            }
            if attempt == ATTEMPTS {
                counters.iter_mut().for_each(|one| one.latency = Latency::default());
                return (counters, resets);
            }
            attempt += 1;
        }
    }

    /// Waits until no change is going on, for a limited time: a reset takes some microseconds, and a worker may have died
    /// in the middle of a change.
    fn wait_for_the_end_of_a_change(&self) {
        const LOOKS: usize = 10_000;
        let _ = (0..LOOKS).find(|_| {
            std::hint::spin_loop();
            self.generation.get() & 1 == 0
        });
        fence(std::sync::atomic::Ordering::Acquire);
    }

    /// Clears all measurements (at the end of a ramp); current spans start again. Only the worker may call this.
    pub fn reset(&self, now: u64) {
        self.begin();
        self.resets.add(1);
        let words = self.level.iter().chain(&self.submit).chain(&self.complete);
        words.chain([&self.syncs]).for_each(|word| word.set(0));
        for direction in &self.directions {
            direction.forgotten_ios.add(direction.ios.get());
            direction.forgotten_bytes.add(direction.bytes.get());
            for word in [&direction.ios, &direction.bytes, &direction.issued, &direction.short] {
                word.set(0);
            }
            direction.dropped.set(0);
            let clock = &direction.clock;
            clock.spans.set(0);
            clock.issued.set(0);
            if clock.runs() {
                clock.begun.set(now);
            }
            let latencies = [&direction.slat, &direction.clat, &direction.lat, &direction.intended];
            latencies
                .into_iter()
                .chain([&direction.first_byte, &direction.visible])
                .for_each(LiveLatency::reset);
            direction.priorities.reset();
        }
        self.sync.reset();
        self.lateness.reset();
        fence(std::sync::atomic::Ordering::Release);
        self.resets_over.add(1);
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};

    fn zeroed() -> Box<LiveStats> {
        // SAFETY: LiveStats consists of atomics only, for which zero bytes are a valid value; the layout is its own.
        unsafe { Box::from_raw(alloc_zeroed(Layout::new::<LiveStats>()).cast()) }
    }

    #[test]
    fn failures_have_kinds() {
        let stats = zeroed();
        assert_eq!(stats.failures(), []);
        for errno in [5, 28, 5, 5] {
            stats.failures[1].count(errno);
        }
        stats.failures[3].count(5);
        stats.reset(0);
        let of = |direction, errno, count| Failures { direction, errno, count };
        let write = Some(Direction::Write);
        assert_eq!(stats.failures(), [of(write, 5, 3), of(write, 28, 1), of(None, 5, 1)]);
        (100..110).for_each(|errno| stats.failures[0].count(errno));
        let reads: Vec<(i32, u64)> = stats.failures()[..8].iter().map(|one| (one.errno, one.count)).collect();
        assert_eq!((reads[6], reads[7]), ((106, 1), (0, 3)), "those beyond the seventh are others");
    }

    #[test]
    fn a_value_is_taken_back() {
        let latency = &zeroed().directions[0].slat;
        let mut expected = Moments::default();
        for value in [5, u64::MAX >> 8, 1 << 40] {
            latency.record(value);
            latency.record_bucket(value);
            if value != 1 << 40 {
                expected.record(value);
            }
        }
        latency.forget(1 << 40);
        let left = latency.read();
        assert_eq!((left.moments, left.histogram.total()), (expected, 2));
    }

    #[test]
    fn recorded_values_are_read_back() {
        let stats = zeroed();
        let mut expected = Moments::default();
        for value in [0, 17, u64::from(u32::MAX) * 9, 1 << 40, 3] {
            stats.begin();
            stats.directions[1].clat.record(value);
            stats.directions[1].clat.record_bucket(value);
            stats.end();
            expected.record(value);
        }
        let [slat, clat, _] = stats.consistent(|stats| stats.latencies(1));
        assert_eq!(slat, Latency::default());
        assert_eq!(clat.moments, expected);
        assert_eq!(clat.histogram.total(), 5);
        let ([_, counters, _], resets) = stats.counters(true);
        assert_eq!((counters.latency, resets), (clat, 0));
        stats.reset(0);
        assert_eq!(stats.counters(true), (Default::default(), 1));
        assert_eq!(stats.latencies(1)[1].moments.count, 0);
        assert_eq!(stats.latencies(1)[1].histogram, Histogram::default());
        assert_eq!(stats.resets.get(), 1);
    }

    /// A worker records one value between two resets, and another one between the next two. A reader must not find the
    /// value of an earlier period with a later number of resets.
    #[test]
    fn values_before_a_reset_are_not_read_after_it() {
        let stats = zeroed();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let value_of = |resets: u64| 1000 << (resets % 2 * 8);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let value = value_of(stats.resets.get());
                    for direction in (0..300).flat_map(|_| &stats.directions) {
                        stats.begin();
                        direction.clat.record(value);
                        direction.clat.record_bucket(value);
                        stats.end();
                    }
                    stats.reset(0);
                }
            });
            let mut wrong = 0;
            for _ in 0..3000 {
                let (counters, resets) = stats.counters(true);
                // A reader that was interrupted by resets each time returns the counters without latencies.
                if stats.resets.get() == resets {
                    let other = bucket_of(value_of(resets + 1));
                    wrong += counters
                        .iter()
                        .filter(|one| one.latency.histogram.occupied().any(|(bucket, _)| bucket == other))
                        .count();
                }
            }
            is_over.store(true, Relaxed);
            assert_eq!(wrong, 0);
        });
    }

    #[test]
    fn each_direction_has_a_clock_of_its_own() {
        let stats = zeroed();
        let [read, write, trim] = &stats.directions;
        let elapsed = |now| [read, write, trim].map(|direction| direction.clock.elapsed(now));
        // Writing from 100 to 400; reading from 200 to 250, and from 500 on.
        stats.begin_span([false, true, true], 100);
        write.issued.add(5);
        stats.begin_span([true, false, false], 200);
        read.issued.add(1);
        stats.end_span([true, false, false], 250);
        assert_eq!(elapsed(300), [50, 200, 200]);
        stats.end_span([false, true, true], 400);
        stats.begin_span([true, false, false], 500);
        // A direction without any I/O did not run.
        assert_eq!(elapsed(600), [150, 300, 0]);
        assert_eq!((read.clock.span(), write.clock.span()), (Some((500, 1)), None));
        assert!(read.clock.runs() && !write.clock.runs());
    }

    #[test]
    fn a_reset_keeps_the_counts_of_moved_bytes() {
        let stats = zeroed();
        stats.begin_span([true, false, false], 100);
        for round in 1..=3 {
            stats.directions[0].issued.add(2);
            stats.directions[0].ios.add(2);
            stats.directions[0].bytes.add(10);
            assert_eq!(stats.moved(0), Moved { ios: 2 * round, bytes: 10 * round });
            stats.reset(100 * (round + 1));
            assert_eq!(stats.moved(0), Moved { ios: 2 * round, bytes: 10 * round });
        }
        assert_eq!(stats.directions[0].clock.elapsed(450), 50);
        // Nothing was issued after that reset.
        stats.end_span([true, false, false], 460);
        assert_eq!(stats.directions[0].clock.elapsed(500), 0);
    }

    #[test]
    fn priorities_are_told_apart() {
        let stats = zeroed();
        let priorities = &stats.directions[0].priorities;
        let read = || priorities.read(iolite_types::Direction::Read, 4);
        assert_eq!(read(), []);
        priorities.prepare([0, 8192, 3].into_iter());
        for (priority, latency) in [(8192, 5), (0, 7), (8192, 6), (99, 1)] {
            priorities.record(priority, latency);
        }
        let seen =
            || -> Vec<_> { read().iter().map(|seen| (seen.priority, seen.latency.moments.count)).collect() };
        assert_eq!(seen(), [(0, 1), (8192, 2)]);
        assert_eq!(read()[1].order, [0, 4, 1]);
        stats.reset(0);
        assert_eq!(seen(), []);
        priorities.record(3, 1);
        assert_eq!(seen(), [(3, 1)]);
    }

    #[test]
    fn a_writer_that_died_in_a_change_does_not_hold_readers_up() {
        let stats = zeroed();
        stats.begin();
        stats.directions[0].ios.set(7);
        assert_eq!(stats.consistent(|stats| stats.directions[0].ios.get()), 7);
    }
}
