//! A wrong bit in data that cannot be made again, because another program wrote it: the one that makes the checksum right.
//!
//! Every bit is tried, so this is for intervals of a few kilobytes, and for checksums long enough that no other bit does
//! so by chance.

use super::check::{place_of, sums};
use super::digest::digest;
use super::header::HeaderFormat;
use super::stamp::swap;
use super::{Kind, Spec};

/// Shorter checksums are right by chance.
const SHORTEST: usize = 4;
/// The largest interval, for sums that are quick and for others.
const QUICK: usize = 16 << 10;
const SLOW: usize = 4 << 10;

/// The byte of the interval and the bit that are wrong, if it is a single one. There is room for header and checksum.
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
        // The checksum itself: data that differs gives one that differs in many bits.
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
