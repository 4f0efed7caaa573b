//! The clock of the I/O loop: nanoseconds since the start of the run, the same in all processes.
//!
//! If the processor has a counter that measures time ([`counter`]), a reading takes about ten nanoseconds and no system
//! call. The counter is calibrated once against `CLOCK_MONOTONIC`, before anything forks. Otherwise, or if the job's
//! `clocksource` requests it, the clock is a system call.

use crate::{counter, time};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of fractional bits of the factor.
const SHIFT: u32 = 32;

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
    /// (counter − start) × factor / 2³²
    Counter {
        start: u64,
        factor: u64,
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
        let stated = counter::hertz().map(|hertz| factor(1_000_000_000, hertz));
        let is_possible = |stated: &u64| {
            measured(first, CHECK_NS).is_some_and(|measured| stated.abs_diff(measured) <= measured / 100)
        };
        let factor = stated.filter(is_possible).or_else(|| measured(first, CALIBRATION_NS));
        let Some(factor) = factor else { return Clock { kind: Kind::Monotonic, origin_ns } };
        let (start_ns, start) = first;
        Clock { kind: Kind::Counter { start, factor }, origin_ns: start_ns }
    }

    /// A description of the clock, for the user.
    pub fn description(&self) -> String {
        match self.kind {
            Kind::Counter { factor, .. } => {
                let megahertz = 1000.0 * (1u64 << SHIFT) as f64 / factor as f64;
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
            Kind::Counter { start, factor } => {
                ((u128::from(counter::read().wrapping_sub(start)) * u128::from(factor)) >> SHIFT) as u64
            }
            Kind::Kept(word) => word.load(Relaxed),
            Kind::Monotonic => time::monotonic_ns() - self.origin_ns,
            Kind::TimeOfDay => (time::wall_ns().wrapping_sub(self.origin_ns)) / 1000 * 1000,
        }
    }
}

/// The factor for a counter that ticks so often in this time.
fn factor(ns: u64, ticks: u64) -> u64 {
    ((u128::from(ns) << SHIFT) / u128::from(ticks)) as u64
}

/// The factor that this reading and one at least so much later give; `None` = the counter stands still.
fn measured((start_ns, start): (u64, u64), least_ns: u64) -> Option<u64> {
    let left = least_ns.saturating_sub(time::monotonic_ns().saturating_sub(start_ns));
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
    let (end_ns, end) = bracketed();
    let ticks = end.wrapping_sub(start);
    (ticks > 0).then(|| factor(end_ns - start_ns, ticks))
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
    fn time_of_day_has_microseconds() {
        let clock = Clock::calibrate().chosen(ClockSource::TimeOfDay);
        assert_eq!(clock.now() % 1000, 0);
    }
}
