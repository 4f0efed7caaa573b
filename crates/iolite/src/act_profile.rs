//! The additional output of `--profile=act`: for each hour, the share of reads that took too long; and whether the
//! devices passed.

use iolite_stats::{Report, lower_bound};
use iolite_types::Direction;
use std::fmt::Write;
use std::time::Duration;

/// The length of a slice.
pub const SLICE: Duration = Duration::from_secs(3600);

/// The limits in milliseconds, and the percentage of reads that may exceed each: the tool's own criteria.
const LIMITS: [(u64, f64); 3] = [(1, 5.0), (8, 1.0), (64, 0.1)];

/// All reads, and those beyond each limit.
type Counts = [u64; 1 + LIMITS.len()];

/// The slices so far.
#[derive(Debug, Default)]
pub struct Slices {
    seen: Counts,
    rows: Vec<[f64; LIMITS.len()]>,
}

impl Slices {
    /// Ends a slice, which consists of the reads since the one before.
    pub fn take(&mut self, report: &Report) {
        self.add(counts(report));
    }

    fn add(&mut self, now: Counts) {
        let since = |index: usize| now[index].saturating_sub(self.seen[index]);
        let total = since(0).max(1) as f64;
        let row = std::array::from_fn(|limit| 100.0 * since(limit + 1) as f64 / total);
        self.rows.push(row);
        self.seen = now;
    }

    /// The table and the verdict.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "        trans                   device\n        %>(ms)                  %>(ms)\n slice\t  1\t  8\t 64\t  1\t  8\t 64\n \
             -----  -----   -----  ------   -----   -----  ------\n",
        );
        for (index, [one, eight, many]) in self.rows.iter().enumerate() {
            let shares = format!("{one:.2}\t{eight:.2}\t{many:.2}");
            // Writing to a String does not fail. Each read is one transaction on one device, so both halves agree.
            let _ = writeln!(text, "{:5}\t{shares}\t{shares}", index + 1);
        }
        let exceeds =
            |row: &[f64; LIMITS.len()]| row.iter().zip(LIMITS).any(|(share, (_, most))| *share > most);
        let verdict = if self.rows.iter().any(exceeds) { "FAILED" } else { "PASSED" };
        let _ = writeln!(text, "\nact: test complete, device(s): {verdict}");
        text
    }
}

fn counts(report: &Report) -> Counts {
    let mut counts = [0; 1 + LIMITS.len()];
    for job in &report.jobs {
        for (bucket, count) in job.directions[Direction::Read].clat.histogram.occupied() {
            counts[0] += count;
            for (limit, (milliseconds, _)) in LIMITS.into_iter().enumerate() {
                counts[limit + 1] += if lower_bound(bucket) >= milliseconds * 1_000_000 { count } else { 0 };
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slice_has_its_own_shares() {
        let mut slices = Slices::default();
        slices.add([1000, 50, 10, 1]);
        slices.add([3000, 70, 10, 1]);
        assert_eq!(slices.rows, [[5.0, 1.0, 0.1], [1.0, 0.0, 0.0]]);
        let text = slices.text();
        assert!(
            text.contains("\n    1\t5.00\t1.00\t0.10\t5.00\t1.00\t0.10\n    2\t1.00\t0.00\t0.00\t"),
            "{text}"
        );
        assert!(text.ends_with("PASSED\n"), "at the limits is not beyond them");
        slices.add([4000, 70, 10, 3]);
        assert!(slices.text().ends_with("FAILED\n"));
    }

    #[test]
    fn without_reads_there_is_nothing_to_fail() {
        let mut slices = Slices::default();
        slices.take(&Report::default());
        assert!(slices.text().contains("    1\t0.00\t0.00\t0.00\t"));
    }
}
