//! `verify_backlog`: the writes that wait to be read back.

use iolite_types::Direction;
use iolite_workload::Io;
use iolite_workload::history::{Extents, Written};
use std::collections::VecDeque;

/// The writes since the last check.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Check when this many writes wait.
    pub(crate) every: u64,
    /// How many writes are checked at a time.
    batch: u64,
    /// How many of this batch are left.
    left: u64,
    pub(crate) waiting: Waiting,
}

/// Writes that wait to be read back.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// In the order of the writes: no byte is written twice.
    Queue(VecDeque<Written>),
    /// Sorted by offset; overwritten writes are dropped.
    Sorted(Extents),
}

impl Backlog {
    /// Checks `batch` writes (0 = all) whenever `every` writes wait. If the workload `repeats` places, only the last
    /// write of each counts.
    pub(crate) fn new(every: u64, batch: u64, repeats: bool) -> Backlog {
        let waiting =
            if repeats { Waiting::Sorted(Extents::default()) } else { Waiting::Queue(VecDeque::new()) };
        Backlog { every, batch: if batch == 0 { every } else { batch }, left: 0, waiting }
    }

    /// A write has been acknowledged.
    pub(crate) fn wrote(&mut self, written: Written) {
        match &mut self.waiting {
            Waiting::Queue(queue) => queue.push_back(written),
            Waiting::Sorted(extents) => extents.wrote(written),
        }
        if self.left == 0 && self.waiting.len() as u64 >= self.every {
            self.left = self.batch;
        }
    }

    /// Forgets the writes to this place, because its content is no longer known.
    pub(crate) fn forget(&mut self, io: &Io) {
        match &mut self.waiting {
            // No byte is written twice, and a trim comes before its write.
            Waiting::Queue(_) if io.direction == Direction::Trim => {}
            Waiting::Queue(queue) => queue.retain(|written| written.io != *io),
            Waiting::Sorted(extents) => extents.forget(io),
        }
    }

    /// Whether it is time to check.
    pub(crate) fn is_due(&self) -> bool {
        self.left > 0 && self.waiting.len() > 0
    }

    /// The next write of this batch.
    pub(crate) fn take(&mut self) -> Option<Written> {
        if self.left == 0 {
            return None;
        }
        let written = self.waiting.pop()?;
        self.left -= 1;
        Some(written)
    }

    /// The most bytes of memory that this takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.every.saturating_mul(size_of::<Written>() as u64)
    }
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        match self {
            Waiting::Queue(queue) => queue.len(),
            Waiting::Sorted(extents) => extents.len(),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Written> {
        match self {
            Waiting::Queue(queue) => queue.pop_front(),
            Waiting::Sorted(extents) => extents.pop(),
        }
    }
}
