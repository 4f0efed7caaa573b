//! An architecture without a counter that is known here: the clock is a system call.

use std::sync::atomic::{Ordering, fence};

#[inline(always)]
pub(crate) fn read() -> u64 {
    0
}

pub(crate) fn is_reliable() -> bool {
    false
}

pub(crate) fn hertz() -> Option<u64> {
    None
}

/// Reads a clock in program order.
pub fn in_order(read: impl FnOnce() -> u64) -> u64 {
    fence(Ordering::SeqCst);
    let time = read();
    fence(Ordering::SeqCst);
    time
}

/// Keeps the processor busy for this many turns of a loop.
pub fn burn(cycles: u64) {
    (0..cycles).for_each(|_| std::hint::spin_loop());
}
