//! The signals that a run acts on.
//!
//! Signals within a second of the first are one request to end: GNU `timeout` signals its child and then the child's
//! group, and a terminal may signal a whole pipeline. A later signal means that a process hangs, which is then killed.

use crate::RunError;
use iolite_os::poll::{is_writable, wait_readable};
use iolite_os::signals::SignalQueue;
use std::os::fd::AsRawFd;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// The signals that end a run, and the one that asks for a report.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1];

/// The name of a signal that ends a run.
pub fn name(signal: libc::c_int) -> String {
    match signal {
        libc::SIGINT => "SIGINT".to_owned(),
        libc::SIGTERM => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}

/// Signals within this time after the first belong to the same request.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// A report whose output makes no progress for this long is abandoned, if the user asked for that.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// A request made by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To end.
    End,
    /// The same as the one before.
    Again,
    /// To kill hanging processes.
    GiveUp,
}

/// Turns signals into requests.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// When the first signal was taken.
    first: Option<Instant>,
    /// The last time at which no signal was pending. A signal taken later was sent later.
    seen_none: Instant,
}

impl Requests {
    /// No request yet.
    pub fn none() -> Requests {
        Requests { first: None, seen_none: Instant::now() }
    }

    /// The request made by a signal that was taken now.
    pub fn take(&mut self, now: Instant) -> Request {
        match self.first {
            None => {
                self.first = Some(now);
                Request::End
            }
            // The process may have been busy: the time when a signal was sent counts, not the time when it was taken.
            Some(first) if self.seen_none >= first + ONE_REQUEST => Request::GiveUp,
            Some(_) => Request::Again,
        }
    }

    /// No signal is pending now.
    pub fn seen_none(&mut self, now: Instant) {
        self.seen_none = now;
    }

    /// When to check for pending signals, so that the next one is known to be a new request; `None` = no check is
    /// needed.
    fn look_at(&self) -> Option<Instant> {
        let due = self.first? + ONE_REQUEST;
        (self.seen_none < due).then_some(due)
    }
}

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
    /// The operating system refuses it.
    pub fn new() -> Result<HeldSignals, RunError> {
        Ok(HeldSignals { queue: queue()? })
    }

    /// The run has ended after these requests, but writing its report may block (if the reader of a pipe does not
    /// read). One more request to end changes nothing. The next one ends this process with `status`, as soon as
    /// `taken`, which counts the output that was accepted, has not changed for a second. A message about that goes to
    /// `tell`, if standard error can be written to.
    pub fn give_up_when_asked(
        self,
        mut requests: Requests,
        taken: impl Fn() -> u64 + Send + 'static,
        status: i32,
        tell: impl FnOnce() + Send + 'static,
    ) {
        // If the thread cannot be started, the signals stay blocked, and the report is still written.
        let _ = thread::Builder::new().spawn(move || {
            while !self.is_given_up(&mut requests) {
                let left = requests.look_at().map(|due| due.saturating_duration_since(Instant::now()));
                if wait_readable(&[self.queue.as_raw_fd()], left).is_err() {
                    return;
                }
            }
            let mut before = taken();
            loop {
                thread::sleep(REPORT_PATIENCE);
                let now = taken();
                if now == before {
                    break;
                }
                before = now;
            }
            if is_writable(libc::STDERR_FILENO) {
                tell();
            }
            process::exit(status)
        });
    }

    /// Takes the pending signals. Returns whether one of them asks to give up.
    fn is_given_up(&self, requests: &mut Requests) -> bool {
        while let Some(signal) = self.queue.next() {
            if signal != libc::SIGUSR1 && requests.take(Instant::now()) == Request::GiveUp {
                return true;
            }
        }
        requests.seen_none(Instant::now());
        false
    }
}

/// A queue of these signals.
pub(crate) fn queue() -> Result<SignalQueue, RunError> {
    SignalQueue::new(&SIGNALS).map_err(|error| RunError::System("signals cannot be received", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_close_together_are_one_request() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut requests = Requests::none();
        requests.seen_none(at(0));
        assert_eq!(requests.take(at(1)), Request::End);
        assert_eq!(requests.take(at(3)), Request::Again);
        requests.seen_none(at(4));
        // Taken late, but it may have been sent right after the first.
        assert_eq!(requests.take(at(5000)), Request::Again);
        requests.seen_none(at(5001));
        assert_eq!(requests.take(at(5002)), Request::GiveUp);
        assert_eq!(requests.take(at(5003)), Request::GiveUp);
    }

    #[test]
    fn after_a_second_it_is_looked_whether_signals_wait() {
        let mut requests = Requests::none();
        assert_eq!(requests.look_at(), None);
        let begin = Instant::now();
        requests.take(begin);
        assert_eq!(requests.look_at(), Some(begin + ONE_REQUEST));
        requests.seen_none(begin + ONE_REQUEST);
        assert_eq!(requests.look_at(), None);
    }
}
