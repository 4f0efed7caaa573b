//! System calls that are made by their number: the oldest C library that the program runs on (glibc 2.17) has no functions for
//! them, and one missing function would keep the whole program from starting there.
//!
//! They behave as the functions of newer C libraries do: -1 and `errno` mean an error.

use std::ffi::CStr;
use std::os::fd::RawFd;

/// gettid(2).
pub fn gettid() -> libc::pid_t {
    // SAFETY: takes nothing, and always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// getrandom(2) with no flags: how many of the bytes were filled.
pub fn getrandom(bytes: &mut [u8]) -> isize {
    // SAFETY: the buffer is valid for its length.
    unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) as isize }
}

/// memfd_create(2).
pub fn memfd_create(name: &CStr, flags: libc::c_uint) -> RawFd {
    // SAFETY: the name is a valid string.
    unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) as RawFd }
}

/// statx(2).
///
/// # Safety
/// `path` is a string that ends with a zero, and there is room for the structure at `found`.
#[inline]
pub unsafe fn statx(
    directory: RawFd,
    path: *const libc::c_char,
    flags: libc::c_int,
    mask: libc::c_uint,
    found: *mut libc::statx,
) -> libc::c_int {
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_statx, directory, path, flags, mask, found) as libc::c_int }
}

/// preadv2(2).
///
/// # Safety
/// The segments are valid for writes, and nothing else accesses them meanwhile.
#[inline(always)]
pub unsafe fn preadv2(descriptor: RawFd, segments: &[libc::iovec], offset: i64, flags: libc::c_int) -> isize {
    // The offset has two arguments for 32-bit machines. Where a register holds it all, the kernel ignores the second.
    // SAFETY: as the caller promises.
    unsafe {
        libc::syscall(libc::SYS_preadv2, descriptor, segments.as_ptr(), segments.len(), offset, 0, flags)
            as isize
    }
}

/// pwritev2(2).
///
/// # Safety
/// The segments are valid for reads.
#[inline(always)]
pub unsafe fn pwritev2(
    descriptor: RawFd,
    segments: &[libc::iovec],
    offset: i64,
    flags: libc::c_int,
) -> isize {
    // The offset has two arguments for 32-bit machines. Where a register holds it all, the kernel ignores the second.
    // SAFETY: as the caller promises.
    unsafe {
        libc::syscall(libc::SYS_pwritev2, descriptor, segments.as_ptr(), segments.len(), offset, 0, flags)
            as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn data_is_where_it_was_written() {
        let descriptor = memfd_create(c"by-number", 0);
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = unsafe { std::fs::File::from_raw_fd(descriptor) };
        let (offset, mut data, mut found) = (5_000_000_123, *b"data", [0_u8; 4]);
        let segment =
            |bytes: &mut [u8]| libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: both buffers live longer than the calls.
        unsafe {
            assert_eq!(pwritev2(file.as_raw_fd(), &[segment(&mut data)], offset, 0), 4);
            assert_eq!(preadv2(file.as_raw_fd(), &[segment(&mut found)], offset, 0), 4);
        }
        assert_eq!((found, file.metadata().unwrap().len()), (data, 5_000_000_127));
    }

    #[test]
    fn errors_are_as_those_of_functions() {
        assert_eq!(memfd_create(c"name", !0), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}
