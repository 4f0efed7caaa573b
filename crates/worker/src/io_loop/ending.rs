//! How a pass ends, and why and how the loop ends.

use super::failure::{Attempt, Failure};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// The workload has no more I/O for this pass.
    Finished,
    /// The job was stopped, its time was over, the device was full, or an I/O failed.
    Stopped,
}

/// Why the job ended, as far as known.
#[derive(Debug, Default)]
pub struct Ending {
    /// The failure, if any.
    pub failure: Option<Failure>,
    /// More about the failure, as text for the user.
    pub trouble: Option<String>,
    /// The first block with wrong data, if that ends the job only after the pass.
    pub(super) wrong: Option<Attempt>,
    /// The loop issues no more I/O.
    pub(super) stopping: bool,
    /// The loop stops because the job's time is over.
    pub(super) timed_out: bool,
    /// The loop stops because the device is full.
    pub(super) device_full: bool,
    /// The current pass had I/O or work. Plain workloads always have some, so only the full loop takes note of it.
    pub(super) was_busy: bool,
}
