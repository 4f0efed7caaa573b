//! What was written where, for those who read it back.
//!
//! The same spec and seed give the same I/Os, so where no byte is written twice nothing has to be kept: [`Replay`] runs
//! the workload again. Where blocks can be written again the last write of each counts, and something per block is
//! needed:
//!
//! | workload | history | memory |
//! |---|---|---|
//! | each byte is written at most once in a pass | [`Replay`] | nothing (a second generator) |
//! | bytes can be written again | [`WriteMap`] | 4 bytes for each block of the smallest size, touched when it is written |
//! | sizes or offsets that are multiples of nothing (`bs_unaligned`, odd skips) | [`Extents`] | about 60 bytes for each write that has not been overwritten |
//!
//! A trace can do anything: it has one of the latter two, whichever takes less.
//!
//! 100 million blocks of 4 KiB are 400 MB. A write of which a later one has overwritten a part is forgotten as a whole:
//! its checksum covers bytes that are gone.

mod extents;
mod map;
mod replay;

pub use extents::Extents;
pub use map::WriteMap;
pub use replay::Replay;

use crate::{
    BlockSize, Distribution, Error, Io, Mix, Region, Spec, coverage::Strategy, coverage::directions,
    general::has_laps,
};
use iolite_types::{Direction, greatest_common_divisor};

/// A write, and which one of its job it was (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// What was written.
    pub io: Io,
    /// The number of the write. A [`WriteMap`] keeps 30 bits of it.
    pub number: u64,
}

/// Which history a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No byte is written twice in a pass.
    Replay,
    /// A map of blocks of this many bytes.
    Map(u64),
    /// Each write for itself.
    Extents,
}

/// A map of more blocks is for regions without an end.
const MOST_BLOCKS: u64 = 1 << 38;

/// A map that is finer than this many blocks per write is worth less than a list of the writes.
const FINEST: u64 = 16;

impl Need {
    /// What `spec` needs. Without being `predictable`, a workload may do other I/Os than its generator says: those that
    /// fail, or a mix that is steered.
    pub fn of(spec: &Spec, predictable: bool) -> Need {
        if predictable && !can_repeat(spec) {
            return Need::Replay;
        }
        let smallest = spec.block_size[Direction::Write].min().max(1);
        let slot = step(spec);
        let blocks: u64 = spec.files.iter().fold(0, |sum, region| sum.saturating_add(region.length / slot));
        let is_too_fine = spec.unaligned || slot * FINEST < smallest;
        if is_too_fine || blocks > MOST_BLOCKS { Need::Extents } else { Need::Map(slot) }
    }

    /// Bytes that a map of these files takes when all of it is touched; 0 where none is needed.
    pub fn map_bytes(self, files: &[Region]) -> u64 {
        let Need::Map(slot) = self else { return 0 };
        let blocks = files.iter().fold(0u64, |sum, region| sum.saturating_add(region.length.div_ceil(slot)));
        blocks.saturating_mul(size_of::<u32>() as u64)
    }

    /// Whether that is more than a list of so many writes takes.
    pub fn is_more_than_list(self, files: &[Region], writes: u64) -> bool {
        self.map_bytes(files) > writes.saturating_mul(extents::BYTES_PER_WRITE)
    }
}

/// Whether a pass may write a byte more than once.
pub fn can_repeat(spec: &Spec) -> bool {
    if has_laps(spec) || spec.identical || spec.zones.is_some() {
        return true;
    }
    let directions = directions(spec);
    let random = directions.iter().any(|&direction| spec.random_percent[direction] > 0);
    if !random {
        return spec.sequential_skip != 0;
    }
    let all_random = directions.iter().all(|&direction| spec.random_percent[direction] >= 100);
    if !all_random || spec.ios_per_random > 1 {
        return true;
    }
    match Strategy::of(spec) {
        Strategy::Permutation(_) => false,
        // Larger I/Os than the blocks of the register overlap. The gaps of a map are hit exactly only by one direction.
        Strategy::Lfsr(block) => {
            directions.iter().any(|&direction| spec.block_size[direction] != BlockSize::Fixed(block))
        }
        // A covering workload that may go on without its map (softrandommap) repeats itself then.
        Strategy::Bitmap(_) => spec.cover_softly || matches!(spec.mix, Mix::ReadWrite(_)),
        Strategy::Sequential | Strategy::Uniform | Strategy::Chosen | Strategy::Regions(_) => true,
    }
}

/// Whether all writes have one size, at multiples of it (within a region).
pub fn is_uniform(spec: &Spec) -> bool {
    spec.block_size[Direction::Write] == BlockSize::Fixed(step(spec))
}

/// What all offsets (within a region) and lengths of writes are multiples of.
pub fn step(spec: &Spec) -> u64 {
    if spec.unaligned {
        return 1;
    }
    let mut common = 0;
    let mut add = |value: u64| common = greatest_common_divisor(common, value);
    let involved: &[Direction] = match spec.mix {
        Mix::TrimWrite => &[Direction::Trim, Direction::Write],
        Mix::ReadWrite(_) => &[Direction::Read, Direction::Write],
        Mix::Single(_) => &[Direction::Write],
    };
    // Offsets and sizes by randomness are those of reads and writes, whatever the direction.
    let by_randomness: &[Direction] =
        if spec.size_by_randomness { &[Direction::Read, Direction::Write] } else { &[] };
    for &direction in involved.iter().chain(by_randomness) {
        add(spec.block_size[direction].common());
        add(spec.align[direction].max(1));
    }
    if spec.sequential_skip != 0 {
        add(spec.sequential_skip.unsigned_abs());
        spec.files.iter().for_each(|region| add(region.length));
    }
    if let Some(zones) = spec.zones {
        [zones.size, zones.range, zones.skip].into_iter().for_each(&mut add);
    }
    if matches!(spec.distribution, Distribution::Sequence { .. }) {
        add(spec.align[Direction::Write].max(1));
    }
    common.max(1)
}

/// The writes of a pass that still stand, for a workload that can write again.
#[derive(Clone, Debug)]
pub enum Standing {
    /// By block.
    Map(WriteMap),
    /// By write.
    Extents(Extents),
}

impl Standing {
    /// An empty history of the kind that is needed; `None` where nothing has to be kept.
    pub fn new(spec: &Spec, need: Need) -> Result<Option<Standing>, Error> {
        Ok(match need {
            Need::Replay => None,
            Need::Map(slot) => Some(Standing::Map(WriteMap::new(&spec.files, slot)?)),
            Need::Extents => Some(Standing::Extents(Extents::default())),
        })
    }

    /// This was written last.
    pub fn wrote(&mut self, written: Written) {
        match self {
            Standing::Map(map) => map.wrote(written),
            Standing::Extents(extents) => extents.wrote(written),
        }
    }

    /// What is here now is not known.
    pub fn forget(&mut self, io: &Io) {
        match self {
            Standing::Map(map) => map.forget(io),
            Standing::Extents(extents) => extents.forget(io),
        }
    }

    /// The first write that stands at or after this place, files in order. `issued` is how many writes there were.
    pub fn next(&self, file: u32, offset: u64, issued: u64) -> Option<Written> {
        match self {
            Standing::Map(map) => map.next(file, offset, issued),
            Standing::Extents(extents) => extents.next(file, offset),
        }
    }

    /// The first write that stands and lies within this place as a whole. `issued` is how many writes there were.
    pub fn first_within(&self, place: &Io, issued: u64) -> Option<Written> {
        match self {
            Standing::Map(map) => map.first_within(place, issued),
            Standing::Extents(extents) => extents.first_within(place),
        }
    }

    /// Bytes of memory that it may take.
    pub fn bytes(&self) -> u64 {
        match self {
            Standing::Map(map) => map.bytes(),
            Standing::Extents(extents) => extents.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
