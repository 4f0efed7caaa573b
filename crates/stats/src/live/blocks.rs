//! The state of the blocks of a job's files, in shared memory: the number of blocks in each state, and the number of
//! trims that blocks survived before they failed.

use super::{LiveLatency, Word};
use crate::report::{BlockReport, BlockState};

/// Counts of blocks.
#[derive(Debug)]
#[repr(C)]
pub struct LiveBlocks {
    /// In the order of [`BlockState::ALL`].
    states: [Word; BlockState::ALL.len()],
    lifetimes: LiveLatency,
}

impl LiveBlocks {
    /// Sets the number of blocks, all of them unwritten.
    pub fn prepare(&self, blocks: u64) {
        self.states[BlockState::Unwritten as usize].set(blocks);
    }

    /// Moves a block from one state to another.
    pub fn change(&self, from: BlockState, to: BlockState) {
        let from = &self.states[from as usize];
        from.set(from.get().saturating_sub(1));
        self.states[to as usize].add(1);
    }

    /// Counts a block that failed after this number of trims.
    pub fn failed(&self, trims: u64) {
        self.lifetimes.record_bucket(trims);
    }

    /// Reads the current state.
    pub fn read(&self) -> BlockReport {
        let lifetimes = self.lifetimes.read().histogram;
        BlockReport { states: std::array::from_fn(|state| self.states[state].get()), lifetimes }
    }
}
