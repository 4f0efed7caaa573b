//! Latency histograms with fio's geometry, so that percentiles and bins can be compared.
//!
//! There are 64 buckets per power of two: each value below 128 ns has its own bucket; larger values are sorted by their
//! top seven bits (a leading one and six more). A bucket is reported by its midpoint. There are 29 groups of 64
//! buckets; the last bucket has no upper limit.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The number of buckets.
pub const BUCKETS: usize = 29 * 64;

/// The bucket of a value in nanoseconds.
#[inline(always)]
pub const fn bucket_of(value: u64) -> usize {
    // The shift that leaves seven significant bits; `| 64` makes small values their own bucket without a branch.
    let shift = 57 - (value | 64).leading_zeros();
    let bucket = ((shift as usize) << 6) + (value >> shift) as usize;
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

/// The first value of a bucket, in nanoseconds.
pub const fn lower_bound(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = (bucket >> 6) - 1;
    ((64 + (bucket & 63)) as u64) << shift
}

/// The midpoint of a bucket, by which it is reported, in nanoseconds.
pub const fn midpoint(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = (bucket >> 6) - 1;
    lower_bound(bucket) + (1 << shift) / 2
}

/// Counts per bucket. Empty histograms take no memory.
///
/// It is serialised as a list of the buckets that are not empty, in ascending order: pairs of number and count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(usize, u64)>", try_from = "Vec<(usize, u64)>")]
pub struct Histogram {
    /// [`BUCKETS`] counts, or none as long as there are no values.
    counts: Vec<u64>,
}

impl From<Histogram> for Vec<(usize, u64)> {
    fn from(histogram: Histogram) -> Self {
        histogram.occupied().collect()
    }
}

/// Why a list of buckets is not a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// There is no bucket with this number.
    #[error("bucket {0}: there are only {BUCKETS}")]
    Unknown(usize),
    /// This bucket does not come after the one before it.
    #[error("bucket {0} is out of order")]
    Unordered(usize),
}

impl TryFrom<Vec<(usize, u64)>> for Histogram {
    type Error = BucketError;

    fn try_from(buckets: Vec<(usize, u64)>) -> Result<Self, BucketError> {
        let mut histogram = Histogram::default();
        let mut next = 0;
        for (bucket, count) in buckets {
            if bucket >= BUCKETS {
                return Err(BucketError::Unknown(bucket));
            }
            if bucket < next {
                return Err(BucketError::Unordered(bucket));
            }
            next = bucket + 1;
            if count > 0 {
                histogram.counts.resize(BUCKETS, 0);
                histogram.counts[bucket] = count;
            }
        }
        Ok(histogram)
    }
}

impl Histogram {
    /// A histogram of these counts, one per bucket.
    ///
    /// # Panics
    /// If there are not exactly [`BUCKETS`] counts.
    pub fn from_counts(counts: Vec<u64>) -> Self {
        assert_eq!(counts.len(), BUCKETS);
        let is_empty = counts.iter().all(|&count| count == 0);
        Histogram { counts: if is_empty { Vec::new() } else { counts } }
    }

    /// Adds one value in nanoseconds.
    pub fn record(&mut self, value: u64) {
        if self.counts.is_empty() {
            self.counts.resize(BUCKETS, 0);
        }
        self.counts[bucket_of(value)] += 1;
    }

    /// The number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// The buckets that are not empty, ascending, with their counts.
    pub fn occupied(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }

    /// By how much the buckets of a later state of this histogram have grown: those that have, ascending.
    pub fn growth_to(&self, later: &Histogram) -> Vec<(u16, u32)> {
        let before = |bucket: usize| self.counts.get(bucket).copied().unwrap_or(0);
        let grown = later.occupied().map(|(bucket, count)| (bucket, count.saturating_sub(before(bucket))));
        let fits = |(bucket, count): (usize, u64)| (bucket as u16, u32::try_from(count).unwrap_or(u32::MAX));
        grown.filter(|&(_, count)| count > 0).map(fits).collect()
    }

    /// For each percentile (ascending, 0..=100): the midpoint of the first bucket up to which at least that share of
    /// all values lies. Zeros if there are no values.
    pub fn percentiles(&self, percentiles: &[f64]) -> Vec<u64> {
        let total = self.total();
        if total == 0 {
            return vec![0; percentiles.len()];
        }
        let mut buckets = self.occupied().peekable();
        let mut seen = 0;
        let mut value = 0;
        percentiles
            .iter()
            .map(|percentile| {
                let wanted = percentile / 100.0 * total as f64;
                while (seen as f64) < wanted
                    && let Some((bucket, count)) = buckets.next()
                {
                    seen += count;
                    value = midpoint(bucket);
                }
                if seen == 0
                    && let Some(&(bucket, _)) = buckets.peek()
                {
                    // The 0th percentile is the first value.
                    value = midpoint(bucket);
                }
                value
            })
            .collect()
    }
}

impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            let pairs = self.counts.iter_mut().zip(&other.counts);
            pairs.for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_geometry() {
        assert_eq!((bucket_of(0), bucket_of(63), bucket_of(64), bucket_of(127)), (0, 63, 64, 127));
        assert_eq!((bucket_of(128), bucket_of(129), bucket_of(130)), (128, 128, 129));
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        // Bins that tools know: 38 656 ns and 39 680 ns each represent 512 ns.
        assert_eq!(midpoint(bucket_of(38_878)), 38_656);
        assert_eq!(midpoint(bucket_of(245_266)), 244_736);
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        assert_eq!(histogram.percentiles(&[0.0, 1.0, 50.0, 99.0, 100.0]), [1, 1, 50, 99, 100]);
        assert_eq!(Histogram::default().percentiles(&[50.0, 99.0]), [0, 0]);
    }

    #[test]
    fn the_serial_form() {
        let mut histogram = Histogram::default();
        [0, 1000, 1001, u64::MAX].into_iter().for_each(|value| histogram.record(value));
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(text, "[[0,1],[317,2],[1855,1]]");
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        assert_eq!(serde_json::from_str::<Histogram>("[]").unwrap(), Histogram::default());
        assert_eq!(Histogram::from_counts(vec![0; BUCKETS]), Histogram::default());
        for wrong in ["[[1856,1]]", "[[3,1],[3,1]]", "[[3,1],[2,1]]", "[[3,-1]]"] {
            assert!(serde_json::from_str::<Histogram>(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn a_bucket_holds_its_values(value in any::<u64>()) {
            let bucket = bucket_of(value);
            prop_assert!(lower_bound(bucket) <= value);
            if bucket + 1 < BUCKETS {
                prop_assert!(value < lower_bound(bucket + 1));
            }
            prop_assert_eq!(bucket_of(lower_bound(bucket)), bucket);
            prop_assert_eq!(bucket_of(midpoint(bucket)), bucket);
        }

        #[test]
        fn merging_equals_recording_all(a in prop::collection::vec(any::<u32>(), 0..50),
                                        b in prop::collection::vec(any::<u32>(), 0..50)) {
            let of = |values: &[u32]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|&value| histogram.record(value.into()));
                histogram
            };
            let mut merged = of(&a);
            merged += &of(&b);
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
