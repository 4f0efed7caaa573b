//! `page_fault`: anonymous memory in place of files.
//!
//! Each file is a mapping of its size. A unit copies from it (a read) or to it (a write), and so makes the system provide
//! the pages that it touches first. A unit beyond the end of the mapping is short.

use iolite_engine::{Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Unit};
use iolite_types::Operation;
use std::io;

/// Private anonymous memory.
#[derive(Debug)]
struct Anonymous {
    address: *mut u8,
    length: usize,
}

impl Anonymous {
    /// Maps this many bytes. No page is populated yet.
    fn new(length: usize) -> io::Result<Anonymous> {
        if length == 0 {
            return Ok(Anonymous { address: std::ptr::null_mut(), length });
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place that the system chooses.
        match unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            address => Ok(Anonymous { address: address.cast(), length }),
        }
    }

    /// The address of a unit's bytes, and how many of them exist.
    fn at(&self, offset: u64, length: u64) -> (*mut u8, usize) {
        let Some(left) = (self.length as u64).checked_sub(offset) else { return (std::ptr::null_mut(), 0) };
        (self.address.wrapping_add(offset as usize), length.min(left) as usize)
    }
}

impl Drop for Anonymous {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping was made here, and is not used any more.
            unsafe { libc::munmap(self.address.cast(), self.length) };
        }
    }
}

/// Copies between buffers and anonymous memory.
#[derive(Debug)]
pub struct PageFaultEngine {
    files: Vec<Option<Anonymous>>,
}

// SAFETY: the mappings belong to the engine alone.
unsafe impl Send for PageFaultEngine {}

impl PageFaultEngine {
    /// An engine without memory yet.
    ///
    /// # Errors
    /// Never: memory is mapped when a file is opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(PageFaultEngine { files: (0..config.files).map(|_| None).collect() })
    }
}

impl Engine for PageFaultEngine {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        let length = usize::try_from(spec.size).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let index = index as usize;
        if index >= self.files.len() {
            self.files.resize_with(index + 1, || None);
        }
        self.files[index] = Some(Anonymous::new(length)?);
        Ok(())
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        let slot = self.files.get_mut(index as usize).ok_or(io::Error::from_raw_os_error(libc::EBADF))?;
        slot.take().map(drop).ok_or(io::Error::from_raw_os_error(libc::EBADF))
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let Some(Some(memory)) = self.files.get(unit.file as usize) else {
            return Queued::Completed(Err(Errno(libc::EBADF)));
        };
        let (address, length) = memory.at(unit.offset, unit.length);
        match unit.operation {
            // SAFETY: the caller promises the buffer, `at` the memory. They are different memory.
            Operation::Read => unsafe { std::ptr::copy_nonoverlapping(address, unit.buffer, length) },
            // SAFETY: as above.
            Operation::Write => unsafe { std::ptr::copy_nonoverlapping(unit.buffer, address, length) },
            Operation::Trim => return Queued::Completed(Err(Errno(libc::EINVAL))),
            _ => return Queued::Completed(Ok(0)),
        }
        Queued::Completed(Ok(length as u64))
    }
}
