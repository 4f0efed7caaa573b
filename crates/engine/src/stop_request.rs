//! Whether the job of this thread was asked to end, for engines that wait outside of the I/O loop, such as in syncs and
//! removals at the end of a job. In its I/O loop, a job tells its engine ([`Engine::stop_repeating`]).
//!
//! [`Engine::stop_repeating`]: crate::Engine::stop_repeating

use std::cell::RefCell;
use std::time::Duration;

/// How long a library or a server may take for units in flight after the job has been asked to end, if no other limit
/// applies.
pub const LAST_WAIT: Duration = Duration::from_secs(10);

/// The value that means "no limit".
pub const UNLIMITED: Duration = Duration::from_secs(u32::MAX as u64);

/// Returns whether the job was asked to end.
type Check = Box<dyn Fn() -> bool>;

thread_local! {
    static CHECK: RefCell<Option<Check>> = const { RefCell::new(None) };
}

/// Sets the check by which the engines of this thread find out whether the job was asked to end. They call it while
/// they wait.
pub fn stop_when(check: impl Fn() -> bool + 'static) {
    CHECK.set(Some(Box::new(check)));
}

/// Whether the job was asked to end.
pub fn is_asked_to_stop() -> bool {
    CHECK.with_borrow(|check| check.as_ref().is_some_and(|check| check()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own() {
        assert!(!is_asked_to_stop());
        stop_when(|| true);
        assert!(is_asked_to_stop());
        assert!(!std::thread::spawn(is_asked_to_stop).join().unwrap());
    }
}
