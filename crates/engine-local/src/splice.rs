//! `splice`: data goes through a pipe, splice(2) between pipe and file and vmsplice(2) between pipe and memory.
//!
//! The pipe is made as large as the longest unit, if the system allows it: then a unit takes two system calls.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Errno, Outcome, Unit};
use iolite_os::pipe::{Pipe, through_memory};
use std::os::fd::{AsRawFd, OwnedFd};

/// Splices between files and buffers.
#[derive(Debug)]
pub struct SpliceEngine {
    files: Files,
    pipe: Pipe,
    /// The longest unit for which the pipe was made.
    longest: usize,
    /// Why the last failed unit failed.
    failed: Option<&'static str>,
}

/// The message for an error that the system does not explain.
const CANNOT: &str = "this file cannot be spliced; use another engine, such as psync";

impl SpliceEngine {
    /// An engine with its pipe, and no file open.
    ///
    /// # Errors
    /// The system refuses a pipe: too many files are open.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        let pipe = Pipe::new(0).map_err(|source| EngineError::Pipe { engine: "splice", source })?;
        Ok(SpliceEngine { files: Files::new(config), longest: pipe.capacity, pipe, failed: None })
    }

    /// Creates a new, empty pipe for units of this many bytes.
    #[cold]
    fn renew(&mut self, length: usize) -> std::io::Result<()> {
        self.longest = self.longest.max(length);
        self.pipe = Pipe::new(self.longest)?;
        Ok(())
    }

    /// From the file through the pipe to the buffer. `done` counts the bytes that have arrived.
    fn read(&self, unit: &Unit, done: &mut usize) -> Result<(), Errno> {
        let length = unit.length as usize;
        while *done < length {
            let mut waiting = self.fill_pipe(unit, *done, (length - *done).min(self.pipe.capacity))?;
            if waiting == 0 {
                break;
            }
            while waiting > 0 {
                let moved = self.through_memory(&self.pipe.read, unit, *done, waiting, 0)?;
                waiting -= moved;
                *done += moved;
            }
        }
        Ok(())
    }

    /// From the buffer through the pipe to the file. `done` counts the bytes that have arrived.
    fn write(&self, unit: &Unit, done: &mut usize) -> Result<(), Errno> {
        let length = unit.length as usize;
        while *done < length {
            // Without the flag, the call would block until all data fits into the pipe. Some data fits, because the
            // pipe is empty.
            let flags = libc::SPLICE_F_NONBLOCK;
            let mut waiting = self.through_memory(&self.pipe.write, unit, *done, length - *done, flags)?;
            while waiting > 0 {
                match self.empty_pipe(unit, *done, waiting)? {
                    0 => return Err(Errno(libc::ENOSPC)),
                    moved => {
                        waiting -= moved;
                        *done += moved;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves bytes of the unit's buffer into or out of the pipe. Returns 0 if a signal came before any byte.
    fn through_memory(
        &self,
        end: &OwnedFd,
        unit: &Unit,
        done: usize,
        length: usize,
        flags: libc::c_uint,
    ) -> Result<usize, Errno> {
        match through_memory(end, unit.buffer.wrapping_add(done), length, flags) {
            moved @ 0.. => Ok(moved as usize),
            _ => match Errno::last() {
                Errno(libc::EINTR) => Ok(0),
                errno => Err(errno),
            },
        }
    }

    /// Fills the pipe from the file. Returns 0 at the end of the file.
    fn fill_pipe(&self, unit: &Unit, done: usize, length: usize) -> Result<usize, Errno> {
        let mut offset = unit.offset as i64 + done as i64;
        let place = self.place(unit, &mut offset);
        retry(&self.files, unit.file, |file| {
            let pipe = self.pipe.write.as_raw_fd();
            // SAFETY: the offset outlives the call.
            unsafe { libc::splice(file, place, pipe, std::ptr::null_mut(), length, 0) }
        })
        .map(|bytes| bytes as usize)
    }

    /// Empties the pipe into the file.
    fn empty_pipe(&self, unit: &Unit, done: usize, length: usize) -> Result<usize, Errno> {
        let mut offset = unit.offset as i64 + done as i64;
        let place = self.place(unit, &mut offset);
        retry(&self.files, unit.file, |file| {
            let pipe = self.pipe.read.as_raw_fd();
            // SAFETY: the offset outlives the call.
            unsafe { libc::splice(pipe, std::ptr::null_mut(), file, place, length, 0) }
        })
        .map(|bytes| bytes as usize)
    }

    /// A unit's offset in its file; null for pipes, which have no offsets.
    fn place(&self, unit: &Unit, offset: &mut i64) -> *mut i64 {
        if self.files.is_pipe(unit.file) { std::ptr::null_mut() } else { offset }
    }
}

impl Transfer for SpliceEngine {
    has_files!();

    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        if unit.length as usize > self.longest {
            self.renew(unit.length as usize)?;
        }
        let mut done = 0;
        let result = if write { self.write(unit, &mut done) } else { self.read(unit, &mut done) };
        if let Err(errno) = result {
            self.failed = (errno.0 == libc::EINVAL).then_some(CANNOT);
            // The next unit would mistake the rest in the pipe for its own data.
            self.renew(0)?;
            if done == 0 {
                return Err(errno);
            }
        }
        Ok(done as u64)
    }

    fn explained(&self) -> Option<String> {
        self.failed.map(str::to_owned)
    }
}
