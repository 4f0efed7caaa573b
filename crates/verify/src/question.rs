//! The expected content of a block that was read.

use crate::state::Accepted;
use iolite_workload::rng::SplitMix64;

/// The expectation for a block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Any data of a job like this one.
    Anything,
    /// The write of this number, or one by another job that writes to the same place.
    Write(u64),
    /// The same for a write of an earlier run, asked before it is known whose writes these are. It is asked again if
    /// the answer proves too lenient.
    Doubted(u64),
    /// The write of this number, or a later one of this run: other blocks of an earlier run prove that it was issued.
    Rewritten {
        /// The number.
        number: u64,
        /// When those other blocks were written. (A block written after that belongs to another run.)
        before: (u32, u32),
    },
    /// One of the writes that a saved state allows.
    Saved(SavedWrites),
    /// Zeros: the block was trimmed.
    Zeros,
}

/// The information of a saved state about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedWrites {
    /// The writes that are valid.
    pub accepted: Accepted,
    /// How many writes had been issued when the state was left. The state does not know later writes, which are valid.
    pub issued: u64,
    /// How many writes a pass of that run has; 0 = that is not known.
    pub per_pass: u64,
    /// A write that was in flight may end at any byte, not only at a sector.
    pub is_copied: bool,
}

/// A block that was read, and its expected content.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The index of the file that it was read from.
    pub file: u32,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// The expected content.
    pub expect: Expect,
    /// No other job has written there since.
    pub is_own: bool,
}

/// The seed of the content of a write, by its number, of the job with this seed.
pub(crate) fn seed_of(job: u64, number: u64) -> u64 {
    SplitMix64::stream(job, number).next_u64()
}
