//! I/O zone by zone (`zonemode=strided`): a given number of bytes in one part of the file, then the next part.
//!
//! These rules were observed in fio's I/O logs and hold here as well:
//!
//! - After `zonesize` bytes of all directions together, all positions move to the start of the next zone, `zonerange` +
//!   `zoneskip` bytes further. The last zone that has room for a block is followed by the first.
//! - An I/O begins within its zone. A block that is larger than the rest of the zone extends beyond its end. (If the
//!   directions have different block sizes, the length of a zone is rounded up to a multiple of the largest.)
//! - Sequential I/O that reaches the end of the zone before `zonesize` bytes are done starts over in the zone. Random
//!   offsets lie within the zone.
//! - Zones do not change the amount of I/O: `size` bytes, or `io_size`.
//!
//! These rules are different:
//!
//! - Coverage restarts with each visit of a zone: no block of the zone comes twice before all of them have come once.
//!   The next visit has a different order. (fio keeps one map for the whole file, and leaves the zone when the block it
//!   drew is taken.)
//! - A random distribution applies to the zone (in fio, to the file).
//! - The end of the region may cut the last zone short. Sequential I/O starts over in it, as in any other zone; fio
//!   ends the job instead.
//!
//! Each file has its own zones. fio counts the bytes of all files together, but moves only the position in the current
//! file.

use crate::StridedZones;

/// The position of a worker among the zones of a file. All offsets are relative to the region.
#[derive(Clone, Debug)]
pub(crate) struct Strides {
    zones: StridedZones,
    length: u64,
    block: u64,
    start: u64,
    /// Bytes of I/O in this zone so far.
    done: u64,
}

impl Strides {
    /// The zones of a region of `length` bytes. A zone must have room for a block of `block` bytes.
    pub(crate) fn new(zones: StridedZones, length: u64, block: u64) -> Self {
        Strides { zones, length, block: block.max(1), start: 0, done: 0 }
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

    /// Counts an I/O in the current zone.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
    }

    /// Moves to the next zone if the I/O of the current one is done. Returns whether it moved.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        if self.done < self.zones.size {
            return false;
        }
        self.done = 0;
        self.start = self.start.saturating_add(self.step());
        if self.start.saturating_add(self.block) > self.length {
            self.start = 0;
        }
        true
    }

    /// Goes back to the first zone.
    pub(crate) fn restart(&mut self) {
        self.start = 0;
        self.done = 0;
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
            strides.count(4);
            assert!(!strides.advance());
            strides.count(4);
            assert!(strides.advance());
        }
        let lap = [(0, 16), (20, 36), (40, 56), (60, 64)];
        assert_eq!(starts, [lap, lap, lap].concat()[..10]);
        assert_eq!(strides.reaches(), (16, Some(4)));
    }

    #[test]
    fn blocks_begin_in_the_zone() {
        let strides = Strides::new(StridedZones { size: 2, range: 6, skip: 0 }, 20, 4);
        assert_eq!(strides.reaches(), (8, None), "two blocks begin in 6 bytes; at 12 two fit as well");
        let strides = Strides::new(StridedZones { size: 2, range: 100, skip: 0 }, 20, 4);
        assert_eq!(strides.reaches(), (20, None));
    }
}
