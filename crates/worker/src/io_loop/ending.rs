//! Why and how a loop ends.

use super::{Attempt, Failure};

/// What ends the job, as far as that is known.
#[derive(Debug, Default)]
pub struct Ending {
    /// What failed, if something did.
    pub failure: Option<Failure>,
    /// Why, in words, where the failure does not say it.
    pub trouble: Option<String>,
    /// The first block with wrong data, where that ends the job only with its pass.
    pub(super) wrong: Option<Attempt>,
    /// No more I/O is issued.
    pub(super) stopping: bool,
    /// The loop stops because the time is over.
    pub(super) timed_out: bool,
    /// The loop stops because there is no more room.
    pub(super) device_full: bool,
}
