//! Fast random bytes: several xoshiro256+ generators in parallel lanes.
//!
//! The algorithm is by Blackman and Vigna (public domain, <https://prng.di.unimi.it>); the initial states come from
//! SplitMix64. On processors with AVX2 or NEON, the lanes are kept in vector registers (`random/avx2.rs`,
//! `random/neon.rs`). With AVX2 that is more than three times as fast as the compiled portable loop, which does not keep
//! its lanes in registers. All ways make the same bytes. The variant with a plain sum (`+`) is enough here: its weakness is
//! a little linearity in the lowest bits, which no storage system can compress or deduplicate.

/// The function [`fill_beginnings`] of a module, by its `step`, `load` and `store` of vectors. Each kind of vector has one of its
/// own, because the compiler inlines only what has the same features of the processor.
macro_rules! fill_beginnings {
    ($feature:literal) => {
        /// The same as [`super::fill_beginnings`].
        #[target_feature(enable = $feature)]
        pub(super) fn fill_beginnings(
            state: &mut [Words; 4],
            buffer: &mut [u8],
            chunk: usize,
            random: impl Fn(usize) -> usize,
        ) {
            let mut current = [load(&state[0]), load(&state[1]), load(&state[2]), load(&state[3])];
            for chunk in buffer.chunks_mut(chunk) {
                let length = random(chunk.len());
                let (steps, rest) = chunk[..length].as_chunks_mut::<STEP>();
                for place in steps {
                    store(place, step(&mut current));
                }
                if !rest.is_empty() {
                    let mut last = [0; STEP];
                    store(&mut last, step(&mut current));
                    rest.copy_from_slice(&last[..rest.len()]);
                }
            }
            for (words, vectors) in state.iter_mut().zip(current) {
                let mut bytes = [0; STEP];
                store(&mut bytes, vectors);
                for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

/// The number of generators in parallel; a step makes this many words. They fill two vectors of AVX2, so that one is
/// computed while the other waits for its results.
const LANES: usize = 8;
const STEP: usize = LANES * 8;

/// The increment of SplitMix64's state from number to number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next number of the SplitMix64 sequence.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
    mix(*state)
}

/// The number at this position, from 0, of the SplitMix64 sequence that starts at `state`.
fn nth_split_mix(state: u64, number: u64) -> u64 {
    mix(state.wrapping_add(GAMMA.wrapping_mul(number + 1)))
}

/// SplitMix64's bijection: different numbers stay different and look random.
#[inline(always)]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// One word per lane.
type Words = [u64; LANES];

#[inline(always)]
fn each<const N: usize>(a: [u64; N], b: [u64; N], operation: impl Fn(u64, u64) -> u64) -> [u64; N] {
    std::array::from_fn(|lane| operation(a[lane], b[lane]))
}

#[inline(always)]
fn xor<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
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

    /// The word at this place in the output for this seed, without computing the words before it: one lane is enough.
    pub(crate) fn word(seed: u64, place: usize) -> u64 {
        let (steps, lane) = (place / LANES, place % LANES);
        let mut state = std::array::from_fn(|row| [nth_split_mix(seed, (row * LANES + lane) as u64)]);
        for _ in 0..steps {
            step(&mut state);
        }
        step(&mut state)[0]
    }

    /// Fills a buffer with the next random bytes.
    #[inline]
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) {
        self.fill_beginnings(buffer, buffer.len().max(1), |length| length);
    }

    /// Fills the beginning of each chunk of `chunk` bytes in a buffer (the last chunk may be shorter). `random` gives
    /// the number of bytes to fill for the length of a chunk. The other bytes stay as they are.
    #[inline]
    pub(crate) fn fill_beginnings(
        &mut self,
        buffer: &mut [u8],
        chunk: usize,
        random: impl Fn(usize) -> usize,
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { avx2::fill_beginnings(&mut self.state, buffer, chunk, random) };
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            // SAFETY: as above.
            return unsafe { neon::fill_beginnings(&mut self.state, buffer, chunk, random) };
        }
        fill_beginnings(&mut self.state, buffer, chunk, random);
    }
}

/// The implementation that this processor gets: its vector instructions.
pub fn implementation() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "avx2";
    }
    if cfg!(target_arch = "aarch64") { "neon" } else { "portable" }
}

/// The portable implementation.
fn fill_beginnings(state: &mut [Words; 4], buffer: &mut [u8], chunk: usize, random: impl Fn(usize) -> usize) {
    // A local copy during the loop, so that the states stay in registers as far as possible.
    let mut current = *state;
    for chunk in buffer.chunks_mut(chunk) {
        let length = random(chunk.len());
        let (steps, rest) = chunk[..length].as_chunks_mut::<STEP>();
        for place in steps {
            store(place, step(&mut current));
        }
        if !rest.is_empty() {
            let mut last = [0; STEP];
            store(&mut last, step(&mut current));
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
    *state = current;
}

/// One step of `N` lanes.
#[inline(always)]
fn step<const N: usize>(state: &mut [[u64; N]; 4]) -> [u64; N] {
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

/// Stores words in little endian order on every machine, so that a seed gives the same data everywhere.
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

    #[test]
    fn a_word_is_that_of_the_whole() {
        let whole = bytes(77, 4096);
        for (place, word) in whole.as_chunks().0.iter().enumerate() {
            assert_eq!(Random::word(77, place), u64::from_le_bytes(*word), "{place}");
        }
    }

    /// The bits per byte that an ideal order-0 coder needs.
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
        // The differences of neighbours have no pattern either, at the distances of bytes, words, steps and sectors.
        for distance in [1, 8, STEP, 512] {
            let differences: Vec<u8> =
                data.iter().zip(&data[distance..]).map(|(a, b)| a.wrapping_sub(*b)).collect();
            assert!(entropy(&differences) > 7.999, "distance {distance}");
        }
        // No sequence of eight bytes occurs twice, at any alignment, so a dictionary finds nothing.
        let windows: HashSet<&[u8]> = data.windows(8).collect();
        assert_eq!(windows.len(), data.len() - 7);
    }

    #[test]
    fn every_bit_is_set_half_of_the_time() {
        let data = bytes(3, 1 << 20);
        for bit in 0..8 {
            let set = data.iter().filter(|&&byte| byte >> bit & 1 == 1).count();
            // Five standard deviations of a binomial law with 2^20 trials.
            assert!(set.abs_diff(1 << 19) < 2560, "bit {bit}: {set}");
        }
    }

    #[test]
    fn vectors_and_the_portable_way_make_the_same_bytes() {
        for (size, chunk, random) in
            [(0, 1, 1), (64, 64, 64), (4096, 512, 256), (5000, 700, 333), (100, 9, 0)]
        {
            let random = |length: usize| length.min(random);
            let (mut one, mut other) = (Random::new(9), Random::new(9));
            let (mut vectors, mut portable) = (vec![0xee; size], vec![0xee; size]);
            one.fill_beginnings(&mut vectors, chunk, random);
            fill_beginnings(&mut other.state, &mut portable, chunk, random);
            assert_eq!(vectors, portable, "{size} {chunk}");
            assert_eq!(one.state, other.state);
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
