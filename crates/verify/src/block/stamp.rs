//! Blocks that are about to be written.

use super::data::Data;
use super::header::Header;
use super::spec::Spec;

/// The write that a block belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The number of the write in its job, from 0.
    pub sequence: u64,
    /// Its seed, from which its random content comes. A job with a new seed for each write can distinguish its writes.
    pub seed: u64,
    /// When it was written: seconds since 1970.
    pub seconds: u32,
    /// The nanoseconds of that second.
    pub nanoseconds: u32,
    /// The number of the job.
    pub job: u16,
}

/// Makes blocks that can be checked.
#[derive(Clone, Debug)]
pub struct Stamper {
    data: Data,
}

impl Stamper {
    /// Makes blocks as `spec` describes them.
    pub fn new(spec: &Spec) -> Stamper {
        Stamper { data: Data::new(spec) }
    }

    /// Fills a whole block: content, headers, checksums.
    ///
    /// # Panics
    ///
    /// If its intervals are smaller than [`Spec::validate`] allows.
    pub fn stamp(&mut self, block: &mut [u8], identity: &Identity) {
        let seed = identity.seed;
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
            // Right before the checksum, while the data is in the cache.
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
