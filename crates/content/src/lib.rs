//! What a buffer holds when it is written: random data, zeros, a pattern.
//!
//! A [`Content`] belongs to one worker. It fills each buffer once when it is made ([`Content::fill`]), and where
//! the content has to change from write to write it prepares the buffer before each ([`Content::prepare_write`]).
//!
//! | fill | as it is | `refill` | `scramble` |
//! |---|---|---|---|
//! | random | filled once; all writes from one buffer are alike | new random data for each write | the first bytes of each 512 change with each write |
//! | zeros | nothing to do | nothing to do: zeros stay zeros | as above |
//! | pattern | written again for each write | the same | as above |
//!
//! A pattern is written again because a job that also reads finds in its buffers what it has read; what it
//! writes is the pattern all the same. A job that only writes says so ([`Content::for_writes_only`]) and then
//! needs it just for `%o`. Zeros and random data that are not refilled are written back as they were read.
//!
//! That is how fio behaves, where it was observed: refilled zeros and patterns stay what they are, explicit
//! scrambling changes those too, and refilled random data needs none. That scrambling is *on by default* for
//! random data only is for whoever makes the [`Spec`] to know. The patterns restart with each I/O.
//!
//! Random data depends on the seed alone, so the workers of a job need seeds of their own to write different
//! data, and two runs with the same seed write the same.

mod pattern;
mod random;
mod scramble;

use pattern::Pattern;
use random::Random;
use scramble::Scrambler;

/// One piece of a pattern; the pieces repeat until the buffer is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternPiece {
    /// These bytes as they are.
    Bytes(Vec<u8>),
    /// The offset of the block in its file: 64 bits, little endian.
    Offset,
}

/// How buffers are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What is in them.
    pub fill: Fill,
    /// Fill anew before every write (`refill_buffers`) rather than once.
    pub refill: bool,
    /// Where they are not refilled: change them a little before every write, so that no two writes carry the
    /// same data (`scramble_buffers`).
    pub scramble: bool,
    /// Seed of all random content of this worker.
    pub seed: u64,
}

/// What is in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    Zeros,
    /// Random bytes.
    Random,
    /// A repeated pattern.
    Pattern(Vec<PatternPiece>),
}

/// Fills a worker's buffers.
#[derive(Clone, Debug)]
pub struct Content {
    source: Source,
    /// Fill again before each write.
    refill: bool,
    /// Scramble before each write.
    scrambler: Option<Scrambler>,
}

#[derive(Clone, Debug)]
enum Source {
    Zeros,
    Random(Random),
    Pattern(Pattern),
}

impl Source {
    #[inline]
    fn fill(&mut self, buffer: &mut [u8], offset: u64) {
        match self {
            Source::Zeros => buffer.fill(0),
            Source::Random(random) => random.fill(buffer),
            Source::Pattern(pattern) => pattern.fill(buffer, offset),
        }
    }
}

impl Content {
    /// The content that `spec` describes.
    pub fn new(spec: &Spec) -> Self {
        let source = match &spec.fill {
            Fill::Zeros => Source::Zeros,
            Fill::Random => Source::Random(Random::new(spec.seed)),
            Fill::Pattern(pieces) => Source::Pattern(Pattern::new(pieces)),
        };
        let (refill, changes) = match &source {
            Source::Zeros => (false, false),
            Source::Random(_) => (spec.refill, spec.refill),
            Source::Pattern(_) => (true, false),
        };
        let scrambler = (spec.scramble && !changes).then(|| Scrambler::new(spec.seed));
        Content { source, refill, scrambler }
    }

    /// The same for buffers that are never read into: what does not change from write to write need not be
    /// prepared.
    #[must_use]
    pub fn for_writes_only(mut self) -> Self {
        if let Source::Pattern(pattern) = &self.source {
            self.refill = pattern.has_offset();
        }
        self
    }

    /// Fills a buffer for the first time. `%o` is 0.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.source.fill(buffer, 0);
    }

    /// Whether [`prepare_write`](Self::prepare_write) does anything.
    pub fn needs_prepare(&self) -> bool {
        self.refill || self.scrambler.is_some()
    }

    /// Makes `buffer` (as long as the I/O) ready to be written at `offset` of its file.
    #[inline]
    pub fn prepare_write(&mut self, buffer: &mut [u8], offset: u64) {
        if self.refill {
            self.source.fill(buffer, offset);
        }
        if let Some(scrambler) = &mut self.scrambler {
            scrambler.scramble(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn spec(fill: Fill, refill: bool, scramble: bool) -> Spec {
        Spec { fill, refill, scramble, seed: 7 }
    }

    fn abc() -> Fill {
        Fill::Pattern(vec![PatternPiece::Bytes(b"abc".to_vec())])
    }

    /// Writes `count` blocks from one buffer.
    fn writes(spec: &Spec, count: u64, size: usize) -> Vec<Vec<u8>> {
        let mut content = Content::new(spec);
        let mut buffer = vec![0xee; size];
        content.fill(&mut buffer);
        (0..count)
            .map(|block| {
                if content.needs_prepare() {
                    content.prepare_write(&mut buffer, block * size as u64);
                }
                buffer.clone()
            })
            .collect()
    }

    fn distinct_sectors(writes: &[Vec<u8>]) -> usize {
        writes.iter().flat_map(|write| write.chunks(512)).collect::<HashSet<_>>().len()
    }

    #[test]
    fn what_changes_from_write_to_write() {
        let offset = || Fill::Pattern(vec![PatternPiece::Offset]);
        // fill, refill, scramble, needs preparing, distinct sectors in 10 writes of 8 sectors
        for (fill, refill, scramble, needs, distinct) in [
            (Fill::Random, false, false, false, 8),
            (Fill::Random, false, true, true, 80),
            (Fill::Random, true, false, true, 80),
            (Fill::Random, true, true, true, 80),
            (Fill::Zeros, false, false, false, 1),
            (Fill::Zeros, true, false, false, 1),
            (Fill::Zeros, false, true, true, 80),
            (Fill::Zeros, true, true, true, 80),
            (abc(), false, false, true, 3),
            (abc(), true, false, true, 3),
            (abc(), false, true, true, 80),
            (abc(), true, true, true, 80),
            (offset(), false, false, true, 10),
        ] {
            let spec = spec(fill, refill, scramble);
            assert_eq!(Content::new(&spec).needs_prepare(), needs, "{spec:?}");
            assert_eq!(distinct_sectors(&writes(&spec, 10, 4096)), distinct, "{spec:?}");
        }
    }

    #[test]
    fn no_two_of_many_scrambled_sectors_are_alike() {
        for fill in [Fill::Random, Fill::Zeros] {
            let all = writes(&spec(fill, false, true), 5000, 8192);
            assert_eq!(distinct_sectors(&all), 5000 * 16);
        }
    }

    #[test]
    fn scrambling_changes_little() {
        let all = writes(&spec(Fill::Random, false, true), 2, 4096);
        let changed = all[0].iter().zip(&all[1]).filter(|(a, b)| a != b).count();
        assert!((8..=64).contains(&changed), "{changed}");
    }

    #[test]
    fn the_seed_decides_all() {
        for refill in [true, false] {
            let one = spec(Fill::Random, refill, true);
            let other = Spec { seed: 8, ..one.clone() };
            assert_eq!(writes(&one, 5, 1000), writes(&one, 5, 1000));
            let both = [writes(&one, 5, 4096), writes(&other, 5, 4096)].concat();
            assert_eq!(distinct_sectors(&both), 80);
        }
    }

    #[test]
    fn patterns_are_exact_and_restart_with_each_write() {
        for (refill, scramble) in [(false, false), (true, false)] {
            for write in writes(&spec(abc(), refill, scramble), 3, 5000) {
                assert!(write.iter().zip(b"abc".iter().cycle()).all(|(a, b)| a == b));
            }
        }
    }

    /// Seen with fio 3.33 on `rw=rw`: a pattern survives the reads, zeros and random data do not.
    #[test]
    fn a_pattern_survives_reads_into_its_buffer() {
        let mut buffer = vec![0; 512];
        let mut content = Content::new(&spec(abc(), false, false));
        content.fill(&mut buffer);
        buffer.fill(b'Z');
        content.prepare_write(&mut buffer, 0);
        assert!(buffer.starts_with(b"abcabc"));
    }

    #[test]
    fn a_job_that_only_writes_prepares_what_changes() {
        let needs =
            |fill, scramble| Content::new(&spec(fill, false, scramble)).for_writes_only().needs_prepare();
        assert!(!needs(abc(), false));
        assert!(needs(abc(), true));
        assert!(needs(Fill::Pattern(vec![PatternPiece::Offset]), false));
        assert!(!needs(Fill::Zeros, false));
    }

    #[test]
    fn zeros_are_zeros() {
        assert!(writes(&spec(Fill::Zeros, true, false), 2, 4097).concat().iter().all(|&byte| byte == 0));
    }
}
