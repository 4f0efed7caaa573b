//! Waiting for a moment: the start of the next I/O of a rate, a replay, or the end of a pause.

use super::IoLoop;
use iolite_engine::Engine;
use iolite_os::time::make_timers_exact;
use iolite_workload::Generator;
use std::time::Duration;

/// How much longer than asked the system lets this thread sleep.
///
/// A sleep ends earlier by this, and the rest of the wait spins. So an I/O starts at its time, and the processor is busy
/// for about as long as sleeps differ from each other, rather than for the longest of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Oversleep {
    mean_ns: u64,
    /// The system was asked to end sleeps of this thread in time.
    has_exact_timers: bool,
}

impl Oversleep {
    /// A new value has this part in the mean.
    const WEIGHT: u64 = 8;
    /// A wait that only spins makes the mean smaller by this part, or waits would never sleep again after some sleeps
    /// that were interrupted.
    const FORGOTTEN: u64 = 64;

    pub(super) fn new() -> Self {
        Oversleep { mean_ns: 20_000, has_exact_timers: false }
    }

    /// Before the first sleep.
    fn prepare(&mut self) {
        if !std::mem::replace(&mut self.has_exact_timers, true) {
            make_timers_exact();
        }
    }

    /// The part of a wait to sleep through; 0 = it is too short to sleep.
    fn nap(self, left_ns: u64) -> u64 {
        // A shorter sleep costs more than it saves.
        const SHORTEST_NS: u64 = 3_000;
        let nap = left_ns.saturating_sub(self.mean_ns);
        if nap < SHORTEST_NS { 0 } else { nap }
    }

    /// A sleep of `asked` took `slept`.
    fn learn(&mut self, asked: u64, slept: u64) {
        // (If it was ended early, by a signal, it says nothing.)
        if let Some(over) = slept.checked_sub(asked) {
            // Much more is an interruption, which spinning could not prevent either.
            let over = over.min(2 * self.mean_ns + 1_000);
            self.mean_ns = (self.mean_ns * (Oversleep::WEIGHT - 1) + over) / Oversleep::WEIGHT;
        }
    }

    /// A wait only spun.
    fn forget(&mut self) {
        self.mean_ns -= self.mean_ns.div_ceil(Oversleep::FORGOTTEN);
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Waits until this time, until the job ends or the controller stops it, and reaps completions meanwhile. `in_hand`
    /// = an I/O of the workload is still to be issued.
    pub(super) fn wait_until(&mut self, moment: u64, in_hand: bool) {
        /// How long to wait at most for completions between two checks for requests of the controller. A longer sleep with
        /// nothing in flight is ended by such a request.
        const MOST_NS: u64 = 20_000_000;
        /// How long to sleep at most. Engines may want to be called once a second, and a clock of the job's own choice may have
        /// been set meanwhile.
        const LONGEST_NS: u64 = 1_000_000_000;
        /// A long sleep is shorter by this part, because the system's clock, which it follows, may go more slowly than the
        /// run's. The rest of the wait is a short one.
        const MARGIN: u64 = 1024;
        self.commit();
        self.common.time.oversleep.prepare();
        let (mut has_slept, mut spins) = (false, false);
        loop {
            if self.is_called_off(in_hand) {
                return;
            }
            if !spins && self.common.flight.count == 0 {
                // Before the clock is read, because it may take a while.
                self.engine.keep_alive();
            }
            let now = self.common.clock.now();
            if now >= moment {
                break;
            }
            let left = moment.min(self.common.time.next_event.max(now)) - now;
            let nap = self.common.time.oversleep.nap(left).min(LONGEST_NS);
            let in_flight = self.common.flight.count;
            spins = nap == 0;
            has_slept |= nap > 0;
            if in_flight == 0 && nap > MOST_NS {
                self.common.control.rest(Duration::from_nanos(nap - nap / MARGIN));
                continue;
            }
            let nap = nap.min(MOST_NS);
            if in_flight > 0 {
                self.reap_within(Duration::from_nanos(nap));
            } else if nap > 0 {
                std::thread::sleep(Duration::from_nanos(nap));
            } else {
                std::hint::spin_loop();
            }
            // (What completes ends a sleep early, and takes time of its own.)
            if nap > 0 && self.common.flight.count == in_flight {
                self.common.time.oversleep.learn(nap, self.common.clock.now() - now);
            }
        }
        if !has_slept {
            self.common.time.oversleep.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_earlier_by_what_sleeps_usually_take_too_long() {
        let mut oversleep = Oversleep::new();
        for _ in 0..100 {
            oversleep.learn(50_000, 58_000);
        }
        let nap = oversleep.nap(200_000);
        assert!((191_500..=193_000).contains(&nap), "{nap}");
        assert_eq!(oversleep.nap(9_000), 0, "what is left would be slept through");
    }

    #[test]
    fn sleeps_that_end_early_and_interruptions_hardly_count() {
        let mut oversleep = Oversleep::new();
        let before = oversleep.nap(1_000_000);
        oversleep.learn(500_000, 20_000);
        assert_eq!(oversleep.nap(1_000_000), before);
        oversleep.learn(500_000, 900_000_000);
        assert!(before - oversleep.nap(1_000_000) < 5_000);
    }

    #[test]
    fn short_waits_are_slept_through_again_after_interruptions() {
        let mut oversleep = Oversleep::new();
        (0..100).for_each(|_| oversleep.learn(50_000, 900_000_000));
        assert_eq!(oversleep.nap(50_000), 0);
        while oversleep.nap(50_000) == 0 {
            oversleep.forget();
        }
        (0..50).for_each(|_| oversleep.learn(20_000, 27_000));
        assert!((41_000..=43_500).contains(&oversleep.nap(50_000)), "{oversleep:?}");
    }
}
