//! What became of the blocks of a job's files, in shared memory: how many are in each state, and how many trims those
//! have lived through that failed.

use super::{LiveLatency, Word};
use crate::{BlockReport, BlockState};

/// Counts of blocks.
#[derive(Debug)]
#[repr(C)]
pub struct LiveBlocks {
    /// In the order of [`BlockState::ALL`].
    states: [Word; BlockState::ALL.len()],
    lifetimes: LiveLatency,
}

impl LiveBlocks {
    /// There are so many blocks, and nothing was done to any of them.
    pub fn prepare(&self, blocks: u64) {
        self.states[BlockState::Unwritten as usize].set(blocks);
    }

    /// A block goes from one state into another.
    pub fn change(&self, from: BlockState, to: BlockState) {
        let from = &self.states[from as usize];
        from.set(from.get().saturating_sub(1));
        self.states[to as usize].add(1);
    }

    /// A block failed after so many trims.
    pub fn failed(&self, trims: u64) {
        self.lifetimes.record_bucket(trims);
    }

    /// What there is.
    pub fn read(&self) -> BlockReport {
        let lifetimes = self.lifetimes.read().histogram;
        BlockReport { states: std::array::from_fn(|state| self.states[state].get()), lifetimes }
    }
}
