//! The step of all lanes in registers of 128 bits.

use super::{LANES, STEP, Words};
use std::arch::aarch64::*;

/// The lanes of one word of the state. All four words together take half of the registers.
type Vectors = [uint64x2_t; LANES / 2];

fill_beginnings!("neon");

#[inline]
#[target_feature(enable = "neon")]
fn step(state: &mut [Vectors; 4]) -> Vectors {
    let [mut a, mut b, mut c, mut d] = *state;
    let mut result = a;
    for lane in 0..result.len() {
        result[lane] = vaddq_u64(a[lane], d[lane]);
        let shifted = vshlq_n_u64::<17>(b[lane]);
        c[lane] = veorq_u64(c[lane], a[lane]);
        d[lane] = veorq_u64(d[lane], b[lane]);
        b[lane] = veorq_u64(b[lane], c[lane]);
        a[lane] = veorq_u64(a[lane], d[lane]);
        c[lane] = veorq_u64(c[lane], shifted);
        // To the left by 45, and what falls out comes back on the right.
        d[lane] = vsriq_n_u64::<19>(vshlq_n_u64::<45>(d[lane]), d[lane]);
    }
    *state = [a, b, c, d];
    result
}

#[inline]
#[target_feature(enable = "neon")]
fn load(words: &Words) -> Vectors {
    let (pairs, _) = words.as_chunks::<2>();
    // SAFETY: each pair is 16 readable bytes.
    std::array::from_fn(|lane| unsafe { vld1q_u64(pairs[lane].as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn store(place: &mut [u8; STEP], vectors: Vectors) {
    let (pairs, _) = place.as_chunks_mut::<16>();
    for (pair, vector) in pairs.iter_mut().zip(vectors) {
        // SAFETY: the pair is 16 writable bytes, and a store of bytes needs no alignment.
        unsafe { vst1q_u8(pair.as_mut_ptr(), vreinterpretq_u8_u64(vector)) };
    }
}
