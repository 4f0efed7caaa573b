//! Waiting for commands whose connections the worker drives itself.

use std::io;
use std::time::{Duration, Instant};

/// Commands that make progress only while the caller drives their connections, because no thread does.
pub(crate) trait DrivenByWorker {
    /// Commands that were given and not taken back yet, the completed ones included.
    fn outstanding(&self) -> usize;

    /// Commands that are completed and can be taken.
    fn count_done(&mut self) -> usize;

    /// Sends and receives, and waits at most `timeout` for data to arrive; `None` = no limit. May return earlier.
    ///
    /// # Errors
    /// A signal interrupted the wait.
    fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Drives until `min` commands (or all of them) are completed, the time is over, or a signal comes. Even if it does
    /// not wait, it drives the connections once, because nothing else would; except if `max` commands can already be
    /// taken.
    fn drive_until(&mut self, min: usize, max: usize, timeout: Option<Duration>) {
        let wanted = min.min(max).min(self.outstanding());
        let end = match timeout {
            Some(timeout) if wanted > 0 && !timeout.is_zero() => Instant::now().checked_add(timeout),
            _ => None,
        };
        let is_poll = wanted == 0 || timeout.is_some_and(|timeout| timeout.is_zero());
        let mut has_driven = self.count_done() >= max;
        while self.count_done() < wanted || !has_driven {
            let left = match end {
                _ if is_poll || self.count_done() >= wanted => Some(Duration::ZERO),
                Some(end) => Some(end.saturating_duration_since(Instant::now())),
                None => None,
            };
            if self.drive(left).is_err() {
                break;
            }
            has_driven = true;
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Completes one command each time that it is driven with a timeout above 0.
    struct Slow {
        given: usize,
        done: usize,
        looks: usize,
        waits: usize,
        is_signalled: bool,
    }

    impl DrivenByWorker for Slow {
        fn outstanding(&self) -> usize {
            self.given
        }

        fn count_done(&mut self) -> usize {
            self.done
        }

        fn drive(&mut self, timeout: Option<Duration>) -> io::Result<()> {
            if self.is_signalled {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match timeout {
                Some(timeout) if timeout.is_zero() => self.looks += 1,
                _ => {
                    self.waits += 1;
                    self.done += 1;
                }
            }
            Ok(())
        }
    }

    fn slow(given: usize, done: usize) -> Slow {
        Slow { given, done, looks: 0, waits: 0, is_signalled: false }
    }

    #[test]
    fn waits_for_the_minimum_number_of_completions() {
        for (given, min, max, waits) in [(8, 3, 8, 3), (8, 8, 2, 2), (2, 8, 8, 2)] {
            let mut commands = slow(given, 0);
            commands.drive_until(min, max, None);
            assert_eq!((commands.waits, commands.looks), (waits, 0), "{given} given, {min} to {max} wanted");
        }
    }

    #[test]
    fn a_poll_drives_once_and_does_not_wait() {
        for (given, done, min, timeout) in [(8, 0, 0, None), (8, 0, 3, Some(Duration::ZERO)), (8, 5, 3, None)]
        {
            let mut commands = slow(given, done);
            commands.drive_until(min, 8, timeout);
            assert_eq!((commands.waits, commands.looks), (0, 1), "{given} given, {done} done, {min} wanted");
        }
    }

    #[test]
    fn nothing_is_driven_when_all_that_may_be_taken_is_there() {
        let mut commands = slow(8, 4);
        commands.drive_until(2, 4, None);
        assert_eq!((commands.waits, commands.looks), (0, 0));
    }

    #[test]
    fn a_signal_ends_the_wait() {
        let mut commands = Slow { is_signalled: true, ..slow(8, 0) };
        commands.drive_until(8, 8, None);
        assert_eq!(commands.done, 0);
    }
}
