//! The requirements of direct I/O.

use crate::disks::Disk;
use iolite_os::files;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The alignment that direct I/O to a file requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectIo {
    /// The file does not support direct I/O.
    Unsupported,
    /// It has to be aligned to multiples of these sizes, in bytes.
    Aligned {
        /// For the addresses of buffers.
        memory: u64,
        /// For offsets and lengths.
        offset: u64,
    },
}

impl DirectIo {
    /// The requirements that the kernel reports for a file, or else those of its disk.
    pub(crate) fn of(path: &Path, disk: impl FnOnce() -> Option<Disk>) -> Option<DirectIo> {
        let told = files::statx(path, libc::STATX_DIOALIGN)
            .filter(|found| found.stx_mask & libc::STATX_DIOALIGN != 0)
            .map(|found| (found.stx_dio_mem_align.into(), found.stx_dio_offset_align.into()));
        match told {
            Some((0, _) | (_, 0)) => Some(DirectIo::Unsupported),
            Some((memory, offset)) => Some(DirectIo::Aligned { memory, offset }),
            None => {
                let block = disk()?.queue.logical_block.filter(|&block| block > 0)?;
                Some(DirectIo::Aligned { memory: block, offset: block })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_of_a_file_without_a_disk() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(DirectIo::of(&directory.path().join("none"), || None), None);
    }

    #[test]
    fn alignments_reported_by_the_kernel_are_not_zero() {
        let file = tempfile::NamedTempFile::new().unwrap();
        match DirectIo::of(file.path(), || None) {
            Some(DirectIo::Aligned { memory, offset }) => assert!(memory > 0 && offset > 0),
            // The kernel, or the file system, may not know.
            Some(DirectIo::Unsupported) | None => {}
        }
    }
}
