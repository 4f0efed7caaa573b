//! Waiting for a word of shared memory to change, across processes.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until another thread or process wakes this word. Returns at once if the word is not `value`. May also return
/// spuriously, so check the word again.
pub fn wait(word: &AtomicU32, value: u32) {
    // SAFETY: the word is valid. The futex is shared (no FUTEX_PRIVATE_FLAG), because other processes wake it.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, ptr::null::<libc::timespec>())
    };
}

/// The same, but sleeps for at most this time.
pub fn wait_for(word: &AtomicU32, value: u32, time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: as above; the time is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
}

/// Wakes all threads that wait for this word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
