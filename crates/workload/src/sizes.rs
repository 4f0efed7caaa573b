//! How long the next I/O is: one size, a range of sizes, or sizes with shares.
//!
//! In a range, each multiple of the smallest size has the same share: a number from 1 to the largest size is drawn and
//! rounded up to the next multiple. If the largest size is not a multiple of the smallest, it gets the remaining share
//! (`4k-18k`: two ninths each for 4k, 8k, 12k, 16k, and one ninth for 18k). An unaligned range gives every size from
//! the smallest to the largest the same share. If the rest of the region is smaller than the largest size, the draw is
//! among the sizes that fit, in the same proportions.

use crate::{BlockSize, rng::Rng};

/// A [`BlockSize`] prepared for drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Fixed(u64),
    /// Multiples of `low` up to `high`: `count` of them, and `high` itself if it is not a multiple (not `exact`).
    Multiples {
        low: u64,
        high: u64,
        count: u64,
        exact: bool,
        /// The exponent, if `low` is a power of two.
        shift: Option<u32>,
    },
    /// Any size from the first to the second.
    Any(u64, u64),
    /// Sizes with their shares.
    Shares(Shares),
}

impl Sizes {
    pub(crate) fn new(size: &BlockSize, unaligned: bool) -> Self {
        match size {
            BlockSize::Fixed(size) => Sizes::Fixed((*size).max(1)),
            BlockSize::Range(low, high) if low == high => Sizes::Fixed((*low).max(1)),
            BlockSize::Range(low, high) if unaligned => Sizes::Any((*low).max(1), *high),
            BlockSize::Range(low, high) => {
                let (low, high) = ((*low).max(1), *high);
                let shift = low.is_power_of_two().then(|| low.trailing_zeros());
                Sizes::Multiples { low, high, count: high / low, exact: high.is_multiple_of(low), shift }
            }
            BlockSize::Split(entries) => match entries.as_slice() {
                [] => Sizes::Fixed(1),
                [(size, _)] => Sizes::Fixed((*size).max(1)),
                _ => Sizes::Shares(Shares::new(entries)),
            },
        }
    }

    /// The size, if there is only one.
    pub(crate) fn fixed(&self) -> Option<u64> {
        match self {
            Sizes::Fixed(size) => Some(*size),
            _ => None,
        }
    }

    /// The smallest size.
    #[inline(always)]
    pub(crate) fn min(&self) -> u64 {
        match self {
            Sizes::Fixed(size) | Sizes::Multiples { low: size, .. } | Sizes::Any(size, _) => *size,
            Sizes::Shares(shares) => shares.min,
        }
    }

    /// The largest size.
    #[inline(always)]
    pub(crate) fn max(&self) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Multiples { high: size, .. } | Sizes::Any(_, size) => *size,
            Sizes::Shares(shares) => shares.max,
        }
    }

    /// A size of at most `room` bytes; `room` is at least the smallest size.
    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Rng, room: u64) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            // The same draws as in the next arm, but without a division in the usual cases.
            Sizes::Multiples { low, count, exact: true, shift, .. } => {
                let fitting = match shift {
                    Some(shift) => room >> shift,
                    None => room / low,
                };
                (1 + rng.below(fitting.min(*count))) * low
            }
            Sizes::Multiples { low, high, .. } => {
                let limit = if room >= *high { *high } else { room / low * low };
                (1 + rng.below(limit)).next_multiple_of(*low).min(limit)
            }
            Sizes::Any(low, high) => low + rng.below(room.min(*high) - low + 1),
            Sizes::Shares(shares) => shares.draw(rng, room),
        }
    }
}

/// Shares are percentages; a table for much finer shares would only fill the processor's cache.
const MOST_TICKETS: u64 = 1000;

/// Several sizes, each with its share of the I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// In ascending order of size, so that the sizes that fit into a given room come first.
    entries: Vec<(u64, u32)>,
    /// The size of each ticket, in the same order. There are as many tickets as the shares add up to, or none if that
    /// is too many. One load from this table replaces a walk along the shares, whose branches no processor can predict.
    tickets: Vec<u64>,
    min: u64,
    max: u64,
}

impl Shares {
    fn new(entries: &[(u64, u32)]) -> Shares {
        let mut entries: Vec<_> = entries.iter().map(|&(size, share)| (size.max(1), share)).collect();
        entries.sort_by_key(|entry| entry.0);
        let (min, max) =
            (entries.first().map_or(1, |entry| entry.0), entries.last().map_or(1, |entry| entry.0));
        let total: u64 = entries.iter().map(|&(_, share)| u64::from(share)).sum();
        let ticket = |&(size, share): &(u64, u32)| std::iter::repeat_n(size, share as usize);
        let tickets =
            if total <= MOST_TICKETS { entries.iter().flat_map(ticket).collect() } else { Vec::new() };
        Shares { entries, tickets, min, max }
    }

    /// Draws among the sizes that fit, in the same proportions.
    #[inline(always)]
    fn draw(&self, rng: &mut Rng, room: u64) -> u64 {
        let share = |entry: &(u64, u32)| if entry.0 <= room { u64::from(entry.1) } else { 0 };
        let ticket = rng.below(self.entries.iter().map(share).sum());
        match self.tickets.get(ticket as usize) {
            Some(&size) if size <= room => size,
            // Only sizes whose share is 0 fit.
            Some(_) => self.min,
            None => self.walk(ticket, room),
        }
    }

    /// The size of a ticket, found without the table.
    #[cold]
    fn walk(&self, mut ticket: u64, room: u64) -> u64 {
        for &(size, share) in self.entries.iter().filter(|entry| entry.0 <= room) {
            match ticket.checked_sub(u64::from(share)) {
                None => return size,
                Some(left) => ticket = left,
            }
        }
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn shares(size: BlockSize, unaligned: bool, room: u64) -> BTreeMap<u64, f64> {
        let sizes = Sizes::new(&size, unaligned);
        let mut rng = Rng::new(3);
        let mut counts = BTreeMap::new();
        for _ in 0..100_000 {
            *counts.entry(sizes.draw(&mut rng, room)).or_insert(0.0) += 1.0 / 100_000.0;
        }
        counts
    }

    fn assert_shares(actual: &BTreeMap<u64, f64>, expected: &[(u64, f64)]) {
        assert_eq!(actual.len(), expected.len(), "{actual:?}");
        for &(size, share) in expected {
            assert!((actual[&size] - share).abs() < 0.008, "{size}: {actual:?}");
        }
    }

    #[test]
    fn a_range_is_shared_evenly() {
        let k = 1024;
        let quarter = [(4 * k, 0.25), (8 * k, 0.25), (12 * k, 0.25), (16 * k, 0.25)];
        assert_shares(&shares(BlockSize::Range(4 * k, 16 * k), false, u64::MAX), &quarter);
    }

    /// Observed with fio 3.33 and `bsrange=4k-18k`: 22% for each multiple, and 11% for the largest size.
    #[test]
    fn an_odd_largest_size_gets_the_remaining_share() {
        let k = 1024;
        let ninths = [(4, 2.0), (8, 2.0), (12, 2.0), (16, 2.0), (18, 1.0)].map(|(s, n)| (s * k, n / 9.0));
        assert_shares(&shares(BlockSize::Range(4 * k, 18 * k), false, u64::MAX), &ninths);
    }

    #[test]
    fn the_draw_is_among_the_sizes_that_fit() {
        let k = 1024;
        let thirds = [(4 * k, 1.0 / 3.0), (8 * k, 1.0 / 3.0), (12 * k, 1.0 / 3.0)];
        assert_shares(&shares(BlockSize::Range(4 * k, 16 * k), false, 15 * k), &thirds);
        let split = BlockSize::Split(vec![(4 * k, 20), (64 * k, 50), (32 * k, 30)]);
        assert_shares(&shares(split.clone(), false, u64::MAX), &[(4 * k, 0.2), (64 * k, 0.5), (32 * k, 0.3)]);
        assert_shares(&shares(split, false, 63 * k), &[(4 * k, 0.4), (32 * k, 0.6)]);
    }

    /// The shares add up to more than the table holds; the proportions are the same.
    #[test]
    fn shares_finer_than_the_table() {
        let fine = BlockSize::Split(vec![(8192, 3000), (512, 0), (4096, 1000)]);
        assert_shares(&shares(fine.clone(), false, u64::MAX), &[(4096, 0.25), (8192, 0.75)]);
        assert_shares(&shares(fine.clone(), false, 8191), &[(4096, 1.0)]);
        assert_shares(&shares(fine, false, 4095), &[(512, 1.0)]);
    }

    #[test]
    fn a_share_of_nothing_still_gives_a_size_that_fits() {
        let split = BlockSize::Split(vec![(512, 0), (4096, 100)]);
        assert_shares(&shares(split, false, 1000), &[(512, 1.0)]);
    }

    #[test]
    fn unaligned_sizes_are_any() {
        let sizes = shares(BlockSize::Range(10, 20), true, u64::MAX);
        assert_eq!(sizes.keys().copied().collect::<Vec<_>>(), (10..=20).collect::<Vec<_>>());
        let sizes = shares(BlockSize::Range(10, 20), true, 10);
        assert_eq!(sizes.keys().copied().collect::<Vec<_>>(), [10]);
    }
}
