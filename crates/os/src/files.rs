//! Facts about files and file systems: statx(2), free space.

use crate::by_number;
use crate::error::check;
use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The result of statx(2) for a path; `None` if the call fails. Its `stx_mask` says which of the fields in `mask` are
/// set.
pub fn statx(path: &Path, mask: libc::c_uint) -> Option<libc::statx> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: statx is plain data, valid as zeros, and filled in by the call.
    let (result, found) = unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        (by_number::statx(libc::AT_FDCWD, path.as_ptr(), 0, mask, &raw mut found), found)
    };
    (result == 0).then_some(found)
}

/// The number of bytes that this process can still write to the file system of this file; `None` if the file system
/// does not report a size.
///
/// # Errors
/// fstatvfs(2) fails.
pub fn free_bytes(file: &std::fs::File) -> io::Result<Option<u64>> {
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the structure is the kernel's, and valid through the call.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), facts.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled in by the call; zeros would have been valid too.
    let facts = unsafe { facts.assume_init() };
    if facts.f_blocks == 0 {
        return Ok(None);
    }
    // SAFETY: no pointers are involved.
    let privileged = unsafe { libc::geteuid() } == 0;
    let blocks = if privileged { facts.f_bfree } else { facts.f_bavail };
    Ok(Some(blocks.saturating_mul(facts.f_frsize)))
}

/// The value of an extended attribute of a file, of at most so many bytes. Links are not followed.
///
/// # Errors
/// lgetxattr(2) fails: there is no such attribute (`ENODATA`), or it is longer (`ERANGE`).
pub fn extended_attribute(path: &Path, name: &str, most: usize) -> io::Result<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let name = CString::new(name)?;
    let mut value = vec![0u8; most];
    // SAFETY: both names end in NUL, and the value has this many bytes.
    let bytes = unsafe { libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), most) };
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::last_os_error())?;
    value.truncate(bytes);
    Ok(value)
}

/// Free inodes of the file system of a directory; `None` = it has no limit, or does not say.
pub fn free_inodes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends in NUL, and the structure is the kernel's.
    let result = unsafe { libc::statvfs(path.as_ptr(), facts.as_mut_ptr()) };
    // SAFETY: zeros would have been valid too.
    let facts = unsafe { facts.assume_init() };
    (result == 0 && facts.f_files > 0).then_some(facts.f_favail)
}

/// Whether a part of the file before its end has no data. A file system that does not know counts as one where all parts
/// have. The file's position changes.
pub fn has_hole(file: &std::fs::File) -> bool {
    let length = file.metadata().map_or(0, |found| found.len());
    first_hole(file).is_some_and(|hole| hole < length)
}

/// Where the first part without data begins, or the file ends; `None` = the file system does not say. The file's position
/// changes.
pub fn first_hole(file: &std::fs::File) -> Option<u64> {
    // SAFETY: takes only integers.
    let hole = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_HOLE) };
    u64::try_from(hole).ok()
}

/// Where a part of a file lies on its device, in bytes from the device's beginning; `None` = it has no place, several
/// ones, or the file system does not say.
pub fn physical_offset(file: &std::fs::File, offset: u64, length: u64) -> Option<u64> {
    /// `FS_IOC_FIEMAP`
    const FIEMAP: libc::c_ulong = 0xc020_660b;
    /// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_ENCODED`, `_DATA_INLINE`, `_DATA_TAIL`: the place says nothing.
    const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400;
    #[repr(C)]
    #[derive(Default)]
    struct Extent {
        logical: u64,
        physical: u64,
        length: u64,
        reserved: [u64; 2],
        flags: u32,
        reserved_too: [u32; 3],
    }
    #[repr(C)]
    #[derive(Default)]
    struct Map {
        start: u64,
        length: u64,
        flags: u32,
        mapped: u32,
        room: u32,
        reserved: u32,
        extents: [Extent; 1],
    }
    let mut map = Map { start: offset, length, room: 1, ..Map::default() };
    // SAFETY: the structure is the kernel's, with room for one extent, and valid through the call.
    if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) } != 0 || map.mapped == 0 {
        return None;
    }
    let extent = &map.extents[0];
    let covers = extent.logical <= offset && offset + length <= extent.logical + extent.length;
    (covers && extent.flags & NO_PLACE == 0).then(|| extent.physical + (offset - extent.logical))
}

/// Locks a file for this process alone until it is closed; `WouldBlock` = another process has locked it.
///
/// # Errors
/// See flock(2).
pub fn try_lock(file: &std::fs::File) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// Reserves space for this many bytes from the beginning of a file. Its content and size stay as they are.
///
/// # Errors
/// `Unsupported` = the file system cannot reserve; otherwise see fallocate(2).
pub fn reserve(file: &std::fs::File, bytes: u64) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    let result =
        unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, bytes as libc::off_t) };
    check(result).map(drop)
}
