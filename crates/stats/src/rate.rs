//! Rates, rounded to the nearest, because measured spans are slightly longer than the intended ones.

/// Amount per second.
pub fn per_second(amount: u64, span_ns: u64) -> u64 {
    rate(amount, 1, span_ns)
}

/// KiB per second.
pub fn kib_per_second(bytes: u64, span_ns: u64) -> u64 {
    rate(bytes, 1024, span_ns)
}

/// A series of rates. What rounding takes from a rate is added to the next one, so that rates times the lengths of their
/// windows add up to the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSeries {
    unit: u64,
    /// What the rates so far, times their windows, lack of the amounts, in billionths.
    lacking: i128,
}

impl RateSeries {
    /// Rates in amounts per second.
    pub const PER_SECOND: RateSeries = RateSeries { unit: 1, lacking: 0 };
    /// Rates in KiB per second; amounts are in bytes.
    pub const KIB_PER_SECOND: RateSeries = RateSeries { unit: 1024, lacking: 0 };

    /// The rate of the next window; 0 for one without length.
    pub fn next(&mut self, amount: u64, span_ns: u64) -> u64 {
        let divisor = i128::from(self.unit) * i128::from(span_ns);
        let all = i128::from(amount) * 1_000_000_000 + self.lacking;
        let rate = (all + divisor / 2).checked_div_euclid(divisor).unwrap_or(0).max(0);
        self.lacking = all - rate * divisor;
        rate as u64
    }
}

fn rate(amount: u64, unit: u64, span_ns: u64) -> u64 {
    let divisor = u128::from(unit) * u128::from(span_ns);
    let all = u128::from(amount) * 1_000_000_000;
    (all + divisor / 2).checked_div(divisor).unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_is_a_little_late_finds_the_same_rate() {
        assert_eq!(per_second(1000, 1_000_300_000), 1000);
        assert_eq!(per_second(1000, 1_000_600_000), 999);
        assert_eq!(per_second(1000, 0), 0);
        assert_eq!(kib_per_second(4_096_000, 1_000_100_000), 4000);
        assert_eq!(kib_per_second(4_096_000, 1_000_200_000), 3999);
        assert_eq!(kib_per_second(4096, 0), 0);
    }

    #[test]
    fn a_series_of_rates_loses_nothing() {
        let mut rates = RateSeries::PER_SECOND;
        let third = 300_000_000;
        assert_eq!([100, 100, 100, 0, 1].map(|ios| rates.next(ios, third)), [333, 334, 333, 0, 3]);
        assert_eq!([rates.next(2, 0), rates.next(0, third)], [0, 7]);
        let mut rates = RateSeries::KIB_PER_SECOND;
        assert_eq!([512, 512, 512].map(|bytes| rates.next(bytes, 1_000_000_000)), [1, 0, 1]);
    }
}
