//! The step of all lanes in registers of 256 bits.

use super::{LANES, STEP, Words};
use std::arch::x86_64::*;

/// The lanes of one word of the state.
type Vectors = [__m256i; LANES / 4];

fill_beginnings!("avx2");

#[inline]
#[target_feature(enable = "avx2")]
fn step(state: &mut [Vectors; 4]) -> Vectors {
    let [mut a, mut b, mut c, mut d] = *state;
    let mut result = a;
    for lane in 0..result.len() {
        result[lane] = _mm256_add_epi64(a[lane], d[lane]);
        let shifted = _mm256_slli_epi64::<17>(b[lane]);
        c[lane] = _mm256_xor_si256(c[lane], a[lane]);
        d[lane] = _mm256_xor_si256(d[lane], b[lane]);
        b[lane] = _mm256_xor_si256(b[lane], c[lane]);
        a[lane] = _mm256_xor_si256(a[lane], d[lane]);
        c[lane] = _mm256_xor_si256(c[lane], shifted);
        d[lane] = _mm256_or_si256(_mm256_slli_epi64::<45>(d[lane]), _mm256_srli_epi64::<19>(d[lane]));
    }
    *state = [a, b, c, d];
    result
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &Words) -> Vectors {
    let (halves, _) = words.as_chunks::<4>();
    // SAFETY: each half is 32 readable bytes, and the load needs no alignment.
    let vector = |half: &[u64; 4]| unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
    [vector(&halves[0]), vector(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(place: &mut [u8; STEP], vectors: Vectors) {
    let (halves, _) = place.as_chunks_mut::<32>();
    for (half, vector) in halves.iter_mut().zip(vectors) {
        // SAFETY: the half is 32 writable bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), vector) };
    }
}
