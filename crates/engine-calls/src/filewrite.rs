//! `filewrite` and `fileread`: whole small files, open(2), write(2) or read(2), and close(2) in one unit.

use crate::names::Act;
use iolite_engine::{EngineConfig, Errno, Outcome};
use iolite_options::engines::FileWriteOptions;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A new file's permission bits, as those of `filecreate`.
const CREATE_MODE: libc::c_uint = 0o600;

/// Bytes of the buffer; longer files are written and read in pieces of this size.
const BUFFER: usize = 1 << 20;

/// Bytes at the beginning of a file in which it differs from the others.
const STAMP: usize = 8;

/// Creates a file with its data per unit.
#[derive(Debug)]
pub struct FileWrite {
    data: Vec<u8>,
    /// The number of the next file.
    next: u64,
    syncs: bool,
}

impl FileWrite {
    /// With data of this worker's own.
    pub fn new(options: &FileWriteOptions, config: &EngineConfig) -> FileWrite {
        let mut state = config.seed;
        let words = std::iter::repeat_with(|| next_random(&mut state).to_le_bytes());
        let data = words.take(BUFFER / STAMP).flatten().collect();
        FileWrite { data, next: config.seed, syncs: options.file_sync }
    }
}

impl Act for FileWrite {
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        self.data[..STAMP].copy_from_slice(&self.next.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        let file = open(name, libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC)?;
        let mut left = length;
        while left > 0 {
            let piece = left.min(BUFFER as u64);
            // SAFETY: the descriptor is open, and the buffer has this many bytes.
            let written = unsafe { libc::write(file.as_raw_fd(), self.data.as_ptr().cast(), piece as usize) };
            left -= moved(written)?;
        }
        // SAFETY: the descriptor is open.
        if self.syncs && unsafe { libc::fsync(file.as_raw_fd()) } != 0 {
            return Err(Errno::last());
        }
        close(file)?;
        Ok(length)
    }
}

/// Reads a whole file per unit.
#[derive(Debug)]
pub struct FileRead {
    data: Vec<u8>,
}

impl FileRead {
    /// With a buffer.
    pub fn new() -> FileRead {
        FileRead { data: vec![0; BUFFER] }
    }
}

impl Default for FileRead {
    fn default() -> Self {
        FileRead::new()
    }
}

impl Act for FileRead {
    /// A file that is shorter than the unit has no data for it (`ENODATA`).
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        let file = open(name, libc::O_RDONLY)?;
        let mut left = length;
        while left > 0 {
            let piece = left.min(BUFFER as u64);
            // SAFETY: the descriptor is open, and the buffer has this many bytes.
            let read = unsafe { libc::read(file.as_raw_fd(), self.data.as_mut_ptr().cast(), piece as usize) };
            match moved(read)? {
                0 => return Err(Errno(libc::ENODATA)),
                bytes => left -= bytes,
            }
        }
        close(file)?;
        Ok(length)
    }
}

fn open(name: &CStr, flags: libc::c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: the name ends with a zero.
    match unsafe { libc::open(name.as_ptr(), flags | libc::O_CLOEXEC, CREATE_MODE) } {
        -1 => Err(Errno::last()),
        // SAFETY: the descriptor was opened here, and nobody else has it.
        descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
    }
}

/// Closes a file. Some file systems report only here that data could not be stored.
fn close(file: OwnedFd) -> Result<(), Errno> {
    use std::os::fd::IntoRawFd;
    // SAFETY: the descriptor is open, and is given up here.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// The bytes that a call has moved; an interrupted one has moved none.
fn moved(result: libc::ssize_t) -> Result<u64, Errno> {
    match result {
        -1 => Err(Errno::last()),
        bytes => Ok(bytes as u64),
    }
}

/// xorshift64*, for data that does not compress.
fn next_random(state: &mut u64) -> u64 {
    *state |= u64::from(*state == 0);
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::EngineOptions;
    use std::ffi::CString;

    #[test]
    fn files_have_their_size_and_differ() {
        let directory = tempfile::tempdir().unwrap();
        let name = |file: &str| CString::new(directory.path().join(file).to_str().unwrap()).unwrap();
        let config = EngineConfig::new(EngineOptions::None, 1);
        let mut write = FileWrite::new(&FileWriteOptions::default(), &config);
        let long = BUFFER as u64 + 77;
        for (file, length) in [("a", 3901), ("b", 3901), ("long", long), ("empty", 0)] {
            assert_eq!(write.act(&name(file), length), Ok(length));
            let found = std::fs::read(directory.path().join(file)).unwrap();
            assert_eq!(found.len() as u64, length, "{file}");
        }
        let read = |file: &str| std::fs::read(directory.path().join(file)).unwrap();
        assert_ne!(read("a"), read("b"));
        // A file that exists is written anew.
        assert_eq!(write.act(&name("long"), 10), Ok(10));
        assert_eq!(read("long").len(), 10);
        let mut reader = FileRead::new();
        assert_eq!(reader.act(&name("a"), 3901), Ok(3901));
        assert_eq!(reader.act(&name("a"), 3902), Err(Errno(libc::ENODATA)));
        assert_eq!(reader.act(&name("none"), 1), Err(Errno(libc::ENOENT)));
    }
}
