//! File systems.

use crate::refusal::Refusal;
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file system that a file is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// The kernel's number for its kind (linux/magic.h).
    pub magic: i64,
    /// The unit in which it allocates space, in bytes.
    pub block: u64,
    /// Its size in bytes; 0 if it has no fixed size.
    pub bytes: u64,
    /// The space available to unprivileged processes, in bytes.
    pub available: u64,
}

impl FileSystem {
    /// hugetlbfs: its files are huge pages.
    pub const HUGE_PAGES: i64 = 0x958_458f6;
    /// tmpfs: its files are in memory.
    pub const TMPFS: i64 = 0x0102_1994;
    /// ramfs: its files are in memory.
    pub const RAMFS: i64 = 0x8584_58f6;
    /// sysfs: its files are windows into devices.
    pub const SYSFS: i64 = 0x6265_6572;

    pub(crate) fn of(path: &Path) -> Result<FileSystem, Refusal> {
        let text = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)?;
        // SAFETY: zero bytes are a valid statfs.
        let mut found: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the path ends in NUL, and the structure is the one that the call fills in.
        if unsafe { libc::statfs(text.as_ptr(), &raw mut found) } != 0 {
            return Err(io::Error::last_os_error().into());
        }
        let block = found.f_frsize as u64;
        Ok(FileSystem {
            magic: found.f_type as _,
            block,
            bytes: found.f_blocks.saturating_mul(block),
            available: found.f_bavail.saturating_mul(block),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_sizes() {
        assert_eq!(FileSystem::of(Path::new("/sys/kernel")).unwrap().magic, FileSystem::SYSFS);
        assert_eq!(FileSystem::HUGE_PAGES, libc::HUGETLBFS_MAGIC);
        let directory = tempfile::tempdir().unwrap();
        let found = FileSystem::of(directory.path()).unwrap();
        assert!(found.bytes >= found.available && found.block > 0, "{found:?}");
        assert!(FileSystem::of(&directory.path().join("none")).unwrap_err().is_not_found());
    }
}
