//! Every block once, in random order, without a map of visited blocks: a keyed permutation of `0..length`.
//!
//! The range is laid out as a rectangle whose number of rows is a power of two near the square root of the range, and a
//! counter walks through its cells. Three Feistel rounds (row ^= F(column), column += G(row) modulo the number of
//! columns, row ^= H(column)) map each cell to another one. Each round can be undone, so the map is a bijection,
//! whatever the round functions are; they are keyed multiplicative hashes. The rectangle exceeds the range by less than
//! one cell per row, so the image of only about one cell in the square root of the length is outside the range (it is
//! skipped). So the last block costs as much as the first. No value depends on the one before, so a processor works on
//! several at once.
//!
//! This is a shuffle for a load generator, not a cipher. The tests below check the required properties: coverage,
//! uniform prefixes, no correlation of neighbours, and a different order for every key.

use crate::rng::{SplitMix64, scale};

/// The order of one pass over a range.
#[derive(Clone, Debug)]
pub struct Permutation {
    length: u64,
    /// The number of rows is two to this power.
    row_bits: u32,
    columns: u64,
    keys: [u64; 3],
    row: u64,
    column: u64,
}

/// A keyed multiplication: enough for the first round, which only has to send neighbours to different rows.
#[inline(always)]
fn spread(value: u64, key: u64) -> u64 {
    (value ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A keyed hash of `value`. Only its upper bits are well mixed.
#[inline(always)]
fn hash(value: u64, key: u64) -> u64 {
    let mixed = spread(value, key);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// `a + b` modulo `modulus`, for `a` and `b` below it.
#[inline(always)]
fn add_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    sum.min(sum.wrapping_sub(modulus))
}

impl Permutation {
    /// The permutation of `0..length` that `key` selects. `length` is at most 2^62.
    pub fn new(length: u64, key: u64) -> Self {
        assert!(length <= 1 << 62, "a range of at most 2^62 blocks");
        let root = length.isqrt();
        let root = if root * root < length { root + 1 } else { root };
        let row_bits = root.checked_ilog2().unwrap_or(0);
        let columns = length.div_ceil(1 << row_bits);
        let mut permutation = Permutation { length, row_bits, columns, keys: [0; 3], row: 0, column: 0 };
        permutation.rekey(key);
        permutation
    }

    /// Starts another pass, in another order.
    pub fn rekey(&mut self, key: u64) {
        let mut keys = SplitMix64::new(key);
        self.keys = std::array::from_fn(|_| keys.next_u64());
        // An empty range has no columns, and the pass is over at once.
        self.row = if self.columns == 0 { 1 << self.row_bits } else { 0 };
        self.column = 0;
    }

    /// The next value of the pass; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "a pass can be restarted, which no iterator promises")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<u64> {
        while self.row >> self.row_bits == 0 {
            let value = self.image(self.row, self.column);
            self.column += 1;
            if self.column == self.columns {
                self.column = 0;
                self.row += 1;
            }
            if value < self.length {
                return Some(value);
            }
        }
        None
    }

    /// The value at a place below the length, in an order that also covers the range once. It is not the order of
    /// [`next`](Self::next), which skips images outside the range; this function follows them back into the range.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        let mut value = place;
        loop {
            value = self.image(value / self.columns, value % self.columns);
            if value < self.length {
                return value;
            }
        }
    }

    #[inline(always)]
    fn image(&self, row: u64, column: u64) -> u64 {
        // Shifts in two steps: with a single row it would be a shift by 64, which overflows.
        let shift = 63 - self.row_bits;
        let row = row ^ (spread(column, self.keys[0]) >> 1 >> shift);
        let step = scale(hash(row, self.keys[1]), self.columns);
        let column = add_modulo(column, step, self.columns);
        let row = row ^ (hash(column, self.keys[2]) >> 1 >> shift);
        row * self.columns + column
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pass(length: u64, key: u64) -> Vec<u64> {
        let mut permutation = Permutation::new(length, key);
        std::iter::from_fn(|| permutation.next()).collect()
    }

    fn assert_bijection(length: u64, key: u64) {
        let mut seen = vec![false; length as usize];
        let values = pass(length, key);
        assert_eq!(values.len() as u64, length, "length {length}");
        for value in values {
            assert!(!std::mem::replace(&mut seen[value as usize], true), "{value} twice in {length}");
        }
    }

    #[test]
    fn awkward_lengths_are_covered_exactly_once() {
        let primes = [5, 7, 11, 13, 127, 257, 1009, 7919, 65_537, 104_729];
        let around_powers = (0..18).flat_map(|bits| {
            let power = 1u64 << bits;
            [power - 1, power, power + 1]
        });
        for length in [0, 1, 2, 3].into_iter().chain(primes).chain(around_powers) {
            assert_bijection(length, 0x1234_5678 ^ length);
        }
    }

    #[test]
    fn every_place_has_its_own_value() {
        for length in [1, 2, 3, 7, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(length, 77);
            let mut values: Vec<u64> = (0..length).map(|place| permutation.at(place)).collect();
            values.sort_unstable();
            assert_eq!(values, (0..length).collect::<Vec<_>>());
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_length_is_covered_exactly_once(length in 0u64..20_000, key: u64) {
            assert_bijection(length, key);
        }

        #[test]
        fn huge_ranges_stay_inside(length in 1u64..=(1 << 62), key: u64) {
            let mut permutation = Permutation::new(length, key);
            let mut seen = std::collections::HashSet::new();
            for _ in 0..200.min(length) {
                let value = permutation.next().unwrap();
                prop_assert!(value < length);
                prop_assert!(seen.insert(value));
            }
        }
    }

    #[test]
    fn every_order_of_three_occurs() {
        let orders: std::collections::HashSet<Vec<u64>> = (0..1000).map(|key| pass(3, key)).collect();
        assert_eq!(orders.len(), 6);
    }

    /// Every stretch of a pass is spread evenly over the range: chi-square of 64 bins, for several lengths.
    #[test]
    fn stretches_are_uniform() {
        for (length, key) in [(1 << 20, 1), (1_000_003, 2), (262_144 + 17, 3), (5_000_000_000, 4)] {
            let mut permutation = Permutation::new(length, key);
            for stretch in 0..4 {
                let mut bins = [0f64; 64];
                for _ in 0..16_384 {
                    bins[scale_bin(permutation.next().unwrap(), length, 64)] += 1.0;
                }
                let expected = 16_384.0 / 64.0;
                let chi: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
                // 63 degrees of freedom: mean 63, standard deviation 11.2, and a little less without replacement.
                assert!(chi < 63.0 + 5.0 * 11.2, "length {length}, stretch {stretch}: {chi}");
                assert!(chi > 63.0 - 5.0 * 11.2, "length {length}, stretch {stretch}: {chi}, too even");
            }
        }
    }

    fn scale_bin(value: u64, length: u64, bins: u64) -> usize {
        (u128::from(value) * u128::from(bins) / u128::from(length)) as usize
    }

    /// A value says nothing about the next value, nor about the eighth after it: chi-square over the 16 × 16 pairs of
    /// bins.
    #[test]
    fn neighbours_are_independent() {
        for (length, key) in [(1u64 << 20, 11), (1_000_003, 12), (5_000_000_000, 13)] {
            let mut permutation = Permutation::new(length, key);
            let values: Vec<u64> = (0..200_000).map(|_| permutation.next().unwrap()).collect();
            for distance in [1, 2, 8] {
                let mut bins = [0f64; 256];
                for (a, b) in values.iter().zip(&values[distance..]) {
                    bins[scale_bin(*a, length, 16) * 16 + scale_bin(*b, length, 16)] += 1.0;
                }
                let expected = (values.len() - distance) as f64 / 256.0;
                let chi: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
                // 255 degrees of freedom: standard deviation 22.6.
                assert!((chi - 255.0).abs() < 5.0 * 22.6, "length {length}, distance {distance}: {chi}");
            }
        }
    }

    /// The steps between consecutive values are spread evenly (a generator with a constant stride fails).
    #[test]
    fn steps_do_not_repeat() {
        let length = 1u64 << 20;
        let values = pass(length, 99);
        let mut bins = [0f64; 64];
        for pair in values.windows(2) {
            bins[((pair[1] + length - pair[0]) % length * 64 / length) as usize] += 1.0;
        }
        let expected = (values.len() - 1) as f64 / 64.0;
        let chi: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(chi < 63.0 + 5.0 * 11.2, "{chi}");
    }

    #[test]
    fn another_key_is_another_order_and_the_same_key_the_same() {
        let mut permutation = Permutation::new(1000, 5);
        let first: Vec<u64> = std::iter::from_fn(|| permutation.next()).collect();
        permutation.rekey(6);
        let second: Vec<u64> = std::iter::from_fn(|| permutation.next()).collect();
        assert!(first.iter().zip(&second).filter(|(a, b)| a == b).count() < 20);
        permutation.rekey(5);
        assert_eq!(std::iter::from_fn(|| permutation.next()).collect::<Vec<_>>(), first);
    }
}
