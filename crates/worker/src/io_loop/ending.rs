//! Why and how the loop ends.

use super::{Attempt, Failure};

/// What ended the job, as far as known.
#[derive(Debug, Default)]
pub struct Ending {
    /// What failed, if anything.
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
}
