//! `cpuio`: keeps a CPU busy for a share of the time.
//!
//! A unit is a busy spell of `cpuchunks` microseconds of CPU time. The rest between two units is as long as the load
//! requires. It is computed from the total time since the first cycle and the CPU time used in it, so that the average
//! load is right even if the system runs the thread late, or a spell is shorter than the work of falling asleep.

use iolite_engine::{Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Unit};
use iolite_options::engines::{CpuMode, CpuioOptions};
use std::time::{Duration, Instant};

/// How long a busy spell or a rest continues before the loop checks whether the job must end.
const SLICE: Duration = Duration::from_millis(10);

/// How long the CPU is kept busy between two reads of the clock.
const STRETCH: Duration = Duration::from_micros(20);

/// The most time that a thread may catch up if it got less than its share.
const MOST_DEBT: Duration = Duration::from_secs(1);

/// How many numbers are sorted at once: a fraction of a millisecond of work.
const SORTED: usize = 4096;

/// Cycles of work and rest.
#[derive(Debug)]
pub struct CpuioEngine {
    job: String,
    options: CpuioOptions,
    /// The busy part of a cycle.
    busy: Duration,
    /// How far the present cycle is.
    cycle: Cycle,
    /// The start of the time to which the load refers, and the CPU time of the thread then; `None` = not started.
    begun: Option<(Instant, Duration)>,
    /// The numbers to sort.
    numbers: Vec<u32>,
    random: u32,
}

/// How far a cycle is.
#[derive(Clone, Copy, Debug)]
enum Cycle {
    /// This much CPU time is left of the busy spell.
    Busy(Duration),
    /// The rest ends then.
    Rest(Instant),
}

impl CpuioEngine {
    /// An engine that has not begun.
    ///
    /// # Errors
    /// Never: it needs nothing of the system.
    pub fn new(config: &EngineConfig, options: &CpuioOptions) -> Result<Self, EngineError> {
        Ok(CpuioEngine {
            job: config.job.clone(),
            options: options.clone(),
            busy: Duration::from_micros(options.cpuchunks.max(1)),
            cycle: Cycle::Rest(Instant::now()),
            begun: None,
            numbers: match options.cpumode {
                CpuMode::Noop => Vec::new(),
                CpuMode::Qsort => vec![0; SORTED],
            },
            random: config.seed as u32 | 1,
        })
    }

    /// Works for a slice of the busy spell. Returns the new state of the cycle.
    fn work(&mut self, left: Duration) -> Cycle {
        let before = thread_time();
        let goal = left.min(SLICE);
        let used = loop {
            self.stretch();
            let used = thread_time().saturating_sub(before);
            if used >= goal {
                break used;
            }
        };
        match left.checked_sub(used) {
            Some(left) if !left.is_zero() => Cycle::Busy(left),
            _ => Cycle::Rest(self.rested()),
        }
    }

    /// Keeps the CPU busy for a moment.
    fn stretch(&mut self) {
        let until = Instant::now() + STRETCH;
        while Instant::now() < until {
            if self.numbers.is_empty() {
                (0..256).for_each(|_| std::hint::spin_loop());
                continue;
            }
            for number in &mut self.numbers {
                // Marsaglia's xorshift.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 17;
                self.random ^= self.random << 5;
                *number = self.random;
            }
            self.numbers.sort_unstable();
            std::hint::black_box(&mut self.numbers);
        }
    }

    /// When the average load will be right, if the thread rests until then.
    fn rested(&mut self) -> Instant {
        let share = f64::from(self.options.cpuload) / 100.0;
        let (now, used) = (Instant::now(), thread_time());
        let (begun, before) = *self.begun.get_or_insert((now, used));
        let due = begun + used.saturating_sub(before).div_f64(share);
        if due + MOST_DEBT < now {
            // The thread got too little CPU time for too long. Ignore the excess.
            self.begun = Some((now - MOST_DEBT, used));
            return now;
        }
        due
    }
}

/// The CPU time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the struct that it is given. This clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Engine for CpuioEngine {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> std::io::Result<()> {
        Ok(())
    }

    fn announcements(&self) -> Vec<String> {
        let CpuioOptions { cpuload, cpuchunks, cpumode, .. } = self.options;
        let (job, mode) = (&self.job, cpumode.keyword());
        vec![format!("{job} ({mode}): ioengine=cpuio, cpuload={cpuload}, cpucycle={cpuchunks}")]
    }

    unsafe fn queue(&mut self, _unit: &Unit) -> Queued {
        let left = match self.cycle {
            Cycle::Busy(left) => left,
            Cycle::Rest(until) => {
                let rest = until.saturating_duration_since(Instant::now());
                if !rest.is_zero() {
                    std::thread::sleep(rest.min(SLICE));
                    // No work is under way.
                    return Queued::Completed(Err(Errno(libc::EINTR)));
                }
                self.busy
            }
        };
        self.begun.get_or_insert_with(|| (Instant::now(), thread_time()));
        self.cycle = self.work(left);
        match self.cycle {
            Cycle::Busy(_) => Queued::Busy,
            Cycle::Rest(_) => Queued::Completed(Ok(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(cpuload: u32, cpumode: CpuMode) -> CpuioEngine {
        let options = CpuioOptions { cpuload, cpuchunks: 2000, cpumode, ..CpuioOptions::default() };
        CpuioEngine::new(&EngineConfig::default(), &options).unwrap()
    }

    /// Does this many cycles; the CPU time that they took.
    fn cycles(engine: &mut CpuioEngine, mut count: u32) -> Duration {
        let unit = Unit {
            buffer: std::ptr::null_mut(),
            length: 0,
            offset: 0,
            index: 0,
            file: 0,
            operation: iolite_types::Operation::Work,
            priority: 0,
        };
        let before = thread_time();
        while count > 0 {
            // SAFETY: the unit has no bytes.
            match unsafe { engine.queue(&unit) } {
                Queued::Completed(Ok(1)) => count -= 1,
                Queued::Completed(Err(Errno(libc::EINTR))) | Queued::Busy => {}
                Queued::Completed(other) => panic!("{other:?}"),
                Queued::Queued | Queued::Over => panic!("nobody reaps"),
            }
        }
        thread_time() - before
    }

    #[test]
    fn a_cycle_is_busy_for_as_long_as_it_should() {
        for mode in [CpuMode::Noop, CpuMode::Qsort] {
            let used = cycles(&mut engine(100, mode), 5);
            assert!(used >= Duration::from_millis(10), "{mode:?}: {used:?}");
        }
    }

    #[test]
    fn the_load_is_never_more_than_was_asked_for() {
        let mut engine = engine(20, CpuMode::Noop);
        let begun = Instant::now();
        cycles(&mut engine, 6);
        // Even on a slow machine: the sixth spell begins when the 10 ms before it are a fifth of the time.
        assert!(begun.elapsed() >= Duration::from_millis(50), "{:?}", begun.elapsed());
    }
}
