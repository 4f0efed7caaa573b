//! Maps ranks to places. Neighbours in popularity should not be neighbours on the device, where they would be easier to
//! serve than the hot blocks of a real workload.
//!
//! Rank r lies at `first + r * step` modulo the number of places. The step is near the golden section of that number
//! and has no divisor in common with it. So each rank has its own place, and for every k, the first k ranks divide the
//! range as evenly as any k points of such a walk can. (fio also multiplies and takes the remainder, but its ranks
//! collide unless the number of blocks is a power of two: of 100 blocks, only 13 are ever used.)
//!
//! The remainder costs no division: with `ratio = floor(step * 2^64 / n)`, the high half of `r * ratio` is the quotient
//! or one less (Shoup's trick for products with a constant).

use iolite_types::greatest_common_divisor;

/// A bijection of `0..n`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    n: u64,
    first: u64,
    step: u64,
    ratio: u64,
}

impl Spread {
    /// The spread of `n` ranks (1 to 2^62) that puts `rank` at `place`.
    pub(crate) fn new(n: u64, rank: u64, place: u64) -> Self {
        let golden = (n as f64 * 0.618_033_988_749_895) as u64;
        let mut step = golden.clamp(1, n.max(2) - 1);
        while greatest_common_divisor(step, n) != 1 {
            step += 1;
        }
        // With a single place, the step becomes 0.
        let step = step % n;
        let ratio = ((u128::from(step) << 64) / u128::from(n)) as u64;
        let mut spread = Spread { n, first: 0, step, ratio };
        spread.first = (place + n - spread.place(rank)) % n;
        spread
    }

    /// The place of a rank below `n`.
    #[inline(always)]
    pub(crate) fn place(&self, rank: u64) -> u64 {
        let quotient = ((u128::from(rank) * u128::from(self.ratio)) >> 64) as u64;
        let remainder = rank.wrapping_mul(self.step).wrapping_sub(quotient.wrapping_mul(self.n));
        let remainder = remainder.min(remainder.wrapping_sub(self.n));
        let place = self.first + remainder;
        place.min(place.wrapping_sub(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_place_has_one_rank() {
        for n in (1..300).chain([1000, 1024, 4095, 4096, 4097]) {
            let spread = Spread::new(n, n / 2, n / 3);
            let mut seen = vec![false; n as usize];
            for rank in 0..n {
                assert!(!std::mem::replace(&mut seen[spread.place(rank) as usize], true), "{rank} of {n}");
            }
            assert_eq!(spread.place(n / 2), n / 3);
        }
    }

    /// The first five ranks divide 1000 places into five gaps, none of which is less than half of an even one (200).
    #[test]
    fn the_first_ranks_are_far_apart() {
        let spread = Spread::new(1000, 0, 0);
        let mut places: Vec<u64> = (0..5).map(|rank| spread.place(rank)).collect();
        places.sort_unstable();
        places.push(1000);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{places:?}");
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn it_is_the_remainder(n in 1u64..1 << 62, rank: u64, first: u64) {
            let (rank, first) = (rank % n, first % n);
            let spread = Spread::new(n, 0, first);
            let product = u128::from(rank) * u128::from(spread.step) + u128::from(first);
            prop_assert_eq!(u128::from(spread.place(rank)), product % u128::from(n));
        }
    }
}
