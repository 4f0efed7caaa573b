//! Syncs of whole files: when a file is closed, after a pass, and at the end of the job.

use super::{FileTable, open_as_allowed};
use iolite_engine::{Engine, FileKind};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

impl FileTable {
    /// Syncs all files, including those that were closed without a sync.
    ///
    /// # Errors
    /// The first error of a sync. The other files are synced all the same.
    pub fn sync_all<E: Engine>(&self, engine: &E) -> io::Result<()> {
        let open = self.numbers().filter(|&file| self.open[file as usize]);
        let synced = open.map(|file| self.sync(engine, file)).fold(Ok(()), io::Result::and);
        if self.fsync_on_close {
            return synced;
        }
        let closed = self.closed().map(|file| file.and_then(|file| sync(file.as_raw_fd())));
        synced.and(closed.fold(Ok(()), io::Result::and))
    }

    /// Syncs an open file.
    pub(super) fn sync<E: Engine>(&self, engine: &E, file: u32) -> io::Result<()> {
        engine.descriptor(file).map_or(Ok(()), sync)
    }

    /// Syncs the file systems that hold the files.
    ///
    /// # Errors
    /// A file cannot be opened, or its file system cannot be synced.
    pub fn sync_file_systems<E: Engine>(&self, engine: &E) -> io::Result<()> {
        let mut done = HashSet::new();
        for file in self.numbers().filter(|&file| self.open[file as usize]) {
            if let Some(descriptor) = engine.descriptor(file) {
                sync_file_system(descriptor, &mut done)?;
            }
        }
        for file in self.closed() {
            sync_file_system(file?.as_raw_fd(), &mut done)?;
        }
        Ok(())
    }

    /// Reopens the files that were written and then closed.
    fn closed(&self) -> impl Iterator<Item = io::Result<File>> {
        let written = self.specs.iter().zip(&self.written).filter(|(_, written)| **written);
        let storage = written.filter(|(spec, _)| matches!(spec.kind, FileKind::Regular | FileKind::Block));
        storage.filter_map(|(spec, _)| match open_as_allowed(&spec.path) {
            // Clones share files, so another one may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened),
        })
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.specs.len() as u32
    }
}

fn sync(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::fsync(descriptor) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Pipes and many character devices have nothing to sync.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            error => Err(error),
        },
    }
}

/// Syncs the file system of this file unless it is in `done`.
fn sync_file_system(descriptor: RawFd, done: &mut HashSet<libc::dev_t>) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the structure has room for the result.
    let (told, system) = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut status), status.st_dev)
    };
    // SAFETY: the descriptor is open.
    if told != 0 || (done.insert(system) && unsafe { libc::syncfs(descriptor) } != 0) {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
