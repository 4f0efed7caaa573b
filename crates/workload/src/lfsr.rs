//! Every block once in the order of a maximal linear feedback shift register (`random_generator=lfsr`).
//!
//! A register of `n` bits whose feedback polynomial is primitive walks through all 2^n - 1 non-zero states before one
//! repeats. The generator uses the smallest register that has enough states. It skips states beyond the range; 0, which
//! is not a state, comes last. It costs a few instructions and no memory, but a value is mostly the previous one shifted:
//! this is a good shuffle for I/O, not a random one. A new pass starts at another place in the same cycle.
//!
//! The polynomials are the widely published ones of smallest weight (for example Xilinx application note
//! XAPP 052); a test checks that each is primitive.

use crate::rng::scale;

/// The exponents of the feedback polynomial for registers of 1 to 63 bits, without the constant term.
const TAPS: [&[u32]; 63] = [
    &[1],
    &[2, 1],
    &[3, 2],
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
    &[25, 22],
    &[26, 6, 2, 1],
    &[27, 5, 2, 1],
    &[28, 25],
    &[29, 27],
    &[30, 6, 4, 1],
    &[31, 28],
    &[32, 22, 2, 1],
    &[33, 20],
    &[34, 27, 2, 1],
    &[35, 33],
    &[36, 25],
    &[37, 5, 4, 3, 2, 1],
    &[38, 6, 5, 1],
    &[39, 35],
    &[40, 38, 21, 19],
    &[41, 38],
    &[42, 41, 20, 19],
    &[43, 42, 38, 37],
    &[44, 43, 18, 17],
    &[45, 44, 42, 41],
    &[46, 45, 26, 25],
    &[47, 42],
    &[48, 47, 21, 20],
    &[49, 40],
    &[50, 49, 24, 23],
    &[51, 50, 36, 35],
    &[52, 49],
    &[53, 52, 38, 37],
    &[54, 53, 18, 17],
    &[55, 31],
    &[56, 55, 35, 34],
    &[57, 50],
    &[58, 39],
    &[59, 58, 38, 37],
    &[60, 59],
    &[61, 60, 46, 45],
    &[62, 61, 6, 5],
    &[63, 62],
];

/// The order of one pass over a range.
#[derive(Clone, Debug)]
pub struct Lfsr {
    length: u64,
    remaining: u64,
    state: u64,
    mask: u64,
    states: u64,
}

impl Lfsr {
    /// A walk over `0..length` whose start depends on `key`. `length` is at most 2^62.
    pub fn new(length: u64, key: u64) -> Self {
        assert!(length <= 1 << 62, "a range of at most 2^62 blocks");
        let bits = length.next_power_of_two().ilog2().max(1);
        let mask = TAPS[bits as usize - 1].iter().fold(0, |mask, tap| mask | 1 << (tap - 1));
        let mut walk = Lfsr { length, remaining: 0, state: 1, mask, states: (1 << bits) - 1 };
        walk.rekey(key);
        walk
    }

    /// Starts another pass, at another place in the cycle.
    pub fn rekey(&mut self, key: u64) {
        self.remaining = self.length;
        self.state = 1 + scale(key, self.states);
    }

    /// The next value of the pass; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "a pass can be restarted, which no iterator promises")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<u64> {
        self.remaining = self.remaining.checked_sub(1)?;
        if self.remaining == 0 {
            return Some(0);
        }
        loop {
            let value = self.state;
            self.state = (self.state >> 1) ^ (self.mask & (self.state & 1).wrapping_neg());
            if value < self.length {
                return Some(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_bijection(length: u64, key: u64) {
        let mut walk = Lfsr::new(length, key);
        let mut seen = vec![false; length as usize];
        for _ in 0..length {
            let value = walk.next().unwrap();
            assert!(!std::mem::replace(&mut seen[value as usize], true), "{value} twice in {length}");
        }
        assert_eq!(walk.next(), None);
    }

    #[test]
    fn awkward_lengths_are_covered_exactly_once() {
        for bits in 0..17 {
            for length in [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                assert_bijection(length, 0x9876_5432_1012_3456);
            }
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_length_is_covered_exactly_once(length in 0u64..20_000, key: u64) {
            assert_bijection(length, key);
        }
    }

    #[test]
    fn another_pass_starts_elsewhere() {
        let mut walk = Lfsr::new(1000, 1);
        let first: Vec<u64> = std::iter::from_fn(|| walk.next()).collect();
        walk.rekey(u64::MAX / 2);
        let second: Vec<u64> = std::iter::from_fn(|| walk.next()).collect();
        assert_eq!(second.len(), 1000);
        assert_ne!(first, second);
    }

    /// The product of two polynomials over GF(2), modulo `polynomial` of degree `degree`.
    fn multiply(mut a: u64, b: u64, polynomial: u128, degree: u32) -> u64 {
        let mut product = 0u64;
        for bit in 0..degree {
            if b >> bit & 1 == 1 {
                product ^= a;
            }
            let doubled = u128::from(a) << 1;
            a = if doubled >> degree & 1 == 1 { (doubled ^ polynomial) as u64 } else { doubled as u64 };
        }
        product
    }

    fn power(mut exponent: u64, polynomial: u128, degree: u32) -> u64 {
        let mut base = if degree == 1 { 1 } else { 2 };
        let mut result = 1;
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = multiply(result, base, polynomial, degree);
            }
            base = multiply(base, base, polynomial, degree);
            exponent >>= 1;
        }
        result
    }

    /// A polynomial of degree n is primitive when x has order 2^n - 1: x^(2^n - 1) = 1, and not so for any
    /// exponent (2^n - 1) / q with a prime q.
    #[test]
    fn every_polynomial_is_primitive() {
        // The prime factors of 2^n - 1 for n = 2 to 63.
        let factors: [&[u64]; 62] = [
            &[3],
            &[7],
            &[3, 5],
            &[31],
            &[3, 7],
            &[127],
            &[3, 5, 17],
            &[7, 73],
            &[3, 11, 31],
            &[23, 89],
            &[3, 5, 7, 13],
            &[8191],
            &[3, 43, 127],
            &[7, 31, 151],
            &[3, 5, 17, 257],
            &[131071],
            &[3, 7, 19, 73],
            &[524287],
            &[3, 5, 11, 31, 41],
            &[7, 127, 337],
            &[3, 23, 89, 683],
            &[47, 178481],
            &[3, 5, 7, 13, 17, 241],
            &[31, 601, 1801],
            &[3, 2731, 8191],
            &[7, 73, 262657],
            &[3, 5, 29, 43, 113, 127],
            &[233, 1103, 2089],
            &[3, 7, 11, 31, 151, 331],
            &[2147483647],
            &[3, 5, 17, 257, 65537],
            &[7, 23, 89, 599479],
            &[3, 43691, 131071],
            &[31, 71, 127, 122921],
            &[3, 5, 7, 13, 19, 37, 73, 109],
            &[223, 616318177],
            &[3, 174763, 524287],
            &[7, 79, 8191, 121369],
            &[3, 5, 11, 17, 31, 41, 61681],
            &[13367, 164511353],
            &[3, 7, 43, 127, 337, 5419],
            &[431, 9719, 2099863],
            &[3, 5, 23, 89, 397, 683, 2113],
            &[7, 31, 73, 151, 631, 23311],
            &[3, 47, 178481, 2796203],
            &[2351, 4513, 13264529],
            &[3, 5, 7, 13, 17, 97, 241, 257, 673],
            &[127, 4432676798593],
            &[3, 11, 31, 251, 601, 1801, 4051],
            &[7, 103, 2143, 11119, 131071],
            &[3, 5, 53, 157, 1613, 2731, 8191],
            &[6361, 69431, 20394401],
            &[3, 7, 19, 73, 87211, 262657],
            &[23, 31, 89, 881, 3191, 201961],
            &[3, 5, 17, 29, 43, 113, 127, 15790321],
            &[7, 32377, 524287, 1212847],
            &[3, 59, 233, 1103, 2089, 3033169],
            &[179951, 3203431780337],
            &[3, 5, 7, 11, 13, 31, 41, 61, 151, 331, 1321],
            &[2305843009213693951],
            &[3, 715827883, 2147483647],
            &[7, 73, 127, 337, 92737, 649657],
        ];
        for (degree, primes) in (2u32..).zip(factors) {
            let order = (1u64 << degree) - 1;
            let mut rest = order;
            for &prime in primes {
                assert_eq!(rest % prime, 0);
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                }
            }
            assert_eq!(rest, 1, "the factors of 2^{degree} - 1 are complete");

            let taps = TAPS[degree as usize - 1];
            assert_eq!(taps[0], degree);
            let polynomial = taps.iter().fold(1u128, |sum, tap| sum | 1 << tap);
            assert_eq!(power(order, polynomial, degree), 1, "degree {degree}");
            for &prime in primes {
                assert_ne!(power(order / prime, polynomial, degree), 1, "degree {degree}, factor {prime}");
            }
        }
    }
}
