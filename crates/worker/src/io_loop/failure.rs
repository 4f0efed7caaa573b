//! Failures that end a job, and the texts about them.

use iolite_engine::{Errno, Unit};
use iolite_types::{Operation, describe_error};
use iolite_workload::Io;

/// A failure that ended a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The errno.
    pub errno: Errno,
    /// The operation that failed; `None` = reaping or committing.
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
    /// The data that was read differs from the data that was written.
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

/// The operation that failed, for the job's line in the report.
pub fn failed_operation(file: &str, operation: Operation) -> String {
    match operation {
        // Such a unit has no file.
        Operation::Work => format!("func={}", operation.name()),
        _ => format!("file={file}, func={}", operation.name()),
    }
}

/// The check that found wrong data, for the job's line in the report.
pub fn failed_check(file: &str) -> String {
    format!("file={file}, func=verify")
}

/// The message about a failed I/O. `why` is appended to the system's error text.
pub fn io_error_line(file: &str, attempt: &Attempt, errno: Errno, why: &str) -> String {
    let Attempt { operation, offset, length, .. } = attempt;
    let text = describe_error(&errno.into());
    let name = operation.name();
    format!("io_u error on file {file}: {text}{why}: {name} offset={offset}, buflen={length}")
}

/// Why an I/O has failed that was in flight for this long, as part of a message.
pub fn too_long(age_ns: u64) -> String {
    let (seconds, tenths) = (age_ns / 1_000_000_000, age_ns / 100_000_000 % 10);
    format!(" (in flight for {seconds}.{tenths} s: io_timeout)")
}
