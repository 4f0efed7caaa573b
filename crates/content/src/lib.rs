//! The content of buffers that are written: random data, zeros, a pattern, or data that can be compressed or
//! deduplicated.
//!
//! A [`Content`] belongs to one worker. It fills each buffer once at the start ([`Content::fill`]). If the content has
//! to change from write to write, it prepares the buffer before each write ([`Content::prepare_write`]).
//!
//! | fill | by default | with `refill` | with `scramble` |
//! |---|---|---|---|
//! | random | filled once; all writes from one buffer are identical | new random data for each write | the first bytes of each 512 change with each write |
//! | zeros | nothing to do | nothing to do: zeros stay zeros | as above |
//! | pattern | written again for each write | the same | as above |
//! | compressible, duplicates | new random data for each write | the same | nothing: only duplicates are identical anyway |
//!
//! A pattern is written into the buffer again for each write, because reads of the same job may have replaced it. A job
//! that only writes declares this ([`Content::for_writes_only`]), and then needs it only for `%o`. Zeros and random
//! data that are not refilled are not restored: a job that also reads writes back what it has read.
//!
//! This follows the observed behaviour of fio: refilled zeros and patterns stay the same, explicit scrambling changes
//! them too, and refilled random data is not scrambled. Scrambling is *on by default* for random data only; the creator
//! of the [`Spec`] takes care of that. A pattern restarts with each I/O.
//!
//! [`Compress`] mixes random data with zeros or a pattern. [`Dedupe`] makes some writes identical. It repeats a block
//! by the seed of its random data, so it does nothing for blocks without random data (zeros, a pattern, `percentage`
//! 100), which are all identical anyway. With both, the chunks of [`Compress`] do not extend beyond the blocks of
//! [`Dedupe`]. In a job that only writes, a buffer that already holds the right bytes is not filled again: neither its
//! fixed parts, if all blocks have one size, nor all of it, if the buffer is to repeat its last content.
//!
//! Random data depends only on the seed. So the workers of a job need different seeds to write different data, and two
//! runs with the same seed write the same data.

mod compress;
mod dedupe;
mod pattern;
mod random;
mod scramble;
mod source;

pub use compress::Compress;
pub use dedupe::{Dedupe, Share, WorkingSet};
pub use random::{implementation as random_implementation, mix};
pub use source::Source;

use dedupe::{Duplicates, Run};
use scramble::Scrambler;
use serde::{Deserialize, Serialize};

/// One piece of a pattern. The sequence of pieces repeats until the buffer is full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PatternPiece {
    /// These bytes as they are.
    Bytes(Vec<u8>),
    /// The offset of the block in its file: 64 bits, little endian.
    Offset,
}

/// The description of a worker's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The content of buffers.
    pub fill: Fill,
    /// Fill the buffer before every write (`refill_buffers`) instead of once.
    pub refill: bool,
    /// If buffers are not refilled: change a few bytes before every write, so that no two writes have the same data
    /// (`scramble_buffers`).
    pub scramble: bool,
    /// Mix random data into zeros or a pattern (`buffer_compress_percentage`): [`Fill::Random`] counts as zeros.
    pub compress: Option<Compress>,
    /// Make some writes identical (`dedupe_percentage`).
    pub dedupe: Option<Dedupe>,
    /// Seed of all random content of this worker.
    pub seed: u64,
}

impl Spec {
    /// New random data for each write.
    pub fn random(seed: u64) -> Spec {
        Spec { fill: Fill::Random, refill: true, scramble: false, compress: None, dedupe: None, seed }
    }
}

/// The content of buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Decides which writes repeat an earlier one.
    duplicates: Option<Duplicates>,
    /// Fill the buffer before each write.
    refill: bool,
    /// Changes a few bytes before each write.
    scrambler: Option<Scrambler>,
    /// The known content of buffers, if nothing else changes them.
    held: Option<Held>,
}

/// The known content of buffers, so that they are not filled again needlessly.
#[derive(Clone, Debug, Default)]
struct Held {
    /// The length of the buffers filled so far. If all had the same length, their fixed parts are in place.
    length: Option<usize>,
    mixed: bool,
    /// The buffer that was prepared last (its address and length) and its content.
    last: Option<(usize, usize, Run)>,
}

impl Held {
    /// Notes that a buffer of this length is filled. Returns whether its fixed parts are in place.
    #[inline]
    fn has_fixed(&mut self, length: usize) -> bool {
        let same = *self.length.get_or_insert(length) == length;
        self.mixed |= !same;
        !self.mixed
    }
}

impl Content {
    /// The content that `spec` describes.
    pub fn new(spec: &Spec) -> Self {
        let source = Source::new(spec);
        let duplicates = spec.dedupe.filter(|dedupe| dedupe.percentage > 0 && source.is_random());
        let duplicates = duplicates.map(|dedupe| Duplicates::new(dedupe, spec.seed));
        let asked = spec.compress.is_some() || spec.dedupe.is_some();
        let changes = source.is_random() && (spec.refill || asked);
        let refill = changes || source.is_pattern();
        let scrambler = (spec.scramble && !changes && !asked).then(|| Scrambler::new(spec.seed));
        Content { source, duplicates, refill, scrambler, held: None }
    }

    /// The same content for buffers that nothing else changes: above all, no reads go into them. Content that does not
    /// change from write to write then need not be prepared.
    #[must_use]
    pub fn for_writes_only(mut self) -> Self {
        if self.source.is_pattern() {
            self.refill = self.source.has_offset();
        }
        self.held = Some(Held::default());
        self
    }

    /// Fills a buffer for the first time. `%o` is 0.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        if let Some(held) = &mut self.held {
            held.has_fixed(buffer.len());
        }
        let block = self.duplicates.as_ref().map_or(buffer.len(), Duplicates::block);
        buffer.chunks_mut(block.max(1)).for_each(|block| self.source.fill(block, 0, false));
    }

    /// Whether [`prepare_write`](Self::prepare_write) does anything.
    pub fn needs_prepare(&self) -> bool {
        self.refill || self.scrambler.is_some()
    }

    /// Whether the data is made before each write.
    #[inline(always)]
    pub fn refills(&self) -> bool {
        self.refill
    }

    /// Prepares `buffer` (as long as the I/O) for a write at `offset` of its file.
    #[inline]
    pub fn prepare_write(&mut self, buffer: &mut [u8], offset: u64) {
        if self.refill {
            self.refill(buffer, offset);
        }
        if let Some(scrambler) = &mut self.scrambler {
            scrambler.scramble(buffer);
        }
    }

    #[inline]
    fn refill(&mut self, buffer: &mut [u8], offset: u64) {
        let has_fixed = self.held.as_mut().is_some_and(|held| held.has_fixed(buffer.len()));
        let Some(duplicates) = &mut self.duplicates else {
            return self.source.fill(buffer, offset, has_fixed);
        };
        let run = duplicates.next_run(buffer.len());
        if let Some(held) = &mut self.held {
            let this = Some((buffer.as_ptr().addr(), buffer.len(), run));
            if std::mem::replace(&mut held.last, this) == this && !self.source.has_offset() {
                return;
            }
        }
        for (number, block) in (0..).zip(buffer.chunks_mut(duplicates.block())) {
            self.source.reseed(duplicates.seed(run, number));
            self.source.fill(block, offset, has_fixed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn spec(fill: Fill, refill: bool, scramble: bool) -> Spec {
        Spec { fill, refill, scramble, ..Spec::random(7) }
    }

    fn abc() -> Fill {
        Fill::Pattern(vec![PatternPiece::Bytes(b"abc".to_vec())])
    }

    /// `count` writes from one buffer.
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
    fn fill_refill_and_scramble_decide_which_sectors_differ() {
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

    /// Observed with fio 3.33 and `rw=rw`: a pattern survives the reads, zeros and random data do not.
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
    fn a_write_only_job_prepares_only_changing_content() {
        let needs =
            |fill, scramble| Content::new(&spec(fill, false, scramble)).for_writes_only().needs_prepare();
        assert!(!needs(abc(), false));
        assert!(needs(abc(), true));
        assert!(needs(Fill::Pattern(vec![PatternPiece::Offset]), false));
        assert!(!needs(Fill::Zeros, false));
    }

    fn mixture(percentage: u32, chunk: usize, fill: Fill) -> Spec {
        let compress = Some(Compress { percentage, chunk });
        Spec { compress, ..spec(fill, true, true) }
    }

    fn repeating(percentage: u32, fill: Fill) -> Spec {
        let dedupe = Some(Dedupe { percentage, block: 512, working_set: None });
        Spec { dedupe, ..spec(fill, true, true) }
    }

    #[test]
    fn compressible_writes_are_all_different_and_not_scrambled() {
        for fill in [Fill::Random, Fill::Zeros] {
            let all = writes(&mixture(50, 0, fill), 100, 4096);
            assert!(all.iter().all(|write| write[2048..].iter().all(|&byte| byte == 0)));
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), 100);
        }
        let all = writes(&mixture(50, 512, abc()), 10, 4096);
        assert!(
            all.iter().flat_map(|write| write.chunks(512)).all(|chunk| chunk[256..].starts_with(b"abcabc"))
        );
    }

    #[test]
    fn the_ends_of_the_percentage() {
        let all = writes(&mixture(100, 512, Fill::Random), 10, 4096);
        assert!(all.concat().iter().all(|&byte| byte == 0));
        assert_eq!(distinct_sectors(&writes(&mixture(0, 512, Fill::Random), 10, 4096)), 80);
        assert!(writes(&mixture(100, 512, abc()), 3, 512).iter().all(|write| write.starts_with(b"abcabc")));
        assert!(writes(&mixture(0, 512, abc()), 3, 512).iter().all(|write| write.starts_with(b"abcabc")));
    }

    #[test]
    fn duplicates_are_whole_blocks() {
        let both =
            Spec { compress: Some(Compress { percentage: 50, chunk: 512 }), ..repeating(70, Fill::Random) };
        for spec in [repeating(70, Fill::Random), both] {
            let all = writes(&spec, 1000, 4096);
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), 300);
            assert_eq!(distinct_sectors(&all), 300 * 8);
        }
        assert_eq!(distinct_sectors(&writes(&repeating(0, Fill::Random), 10, 4096)), 80);
    }

    /// In a job that only writes, the shortcuts for buffers that already hold the right bytes give the same data, with
    /// several buffers and with blocks of one size or of many.
    #[test]
    fn shortcuts_do_not_change_what_is_written() {
        let offset = Fill::Pattern(vec![PatternPiece::Offset]);
        for fill in [Fill::Random, abc(), offset] {
            for (percentage, chunk) in [(0, 0), (50, 512), (30, 3000), (80, 0)] {
                for sizes in [[4096; 5], [512, 4096, 4096, 1024, 4096]] {
                    let compress = Some(Compress { percentage, chunk });
                    let spec = Spec { compress, ..repeating(60, fill.clone()) };
                    let mut careful = Content::new(&spec);
                    let mut quick = careful.clone().for_writes_only();
                    let mut buffers = vec![vec![0xee; 4096]; 3];
                    buffers.iter_mut().for_each(|buffer| quick.fill(buffer));
                    careful.source = quick.source.clone();
                    for write in 0..400usize {
                        let size = sizes[write % 5];
                        let mut expected = vec![0xee; size];
                        careful.prepare_write(&mut expected, write as u64 * 512);
                        let buffer = &mut buffers[write / 7 % 3][..size];
                        if quick.needs_prepare() {
                            quick.prepare_write(buffer, write as u64 * 512);
                        }
                        assert!(*buffer == expected, "{spec:?} {write}");
                    }
                }
            }
        }
    }

    #[test]
    fn zeros_are_zeros() {
        assert!(writes(&spec(Fill::Zeros, true, false), 2, 4097).concat().iter().all(|&byte| byte == 0));
    }
}
