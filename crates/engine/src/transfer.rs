//! The common part of the synchronous engines: a transfer is complete when the system call returns. Also a macro for
//! what such engines have in common.

use crate::file::Files;
use crate::{BufferLayout, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued, Unit};
use iolite_types::Operation;
use std::io;
use std::os::fd::RawFd;

/// Turns the result of read(2) and similar calls into an outcome; repeats the call if a signal interrupted it before
/// any byte was moved.
///
/// On a pipe the interruption is passed on instead: there the call may wait forever, and the worker must be able to
/// end.
///
/// # Errors
/// Those of the call.
#[inline(always)]
pub fn retry(files: &Files, file: u32, mut call: impl FnMut(RawFd) -> isize) -> Outcome {
    let descriptor = files.raw(file);
    loop {
        let result = call(descriptor);
        if result >= 0 {
            return Ok(result as u64);
        }
        let errno = Errno::last();
        if errno != Errno(libc::EINTR) || files.is_pipe(file) {
            return Err(errno);
        }
    }
}

/// An engine whose units are done when `queue` returns. Such engines differ only in how they move bytes.
pub trait Transfer {
    /// The open files.
    fn files(&self) -> &Files;

    /// The open files, to be changed.
    fn files_mut(&mut self) -> &mut Files;

    /// The mode for opening a file, given the job's mode.
    fn mode(mode: OpenMode) -> OpenMode {
        mode
    }

    /// The file at `index` was opened.
    ///
    /// # Errors
    /// The engine cannot use it. It is closed again.
    fn opened(&mut self, _index: u32, _spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        Ok(())
    }

    /// The first files are open, and the first unit comes next.
    ///
    /// # Errors
    /// The engine cannot be used.
    fn prepared(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// The file at `index` is about to be closed.
    fn closing(&mut self, _index: u32) {}

    /// Performs a sync or a trim.
    ///
    /// # Errors
    /// Those of the system call.
    fn control(&mut self, unit: &Unit) -> Outcome {
        self.files().control(unit)
    }

    /// The device's explanation of the unit that has just failed.
    fn explained(&self) -> Option<String> {
        None
    }

    /// Puts all written data on stable storage, if fsync(2) on the files does not do that. Returns whether it has done
    /// so.
    fn synced(&mut self) -> bool {
        false
    }

    /// Reads (`write` false) or writes the unit's bytes.
    ///
    /// # Errors
    /// Those of the system call.
    ///
    /// # Safety
    /// The unit's buffer is valid for its length.
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome;
}

/// The part of [`Transfer`] for engines with their files in `self.files`.
#[macro_export]
macro_rules! has_files {
    () => {
        fn files(&self) -> &$crate::file::Files {
            &self.files
        }

        fn files_mut(&mut self) -> &mut $crate::file::Files {
            &mut self.files
        }
    };
}
pub use crate::has_files;

impl<T: Transfer> crate::Engine for T {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let mode = Self::mode(mode);
        self.files_mut().open(index, spec, mode)?;
        self.opened(index, spec, mode).inspect_err(|_| {
            // The earlier error matters.
            let _ = self.files_mut().close(index);
        })
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.closing(index);
        self.files_mut().close(index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.files().descriptor(index)
    }

    fn prepare(&mut self, _layout: &BufferLayout) -> Result<(), EngineError> {
        self.prepared()
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        Queued::Completed(match unit.operation {
            // SAFETY: the caller upholds the contract of `transfer`.
            Operation::Read => unsafe { self.transfer(unit, false) },
            // SAFETY: as above.
            Operation::Write => unsafe { self.transfer(unit, true) },
            _ => self.control(unit),
        })
    }

    fn sync_file(&mut self, _index: u32) -> Option<io::Result<()>> {
        self.synced().then_some(Ok(()))
    }

    fn explain(&self, _unit: u32) -> Option<String> {
        self.explained()
    }
}
