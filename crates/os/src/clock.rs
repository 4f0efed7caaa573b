//! The clock of the I/O loop: nanoseconds since the start of the run, the same in all processes.
//!
//! Where the processor has an invariant time stamp counter, a reading costs about ten nanoseconds and no call into
//! the kernel. The counter is calibrated once, before anything forks, against `CLOCK_MONOTONIC`. Elsewhere, or where
//! `clocksource` asks for it, the operating system is asked.

use crate::time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many binary digits of the factor are behind the point.
const SHIFT: u32 = 32;

/// How long the counter is compared with the system's clock. Two bracketed readings of some 50 ns uncertainty over
/// this time know the rate to about 20 parts per million.
const CALIBRATION_NS: u64 = 5_000_000;

/// Which clock a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The best of this machine: the processor's counter where it can be relied on.
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
    /// What another thread writes there.
    Kept(&'static AtomicU64),
    /// Microseconds, like the system call it is named after, from the wall clock.
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

    /// What it reads, in words.
    pub fn description(&self) -> String {
        match self.kind {
            Kind::Counter { factor, .. } => {
                let megahertz = 1000.0 * (1u64 << SHIFT) as f64 / factor as f64;
                format!("the processor's invariant counter, {megahertz:.2} MHz")
            }
            Kind::Monotonic => "the system's, the processor has no counter to rely on".to_owned(),
            Kind::Kept(_) => "a word that a thread of its own keeps".to_owned(),
            Kind::TimeOfDay => "the system's wall clock".to_owned(),
        }
    }

    /// The clock that a job asked for.
    pub fn chosen(self, source: ClockSource) -> Clock {
        match source {
            _ if matches!(self.kind, Kind::Kept(_)) => self,
            ClockSource::Best => self,
            ClockSource::Monotonic => Clock { kind: Kind::Monotonic, ..self },
            ClockSource::TimeOfDay => {
                // The wall clock's distance from the monotonic one, so that the origin stays the same.
                let distance = time::wall_ns().wrapping_sub(time::monotonic_ns());
                Clock { kind: Kind::TimeOfDay, origin_ns: self.origin_ns.wrapping_add(distance) }
            }
        }
    }

    /// This clock, read from a word that somebody keeps.
    pub fn kept_in(self, word: &'static AtomicU64) -> Clock {
        Clock { kind: Kind::Kept(word), ..self }
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

/// Both clocks at the same moment: the tightest of a few attempts.
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

/// Does the counter tick at one rate whatever the processor's frequency and sleep states (CPUID 8000_0007h, EDX bit
/// 8), and does the kernel itself trust it?
#[cfg(target_arch = "x86_64")]
fn invariant_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    // The kernel takes an unreliable counter off this list. A list that cannot be read says nothing against it.
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
            // One microsecond is the resolution of gettimeofday; calibration is good to some 20 ppm.
            assert!(middle + 10_000 >= before && middle <= after + 10_000, "{source:?}");
        }
    }

    #[test]
    fn time_of_day_has_microseconds() {
        let clock = Clock::calibrate().chosen(ClockSource::TimeOfDay);
        assert_eq!(clock.now() % 1000, 0);
    }
}
