//! The history of writes, for verification.
//!
//! The same spec and seed give the same I/Os. So if no byte is written twice, nothing has to be stored: [`Replay`] runs
//! the workload again. If blocks can be written again, the last write of each counts, and the history needs memory:
//!
//! | workload | history | memory |
//! |---|---|---|
//! | each byte is written at most once in a pass | [`Replay`] | none (a second generator) |
//! | bytes can be written again | [`WriteMap`] | 4 bytes for each block of the smallest size, touched when the block is written |
//! | sizes or offsets have no useful common divisor (`bs_unaligned`, odd skips) | [`Extents`] | about 60 bytes for each write that has not been overwritten |
//!
//! A trace can do anything, so it needs one of the latter two, whichever takes less memory.
//!
//! A map of 100 million blocks of 4 KiB takes 400 MB. If a later write overwrites a part of an earlier one, the whole
//! earlier write is forgotten: its checksum covers bytes that are gone.

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
use serde::{Deserialize, Serialize};

/// A write with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The write.
    pub io: Io,
    /// The number of the write within its job, from 0. A [`WriteMap`] stores 30 bits of it.
    pub number: u64,
}

/// The kind of history that a workload needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Need {
    /// No stored history: no byte is written twice in a pass, so the pass can be repeated.
    Replay,
    /// A map of blocks of this many bytes.
    Map(u64),
    /// A list of the writes.
    Extents,
}

/// The most blocks in a map. Larger regions (those without an end, for example) get a list.
const MOST_BLOCKS: u64 = 1 << 38;

/// A map with more blocks per write than this is worse than a list of the writes.
const FINEST: u64 = 16;

impl Need {
    /// The history that `spec` needs. A workload is not `predictable` if its I/Os may differ from those of its
    /// generator: because I/Os may fail, or because its mix is steered.
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

    /// The bytes of memory that a map of these files takes when all of it is touched; 0 if no map is needed.
    pub fn map_bytes(self, files: &[Region]) -> u64 {
        let Need::Map(slot) = self else { return 0 };
        let blocks = files.iter().fold(0u64, |sum, region| sum.saturating_add(region.length.div_ceil(slot)));
        blocks.saturating_mul(size_of::<u32>() as u64)
    }

    /// Whether a map of these files takes more memory than a list of `writes` writes.
    pub fn is_more_than_list(self, files: &[Region], writes: u64) -> bool {
        self.map_bytes(files) > writes.saturating_mul(extents::BYTES_PER_WRITE)
    }
}

/// Whether a pass may write a byte more than once, or trim it as well.
pub fn can_repeat(spec: &Spec) -> bool {
    if has_laps(spec) || spec.identical || spec.zones.is_some() || spec.device_zones.is_some() {
        return true;
    }
    let directions = directions(spec);
    let random = directions.iter().any(|&direction| spec.random_percent[direction] > 0);
    if !random {
        // The trims of a mix go over the same bytes as its writes.
        return spec.sequential_skip != 0 || matches!(spec.mix, Mix::ReadWriteTrim(..));
    }
    let all_random = directions.iter().all(|&direction| spec.random_percent[direction] >= 100);
    if !all_random || spec.ios_per_random > 1 {
        return true;
    }
    match Strategy::of(spec) {
        Strategy::Permutation(_) => false,
        // I/Os that are larger than the blocks of the register overlap.
        Strategy::Lfsr(block) => {
            directions.iter().any(|&direction| spec.block_size[direction] != BlockSize::Fixed(block))
        }
        // I/Os of several directions do not fit the gaps of a map exactly. With softrandommap, there may be no map.
        Strategy::Bitmap(_) => spec.cover_softly || spec.mix.is_drawn(),
        Strategy::Sequential | Strategy::Uniform | Strategy::Chosen | Strategy::Regions(_) => true,
    }
}

/// Whether all writes have one size and begin at multiples of it (within a region).
pub fn is_uniform(spec: &Spec) -> bool {
    spec.sizes(Direction::Write) == BlockSize::Fixed(step(spec))
}

/// The common divisor of all offsets (within a region) and lengths of writes.
pub fn step(spec: &Spec) -> u64 {
    if spec.unaligned {
        return 1;
    }
    let mut common = 0;
    let mut add = |value: u64| common = greatest_common_divisor(common, value);
    let involved: &[Direction] = match spec.mix {
        Mix::TrimWrite => &[Direction::Trim, Direction::Write],
        Mix::ReadWrite(_) => &[Direction::Read, Direction::Write],
        Mix::ReadWriteTrim(..) => &Direction::ALL,
        Mix::Single(_) => &[Direction::Write],
    };
    // With `size_by_randomness`, I/Os of any direction have the sizes of reads and writes.
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
    if let Some(size) = spec.device_zones {
        add(size);
    }
    if let Some(zones) = spec.zones {
        [zones.size, zones.range, zones.skip].into_iter().for_each(&mut add);
    }
    if matches!(spec.distribution, Distribution::Sequence { .. }) {
        add(spec.align[Direction::Write].max(1));
    }
    common.max(1)
}

/// The writes of a pass that have not been overwritten, for a workload that can write a byte more than once.
#[derive(Clone, Debug)]
pub enum Standing {
    /// A map of blocks.
    Map(WriteMap),
    /// A list of writes.
    Extents(Extents),
}

impl Standing {
    /// An empty history of the kind that is needed; `None` if nothing has to be stored.
    ///
    /// # Errors
    ///
    /// [`Error::HistoryMemory`] if there is no memory for a map.
    pub fn new(spec: &Spec, need: Need) -> Result<Option<Standing>, Error> {
        Ok(match need {
            Need::Replay => None,
            Need::Map(slot) => Some(Standing::Map(WriteMap::new(&spec.files, slot)?)),
            Need::Extents => Some(Standing::Extents(Extents::default())),
        })
    }

    /// Records a write, which overwrites earlier ones.
    pub fn wrote(&mut self, written: Written) {
        match self {
            Standing::Map(map) => map.wrote(written),
            Standing::Extents(extents) => extents.wrote(written),
        }
    }

    /// Forgets all writes that touch this place: its content is unknown now.
    pub fn forget(&mut self, io: &Io) {
        match self {
            Standing::Map(map) => map.forget(io),
            Standing::Extents(extents) => extents.forget(io),
        }
    }

    /// The first write at or after this place that has not been overwritten, in the order of files and offsets.
    /// `issued` is the number of writes so far.
    pub fn next(&self, file: u32, offset: u64, issued: u64) -> Option<Written> {
        match self {
            Standing::Map(map) => map.next(file, offset, issued),
            Standing::Extents(extents) => extents.next(file, offset),
        }
    }

    /// Calls `act` with each write that has not been overwritten, in that order.
    pub fn each(&self, issued: u64, mut act: impl FnMut(Written)) {
        let mut place = (0, 0);
        while let Some(written) = self.next(place.0, place.1, issued) {
            place = (written.io.file, written.io.offset + written.io.length);
            act(written);
        }
    }

    /// The first write that lies entirely within this place and has not been overwritten. `issued` is the number of
    /// writes so far.
    pub fn first_within(&self, place: &Io, issued: u64) -> Option<Written> {
        match self {
            Standing::Map(map) => map.first_within(place, issued),
            Standing::Extents(extents) => extents.first_within(place),
        }
    }

    /// The bytes of memory that the history takes: of a map, when all of it is touched.
    pub fn bytes(&self) -> u64 {
        match self {
            Standing::Map(map) => map.bytes(),
            Standing::Extents(extents) => extents.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
