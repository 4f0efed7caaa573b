//! Waiting for descriptors to become readable.

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

use crate::error::check;

/// Waits until a descriptor is readable or hung up, a signal arrives, or the time is over; `None` = without limit.
///
/// # Errors
/// ppoll(2) fails for a reason other than a signal.
pub fn wait_readable(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    wait_for(libc::POLLIN, descriptors, timeout)
}

/// Waits until a write to a descriptor would not block, or would fail, a signal arrives, or the time is over.
///
/// # Errors
/// ppoll(2) fails for a reason other than a signal.
pub fn wait_writable(descriptor: RawFd, timeout: Duration) -> io::Result<()> {
    wait_for(libc::POLLOUT, &[descriptor], Some(timeout))
}

fn wait_for(events: libc::c_short, descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> =
        descriptors.iter().map(|&fd| libc::pollfd { fd, events, revents: 0 }).collect();
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the array and the timeout are valid. The signal mask is not changed.
    let result =
        unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout, ptr::null()) };
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Whether a write to this descriptor would not block.
pub fn is_writable(descriptor: RawFd) -> bool {
    let mut polled = libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one structure, which is valid during the call.
    unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
}
