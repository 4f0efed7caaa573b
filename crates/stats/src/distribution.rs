//! Coarse distributions: queue depth, units per submission and completion, latency classes.

use crate::histogram::midpoint;
use crate::latency::Latency;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Classes of queue depth: 1, 2, 4, 8, 16, 32, ≥ 64; each extends to the next.
pub const DEPTH_CLASSES: usize = 7;

/// Classes of the number of units in one submission or completion call: 0, 1–4, 5–8, 9–16, 17–32, 33–64, > 64.
pub const BATCH_CLASSES: usize = 7;

/// The class of a queue depth (1 or more).
#[inline(always)]
pub const fn depth_class(depth: u32) -> usize {
    let class = (depth | 1).ilog2() as usize;
    if class < DEPTH_CLASSES { class } else { DEPTH_CLASSES - 1 }
}

/// The class of a number of units in one call.
#[inline(always)]
pub const fn batch_class(units: u32) -> usize {
    match units {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// Counts per depth class (one for each unit queued) and per batch class (one for each call).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depths {
    /// Units queued, by the depth that they raised the queue to.
    pub level: [u64; DEPTH_CLASSES],
    /// Submission calls, by their number of units.
    pub submit: [u64; BATCH_CLASSES],
    /// Completion calls, by their number of units. Calls without any are not counted, as in fio.
    pub complete: [u64; BATCH_CLASSES],
}

impl AddAssign<&Depths> for Depths {
    fn add_assign(&mut self, other: &Depths) {
        let add = |mine: &mut [u64], theirs: &[u64]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs))
        };
        add(&mut self.level, &other.level);
        add(&mut self.submit, &other.submit);
        add(&mut self.complete, &other.complete);
    }
}

/// The upper limits (exclusive) of the latency classes that reports print, in nanoseconds.
const LATENCY_ENDS: [u64; 31] = {
    const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut ends = [0; 31];
    let mut i = 0;
    while i < 10 {
        ends[i] = STEPS[i];
        ends[10 + i] = STEPS[i] * 1_000;
        ends[20 + i] = STEPS[i] * 1_000_000;
        i += 1;
    }
    ends[30] = 2_000_000_000;
    ends
};

/// How many I/Os are in each latency class that reports print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyClasses {
    /// Below 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000 ns.
    pub ns: [u64; 10],
    /// The same in µs.
    pub us: [u64; 10],
    /// The same in ms, then below 2 s, then 2 s and more.
    pub ms: [u64; 12],
}

impl LatencyClasses {
    /// Sorts a latency's histogram into the classes. A bucket that straddles a limit (buckets are 1.6% wide) is
    /// counted by its midpoint, as for percentiles, clamped to the smallest and largest value.
    pub fn of(latency: &Latency) -> Self {
        let mut classes = LatencyClasses::default();
        let moments = &latency.moments;
        // Without moments, the minimum would be above the maximum.
        let (min, max) = if moments.count == 0 { (0, u64::MAX) } else { (moments.min, moments.max) };
        for (bucket, count) in latency.histogram.occupied() {
            let value = midpoint(bucket).max(min).min(max);
            let class = LATENCY_ENDS.partition_point(|&end| end <= value);
            let class = match class {
                0..10 => &mut classes.ns[class],
                10..20 => &mut classes.us[class - 10],
                _ => &mut classes.ms[class - 20],
            };
            *class = class.saturating_add(count);
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_classes_reach_to_the_next_power() {
        let classes: Vec<_> = [1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 1000].map(depth_class).to_vec();
        assert_eq!(classes, [0, 1, 1, 2, 2, 3, 4, 5, 5, 6, 6]);
    }

    #[test]
    fn batch_classes_include_their_name() {
        let classes: Vec<_> = [0, 1, 4, 5, 8, 16, 17, 32, 64, 65].map(batch_class).to_vec();
        assert_eq!(classes, [0, 1, 1, 2, 2, 3, 4, 4, 5, 6]);
    }

    #[test]
    fn latencies_fall_into_their_class() {
        let latency =
            latency(&[0, 1, 2, 99, 900, 1_000, 5_000, 40_000, 1_500_000, 1_500_000_000, 3_000_000_000], true);
        let classes = LatencyClasses::of(&latency);
        assert_eq!(classes.ns, [2, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(classes.us, [1, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(classes.ms, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    /// A latency of these values, with or without moments.
    fn latency(values: &[u64], moments: bool) -> Latency {
        let mut latency = Latency::default();
        for &value in values {
            latency.histogram.record(value);
            if moments {
                latency.moments.record(value);
            }
        }
        latency
    }

    #[test]
    fn classes_agree_with_percentiles_and_extremes() {
        // 999 424 to 1 007 615 ns are one bucket, whose midpoint is 1 003 520.
        let slow = |values: &[u64], moments| {
            let classes = LatencyClasses::of(&latency(values, moments));
            (classes.us[9], classes.ms[0])
        };
        assert_eq!(slow(&[1_001_000, 1_002_000], true), (0, 2));
        assert_eq!(slow(&[1_001_000, 1_002_000], false), (0, 2));
        assert_eq!(slow(&[999_500, 1_002_000], true), (0, 2));
        assert_eq!(slow(&[999_500, 999_900], true), (2, 0));
        // 495 616 to 499 711 and 499 712 to 503 807, whose midpoint is 501 760.
        let middle = LatencyClasses::of(&latency(&[499_000, 499_800, 500_000], true));
        assert_eq!((middle.us[7], middle.us[8]), (1, 2));
        // The midpoint of 745 472 to 753 663 is below 750 000, that of 19 968 to 20 223 above 20 000.
        let above = LatencyClasses::of(&latency(&[750_500, 751_000], true));
        assert_eq!((above.us[8], above.us[9]), (0, 2));
        let below = LatencyClasses::of(&latency(&[19_970, 19_990], true));
        assert_eq!((below.us[3], below.us[4]), (2, 0));
        // 992 to 999 and 1000 to 1007 ns: the limit falls between two buckets.
        let ns = LatencyClasses::of(&latency(&[998, 999, 1000], true));
        assert_eq!((ns.ns[9], ns.us[0]), (2, 1));
    }
}
