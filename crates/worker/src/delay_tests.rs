//! Does the loop report the latencies of a storage whose delays are known? An engine that completes on a timer plays the
//! storage, and notes when it was called.
//!
//! The loop takes its time stamps between two calls of its engine. So each stamp is bounded by the end of one call and the
//! beginning of the next, and each latency by two bounds of that kind, however long the machine stops a thread. On a clock
//! that only the engine moves, no time passes between calls: there the bounds coincide and every figure is exact.

use super::*;
use iolite_engine::{Completion, Errno, FileSpec, OpenMode, Queued, Unit};
use iolite_options::{
    DepthOptions, ExtentOptions, JobOptions, MeasurementOptions, PatternOptions, ReadWrite, RunOptions,
    SizeValue,
};
use iolite_os::shared::Arena;
use iolite_plan::Plan;
use iolite_stats::{Latency, bucket_of};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long the engine takes to queue a unit, in nanoseconds.
const QUEUE_NS: u64 = 100;

/// Delays of 10 µs and more: mostly short, some long, a few very long.
fn delay(number: u64) -> u64 {
    match number % 100 {
        99 => 2_000_000,
        90.. => 150_000,
        position => 10_000 + position * 500,
    }
}

/// The engine's clock.
#[derive(Clone, Copy)]
pub(super) enum Time {
    /// Only the engine moves it.
    Moved(&'static AtomicU64),
    /// The real clock.
    Real(Clock),
}

impl Time {
    pub(super) fn clock(self) -> Clock {
        match self {
            Time::Moved(word) => Clock::calibrate().kept_in(word),
            Time::Real(clock) => clock,
        }
    }

    fn now(self) -> u64 {
        match self {
            Time::Moved(word) => word.load(Relaxed),
            Time::Real(clock) => clock.now(),
        }
    }

    fn pass(self, ns: u64) {
        self.wait_until(self.now() + ns);
    }

    fn wait_until(self, moment: u64) {
        match self {
            Time::Moved(word) => {
                word.fetch_max(moment, Relaxed);
            }
            Time::Real(clock) => {
                while clock.now() < moment {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// A unit in the engine. Gap `n` is the time before the engine's `n`-th call, counted from 0.
#[derive(Clone, Copy)]
struct Timed {
    index: u32,
    length: u64,
    delay: u64,
    /// When it completes.
    due: u64,
    /// The gap in which the loop made it.
    made: usize,
    /// The gap in which the loop took its issue stamp.
    issued: usize,
}

/// A unit that is complete: the gaps in which the loop took its time stamps.
#[derive(Clone, Copy)]
struct Trip {
    made: usize,
    issued: usize,
    completed: usize,
}

/// The calls that the engine has recorded.
#[derive(Default)]
struct Notes {
    /// When each call began and ended.
    calls: Vec<(u64, u64)>,
    trips: Vec<Trip>,
}

/// Completes each unit after its delay, and notes its calls.
pub(super) struct TimerEngine<const SYNCHRONOUS: bool> {
    time: Time,
    issued: u64,
    /// Every `short_every`-th unit moves only half of its bytes; 0 = none.
    short_every: u64,
    queued: Vec<Timed>,
    flying: Vec<Timed>,
    notes: Arc<Mutex<Notes>>,
}

impl<const SYNCHRONOUS: bool> TimerEngine<SYNCHRONOUS> {
    pub(super) fn new(time: Time, short_every: u64) -> Self {
        let (queued, flying, notes) = Default::default();
        TimerEngine { time, issued: 0, short_every, queued, flying, notes }
    }

    /// Calls `act` as a recorded call of the engine. `act` gets the gap before the call.
    fn call<R>(&mut self, act: impl FnOnce(&mut Self, usize) -> R) -> R {
        let began = self.time.now();
        let gap = self.notes.lock().unwrap().calls.len();
        let result = act(self, gap);
        self.notes.lock().unwrap().calls.push((began, self.time.now()));
        result
    }
}

impl<const SYNCHRONOUS: bool> Engine for TimerEngine<SYNCHRONOUS> {
    const SYNCHRONOUS: bool = SYNCHRONOUS;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> io::Result<()> {
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let delay = delay(self.issued);
        self.issued += 1;
        let is_short = self.short_every > 0 && self.issued.is_multiple_of(self.short_every);
        let length = if is_short { unit.length.div_ceil(2) } else { unit.length };
        self.call(|engine, gap| {
            if SYNCHRONOUS {
                engine.time.pass(delay);
                let trip = Trip { made: gap, issued: gap, completed: gap + 1 };
                engine.notes.lock().unwrap().trips.push(trip);
                return Queued::Completed(Ok(length));
            }
            engine.time.pass(QUEUE_NS);
            engine.queued.push(Timed { index: unit.index, length, delay, due: 0, made: gap, issued: 0 });
            Queued::Queued
        })
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        self.call(|engine, gap| {
            let now = engine.time.now();
            let count = engine.queued.len();
            let timed = |unit: Timed| Timed { due: now + unit.delay, issued: gap + 1, ..unit };
            engine.flying.extend(engine.queued.drain(..).map(timed));
            Ok(count)
        })
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        _: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.call(|engine, gap| {
            engine.flying.sort_by_key(|unit| unit.due);
            if min > 0 {
                engine.time.wait_until(engine.flying[min - 1].due);
            }
            let now = engine.time.now();
            let due = engine.flying.iter().take(max).take_while(|unit| unit.due <= now).count();
            for Timed { index, length, made, issued, .. } in engine.flying.drain(..due) {
                engine.notes.lock().unwrap().trips.push(Trip { made, issued, completed: gap + 1 });
                done.push(Completion { unit: index, outcome: Ok(length) });
            }
            Ok(())
        })
    }
}

/// The loop's report, and the engine's records.
struct Measured {
    latencies: [Latency; 3],
    ios: u64,
    issued: u64,
    bytes: u64,
    short: u64,
    /// The sum of the distribution of depths.
    levels: u64,
    notes: Notes,
    /// The time of the run.
    run: Range<u64>,
}

fn measure<const SYNCHRONOUS: bool>(
    time: Time,
    count: u64,
    depth: u32,
    change: impl FnOnce(&mut JobOptions),
) -> Measured {
    measure_with_shorts::<SYNCHRONOUS>(time, count, depth, 0, change)
}

fn measure_with_shorts<const SYNCHRONOUS: bool>(
    time: Time,
    count: u64,
    depth: u32,
    short_every: u64,
    change: impl FnOnce(&mut JobOptions),
) -> Measured {
    let mut options = JobOptions {
        name: "delays".into(),
        ioengine: "null".into(),
        pattern: PatternOptions { rw: ReadWrite::RandRead, ..PatternOptions::default() },
        extent: ExtentOptions { size: Some(SizeValue::Bytes(count * 4096)), ..ExtentOptions::default() },
        depth: DepthOptions { iodepth: depth, ..DepthOptions::default() },
        measurement: MeasurementOptions {
            slat_percentiles: true,
            lat_percentiles: true,
            ..MeasurementOptions::default()
        },
        ..JobOptions::default()
    };
    change(&mut options);
    let engine = TimerEngine::<SYNCHRONOUS>::new(time, short_every);
    let notes = Arc::clone(&engine.notes);
    let began = time.now();
    let (arena, done) = run(options, time.clock(), engine);
    assert_eq!(done, Ok(()));
    let stats = &arena.slot(0).stats;
    let notes = std::mem::take(&mut *notes.lock().unwrap());
    Measured {
        latencies: stats.latencies(0),
        ios: stats.directions[0].ios.get(),
        issued: stats.directions[0].issued.get(),
        bytes: stats.directions[0].bytes.get(),
        short: stats.directions[0].short.get(),
        levels: stats.depths().level.iter().sum(),
        notes,
        run: began..time.now(),
    }
}

/// Runs a job with this engine. Returns its measurements, and the reason if it failed.
pub(super) fn run<E: Engine + 'static>(
    options: JobOptions,
    clock: Clock,
    engine: E,
) -> (Arc<Arena>, Result<(), String>) {
    let machine = iolite_host::MadeUp::new();
    let plan = Plan::build(vec![options], &RunOptions::default(), &machine).expect("the plan is in order");
    let layouts = plan.layouts(&machine, &iolite_plan::NoStorages).expect("the layout is in order");
    run_plan(&plan, &layouts[0], clock, engine)
}

/// Runs the only worker of this plan with this engine. Returns its measurements, and the reason if it failed.
pub(super) fn run_plan<E: Engine + 'static>(
    plan: &Plan,
    layout: &iolite_plan::Layout,
    clock: Clock,
    engine: E,
) -> (Arc<Arena>, Result<(), String>) {
    let worker_plan = &plan.workers[0];
    let arena = Arc::new(Arena::new(1).unwrap());
    let (messages, _controller) = Socket::pair().unwrap();
    let resolved = plan.resolve(worker_plan, layout, &iolite_verify::Rivals::default());
    let owners = Arc::new(iolite_verify::Owners::of(Vec::new()).unwrap());
    let worker = Worker {
        resolved: &resolved,
        replay: worker_plan.replay.as_ref(),
        arena: &arena,
        messages: &messages,
        clock,
        owners: &owners,
        zones: &Arc::default(),
        units: &Arc::new(crate::UnitTables::new([resolved.issue.depth]).unwrap()),
        stages: None,
    };
    arena.slot(0).control.open_gate();
    let done = worker.with_engine(engine, Logs::default()).map_err(|stop| stop.what);
    (arena, done)
}

/// The smallest and largest possible value of each latency, in nanoseconds.
struct Bounds {
    least: Vec<u64>,
    most: Vec<u64>,
}

impl Bounds {
    /// Checks recorded latencies against their bounds: if each value is within its own, so is each rank of the sorted ones.
    fn hold_for(mut self, latency: &Latency) {
        self.least.sort_unstable();
        self.most.sort_unstable();
        let recorded = latency.histogram.occupied();
        let recorded = recorded.flat_map(|(bucket, count)| std::iter::repeat_n(bucket, count as usize));
        let recorded: Vec<usize> = recorded.collect();
        assert_eq!((recorded.len(), recorded.len()), (self.least.len(), self.most.len()));
        for (rank, &bucket) in recorded.iter().enumerate() {
            let bounds = bucket_of(self.least[rank])..=bucket_of(self.most[rank]);
            assert!(bounds.contains(&bucket), "rank {rank}: {bucket}, {bounds:?}");
        }
        let sum = |values: &[u64]| values.iter().copied().map(u128::from).sum::<u128>();
        let sums = sum(&self.least)..=sum(&self.most);
        assert!(sums.contains(&latency.moments.sum), "{}, {sums:?}", latency.moments.sum);
        let last = recorded.len() - 1;
        let Latency { moments, .. } = latency;
        assert!((self.least[0]..=self.most[0]).contains(&moments.min), "{}", moments.min);
        assert!((self.least[last]..=self.most[last]).contains(&moments.max), "{}", moments.max);
    }
}

impl Measured {
    /// Every I/O was issued once, completed once, and is in each histogram once.
    fn sums_up(&self, count: u64) {
        assert_eq!((self.issued, self.ios, self.notes.trips.len() as u64), (count, count, count));
        let [slat, clat, lat] = &self.latencies;
        for latency in [clat, lat] {
            assert_eq!((latency.moments.count, latency.histogram.total()), (count, count));
        }
        assert_eq!(slat.moments.count, slat.histogram.total());
    }

    /// A gap between two calls of the engine.
    fn gap(&self, number: usize) -> Range<u64> {
        let calls = &self.notes.calls;
        let began = number.checked_sub(1).map_or(self.run.start, |before| calls[before].1);
        began..calls.get(number).map_or(self.run.end, |next| next.0)
    }

    /// Bounds of the time that can have passed for each unit from a stamp in one gap to a stamp in another.
    fn bounds(&self, gaps: impl Fn(&Trip) -> (usize, usize)) -> Bounds {
        let gaps = |trip| {
            let (from, to) = gaps(trip);
            (self.gap(from), self.gap(to))
        };
        let passed = self
            .notes
            .trips
            .iter()
            .map(gaps)
            .map(|(from, to)| (to.start.saturating_sub(from.end), to.end - from.start));
        let (least, most) = passed.unzip();
        Bounds { least, most }
    }

    /// Each latency is the time between the engine's calls.
    fn is_true(&self) {
        let [slat, clat, lat] = &self.latencies;
        self.bounds(|trip| (trip.issued, trip.completed)).hold_for(clat);
        self.bounds(|trip| (trip.made, trip.completed)).hold_for(lat);
        if slat.moments.count > 0 {
            self.bounds(|trip| (trip.made, trip.issued)).hold_for(slat);
            assert_eq!(lat.moments.sum, slat.moments.sum + clat.moments.sum);
        }
    }
}

/// Completes each unit as soon as it is committed. A reap takes a nanosecond.
struct CompletesInCommit {
    time: Time,
    newest_first: bool,
    queued: Vec<Completion>,
    complete: VecDeque<Completion>,
}

impl Engine for CompletesInCommit {
    const SYNCHRONOUS: bool = false;
    const COMPLETES_IN_COMMIT: bool = true;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> io::Result<()> {
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        self.queued.push(Completion { unit: unit.index, outcome: Ok(unit.length) });
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let count = self.queued.len();
        self.complete.extend(self.queued.drain(..));
        Ok(count)
    }

    fn reap(
        &mut self,
        _: usize,
        max: usize,
        _: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.time.pass(1);
        for _ in 0..max {
            let next = if self.newest_first { self.complete.pop_back() } else { self.complete.pop_front() };
            done.extend(next);
        }
        Ok(())
    }
}

/// The completion latencies of units that are complete once they are committed.
fn completed_in_commit(newest_first: bool) -> Latency {
    let options = JobOptions {
        name: "j".into(),
        ioengine: "null".into(),
        extent: ExtentOptions { size: Some(SizeValue::Bytes(1000 * 4096)), ..ExtentOptions::default() },
        depth: DepthOptions { iodepth: 2, ..DepthOptions::default() },
        ..JobOptions::default()
    };
    let time = moved();
    let engine = CompletesInCommit { time, newest_first, queued: Vec::new(), complete: VecDeque::new() };
    let (arena, done) = run(options, time.clock(), engine);
    assert_eq!(done, Ok(()));
    let [_, clat, lat] = arena.slot(0).stats.latencies(0);
    assert_eq!((clat.moments.count, lat.moments.count), (1000, 1000));
    clat
}

/// The stamp of a commit serves for the reap right after it: the nanosecond of that reap is not counted.
#[test]
fn a_reap_has_the_stamp_of_its_commit() {
    let clat = completed_in_commit(false);
    // Each unit is reaped after the commit of the next, whose stamp is that of one reap later.
    assert!(clat.moments.sum <= 1002, "{}", clat.moments.sum);
}

/// A unit that is reaped right after its own commit has a completion latency: its issue stamp does not serve as both.
#[test]
fn nothing_takes_no_time() {
    assert_eq!(completed_in_commit(true).moments.min, 1);
}

pub(super) fn moved() -> Time {
    Time::Moved(Box::leak(Box::new(AtomicU64::new(1))))
}

/// With one I/O at a time, every nanosecond is known.
#[test]
fn one_at_a_time_each_delay_is_reported_exactly() {
    const COUNT: u64 = 5000;
    for synchronous in [true, false] {
        let measured = match synchronous {
            true => measure::<true>(moved(), COUNT, 1, |_| ()),
            false => measure::<false>(moved(), COUNT, 1, |_| ()),
        };
        measured.sums_up(COUNT);
        let [slat, clat, lat] = &measured.latencies;
        let total: u64 = (0..COUNT).map(delay).sum();
        assert_eq!(clat.moments.sum, u128::from(total));
        let queueing = if synchronous { 0 } else { u128::from(COUNT * QUEUE_NS) };
        assert_eq!(slat.moments.sum, queueing);
        assert_eq!(lat.moments.sum, u128::from(total) + queueing);
        assert_eq!((clat.moments.min, clat.moments.max), (10_000, 2_000_000));
        measured.is_true();
    }
}

/// At depth and with every kind of batching, the latencies are those of the storage.
#[test]
fn at_depth_the_delays_are_those_of_the_storage() {
    const COUNT: u64 = 20_000;
    for (submit, complete) in [(1, 1), (16, 16), (32, 1)] {
        let measured = measure::<false>(moved(), COUNT, 32, |options| {
            options.depth.iodepth_batch = submit;
            options.depth.iodepth_batch_complete_max = complete;
        });
        measured.sums_up(COUNT);
        measured.is_true();
        let [slat, ..] = &measured.latencies;
        // The first unit of a batch waits until the others are queued, the last one only until it is queued itself.
        assert!(slat.moments.min >= QUEUE_NS && slat.moments.max <= u64::from(submit) * QUEUE_NS);
    }
}

/// A short I/O with its rests is one I/O: it is in each histogram once, and all of its bytes are counted.
#[test]
fn short_ios_are_counted_once() {
    const COUNT: u64 = 1000;
    let check = |measured: Measured, synchronous: bool| {
        assert_eq!((measured.issued, measured.ios, measured.bytes), (COUNT, COUNT, COUNT * 4096));
        assert_eq!(measured.levels, COUNT, "a rest has no depth of its own");
        // Every seventh unit is short, and each short one adds a unit for its rest.
        assert_eq!((measured.short, measured.notes.trips.len() as u64), (COUNT / 6, COUNT + COUNT / 6));
        for (index, latency) in measured.latencies.iter().enumerate() {
            let expected = if index == 0 && synchronous { 0 } else { COUNT };
            assert_eq!((latency.moments.count, latency.histogram.total()), (expected, expected), "{index}");
        }
    };
    check(measure_with_shorts::<true>(moved(), COUNT, 1, 7, |_| ()), true);
    for (depth, submit) in [(1, 1), (8, 1), (32, 16)] {
        let measured = measure_with_shorts::<false>(moved(), COUNT, depth, 7, |options| {
            options.depth.iodepth_batch = submit;
        });
        check(measured, false);
    }
    // All units in flight may be rests of short I/Os.
    let drained = measure_with_shorts::<false>(moved(), COUNT, 8, 7, |options| {
        options.depth.iodepth_batch = 8;
        options.depth.iodepth_low = 1;
        options.depth.iodepth_batch_complete_max = 8;
    });
    check(drained, false);
    // I/Os that began in the ramp are in no histogram. At some of these ends, part of an I/O is complete.
    for ramp_time in (500..3000).step_by(100) {
        let after = measure_with_shorts::<false>(moved(), COUNT, 8, 7, |options| {
            options.schedule.ramp_time = ramp_time
        });
        assert!(after.ios > 0 && after.ios < COUNT);
        assert_eq!(after.bytes, after.ios * 4096, "{ramp_time}");
        assert_eq!(after.latencies.map(|latency| latency.moments.count), [after.ios; 3], "{ramp_time}");
    }
    // A ramp in bytes ends with the I/O that moves its last byte.
    let after =
        measure_with_shorts::<true>(moved(), COUNT, 1, 7, |options| options.schedule.ramp_size = 300 * 4096);
    assert_eq!(after.ios, COUNT - 300);
}

/// Whenever the time ends, the last depth that was tried has been measured: the search takes no step at the end.
#[test]
fn a_search_for_a_depth_ends_with_a_measurement() {
    for (target, runtime) in
        [100, 1000].into_iter().flat_map(|target| (1..60).map(move |end| (target, end * 500)))
    {
        let measured = measure::<false>(moved(), 1_000_000, 16, |options| {
            options.rates.latency_target = target;
            options.rates.latency_window = 1000;
            options.rates.latency_percentile = 90.0;
            options.depth.iodepth_batch_complete_max = 16;
            options.schedule.runtime = runtime;
        });
        assert!(measured.ios > 0, "target {target}, runtime {runtime}");
    }
}

/// On the real clock time passes in the loop too, and it must not be counted in the wrong place.
#[test]
fn each_latency_is_the_real_time_between_the_calls() {
    let clock = Clock::calibrate();
    let one_at_a_time = measure::<true>(Time::Real(clock), 2000, 1, |_| ());
    one_at_a_time.sums_up(2000);
    one_at_a_time.is_true();
    for batch in [1, 8] {
        let deep =
            measure::<false>(Time::Real(clock), 5000, 32, |options| options.depth.iodepth_batch = batch);
        deep.sums_up(5000);
        deep.is_true();
    }
}
