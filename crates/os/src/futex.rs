//! Waiting for a word of shared memory to change, across processes.

use std::ptr;
use std::sync::atomic::AtomicU32;

/// Sleeps until the word differs from `value`, or for no reason.
pub fn wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid; a shared futex (no FUTEX_PRIVATE_FLAG) since other processes wake it.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, ptr::null::<libc::timespec>())
    };
}

/// Wakes everyone who waits on the word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
