//! Samples of a rate: bandwidth or IOPS in each averaging period.

use crate::moments::Moments;
use crate::serial;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Fractions are kept as whole billionths: sums of integers do not depend on the order of addition.
const BILLION: f64 = 1e9;

/// Minimum, maximum, mean and deviation of a series of samples, or of several series whose rates are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// The number of samples.
    pub count: u64,
    /// The smallest, 0 if there are none.
    pub min: u64,
    /// The largest, 0 if there are none.
    pub max: u64,
    /// Their mean, in billionths.
    #[serde(with = "serial::decimal")]
    mean_billionths: u128,
    /// Sum of squared distances from the mean, in billionths.
    #[serde(with = "serial::decimal")]
    spread_billionths: u128,
}

impl Samples {
    /// Samples with this mean and this sum of squared distances from it. Both are kept to nine decimals; negative
    /// numbers and NaN count as 0.
    pub fn new(count: u64, min: u64, max: u64, mean: f64, spread: f64) -> Samples {
        let billionths = |value: f64| (value * BILLION).round() as u128;
        Samples { count, min, max, mean_billionths: billionths(mean), spread_billionths: billionths(spread) }
    }

    /// The samples of one series, from its moments.
    pub fn of(series: &Moments) -> Samples {
        Samples::new(series.count, series.minimum(), series.max, series.mean(), series.spread())
    }

    /// Their mean, 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.mean_billionths as f64 / BILLION
    }

    /// The sample standard deviation, 0 for fewer than two samples.
    pub fn deviation(&self) -> f64 {
        let spread = self.spread_billionths as f64 / BILLION;
        if self.count < 2 { 0.0 } else { (spread / (self.count - 1) as f64).sqrt() }
    }
}

/// Merges jobs that run side by side: their rates add up, so minima, maxima and means do, and the spread is that of
/// all samples around the means of their own series.
impl AddAssign<&Samples> for Samples {
    fn add_assign(&mut self, other: &Samples) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.saturating_add(other.min);
        self.max = self.max.saturating_add(other.max);
        self.mean_billionths = self.mean_billionths.saturating_add(other.mean_billionths);
        self.spread_billionths = self.spread_billionths.saturating_add(other.spread_billionths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[u64]) -> Samples {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.record(value));
        Samples::of(&moments)
    }

    #[test]
    fn a_series() {
        let samples = series(&[4, 7, 13, 16]);
        assert_eq!((samples.count, samples.min, samples.max, samples.mean()), (4, 4, 16, 10.0));
        assert!((samples.deviation() - 30f64.sqrt()).abs() < 1e-9);
        assert_eq!(series(&[]), Samples::default());
    }

    #[test]
    fn rates_of_jobs_side_by_side_add_up() {
        let mut one = series(&[10, 20]);
        one += &series(&[1, 3]);
        assert_eq!((one.count, one.min, one.max, one.mean()), (4, 11, 23, 17.0));
    }

    #[test]
    fn decimals_are_kept() {
        for mean in [0.0, 0.1, 218_960.333_333, 4_294_967_295.999_999] {
            assert_eq!(Samples::new(3, 0, 0, mean, 0.0).mean(), mean);
        }
        let impossible = Samples::new(1, 0, 0, f64::NAN, -1.0);
        assert_eq!((impossible.mean(), impossible.deviation()), (0.0, 0.0));
    }
}
