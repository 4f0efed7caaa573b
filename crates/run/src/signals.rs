//! The signals that a run acts on.

use crate::RunError;
use iolite_os::poll::wait_readable;
use iolite_os::signals::SignalQueue;
use std::os::fd::AsRawFd;
use std::process;
use std::thread;

/// The signals that end a run, and the one that asks for a report.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];

/// As long as this value lives, the signals that a run handles do not end the process.
///
/// A run handles them only until it ends. A signal that arrives shortly after that (a second interrupt, or the SIGUSR1
/// of a script that asks for a report every second) must not prevent the final report.
#[derive(Debug)]
pub struct HeldSignals {
    queue: SignalQueue,
}

impl HeldSignals {
    /// Blocks the signals.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn new() -> Result<HeldSignals, RunError> {
        Ok(HeldSignals { queue: queue()? })
    }

    /// The run is over, but writing its report may block (if nobody reads the other end of a pipe). One more
    /// terminating signal is ignored, and the second one ends this process with `status`.
    pub fn end_at_the_second(self, status: i32) {
        // If the thread cannot be started, the signals stay blocked, and the report is still written.
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

/// A queue of these signals.
pub(crate) fn queue() -> Result<SignalQueue, RunError> {
    SignalQueue::new(&SIGNALS).map_err(|error| RunError::System("signals cannot be received", error))
}
