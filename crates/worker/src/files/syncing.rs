//! Syncs of whole files: when a file is closed, after a pass, and at the end of the job.

use super::{FileTable, own_storage};
use iolite_engine::{DynEngine, FileKind, FileSpec, LocalStorage, Storage, open_as_allowed, sync_file};
use iolite_plan::resolve::Data;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

impl FileTable {
    /// Syncs all files, including those that were closed without a sync.
    ///
    /// # Errors
    /// The first error of a sync. The other files are synced even so.
    pub fn sync_all(&self, engine: &mut dyn DynEngine) -> io::Result<()> {
        let open = self.numbers().filter(|&file| self.open[file as usize]);
        let synced = open.map(|file| self.sync(engine, file)).fold(Ok(()), io::Result::and);
        if self.fsync_on_close {
            return synced;
        }
        let closed = self.closed().map(|spec| match self.data {
            Data::LocalFiles => LocalStorage.sync(&spec.path),
            Data::OwnStorage => own_storage(engine)?.sync(&spec.path),
            Data::OtherEnd | Data::Nowhere => Ok(()),
        });
        // Clones share files, and another may have removed it.
        synced.and(closed.map(unless_it_is_gone).fold(Ok(()), io::Result::and))
    }

    /// Syncs an open file.
    pub(super) fn sync(&self, engine: &mut dyn DynEngine, file: u32) -> io::Result<()> {
        match self.data {
            Data::LocalFiles => engine
                .sync_file(file)
                .unwrap_or_else(|| engine.descriptor(file).map_or_else(|| Err(not_open()), sync_file)),
            Data::OwnStorage => own_storage(engine)?.sync(&self.path(file).unwrap_or_default()),
            Data::OtherEnd | Data::Nowhere => Ok(()),
        }
    }

    /// Syncs the file systems that hold the files. An engine's own storage has no file systems: all files that are
    /// open, or were written, are synced there.
    ///
    /// # Errors
    /// A file cannot be opened, or its file system cannot be synced.
    pub fn sync_file_systems(&self, engine: &mut dyn DynEngine) -> io::Result<()> {
        let mut done = HashSet::new();
        for file in self.numbers().filter(|&file| self.open[file as usize]) {
            match (self.data, engine.descriptor(file)) {
                (Data::LocalFiles, Some(descriptor)) => sync_file_system(descriptor, &mut done)?,
                (Data::LocalFiles, None) => return Err(not_open()),
                (Data::OwnStorage | Data::OtherEnd | Data::Nowhere, _) => self.sync(engine, file)?,
            }
        }
        for spec in self.closed() {
            let synced = match self.data {
                Data::LocalFiles => {
                    open_as_allowed(&spec.path).and_then(|file| sync_file_system(file.as_raw_fd(), &mut done))
                }
                Data::OwnStorage => own_storage(engine)?.sync(&spec.path),
                Data::OtherEnd | Data::Nowhere => Ok(()),
            };
            unless_it_is_gone(synced)?;
        }
        Ok(())
    }

    /// The files that were written and closed.
    fn closed(&self) -> impl Iterator<Item = Cow<'_, FileSpec>> {
        let written = self.specs.iter().filter(|(file, _)| self.written[*file as usize]);
        written.map(|(_, spec)| spec).filter(|spec| matches!(spec.kind, FileKind::Regular | FileKind::Block))
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.specs.len() as u32
    }
}

fn unless_it_is_gone(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

/// An engine that works on local files has a descriptor for each open file.
fn not_open() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
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
