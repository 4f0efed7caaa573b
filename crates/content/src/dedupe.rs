//! Which writes repeat an earlier one.
//!
//! A block is known by a seed: whoever needs its content makes it from that again. So nothing is kept of what was
//! written, a working set of any size costs nothing, and workers in several processes can share one without a lock:
//! its members follow from a seed that all know and from their numbers (`dedupe_global`). Of a set that is shared
//! each worker is the first to write its own part: members `position`, `position + workers`, and so on.
//!
//! Of each hundred writes exactly as many are duplicates as were asked for, at random places (selection sampling,
//! Knuth, The Art of Computer Programming, 3.4.2, algorithm S), so that also a short job has the share it asked for.
//! A member of the working set is repeated only when it has been written; what other workers have written is
//! estimated from the own progress. Where fio lets the share converge, it holds from the beginning.
//!
//! A write larger than the smallest block is a run of blocks. New blocks are numbered in the order in which they are
//! written, and a duplicate repeats a run of numbers, so its blocks are found again whatever the sizes of the writes.

use crate::random::{mix, split_mix};
use serde::{Deserialize, Serialize};

/// How many writes repeat an earlier one, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dedupe {
    /// Percent of the writes that are duplicates, from 0 to 100.
    pub percentage: u32,
    /// The smallest write in bytes, at least 1: what is repeated are multiples of this.
    pub block: usize,
    /// What they repeat; `None` for the last write that was none.
    pub working_set: Option<WorkingSet>,
}

/// The blocks of which duplicates are made: the first that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// How many there are, at least 1.
    pub blocks: u64,
    /// Where several workers have the set in common: their part in it.
    pub share: Option<Share>,
}

/// One worker's part in a working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Seed of the set, the same for all of them.
    pub seed: u64,
    /// Which of the workers this is, from 0.
    pub position: u64,
    /// How many there are.
    pub workers: u64,
}

const HUNDRED: u32 = 100;

/// Tells which blocks to write.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    percentage: u32,
    block: usize,
    /// Of the current hundred: how many writes are left, and how many duplicates among them.
    left: u32,
    wanted: u32,
    /// State of the choices.
    choices: u64,
    /// Seed of the blocks that belong to this worker alone.
    own_seed: u64,
    set: Option<Set>,
    /// How many blocks were written that are no duplicates.
    unique: u64,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    blocks: u64,
    seed: u64,
    position: u64,
    workers: u64,
}

/// The blocks of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// From this one of the worker's own blocks on.
    Own(u64),
    /// From this member of the working set on; behind the last comes the first.
    Members(u64),
}

impl Duplicates {
    pub(crate) fn new(dedupe: Dedupe, seed: u64) -> Self {
        let mut sequence = seed;
        let choices = split_mix(&mut sequence);
        let own_seed = split_mix(&mut sequence);
        let set_seed = split_mix(&mut sequence);
        let set = dedupe.working_set.map(|set| {
            let share = set.share.unwrap_or(Share { seed: set_seed, position: 0, workers: 1 });
            Set {
                blocks: set.blocks.max(1),
                // Mixed, so that it is not the seed of anything else that its worker makes.
                seed: mix(!share.seed),
                position: share.position,
                workers: share.workers.max(1),
            }
        });
        Duplicates {
            percentage: dedupe.percentage.min(HUNDRED),
            block: dedupe.block.max(1),
            left: 0,
            wanted: 0,
            choices,
            own_seed,
            set,
            unique: 0,
        }
    }

    /// Bytes of a block.
    #[inline]
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// What to write next, `length` bytes of it.
    #[inline]
    pub(crate) fn next_run(&mut self, length: usize) -> Run {
        let blocks = length.div_ceil(self.block) as u64;
        if self.left == 0 {
            (self.left, self.wanted) = (HUNDRED, self.percentage);
        }
        // Before enough was written there is nothing to repeat.
        let repeat = self.unique >= blocks && self.below(self.left.into()) < self.wanted.into();
        self.left -= 1;
        if repeat {
            self.wanted -= 1;
            return match self.set {
                None => Run::Own(self.unique - blocks),
                Some(set) => Run::Members(self.below(set.written(self.unique))),
            };
        }
        self.wanted = self.wanted.min(self.left);
        self.unique += blocks;
        Run::Own(self.unique - blocks)
    }

    /// The seed of the `number`th block of a run.
    #[inline]
    pub(crate) fn seed(&self, run: Run, number: u64) -> u64 {
        match (run, &self.set) {
            (Run::Members(first), Some(set)) => set.member((first + number) % set.written(self.unique)),
            (Run::Members(first) | Run::Own(first), set) => {
                let block = first + number;
                let member =
                    set.as_ref().and_then(|set| set.own_member(block).map(|member| set.member(member)));
                member.unwrap_or_else(|| mix(self.own_seed.wrapping_add(block)))
            }
        }
    }

    /// A random number below `limit`, by the high half of a product.
    #[inline]
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(split_mix(&mut self.choices)) * u128::from(limit)) >> 64) as u64
    }
}

impl Set {
    #[inline]
    fn member(&self, number: u64) -> u64 {
        mix(self.seed.wrapping_add(number))
    }

    /// Which member the worker's own block of this number is, if it is one.
    #[inline]
    fn own_member(&self, block: u64) -> Option<u64> {
        let member = block.checked_mul(self.workers)?.checked_add(self.position)?;
        (member < self.blocks).then_some(member)
    }

    /// How many of the members have been written when this worker has written so many blocks: at least one.
    #[inline]
    fn written(&self, own: u64) -> u64 {
        let share = self.blocks.saturating_sub(self.position).div_ceil(self.workers);
        if own < share { (own * self.workers).max(1) } else { self.blocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn seeds(dedupe: Dedupe, seed: u64, count: usize) -> Vec<u64> {
        let mut duplicates = Duplicates::new(dedupe, seed);
        let mut next = || {
            let run = duplicates.next_run(BLOCK);
            duplicates.seed(run, 0)
        };
        (0..count).map(|_| next()).collect()
    }

    const BLOCK: usize = 4096;

    fn repeat(percentage: u32) -> Dedupe {
        Dedupe { percentage, block: BLOCK, working_set: None }
    }

    fn working_set(percentage: u32, blocks: u64, share: Option<Share>) -> Dedupe {
        Dedupe { percentage, block: BLOCK, working_set: Some(WorkingSet { blocks, share }) }
    }

    fn duplicates(seeds: &[u64]) -> usize {
        seeds.len() - seeds.iter().collect::<HashSet<_>>().len()
    }

    #[test]
    fn the_share_is_exact_in_each_hundred() {
        for percentage in 0..=100 {
            for dedupe in [repeat(percentage), working_set(percentage, 10, None)] {
                let all = seeds(dedupe, 3, 1000);
                let expected = (percentage * 10).min(999) as usize;
                assert_eq!(duplicates(&all), expected, "{dedupe:?}");
            }
        }
    }

    #[test]
    fn a_repetition_is_of_the_write_before() {
        let all = seeds(repeat(60), 1, 5000);
        let mut last = HashMap::new();
        for (place, seed) in all.iter().enumerate() {
            if let Some(before) = last.insert(seed, place) {
                assert_eq!(before + 1, place);
            }
        }
    }

    #[test]
    fn duplicates_of_a_working_set_are_its_first_blocks_evenly() {
        let all = seeds(working_set(50, 20, None), 1, 20_000);
        let mut counts = HashMap::new();
        all.iter().for_each(|seed| *counts.entry(seed).or_insert(0) += 1);
        let members: HashSet<_> = counts.iter().filter(|(_, n)| **n > 1).map(|(seed, _)| **seed).collect();
        assert_eq!(members.len(), 20);
        let mut unique = Vec::new();
        all.iter().for_each(|seed| {
            if !unique.contains(seed) && unique.len() < 20 {
                unique.push(*seed)
            }
        });
        assert_eq!(unique.into_iter().collect::<HashSet<_>>(), members);
        // Each of 20 gets a twentieth of 10000: 500, with a standard deviation of 22.
        assert!(counts.values().filter(|n| **n > 1).all(|n| (380..=640).contains(n)), "{counts:?}");
    }

    #[test]
    fn a_shared_set_is_written_once_and_repeated_by_all() {
        let (workers, blocks) = (4, 102);
        let each: Vec<Vec<u64>> = (0..workers)
            .map(|position| {
                let share = Share { seed: 5, position, workers };
                seeds(working_set(50, blocks, Some(share)), 100 + position, 4000)
            })
            .collect();
        let together = each.concat();
        assert_eq!(duplicates(&together), together.len() / 2);
        let common = each.iter().map(|seeds| seeds.iter().copied().collect::<HashSet<_>>());
        let common = common.reduce(|a, b| &a & &b).unwrap();
        assert_eq!(common.len() as u64, blocks);
    }

    /// One to four blocks a write: as many blocks are found again as were asked for, within what the sizes vary.
    #[test]
    fn writes_of_several_sizes() {
        for dedupe in [repeat(50), working_set(50, 100, None)] {
            let mut duplicates = Duplicates::new(dedupe, 1);
            let mut all = Vec::new();
            for write in 0..20_000 {
                let blocks = 1 + write * 7 % 4;
                let run = duplicates.next_run(blocks * BLOCK - 100);
                all.extend((0..blocks as u64).map(|block| duplicates.seed(run, block)));
            }
            let share = super::tests::duplicates(&all) as f64 / all.len() as f64;
            assert!((0.49..0.51).contains(&share), "{share}");
        }
    }

    #[test]
    fn more_workers_than_blocks() {
        let all: Vec<u64> = (0..10)
            .flat_map(|position| {
                let share = Share { seed: 5, position, workers: 10 };
                seeds(working_set(50, 3, Some(share)), position, 1000)
            })
            .collect();
        assert_eq!(duplicates(&all), 5000);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn the_share_is_kept_at_any_time(percentage in 0u32..=100, seed: u64, count in 1usize..2000, blocks in 1u64..50) {
            for dedupe in [repeat(percentage), working_set(percentage, blocks, None)] {
                let asked = count as f64 * f64::from(percentage) / 100.0;
                let got = duplicates(&seeds(dedupe, seed, count)) as f64;
                // Whole hundreds are exact; within one the difference is at most p(1 - p) of it.
                prop_assert!((got - asked).abs() <= 26.0, "{got} {asked}");
            }
        }
    }
}
