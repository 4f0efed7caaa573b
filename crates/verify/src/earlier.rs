//! Writes of an earlier run, and the evidence for their origin.
//!
//! A job that verifies the writes of an earlier run goes through the same workload and computes what the earlier run
//! wrote. But the seeds of a job depend on its place in the job file, so a run of another selection of sections had
//! other seeds. Until a block with a seed of this job has been seen, blocks with other seeds may be right as well.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// How far an earlier run agrees with this job, whatever its seed was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alike {
    /// Each write, and its place.
    Writes,
    /// The same, except for the number of writes.
    Beginning,
    /// The set of blocks that are written, in any order.
    Places,
    /// No agreement.
    Nothing,
}

/// The known facts about the earlier run. All threads that check share the sightings.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub(crate) alike: Alike,
    seen: Arc<Sightings>,
}

#[derive(Debug, Default)]
struct Sightings {
    /// A block with a seed of this job was seen: then all blocks must have one.
    own: AtomicBool,
    /// The number, plus 1, of a job with a block that was right except for the seed. That job may have another place in
    /// the job file.
    stranger: AtomicU32,
    /// The number, plus 1, of a job with a wrong block whose seed is not this job's.
    foreign: AtomicU32,
    /// The writes before this one are checked again, for mismatches that were withheld while their owner was not known.
    /// 0 = none.
    again: AtomicU64,
}

impl Earlier {
    /// No block has been seen yet. `is_own`: the seeds are known to be those of this job.
    pub(crate) fn new(alike: Alike, is_own: bool) -> Earlier {
        let seen = Sightings { own: is_own.into(), ..Sightings::default() };
        Earlier { alike, seen: Arc::new(seen) }
    }

    /// Whether the order of the writes does not depend on the seed.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self.alike, Alike::Writes | Alike::Beginning)
    }

    /// A block with a seed of this job was seen.
    pub(crate) fn note_own(&self) {
        self.seen.own.store(true, Relaxed);
    }

    /// Whether such a block was seen.
    pub(crate) fn is_own(&self) -> bool {
        self.seen.own.load(Relaxed)
    }

    /// A block of this job was right except for its seed.
    pub(crate) fn note_stranger(&self, job: u16) {
        self.seen.stranger.store(u32::from(job) + 1, Relaxed);
    }

    /// The number of such a job.
    pub(crate) fn stranger(&self) -> Option<u16> {
        number(&self.seen.stranger)
    }

    /// A block of this job, with another seed, was wrong.
    pub(crate) fn note_foreign(&self, job: u16) {
        self.seen.foreign.store(u32::from(job) + 1, Relaxed);
    }

    /// The number of such a job.
    pub(crate) fn foreign(&self) -> Option<u16> {
        number(&self.seen.foreign)
    }

    /// The writes before `end` are checked again. Whether this is the first time.
    pub(crate) fn check_again(&self, end: u64) -> bool {
        self.seen.again.swap(end, Relaxed) == 0
    }

    /// Whether this write is checked again.
    pub(crate) fn is_checked_again(&self, write: u64) -> bool {
        write < self.seen.again.load(Relaxed)
    }
}

fn number(stored: &AtomicU32) -> Option<u16> {
    stored.load(Relaxed).checked_sub(1).map(|number| number as u16)
}
