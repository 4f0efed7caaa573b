//! Latency from the intended start of each I/O, as in an open-loop test.
//!
//! Under a rate, each I/O has an intended start. When the storage stalls, the I/Os after the stall start late. Latency
//! measured from the actual start then hides how long a user would have waited who came at the intended time (Gil
//! Tene's "coordinated omission"). `lat_from_intended_start` measures from the intended start, in addition to the usual
//! figures.

use iolite_stats::live::LiveLatency;

/// The intended start of each unit in flight, in nanoseconds of the clock.
#[derive(Debug)]
pub struct IntendedStarts {
    moments: Vec<Option<u64>>,
}

impl IntendedStarts {
    /// For this many units.
    pub fn new(units: usize) -> IntendedStarts {
        IntendedStarts { moments: vec![None; units] }
    }

    /// Sets the intended start of a unit; `None` = its direction has no rate.
    pub(super) fn set(&mut self, unit: u32, moment: Option<u64>) {
        self.moments[unit as usize] = moment;
    }

    /// Records the latency of a completed unit from its intended start, or from `start` if it has none.
    pub(super) fn record(&self, unit: u32, start: u64, complete: u64, into: &LiveLatency) {
        // A unit that started early (at most by the clock's precision) was not late.
        let moment = self.moments[unit as usize].unwrap_or(start).min(start);
        let latency = complete.saturating_sub(moment);
        into.record(latency);
        into.record_bucket(latency);
    }
}
