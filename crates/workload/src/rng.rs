//! Pseudo-random numbers: xoshiro256++, seeded through SplitMix64.
//!
//! Both algorithms are by Blackman and Vigna, in the public domain, described in "Scrambled linear pseudorandom number
//! generators" (ACM TOMS 47, 2021) and at <https://prng.di.unimi.it>. Every kind of choice draws from its own stream
//! ([`Rng::stream`]), so that an extra draw of one kind does not shift the others.

/// A number below `range` from 64 random bits: the high 64 bits of the product.
#[inline(always)]
pub(crate) fn scale(bits: u64, range: u64) -> u64 {
    ((u128::from(bits) * u128::from(range)) >> 64) as u64
}

/// SplitMix64: a sequence of well mixed 64-bit numbers from any seed, for seeds and keys.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A sequence that depends on `seed` alone.
    pub fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The `stream`th of many independent sequences of the same seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        SplitMix64::new(SplitMix64::seed_of(seed, stream))
    }

    /// The seed of the `stream`th of these sequences.
    pub fn seed_of(seed: u64, stream: u64) -> u64 {
        seed ^ SplitMix64::new(stream).next_u64()
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// xoshiro256++.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self::from_sequence(SplitMix64::new(seed))
    }

    /// The `stream`th of many independent generators of the same seed.
    pub fn stream(seed: u64, stream: u64) -> Self {
        Self::from_sequence(SplitMix64::stream(seed, stream))
    }

    fn from_sequence(mut sequence: SplitMix64) -> Self {
        // SplitMix64 is a bijection of its counter, so four consecutive outputs are never all zero.
        Rng { state: std::array::from_fn(|_| sequence.next_u64()) }
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let [mut a, mut b, mut c, mut d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let shifted = b << 17;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        self.state = [a, b, c ^ shifted, d.rotate_left(45)];
        result
    }

    /// A number below `range` (0 for a range of 0). The bias of the multiplication is at most `range / 2^64`.
    #[inline(always)]
    pub fn below(&mut self, range: u64) -> u64 {
        scale(self.next_u64(), range)
    }

    /// True in `percent` of 100 cases.
    #[inline(always)]
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference values that the authors' C program prints for the seed 1234567.
    #[test]
    fn splitmix_matches_its_reference() {
        let mut sequence = SplitMix64::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| sequence.next_u64()), expected);
    }

    /// The well-known first outputs of xoshiro256++ from the state 1, 2, 3, 4.
    #[test]
    fn xoshiro_matches_its_reference() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let expected: [u64; 10] = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
            14_011_001_112_246_962_877,
            12_406_186_145_184_390_807,
            15_849_039_046_786_891_736,
            10_450_023_813_501_588_000,
        ];
        assert_eq!(expected.map(|_| rng.next_u64()), expected);
    }

    #[test]
    fn bounded_numbers_are_even_and_in_range() {
        let mut rng = Rng::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // Five standard deviations of a binomial (100000, 0.1) are 474.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 474), "{counts:?}");
        assert_eq!(rng.below(1), 0);
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn percent_keeps_its_promise_at_the_ends() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| rng.percent(100)));
        assert!(!(0..1000).any(|_| rng.percent(0)));
    }

    #[test]
    fn streams_differ_and_repeat() {
        assert_ne!(Rng::stream(1, 0).next_u64(), Rng::stream(1, 1).next_u64());
        assert_ne!(Rng::stream(1, 0).next_u64(), Rng::stream(2, 0).next_u64());
        assert_eq!(Rng::stream(1, 5).next_u64(), Rng::stream(1, 5).next_u64());
    }
}
