//! `--idle-prof`: how idle the CPUs are while the jobs run.
//!
//! One thread per CPU, with the lowest priority of the kernel (`SCHED_IDLE`), repeats a unit of work that takes a few
//! microseconds. It gets the CPU time that the jobs do not use. Idleness is the number of units times the time that a
//! unit takes, as a share of the elapsed time. The time that a unit takes is measured before the run, on each CPU, as
//! CPU time of the thread.

use crate::clock::Clock;
use crate::{processors, run_on, run_when_idle};
use iolite_os::futex;
use iolite_os::memory;
use iolite_os::time;
use iolite_stats::{IdleCpu, IdleReport};
use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::{Duration, Instant};

/// The number of units over which the time of a unit is measured.
const CALIBRATION_UNITS: u32 = 1000;

/// How long calibration may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// The state of a thread. It begins with 0, while the thread measures the time of a unit.
mod state {
    pub const READY: u32 = 1;
    pub const FAILED: u32 = 2;
}

/// The values that one thread publishes. All fields begin with 0.
#[derive(Debug)]
#[repr(C, align(128))]
struct Counter {
    state: AtomicU32,
    /// Why it failed.
    errno: AtomicU32,
    /// Picoseconds that a unit takes.
    unit_ps: AtomicU64,
    /// Units done while the jobs ran.
    units: AtomicU64,
}

/// The period in which units count. Written by the controller.
#[derive(Debug)]
#[repr(C, align(128))]
struct Period {
    /// 0 = it has not begun, 1 = it has.
    begun: AtomicU32,
    began_ns: AtomicU64,
    /// 0 = it has not ended.
    ended_ns: AtomicU64,
}

/// The measurement, shared by the controller and the process that runs the threads.
#[derive(Clone, Debug)]
pub struct IdleMeter {
    cpus: Vec<u32>,
    period: &'static Period,
    counters: &'static [Counter],
    per_cpu: bool,
    clock: Clock,
}

impl IdleMeter {
    /// A measurement of the CPUs that this process may use.
    pub fn new(per_cpu: bool, clock: Clock) -> io::Result<IdleMeter> {
        let cpus = processors()?;
        let pages = memory::map_shared(size_of::<Period>() + cpus.len() * size_of::<Counter>())?;
        // SAFETY: the mapping is large enough for both, aligned to a page, the size of a Period is a multiple of the
        // alignment of a Counter, nothing is ever unmapped, and zero bytes are valid values of both.
        let (period, counters) = unsafe {
            let first = pages.cast::<u8>().add(size_of::<Period>()).cast::<Counter>();
            (&*pages.cast::<Period>(), std::slice::from_raw_parts(first, cpus.len()))
        };
        Ok(IdleMeter { cpus, period, counters, per_cpu, clock })
    }

    /// Starts the threads in this process, which ends with them.
    pub fn run(&self) -> i32 {
        std::thread::scope(|scope| {
            for (counter, &cpu) in self.counters.iter().zip(&self.cpus) {
                let started = std::thread::Builder::new().name(format!("iolite-idle-{cpu}")).spawn_scoped(
                    scope,
                    move || {
                        self.work_on(cpu, counter);
                    },
                );
                if let Err(error) = started {
                    counter.fail(&error);
                }
            }
        });
        0
    }

    fn work_on(&self, cpu: u32, counter: &Counter) {
        let prepared = run_on(&[cpu]).and_then(|()| {
            counter.unit_ps.store(calibrate(), Relaxed);
            run_when_idle()
        });
        if let Err(error) = prepared {
            counter.fail(&error);
            return;
        }
        counter.state.store(state::READY, Release);
        while self.period.begun.load(Acquire) == 0 {
            futex::wait(&self.period.begun, 0);
        }
        let mut units = 0;
        while self.period.ended_ns.load(Relaxed) == 0 {
            unit_of_work();
            units += 1;
            counter.units.store(units, Relaxed);
        }
    }

    /// Waits until all threads have measured the duration of a unit.
    pub fn wait_until_ready(&self) -> io::Result<()> {
        let patience = Instant::now() + PATIENCE;
        for counter in self.counters {
            loop {
                match counter.state.load(Acquire) {
                    state::READY => break,
                    state::FAILED => {
                        return Err(io::Error::from_raw_os_error(counter.errno.load(Relaxed) as i32));
                    }
                    _ if Instant::now() > patience => {
                        return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
                    }
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        }
        Ok(())
    }

    /// Begins the period: the jobs start now.
    pub fn begin(&self) {
        self.period.began_ns.store(self.clock.now(), Relaxed);
        self.period.begun.store(1, Release);
        futex::wake(&self.period.begun);
    }

    /// Ends the period: the jobs are over.
    pub fn end(&self) {
        self.period.ended_ns.store(self.clock.now().max(1), Relaxed);
    }

    /// The idleness up to now, or up to the end of the period.
    pub fn report(&self) -> IdleReport {
        let end = match self.period.ended_ns.load(Relaxed) {
            0 => self.clock.now(),
            ended => ended,
        };
        let passed_ps = end.saturating_sub(self.period.began_ns.load(Relaxed)) as f64 * 1000.0;
        let cpus = self.cpus.iter().zip(self.counters).map(|(&cpu, counter)| {
            let unit_ps = counter.unit_ps.load(Relaxed) as f64;
            let worked_ps = counter.units.load(Relaxed) as f64 * unit_ps;
            let percent = if passed_ps > 0.0 { (100.0 * worked_ps / passed_ps).min(100.0) } else { 0.0 };
            IdleCpu { cpu, percent, unit_us: unit_ps / 1e6 }
        });
        IdleReport { cpus: cpus.collect(), per_cpu: self.per_cpu }
    }
}

impl Counter {
    fn fail(&self, error: &io::Error) {
        self.errno.store(error.raw_os_error().unwrap_or(libc::EAGAIN).unsigned_abs(), Relaxed);
        self.state.store(state::FAILED, Release);
    }
}

/// Only measures the time that a unit takes on each CPU.
///
/// # Errors
/// When a CPU cannot be used.
pub fn calibrate_cpus() -> io::Result<IdleReport> {
    let measure = |cpu: u32| {
        let unit_ps = std::thread::spawn(move || run_on(&[cpu]).map(|()| calibrate()));
        let unit_ps = unit_ps.join().map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))??;
        Ok(IdleCpu { cpu, percent: 0.0, unit_us: unit_ps as f64 / 1e6 })
    };
    let cpus = processors()?.into_iter().map(measure).collect::<io::Result<_>>()?;
    Ok(IdleReport { cpus, per_cpu: false })
}

/// Picoseconds that a unit takes on this CPU.
fn calibrate() -> u64 {
    for _ in 0..CALIBRATION_UNITS / 10 {
        unit_of_work();
    }
    let began = time::thread_cpu_ns();
    for _ in 0..CALIBRATION_UNITS {
        unit_of_work();
    }
    ((time::thread_cpu_ns() - began) * 1000 / u64::from(CALIBRATION_UNITS)).max(1)
}

/// A few microseconds of arithmetic. Each step depends on the one before.
fn unit_of_work() {
    const STEPS: u64 = 4096;
    let mut value = black_box(0x9e37_79b9_7f4a_7c15u64);
    for step in 0..STEPS {
        value = (value ^ step).wrapping_mul(0xd134_2543_de82_ef95).rotate_left(17);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_is_the_unused_share_of_cpu_time() {
        let meter = IdleMeter::new(true, Clock::calibrate()).unwrap();
        // In 4 s the first CPU spent 2 s on units of 2 ms.
        meter.period.began_ns.store(1_000_000_000, Relaxed);
        meter.period.ended_ns.store(5_000_000_000, Relaxed);
        meter.counters[0].unit_ps.store(2_000_000_000, Relaxed);
        meter.counters[0].units.store(1000, Relaxed);
        let report = meter.report();
        assert_eq!((report.cpus[0].percent, report.cpus[0].unit_us), (50.0, 2000.0));
        assert_eq!(report.cpus.len(), processors().unwrap().len());
        meter.counters[0].units.store(1_000_000, Relaxed);
        assert_eq!(meter.report().cpus[0].percent, 100.0, "never more than there was");
    }

    #[test]
    fn threads_measure_and_work() {
        let meter = IdleMeter::new(false, Clock::calibrate()).unwrap();
        let theirs = meter.clone();
        let host = std::thread::spawn(move || theirs.run());
        meter.wait_until_ready().unwrap();
        meter.begin();
        // Even a busy machine leaves some time over.
        let patience = Instant::now() + Duration::from_secs(60);
        while meter.counters.iter().all(|counter| counter.units.load(Relaxed) == 0) {
            assert!(Instant::now() < patience);
            std::thread::sleep(Duration::from_millis(1));
        }
        meter.end();
        assert_eq!(host.join().unwrap(), 0);
        assert!(meter.report().system() > 0.0);
        assert!(meter.report().unit_mean() > 0.0);
    }
}
