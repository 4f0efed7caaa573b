//! Samples of a rate: what bandwidth and IOPS were in each averaging period.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Minimum, maximum, mean and deviation of a series of samples, without keeping the series (Welford's method).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// How many samples.
    pub count: u64,
    /// The smallest, 0 for none.
    pub min: u64,
    /// The largest, 0 for none.
    pub max: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    pub spread: f64,
}

impl Samples {
    /// Adds a sample.
    pub fn record(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        let delta = value as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.spread += delta * (value as f64 - self.mean);
    }

    /// The sample standard deviation, 0 for fewer than two samples.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.spread / (self.count - 1) as f64).sqrt() }
    }
}

/// Merging jobs that run side by side: their rates add up, so minima, maxima and means do, while the spread of
/// all samples around their own means is kept together.
impl AddAssign<&Samples> for Samples {
    fn add_assign(&mut self, other: &Samples) {
        if other.count == 0 {
            return;
        }
        self.count += other.count;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.spread += other.spread;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series() {
        let mut samples = Samples::default();
        [4, 7, 13, 16].into_iter().for_each(|value| samples.record(value));
        assert_eq!((samples.count, samples.min, samples.max, samples.mean), (4, 4, 16, 10.0));
        assert!((samples.deviation() - 30f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn rates_of_jobs_side_by_side_add_up() {
        let mut one = Samples::default();
        let mut two = Samples::default();
        [10, 20].into_iter().for_each(|value| one.record(value));
        [1, 3].into_iter().for_each(|value| two.record(value));
        one += &two;
        assert_eq!((one.count, one.min, one.max, one.mean), (4, 11, 23, 17.0));
    }
}
