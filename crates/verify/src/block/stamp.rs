//! Blocks that are about to be written.

use super::digest::digest;
use super::{Header, Spec};
use iolite_content::{Source, mix};

/// Which write a block belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Where it goes in its file.
    pub offset: u64,
    /// Which write of its job it is, from 0.
    pub sequence: u64,
    /// Of its random content. A job that has another for each write can tell its writes apart by it.
    pub seed: u64,
    /// When: seconds since 1970.
    pub seconds: u32,
    /// The rest of that.
    pub nanoseconds: u32,
    /// Number of the job.
    pub job: u16,
}

/// Makes blocks that can be checked.
#[derive(Clone, Debug)]
pub struct Stamper {
    data: Data,
}

impl Stamper {
    /// Blocks as `spec` describes them.
    pub fn new(spec: &Spec) -> Stamper {
        Stamper { data: Data::new(spec) }
    }

    /// Fills a whole block: content, headers, checksums.
    ///
    /// # Panics
    ///
    /// If its intervals are smaller than [`Spec::validate`] allows.
    pub fn stamp(&mut self, block: &mut [u8], identity: &Identity) {
        let seed = self.data.stored_seed(identity.seed);
        if !self.data.spec.kind.has_header() {
            return self.data.fill(block, identity.offset, seed);
        }
        let interval = self.data.spec.interval_of(block.len());
        let by_interval = self.data.is_random();
        if !by_interval {
            self.data.fill(block, identity.offset, seed);
        }
        let offsets = (identity.offset..).step_by(interval.max(1));
        for (interval, offset) in block.chunks_mut(interval.max(1)).zip(offsets) {
            // While it is in the cache.
            if by_interval {
                self.data.fill_interval(interval, identity.offset, offset, seed);
            }
            let header = Header {
                format: self.data.spec.format,
                kind: self.data.spec.kind.number(),
                length: interval.len() as u32,
                seed,
                offset,
                seconds: identity.seconds,
                nanoseconds: identity.nanoseconds,
                sequence: self.data.spec.format.stored_sequence(identity.sequence),
                job: identity.job,
            };
            self.data.seal(interval, &header);
        }
    }
}

/// Makes the content of blocks, for those that write and for those that check.
#[derive(Clone, Debug)]
pub(super) struct Data {
    pub(super) spec: Spec,
    source: Source,
}

impl Data {
    pub(super) fn new(spec: &Spec) -> Data {
        // A pattern that is compared is nothing but that.
        let compress = spec.compress.filter(|_| !spec.kind.compares_pattern());
        let source = Source::new(&iolite_content::Spec {
            fill: spec.fill.clone(),
            compress,
            ..iolite_content::Spec::random(0)
        });
        Data { spec: spec.clone(), source }
    }

    /// Whether the content comes from a seed. Such data starts anew in each interval, so that an interval can be
    /// made without its neighbours; a pattern goes on over the block.
    pub(super) fn is_random(&self) -> bool {
        self.source.is_random()
    }

    /// The seed that goes into the header.
    pub(super) fn stored_seed(&self, seed: u64) -> u64 {
        if self.is_random() { seed } else { 0 }
    }

    /// Fills a whole block with data: there are no headers yet.
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

    /// A word of what an interval is filled with, if that is random bytes and nothing else.
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

/// The seed of an interval in a block of this seed.
fn seed_at(seed: u64, offset: u64) -> u64 {
    mix(seed ^ mix(offset))
}

/// Header and checksum change places with the data at `verify_offset`, and back.
pub(super) fn swap(interval: &mut [u8], offset: usize, overhead: usize) {
    if offset >= overhead && offset + overhead <= interval.len() {
        let (front, rest) = interval.split_at_mut(offset);
        front[..overhead].swap_with_slice(&mut rest[..overhead]);
    }
}
