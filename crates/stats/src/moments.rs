//! Exact integer moments: count, minimum, maximum, sum and sum of squares.

use crate::serial;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The moments of a set of latencies in nanoseconds. They are exact for up to 2⁶⁴ values, as long as the squares add
/// up to less than 2¹²⁸.
///
/// Sums are serialised as decimal text, and the minimum of no values as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Serial", from = "Serial")]
pub struct Moments {
    /// The number of values.
    pub count: u64,
    /// The smallest; `u64::MAX` if there are no values.
    pub min: u64,
    /// The largest; 0 if there are no values.
    pub max: u64,
    /// Σx
    pub sum: u128,
    /// Σx²
    pub sum_squares: u128,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { count: 0, min: u64::MAX, max: 0, sum: 0, sum_squares: 0 }
    }
}

/// The serialised form of [`Moments`].
#[derive(Serialize, Deserialize)]
struct Serial {
    count: u64,
    min: u64,
    max: u64,
    #[serde(with = "serial::decimal")]
    sum: u128,
    #[serde(with = "serial::decimal")]
    sum_squares: u128,
}

impl From<Moments> for Serial {
    fn from(moments: Moments) -> Serial {
        let Moments { count, max, sum, sum_squares, .. } = moments;
        Serial { count, min: moments.minimum(), max, sum, sum_squares }
    }
}

impl From<Serial> for Moments {
    fn from(serial: Serial) -> Moments {
        let Serial { count, min, max, sum, sum_squares } = serial;
        let min = if count == 0 { Moments::default().min } else { min };
        Moments { count, min, max, sum, sum_squares }
    }
}

impl Moments {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_squares += u128::from(value) * u128::from(value);
    }

    /// The smallest value, 0 if there is none.
    pub fn minimum(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The mean, 0 if there are no values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The sample standard deviation (divisor n − 1), 0 for fewer than two values.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.scaled_spread() / (self.count as f64 * (self.count - 1) as f64)).sqrt()
    }

    /// The sum of squared distances from the mean.
    pub fn spread(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.scaled_spread() / self.count as f64 }
    }

    /// n·Σx² − (Σx)², which is n times the spread. With integers this difference is exact; in floating point it would
    /// cancel. If it does not fit into 128 bits, the values are so large that rounding does not matter.
    fn scaled_spread(&self) -> f64 {
        let n = u128::from(self.count);
        match (n.checked_mul(self.sum_squares), self.sum.checked_mul(self.sum)) {
            (Some(a), Some(b)) => a.saturating_sub(b) as f64,
            _ => (n as f64 * self.sum_squares as f64 - self.sum as f64 * self.sum as f64).max(0.0),
        }
    }
}

impl AddAssign<&Moments> for Moments {
    fn add_assign(&mut self, other: &Moments) {
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_squares = self.sum_squares.saturating_add(other.sum_squares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.record(value));
        moments
    }

    #[test]
    fn textbook_values() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(moments.mean(), 5.0);
        assert!((moments.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((moments.minimum(), moments.max), (2, 9));
    }

    #[test]
    fn nothing_and_one() {
        assert_eq!((of(&[]).minimum(), of(&[]).mean(), of(&[]).deviation()), (0, 0.0, 0.0));
        assert_eq!((of(&[7]).mean(), of(&[7]).deviation()), (7.0, 0.0));
    }

    #[test]
    fn large_values_with_a_small_spread_do_not_cancel() {
        let base = 1 << 50;
        assert!((of(&[base, base + 2]).deviation() - 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn the_serial_form() {
        let mut moments = of(&[3, u64::MAX]);
        moments.sum_squares = u128::MAX;
        let text = serde_json::to_string(&moments).unwrap();
        let expected = r#"{"count":2,"min":3,"max":18446744073709551615,"sum":"18446744073709551618","sum_squares":"340282366920938463463374607431768211455"}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Moments>(&text).unwrap(), moments);
        let none = serde_json::to_string(&of(&[])).unwrap();
        assert_eq!(none, r#"{"count":0,"min":0,"max":0,"sum":"0","sum_squares":"0"}"#);
        assert_eq!(serde_json::from_str::<Moments>(&none).unwrap(), of(&[]));
        let wrong = text.replace("340282366920938463463374607431768211455", "-1");
        let why = serde_json::from_str::<Moments>(&wrong).unwrap_err().to_string();
        assert!(why.contains("\"-1\" is no 128-bit number"), "{why}");
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn merging_equals_recording_all(a in prop::collection::vec(0..1u64 << 40, 0..50),
                                        b in prop::collection::vec(0..1u64 << 40, 0..50)) {
            let mut merged = of(&a);
            merged += &of(&b);
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
