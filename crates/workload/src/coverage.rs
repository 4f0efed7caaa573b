//! Where random offsets come from, and how each kind of workload covers its blocks.
//!
//! | workload | strategy | promise for randomly chosen blocks |
//! |---|---|---|
//! | one block size, map wanted | permutation | each block once per lap, O(1) memory |
//! | the same with `percentage_random` < 100 | permutation | each once as a random choice; the sequential I/Os in between do not count |
//! | the same with `rw=randread:N` | permutation | each once as the start of a run; the N - 1 I/Os that follow do not count |
//! | `random_generator=lfsr`, any sizes, map or not | shift register over blocks of the smallest size | each once as a start; larger I/Os may overlap |
//! | several block sizes (range, split, reads ≠ writes) | bitmap of blocks of the greatest common size | no byte twice while its I/O can avoid it (below) |
//! | `random_distribution` other than `random` | a chooser, see [`offset`](crate::offset) | none: popular blocks are visited again and again |
//! | `zonemode=strided` | as without zones, restarted for each visit of a zone; see the module `strided` | as without zones, for each visit |
//! | `zonemode=zbd` | as without zones, over the usable bytes of all zones; see the module `zoned::spots` | as without zones; a read of an unwritten block goes elsewhere |
//! | `sprandom` | overlapping regions, see [`precondition`](crate::precondition) | each block once, and some blocks again |
//! | `norandommap`, or `blockalign` other than the block size | none | none: every offset is equally likely each time |
//! | several laps (`io_size` > `size`, time based) | a new key, or a cleared map, for each lap | as above, for each lap |
//!
//! Sequential I/Os between the random ones do not enter the map. This is what fio does (its I/O logs show that
//! `percentage_random=50` picks blocks at random that a sequential step has already visited), and only because of this
//! can a permutation serve.
//!
//! With a bitmap, an I/O starts at the first free block at or after a random one, wrapping at the end of the range. Its
//! size is drawn and then cut to the gap, so with one direction each byte is visited exactly once. If the directions
//! have different sizes, an I/O begins at a multiple of its own smallest size, at the first such place that is not
//! fully visited; it may overlap its neighbours if the gap is smaller than its smallest size. If a direction finds no
//! such place while another direction still would, its offsets are random.

use crate::{
    BlockSize, Distribution, Error, Mix, Spec,
    lfsr::Lfsr,
    offset::{Chooser, Tables},
    permutation::Permutation,
    place::Place,
    precondition::Regions,
    rng::{Rng, SplitMix64},
    sizes::Sizes,
    unvisited::Unvisited,
};
use iolite_types::{Direction, greatest_common_divisor};

/// How the random offsets of a workload are chosen; see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// No offset is random.
    Sequential,
    /// Each offset is drawn independently.
    Uniform,
    /// Blocks of this many bytes in a keyed order.
    Permutation(u64),
    /// Blocks of this many bytes in the order of a shift register.
    Lfsr(u64),
    /// A map of blocks of this many bytes.
    Bitmap(u64),
    /// Some offsets come more often than others.
    Chosen,
    /// Blocks of this many bytes, some of them more than once, to precondition a flash device.
    Regions(u64),
}

impl Strategy {
    /// The strategy that `spec` gets.
    pub fn of(spec: &Spec) -> Strategy {
        let random = || directions(spec).iter().copied().filter(|&d| spec.random_percent[d] > 0);
        if random().next().is_none() {
            return Strategy::Sequential;
        }
        let sizes: Vec<&BlockSize> = random().map(|d| random_size(spec, d)).collect();
        let smallest = sizes.iter().map(|size| size.min().max(1)).min().unwrap_or(1);
        if spec.precondition.is_some() {
            return Strategy::Regions(smallest);
        }
        if spec.distribution != Distribution::Even {
            return Strategy::Chosen;
        }
        if spec.lfsr {
            return Strategy::Lfsr(smallest);
        }
        let aligned_otherwise = !spec.size_by_randomness
            && random().any(|d| spec.align[d].max(1) != spec.block_size[d].min().max(1));
        if !spec.cover || aligned_otherwise {
            return Strategy::Uniform;
        }
        let single = sizes.iter().all(|size| Sizes::new(size, spec.unaligned).fixed() == Some(smallest));
        if single {
            return Strategy::Permutation(smallest);
        }
        Strategy::Bitmap(sizes.iter().map(|size| size.min().max(1)).fold(0, greatest_common_divisor))
    }
}

/// The directions for which offsets are chosen. (In trimwrite, each write goes where its trim went.)
pub(crate) fn directions(spec: &Spec) -> &'static [Direction] {
    match spec.mix {
        Mix::Single(Direction::Read) => &[Direction::Read],
        Mix::Single(Direction::Write) => &[Direction::Write],
        Mix::Single(Direction::Trim) | Mix::TrimWrite => &[Direction::Trim],
        Mix::ReadWrite(_) => &[Direction::Read, Direction::Write],
        Mix::ReadWriteTrim(..) => &Direction::ALL,
    }
}

/// The block sizes of random I/Os in a direction.
pub(crate) fn random_size(spec: &Spec, direction: Direction) -> &BlockSize {
    &spec.block_size[if spec.size_by_randomness { Direction::Write } else { direction }]
}

/// The block sizes of sequential I/Os in a direction.
pub(crate) fn sequential_size(spec: &Spec, direction: Direction) -> &BlockSize {
    &spec.block_size[if spec.size_by_randomness { Direction::Read } else { direction }]
}

/// The random offsets of one file.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    length: u64,
    keys: SplitMix64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform { align: [u64; 3] },
    Permutation { block: u64, order: Permutation },
    Lfsr { block: u64, order: Lfsr },
    Unvisited(Unvisited),
    Chosen { align: [u64; 3], choosers: Box<[Option<Chooser>; 3]> },
    Regions { block: u64, regions: Box<Regions> },
}

/// The keys of a file's laps.
pub(crate) fn lap_keys(seed: u64, file: usize) -> SplitMix64 {
    SplitMix64::stream(seed, 0x1000 + file as u64)
}

impl Coverage {
    /// The offsets in a region of `length` bytes of the `file`th file.
    pub(crate) fn new(
        spec: &Spec,
        strategy: Strategy,
        length: u64,
        file: usize,
        tables: &mut Tables,
    ) -> Result<Self, Error> {
        let mut keys = lap_keys(spec.seed, file);
        let kind = match strategy {
            Strategy::Sequential | Strategy::Uniform => uniform(spec),
            Strategy::Permutation(block) => {
                Kind::Permutation { block, order: Permutation::new(length / block, keys.next_u64()) }
            }
            Strategy::Lfsr(block) => Kind::Lfsr { block, order: Lfsr::new(length / block, keys.next_u64()) },
            Strategy::Bitmap(block) => match unvisited(spec, length, block) {
                Ok(unvisited) => Kind::Unvisited(unvisited),
                Err(_) if spec.cover_softly => uniform(spec),
                Err(error) => return Err(error),
            },
            Strategy::Chosen => Kind::Chosen {
                align: spec.align.values.map(|align| align.max(1)),
                choosers: Box::new(choosers(spec, length, file, tables)),
            },
            Strategy::Regions(block) => {
                let device = spec.precondition.expect("the strategy is chosen by it");
                let regions = Regions::new(device, length / block, keys.next_u64());
                Kind::Regions { block, regions: Box::new(regions) }
            }
        };
        Ok(Coverage { length, keys, kind })
    }

    /// Forgets all visits; the next lap has a different order.
    pub(crate) fn restart(&mut self) {
        match &mut self.kind {
            Kind::Uniform { .. } => {}
            Kind::Permutation { order, .. } => order.rekey(self.keys.next_u64()),
            Kind::Lfsr { order, .. } => order.rekey(self.keys.next_u64()),
            Kind::Unvisited(unvisited) => unvisited.clear(),
            Kind::Chosen { choosers, .. } => choosers.iter_mut().flatten().for_each(Chooser::restart),
            Kind::Regions { regions, .. } => regions.rekey(self.keys.next_u64()),
        }
    }

    /// Goes back to the first lap.
    pub(crate) fn rewind(&mut self, seed: u64, file: usize) {
        self.keys = lap_keys(seed, file);
        self.restart();
        if let Kind::Unvisited(unvisited) = &mut self.kind {
            unvisited.rewind();
        }
    }

    /// A place for an I/O of `direction`; `None` if every block has been visited, or no I/O fits.
    #[inline(always)]
    pub(crate) fn next(
        &mut self,
        direction: Direction,
        sizes: &Sizes,
        offsets: &mut Rng,
        lengths: &mut Rng,
    ) -> Option<Place> {
        match &mut self.kind {
            Kind::Permutation { block, order } => {
                order.next().map(|index| Place { offset: index * *block, length: *block })
            }
            Kind::Uniform { align } => {
                Place::at_random(self.length, align[direction.index()], sizes, offsets, lengths)
            }
            Kind::Chosen { align, choosers } => {
                let align = align[direction.index()];
                let Some(chooser) = &mut choosers[direction.index()] else {
                    return Place::at_random(self.length, align, sizes, offsets, lengths);
                };
                let offset = chooser.next(offsets) * align;
                Some(Place { offset, length: sizes.draw(lengths, self.length - offset) })
            }
            Kind::Regions { block, regions } => {
                regions.next().map(|index| Place { offset: index * *block, length: *block })
            }
            Kind::Lfsr { block, order } => loop {
                let offset = order.next()? * *block;
                let room = self.length - offset;
                if room >= sizes.min() {
                    return Some(Place { offset, length: sizes.draw(lengths, room) });
                }
            },
            Kind::Unvisited(unvisited) => unvisited.next(sizes, offsets, lengths),
        }
    }
}

fn uniform(spec: &Spec) -> Kind {
    Kind::Uniform { align: spec.align.values.map(|align| align.max(1)) }
}

/// The number of aligned offsets at which an I/O of at least `smallest` bytes fits.
pub(crate) fn slots(length: u64, smallest: u64, align: u64) -> u64 {
    length.checked_sub(smallest).map_or(0, |room| room / align + 1)
}

/// The choosers of the offsets in a region, one per direction.
pub(crate) fn choosers(spec: &Spec, length: u64, file: usize, tables: &mut Tables) -> [Option<Chooser>; 3] {
    Direction::ALL.map(|direction| {
        if !directions(spec).contains(&direction) || spec.random_percent[direction] == 0 {
            return None;
        }
        let align = spec.align[direction].max(1);
        let slots = slots(length, random_size(spec, direction).min().max(1), align);
        Chooser::new(spec, direction, slots, align, file, tables)
    })
}

/// A map of blocks of `block` bytes for the `length` bytes of a file of `spec`; nothing has been visited. Fails when
/// there is no memory for the map.
pub(crate) fn unvisited(spec: &Spec, length: u64, block: u64) -> Result<Unvisited, Error> {
    Unvisited::new(length, reachable(spec, length) / block, block)
}

/// How much of a region the directions can reach with whole I/Os at multiples of their smallest sizes.
fn reachable(spec: &Spec, length: u64) -> u64 {
    directions(spec)
        .iter()
        .filter(|&&d| spec.random_percent[d] > 0)
        .map(|&d| {
            let smallest = random_size(spec, d).min().max(1);
            length / smallest * smallest
        })
        .max()
        .unwrap_or(0)
}
