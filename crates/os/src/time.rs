//! The system's clocks. The clock that a run measures with is [`crate::clock::Clock`].

use std::io;

/// The time of a clock of the system in nanoseconds; 0 if the clock does not exist.
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid. The call fails only for clocks that do not exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Makes timers of this thread expire when they are due. By default the system lets them be 50 µs late, so that several
/// expire together.
pub fn make_timers_exact() {
    // SAFETY: takes nothing but numbers. (0 would mean the default; the call cannot fail otherwise.)
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// The CPU time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The wall clock in nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// The time of a clock of the system, given by its number, in milliseconds.
///
/// # Errors
/// The system has no clock with this number.
pub fn clock_ms(clock: u32) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid. An unknown number is an error.
    match unsafe { libc::clock_gettime(clock as libc::clockid_t, &raw mut time) } {
        0 => Ok(time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000),
        _ => Err(io::Error::last_os_error()),
    }
}
