//! I/O zone by zone (`zonemode=strided`): a given number of bytes in one part of the file, then the next part.
//!
//! These rules were observed in fio's I/O logs and hold here as well:
//!
//! - The zones go on to the end of the file, also behind `size`. Zones do not change the amount of I/O: `size` bytes, or
//!   `io_size`. The next loop goes on where this one ended.
//! - After `zonesize` bytes of all directions and files together, all positions in the current file move to the start of
//!   its next zone, `zonerange` + `zoneskip` bytes further. The last zone is followed by the first.
//! - An I/O begins within its zone. A block that is larger than the rest of the zone extends beyond its end. (If the
//!   directions have different block sizes, the length of a zone is rounded up to a multiple of the largest.)
//! - Sequential I/O that reaches the end of the zone before `zonesize` bytes are done starts over in the zone. Random
//!   offsets lie within the zone. In a time based job, the former also starts over in zones behind `size` after each I/O.
//! - If the end of the file cuts the last zone short, sequential I/O that reaches it ends the pass, unless the pass began
//!   in another zone than the first, `io_size` is given, or the job is time based. A zone without room for a block ends
//!   the pass of random I/O, too.
//!
//! These rules are different:
//!
//! - Coverage restarts with each visit of a zone: no block of the zone comes twice before all of them have come once.
//!   The next visit has a different order. (This is so in fio 3.41. In 3.33, one map covers the whole file, and I/O leaves
//!   the zone when the block it drew is taken.)
//! - A random distribution applies to the zone (in fio, to the file).
//! - Random I/O also covers a last zone that is cut short. fio ends the pass when it draws a place behind the end.

use crate::StridedZones;

/// The position of a worker among the zones of a file. All offsets are relative to the region.
#[derive(Clone, Debug)]
pub(crate) struct Strides {
    zones: StridedZones,
    length: u64,
    block: u64,
    start: u64,
}

impl Strides {
    /// The zones of a region of `length` bytes. A zone must have room for a block of `block` bytes.
    pub(crate) fn new(zones: StridedZones, length: u64, block: u64) -> Self {
        Strides { zones, length, block: block.max(1), start: 0 }
    }

    /// The first byte of the current zone.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The end of the current zone.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.zones.range).min(self.length)
    }

    /// The number of bytes from the start of a zone that random I/Os may touch: whole blocks, of which the last may
    /// extend beyond the zone, but not beyond the region.
    fn reach_from(&self, start: u64) -> u64 {
        let range = self.zones.range.div_ceil(self.block).saturating_mul(self.block);
        range.min(self.length - start.min(self.length))
    }

    /// The reach of a full zone, and that of the last zone if it is shorter.
    pub(crate) fn reaches(&self) -> (u64, Option<u64>) {
        let full = self.reach_from(0);
        let room = self.length.saturating_sub(self.block);
        let cut = self.reach_from(room / self.step() * self.step());
        (full, (cut < full).then_some(cut))
    }

    /// Whether the current zone is the last one and shorter than the others.
    pub(crate) fn is_cut(&self) -> bool {
        self.reach_from(self.start) < self.reach_from(0)
    }

    fn step(&self) -> u64 {
        self.zones.range.saturating_add(self.zones.skip).max(1)
    }

    /// Whether the end of the region cuts the current zone short.
    #[inline]
    pub(crate) fn ends_with_region(&self) -> bool {
        self.start.saturating_add(self.zones.range) > self.length
    }

    /// Moves to the next zone, or to the first one after the last one. Returns false if the next one begins before the
    /// end of the region, but has no room for a block; the first one is the current one then, too.
    pub(crate) fn advance(&mut self) -> bool {
        let next = self.start.saturating_add(self.step());
        let has_room = next.saturating_add(self.block) <= self.length;
        self.start = if has_room { next } else { 0 };
        has_room || next >= self.length
    }

    /// Goes back to the first zone.
    pub(crate) fn restart(&mut self) {
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_follow_each_other_and_wrap() {
        let zones = StridedZones { size: 8, range: 16, skip: 4 };
        let mut strides = Strides::new(zones, 64, 4);
        let mut starts = Vec::new();
        for _ in 0..10 {
            starts.push((strides.start(), strides.end()));
            assert_eq!(strides.ends_with_region(), strides.start() == 60);
            assert!(strides.advance());
        }
        let lap = [(0, 16), (20, 36), (40, 56), (60, 64)];
        assert_eq!(starts, [lap, lap, lap].concat()[..10]);
        assert_eq!(strides.reaches(), (16, Some(4)));
        let mut strides = Strides::new(zones, 62, 4);
        assert_eq!([(); 4].map(|()| (strides.advance(), strides.start()).0), [true, true, false, true]);
        assert_eq!(strides.start(), 20, "the zone at 60 is no place for a block");
    }

    #[test]
    fn blocks_begin_in_the_zone() {
        let strides = Strides::new(StridedZones { size: 2, range: 6, skip: 0 }, 20, 4);
        assert_eq!(strides.reaches(), (8, None), "two blocks begin in 6 bytes; at 12 two fit as well");
        let strides = Strides::new(StridedZones { size: 2, range: 100, skip: 0 }, 20, 4);
        assert_eq!(strides.reaches(), (20, None));
    }
}
