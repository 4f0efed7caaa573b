//! A clock that one thread keeps for all workers (`gtod_cpu`). On its own CPU, the thread writes the time into a shared
//! word over and over, and workers read only that word.

use crate::clock::Clock;
use iolite_os::memory;
use iolite_plan::Plan;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The shared word, and the CPU of the thread that writes it.
#[derive(Clone, Copy, Debug)]
pub struct Ticker {
    word: &'static AtomicU64,
    /// The CPU that is reserved for the thread.
    pub cpu: u32,
}

impl Ticker {
    /// The ticker of a run, with the present time; `None` = no job asks for one.
    pub fn new(plan: &Plan, clock: Clock) -> io::Result<Option<Ticker>> {
        let Some(cpu) = plan.reserved_cpu() else { return Ok(None) };
        // The page is never unmapped, because clocks that read it are copied freely.
        let page = memory::map_shared(size_of::<AtomicU64>())?;
        // SAFETY: the mapping is large enough, aligned to a page, never unmapped, and zero bytes are a valid AtomicU64.
        let word = unsafe { &*page.cast::<AtomicU64>() };
        word.store(clock.now(), Relaxed);
        Ok(Some(Ticker { word, cpu }))
    }

    /// The clock that reads this ticker.
    pub fn clock(&self, clock: Clock) -> Clock {
        clock.kept_in(self.word)
    }

    /// Keeps the time until the process ends.
    pub fn run(&self, clock: Clock) -> ! {
        // The plan has checked that this works. On another CPU the thread would disturb workers, but the time would be
        // right.
        let _ = crate::run_on(&[self.cpu]);
        loop {
            self.word.store(clock.now(), Relaxed);
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{ExtentOptions, JobOptions, MeasurementOptions, RunOptions, SizeValue};

    #[test]
    fn the_word_shows_the_time() {
        let job = |gtod_cpu| JobOptions {
            name: "j".into(),
            ioengine: "null".into(),
            extent: ExtentOptions { size: Some(SizeValue::Bytes(4096)), ..ExtentOptions::default() },
            measurement: MeasurementOptions { gtod_cpu, ..MeasurementOptions::default() },
            ..JobOptions::default()
        };
        let clock = Clock::calibrate();
        let without =
            Plan::build(vec![job(None)], &RunOptions::default(), &iolite_host::MadeUp::new()).unwrap();
        assert!(Ticker::new(&without, clock).unwrap().is_none());
        let plan =
            Plan::build(vec![job(None), job(Some(0))], &RunOptions::default(), &iolite_host::MadeUp::new())
                .unwrap();
        let ticker = Ticker::new(&plan, clock).unwrap().unwrap();
        let kept = ticker.clock(clock);
        let stopped = kept.now();
        assert!(stopped > 0 && kept.now() == stopped && clock.now() >= stopped);
        // The thread ends with the process of the test.
        std::thread::spawn(move || ticker.run(clock));
        while kept.now() == stopped {
            std::thread::yield_now();
        }
    }
}
