//! The content of blocks, for writing and for checking them.

use super::digest::digest;
use super::header::Header;
use super::interval::swap;
use super::spec::Spec;
use iolite_content::{Source, mix};

/// Makes the content of blocks.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) spec: Spec,
    source: Source,
}

impl Data {
    pub(super) fn new(spec: &Spec) -> Data {
        // A pattern that is compared is not compressed.
        let compress = spec.compress.filter(|_| !spec.kind.compares_pattern());
        let source = Source::new(&iolite_content::Spec {
            fill: spec.fill.clone(),
            compress,
            ..iolite_content::Spec::random(0)
        });
        Data { spec: spec.clone(), source }
    }

    /// Whether the content comes from a seed. Such content restarts in each interval, so that an interval can be
    /// generated without its neighbours; a pattern continues through the block.
    pub(super) fn is_random(&self) -> bool {
        self.source.is_random()
    }

    /// Fills a whole block with data, without headers.
    pub(super) fn fill(&mut self, block: &mut [u8], block_offset: u64, seed: u64) {
        if self.is_random() {
            let interval = self.spec.interval_of(block.len()).max(1);
            for (interval, offset) in block.chunks_mut(interval).zip((block_offset..).step_by(interval)) {
                self.fill_interval(interval, block_offset, offset, seed);
            }
            return;
        }
        let step = if self.spec.pattern_interval == 0 { block.len() } else { self.spec.pattern_interval };
        let step = step.max(1);
        for (place, offset) in block.chunks_mut(step).zip((block_offset..).step_by(step)) {
            self.source.fill(place, offset, false);
        }
    }

    /// A word of 64 bits of an interval's data, by its index. `None`: not all of the data is random.
    pub(super) fn word(&self, offset: u64, seed: u64, place: usize) -> Option<u64> {
        self.source.random_word(seed_at(seed, offset), place)
    }

    /// Fills an interval with random data.
    pub(super) fn fill_interval(&mut self, interval: &mut [u8], block_offset: u64, offset: u64, seed: u64) {
        self.source.reseed(seed_at(seed, offset));
        self.source.fill(interval, block_offset, false);
    }

    /// Puts the header and the checksum of the data into an interval.
    pub(super) fn seal(&self, interval: &mut [u8], header: &Header) {
        let header_size = header.format.size();
        let overhead = self.spec.overhead(header.format);
        let sum = digest(self.spec.kind, &[&interval[overhead..]]);
        header.store(interval);
        interval[header_size..overhead].copy_from_slice(sum.as_bytes());
        swap(interval, self.spec.offset, overhead);
    }
}

/// The seed of the interval at this offset, in a block with this seed.
fn seed_at(seed: u64, offset: u64) -> u64 {
    mix(seed ^ mix(offset))
}
