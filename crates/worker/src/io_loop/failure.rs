//! What ended a job, for the loop that notices it and for the words that tell it.

use iolite_engine::{Errno, Unit};
use iolite_types::Operation;
use iolite_workload::Io;

/// What ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The errno.
    pub errno: Errno,
    /// What was attempted; `None` = reaping or committing.
    pub attempt: Option<Attempt>,
    /// What was demanded of it and not met.
    pub missed: Option<Missed>,
}

/// A demand that was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// A rate, over a cycle.
    Rate(crate::pace::Missed),
    /// `max_latency`, by an I/O that took so many nanoseconds.
    Latency(u64),
    /// The data that was written.
    Data,
    /// A script could not be followed, or not be recorded; the loop's `trouble` says why.
    Script,
}

/// An I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// What was to be done.
    pub operation: Operation,
    /// In which file.
    pub file: u32,
    /// Where.
    pub offset: u64,
    /// How much.
    pub length: u64,
}

impl Attempt {
    /// The work of this unit.
    pub(super) fn of(unit: &Unit) -> Attempt {
        Attempt { operation: unit.operation, file: unit.file, offset: unit.offset, length: unit.length }
    }

    /// This I/O.
    pub(super) fn at(io: &Io) -> Attempt {
        Attempt { operation: io.direction.into(), file: io.file, offset: io.offset, length: io.length }
    }
}
