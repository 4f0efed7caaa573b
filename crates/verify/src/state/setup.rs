//! What is known of a worker before its first write.

use serde::{Deserialize, Serialize};

/// What is known of a worker before its first write: the description at the beginning of a state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The program that writes, with its version.
    pub program: String,
    /// The name of the job.
    pub job: String,
    /// The job's number in headers.
    pub number: u16,
    /// `verify`.
    pub kind: String,
    /// When the job began: seconds since 1970.
    pub began: u64,
    /// The seed from which those of its blocks are derived.
    pub seed: u64,
    /// Bytes of a block: all offsets (within their region) and lengths of writes are multiples of it.
    pub block: u64,
    /// How many writes can be in flight.
    pub depth: u32,
    /// All writes have the same length, and their offsets (within their region) are multiples of it.
    pub is_uniform: bool,
    /// Completed writes are durable without a flush (`sync=1` and the like).
    pub is_durable: bool,
    /// The engine itself copies the data to its place, so a write in flight may end at any byte. (States of earlier
    /// versions do not say so.)
    #[serde(default = "may_be")]
    pub is_copied: bool,
    /// The job flushes, so that the last flushed write of each block is kept as well.
    pub has_flushes: bool,
    /// How its blocks are written. (States of earlier versions do not say so.)
    #[serde(default)]
    pub imprint: Option<StateImprint>,
    /// Where it writes.
    pub files: Vec<StateFile>,
}

fn may_be() -> bool {
    true
}

/// What somebody who checks blocks has to know, besides their type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateImprint {
    /// Bytes of an interval. 0: a block is one interval, as is a block that is no multiple of this.
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
    /// The offset of the region that is written to, in bytes.
    pub offset: u64,
    /// Bytes of the region.
    pub length: u64,
}
