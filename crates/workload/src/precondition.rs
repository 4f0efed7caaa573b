//! Random writes that bring a flash device, in one pass, near the state that it reaches after long random writing
//! (`sprandom`).
//!
//! fio documents this much of its option: it "divides the storage into equally sized regions and calculates the
//! required invalidation rate per region". The regions overlap by the over-provisioning that each should have, which
//! decreases from the first region to the last. Each block is written at least once, and all writes together are one
//! pass over the flash itself. The calculation is not documented; the one here follows from the theory of garbage
//! collection.
//!
//! **The state to reach.** A device has `α` times as much flash as addresses. Under uniformly random writes it cleans
//! its flash in the order in which the flash was written. Each write of the host invalidates a page of a random
//! address, so of the pages written t passes over the addresses ago, the fraction e^-t is still valid. For each host
//! write the device writes A pages (the write amplification), so t = y / A, where y is the distance back in the flash,
//! in units of the address space. When a page is cleaned, at y = α, the fraction v = e^(-α / A) is still valid and has
//! to be written again: A = 1 / (1 - v). (Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.) Hence
//! v = e^(-α (1 - v)), which is solved by iteration. The mean validity over the flash is then 1 / α, as it must be.
//!
//! **The method.** The blocks are put into a random order, and the order is cut into overlapping regions. The length of
//! a region is that of the flash divided by the number of regions. Region i + 1 begins before the end of region i, by
//! the number of blocks that region i has to lose. Writing the regions one after the other writes each block at least
//! once, in random order, and leaves each region with the validity that flash of its age should have. Within a region,
//! new blocks come first, then the blocks that are written again. So two writes of a block are about one region apart,
//! and a write cache does not merge them as long as each region is larger than the cache (`spr_cs`). The caller chooses
//! the regions accordingly.

use crate::{Precondition, permutation::Permutation};

/// The writes of one pass.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    order: Permutation,
    blocks: u64,
    /// The approximate number of writes in the pass: the blocks of the flash.
    writes: u64,
    regions: u64,
    /// The size of the flash in relation to the address space.
    ratio: f64,
    amplification: f64,
    region: u64,
    /// The places in the order where the region begins, where its new blocks begin, and where it ends.
    begin: u64,
    new: u64,
    end: u64,
    /// The next place.
    place: u64,
    /// Whether the new blocks of the region are done and the others are being written again.
    again: bool,
}

/// The fraction of the cleaned pages that is still valid: the solution below 1 of v = e^(-ratio (1 - v)).
fn validity_at_cleaning(ratio: f64) -> f64 {
    let mut valid = 0.0f64;
    // Converges like (ratio * v)^i, slowest for little over-provisioning: 1% takes some thousand rounds.
    for _ in 0..1_000_000 {
        let next = (-ratio * (1.0 - valid)).exp();
        if next - valid < 1e-13 {
            return next;
        }
        valid = next;
    }
    valid
}

impl Regions {
    /// The writes for `blocks` blocks, in the order that `key` selects.
    pub(crate) fn new(device: Precondition, blocks: u64, key: u64) -> Self {
        let ratio = 1.0 + device.over_provisioning.max(0.0);
        let writes = (blocks as f64 * ratio).round() as u64;
        let regions = device.regions.clamp(1, blocks.max(1));
        let amplification = 1.0 / (1.0 - validity_at_cleaning(ratio));
        let mut pass = Regions {
            order: Permutation::new(blocks, key),
            blocks,
            writes,
            regions,
            ratio,
            amplification,
            region: 0,
            begin: 0,
            new: 0,
            end: 0,
            place: 0,
            again: false,
        };
        pass.rekey(key);
        pass
    }

    /// Starts another pass.
    pub(crate) fn rekey(&mut self, key: u64) {
        self.order.rekey(key);
        self.region = 0;
        self.begin = 0;
        self.enter(0);
    }

    /// The number of writes up to the end of a region.
    fn written(&self, region: u64) -> u64 {
        (u128::from(self.writes) * u128::from(region + 1) / u128::from(self.regions)) as u64
    }

    /// The number of writes in a region.
    fn length(&self, region: u64) -> u64 {
        self.written(region) - if region == 0 { 0 } else { self.written(region - 1) }
    }

    /// The fraction of a region that should be invalid at the end of the pass.
    fn invalid(&self, region: u64) -> f64 {
        let width = self.ratio / self.regions as f64;
        let age = |edge: u64| self.ratio - edge as f64 * width;
        let valid = |age: f64| (-age / self.amplification).exp();
        let mean = self.amplification / width * (valid(age(region + 1)) - valid(age(region)));
        (1.0 - mean).clamp(0.0, 1.0)
    }

    /// Enters the current region, which writes the last `overlap` blocks of the previous one again.
    fn enter(&mut self, overlap: u64) {
        let length = self.length(self.region);
        let overlap = overlap.min(length);
        self.new = if self.region == 0 { 0 } else { self.end };
        self.begin = self.new - overlap.min(self.new - self.begin);
        // The last region takes all remaining blocks, so that none is left out.
        self.end = if self.region + 1 == self.regions {
            self.blocks
        } else {
            (self.new + (length - overlap)).min(self.blocks)
        };
        self.place = self.new;
        self.again = false;
    }

    /// The next block; `None` at the end of the pass.
    pub(crate) fn next(&mut self) -> Option<u64> {
        loop {
            if !self.again && self.place == self.end {
                self.again = true;
                self.place = self.begin;
            }
            if self.again && self.place == self.new {
                if self.region + 1 >= self.regions {
                    return None;
                }
                let lost = self.invalid(self.region) * self.length(self.region) as f64;
                self.region += 1;
                self.enter(lost.round() as u64);
                continue;
            }
            let place = self.place;
            self.place += 1;
            return Some(self.order.at(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(over_provisioning: f64, regions: u64) -> Precondition {
        Precondition { over_provisioning, regions }
    }

    fn writes(device: Precondition, blocks: u64) -> Vec<u64> {
        let mut regions = Regions::new(device, blocks, 5);
        std::iter::from_fn(|| regions.next()).collect()
    }

    /// The writes that are still valid at the end: the last one of each block.
    fn valid(writes: &[u64], blocks: u64) -> Vec<bool> {
        let mut last = vec![usize::MAX; blocks as usize];
        writes.iter().enumerate().for_each(|(at, &block)| last[block as usize] = at);
        let mut valid = vec![false; writes.len()];
        last.into_iter().for_each(|at| valid[at] = true);
        valid
    }

    #[test]
    fn every_block_is_written_and_the_flash_is_full() {
        for (over_provisioning, regions) in [(0.07, 100), (0.15, 100), (0.5, 37), (0.9, 10), (0.15, 1)] {
            let blocks = 20_000;
            let writes = writes(device(over_provisioning, regions), blocks);
            let mut seen: Vec<u64> = writes.clone();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len() as u64, blocks, "every block");
            if regions > 1 {
                let flash = blocks as f64 * (1.0 + over_provisioning);
                // No region follows the last one, so its blocks are not written again.
                let tolerance = flash / regions as f64 / regions as f64 + 2.0 * regions as f64;
                assert!((writes.len() as f64 - flash).abs() < tolerance, "{} of {flash}", writes.len());
            }
        }
    }

    /// Compares the validity of each tenth of the flash with the law, for a device with 25% more flash.
    #[test]
    fn validity_is_that_of_the_steady_state() {
        let (blocks, regions, ratio) = (100_000, 100u64, 1.25f64);
        let writes = writes(device(0.25, regions), blocks);
        let valid = valid(&writes, blocks);
        // v = e^(-1.25 (1 - v)) has the solution 0.6286: 1.25 * 0.3714 = 0.46425 and e^-0.46425 = 0.6286.
        let amplification = 1.0 / (1.0 - 0.6286);
        let tenth = writes.len() / 10;
        for part in 0..10 {
            let found = valid[part * tenth..(part + 1) * tenth].iter().filter(|&&valid| valid).count() as f64
                / tenth as f64;
            let age = ratio * (1.0 - (part as f64 + 0.5) / 10.0);
            let expected = (-age / amplification).exp();
            assert!((found - expected).abs() < 0.01, "part {part}: {found} instead of {expected}");
        }
    }

    #[test]
    fn two_writes_of_a_block_are_a_region_apart() {
        let blocks = 50_000u64;
        let mut last = vec![None; blocks as usize];
        for (at, block) in writes(device(0.15, 50), blocks).into_iter().enumerate() {
            if let Some(before) = last[block as usize].replace(at) {
                assert!(at - before >= 1150, "{}: a region has 1150 writes", at - before);
            }
        }
    }

    #[test]
    fn another_pass_has_another_order() {
        let mut regions = Regions::new(device(0.15, 10), 1000, 1);
        let first: Vec<u64> = std::iter::from_fn(|| regions.next()).collect();
        regions.rekey(2);
        let second: Vec<u64> = std::iter::from_fn(|| regions.next()).collect();
        assert_eq!(first.len(), second.len());
        assert_ne!(first, second);
    }
}
