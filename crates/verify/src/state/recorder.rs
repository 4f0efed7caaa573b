//! Writes the state while the worker runs.

use super::entry;
use super::layout::{CHECKED, Covered, FRONT, Layout, MAGIC, VERSION};
use super::mapping::Mapping;
use super::setup::Setup;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, compiler_fence};
use xxhash_rust::xxh3::xxh3_64;

/// A state file that is being written.
///
/// If this process is killed, its stores have reached the file in the order of the program: the kernel sees memory as
/// this process does. So only the compiler must keep the order.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    setup: Setup,
    layout: Layout,
    mapping: Mapping,
    /// The writes to each file that are durable.
    flushed: Vec<Covered>,
}

impl Recorder {
    /// Creates the file, or replaces an existing one. Its space is reserved.
    ///
    /// # Errors
    ///
    /// Errors of the file system, above all a lack of space; [`InvalidInput`](io::ErrorKind::InvalidInput) for sizes
    /// that contradict each other.
    pub fn create(path: &Path, setup: &Setup) -> io::Result<Recorder> {
        let description = serde_json::to_vec(setup).map_err(io::Error::other)?;
        let layout = Layout::new(setup, description.len() as u64)
            .filter(|layout| setup.block > 0 && usize::try_from(layout.total).is_ok())
            .ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidInput, "sizes that make no sense together")
            })?;
        // It has another name until it is complete, so that no process finds an incomplete file.
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".new");
        let unfinished = PathBuf::from(unfinished);
        let made = make(&unfinished, &front(&layout, &description), layout.total)
            .and_then(|mapping| fs::rename(&unfinished, path).map(|()| mapping));
        if made.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        Ok(Recorder {
            path: path.to_owned(),
            setup: setup.clone(),
            layout,
            mapping: made?,
            flushed: vec![Covered::default(); setup.files.len()],
        })
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.layout.total
    }

    /// A write is about to be issued. Writes are numbered from 0. `place` is a free slot below the depth.
    #[inline]
    pub fn issue(&self, place: u32, number: u64, file: u32, offset: u64, length: u64) {
        let [stored, in_file, at, bytes] = self.place(place);
        in_file.store(u64::from(file).to_le(), Relaxed);
        at.store(offset.to_le(), Relaxed);
        bytes.store(length.to_le(), Relaxed);
        let issued = self.mapping.word(self.layout.issued);
        issued.store(u64::from_le(issued.load(Relaxed)).max(number + 1).to_le(), Relaxed);
        stored.store((number + 1).to_le(), Release);
        compiler_fence(Release);
    }

    /// The write in this slot has completed in full.
    #[inline]
    pub fn acknowledge(&self, place: u32) {
        compiler_fence(Release);
        let Some((number, file, offset, length)) = self.in_flight(place) else {
            return;
        };
        let flushed = &self.flushed[file as usize];
        let tables = &self.layout.tables[file as usize];
        let range = self.blocks(file, offset, length);
        let acknowledged = self.mapping.entries(tables.acknowledged, tables.blocks);
        let before = tables.flushed.map(|at| self.mapping.entries(at, tables.blocks));
        let (first, last) = (range.start, range.end - 1);
        for block in range {
            let mut value = entry::of(number);
            value |= if block == first { entry::FIRST } else { 0 };
            value |= if block == last { entry::LAST } else { 0 };
            if let Some(before) = before {
                let old = u32::from_le(acknowledged[block].load(Relaxed));
                if old != 0 && flushed.has(entry::latest(old, number)) {
                    before[block].store(old.to_le(), Release);
                }
            }
            acknowledged[block].store(value.to_le(), Release);
        }
        let count = self.mapping.word(self.layout.acknowledged);
        count.store((u64::from_le(count.load(Relaxed)) + 1).to_le(), Release);
        self.place(place)[0].store(0, Release);
        compiler_fence(Release);
    }

    /// The write in this slot has failed, and the content of its place is unknown.
    pub fn failed(&self, place: u32) {
        if let Some((_, file, offset, length)) = self.in_flight(place) {
            self.forget(file, offset, length);
            self.place(place)[0].store(0, Release);
        }
    }

    /// The content of this place is about to change by other means than a write, for example by a trim.
    pub fn forget(&self, file: u32, offset: u64, length: u64) {
        let tables = &self.layout.tables[file as usize];
        let acknowledged = Some(tables.acknowledged);
        for at in [acknowledged, tables.flushed].into_iter().flatten() {
            for entry in &self.mapping.entries(at, tables.blocks)[self.blocks(file, offset, length)] {
                entry.store(0, Release);
            }
        }
        compiler_fence(Release);
    }

    /// A flush of this file is about to be issued. Returns the writes that it will cover, for
    /// [`flushed`](Self::flushed).
    pub fn flush(&self, file: u32) -> Covered {
        let in_flight = (0..self.setup.depth).filter_map(|place| self.in_flight(place));
        Covered {
            below: u64::from_le(self.mapping.word(self.layout.issued).load(Relaxed)),
            except: in_flight.filter(|write| write.1 == file).map(|write| write.0).collect(),
        }
    }

    /// A flush has completed that covers these writes.
    pub fn flushed(&mut self, file: u32, covered: Covered) {
        let known = &mut self.flushed[file as usize];
        let is_news = (covered.below, known.except.len()) > (known.below, covered.except.len());
        if !self.setup.has_flushes || !is_news {
            return;
        }
        let which = self.mapping.word(self.layout.which_flush(file));
        let next = 1 - u64::from_le(which.load(Relaxed)).min(1);
        let at = self.layout.covered(file, next);
        let words = [covered.below, covered.except.len() as u64];
        for (word, at) in words.iter().chain(&covered.except).zip((at..).step_by(8)) {
            self.mapping.word(at).store(word.to_le(), Relaxed);
        }
        which.store(next.to_le(), Release);
        *known = covered;
    }

    /// Removes the file: everything was checked.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    fn place(&self, place: u32) -> [&AtomicU64; 4] {
        assert!(place < self.setup.depth, "place {place} of {}", self.setup.depth);
        let at = self.layout.place(place);
        std::array::from_fn(|word| self.mapping.word(at + 8 * word as u64))
    }

    /// Number, file, offset and length of the write in a slot.
    fn in_flight(&self, place: u32) -> Option<(u64, u32, u64, u64)> {
        let [stored, file, offset, length] = self.place(place).map(|word| u64::from_le(word.load(Relaxed)));
        Some((stored.checked_sub(1)?, file as u32, offset, length))
    }

    fn blocks(&self, file: u32, offset: u64, length: u64) -> std::ops::Range<usize> {
        let (block, start) = (self.setup.block, offset - self.setup.files[file as usize].offset);
        (start / block) as usize..(start + length).div_ceil(block) as usize
    }
}

/// The bytes before the words that change.
fn front(layout: &Layout, description: &[u8]) -> Vec<u8> {
    let mut front = Vec::with_capacity(FRONT as usize + description.len());
    front.extend_from_slice(MAGIC);
    front.extend_from_slice(&VERSION.to_le_bytes());
    front.extend_from_slice(&[0; 8]);
    front.extend_from_slice(&layout.total.to_le_bytes());
    front.extend_from_slice(&(description.len() as u64).to_le_bytes());
    front.extend_from_slice(description);
    let sum = xxh3_64(&front[CHECKED as usize..]);
    front[16..24].copy_from_slice(&sum.to_le_bytes());
    front
}

/// Creates a file of this many bytes that begins with `front`.
fn make(path: &Path, front: &[u8], bytes: u64) -> io::Result<Mapping> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    reserve(&file, bytes)?;
    file.write_all(front)?;
    Mapping::writable(&file, bytes)
}

/// Extends the file to this many bytes and reserves its space: without that a store into the mapping could kill the
/// process.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is valid.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
