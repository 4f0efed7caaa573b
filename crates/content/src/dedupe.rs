//! Decides which writes repeat an earlier one.
//!
//! The content of a block is generated from a seed, so a block can be repeated from its seed alone. Nothing of the
//! written data is stored, a working set of any size costs no memory, and workers in several processes can share a set
//! without a lock: its members follow from a common seed and their numbers (`dedupe_global`). In a shared set, each
//! worker writes its own part first: members `position`, `position + workers`, and so on.
//!
//! In each hundred writes, exactly `percentage` are duplicates, at random positions (selection sampling: Knuth, The Art
//! of Computer Programming, 3.4.2, algorithm S). So even a short job has the right share, whereas the share of fio only
//! converges. A member of the working set is repeated only after it has been written; a worker estimates the progress
//! of the other workers from its own.
//!
//! A write that is larger than the smallest block is a run of blocks. New blocks are numbered in the order of their
//! writes, and a duplicate repeats a run of numbers, so its blocks are duplicates whatever the sizes of the writes are.

use crate::random::{mix, split_mix};
use serde::{Deserialize, Serialize};

/// The share of writes that repeat an earlier one, and the block that they repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dedupe {
    /// Percent of the writes that are duplicates, from 0 to 100.
    pub percentage: u32,
    /// Size of a block in bytes, at least 1: the size of the smallest write. Duplicates consist of whole blocks.
    pub block: usize,
    /// The blocks that duplicates repeat; `None` = the last write that was not a duplicate.
    pub working_set: Option<WorkingSet>,
}

/// The blocks that duplicates repeat: the first ones that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// The number of blocks, at least 1.
    pub blocks: u64,
    /// If several workers share the set: this worker's part.
    pub share: Option<Share>,
}

/// One worker's part in a working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Seed of the set, the same for all workers.
    pub seed: u64,
    /// The number of this worker, from 0.
    pub position: u64,
    /// The number of workers.
    pub workers: u64,
}

const HUNDRED: u32 = 100;

/// Chooses the blocks to write.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    percentage: u32,
    block: usize,
    /// The writes that are left of the current hundred, and the duplicates that are still wanted among them.
    left: u32,
    wanted: u32,
    /// State of the random choices.
    choices: u64,
    /// Seed of the blocks that belong to this worker alone.
    own_seed: u64,
    set: Option<Set>,
    /// The number of blocks written that are not duplicates.
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
    /// The worker's own blocks, from this number on.
    Own(u64),
    /// Members of the working set, from this number on; the last is followed by the first.
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
                // Mixed, so that it differs from all other seeds of the worker.
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

    /// Size of a block in bytes.
    #[inline]
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// The blocks of the next write, which is `length` bytes long.
    #[inline]
    pub(crate) fn next_run(&mut self, length: usize) -> Run {
        let blocks = length.div_ceil(self.block) as u64;
        if self.left == 0 {
            (self.left, self.wanted) = (HUNDRED, self.percentage);
        }
        // Until this many blocks have been written, no block can be repeated.
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

    /// A random number below `limit`: the high half of a product.
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

    /// The member number of one of the worker's own blocks, if it is a member.
    #[inline]
    fn own_member(&self, block: u64) -> Option<u64> {
        let member = block.checked_mul(self.workers)?.checked_add(self.position)?;
        (member < self.blocks).then_some(member)
    }

    /// The number of members that have been written when this worker has written `own` blocks (estimated, at least 1).
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
        // Each of the 20 members gets a twentieth of 10000 writes: 500, with a standard deviation of 22.
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

    /// With one to four blocks per write, the share of duplicate blocks is the wanted one, within the variation of
    /// sizes.
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
                // Whole hundreds are exact; within a hundred, the difference is at most p(1 - p) of it.
                prop_assert!((got - asked).abs() <= 26.0, "{got} {asked}");
            }
        }
    }
}
