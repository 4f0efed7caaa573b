//! Rates, rounded to the nearest, because measured spans are slightly longer than the intended ones.

/// Amount per second.
pub fn per_second(amount: u64, span_ns: u64) -> u64 {
    rate(amount, 1, span_ns)
}

/// KiB per second.
pub fn kib_per_second(bytes: u64, span_ns: u64) -> u64 {
    rate(bytes, 1024, span_ns)
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
}
