//! Histogram logs: `TIME_MS, DIRECTION, BLOCKSIZE, COUNT, COUNT, …`, one line per direction and window.
//!
//! `log_hist_coarseness` is the number of times that pairs of neighbouring buckets are added together.

use crate::decimal;
use iolite_stats::{BUCKETS, lower_bound, midpoint};
use iolite_types::Direction;
use std::collections::BTreeMap;

/// The largest coarseness, which leaves 29 counts.
pub const MOST_COARSENESS: u32 = 6;

/// The counts of a window.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub direction: Direction,
    /// End of the window, in nanoseconds from the log's zero.
    pub at: u64,
    /// Length of the last I/O of the window, in bytes.
    pub length: u64,
    /// The number of I/Os.
    pub total: u64,
    pub buckets: [u64; BUCKETS],
}

impl Counts {
    /// Counts of 0.
    pub fn new(direction: Direction) -> Box<Counts> {
        Box::new(Counts { direction, at: 0, length: 0, total: 0, buckets: [0; BUCKETS] })
    }

    /// Sets all counts to 0.
    pub fn clear(&mut self) {
        self.total = 0;
        self.buckets.fill(0);
    }

    /// Adds the counts of the window before this one.
    pub fn add(&mut self, before: &Counts) {
        self.total += before.total;
        self.buckets.iter_mut().zip(&before.buckets).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Appends the line.
    pub fn put(&self, out: &mut Vec<u8>, coarseness: u32) {
        let mut number = |value: u64| {
            let mut digits = [0; decimal::MOST_DIGITS];
            let count = decimal::put(&mut digits, value);
            out.extend_from_slice(&digits[..count]);
            out.extend_from_slice(b", ");
        };
        number(self.at / 1_000_000);
        number(self.direction as u64);
        number(self.length);
        for together in self.buckets.chunks(1 << coarseness) {
            number(together.iter().sum());
        }
        out.truncate(out.len() - 2);
        out.push(b'\n');
    }
}

/// One line of a histogram log, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramLine {
    /// Time in milliseconds from the log's zero.
    pub time_ms: u64,
    /// The direction.
    pub direction: Direction,
    /// The block size in bytes.
    pub length: u64,
    /// One count per group of buckets.
    pub counts: Vec<u64>,
}

impl HistogramLine {
    /// The number of buckets that were added together in each count.
    pub fn buckets_per_count(&self) -> usize {
        BUCKETS / self.counts.len().max(1)
    }

    /// Parses a line.
    ///
    /// # Errors
    ///
    /// The line is not one of a histogram log: the number of the invalid column (from 1), and the reason.
    pub fn read(line: &str) -> Result<HistogramLine, (usize, String)> {
        let mut columns = Vec::with_capacity(BUCKETS + 3);
        for (index, text) in line.split(',').enumerate() {
            let text = text.trim();
            let number =
                text.parse::<u64>().map_err(|_| (index + 1, format!("\"{text}\" is not a number")))?;
            columns.push(number);
        }
        let possible = (0..=MOST_COARSENESS).map(|coarseness| BUCKETS.div_ceil(1 << coarseness));
        if !possible.into_iter().any(|count| columns.len() == count + 3) {
            let found = columns.len();
            return Err((
                found,
                format!(
                    "{found} columns are not a histogram: a line has three columns and 1856, 928, … or 29 counts"
                ),
            ));
        }
        let direction = usize::try_from(columns[1]).ok().and_then(|index| Direction::ALL.get(index).copied());
        let direction =
            direction.ok_or_else(|| (2, format!("{} is not a direction (0, 1 or 2)", columns[1])))?;
        let counts = columns.split_off(3);
        Ok(HistogramLine { time_ms: columns[0], direction, length: columns[2], counts })
    }
}

/// A percentile of counts, each of a group of this many buckets, which is listed by its first bucket: the middle of the
/// first group at which at least this share of all has been seen.
pub fn percentile(counts: &BTreeMap<usize, u64>, percentile: f64, buckets: usize) -> u64 {
    let total = counts.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let wanted = percentile / 100.0 * total as f64;
    let mut seen = 0_u64;
    let mut found = 0;
    for (&first, &count) in counts {
        seen = seen.saturating_add(count);
        found = first;
        if seen as f64 >= wanted {
            break;
        }
    }
    middle(found, buckets)
}

fn middle(first: usize, buckets: usize) -> u64 {
    match first + buckets {
        _ if buckets == 1 => midpoint(first),
        behind if behind < BUCKETS => u64::midpoint(lower_bound(first), lower_bound(behind)),
        // The last bucket has no end.
        _ => midpoint(BUCKETS - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::bucket_of;
    use proptest::prelude::*;

    #[test]
    fn written_and_read_at_every_coarseness() {
        let mut counts = Counts::new(Direction::Write);
        (counts.at, counts.length) = (201_999_999, 4096);
        for value in [10, 10, 100_000, u64::MAX] {
            counts.buckets[bucket_of(value)] += 1;
        }
        for coarseness in 0..=MOST_COARSENESS {
            let mut line = Vec::new();
            counts.put(&mut line, coarseness);
            let text = String::from_utf8(line).unwrap();
            assert!(text.starts_with("201, 1, 4096, ") && text.ends_with(", 1\n"), "{text}");
            let read = HistogramLine::read(text.trim_end()).unwrap();
            assert_eq!((read.time_ms, read.direction, read.length), (201, Direction::Write, 4096));
            assert_eq!(
                (read.counts.len(), read.buckets_per_count()),
                (BUCKETS >> coarseness, 1 << coarseness)
            );
            assert_eq!(read.counts.iter().sum::<u64>(), 4);
            assert_eq!(read.counts[bucket_of(10) >> coarseness], 2);
        }
    }

    #[test]
    fn invalid_histogram_lines_are_reported_with_their_column() {
        let told = |line: &str| HistogramLine::read(line).unwrap_err();
        assert_eq!(told("1, x, 4096, 0"), (2, "\"x\" is not a number".into()));
        assert_eq!(told("9, 35737, 0, 4096, 0").0, 5);
        let many = ", 0".repeat(29);
        assert_eq!(told(&format!("1, 7, 4096{many}")).0, 2);
        assert!(HistogramLine::read(&format!("1, 2, 4096{many}")).is_ok());
    }

    #[test]
    fn the_middle_of_a_single_bucket_is_that_of_the_report() {
        for bucket in [0, 63, 127, 128, 1000, BUCKETS - 1] {
            assert_eq!(middle(bucket, 1), midpoint(bucket));
        }
        assert_eq!(middle(BUCKETS - 64, 64), midpoint(BUCKETS - 1));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(line in "[0-9, x-]{0,200}") {
            let _ = HistogramLine::read(&line);
        }
    }
}
