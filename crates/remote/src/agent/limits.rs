//! Limits that keep clients from using up this machine: how many there may be, how much each may say, and how much is
//! logged about those that are refused.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many messages of a client are taken per second: comparing clocks takes tens, often at several barriers in a row.
const MOST_MESSAGES: u32 = 10_000;
/// Most refused connections that are reported per second.
const MOST_TOLD: u64 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// Counts a client as long as it lives.
pub(super) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    /// Counts one more; `None` = there are so many already.
    pub fn one_of(counter: &'a AtomicUsize, most: usize) -> Option<Counted<'a>> {
        let counted = Counted(counter);
        (counter.fetch_add(1, SeqCst) < most).then_some(counted)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Keeps a client that says too much from keeping this machine busy.
pub(super) struct Pace {
    since: Instant,
    taken: u32,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { since: Instant::now(), taken: 0 }
    }

    /// Takes a message: later, if there were too many in this second.
    pub fn take(&mut self) {
        if self.taken >= MOST_MESSAGES {
            thread::sleep(SECOND.saturating_sub(self.since.elapsed()));
        }
        if self.since.elapsed() >= SECOND {
            *self = Pace::new();
        }
        self.taken += 1;
    }
}

/// Logs refused connections, up to a rate limit, so that a scanner cannot fill the disk.
#[derive(Debug)]
pub(super) struct Refusals {
    log: fn(&str),
    /// The start of the current second, and how many there were in it.
    counted: Mutex<(Instant, u64)>,
}

impl Refusals {
    pub fn new(log: fn(&str)) -> Refusals {
        Refusals { log, counted: Mutex::new((Instant::now(), 0)) }
    }

    /// Logs one, unless there were too many in this second.
    pub fn log(&self, text: &str) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, told) = &mut *counted;
        let mut more = 0;
        if since.elapsed() >= SECOND {
            more = told.saturating_sub(MOST_TOLD);
            (*since, *told) = (Instant::now(), 0);
        }
        *told += 1;
        let is_told = *told <= MOST_TOLD;
        drop(counted);
        if more > 0 {
            (self.log)(&format!("{more} more connections were refused"));
        }
        if is_told {
            (self.log)(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_too_much_waits() {
        let mut pace = Pace::new();
        let begun = pace.since;
        (0..=MOST_MESSAGES).for_each(|_| pace.take());
        assert!(begun.elapsed() >= SECOND && pace.taken <= MOST_MESSAGES);
    }
}
