//! The clock of the I/O loop: nanoseconds since the start of the run, the same in all processes.
//!
//! If the processor has an invariant time stamp counter, a reading takes about ten nanoseconds and no system call. The
//! counter is calibrated once against `CLOCK_MONOTONIC`, before anything forks. Otherwise, or if the job's
//! `clocksource` requests it, the clock is a system call.

use crate::time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of fractional bits of the factor.
const SHIFT: u32 = 32;

/// How long the counter is compared with the system's clock. Each bracketed reading is uncertain by about 50 ns, so two
/// of them this far apart give the rate to about 20 parts per million.
const CALIBRATION_NS: u64 = 5_000_000;

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
        if !invariant_counter() {
            return Clock { kind: Kind::Monotonic, origin_ns };
        }
        let (start_ns, start) = bracketed();
        let (end_ns, end) = loop {
            let reading = bracketed();
            if reading.0 - start_ns >= CALIBRATION_NS {
                break reading;
            }
        };
        let ticks = end.wrapping_sub(start);
        if ticks == 0 {
            return Clock { kind: Kind::Monotonic, origin_ns };
        }
        let factor = ((u128::from(end_ns - start_ns) << SHIFT) / u128::from(ticks)) as u64;
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
                ((u128::from(counter().wrapping_sub(start)) * u128::from(factor)) >> SHIFT) as u64
            }
            Kind::Kept(word) => word.load(Relaxed),
            Kind::Monotonic => time::monotonic_ns() - self.origin_ns,
            Kind::TimeOfDay => (time::wall_ns().wrapping_sub(self.origin_ns)) / 1000 * 1000,
        }
    }
}

/// Reads both clocks at the same moment. Returns the tightest of a few attempts.
fn bracketed() -> (u64, u64) {
    (0..5)
        .map(|_| {
            let before = counter();
            let ns = time::monotonic_ns();
            let after = counter();
            (after.wrapping_sub(before), ns, before.wrapping_add(after.wrapping_sub(before) / 2))
        })
        .min()
        .map_or((0, 0), |(_, ns, ticks)| (ns, ticks))
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn counter() -> u64 {
    0
}

/// Whether the counter ticks at one rate in all frequency and sleep states of the processor (CPUID 8000_0007h, EDX bit
/// 8), and the kernel trusts it too.
#[cfg(target_arch = "x86_64")]
fn invariant_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    // The kernel removes an unreliable counter from this list. An unreadable list is not evidence against the counter.
    invariant && source.map_or(true, |list| list.contains("tsc"))
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant_counter() -> bool {
    false
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
