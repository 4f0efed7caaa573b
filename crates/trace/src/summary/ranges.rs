//! Counts of I/O per range of each file.
//!
//! Ranges begin small. When there are too many, pairs of neighbours are joined, and all ranges have twice the size from
//! then on. So the counts stay exact and the memory is bounded. Only if a trace has so many files that even one range
//! for each is too much, the least used ranges are dropped, and [`Ranges::complete`] is false.

use std::collections::HashMap;

/// The initial size of a range in bytes.
const FIRST: u64 = 64 << 10;

/// The size at which joining neighbours no longer helps.
const LAST: u64 = 1 << 62;

/// The most ranges that are counted.
const MOST: usize = 8192;

/// Counts per range.
#[derive(Clone, Debug)]
pub struct Ranges {
    counts: HashMap<(u32, u64), (u64, u64)>,
    /// The size of each range in bytes.
    pub size: u64,
    /// Whether all ranges are counted, and none was dropped.
    pub complete: bool,
}

impl Default for Ranges {
    fn default() -> Self {
        Ranges { counts: HashMap::new(), size: FIRST, complete: true }
    }
}

/// A range of a file with its share of the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotRange {
    /// The file, as an index into the list of the trace's files.
    pub file: u32,
    /// The start of the range in bytes.
    pub offset: u64,
    /// The length of the range in bytes.
    pub length: u64,
    /// The I/Os that began in the range.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Ranges {
    /// Counts an I/O in the range where it begins.
    pub(super) fn count(&mut self, file: u32, offset: u64, length: u64) {
        let entry = self.counts.entry((file, offset / self.size)).or_default();
        entry.0 += 1;
        entry.1 = entry.1.saturating_add(length);
        while self.counts.len() > MOST {
            if self.size < LAST {
                self.join();
            } else {
                self.forget();
            }
        }
    }

    fn join(&mut self) {
        self.size *= 2;
        for ((file, number), (ios, bytes)) in std::mem::take(&mut self.counts) {
            let entry = self.counts.entry((file, number / 2)).or_default();
            entry.0 += ios;
            entry.1 = entry.1.saturating_add(bytes);
        }
    }

    fn forget(&mut self) {
        self.complete = false;
        let mut ios: Vec<u64> = self.counts.values().map(|&(ios, _)| ios).collect();
        let middle = ios.len() / 2;
        let limit = *ios.select_nth_unstable(middle).1;
        let mut keep = middle;
        self.counts.retain(|_, &mut (ios, _)| {
            let kept = ios >= limit && keep > 0;
            keep -= usize::from(kept);
            kept
        });
    }

    /// The number of ranges with I/O.
    pub fn touched(&self) -> usize {
        self.counts.len()
    }

    /// All ranges, the hottest first.
    pub fn by_ios(&self) -> Vec<HotRange> {
        let mut ranges: Vec<HotRange> = self
            .counts
            .iter()
            .map(|(&(file, number), &(ios, bytes))| HotRange {
                file,
                offset: number * self.size,
                length: self.size,
                ios,
                bytes,
            })
            .collect();
        ranges.sort_by_key(|range| (std::cmp::Reverse(range.ios), range.file, range.offset));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_and_counts_stay() {
        let mut ranges = Ranges::default();
        for block in 0..100_000 {
            ranges.count(0, block * 4096, 4096);
            ranges.count(1, 8192, 512);
        }
        assert!(ranges.size == FIRST && ranges.touched() < MOST);
        for block in 0..100_000 {
            ranges.count(0, block << 20, 4096);
        }
        assert!(ranges.size > FIRST && ranges.touched() <= MOST && ranges.complete);
        let all = ranges.by_ios();
        assert_eq!(all.iter().map(|range| range.ios).sum::<u64>(), 300_000);
        assert_eq!((all[0].file, all[0].ios, all[0].bytes), (1, 100_000, 51_200_000));
    }

    #[test]
    fn excess_files_are_dropped_and_marked_as_incomplete() {
        let mut ranges = Ranges::default();
        for file in 0..20_000 {
            ranges.count(file, 0, 1);
            ranges.count(7, 0, 1);
        }
        assert!(!ranges.complete && ranges.touched() <= MOST);
        assert_eq!(ranges.by_ios()[0].file, 7);
    }
}
