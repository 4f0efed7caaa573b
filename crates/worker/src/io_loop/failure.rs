//! What ended a job. The loop makes these values; messages are made from them.

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
    /// The job's requirement that was not met.
    pub missed: Option<Missed>,
}

/// A requirement that was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// A minimum rate.
    Rate(crate::pace::Missed),
    /// `max_latency`, by an I/O that took this many nanoseconds.
    Latency(u64),
    /// The data that was read is not what was written.
    Data,
    /// A script cannot be followed or recorded. The loop's `trouble` says why.
    Script,
}

/// An I/O that was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The operation.
    pub operation: Operation,
    /// The index of the file.
    pub file: u32,
    /// The offset in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

impl Attempt {
    /// The I/O of this unit.
    pub(super) fn of(unit: &Unit) -> Attempt {
        Attempt { operation: unit.operation, file: unit.file, offset: unit.offset, length: unit.length }
    }

    /// This I/O.
    pub(super) fn at(io: &Io) -> Attempt {
        Attempt { operation: io.direction.into(), file: io.file, offset: io.offset, length: io.length }
    }
}
