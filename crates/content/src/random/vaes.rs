//! The round of two blocks in a register of 256 bits (VAES: Zen 3, Ice Lake and later).

use super::{BLOCKS, KEY, STEP, State};
use std::arch::x86_64::*;

type Vectors = [__m256i; BLOCKS / 2];

pub(super) fn is_possible() -> bool {
    is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2")
}

fill_beginnings!("vaes,avx2");

#[inline]
#[target_feature(enable = "vaes,avx2")]
fn key() -> __m256i {
    let [low, high] = KEY.map(u64::cast_signed);
    _mm256_set_epi64x(high, low, high, low)
}

#[inline]
#[target_feature(enable = "vaes,avx2")]
fn round(blocks: __m256i, key: __m256i) -> __m256i {
    _mm256_aesenc_epi128(blocks, key)
}

#[inline]
#[target_feature(enable = "vaes,avx2")]
fn load(state: &State) -> Vectors {
    let (places, _) = state.as_chunks::<32>();
    // SAFETY: each place is 32 readable bytes, and the load needs no alignment.
    std::array::from_fn(|number| unsafe { _mm256_loadu_si256(places[number].as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "vaes,avx2")]
fn store(place: &mut [u8; 32], blocks: __m256i) {
    // SAFETY: the place is 32 writable bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), blocks) };
}
