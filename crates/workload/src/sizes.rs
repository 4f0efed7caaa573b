//! How long the next I/O is: one size, a range of sizes, or sizes with shares.
//!
//! A range gives each multiple of its smallest size the same share: a number from 1 byte to the largest size
//! is drawn and rounded up to the next multiple; when the largest is no multiple of the smallest, it gets the
//! share that is left (`4k-18k`: two ninths each for 4k, 8k, 12k, 16k, and one ninth for 18k). Unaligned, any
//! size from the smallest to the largest is as likely as any other. Where less is left of the region than
//! the largest size needs, the draw is among the sizes that fit, with the same proportions.

use crate::{BlockSize, rng::Rng};

/// A [`BlockSize`] prepared for drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Fixed(u64),
    /// Multiples of `low` up to `high`: `count` of them, and `high` itself if that is not `exact`.
    Multiples {
        low: u64,
        high: u64,
        count: u64,
        exact: bool,
        /// `low` as a power of two, when it is one.
        shift: Option<u32>,
    },
    /// Anything from the first to the second.
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

    /// The only size, when there is only one.
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
            // The same draws as below without a division, for the usual cases.
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

/// Shares are per cents; a table for anything much finer would only fill the processor's cache.
const MOST_TICKETS: u64 = 1000;

/// Several sizes, each with its share of the I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// From the smallest size to the largest, so that those that fit into some room come first.
    entries: Vec<(u64, u32)>,
    /// The size of each ticket in the same order, as many as the shares add up to; none when that is too many. A look
    /// into a table, where a walk along the shares would be a branch that cannot be predicted.
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

    /// Among the sizes that fit, with the same proportions.
    #[inline(always)]
    fn draw(&self, rng: &mut Rng, room: u64) -> u64 {
        let share = |entry: &(u64, u32)| if entry.0 <= room { u64::from(entry.1) } else { 0 };
        let ticket = rng.below(self.entries.iter().map(share).sum());
        match self.tickets.get(ticket as usize) {
            Some(&size) if size <= room => size,
            // Only sizes without a share fit.
            Some(_) => self.min,
            None => self.walk(ticket, room),
        }
    }

    /// The size of a ticket without a table.
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

    /// What fio 3.33 was seen to do with `bsrange=4k-18k`: 22 % each, and 11 % for the odd one.
    #[test]
    fn an_odd_largest_size_gets_what_is_left() {
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

    /// More shares than there are tickets: the same proportions.
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
