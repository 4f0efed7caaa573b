//! Latency from the intended start: the open-loop truth.
//!
//! Under a rate, each I/O has a moment at which it was meant to begin. When the storage stalls, the I/Os behind the
//! stall begin late, and a latency that is measured from their beginning does not show how long a user who came at the
//! intended moment would have waited (the "coordinated omission" of Gil Tene). `lat_from_intended_start` measures from
//! the intended moment, beside the usual figures.

use iolite_stats::live::LiveLatency;

/// When each unit in flight was meant to begin, in nanoseconds of the clock.
#[derive(Debug)]
pub struct IntendedStarts {
    moments: Vec<Option<u64>>,
}

impl IntendedStarts {
    /// For so many units.
    pub fn new(units: usize) -> IntendedStarts {
        IntendedStarts { moments: vec![None; units] }
    }

    /// This unit was meant to begin then; `None` = its direction has no rate.
    pub(super) fn set(&mut self, unit: u32, moment: Option<u64>) {
        self.moments[unit as usize] = moment;
    }

    /// The unit is done: its latency from then, or from `start` where it was not meant to begin at any moment.
    pub(super) fn record(&self, unit: u32, start: u64, complete: u64, into: &LiveLatency) {
        // One that began before its time (it cannot by more than the clock's precision) was not late.
        let moment = self.moments[unit as usize].unwrap_or(start).min(start);
        let latency = complete.saturating_sub(moment);
        into.record(latency);
        into.record_bucket(latency);
    }
}
