//! Memory mappings.

use std::io;
use std::os::fd::RawFd;
use std::ptr;

/// The size of a page: 4 KiB on x86-64, and 4, 16 or 64 KiB on aarch64, as its kernel was built.
pub fn page_size() -> usize {
    // SAFETY: takes nothing but an integer, and always succeeds.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// A shared anonymous mapping of zeros, without reserved swap space.
///
/// # Errors
/// There is not enough memory.
pub fn map_shared(bytes: usize) -> io::Result<*mut libc::c_void> {
    map(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
}

/// A readable and writable mapping of a descriptor, or of anonymous memory, as `flags` say.
///
/// # Errors
/// There is not enough memory, or the descriptor cannot be mapped.
pub fn map(bytes: usize, flags: libc::c_int, descriptor: RawFd) -> io::Result<*mut libc::c_void> {
    map_for(libc::PROT_READ | libc::PROT_WRITE, bytes, flags, descriptor)
}

/// A readable mapping of a file.
///
/// # Errors
/// The descriptor cannot be mapped.
pub fn map_readable(bytes: usize, descriptor: RawFd) -> io::Result<*mut libc::c_void> {
    map_for(libc::PROT_READ, bytes, libc::MAP_SHARED, descriptor)
}

fn map_for(
    access: libc::c_int,
    bytes: usize,
    flags: libc::c_int,
    descriptor: RawFd,
) -> io::Result<*mut libc::c_void> {
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, descriptor, 0) };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address) }
}

/// An empty file in memory, which no path shows.
///
/// # Errors
/// There is no free descriptor.
pub fn file(name: &std::ffi::CStr) -> io::Result<std::fs::File> {
    let descriptor = crate::by_number::memfd_create(name, libc::MFD_CLOEXEC);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(descriptor) })
}

/// Replaces the first `bytes` of a mapping by a mapping of a descriptor.
///
/// # Errors
/// The descriptor cannot be mapped.
///
/// # Safety
/// A mapping that the caller owns starts at `address` and has at least this many bytes, and there are no references
/// into them.
pub unsafe fn map_over(
    address: *mut libc::c_void,
    bytes: usize,
    flags: libc::c_int,
    descriptor: RawFd,
) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the replaced memory belongs to the caller and is unused.
    let mapped = unsafe { libc::mmap(address, bytes, access, flags | libc::MAP_FIXED, descriptor, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Removes a mapping.
///
/// # Safety
/// The caller owns the mapping, and there are no references into it.
pub unsafe fn unmap(address: *mut libc::c_void, bytes: usize) {
    // SAFETY: the caller owns the mapping and has no references into it.
    unsafe { libc::munmap(address, bytes) };
}
