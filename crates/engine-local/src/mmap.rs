//! `mmap`: the file is mapped into memory and data is copied.
//!
//! The complete file is mapped at once if the address space allows it, otherwise a window of it, which moves when a
//! unit is outside. A write cannot extend a mapped file, so a file that is opened for writing is given its full size
//! first; a unit beyond the end of the mapping is short.
//!
//! With `direct`, msync(2) follows each unit; a sync is an msync of the complete mapping.
//!
//! Unavailable pages (the file system is full, the medium cannot be read, the file was truncated) raise SIGBUS, which
//! gives no reason. Such a unit is repeated by a system call, whose result is the unit's, and the file is mapped again
//! for the next unit.

use iolite_engine::file::{Files, device_size};
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{
    AccessPattern, EngineConfig, EngineError, Errno, FileKind, FileSpec, OpenMode, Outcome, Unit,
};
use iolite_options::engines::MmapOptions;
use iolite_os::{faults, memory};
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;

/// The smallest window that is tried before giving up.
const SMALLEST_WINDOW: u64 = 64 << 20;

/// The currently mapped window of a file.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    address: *mut u8,
    /// Its start in the file.
    start: u64,
    length: u64,
}

/// A file of the worker.
#[derive(Clone, Copy, Debug)]
struct MappedFile {
    /// The end of the file, or of the part that the job may touch.
    end: u64,
    /// Bytes of a window: the complete file, or less after the system has refused that.
    window: u64,
    protection: libc::c_int,
    mapping: Option<Mapping>,
}

/// Copies between buffers and mapped files.
#[derive(Debug)]
pub struct MmapEngine {
    files: Files,
    mapped: Vec<Option<MappedFile>>,
    page: u64,
    /// msync after every unit.
    direct: bool,
    advice: Option<libc::c_int>,
    huge_pages: bool,
}

// SAFETY: the mappings belong to the engine alone.
unsafe impl Send for MmapEngine {}

impl MmapEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig, own: &MmapOptions) -> Result<Self, EngineError> {
        Ok(MmapEngine {
            files: Files::new(config),
            mapped: vec![None; config.files],
            page: memory::page_size() as u64,
            direct: config.direct,
            advice: match config.access {
                AccessPattern::Normal => None,
                AccessPattern::Sequential => Some(libc::MADV_SEQUENTIAL),
                AccessPattern::Random => Some(libc::MADV_RANDOM),
            },
            huge_pages: own.thp,
        })
    }

    /// The bytes of the file at `offset`, at most `length` of them; null at the end of the file.
    #[inline(always)]
    fn bytes_at(&mut self, file: u32, offset: u64, length: u64) -> Result<(*mut u8, u64), Errno> {
        let Some(Some(mapped)) = self.mapped.get(file as usize) else {
            return Err(Errno(libc::EBADF));
        };
        if offset >= mapped.end {
            return Ok((std::ptr::null_mut(), 0));
        }
        let length = length.min(mapped.end - offset);
        if let Some(mapping) = &mapped.mapping
            && offset >= mapping.start
            && offset + length <= mapping.start + mapping.length
        {
            // SAFETY: the offset is inside the mapping, as was just seen.
            let address = unsafe { mapping.address.add((offset - mapping.start) as usize) };
            return Ok((address, length));
        }
        self.move_window(file, offset, length)
    }

    /// Maps the window of a unit.
    #[cold]
    fn move_window(&mut self, file: u32, offset: u64, length: u64) -> Result<(*mut u8, u64), Errno> {
        let descriptor = self.files.raw(file);
        let (page, advice, huge_pages) = (self.page, self.advice, self.huge_pages);
        let Some(Some(mapped)) = self.mapped.get_mut(file as usize) else {
            return Err(Errno(libc::EBADF));
        };
        unmap(&mut mapped.mapping);
        loop {
            let start = if mapped.window >= mapped.end {
                0
            } else {
                let window_start = offset - offset % mapped.window;
                // A unit across the border of two windows gets its own window.
                if offset + length <= window_start + mapped.window {
                    window_start
                } else {
                    offset - offset % page
                }
            };
            let window = mapped.window.min(mapped.end - start).max(offset + length - start);
            match map(descriptor, mapped.protection, start, window) {
                Ok(address) => {
                    advise(address, window, advice, huge_pages)?;
                    mapped.mapping = Some(Mapping { address, start, length: window });
                    // SAFETY: the offset is inside the window, which starts at or before it.
                    return Ok((unsafe { address.add((offset - start) as usize) }, length));
                }
                Err(Errno(libc::ENOMEM)) if mapped.window > SMALLEST_WINDOW => {
                    mapped.window = (mapped.window / 2).next_multiple_of(page).max(SMALLEST_WINDOW);
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Repeats a unit with missing pages by a system call. The mapping is removed: it no longer shows the file.
    ///
    /// # Safety
    /// The unit's buffer is valid for its length.
    #[cold]
    unsafe fn transfer_unmapped(&mut self, unit: &Unit, write: bool) -> Outcome {
        let Some(Some(mapped)) = self.mapped.get_mut(unit.file as usize) else {
            return Err(Errno(libc::EBADF));
        };
        unmap(&mut mapped.mapping);
        let length = unit.length.min(mapped.end.saturating_sub(unit.offset)) as usize;
        // A copy needs no alignment, so this must not need any either.
        without_direct_io(self.files.raw(unit.file))?;
        let moved = retry(&self.files, unit.file, |descriptor| {
            let offset = unit.offset as i64;
            // SAFETY: the caller promises that the buffer is valid for at least this length.
            unsafe {
                match write {
                    true => libc::pwrite(descriptor, unit.buffer.cast(), length, offset),
                    false => libc::pread(descriptor, unit.buffer.cast(), length, offset),
                }
            }
        })?;
        if self.direct && write {
            self.files.control(&Unit { operation: Operation::DataSync, ..*unit })?;
        }
        Ok(moved)
    }

    /// Waits until a range of the mapping is on stable storage.
    fn flush(&self, address: *mut u8, length: u64) -> Result<(), Errno> {
        let inside_page = address as u64 % self.page;
        let start = address.wrapping_sub(inside_page as usize);
        // SAFETY: the range is mapped: the caller got it from the mapping, which starts at a page.
        match unsafe { libc::msync(start.cast(), (length + inside_page) as usize, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }
}

impl Transfer for MmapEngine {
    has_files!();

    fn opened(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        faults::catch()?;
        let end = mappable_end(self.files.raw(index), spec, mode)?;
        let protection = match (mode.read, mode.write) {
            (true, true) => libc::PROT_READ | libc::PROT_WRITE,
            (false, true) => libc::PROT_WRITE,
            _ => libc::PROT_READ,
        };
        let index = index as usize;
        if index >= self.mapped.len() {
            self.mapped.resize(index + 1, None);
        }
        let window = end.next_multiple_of(self.page).max(self.page);
        self.mapped[index] = Some(MappedFile { end, window, protection, mapping: None });
        Ok(())
    }

    fn closing(&mut self, index: u32) {
        if let Some(file) = self.mapped.get_mut(index as usize)
            && let Some(mut mapped) = file.take()
        {
            unmap(&mut mapped.mapping);
        }
    }

    fn control(&mut self, unit: &Unit) -> Outcome {
        let Some(Some(mapped)) = self.mapped.get(unit.file as usize) else {
            return Err(Errno(libc::EBADF));
        };
        match (unit.operation, &mapped.mapping) {
            // With windows, data written through an earlier window is in the page cache, so fsync is needed.
            (Operation::Sync | Operation::DataSync, Some(mapping)) if mapping.length >= mapped.end => {
                self.flush(mapping.address, mapping.length)?;
                Ok(0)
            }
            _ => self.files.control(unit),
        }
    }

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let (address, length) = self.bytes_at(unit.file, unit.offset, unit.length)?;
        if length == 0 {
            // A write without any room would be retried for ever if it counted as short.
            return if write && unit.length > 0 { Err(Errno(libc::ENOSPC)) } else { Ok(0) };
        }
        let (from, to) = if write { (unit.buffer, address) } else { (address, unit.buffer) };
        let is_complete = faults::guarded(address, length as usize, || {
            // SAFETY: both ranges have this length: the caller promises the buffer's, the mapping was checked.
            // They are different memory, the mapping being ours alone.
            unsafe { std::ptr::copy_nonoverlapping(from, to, length as usize) };
        });
        if !is_complete {
            // SAFETY: the caller upholds the same contract.
            return unsafe { self.transfer_unmapped(unit, write) };
        }
        if self.direct {
            self.flush(address, length)?;
        }
        Ok(length)
    }
}

impl Drop for MmapEngine {
    fn drop(&mut self) {
        for mapped in self.mapped.iter_mut().flatten() {
            unmap(&mut mapped.mapping);
        }
    }
}

/// The end of the mappable part. A file that will be written is extended to its size first.
///
/// # Errors
/// The size of the file is unknown.
pub fn mappable_end(descriptor: RawFd, spec: &FileSpec, mode: OpenMode) -> io::Result<u64> {
    match spec.kind {
        FileKind::Pipe => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        // The end of a character device's mapping is the one given by the options.
        FileKind::Char => Ok(spec.size),
        FileKind::Block => {
            let size = device_size(descriptor)?;
            Ok(if spec.size == 0 { size } else { spec.size.min(size) })
        }
        FileKind::Regular => {
            let size = file_size(descriptor)?;
            if size < spec.size && mode.write {
                // SAFETY: takes nothing but integers.
                if unsafe { libc::ftruncate(descriptor, spec.size as i64) } != 0 {
                    return Err(io::Error::last_os_error());
                }
                return Ok(spec.size);
            }
            Ok(if spec.size == 0 { size } else { spec.size.min(size) })
        }
    }
}

/// Lets system calls on this descriptor go through the page cache.
fn without_direct_io(descriptor: RawFd) -> Result<(), Errno> {
    // SAFETY: these take nothing but integers.
    unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        if flags < 0 || libc::fcntl(descriptor, libc::F_SETFL, flags & !libc::O_DIRECT) < 0 {
            return Err(Errno::last());
        }
    }
    Ok(())
}

fn file_size(descriptor: RawFd) -> io::Result<u64> {
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the struct it is given.
    if unsafe { libc::fstat(descriptor, status.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: fstat succeeded.
    Ok(unsafe { status.assume_init() }.st_size as u64)
}

fn map(descriptor: RawFd, protection: libc::c_int, start: u64, length: u64) -> Result<*mut u8, Errno> {
    // SAFETY: a new mapping at a place the kernel chooses replaces no other memory.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length as usize,
            protection,
            libc::MAP_SHARED,
            descriptor,
            start as i64,
        )
    };
    if address == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(address.cast()) }
}

fn advise(address: *mut u8, length: u64, advice: Option<libc::c_int>, huge_pages: bool) -> Result<(), Errno> {
    for advice in advice.into_iter().chain(huge_pages.then_some(libc::MADV_HUGEPAGE)) {
        // SAFETY: the range was just mapped; these kinds of advice change no content.
        if unsafe { libc::madvise(address.cast(), length as usize, advice) } != 0 {
            return Err(Errno::last());
        }
    }
    Ok(())
}

fn unmap(mapping: &mut Option<Mapping>) {
    if let Some(mapping) = mapping.take() {
        // SAFETY: the range was mapped by us, and no pointer into it outlives a call of this engine.
        unsafe { libc::munmap(mapping.address.cast(), mapping.length as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_engine::{Engine, Queued};

    #[test]
    fn windows_move_with_the_units() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let page = memory::page_size();
        let content: Vec<u8> = (0..10 * page).map(|position| (position / 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut engine = MmapEngine::new(&EngineConfig::default(), &MmapOptions::default()).unwrap();
        let spec = FileSpec { path, kind: FileKind::Regular, size: content.len() as u64 };
        engine.open(0, &spec, OpenMode { read: true, ..OpenMode::default() }).unwrap();
        // Two pages per window, like a file much larger than the address space.
        engine.mapped[0].as_mut().unwrap().window = 2 * page as u64;
        let mut buffer = vec![0u8; 3 * page];
        // Inside a window, across two, longer than one, backwards, and past the end.
        for (offset, length) in [
            (0, page),
            (3 * page / 2, page),
            (2 * page - 1, 2),
            (page, 3 * page),
            (100, 10),
            (10 * page - 900, page),
        ] {
            let expected = &content[offset..(offset + length).min(content.len())];
            let unit = Unit {
                buffer: buffer.as_mut_ptr(),
                length: length as u64,
                offset: offset as u64,
                index: 0,
                file: 0,
                operation: Operation::Read,
                priority: 0,
            };
            // SAFETY: the buffer is larger than every unit here.
            let answer = unsafe { engine.queue(&unit) };
            assert_eq!(answer, Queued::Completed(Ok(expected.len() as u64)), "{offset}+{length}");
            assert_eq!(&buffer[..expected.len()], expected, "{offset}+{length}");
            assert!(engine.mapped[0].unwrap().mapping.unwrap().length <= 4 * page as u64);
        }
    }

    #[test]
    fn ios_outside_the_mapping_use_system_calls() {
        let page = memory::page_size() as u64;
        for direct in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("f");
            std::fs::write(&path, vec![1; 4 * page as usize]).unwrap();
            let mut engine =
                MmapEngine::new(&EngineConfig { direct, ..EngineConfig::default() }, &MmapOptions::default())
                    .unwrap();
            let spec = FileSpec { path: path.clone(), kind: FileKind::Regular, size: 4 * page };
            engine.open(0, &spec, OpenMode { read: true, write: true, ..OpenMode::default() }).unwrap();
            let mut buffer = vec![0; 2 * page as usize];
            let mut queue = |operation, offset, buffer: &mut [u8]| {
                let unit = Unit {
                    buffer: buffer.as_mut_ptr(),
                    length: buffer.len() as u64,
                    offset,
                    index: 0,
                    file: 0,
                    operation,
                    priority: 0,
                };
                // SAFETY: the buffer lives through the call.
                unsafe { engine.queue(&unit) }
            };
            assert_eq!(queue(Operation::Read, 0, &mut buffer), Queued::Completed(Ok(2 * page)));
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(page).unwrap();
            // The mapping has one page.
            assert_eq!(queue(Operation::Read, 0, &mut buffer), Queued::Completed(Ok(page)));
            assert_eq!(queue(Operation::Read, 2 * page, &mut buffer), Queued::Completed(Ok(0)));
            // As with the other engines, a write makes the file longer.
            buffer.fill(7);
            assert_eq!(queue(Operation::Write, 2 * page, &mut buffer), Queued::Completed(Ok(2 * page)));
            assert_eq!(queue(Operation::Read, page, &mut buffer), Queued::Completed(Ok(2 * page)));
            assert!(
                buffer[..page as usize].iter().all(|&byte| byte == 0)
                    && buffer[page as usize..].iter().all(|&byte| byte == 7)
            );
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 * page);
        }
    }

    #[test]
    fn a_new_file_gets_its_size_before_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let mut engine = MmapEngine::new(&EngineConfig::default(), &MmapOptions::default()).unwrap();
        let spec = FileSpec { path: path.clone(), kind: FileKind::Regular, size: 12345 };
        engine.open(0, &spec, OpenMode { write: true, create: true, ..OpenMode::default() }).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 12345);
    }
}
