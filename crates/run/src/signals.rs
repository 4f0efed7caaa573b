//! The signals that a run acts on.

use crate::RunError;
use crate::sys::SignalQueue;

/// Those that end a run, and the one that asks for a report.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];

/// While this is there, the signals that a run acts on do not end this process by themselves.
///
/// A run takes them only as long as it lasts. One that comes a moment later (a second interrupt, the SIGUSR1 of
/// somebody who looks at the run every second) must not cost its report.
#[derive(Debug)]
pub struct HeldSignals {
    _queue: SignalQueue,
}

impl HeldSignals {
    /// Holds them from now on.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn new() -> Result<HeldSignals, RunError> {
        Ok(HeldSignals { _queue: queue()? })
    }
}

/// Queues them.
pub(crate) fn queue() -> Result<SignalQueue, RunError> {
    SignalQueue::new(&SIGNALS).map_err(|error| RunError::System("signals cannot be received", error))
}
