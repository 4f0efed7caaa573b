//! Finds a wrong bit in data of another program, which cannot be generated again: the bit that makes the checksum right
//! when it is flipped.
//!
//! It tries every bit. So it is limited to intervals of a few kilobytes, and to checksums so long that no other bit
//! makes them right by chance.

use super::digest::digest;
use super::header::HeaderFormat;
use super::interval::{place_of, sums, swap};
use super::kind::Kind;
use super::spec::Spec;

/// Bytes of the shortest checksum that does not match by chance.
const SHORTEST: usize = 4;
/// Bytes of the largest interval, for fast checksums and for the others.
const QUICK: usize = 16 << 10;
const SLOW: usize = 4 << 10;

/// The place of the wrong byte in the interval, and the bit, if a single bit is wrong. Header and checksum must fit
/// into the interval.
pub(super) fn wrong_bit(spec: &Spec, interval: &[u8], format: HeaderFormat) -> Option<(usize, u8)> {
    let kind = spec.kind;
    let is_quick = matches!(kind, Kind::Crc64 | Kind::Crc32 | Kind::Crc32c | Kind::Xxhash);
    let limit = if is_quick { QUICK } else { SLOW };
    if kind.digest_size() < SHORTEST || interval.len() > limit {
        return None;
    }
    let (stored, calculated) = sums(spec, interval, format);
    let (place, overhead) = (place_of(spec, interval.len()), spec.overhead(format));
    let wrong = |at: usize| stored[at] ^ calculated.as_bytes()[at];
    let bits: u32 = (0..stored.len()).map(|at| wrong(at).count_ones()).sum();
    if bits == 1 {
        // The wrong bit is in the checksum itself: wrong data would change many of its bits.
        let at = (0..stored.len()).find(|&at| wrong(at) != 0)?;
        return Some((place + format.size() + at, wrong(at).trailing_zeros() as u8));
    }
    let mut data = interval.to_vec();
    swap(&mut data, spec.offset, overhead);
    for at in overhead..data.len() {
        for bit in 0..8 {
            data[at] ^= 1 << bit;
            if digest(kind, &[&data[overhead..]]).as_bytes() == stored {
                let is_swapped = place >= overhead && (place..place + overhead).contains(&at);
                return Some((if is_swapped { at - place } else { at }, bit));
            }
            data[at] ^= 1 << bit;
        }
    }
    None
}
