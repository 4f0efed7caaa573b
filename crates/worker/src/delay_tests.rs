//! Does the loop report what a storage of known delays does? An engine that completes on a timer stands for the
//! storage: on a clock that only the engine moves every figure is known, and on the real one the engine notes itself
//! how long each I/O took.

use super::*;
use iolite_engine::{Completion, EngineError, FileSpec, OpenMode, Queued, Unit};
use iolite_options::{JobOptions, ReadWrite, RunOptions, SizeValue};
use iolite_os::shared::Arena;
use iolite_plan::Plan;
use iolite_stats::{Latency, bucket_of};
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What handing over one unit takes on the engine's clock.
const QUEUE_NS: u64 = 100;

/// Delays of 10 µs and more: mostly short, some long, a few very long.
fn delay(number: u64) -> u64 {
    match number % 100 {
        99 => 2_000_000,
        90.. => 150_000,
        position => 10_000 + position * 500,
    }
}

/// The time as the engine sees it.
#[derive(Clone, Copy)]
pub(super) enum Time {
    /// It passes only when the engine says so.
    Moved(&'static AtomicU64),
    /// It passes.
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

/// Completes each unit after its delay, and notes how long it really took.
pub(super) struct TimerEngine<const SYNCHRONOUS: bool> {
    time: Time,
    issued: u64,
    /// Every so many units move only a half of their bytes; 0 = all move all.
    short_every: u64,
    /// Queued units with their delays.
    queued: Vec<(u32, u64, u64)>,
    /// Committed units with when they were committed and when they are due.
    flying: Vec<(u32, u64, u64, u64)>,
    took: Arc<Mutex<Vec<u64>>>,
}

impl<const SYNCHRONOUS: bool> TimerEngine<SYNCHRONOUS> {
    pub(super) fn new(time: Time, short_every: u64) -> Self {
        let (queued, flying, took) = Default::default();
        TimerEngine { time, issued: 0, short_every, queued, flying, took }
    }
}

impl<const SYNCHRONOUS: bool> Engine for TimerEngine<SYNCHRONOUS> {
    const SYNCHRONOUS: bool = SYNCHRONOUS;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self, _: u32) -> Option<RawFd> {
        None
    }

    fn prepare(&mut self, _: &BufferLayout) -> Result<(), EngineError> {
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let delay = delay(self.issued);
        self.issued += 1;
        let is_short = self.short_every > 0 && self.issued.is_multiple_of(self.short_every);
        let length = if is_short { unit.length.div_ceil(2) } else { unit.length };
        if SYNCHRONOUS {
            let began = self.time.now();
            self.time.pass(delay);
            self.took.lock().unwrap().push(self.time.now() - began);
            return Queued::Completed(Ok(length));
        }
        self.time.pass(QUEUE_NS);
        self.queued.push((unit.index, delay, length));
        Queued::Queued
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        let now = self.time.now();
        let count = self.queued.len();
        self.flying
            .extend(self.queued.drain(..).map(|(index, delay, length)| (index, now, now + delay, length)));
        Ok(count)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        _: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.flying.sort_by_key(|&(_, _, due, _)| due);
        if min > 0 {
            self.time.wait_until(self.flying[min - 1].2);
        }
        let now = self.time.now();
        let due = self.flying.iter().take(max).take_while(|unit| unit.2 <= now).count();
        for (unit, committed, _, length) in self.flying.drain(..due) {
            self.took.lock().unwrap().push(now - committed);
            done.push(Completion { unit, outcome: Ok(length) });
        }
        Ok(())
    }
}

/// What the loop reports, and how long the engine took for each I/O, sorted.
struct Measured {
    latencies: [Latency; 3],
    ios: u64,
    issued: u64,
    bytes: u64,
    short: u64,
    /// Units by the depth they made, all of them.
    levels: u64,
    took: Vec<u64>,
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
        rw: ReadWrite::RandRead,
        size: Some(SizeValue::Bytes(count * 4096)),
        iodepth: depth,
        slat_percentiles: true,
        lat_percentiles: true,
        ..JobOptions::default()
    };
    change(&mut options);
    let engine = TimerEngine::<SYNCHRONOUS>::new(time, short_every);
    let took = Arc::clone(&engine.took);
    let (arena, done) = run(options, time.clock(), engine);
    assert_eq!(done, Ok(()));
    let stats = &arena.slot(0).stats;
    let mut took = std::mem::take(&mut *took.lock().unwrap());
    took.sort_unstable();
    Measured {
        latencies: stats.latencies(0),
        ios: stats.directions[0].ios.get(),
        issued: stats.directions[0].issued.get(),
        bytes: stats.directions[0].bytes.get(),
        short: stats.directions[0].short.get(),
        levels: stats.depths().level.iter().sum(),
        took,
    }
}

/// Runs a job with this engine: what it measured, and why it has failed.
pub(super) fn run<E: Engine>(
    options: JobOptions,
    clock: Clock,
    engine: E,
) -> (Arc<Arena>, Result<(), String>) {
    let machine = iolite_host::MadeUp::new();
    let plan = Plan::build(vec![options], &RunOptions::default(), &machine).expect("the plan is in order");
    let layouts = plan.layouts(&machine).expect("the layout is in order");
    run_plan(&plan, &layouts[0], clock, engine)
}

/// Runs the only worker of this plan with this engine: what it measured, and why it has failed.
pub(super) fn run_plan<E: Engine>(
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
    };
    arena.slot(0).control.open_gate();
    let done = worker.with_engine(engine, Logs::default()).map_err(|stop| stop.what);
    (arena, done)
}

/// The value below or at which so many per cent of the sorted values are.
fn percentile(sorted: &[u64], percent: f64) -> u64 {
    let rank = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    sorted[rank.max(1) - 1]
}

impl Measured {
    /// Every I/O was issued once, completed once, and is in each histogram once.
    fn sums_up(&self, count: u64) {
        assert_eq!((self.issued, self.ios, self.took.len() as u64), (count, count, count));
        let [slat, clat, lat] = &self.latencies;
        for latency in [clat, lat] {
            assert_eq!((latency.moments.count, latency.histogram.total()), (count, count));
        }
        assert_eq!(slat.moments.count, slat.histogram.total());
    }

    /// Completion latency is what the engine says, at each of these percentiles.
    fn is_true_at(&self, percentiles: &[f64]) {
        assert_eq!(self.untrue_at(percentiles), [""; 0]);
    }

    /// Where it is more than a bucket off.
    fn untrue_at(&self, percentiles: &[f64]) -> Vec<String> {
        let reported = self.latencies[1].histogram.percentiles(percentiles);
        let compared = percentiles.iter().zip(reported);
        let told = compared.map(|(&percent, reported)| (percent, reported, percentile(&self.took, percent)));
        told.filter(|&(_, reported, truth)| bucket_of(reported).abs_diff(bucket_of(truth)) > 1)
            .map(|(percent, reported, truth)| format!("p{percent}: {reported} reported, {truth} true"))
            .collect()
    }
}

const PERCENTILES: [f64; 8] = [1.0, 10.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0];

pub(super) fn moved() -> Time {
    Time::Moved(Box::leak(Box::new(AtomicU64::new(1))))
}

/// With one I/O at a time there is nothing to guess: every nanosecond is known.
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
        measured.is_true_at(&PERCENTILES);
    }
}

/// At depth, the storage's delays are met within the time that handing over a unit takes, whatever is batched.
#[test]
fn at_depth_the_delays_are_those_of_the_storage() {
    const COUNT: u64 = 20_000;
    for (submit, complete) in [(1, 1), (16, 16), (32, 1)] {
        let measured = measure::<false>(moved(), COUNT, 32, |options| {
            options.iodepth_batch = submit;
            options.iodepth_batch_complete_max = complete;
        });
        measured.sums_up(COUNT);
        measured.is_true_at(&PERCENTILES);
        let [slat, clat, lat] = &measured.latencies;
        assert_eq!(clat.moments.sum, measured.took.iter().map(|&took| u128::from(took)).sum());
        assert_eq!(lat.moments.sum, slat.moments.sum + clat.moments.sum);
        // The first of a batch waits for the others to be handed over, the last only for itself.
        assert!(slat.moments.min >= QUEUE_NS && slat.moments.max <= u64::from(submit) * QUEUE_NS);
    }
}

/// An I/O that took several turns is one I/O: it is in each histogram once, and all of its bytes are counted.
#[test]
fn short_ios_are_counted_once() {
    const COUNT: u64 = 1000;
    let check = |measured: Measured, synchronous: bool| {
        assert_eq!((measured.issued, measured.ios, measured.bytes), (COUNT, COUNT, COUNT * 4096));
        assert_eq!(measured.levels, COUNT, "the rest makes no depth of its own");
        // Every seventh turn is short, and each short one makes one turn more.
        assert_eq!((measured.short, measured.took.len() as u64), (COUNT / 6, COUNT + COUNT / 6));
        for (index, latency) in measured.latencies.iter().enumerate() {
            let expected = if index == 0 && synchronous { 0 } else { COUNT };
            assert_eq!((latency.moments.count, latency.histogram.total()), (expected, expected), "{index}");
        }
    };
    check(measure_with_shorts::<true>(moved(), COUNT, 1, 7, |_| ()), true);
    for (depth, submit) in [(1, 1), (8, 1), (32, 16)] {
        let measured = measure_with_shorts::<false>(moved(), COUNT, depth, 7, |options| {
            options.iodepth_batch = submit;
        });
        check(measured, false);
    }
    // All that is in flight may be rests of short I/Os.
    let drained = measure_with_shorts::<false>(moved(), COUNT, 8, 7, |options| {
        options.iodepth_batch = 8;
        options.iodepth_low = 1;
        options.iodepth_batch_complete_max = 8;
    });
    check(drained, false);
    // With a ramp, those that began before its end are in none: at some of these ends, the first part of one is done.
    for ramp_time in (500..3000).step_by(100) {
        let after =
            measure_with_shorts::<false>(moved(), COUNT, 8, 7, |options| options.ramp_time = ramp_time);
        assert!(after.ios > 0 && after.ios < COUNT);
        assert_eq!(after.bytes, after.ios * 4096, "{ramp_time}");
        assert_eq!(after.latencies.map(|latency| latency.moments.count), [after.ios; 3], "{ramp_time}");
    }
    // One of so many bytes ends with the I/O that moves the last of them.
    let after = measure_with_shorts::<true>(moved(), COUNT, 1, 7, |options| options.ramp_size = 300 * 4096);
    assert_eq!(after.ios, COUNT - 300);
}

/// Whenever the time is over, the last depth that was tried has been measured: a search does not go on at the end.
#[test]
fn a_search_for_a_depth_ends_with_a_measurement() {
    for (target, runtime) in
        [100, 1000].into_iter().flat_map(|target| (1..60).map(move |end| (target, end * 500)))
    {
        let measured = measure::<false>(moved(), 1_000_000, 16, |options| {
            options.latency_target = target;
            options.latency_window = 1000;
            options.latency_percentile = 90.0;
            options.iodepth_batch_complete_max = 16;
            options.runtime = runtime;
        });
        assert!(measured.ios > 0, "target {target}, runtime {runtime}");
    }
}

/// On the real clock: what the engine noted, and what the loop reports. The ends of the distribution are left out, for
/// there the machine may have stopped the worker between the two looks at the clock; and a busy one does that so often
/// that some goes are allowed.
#[test]
fn on_the_real_clock_the_percentiles_are_true() {
    const GOES: usize = 5;
    let clock = Clock::calibrate();
    let one = || measure::<true>(Time::Real(clock), 2000, 1, |_| ());
    let deep = || measure::<false>(Time::Real(clock), 20_000, 32, |_| ());
    let untrue = |measure: &dyn Fn() -> Measured, count| {
        let go = |_| {
            let measured = measure();
            measured.sums_up(count);
            measured.untrue_at(&[10.0, 50.0, 90.0])
        };
        let told: Vec<_> = (0..GOES).map(go).take_while(|untrue| !untrue.is_empty()).collect();
        (told.len() == GOES).then_some(told)
    };
    assert_eq!(untrue(&one, 2000), None);
    assert_eq!(untrue(&deep, 20_000), None);
}
