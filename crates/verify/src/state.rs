//! What a worker has written, kept so that it can be checked after the worker was killed.
//!
//! A [`Recorder`] writes into a file that is mapped into memory: what it has stored is in the file, whatever ends
//! the process at whatever instruction. [`Saved`] reads such a file and tells for each block what has to be there.
//!
//! The file is a description in JSON ([`Setup`]) and, behind it, words that change while the worker runs
//! (`state/layout.rs` has the places):
//!
//! - how many writes were issued and acknowledged;
//! - the writes in flight, one place for each unit of the depth: filled in before a write is issued, and emptied
//!   after it was acknowledged *and* entered into the table;
//! - for each file, which of the writes a flush has covered;
//! - a table of the last acknowledged write of each block, and, where there are flushes, a second one of the last
//!   write before it that a flush had covered.
//!
//! So a kill between any two instructions leaves one of three things of a write: nothing, for it was not issued;
//! a write in flight, which may have reached the file or not; or one that was acknowledged. A block in a table
//! takes four bytes: 30 bits of the number of the write, and whether it is the first or the last block of that
//! write, so that a write of which a part was overwritten is recognised, and not insisted upon.
//!
//! A flush covers the writes that had been acknowledged when it was issued. A write that is overwritten while the
//! flush is under way, and whose flush nobody had noted yet, may be forgotten: then the one before it is still a
//! good answer. Nothing is ever demanded that storage has not promised.
//!
//! Writes in flight do not overlap; that is for the caller to see to.

mod layout;
mod mapping;
mod recorder;
mod saved;

pub use layout::Covered;
pub use recorder::Recorder;
pub use saved::{Accepted, Demand, InFlight, Policy, Saved, SavedFile, StateError, Summary};

use serde::{Deserialize, Serialize};

/// What is known before the first write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The program that writes, with its version.
    pub program: String,
    /// Name of the job.
    pub job: String,
    /// The job's number in headers.
    pub number: u16,
    /// `verify`.
    pub kind: String,
    /// When it began: seconds since 1970.
    pub began: u64,
    /// From which the seeds of its blocks come.
    pub seed: u64,
    /// What all offsets (within their region) and lengths of writes are multiples of.
    pub block: u64,
    /// How many writes can be in flight.
    pub depth: u32,
    /// All writes have the same length, and their offsets (within their region) are multiples of it.
    pub is_uniform: bool,
    /// Completed writes are durable without a flush (`sync=1` and its like).
    pub is_durable: bool,
    /// The engine copies the data into its place itself, so a write in flight may end at any byte. (States of earlier
    /// versions do not tell.)
    #[serde(default = "may_be")]
    pub is_copied: bool,
    /// The job flushes, so that it makes a difference.
    pub has_flushes: bool,
    /// What its blocks are like. (States of earlier versions do not tell.)
    #[serde(default)]
    pub imprint: Option<StateImprint>,
    /// Where it writes.
    pub files: Vec<StateFile>,
}

fn may_be() -> bool {
    true
}

/// What blocks are like, beside their type: who checks them has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateImprint {
    /// Bytes of an interval; 0, and where a block is no multiple of it: all of the block.
    pub interval: u64,
    /// `verify_offset`.
    pub offset: u64,
    /// `verify_pattern` in words; empty without one.
    pub pattern: String,
    /// `verify_pattern_interval`.
    pub pattern_interval: u64,
}

/// A file that is written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFile {
    /// Its name.
    pub name: String,
    /// Where the region begins that is written to.
    pub offset: u64,
    /// Bytes of the region.
    pub length: u64,
}

/// Entries of the tables: the number of a write, and its first and last block.
mod entry {
    pub const FIRST: u32 = 1 << 31;
    pub const LAST: u32 = 1 << 30;
    pub const NUMBER: u32 = LAST - 1;
    /// Numbers are kept modulo this, plus one: none is 0, which stands for a block of which nothing is known.
    pub const CYCLE: u64 = NUMBER as u64;

    /// What stands for a write, without its ends.
    pub fn of(number: u64) -> u32 {
        (number % CYCLE) as u32 + 1
    }
}

#[cfg(test)]
mod tests;
