//! An architecture without a counter that is known here: the clock is a system call.

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

/// Keeps accesses to memory in order, which is all that is known here.
pub(super) fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Keeps the processor busy for this many turns of a loop.
pub fn burn(cycles: u64) {
    (0..cycles).for_each(|_| std::hint::spin_loop());
}
