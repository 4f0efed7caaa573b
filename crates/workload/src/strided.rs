//! Work zone by zone (`zonemode=strided`): so many bytes of I/O within a part of the file, then on to the next part.
//!
//! What was learned from fio's I/O logs and holds here as well:
//!
//! - After `zonesize` bytes, of all directions together, all positions go to the start of the next zone, `zonerange` +
//!   `zoneskip` bytes on; from the last zone that has room for a block, to the first.
//! - An I/O begins within its zone; a block larger than what is left of the zone reaches beyond its end. (Where directions
//!   have blocks of different sizes, a zone that is no multiple of the largest counts as the next one.)
//! - Sequential I/O that reaches the end of the zone before its bytes are done starts over in the zone. Random
//!   offsets are those of the zone.
//! - Zones do not change how much is done: `size` bytes, or `io_size`.
//!
//! And what is different:
//!
//! - Coverage is that of a visit: no block of the zone twice before all of its blocks have come, and from then on
//!   again; the next visit has another order. (fio keeps one map for the whole file, from which it leaves the zone when the
//!   block it drew is taken.)
//! - A distribution is one over the zone (in fio, over the file).
//! - The last zone may be cut by the end of the region; sequential I/O then starts over in it like in any other, where
//!   fio ends the job.
//! - Each file has zones of its own; fio counts the bytes of all files together but moves only the current one.

use crate::StridedZones;

/// Where a worker is among the zones of a file. All offsets are relative to the region.
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
    /// The zones of a region of `length` bytes for blocks of at least `block` bytes.
    pub(crate) fn new(zones: StridedZones, length: u64, block: u64) -> Self {
        Strides { zones, length, block: block.max(1), start: 0, done: 0 }
    }

    /// The first byte of the zone.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The end of the zone.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.zones.range).min(self.length)
    }

    /// How many bytes from the start of a zone random I/Os may touch: whole blocks, the last of which may reach beyond
    /// the zone, but not beyond the region.
    fn reach_from(&self, start: u64) -> u64 {
        let range = self.zones.range.div_ceil(self.block).saturating_mul(self.block);
        range.min(self.length - start.min(self.length))
    }

    /// That of the first zone, and of the last one where it is shorter.
    pub(crate) fn reaches(&self) -> (u64, Option<u64>) {
        let full = self.reach_from(0);
        let room = self.length.saturating_sub(self.block);
        let cut = self.reach_from(room / self.step() * self.step());
        (full, (cut < full).then_some(cut))
    }

    /// Whether this is the last zone, and a shorter one.
    pub(crate) fn is_cut(&self) -> bool {
        self.reach_from(self.start) < self.reach_from(0)
    }

    fn step(&self) -> u64 {
        self.zones.range.saturating_add(self.zones.skip).max(1)
    }

    /// An I/O was issued in the zone.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
    }

    /// Goes on to the next zone if the bytes of this one are done; true if so.
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

    /// Back to the first zone.
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
