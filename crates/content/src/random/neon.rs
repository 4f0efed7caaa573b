//! The round of a block in a register of 128 bits, by the cryptographic extension.

use super::{BLOCK, BLOCKS, KEY, STEP, State};
use std::arch::aarch64::*;

type Vectors = [uint8x16_t; BLOCKS];

pub(super) fn is_possible() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

fill_beginnings!("aes");

#[inline]
#[target_feature(enable = "aes")]
fn key() -> uint8x16_t {
    vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(KEY[0]), vcreate_u64(KEY[1])))
}

#[inline]
#[target_feature(enable = "aes")]
fn round(block: uint8x16_t, key: uint8x16_t) -> uint8x16_t {
    // (The first of these instructions adds a key before, and there is none.)
    veorq_u8(vaesmcq_u8(vaeseq_u8(block, vdupq_n_u8(0))), key)
}

#[inline]
#[target_feature(enable = "aes")]
fn load(state: &State) -> Vectors {
    let (places, _) = state.as_chunks::<BLOCK>();
    // SAFETY: each place is 16 readable bytes.
    std::array::from_fn(|number| unsafe { vld1q_u8(places[number].as_ptr()) })
}

#[inline]
#[target_feature(enable = "aes")]
fn store(place: &mut [u8; BLOCK], block: uint8x16_t) {
    // SAFETY: the place is 16 writable bytes.
    unsafe { vst1q_u8(place.as_mut_ptr(), block) };
}
