//! The block sizes of one direction.

use crate::{common_multiple, greatest_common_divisor};
use serde::{Deserialize, Serialize};

/// The block sizes of one direction, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockSize {
    /// Every I/O has this size.
    Fixed(u64),
    /// From the first size to the second, evenly spread over the multiples of the first (over all sizes, if unaligned).
    Range(u64, u64),
    /// These sizes, with their shares in percent (which sum to 100).
    Split(Vec<(u64, u32)>),
}

impl BlockSize {
    /// The smallest size.
    pub fn min(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) | BlockSize::Range(size, _) => *size,
            BlockSize::Split(entries) => entries.iter().map(|&(size, _)| size).min().unwrap_or(1),
        }
    }

    /// The largest size.
    pub fn max(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) | BlockSize::Range(_, size) => *size,
            BlockSize::Split(entries) => entries.iter().map(|&(size, _)| size).max().unwrap_or(1),
        }
    }

    /// These sizes and others: all ends of both, without their shares. Sizes between the ends of a range are lost; the
    /// smallest, the largest and the common divisor are exact.
    pub fn or(&self, other: &BlockSize) -> BlockSize {
        if self == other {
            return self.clone();
        }
        BlockSize::Split(
            [self, other].into_iter().flat_map(|sizes| sizes.ends()).map(|size| (size, 0)).collect(),
        )
    }

    /// The ends of a range, or all sizes of a list.
    pub fn ends(&self) -> Vec<u64> {
        match self {
            BlockSize::Fixed(size) => vec![*size],
            BlockSize::Range(low, high) => vec![*low, *high],
            BlockSize::Split(entries) => entries.iter().map(|&(size, _)| size).collect(),
        }
    }

    /// The size of every I/O; `None` if there are several sizes.
    pub fn only(&self) -> Option<u64> {
        let (min, max) = (self.min(), self.max());
        (min == max).then_some(min)
    }

    /// The largest number that divides all sizes (unless they are unaligned).
    pub fn common(&self) -> u64 {
        match self {
            BlockSize::Fixed(size) => *size,
            BlockSize::Range(low, high) => greatest_common_divisor(*low, *high),
            BlockSize::Split(entries) => {
                entries.iter().fold(0, |common, &(size, _)| greatest_common_divisor(common, size)).max(1)
            }
        }
    }

    /// A size that is a multiple of `number`; `None` if no size is, or `number` is 0. With `unaligned`, a range
    /// contains every size between its ends.
    pub fn multiple_of(&self, number: u64, unaligned: bool) -> Option<u64> {
        let fits = |&size: &u64| number > 0 && size.is_multiple_of(number);
        match self {
            BlockSize::Fixed(size) => Some(*size).filter(fits),
            BlockSize::Range(low, high) => {
                let step = if unaligned { 1 } else { *low };
                common_multiple(step, number, *low, *high).or(Some(*high).filter(fits))
            }
            BlockSize::Split(entries) => entries.iter().map(|&(size, _)| size).find(fits),
        }
    }

    /// A size that is not a multiple of `number`; `None` if all sizes are. With `unaligned`, a range contains every size
    /// between its ends.
    pub fn not_multiple_of(&self, number: u64, unaligned: bool) -> Option<u64> {
        let fails = |&size: &u64| number == 0 || !size.is_multiple_of(number);
        match self {
            BlockSize::Fixed(size) => Some(*size).filter(fails),
            BlockSize::Range(low, high) => {
                // If `number` divides the smallest size, it divides the multiples of that, but maybe not the
                // largest size.
                let second = if unaligned && low < high { low + 1 } else { *high };
                [*low, second, *high].into_iter().find(fails)
            }
            BlockSize::Split(entries) => entries.iter().map(|&(size, _)| size).find(fails),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_a_multiple_is_found_if_there_is_one() {
        let range = BlockSize::Range(1000, 4500);
        let split = BlockSize::Split(vec![(4096, 50), (12_288, 50)]);
        for (sizes, number, unaligned, found) in [
            (&BlockSize::Fixed(4096), 512, false, Some(4096)),
            (&BlockSize::Fixed(4096), 96, false, None),
            (&BlockSize::Fixed(4096), 0, false, None),
            (&range, 96, false, None),
            (&range, 96, true, Some(1056)),
            (&range, 300, false, Some(3000)),
            // The largest need not be a multiple of the smallest.
            (&range, 900, false, Some(4500)),
            (&range, 4600, true, None),
            (&range, u64::MAX, false, None),
            (&split, 96, false, Some(12_288)),
            (&split, 1000, false, None),
        ] {
            assert_eq!(sizes.multiple_of(number, unaligned), found, "{sizes:?} {number} {unaligned}");
        }
    }

    #[test]
    fn a_size_that_is_no_multiple_is_found_if_there_is_one() {
        let range = BlockSize::Range(1024, 4608);
        let split = BlockSize::Split(vec![(4096, 50), (6144, 50)]);
        for (sizes, number, unaligned, found) in [
            (&BlockSize::Fixed(4096), 512, false, None),
            (&BlockSize::Fixed(4096), 96, false, Some(4096)),
            (&BlockSize::Fixed(4096), 0, false, Some(4096)),
            (&range, 512, false, None),
            (&range, 512, true, Some(1025)),
            (&range, 1024, false, Some(4608)),
            (&range, 2048, false, Some(1024)),
            (&range, 1, true, None),
            (&BlockSize::Range(512, 512), 512, true, None),
            (&split, 2048, false, None),
            (&split, 4096, false, Some(6144)),
        ] {
            assert_eq!(sizes.not_multiple_of(number, unaligned), found, "{sizes:?} {number} {unaligned}");
        }
    }

    #[test]
    fn there_is_only_one_size_where_the_ends_are_alike() {
        assert_eq!(BlockSize::Fixed(512).only(), Some(512));
        assert_eq!(BlockSize::Range(512, 512).only(), Some(512));
        assert_eq!(BlockSize::Range(512, 1024).only(), None);
        assert_eq!(BlockSize::Split(vec![(512, 10), (512, 90)]).only(), Some(512));
        assert_eq!(BlockSize::Split(vec![(512, 10), (4096, 90)]).only(), None);
    }
}
