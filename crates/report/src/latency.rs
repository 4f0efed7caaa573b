//! The unit in which latencies are shown.

/// A unit of latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The name in reports: `nsec`, `usec`, `msec`.
    pub name: &'static str,
    /// The nanoseconds in a unit.
    pub divisor: u64,
}

const NSEC: Scale = Scale { name: "nsec", divisor: 1 };
const USEC: Scale = Scale { name: "usec", divisor: 1_000 };
const MSEC: Scale = Scale { name: "msec", divisor: 1_000_000 };

impl Scale {
    /// The largest unit that keeps enough precision: in it, the smallest value is above 2, the largest at least 100,
    /// and the deviation above 1. All arguments are in nanoseconds.
    pub fn of(min: u64, max: u64, deviation: f64) -> Self {
        let loses_nothing = |scale: &Scale| {
            min > 2 * scale.divisor && max > 100 * scale.divisor - 1 && deviation > scale.divisor as f64
        };
        if loses_nothing(&MSEC) {
            MSEC
        } else if loses_nothing(&USEC) {
            USEC
        } else {
            NSEC
        }
    }

    /// The unit of a table of values without a deviation.
    pub fn of_range(min: u64, max: u64) -> Self {
        Scale::of(min, max, f64::INFINITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extremes and deviations near the limits, with the unit that fio 3.33 chose for them.
    #[test]
    fn limits() {
        let vectors = [
            (2000, 100_001, 13_789.0, "nsec"),
            (2001, 99_999, 13_788.0, "nsec"),
            (2001, 100_000, 9_799.9, "usec"),
            (100_500, 102_480, 994.99, "nsec"),
            (100_500, 102_500, 1_005.0, "usec"),
            (2_000_000, 100_001_001, 13_775_336.0, "usec"),
            (2_000_001, 100_000_000, 49_246_852.0, "msec"),
            (2_002_000, 99_999_999, 13_774_913.0, "usec"),
            (102_002_000, 102_002_000, 0.0, "nsec"),
        ];
        for (min, max, deviation, unit) in vectors {
            assert_eq!(Scale::of(min, max, deviation).name, unit, "{min} {max} {deviation}");
        }
        assert_eq!(Scale::of_range(2_015_232, 123_207_680), MSEC);
    }
}
