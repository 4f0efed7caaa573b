//! The generators for the workloads that most people run: one file, one block size, one direction or a mix of
//! reads and writes, all random or all sequential.
//!
//! Each combination is a type of its own, for an I/O loop that is compiled for it: what the workload does not
//! do costs nothing. They issue exactly what [`General`](crate::General) issues for the same spec.

use crate::{
    Generator, Io, Mix, Next, Spec,
    coverage::{Strategy, choosers, directions, lap_keys, random_size, sequential_size},
    general::{Streams, byte_limit, draw_mix, has_laps, io_limit},
    offset::{Chooser, Tables},
    permutation::Permutation,
    rng::{Rng, SplitMix64},
    sizes::Sizes,
};
use iolite_types::Direction;

/// Which direction the next I/O has.
pub trait Directions {
    /// The next one.
    fn next(&mut self) -> Direction;
    /// Back to the first.
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

/// Which offset the next I/O has.
pub trait Offsets {
    /// The next one, relative to the region; `None` when there is none any more.
    fn next(&mut self, direction: Direction) -> Option<u64>;
    /// Goes on where a direction has no offset any more and the workload has no end.
    fn wrap(&mut self, direction: Direction);
    /// Starts over for all directions.
    fn restart(&mut self);
    /// Back to the first lap.
    fn rewind(&mut self);
}

/// One after the other.
#[derive(Clone, Debug)]
pub struct Sequential {
    positions: [u64; 3],
    size: u64,
    end: u64,
}

/// Each block once, in random order.
#[derive(Clone, Debug)]
pub struct Covering {
    order: Permutation,
    keys: SplitMix64,
    size: u64,
    seed: u64,
}

/// At random.
#[derive(Clone, Debug)]
pub struct Uniform {
    rng: Rng,
    slots: u64,
    align: u64,
    seed: u64,
}

/// At random, some more often than others.
#[derive(Clone, Debug)]
pub struct Chosen {
    choosers: [Option<Chooser>; 3],
    rng: Rng,
    align: u64,
    seed: u64,
}

impl Offsets for Sequential {
    #[inline(always)]
    fn next(&mut self, direction: Direction) -> Option<u64> {
        let position = &mut self.positions[direction.index()];
        let offset = *position;
        (offset < self.end).then(|| {
            *position += self.size;
            offset
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
    fn next(&mut self, _: Direction) -> Option<u64> {
        self.order.next().map(|block| block * self.size)
    }

    fn wrap(&mut self, _: Direction) {
        self.restart();
    }

    fn restart(&mut self) {
        self.order.rekey(self.keys.next_u64());
    }

    fn rewind(&mut self) {
        self.keys = lap_keys(self.seed, 0);
        self.restart();
    }
}

impl Offsets for Uniform {
    #[inline(always)]
    fn next(&mut self, _: Direction) -> Option<u64> {
        Some(self.rng.below(self.slots) * self.align)
    }

    fn wrap(&mut self, _: Direction) {}

    fn restart(&mut self) {}

    fn rewind(&mut self) {
        self.rng = Streams::new(self.seed).offsets;
    }
}

impl Offsets for Chosen {
    #[inline(always)]
    fn next(&mut self, direction: Direction) -> Option<u64> {
        let chooser = self.choosers[direction.index()].as_mut()?;
        Some(chooser.next(&mut self.rng) * self.align)
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

/// One file and one block size.
#[derive(Clone, Debug)]
pub struct Fast<O, D> {
    offsets: O,
    directions: D,
    size: u64,
    start: u64,
    bytes: u64,
    /// Where the pass ends; lowered when it ends before.
    stop: u64,
    byte_limit: u64,
    laps: bool,
    endless: bool,
}

impl<O: Offsets, D: Directions> Fast<O, D> {
    /// No offset is left for a direction: wraps, starts over or ends the pass.
    #[cold]
    #[inline(never)]
    fn exhausted(&mut self, direction: Direction) -> Option<u64> {
        if self.endless {
            self.offsets.wrap(direction);
        } else if !self.laps || self.byte_limit - self.bytes < self.size {
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
        let offset = match self.offsets.next(direction) {
            Some(offset) => offset,
            None => match self.exhausted(direction) {
                Some(offset) => offset,
                None => return Next::Done,
            },
        };
        self.bytes += self.size;
        Next::Io(Io { offset: self.start + offset, length: self.size, file: 0, direction })
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

/// The fast generators, one variant per combination.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FastGenerator {
    Sequential(Fast<Sequential, OneDirection>),
    Covering(Fast<Covering, OneDirection>),
    Uniform(Fast<Uniform, OneDirection>),
    Chosen(Fast<Chosen, OneDirection>),
    SequentialMix(Fast<Sequential, ReadsAndWrites>),
    CoveringMix(Fast<Covering, ReadsAndWrites>),
    UniformMix(Fast<Uniform, ReadsAndWrites>),
    ChosenMix(Fast<Chosen, ReadsAndWrites>),
}

/// The fast generator of `spec`, when it is one of the common workloads.
pub fn fast(spec: &Spec) -> Option<FastGenerator> {
    let [region] = spec.files[..] else { return None };
    let size = only_size(spec)?;
    if spec.announce_laps && has_laps(spec) {
        return None;
    }
    if size > region.length || spec.ios_per_random > 1 || spec.zones.is_some() {
        return None;
    }
    let byte_limit = byte_limit(spec).min(io_limit(spec).saturating_mul(size));
    let parts = Parts { size, start: region.offset, byte_limit, laps: has_laps(spec), endless: spec.endless };
    let single = match spec.mix {
        Mix::Single(direction) => Some(OneDirection(direction)),
        Mix::ReadWrite(_) => None,
        Mix::TrimWrite => return None,
    };
    let mix = |percent| ReadsAndWrites { rng: Streams::new(spec.seed).mix, percent, seed: spec.seed };
    let percent = if let Mix::ReadWrite(percent) = spec.mix { percent } else { 100 };
    match Strategy::of(spec) {
        Strategy::Sequential if spec.sequential_skip == 0 => {
            let offsets = Sequential { positions: [0; 3], size, end: region.length / size * size };
            Some(match single {
                Some(one) => FastGenerator::Sequential(parts.with(offsets, one)),
                None => FastGenerator::SequentialMix(parts.with(offsets, mix(percent))),
            })
        }
        Strategy::Permutation(block) => {
            let mut keys = lap_keys(spec.seed, 0);
            let order = Permutation::new(region.length / block, keys.next_u64());
            let offsets = Covering { order, keys, size, seed: spec.seed };
            Some(match single {
                Some(one) => FastGenerator::Covering(parts.with(offsets, one)),
                None => FastGenerator::CoveringMix(parts.with(offsets, mix(percent))),
            })
        }
        Strategy::Uniform => {
            let align = only_align(spec)?;
            let slots = (region.length - size) / align + 1;
            let offsets = Uniform { rng: Streams::new(spec.seed).offsets, slots, align, seed: spec.seed };
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
            let offsets = Chosen { choosers, rng: Streams::new(spec.seed).offsets, align, seed: spec.seed };
            Some(match single {
                Some(one) => FastGenerator::Chosen(parts.with(offsets, one)),
                None => FastGenerator::ChosenMix(parts.with(offsets, mix(percent))),
            })
        }
        _ => None,
    }
}

/// What all the fast generators have.
struct Parts {
    size: u64,
    start: u64,
    byte_limit: u64,
    laps: bool,
    endless: bool,
}

impl Parts {
    fn with<O, D>(self, offsets: O, directions: D) -> Fast<O, D> {
        let Parts { size, start, byte_limit, laps, endless } = self;
        Fast { offsets, directions, size, start, bytes: 0, stop: byte_limit, byte_limit, laps, endless }
    }
}

/// The size of all I/Os, when they are all random or all sequential and have the same.
fn only_size(spec: &Spec) -> Option<u64> {
    let mut common = None;
    for &direction in directions(spec) {
        let (random, size) = match spec.random_percent[direction] {
            0 => (false, sequential_size(spec, direction)),
            100.. => (true, random_size(spec, direction)),
            _ => return None,
        };
        let this = (random, Sizes::new(size, spec.unaligned).fixed()?);
        if *common.get_or_insert(this) != this {
            return None;
        }
    }
    common.map(|(_, size)| size)
}

/// The alignment of all random offsets, when it is the same.
fn only_align(spec: &Spec) -> Option<u64> {
    let mut aligns = directions(spec).iter().map(|&direction| spec.align[direction].max(1));
    let first = aligns.next()?;
    aligns.all(|align| align == first).then_some(first)
}
