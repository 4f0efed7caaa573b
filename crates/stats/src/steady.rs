//! Steady state: whether a series of measurements has stopped changing.
//!
//! The criterion is computed over a window of the latest measurements: the largest distance of any of them from their
//! mean, or the slope of the line that fits them best (least squares).

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The quantity that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quantity {
    /// I/Os per second.
    #[default]
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, nanoseconds.
    Latency,
}

impl Quantity {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Iops => "iops",
            Quantity::Bandwidth => "bw",
            Quantity::Latency => "lat",
        }
    }
}

/// The measurement of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// I/Os per second.
    pub iops: u64,
    /// Bytes per second.
    pub bandwidth: u64,
    /// Mean latency, nanoseconds.
    pub latency: u64,
}

impl Measurement {
    /// The value of one quantity.
    pub fn of(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Iops => self.iops,
            Quantity::Bandwidth => self.bandwidth,
            Quantity::Latency => self.latency,
        }
    }
}

/// A criterion for a steady state, and the latest measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyReport {
    /// The quantity that is measured.
    pub quantity: Quantity,
    /// The criterion is its slope rather than its deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
    /// Length of the window in seconds.
    pub duration_s: u64,
    /// The number of measurements in a full window.
    pub size: usize,
    /// The criterion was met, which ended the job.
    pub attained: bool,
    /// The measurements in the window, oldest first.
    pub window: VecDeque<Measurement>,
}

impl SteadyReport {
    /// Adds a measurement; returns whether the criterion is met now.
    pub fn push(&mut self, measurement: Measurement) -> bool {
        if self.window.len() >= self.size {
            self.window.pop_front();
        }
        self.window.push_back(measurement);
        let found = self.criterion().abs();
        // A deviation may be equal to its limit; a slope has to be below it.
        let within = if self.slope { found < self.limit } else { found <= self.limit };
        self.attained = self.window.len() == self.size && within;
        self.attained
    }

    /// The mean of a quantity; 0 without measurements.
    pub fn mean(&self, quantity: Quantity) -> f64 {
        match self.window.len() {
            0 => 0.0,
            count => self.window.iter().map(|one| one.of(quantity) as f64).sum::<f64>() / count as f64,
        }
    }

    /// Whether there are enough measurements to judge by.
    fn is_full(&self) -> bool {
        self.window.len() >= self.size
    }

    /// The largest distance of a measurement from the mean; 0 while the window is not full, as with fio.
    pub fn deviation(&self) -> f64 {
        if !self.is_full() {
            return 0.0;
        }
        let mean = self.mean(self.quantity);
        self.window.iter().map(|one| (one.of(self.quantity) as f64 - mean).abs()).fold(0.0, f64::max)
    }

    /// The rise of the fitted line from one measurement to the next; 0 while the window is not full, as with fio.
    pub fn rise(&self) -> f64 {
        let count = self.window.len() as f64;
        if !self.is_full() || count < 2.0 {
            return 0.0;
        }
        let (middle, mean) = ((count - 1.0) / 2.0, self.mean(self.quantity));
        let (mut products, mut squares) = (0.0, 0.0);
        for (position, one) in self.window.iter().enumerate() {
            let distance = position as f64 - middle;
            products += distance * (one.of(self.quantity) as f64 - mean);
            squares += distance * distance;
        }
        products / squares
    }

    /// The value to compare with the limit, signed, in percent of the mean if the limit is.
    pub fn criterion(&self) -> f64 {
        let found = if self.slope { self.rise() } else { self.deviation() };
        let mean = self.mean(self.quantity);
        match self.percent {
            true if mean > 0.0 => 100.0 * found / mean,
            true => 0.0,
            false => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(slope: bool, limit: f64, percent: bool, size: usize) -> SteadyReport {
        SteadyReport { slope, limit, percent, size, ..SteadyReport::default() }
    }

    fn push(state: &mut SteadyReport, iops: u64) -> bool {
        state.push(Measurement { iops, ..Measurement::default() })
    }

    /// The numbers of a run of fio 3.33.
    #[test]
    fn deviation_from_the_mean() {
        let mut state = state(false, 5.0, true, 3);
        assert!(!push(&mut state, 996) && !push(&mut state, 1001), "the window is not full");
        assert_eq!((state.deviation(), state.criterion()), (0.0, 0.0), "the window is not full");
        assert!(push(&mut state, 996));
        assert!((state.deviation() - 3.333_333).abs() < 1e-6);
        assert!((state.criterion() - 0.334_113).abs() < 1e-6);
    }

    /// The same.
    #[test]
    fn slope() {
        let mut state = state(true, 0.3, true, 3);
        assert!(!push(&mut state, 1002) && !push(&mut state, 1000));
        assert!(push(&mut state, 998));
        assert_eq!((state.rise(), state.criterion()), (-2.0, -0.2));
    }

    #[test]
    fn a_steep_fall_is_not_steady() {
        let mut state = state(true, 5.0, false, 2);
        assert!(!push(&mut state, 1000) && !push(&mut state, 100));
        assert!(!push(&mut state, 95) && push(&mut state, 91));
    }

    #[test]
    fn the_window_moves_on() {
        let mut state = state(false, 1.0, false, 2);
        assert!(!push(&mut state, 10) && !push(&mut state, 20));
        assert!(push(&mut state, 22));
        assert_eq!(state.window.len(), 2);
        assert!(!push(&mut state, 25), "it can be left again");
    }

    #[test]
    fn nothing_is_not_steady() {
        let state = state(false, 5.0, true, 1);
        assert_eq!((state.criterion(), state.rise(), state.mean(Quantity::Latency)), (0.0, 0.0, 0.0));
        assert!(!state.attained);
    }
}
