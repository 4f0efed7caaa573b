//! A semaphore: limits how many machines do CPU-intensive work of the coordinator at a time.
//!
//! If the coordinator connected to a thousand machines at once, or compared their clocks at once, they would compete
//! for its CPUs: each would take as long as all of them, and a measured round trip would be mostly queueing. But
//! machines that are far away or hang must not delay the others for long, so waiting for a turn has a time limit, and
//! work continues without one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The semaphore.
#[derive(Debug)]
pub(super) struct Turns {
    free: Mutex<usize>,
    is_free: Condvar,
}

/// A turn. Dropping it frees it.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turns {
    pub fn new(count: usize) -> Turns {
        Turns { free: Mutex::new(count), is_free: Condvar::new() }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a turn if one is free.
    pub fn take(&self) -> Option<Turn<'_>> {
        self.take_within(Duration::ZERO)
    }

    /// Takes a turn if one is or becomes free within this time.
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
