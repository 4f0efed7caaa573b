//! Turns: of many machines, some at a time do what keeps this one busy.
//!
//! A thousand machines that are reached, or whose clocks are compared, at once only wait for each other on the CPUs of the
//! coordinator: each takes as long as all of them, and what a round trip measures is the queue. But no machine waits for long
//! because others are far away, or hang: it goes on without a turn then.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many turns.
#[derive(Debug)]
pub(super) struct Turns {
    free: Mutex<usize>,
    is_free: Condvar,
}

/// A turn; others may have it when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    pub fn new(count: usize) -> Turns {
        Turns { free: Mutex::new(count), is_free: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn, if there is one now.
    pub fn take(&self) -> Option<Turn<'_>> {
        self.take_within(Duration::ZERO)
    }

    /// A turn, if there is one in this time.
    pub fn take_within(&self, patience: Duration) -> Option<Turn<'_>> {
        let until = Instant::now() + patience;
        let mut free = self.free();
        loop {
            if let Some(left) = free.checked_sub(1) {
                *free = left;
                return Some(Turn(self));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            free = self.is_free.wait_timeout(free, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free() += 1;
        self.0.is_free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_turn_is_given_on() {
        let turns = Turns::new(2);
        let (one, other) = (turns.take(), turns.take());
        assert!(one.is_some() && other.is_some() && turns.take().is_none());
        assert!(turns.take_within(Duration::from_millis(1)).is_none());
        thread::scope(|scope| {
            let waits = scope.spawn(|| turns.take_within(Duration::from_secs(600)).is_some());
            drop(one);
            assert!(waits.join().unwrap());
        });
        drop(other);
        assert!(turns.take().is_some());
    }
}
