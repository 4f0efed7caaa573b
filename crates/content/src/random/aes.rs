//! The round of a block in a register of 128 bits.

use super::{BLOCK, BLOCKS, KEY, STEP, State};
use std::arch::x86_64::*;

type Vectors = [__m128i; BLOCKS];

pub(super) fn is_possible() -> bool {
    is_x86_feature_detected!("aes")
}

fill_beginnings!("aes");

#[inline]
#[target_feature(enable = "aes")]
fn key() -> __m128i {
    let [low, high] = KEY.map(u64::cast_signed);
    _mm_set_epi64x(high, low)
}

#[inline]
#[target_feature(enable = "aes")]
fn round(block: __m128i, key: __m128i) -> __m128i {
    _mm_aesenc_si128(block, key)
}

#[inline]
#[target_feature(enable = "aes")]
fn load(state: &State) -> Vectors {
    let (places, _) = state.as_chunks::<BLOCK>();
    // SAFETY: each place is 16 readable bytes, and the load needs no alignment.
    std::array::from_fn(|number| unsafe { _mm_loadu_si128(places[number].as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "aes")]
fn store(place: &mut [u8; BLOCK], block: __m128i) {
    // SAFETY: the place is 16 writable bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), block) };
}
