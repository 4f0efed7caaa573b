//! Fast random bytes: rounds of AES.
//!
//! Each of sixteen blocks of 16 bytes begins with a state from SplitMix64, and one round of AES (FIPS 197, 5.1, with a
//! constant key) makes the next 16 bytes of it, again and again. That is no cipher, and need not be one: what storage
//! systems look for are repetitions and uneven frequencies, and a round of AES leaves none. Processors have an instruction
//! for it (`random/vaes.rs`, `random/aes.rs`, `random/neon.rs`), so buffers are filled about as fast as they can be written. All
//! ways make the same bytes.

/// The function `fill_beginnings` of a module, by its `key`, `round`, `load` and `store` of vectors. Each kind of vector has one
/// of its own, because the compiler inlines only what has the same features of the processor.
macro_rules! fill_beginnings {
    ($feature:literal) => {
        /// The same as [`portable::fill_beginnings`](super::portable::fill_beginnings).
        #[target_feature(enable = $feature)]
        pub(super) fn fill_beginnings(
            state: &mut State,
            buffer: &mut [u8],
            chunk: usize,
            random: impl Fn(usize) -> usize,
        ) {
            let key = key();
            let mut current = load(state);
            for chunk in buffer.chunks_mut(chunk) {
                let length = random(chunk.len());
                let (steps, rest) = chunk[..length].as_chunks_mut::<STEP>();
                for place in steps {
                    for (place, vector) in place.as_chunks_mut().0.iter_mut().zip(&mut current) {
                        *vector = round(*vector, key);
                        store(place, *vector);
                    }
                }
                if !rest.is_empty() {
                    current.iter_mut().for_each(|vector| *vector = round(*vector, key));
                    let last = bytes(current);
                    rest.copy_from_slice(&last[..rest.len()]);
                }
            }
            *state = bytes(current);
        }

        #[target_feature(enable = $feature)]
        fn bytes(vectors: Vectors) -> State {
            let mut bytes = [0; STEP];
            for (place, vector) in bytes.as_chunks_mut().0.iter_mut().zip(vectors) {
                store(place, vector);
            }
            bytes
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod aes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vaes;

/// The blocks that are computed side by side: an instruction takes several cycles, and others begin meanwhile.
const BLOCKS: usize = 16;
const BLOCK: usize = 16;
/// The bytes that a round of all blocks makes.
const STEP: usize = BLOCKS * BLOCK;
/// The last bytes of all blocks.
type State = [u8; STEP];

/// The key of each round: the first bits of π after the point, as two words.
const KEY: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

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

/// A source of random bytes.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: State,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = [0; STEP];
        for (place, number) in state.as_chunks_mut::<8>().0.iter_mut().zip(0..) {
            *place = nth_split_mix(seed, number).to_le_bytes();
        }
        Random { state }
    }

    /// The 64-bit word at this place (counted in words) in the output for this seed, without computing all others: one block is
    /// enough.
    pub(crate) fn word(seed: u64, place: usize) -> u64 {
        let (rounds, place) = (place / (STEP / 8), place % (STEP / 8));
        let first = place as u64 & !1;
        let mut block = [nth_split_mix(seed, first), nth_split_mix(seed, first + 1)];
        for _ in 0..=rounds {
            block = portable::round(block);
        }
        block[place % 2]
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
        if vaes::is_possible() {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { vaes::fill_beginnings(&mut self.state, buffer, chunk, random) };
        }
        #[cfg(target_arch = "x86_64")]
        if aes::is_possible() {
            // SAFETY: as above.
            return unsafe { aes::fill_beginnings(&mut self.state, buffer, chunk, random) };
        }
        #[cfg(target_arch = "aarch64")]
        if neon::is_possible() {
            // SAFETY: as above.
            return unsafe { neon::fill_beginnings(&mut self.state, buffer, chunk, random) };
        }
        portable::fill_beginnings(&mut self.state, buffer, chunk, random);
    }
}

/// The implementation that this processor gets: its instructions.
pub fn implementation() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if vaes::is_possible() {
        return "vaes";
    }
    #[cfg(target_arch = "x86_64")]
    if aes::is_possible() {
        return "aes-ni";
    }
    #[cfg(target_arch = "aarch64")]
    if neon::is_possible() {
        return "neon aes";
    }
    "portable"
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
        for distance in [1, 8, BLOCK, STEP, 512] {
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
    fn all_instructions_make_the_same_bytes() {
        for (size, chunk, random) in
            [(0, 1, 1), (64, 64, 64), (4096, 512, 256), (5000, 700, 333), (100, 9, 0), (9000, 9000, 9000)]
        {
            let random = |length: usize| length.min(random);
            let (mut expected, mut at_end) = (vec![0xee; size], Random::new(9).state);
            portable::fill_beginnings(&mut at_end, &mut expected, chunk, random);
            let same = |name: &str, fill: &dyn Fn(&mut State, &mut [u8])| {
                let (mut made, mut state) = (vec![0xee; size], Random::new(9).state);
                fill(&mut state, &mut made);
                assert!(made == expected && state == at_end, "{name}: {size} {chunk}");
            };
            #[cfg(target_arch = "x86_64")]
            if vaes::is_possible() {
                // SAFETY: the processor has the features that the function is compiled for.
                same("vaes", &|state, made| unsafe { vaes::fill_beginnings(state, made, chunk, random) });
            }
            #[cfg(target_arch = "x86_64")]
            if aes::is_possible() {
                // SAFETY: as above.
                same("aes", &|state, made| unsafe { aes::fill_beginnings(state, made, chunk, random) });
            }
            #[cfg(target_arch = "aarch64")]
            if neon::is_possible() {
                // SAFETY: as above.
                same("neon", &|state, made| unsafe { neon::fill_beginnings(state, made, chunk, random) });
            }
            let (mut made, mut chosen) = (vec![0xee; size], Random::new(9));
            chosen.fill_beginnings(&mut made, chunk, random);
            same("chosen", &|state, bytes| {
                bytes.copy_from_slice(&made);
                *state = chosen.state;
            });
        }
    }

    #[test]
    fn odd_sizes_are_filled_to_the_end() {
        for size in [0, 1, 7, 63, 64, 65, 255, 256, 257, 511, 4097] {
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
