//! The signals that a run acts on.

use crate::RunError;
use crate::sys::{SignalQueue, wait_readable};
use std::os::fd::AsRawFd;
use std::process;
use std::thread;

/// Those that end a run, and the one that asks for a report.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];

/// While this is there, the signals that a run acts on do not end this process by themselves.
///
/// A run takes them only as long as it lasts. One that comes a moment later (a second interrupt, the SIGUSR1 of
/// somebody who looks at the run every second) must not cost its report.
#[derive(Debug)]
pub struct HeldSignals {
    queue: SignalQueue,
}

impl HeldSignals {
    /// Holds them from now on.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn new() -> Result<HeldSignals, RunError> {
        Ok(HeldSignals { queue: queue()? })
    }

    /// The run is over, and its report may take for ever (somebody has to read the other end of a pipe): one more signal
    /// that ends a run is still held, the second one ends this process with `status`.
    pub fn end_at_the_second(self, status: i32) {
        // Without a thread they stay held, which costs no report.
        let _ = thread::Builder::new().spawn(move || {
            let mut asked = 0;
            while asked < 2 {
                if wait_readable(&[self.queue.as_raw_fd()], None).is_err() {
                    return;
                }
                asked += std::iter::from_fn(|| self.queue.next())
                    .filter(|&signal| signal != libc::SIGUSR1)
                    .count();
            }
            process::exit(status)
        });
    }
}

/// Queues them.
pub(crate) fn queue() -> Result<SignalQueue, RunError> {
    SignalQueue::new(&SIGNALS).map_err(|error| RunError::System("signals cannot be received", error))
}
