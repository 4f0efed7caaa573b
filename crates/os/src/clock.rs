//! The clock of the I/O loop: nanoseconds since the start of the run, the same in all processes.
//!
//! If the processor has a counter that measures time ([`counter`]), a reading takes about ten nanoseconds and no system
//! call. The counter is calibrated once against `CLOCK_MONOTONIC`, before anything forks. Otherwise, or if the job's
//! `clocksource` requests it, the clock is a system call.

use crate::{counter, time};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long the counter is compared with the system's clock. Each bracketed reading is uncertain by about 50 ns, so two
/// of them this far apart give the rate to about 20 parts per million.
const CALIBRATION_NS: u64 = 5_000_000;
/// The same if the processor states the counter's rate, and the measurement only checks it.
const CHECK_NS: u64 = 1_000_000;
/// How old a first reading may be.
const OLDEST_NS: u64 = 1_000_000_000;

/// The first reading, see [`begin_calibration`], and when it was made by a clock that does not stop while the machine is suspended
/// (the counter may begin anew then).
static FIRST: OnceLock<(u64, (u64, u64))> = OnceLock::new();

/// Reads the clocks for the first time. Called where the program begins, so that [`Clock::calibrate`] need not wait long.
pub fn begin_calibration() {
    FIRST.get_or_init(|| (time::clock_ns(libc::CLOCK_BOOTTIME), bracketed()));
}

/// The clock that a job requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The best clock of this machine: the processor's counter if it is reliable.
    Best,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `gettimeofday`: the wall clock, in whole microseconds.
    TimeOfDay,
}

/// A source of time stamps. Copies of one clock agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    kind: Kind,
    /// The monotonic time at which the run began.
    origin_ns: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The processor's counter since it had the value `start`.
    Counter {
        start: u64,
        tick: Tick,
    },
    Monotonic,
    /// The time that another thread writes into this word.
    Kept(&'static AtomicU64),
    /// The wall clock in whole microseconds, as gettimeofday(2) returns it.
    TimeOfDay,
}

impl Clock {
    /// The best clock of this machine.
    pub fn calibrate() -> Clock {
        let origin_ns = time::monotonic_ns();
        if !counter::is_reliable() {
            return Clock { kind: Kind::Monotonic, origin_ns };
        }
        let now = time::clock_ns(libc::CLOCK_BOOTTIME);
        let first =
            FIRST.get().filter(|(at, _)| now.saturating_sub(*at) < OLDEST_NS).map(|(_, first)| *first);
        let first = first.unwrap_or_else(bracketed);
        // The rate that a processor states is exact, where it is not plainly wrong.
        let stated = counter::hertz().map(|hertz| Tick::new(1_000_000_000, hertz));
        let is_possible = |stated: &Tick| {
            measured(first, CHECK_NS)
                .is_some_and(|measured| (stated.ns() / measured.ns() - 1.0).abs() <= 0.01)
        };
        let tick = stated.filter(is_possible).or_else(|| measured(first, CALIBRATION_NS));
        let Some(tick) = tick else { return Clock { kind: Kind::Monotonic, origin_ns } };
        let (start_ns, start) = first;
        Clock { kind: Kind::Counter { start, tick }, origin_ns: start_ns }
    }

    /// A description of the clock, for the user.
    pub fn description(&self) -> String {
        match self.kind {
            Kind::Counter { tick, .. } => {
                let megahertz = 1000.0 / tick.ns();
                format!("the processor's invariant counter, {megahertz:.2} MHz")
            }
            Kind::Monotonic => "the system's, the processor has no counter to rely on".to_owned(),
            Kind::Kept(_) => "a word that a separate thread maintains".to_owned(),
            Kind::TimeOfDay => "the system's wall clock".to_owned(),
        }
    }

    /// This clock, or the one that a job requests instead.
    pub fn chosen(self, source: ClockSource) -> Clock {
        match source {
            _ if matches!(self.kind, Kind::Kept(_)) => self,
            ClockSource::Best => self,
            ClockSource::Monotonic => Clock { kind: Kind::Monotonic, ..self },
            ClockSource::TimeOfDay => {
                // Shift the origin by the difference between the two clocks, so that it denotes the same moment.
                let distance = time::wall_ns().wrapping_sub(time::monotonic_ns());
                Clock { kind: Kind::TimeOfDay, origin_ns: self.origin_ns.wrapping_add(distance) }
            }
        }
    }

    /// A clock that reads this word, which another thread keeps up to date.
    pub fn kept_in(self, word: &'static AtomicU64) -> Clock {
        Clock { kind: Kind::Kept(word), ..self }
    }

    /// `CLOCK_MONOTONIC` at the start of the run, if this clock is that one.
    pub fn monotonic_origin(&self) -> Option<u64> {
        matches!(self.kind, Kind::Monotonic).then_some(self.origin_ns)
    }

    /// Nanoseconds since the start of the run.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.kind {
            Kind::Counter { start, tick } => tick.times(counter::read().wrapping_sub(start)),
            Kind::Kept(word) => word.load(Relaxed),
            Kind::Monotonic => time::monotonic_ns() - self.origin_ns,
            Kind::TimeOfDay => (time::wall_ns().wrapping_sub(self.origin_ns)) / 1000 * 1000,
        }
    }
}

/// The time between two ticks of the counter: `factor` / 2^(64 - `shift`) nanoseconds. So the upper half of a product is
/// the result, and all that a processor has to do after a reading is to shift by a number that is mostly 0, and to
/// multiply.
#[derive(Clone, Copy, Debug)]
struct Tick {
    factor: u64,
    shift: u32,
}

impl Tick {
    /// That of a counter that ticks so often in this time.
    fn new(ns: u64, ticks: u64) -> Tick {
        // A factor below 2^64 with as many bits as possible.
        let shift = (ns / ticks).checked_ilog2().map_or(0, |log| log + 1);
        let factor = (u128::from(ns) << (64 - shift)) / u128::from(ticks);
        Tick { factor: u64::try_from(factor).unwrap_or(u64::MAX), shift }
    }

    fn ns(self) -> f64 {
        self.factor as f64 / ((1u128 << (64 - self.shift)) as f64)
    }

    /// The time of so many ticks.
    #[inline(always)]
    fn times(self, ticks: u64) -> u64 {
        ((u128::from(ticks << self.shift) * u128::from(self.factor)) >> 64) as u64
    }
}

/// What this reading and one at least so much later give; `None` = the counter stands still.
fn measured((start_ns, start): (u64, u64), least_ns: u64) -> Option<Tick> {
    let left = least_ns.saturating_sub(time::monotonic_ns().saturating_sub(start_ns));
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
    let (end_ns, end) = bracketed();
    let ticks = end.wrapping_sub(start);
    (ticks > 0).then(|| Tick::new(end_ns - start_ns, ticks))
}

/// Reads both clocks at the same moment. Returns the tightest of a few attempts.
fn bracketed() -> (u64, u64) {
    (0..5)
        .map(|_| {
            let before = counter::read();
            let ns = time::monotonic_ns();
            let after = counter::read();
            (after.wrapping_sub(before), ns, before.wrapping_add(after.wrapping_sub(before) / 2))
        })
        .min()
        .map_or((0, 0), |(_, ns, ticks)| (ns, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_with_each_other_and_never_go_back() {
        let cpu = Clock::calibrate();
        for source in [ClockSource::Best, ClockSource::Monotonic, ClockSource::TimeOfDay] {
            let clock = cpu.chosen(source);
            let mut last = clock.now();
            for _ in 0..1000 {
                let now = clock.now();
                assert!(now >= last, "{source:?}");
                last = now;
            }
            let (before, middle, after) = (cpu.now(), clock.now(), cpu.now());
            // gettimeofday has a resolution of one microsecond, and calibration errs by some 20 ppm of the time since
            // then.
            let tolerance = 10_000 + after / 1000;
            assert!(middle + tolerance >= before && middle <= after + tolerance, "{source:?}");
        }
    }

    #[test]
    fn ticks_of_any_length_are_converted() {
        const SECOND: u64 = 1_000_000_000;
        // From a Raspberry Pi to a processor of the future; 1 GHz is where the shift ends.
        for hertz in [19_200_000, 24_000_000, 999_999_999, SECOND, SECOND + 1, 2_596_096_000, 7_000_000_000] {
            let tick = Tick::new(SECOND, hertz);
            for seconds in [1, 1000, 1_000_000_000] {
                let (ns, expected) = (tick.times(hertz * seconds), SECOND * seconds);
                // The last bit of the factor is worth a nanosecond in centuries.
                assert!(expected - ns <= 1 + seconds / 100_000_000, "{hertz} Hz, {seconds} s: {ns}");
            }
            assert!((tick.ns() * hertz as f64 / SECOND as f64 - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn time_of_day_has_microseconds() {
        let clock = Clock::calibrate().chosen(ClockSource::TimeOfDay);
        assert_eq!(clock.now() % 1000, 0);
    }
}
