//! Random offsets that are not all equally likely (`random_distribution`), and the laws they follow.
//!
//! A *slot* is one of the `n` aligned offsets at which an I/O can begin. A skewed law speaks of *ranks*: it says which
//! share of the accesses the most popular slot gets, the second most popular, and so on.
//!
//! | value | law of the rank | source |
//! |---|---|---|
//! | `zipf:θ` | rank i = 1 … n has a share in proportion to 1 / i^θ | Gray et al., below |
//! | `pareto:h` | the first x of the ranks get x^k, k = ln(1 - h) / ln h, so with h = 0.2 a fifth of them gets 80% | the "self-similar" law of Gray et al. |
//! | `normal:d` | a bell around the middle rank, see `law` | measured, below |
//! | `zoned`, `zoned_abs` | zones have shares; all slots of a zone are equally likely | `zones` |
//! | `sequence` | no randomness: a list of blocks, over and over | `sequence` |
//!
//! Jim Gray, Prakash Sundaresan, Susanne Englert, Ken Baclawski, Peter Weinberger: "Quickly generating billion-record
//! synthetic databases", SIGMOD 1994. The zipf generator of that paper approximates all ranks beyond the second (the
//! third comes 15% too often for θ = 1.2) and cannot do θ = 1. The generator here (`skew`) follows the law itself, in
//! the same time for every rank and any n.
//!
//! These rules were observed in fio's I/O logs and hold here as well. A distribution other than `random` turns coverage
//! off, so any block may come again. Neighbouring ranks are not neighbours on the device, but spread over it
//! (`spread`). `centre` is the place of the most popular rank, from 0 (the start of the region) to 1 (its end); without
//! it, the place is drawn from the seed, or is the middle for `normal`. Reads, writes and trims have the same hot
//! places. `randread:N` and `percentage_random` work as with the even distribution.

mod alias;
mod law;
mod sequence;
mod skew;
mod spread;
mod zones;

pub use law::Curve;
pub use skew::Skewed;

use crate::{Distribution, Skew, Spec, rng::Rng, rng::SplitMix64, rng::scale};
use iolite_types::Direction;
use sequence::Sequence;
use spread::Spread;
use std::{collections::HashMap, sync::Arc};
use zones::Zones;

/// The tables of the law in use, one for each number of slots: files of the same size share a table.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    known: HashMap<u64, Arc<Skewed>>,
}

impl Tables {
    fn get(&mut self, law: crate::Law, slots: u64) -> Arc<Skewed> {
        Arc::clone(self.known.entry(slots).or_insert_with(|| Arc::new(Skewed::new(law, slots))))
    }
}

/// Picks slots for one direction in one region.
#[derive(Clone, Debug)]
pub(crate) enum Chooser {
    Skewed { table: Arc<Skewed>, spread: Spread },
    Zones(Zones),
    Sequence(Sequence),
}

impl Chooser {
    /// The chooser for the `slots` slots of the `file`th file, which are `align` bytes apart. `None` if all slots are
    /// equally likely, or there are no slots.
    pub(crate) fn new(
        spec: &Spec,
        direction: Direction,
        slots: u64,
        align: u64,
        file: usize,
        tables: &mut Tables,
    ) -> Option<Chooser> {
        if slots == 0 {
            return None;
        }
        match &spec.distribution {
            Distribution::Even => None,
            Distribution::Skewed(skew) => {
                let table = tables.get(skew.law, slots);
                let place = hottest(skew, slots, spec.seed, file);
                Some(Chooser::Skewed { spread: Spread::new(slots, table.favourite(), place), table })
            }
            Distribution::Zones(zones) => Zones::new(&zones[direction], slots, align).map(Chooser::Zones),
            Distribution::Sequence { blocks, stride } => {
                Sequence::new(blocks, *stride, slots).map(Chooser::Sequence)
            }
        }
    }

    /// The next slot.
    #[inline(always)]
    pub(crate) fn next(&mut self, rng: &mut Rng) -> u64 {
        match self {
            Chooser::Skewed { table, spread } => spread.place(table.draw(rng)),
            Chooser::Zones(zones) => zones.draw(rng),
            Chooser::Sequence(sequence) => sequence.next(),
        }
    }

    /// Starts over. Only a sequence has a state.
    pub(crate) fn restart(&mut self) {
        if let Chooser::Sequence(sequence) = self {
            sequence.restart();
        }
    }
}

/// The slot of the most popular rank.
pub(crate) fn hottest(skew: &Skew, slots: u64, seed: u64, file: usize) -> u64 {
    match skew.centre {
        Some(centre) => ((centre * slots as f64) as u64).min(slots - 1),
        None if matches!(skew.law, crate::Law::Normal(_)) => slots / 2,
        None => scale(SplitMix64::stream(seed, (1 << 40) + file as u64).next_u64(), slots),
    }
}
