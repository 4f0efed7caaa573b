//! Counts of I/Os per size. They are exact if there are few different sizes; otherwise they are per power of two.

use std::collections::BTreeMap;

/// The most different sizes that are counted exactly.
const MOST: usize = 256;

/// Counts per size.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    counts: BTreeMap<u64, u64>,
    /// Whether sizes are rounded down to powers of two, because there were too many.
    pub rounded: bool,
    smallest: u64,
    largest: u64,
}

impl Sizes {
    /// Counts an I/O.
    pub(super) fn count(&mut self, length: u64) {
        self.smallest = if self.counts.is_empty() { length } else { self.smallest.min(length) };
        self.largest = self.largest.max(length);
        let key = if self.rounded { power_of_two(length) } else { length };
        *self.counts.entry(key).or_default() += 1;
        if self.counts.len() > MOST && !self.rounded {
            self.rounded = true;
            for (size, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(power_of_two(size)).or_default() += count;
            }
        }
    }

    /// The size of the smallest I/O; 0 without I/Os.
    pub fn smallest(&self) -> u64 {
        self.smallest
    }

    /// The size of the largest I/O; 0 without I/Os.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The sizes with their counts, the most frequent first.
    pub fn by_count(&self) -> Vec<(u64, u64)> {
        let mut sizes: Vec<_> = self.counts.iter().map(|(&size, &count)| (size, count)).collect();
        sizes.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        sizes
    }
}

/// The largest power of two that is not larger than `size`.
fn power_of_two(size: u64) -> u64 {
    1 << size.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_exact_and_many_are_rounded() {
        let mut sizes = Sizes::default();
        [4096, 512, 4096].into_iter().for_each(|size| sizes.count(size));
        assert_eq!(sizes.by_count(), [(4096, 2), (512, 1)]);
        assert_eq!((sizes.smallest(), sizes.largest(), sizes.rounded), (512, 4096, false));
        (1..=1000).for_each(|size| sizes.count(size));
        assert!(sizes.rounded);
        assert_eq!(sizes.by_count().iter().map(|(_, count)| count).sum::<u64>(), 1003);
        assert_eq!((sizes.smallest(), sizes.largest()), (1, 4096));
        assert!(sizes.by_count().contains(&(256, 256)));
    }
}
