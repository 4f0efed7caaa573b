//! Random bytes, fast: several xoshiro256+ generators side by side.
//!
//! The algorithm is by Blackman and Vigna (public domain, <https://prng.di.unimi.it>), the states come from
//! SplitMix64. The lanes are kept in arrays so that the compiler uses whatever vectors there are: a step is a
//! dozen operations for all the lanes of a vector. The variant with a plain sum is enough here: its weakness,
//! a little linearity in the lowest bits, is nothing that a storage system could compress or find twice.

/// Generators side by side; a step makes this many words. With more, the states no longer fit into the sixteen
/// vector registers that every x86-64 has, and the speed is halved.
const LANES: usize = 4;
const STEP: usize = LANES * 8;

/// The next of the sequence of SplitMix64.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// SplitMix64's bijection: different numbers stay different, and look random.
#[inline(always)]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// One word per lane.
type Words = [u64; LANES];

#[inline(always)]
fn each(a: Words, b: Words, operation: impl Fn(u64, u64) -> u64) -> Words {
    std::array::from_fn(|lane| operation(a[lane], b[lane]))
}

#[inline(always)]
fn xor(a: Words, b: Words) -> Words {
    each(a, b, |a, b| a ^ b)
}

/// A source of random bytes.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [Words; 4],
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut sequence = seed;
        Random { state: std::array::from_fn(|_| std::array::from_fn(|_| split_mix(&mut sequence))) }
    }

    /// Fills a buffer with what comes next.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        // In locals for the time of the loop, so that the states stay in registers.
        let mut state = self.state;
        let (steps, rest) = buffer.as_chunks_mut::<STEP>();
        for chunk in steps {
            store(chunk, step(&mut state));
        }
        if !rest.is_empty() {
            let mut last = [0; STEP];
            store(&mut last, step(&mut state));
            rest.copy_from_slice(&last[..rest.len()]);
        }
        self.state = state;
    }
}

/// One step of all lanes.
#[inline(always)]
fn step(state: &mut [Words; 4]) -> Words {
    let [a, b, c, d] = *state;
    let result = each(a, d, u64::wrapping_add);
    let shifted = b.map(|word| word << 17);
    let c = xor(c, a);
    let d = xor(d, b);
    let b = xor(b, c);
    let a = xor(a, d);
    *state = [a, b, xor(c, shifted), d.map(|word| word.rotate_left(45))];
    result
}

/// Little endian on every machine, so that a seed means the same data everywhere.
#[inline(always)]
fn store(chunk: &mut [u8; STEP], words: Words) {
    for (place, word) in chunk.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn bytes(seed: u64, size: usize) -> Vec<u8> {
        let mut buffer = vec![0; size];
        Random::new(seed).fill(&mut buffer);
        buffer
    }

    /// Bits per byte that an ideal order-0 coder would need.
    fn entropy(bytes: &[u8]) -> f64 {
        let mut counts = [0f64; 256];
        for &byte in bytes {
            counts[usize::from(byte)] += 1.0;
        }
        let total = bytes.len() as f64;
        counts.iter().filter(|&&n| n > 0.0).map(|n| -n / total * (n / total).log2()).sum()
    }

    #[test]
    fn it_has_no_structure_that_compresses() {
        let data = bytes(1, 1 << 20);
        assert!(entropy(&data) > 7.999);
        // Nor does any difference of neighbours, at the distances of bytes, words, steps and sectors.
        for distance in [1, 8, STEP, 512] {
            let differences: Vec<u8> =
                data.iter().zip(&data[distance..]).map(|(a, b)| a.wrapping_sub(*b)).collect();
            assert!(entropy(&differences) > 7.999, "distance {distance}");
        }
        // No eight bytes occur twice, at any alignment of bytes: nothing for a dictionary.
        let windows: HashSet<&[u8]> = data.windows(8).collect();
        assert_eq!(windows.len(), data.len() - 7);
    }

    #[test]
    fn every_bit_is_set_half_of_the_time() {
        let data = bytes(3, 1 << 20);
        for bit in 0..8 {
            let set = data.iter().filter(|&&byte| byte >> bit & 1 == 1).count();
            // Five standard deviations of a binomial of 2^20.
            assert!(set.abs_diff(1 << 19) < 2560, "bit {bit}: {set}");
        }
    }

    #[test]
    fn odd_sizes_are_filled_to_the_end() {
        for size in [0, 1, 7, 63, 64, 65, 511, 4097] {
            let mut buffer = vec![0; size + 1];
            for seed in 0..64 {
                let mut this = vec![0; size + 1];
                Random::new(seed).fill(&mut this[..size]);
                assert_eq!(this[size], 0);
                buffer.iter_mut().zip(&this).for_each(|(sum, byte)| *sum |= byte);
            }
            assert!(buffer[..size].iter().all(|&byte| byte != 0));
        }
    }

    #[test]
    fn it_goes_on_from_fill_to_fill_and_repeats_with_its_seed() {
        let mut random = Random::new(5);
        let mut halves = vec![0; 1024];
        random.fill(&mut halves[..512]);
        random.fill(&mut halves[512..]);
        assert_eq!(halves, bytes(5, 1024));
        assert_ne!(halves, bytes(6, 1024));
    }
}
