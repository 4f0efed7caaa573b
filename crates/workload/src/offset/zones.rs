//! Zones with shares of the accesses (`zoned:60/10:40/90`): a draw picks a zone by its share, and then any slot of the
//! zone with equal probability.
//!
//! Zones lie one behind the other from the start of the region. If their sizes sum to less than the region, the rest of
//! the region has no I/O. A zone ends at the end of the region at the latest. A zone that would begin behind that end
//! is left out, and its share goes to the others in proportion. A zone that is smaller than a block consists of the
//! block in which it begins.

use super::alias::Alias;
use crate::{Zone, ZoneSize, rng::Rng};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Zones {
    shares: Arc<Alias>,
    /// The first slot and the number of slots of each zone.
    ranges: Arc<[(u64, u64)]>,
}

impl Zones {
    /// The zones of a region of `slots` slots, which are `align` bytes apart; `None` if there are no zones.
    pub(crate) fn new(zones: &[Zone], slots: u64, align: u64) -> Option<Zones> {
        let (mut percent, mut bytes) = (0.0f64, 0u64);
        let mut weights = Vec::new();
        let mut ranges = Vec::new();
        let mut end = 0;
        for zone in zones {
            let start = end;
            match zone.size {
                ZoneSize::Percent(size) => percent += size,
                ZoneSize::Bytes(size) => bytes = bytes.saturating_add(size),
            }
            end = (slots as f64 * percent / 100.0).round() as u64 + bytes / align;
            if start < slots {
                ranges.push((start, end.min(slots).max(start + 1) - start));
                weights.push(f64::from(zone.share));
            }
        }
        // A zone at the start is never left out, so a range exists unless there are no zones. Its share may be 0.
        if ranges.is_empty() {
            return None;
        }
        if weights.iter().all(|&weight| weight == 0.0) {
            weights.fill(1.0);
        }
        Some(Zones { shares: Arc::new(Alias::new(&weights)), ranges: ranges.into() })
    }

    #[inline(always)]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let (start, count) = self.ranges[self.shares.pick(rng.next_u64())];
        start + rng.below(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(zones: &[(u32, f64)], slots: u64) -> Vec<(u64, u64)> {
        let zones: Vec<Zone> =
            zones.iter().map(|&(share, size)| Zone { share, size: ZoneSize::Percent(size) }).collect();
        Zones::new(&zones, slots, 4096).unwrap().ranges.to_vec()
    }

    fn bytes(zones: &[(u32, u64)], slots: u64) -> Vec<(u64, u64)> {
        let zones: Vec<Zone> =
            zones.iter().map(|&(share, size)| Zone { share, size: ZoneSize::Bytes(size) }).collect();
        Zones::new(&zones, slots, 4096).unwrap().ranges.to_vec()
    }

    #[test]
    fn zones_lie_side_by_side() {
        let parts = percent(&[(60, 10.0), (30, 20.0), (8, 30.0), (2, 40.0)], 1000);
        assert_eq!(parts, [(0, 100), (100, 200), (300, 300), (600, 400)]);
        assert_eq!(percent(&[(60, 10.0), (40, 20.0)], 1000), [(0, 100), (100, 200)]);
        assert_eq!(bytes(&[(50, 16 << 10), (50, 1 << 20)], 1000), [(0, 4), (4, 256)]);
    }

    #[test]
    fn the_region_ends_them_and_a_block_is_the_least() {
        assert_eq!(bytes(&[(10, 8 << 20), (90, 1 << 20)], 1000), [(0, 1000)]);
        assert_eq!(bytes(&[(50, 2 << 20), (50, 16 << 20)], 1000), [(0, 512), (512, 488)]);
        assert_eq!(percent(&[(50, 0.0), (50, 100.0)], 1000), [(0, 1), (0, 1000)]);
        assert_eq!(percent(&[(50, 1.0), (50, 1.0)], 10), [(0, 1), (0, 1)]);
    }
}
