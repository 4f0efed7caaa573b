//! Writes of an earlier run, and the evidence for their origin.
//!
//! A job that verifies the writes of an earlier run goes through the same workload and computes what the earlier run
//! wrote. But the seeds of a job depend on its place in the job file, so a run of another selection of sections had
//! other seeds. Until a block with a seed of this job has been seen, blocks with other seeds may be right as well.

use crate::block::{Header, HeaderFormat};
use crate::rules::{Alike, EarlierRun};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Headers of the old layout store a part of a write's number. For the rest, this many passes are tried.
const MOST_PASSES_V333: u64 = 1 << 12;

/// The known facts about the earlier run. All threads that check share the sightings.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub(crate) alike: Alike,
    /// It may have written its workload any number of times.
    pub(crate) any_pass: bool,
    /// A block may hold intervals of several writes.
    pub(crate) mixes_sizes: bool,
    /// A pass may write a block more than once.
    overwrites: bool,
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
    /// The number of writes in a pass.
    per_pass: AtomicU64,
    /// The last write, plus 1, of a run that was stopped in the middle of a pass; 0 = unknown, or not stopped there.
    stopped_at: AtomicU64,
}

impl Earlier {
    /// No block has been seen yet. `overwrites`: a pass may write a block more than once.
    pub(crate) fn new(run: &EarlierRun, overwrites: bool) -> Earlier {
        let EarlierRun { alike, any_pass, mixes_sizes, has_own_seeds, .. } = *run;
        let seen = Sightings { own: has_own_seeds.into(), ..Sightings::default() };
        Earlier { alike, any_pass, mixes_sizes, overwrites, seen: Arc::new(seen) }
    }

    /// The number of the write in a block with this header, if the last write to it in a pass has the number
    /// `expected`. If the block cannot be of any pass, that is `expected`.
    pub(crate) fn in_any_pass(&self, header: &Header, expected: u64) -> u64 {
        let per_pass = self.per_pass();
        if header.format == HeaderFormat::V333 {
            let passes = (0..MOST_PASSES_V333).map(|pass| expected + pass * per_pass);
            let mut numbers =
                passes.filter(|&number| header.format.stored_sequence(number) == header.sequence);
            return numbers.next().unwrap_or(expected);
        }
        let is_possible = match header.sequence.checked_sub(expected) {
            // How many writes a pass of that run had is not known.
            Some(_) if self.alike == Alike::Beginning => true,
            Some(later) if per_pass > 0 && later.is_multiple_of(per_pass) => true,
            _ => self.overwrites,
        };
        if is_possible { header.sequence } else { expected }
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

    /// Everything is read from the beginning once more.
    pub(crate) fn start_over(&self) {
        self.seen.again.store(0, Relaxed);
    }

    /// The number of writes in a pass; 0 = not known yet.
    pub(crate) fn per_pass(&self) -> u64 {
        self.seen.per_pass.load(Relaxed)
    }

    /// A pass has this many writes.
    pub(crate) fn set_per_pass(&self, writes: u64) {
        self.seen.per_pass.store(writes, Relaxed);
    }

    /// The last write of a run that was stopped in the middle of a pass.
    pub(crate) fn stopped_at(&self) -> Option<u64> {
        self.seen.stopped_at.load(Relaxed).checked_sub(1)
    }

    /// The run was stopped in the middle of a pass, after this write.
    pub(crate) fn set_stopped_at(&self, write: Option<u64>) {
        self.seen.stopped_at.store(write.map_or(0, |write| write + 1), Relaxed);
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
