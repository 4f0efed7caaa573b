//! Files that are each processed by one I/O, whatever their size: those of engines that act on names. There may be
//! millions of them, so no state is stored per file.
//!
//! Each file comes once in a pass. In a skewed order, some files come repeatedly and others never, and a pass has as
//! many bytes as if each file had come once; but files that are created or removed still come only once.

use crate::{
    Error, FileOrder, Generator, Io, Mix, Next, Spec,
    general::{draw_mix, draw_shares},
    rng::SplitMix64,
    rotation::Rotation,
};
use crate::{general::Streams, general::io_limit};
use iolite_types::Direction;
use serde::{Deserialize, Serialize};

/// Files that are each processed by one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wholes {
    /// The number of files.
    pub count: u32,
    /// Their sizes.
    pub sizes: FileSizes,
    /// The same file may be used again: a skewed order draws from all files each time, so some are never used.
    pub repeat: bool,
}

/// The sizes of files, drawn from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSizes {
    /// The smallest.
    pub least: u64,
    /// The largest.
    pub most: u64,
    /// Sizes are multiples of this, if the range is wide enough.
    pub block: u64,
    /// Makes the choice repeatable.
    pub seed: u64,
}

impl FileSizes {
    /// The size of a file.
    pub fn of(&self, file: u32) -> u64 {
        if self.least == self.most {
            return self.least;
        }
        let width = (self.most - self.least).saturating_add(1);
        let random = SplitMix64::stream(self.seed, file.into()).next_u64();
        let value = self.least + ((u128::from(random) * u128::from(width)) >> 64) as u64;
        let aligned = value / self.block * self.block;
        if aligned >= self.least { aligned } else { value }
    }

    /// The length that an I/O on a whole file counts as: its whole blocks, and at least one.
    fn counted(&self, file: u32) -> u64 {
        (self.of(file) / self.block * self.block).max(self.block)
    }

    /// The bytes of the first `count` files, as they are counted.
    pub fn total(&self, count: u32) -> u64 {
        if self.least == self.most {
            return self.counted(0).saturating_mul(count.into());
        }
        (0..count).fold(0, |sum, file| sum.saturating_add(self.counted(file)))
    }
}

/// Each file once, or files again and again in a skewed order.
#[derive(Clone, Debug)]
pub struct EachFile {
    sizes: FileSizes,
    /// Files never finish.
    repeats: bool,
    mix: Mix,
    rotation: Rotation,
    announce_close: bool,
    /// The file that was just used, if it is to be closed.
    used: Option<u32>,
    streams: Streams,
    seed: u64,
    laps: bool,
    bytes: u64,
    byte_limit: u64,
    ios: u64,
    last_io: u64,
    io_limit: u64,
    steered: Option<Direction>,
}

impl EachFile {
    /// The generator of a workload on these files.
    ///
    /// # Errors
    /// Never. (All generators can fail.)
    pub(crate) fn new(spec: &Spec, wholes: &Wholes) -> Result<Self, Error> {
        let total = wholes.sizes.total(wholes.count);
        Ok(EachFile {
            sizes: wholes.sizes,
            repeats: wholes.repeat && matches!(spec.file_order, FileOrder::Skewed(_)),
            mix: spec.mix,
            rotation: Rotation::new(spec.file_order, wholes.count, spec.open_files, 1, spec.seed),
            announce_close: spec.open_files < wholes.count as usize,
            used: None,
            streams: Streams::new(spec.seed),
            seed: spec.seed,
            laps: spec.endless || spec.pass_bytes.is_some_and(|bytes| bytes > total),
            bytes: 0,
            byte_limit: if spec.endless { u64::MAX } else { spec.pass_bytes.unwrap_or(total) },
            ios: 0,
            last_io: io_limit(spec),
            io_limit: io_limit(spec),
            steered: None,
        })
    }

    /// The next file; `None` = all files are finished.
    #[inline]
    fn file(&mut self) -> Option<u32> {
        if self.repeats {
            return self.rotation.any(&mut self.streams.files);
        }
        let mut file = self.rotation.current(&mut self.streams.files);
        if file.is_none() && self.laps {
            self.rotation.restart();
            file = self.rotation.current(&mut self.streams.files);
        }
        if file.is_some() {
            self.rotation.finished();
        }
        file
    }

    fn direction(&mut self) -> Direction {
        match self.mix {
            Mix::Single(direction) => direction,
            Mix::ReadWrite(percent) => {
                self.steered.unwrap_or_else(|| draw_mix(&mut self.streams.mix, percent))
            }
            Mix::ReadWriteTrim(reads, writes) => {
                self.steered.unwrap_or_else(|| draw_shares(&mut self.streams.mix, reads, writes))
            }
            // Trims and writes take turns.
            Mix::TrimWrite if self.ios.is_multiple_of(2) => Direction::Trim,
            Mix::TrimWrite => Direction::Write,
        }
    }
}

impl Generator for EachFile {
    #[inline]
    fn next(&mut self) -> Next {
        if let Some(file) = self.used.take()
            && self.announce_close
        {
            return Next::Close(file);
        }
        if self.bytes >= self.byte_limit || self.ios >= self.last_io {
            return Next::Done;
        }
        let Some(file) = self.file() else { return Next::Done };
        self.used = Some(file);
        let length = self.sizes.counted(file);
        let direction = self.direction();
        self.bytes = self.bytes.saturating_add(length);
        self.ios += 1;
        Next::Io(Io { offset: 0, length, file, direction })
    }

    fn restart(&mut self) {
        self.rotation.restart();
        (self.bytes, self.ios, self.last_io, self.used) = (0, 0, self.io_limit, None);
    }

    fn steer(&mut self, direction: Option<Direction>) {
        self.steered = direction;
    }

    fn count_anew(&mut self, in_hand: bool) {
        let counted = self.ios - u64::from(in_hand);
        self.last_io = self.io_limit.saturating_add(counted);
    }

    fn rewind(&mut self) {
        self.streams = Streams::new(self.seed);
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Law, Skew};
    use std::collections::BTreeSet;

    fn spec(count: u32, change: impl FnOnce(&mut Spec)) -> EachFile {
        let sizes = FileSizes { least: 4096, most: 4096, block: 4096, seed: 1 };
        let mut spec = Spec::plain(0, 4096);
        (spec.files, spec.open_files) = (Vec::new(), count as usize);
        spec.wholes = Some(Wholes { count, sizes, repeat: false });
        change(&mut spec);
        EachFile::new(&spec, &spec.wholes.unwrap()).unwrap()
    }

    fn all(generator: &mut EachFile) -> Vec<Next> {
        std::iter::from_fn(|| Some(generator.next()).filter(|next| *next != Next::Done)).collect()
    }

    fn files(nexts: &[Next]) -> Vec<u32> {
        nexts.iter().filter_map(|next| if let Next::Io(io) = next { Some(io.file) } else { None }).collect()
    }

    #[test]
    fn each_file_comes_once_in_a_pass() {
        let mut generator = spec(5, |_| ());
        let nexts = all(&mut generator);
        assert_eq!(files(&nexts), [0, 1, 2, 3, 4]);
        assert_eq!(nexts.len(), 5, "no file is closed on the way");
        generator.restart();
        assert_eq!(files(&all(&mut generator)).len(), 5);
        let mut random = spec(1000, |spec| spec.file_order = FileOrder::Random);
        let order = files(&all(&mut random));
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..1000).collect());
        random.rewind();
        assert_eq!(files(&all(&mut random)), order);
    }

    #[test]
    fn popular_files_come_again_where_that_can_be() {
        let skewed = |repeat| {
            let mut generator = spec(40, |spec| {
                spec.file_order = FileOrder::Skewed(Skew { law: Law::Zipf(1.2), centre: None });
                spec.open_files = 4;
                spec.wholes = spec.wholes.map(|wholes| Wholes { repeat, ..wholes });
            });
            files(&all(&mut generator))
        };
        let (once, again) = (skewed(false), skewed(true));
        assert_eq!((once.len(), again.len()), (40, 40), "a pass has as many I/Os either way");
        assert_eq!(once.into_iter().collect::<BTreeSet<_>>().len(), 40);
        let distinct: BTreeSet<u32> = again.iter().copied().collect();
        assert!((2..30).contains(&distinct.len()), "{again:?}");
        let most = distinct.iter().map(|file| again.iter().filter(|other| *other == file).count()).max();
        assert!(most > Some(10), "one of them is by far the most popular: {again:?}");
    }

    #[test]
    fn files_are_closed_when_others_are_to_be_opened() {
        let nexts = all(&mut spec(3, |spec| spec.open_files = 1));
        let io = |file| Next::Io(Io { offset: 0, length: 4096, file, direction: Direction::Read });
        assert_eq!(nexts[..4], [io(0), Next::Close(0), io(1), Next::Close(1)]);
    }

    #[test]
    fn a_pass_ends_with_its_amount() {
        assert_eq!(files(&all(&mut spec(9, |spec| spec.pass_bytes = Some(8192)))), [0, 1]);
        assert_eq!(files(&all(&mut spec(2, |spec| spec.pass_bytes = Some(20_480)))), [0, 1, 0, 1, 0]);
        assert_eq!(files(&all(&mut spec(9, |spec| spec.total_ios = Some(3)))), [0, 1, 2]);
        let mut endless = spec(2, |spec| spec.endless = true);
        let some: Vec<Next> = (0..5).map(|_| endless.next()).collect();
        assert_eq!(files(&some), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn sizes_are_whole_blocks_in_their_range() {
        let sizes = FileSizes { least: 4096, most: 65_536, block: 4096, seed: 7 };
        let drawn: BTreeSet<u64> = (0..1000).map(|file| sizes.of(file)).collect();
        assert!(drawn.iter().all(|size| size % 4096 == 0 && (4096..=65_536).contains(size)), "{drawn:?}");
        assert!(drawn.len() > 10, "{drawn:?}");
        let fixed = FileSizes { least: 17_066, most: 17_066, ..sizes };
        assert_eq!((fixed.of(3), fixed.total(3)), (17_066, 3 * 16_384));
    }
}
