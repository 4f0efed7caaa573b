//! The layout of an interval.

use super::digest::{Digest, digest};
use super::header::{Header, HeaderFormat};
use super::spec::Spec;

/// Bytes of the longest header, without the checksum behind it.
pub(super) const HEADER: usize = HeaderFormat::V342.size();

/// Where the header of an interval of this many bytes is.
pub(super) fn place_of(spec: &Spec, length: usize) -> usize {
    if spec.offset + spec.overhead(HeaderFormat::V333) <= length { spec.offset } else { 0 }
}

/// The bytes of an interval's header, with zeros behind the end of the interval.
pub(super) fn header_bytes(spec: &Spec, interval: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let place = place_of(spec, interval.len());
    let there = HEADER.min(interval.len() - place);
    bytes[..there].copy_from_slice(&interval[place..place + there]);
    bytes
}

/// Whether header and checksum in this format fit into an interval of this many bytes.
pub(super) fn has_room(spec: &Spec, length: usize, format: HeaderFormat) -> bool {
    place_of(spec, length) + spec.overhead(format) <= length
}

/// The checksum that an interval holds, and the one of its data. Header and checksum have to [fit](has_room).
pub(super) fn sums<'a>(spec: &Spec, interval: &'a [u8], format: HeaderFormat) -> (&'a [u8], Digest) {
    let place = place_of(spec, interval.len());
    let overhead = spec.overhead(format);
    let data: &[&[u8]] = if place >= overhead {
        &[&interval[overhead..place], &interval[..overhead], &interval[place + overhead..]]
    } else {
        &[&interval[overhead..]]
    };
    (&interval[place + format.size()..place + overhead], digest(spec.kind, data))
}

/// Whether an interval's data matches its checksum. True for kinds without one.
pub(super) fn is_intact(spec: &Spec, interval: &[u8], header: &Header) -> bool {
    if !spec.kind.has_digest() {
        return true;
    }
    if !has_room(spec, interval.len(), header.format) {
        return false;
    }
    let (stored, calculated) = sums(spec, interval, header.format);
    stored == calculated.as_bytes()
}

/// Swaps header and checksum with the data at `verify_offset`, or back.
pub(super) fn swap(interval: &mut [u8], offset: usize, overhead: usize) {
    if offset >= overhead && offset + overhead <= interval.len() {
        let (front, rest) = interval.split_at_mut(offset);
        front[..overhead].swap_with_slice(&mut rest[..overhead]);
    }
}
