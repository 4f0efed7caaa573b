//! The generators for the most common workloads: one file; one direction, or a mix of reads and writes; all random or
//! all sequential; with one block size, or with several over a map of visited blocks.
//!
//! Each combination is a separate type for which the I/O loop of the fastest engines is compiled, so that a workload
//! pays only for its own features. Each issues exactly the I/Os that [`General`](crate::General) issues for the same spec.

use crate::{
    Generator, Io, Mix, Next, Spec,
    coverage::{Strategy, choosers, directions, lap_keys, random_size, sequential_size, unvisited},
    general::{Streams, byte_limit, draw_mix, has_laps, io_limit},
    lfsr::Lfsr,
    offset::{Chooser, Tables},
    permutation::Permutation,
    place::Place,
    rng::{Rng, SplitMix64},
    sizes::Sizes,
    unvisited::Unvisited,
};
use iolite_types::Direction;

/// Chooses the direction of the next I/O.
pub trait Directions {
    /// The next direction.
    fn next(&mut self) -> Direction;
    /// Goes back to the first direction.
    fn rewind(&mut self);
}

/// One direction only.
#[derive(Clone, Debug)]
pub struct OneDirection(Direction);

/// Reads and writes.
#[derive(Clone, Debug)]
pub struct ReadsAndWrites {
    rng: Rng,
    percent: u32,
    seed: u64,
}

impl Directions for OneDirection {
    #[inline(always)]
    fn next(&mut self) -> Direction {
        self.0
    }

    fn rewind(&mut self) {}
}

impl Directions for ReadsAndWrites {
    #[inline(always)]
    fn next(&mut self) -> Direction {
        draw_mix(&mut self.rng, self.percent)
    }

    fn rewind(&mut self) {
        self.rng = Streams::new(self.seed).mix;
    }
}

/// Chooses the place of the next I/O.
pub trait Offsets {
    /// The next place, relative to the region; `None` if no place is left.
    fn next(&mut self, direction: Direction) -> Option<Place>;
    /// Continues an endless workload when a direction has no place left.
    fn wrap(&mut self, direction: Direction);
    /// Starts over for all directions.
    fn restart(&mut self);
    /// Goes back to the first lap.
    fn rewind(&mut self);
}

/// Blocks one after the other.
#[derive(Clone, Debug)]
pub struct Sequential {
    positions: [u64; 3],
    size: u64,
    end: u64,
}

/// Each block once, in random order.
#[derive(Clone, Debug)]
pub struct Covering {
    order: Order,
    keys: SplitMix64,
    size: u64,
    seed: u64,
}

/// The random order of blocks. (It is the same for all I/Os, so the processor predicts which one it is.)
#[derive(Clone, Debug)]
enum Order {
    Permutation(Permutation),
    Lfsr(Lfsr),
}

/// Offsets at random, all equally likely.
#[derive(Clone, Debug)]
pub struct Uniform {
    rng: Rng,
    slots: u64,
    align: u64,
    size: u64,
    seed: u64,
}

/// Offsets at random, some more likely than others.
#[derive(Clone, Debug)]
pub struct Chosen {
    choosers: [Option<Chooser>; 3],
    rng: Rng,
    align: u64,
    size: u64,
    seed: u64,
}

/// Several block sizes; each byte is visited once as long as that is possible.
#[derive(Clone, Debug)]
pub struct Mapped {
    unvisited: Unvisited,
    sizes: Sizes,
    offsets: Rng,
    lengths: Rng,
    seed: u64,
}

impl Offsets for Sequential {
    #[inline(always)]
    fn next(&mut self, direction: Direction) -> Option<Place> {
        let position = &mut self.positions[direction.index()];
        let offset = *position;
        (offset < self.end).then(|| {
            *position += self.size;
            Place { offset, length: self.size }
        })
    }

    fn wrap(&mut self, direction: Direction) {
        self.positions[direction.index()] = 0;
    }

    fn restart(&mut self) {
        self.positions = [0; 3];
    }

    fn rewind(&mut self) {
        self.restart();
    }
}

impl Offsets for Covering {
    #[inline(always)]
    fn next(&mut self, _: Direction) -> Option<Place> {
        let block = match &mut self.order {
            Order::Permutation(order) => order.next(),
            Order::Lfsr(order) => order.next(),
        };
        block.map(|block| Place { offset: block * self.size, length: self.size })
    }

    fn wrap(&mut self, _: Direction) {
        self.restart();
    }

    fn restart(&mut self) {
        let key = self.keys.next_u64();
        match &mut self.order {
            Order::Permutation(order) => order.rekey(key),
            Order::Lfsr(order) => order.rekey(key),
        }
    }

    fn rewind(&mut self) {
        self.keys = lap_keys(self.seed, 0);
        self.restart();
    }
}

impl Offsets for Uniform {
    #[inline(always)]
    fn next(&mut self, _: Direction) -> Option<Place> {
        Some(Place { offset: self.rng.below(self.slots) * self.align, length: self.size })
    }

    fn wrap(&mut self, _: Direction) {}

    fn restart(&mut self) {}

    fn rewind(&mut self) {
        self.rng = Streams::new(self.seed).offsets;
    }
}

impl Offsets for Chosen {
    #[inline(always)]
    fn next(&mut self, direction: Direction) -> Option<Place> {
        let chooser = self.choosers[direction.index()].as_mut()?;
        Some(Place { offset: chooser.next(&mut self.rng) * self.align, length: self.size })
    }

    fn wrap(&mut self, _: Direction) {}

    fn restart(&mut self) {
        self.choosers.iter_mut().flatten().for_each(Chooser::restart);
    }

    fn rewind(&mut self) {
        self.rng = Streams::new(self.seed).offsets;
        self.restart();
    }
}

impl Offsets for Mapped {
    #[inline(always)]
    fn next(&mut self, _: Direction) -> Option<Place> {
        self.unvisited.next(&self.sizes, &mut self.offsets, &mut self.lengths)
    }

    fn wrap(&mut self, _: Direction) {
        self.restart();
    }

    fn restart(&mut self) {
        self.unvisited.clear();
    }

    fn rewind(&mut self) {
        let streams = Streams::new(self.seed);
        (self.offsets, self.lengths) = (streams.offsets, streams.lengths);
        self.unvisited.clear();
        self.unvisited.rewind();
    }
}

/// A generator for one file.
#[derive(Clone, Debug)]
pub struct Fast<O, D> {
    offsets: O,
    directions: D,
    /// The smallest I/O.
    smallest: u64,
    start: u64,
    bytes: u64,
    /// The pass is over at this number of bytes. It is lowered if the pass ends earlier.
    stop: u64,
    byte_limit: u64,
    laps: bool,
    endless: bool,
}

impl<O: Offsets, D: Directions> Fast<O, D> {
    /// Called when no place is left for a direction: wraps, starts over or ends the pass.
    #[cold]
    #[inline(never)]
    fn exhausted(&mut self, direction: Direction) -> Option<Place> {
        if self.endless {
            self.offsets.wrap(direction);
        } else if !self.laps || self.byte_limit - self.bytes < self.smallest {
            self.stop = self.bytes;
            return None;
        } else {
            self.offsets.restart();
        }
        self.offsets.next(direction)
    }

    fn reset_pass(&mut self) {
        self.bytes = 0;
        self.stop = self.byte_limit;
    }
}

impl<O: Offsets, D: Directions> Generator for Fast<O, D> {
    #[inline(always)]
    fn next(&mut self) -> Next {
        if self.bytes >= self.stop {
            return Next::Done;
        }
        let direction = self.directions.next();
        let place = match self.offsets.next(direction) {
            Some(place) => place,
            None => match self.exhausted(direction) {
                Some(place) => place,
                None => return Next::Done,
            },
        };
        self.bytes += place.length;
        Next::Io(Io { offset: self.start + place.offset, length: place.length, file: 0, direction })
    }

    fn restart(&mut self) {
        self.reset_pass();
        self.offsets.restart();
    }

    fn rewind(&mut self) {
        self.reset_pass();
        self.offsets.rewind();
        self.directions.rewind();
    }
}

/// The fast generators, one variant per combination. They are boxed because a worker passes its generator through
/// several calls, and each of them would touch more of the thread's stack.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FastGenerator {
    Sequential(Box<Fast<Sequential, OneDirection>>),
    Covering(Box<Fast<Covering, OneDirection>>),
    Uniform(Box<Fast<Uniform, OneDirection>>),
    Chosen(Box<Fast<Chosen, OneDirection>>),
    SequentialMix(Box<Fast<Sequential, ReadsAndWrites>>),
    CoveringMix(Box<Fast<Covering, ReadsAndWrites>>),
    UniformMix(Box<Fast<Uniform, ReadsAndWrites>>),
    ChosenMix(Box<Fast<Chosen, ReadsAndWrites>>),
    Mapped(Box<Fast<Mapped, OneDirection>>),
}

/// The fast generator of `spec`, if it is one of the common workloads.
pub fn fast(spec: &Spec) -> Option<FastGenerator> {
    let [region] = spec.files[..] else { return None };
    let sizes = common_sizes(spec)?;
    if spec.announce_laps && has_laps(spec) {
        return None;
    }
    if sizes.max() > region.length || spec.ios_per_random > 1 || spec.zones.is_some() {
        return None;
    }
    let single = match spec.mix {
        Mix::Single(direction) => Some(OneDirection(direction)),
        Mix::ReadWrite(_) => None,
        Mix::ReadWriteTrim(..) | Mix::TrimWrite => return None,
    };
    let strategy = Strategy::of(spec);
    let Some(size) = sizes.fixed() else {
        return mapped(spec, strategy, sizes, single?);
    };
    let parts = Parts::new(spec, size, byte_limit(spec).min(io_limit(spec).saturating_mul(size)));
    let mix = |percent| ReadsAndWrites { rng: Streams::new(spec.seed).mix, percent, seed: spec.seed };
    let percent = if let Mix::ReadWrite(percent) = spec.mix { percent } else { 100 };
    match strategy {
        Strategy::Sequential if spec.sequential_skip == 0 => {
            let offsets = Sequential { positions: [0; 3], size, end: region.length / size * size };
            Some(match single {
                Some(one) => FastGenerator::Sequential(parts.with(offsets, one)),
                None => FastGenerator::SequentialMix(parts.with(offsets, mix(percent))),
            })
        }
        Strategy::Permutation(_) | Strategy::Lfsr(_) => {
            let mut keys = lap_keys(spec.seed, 0);
            let (blocks, key) = (region.length / size, keys.next_u64());
            let order = match strategy {
                Strategy::Lfsr(_) => Order::Lfsr(Lfsr::new(blocks, key)),
                _ => Order::Permutation(Permutation::new(blocks, key)),
            };
            let offsets = Covering { order, keys, size, seed: spec.seed };
            Some(match single {
                Some(one) => FastGenerator::Covering(parts.with(offsets, one)),
                None => FastGenerator::CoveringMix(parts.with(offsets, mix(percent))),
            })
        }
        Strategy::Uniform => {
            let align = only_align(spec)?;
            let slots = (region.length - size) / align + 1;
            let rng = Streams::new(spec.seed).offsets;
            let offsets = Uniform { rng, slots, align, size, seed: spec.seed };
            Some(match single {
                Some(one) => FastGenerator::Uniform(parts.with(offsets, one)),
                None => FastGenerator::UniformMix(parts.with(offsets, mix(percent))),
            })
        }
        Strategy::Chosen => {
            let align = only_align(spec)?;
            let choosers = choosers(spec, region.length, 0, &mut Tables::default());
            if directions(spec).iter().any(|direction| choosers[direction.index()].is_none()) {
                return None;
            }
            let rng = Streams::new(spec.seed).offsets;
            let offsets = Chosen { choosers, rng, align, size, seed: spec.seed };
            Some(match single {
                Some(one) => FastGenerator::Chosen(parts.with(offsets, one)),
                None => FastGenerator::ChosenMix(parts.with(offsets, mix(percent))),
            })
        }
        _ => None,
    }
}

/// The generator for several block sizes where each byte is visited once. If there is no memory for the map,
/// [`General`](crate::General) decides what to do.
fn mapped(spec: &Spec, strategy: Strategy, sizes: Sizes, direction: OneDirection) -> Option<FastGenerator> {
    // A fast generator counts only bytes, so with several sizes it cannot stop after a number of I/Os.
    let (Strategy::Bitmap(block), u64::MAX) = (strategy, io_limit(spec)) else { return None };
    let unvisited = unvisited(spec, spec.files[0].length, block).ok()?;
    let Streams { offsets, lengths, .. } = Streams::new(spec.seed);
    let parts = Parts::new(spec, sizes.min(), byte_limit(spec));
    let offsets = Mapped { unvisited, sizes, offsets, lengths, seed: spec.seed };
    Some(FastGenerator::Mapped(parts.with(offsets, direction)))
}

/// The fields that all fast generators have.
struct Parts {
    smallest: u64,
    start: u64,
    byte_limit: u64,
    laps: bool,
    endless: bool,
}

impl Parts {
    fn new(spec: &Spec, smallest: u64, byte_limit: u64) -> Parts {
        let start = spec.files[0].offset;
        Parts { smallest, start, byte_limit, laps: has_laps(spec), endless: spec.endless }
    }

    fn with<O, D>(self, offsets: O, directions: D) -> Box<Fast<O, D>> {
        let Parts { smallest, start, byte_limit, laps, endless } = self;
        let stop = byte_limit;
        Box::new(Fast { offsets, directions, smallest, start, bytes: 0, stop, byte_limit, laps, endless })
    }
}

/// The sizes of all I/Os, if the I/Os are all random or all sequential and all directions have the same sizes.
fn common_sizes(spec: &Spec) -> Option<Sizes> {
    let mut common = None;
    for &direction in directions(spec) {
        let this = match spec.random_percent[direction] {
            0 => (false, Sizes::new(sequential_size(spec, direction), spec.unaligned)),
            100.. => (true, Sizes::new(random_size(spec, direction), spec.unaligned)),
            _ => return None,
        };
        if *common.get_or_insert_with(|| this.clone()) != this {
            return None;
        }
    }
    common.map(|(_, sizes)| sizes)
}

/// The alignment of random offsets, if all directions have the same.
fn only_align(spec: &Spec) -> Option<u64> {
    let mut aligns = directions(spec).iter().map(|&direction| spec.align[direction].max(1));
    let first = aligns.next()?;
    aligns.all(|align| align == first).then_some(first)
}
