//! A state file in memory.

use iolite_os::memory;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A file in memory. Stores of other processes into the file appear here.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: it hands out shared references to atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of a file for reading and writing.
    pub(super) fn writable(file: &File, bytes: u64) -> io::Result<Mapping> {
        Mapping::of(file, bytes, |bytes, descriptor| memory::map(bytes, libc::MAP_SHARED, descriptor))
    }

    /// Maps this many bytes of a file for reading: a store would kill the process.
    pub(super) fn readable(file: &File, bytes: u64) -> io::Result<Mapping> {
        Mapping::of(file, bytes, memory::map_readable)
    }

    fn of(
        file: &File,
        bytes: u64,
        map: impl FnOnce(usize, i32) -> io::Result<*mut libc::c_void>,
    ) -> io::Result<Mapping> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        Ok(Mapping { address: map(bytes, file.as_raw_fd())?.cast(), bytes })
    }

    /// The value of a word. Words are read in the order of the program.
    pub(super) fn load(&self, at: u64) -> u64 {
        u64::from_le(self.word(at).load(Acquire))
    }

    /// The word at this byte of the file.
    ///
    /// # Panics
    ///
    /// If the mapping has no such word.
    pub(super) fn word(&self, at: u64) -> &AtomicU64 {
        let at = at as usize;
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes);
        // SAFETY: within the mapping (just checked), aligned (as the mapping is), and only ever used as an atomic.
        unsafe { &*self.address.add(at).cast() }
    }

    /// This many entries of a table, from this byte of the file on.
    ///
    /// # Panics
    ///
    /// If the mapping has no such entries.
    pub(super) fn entries(&self, at: u64, count: u64) -> &[AtomicU32] {
        let (at, count) = (at as usize, count as usize);
        assert!(at.is_multiple_of(4) && at + 4 * count <= self.bytes);
        // SAFETY: as above; the tables do not overlap the words.
        unsafe { std::slice::from_raw_parts(self.address.add(at).cast(), count) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and references into it borrow from the value.
        unsafe { memory::unmap(self.address.cast(), self.bytes) };
    }
}
