//! The operations on the names of an engine's files: size, and creating, syncing and removing them.
//!
//! Files are laid out before the I/O begins, and synced and removed after it. For engines that work on files of this
//! machine, system calls do that ([`LocalStorage`]). An engine with its own storage implements the hooks itself
//! ([`Engine::storage`]), so that a job on an object store is laid out, verified, synced and removed like one on files.
//! Callers use the trait. Only syncs of open files of this machine use their descriptors.

use crate::Engine;
use iolite_options::Fallocate;
use iolite_os::files::free_bytes;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The storage of an engine.
pub trait Storage {
    /// The size in bytes of the file or object with this name; `None` = it does not exist.
    ///
    /// # Errors
    /// The storage does not answer, or refuses.
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>>;

    /// The sizes in bytes of all these names. Several requests may be in flight. Calls `progress` after each answer.
    ///
    /// # Errors
    /// The storage does not answer, or refuses. The error names the file.
    fn sizes(&mut self, names: &[PathBuf], progress: &mut dyn FnMut()) -> Result<Vec<Option<u64>>, String> {
        let mut sizes = Vec::with_capacity(names.len());
        for name in names {
            let size = self.size(name);
            sizes.push(
                size.map_err(|error| {
                    format!("{}: {}", name.display(), iolite_types::describe_error(&error))
                })?,
            );
            progress();
        }
        Ok(sizes)
    }

    /// Opens the file; creates an empty one if it does not exist.
    ///
    /// # Errors
    /// It cannot be created or used.
    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>>;

    /// Puts its data on stable storage, whichever worker has written it.
    ///
    /// # Errors
    /// It does not exist, or its data may not be on stable storage.
    fn sync(&mut self, name: &Path) -> io::Result<()>;

    /// Removes it.
    ///
    /// # Errors
    /// It does not exist (`NotFound`), or cannot be removed.
    fn unlink(&mut self, name: &Path) -> io::Result<()>;

    /// The names in a directory (or in the storage's equivalent) that begin with this name, in order. If this takes
    /// several requests, calls `progress` after each answer.
    ///
    /// # Errors
    /// The storage does not answer, or refuses.
    fn list(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>>;

    /// As [`Storage::list`], and also names of which only older versions are left, if the storage keeps versions and tells.
    ///
    /// # Errors
    /// As those of [`Storage::list`].
    fn list_with_older(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        self.list(directory, progress)
    }

    /// Memory of the kind that this storage needs, or likes best, for all buffers of a worker; `None` = any memory will do.
    /// It is valid until the engine is dropped, begins at a page, and is zero.
    ///
    /// # Errors
    /// There is not enough of it.
    fn memory(&mut self, bytes: usize) -> Option<io::Result<*mut u8>> {
        let _ = bytes;
        None
    }
}

/// A file or object of a storage, open for layout.
pub trait Stored {
    /// Its size in bytes.
    ///
    /// # Errors
    /// The storage does not report it.
    fn size(&mut self) -> io::Result<u64>;

    /// The maximum length of the file, and the free space beyond its current size; `None` = unknown.
    ///
    /// # Errors
    /// The storage does not answer, or refuses.
    fn room(&mut self) -> io::Result<Option<Room>>;

    /// Sets this size, or reserves the space for it, as `fallocate` says. The content is kept.
    ///
    /// # Errors
    /// The storage cannot do that, or not in this way (`EOPNOTSUPP`, `EINVAL`).
    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()>;

    /// Writes all of these bytes.
    ///
    /// # Errors
    /// Some of the bytes may not have been written.
    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Puts it on stable storage.
    ///
    /// # Errors
    /// The data may not be on stable storage.
    fn sync(&mut self) -> io::Result<()>;
}

/// The space for a file in a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that already belong to it: more than its size if space is reserved beyond its end.
    pub held: u64,
    /// Further free bytes.
    pub free: u64,
}

/// Files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalStorage;

impl Storage for LocalStorage {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        match std::fs::metadata(name) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o644);
        Ok(Box::new(options.open(name)?))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        sync_file(open_as_allowed(name)?.as_raw_fd())
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        std::fs::remove_file(name)
    }

    fn list(&mut self, directory: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.path());
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Opens a file that may be readable or writable only.
///
/// # Errors
/// It is not there, or may be neither read nor written.
pub fn open_as_allowed(path: &Path) -> io::Result<File> {
    File::open(path).or_else(|_| File::options().append(true).open(path))
}

/// Puts the data of an open file on stable storage, if it is one that has any.
///
/// # Errors
/// The data may not be on stable storage.
pub fn sync_file(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: takes only an integer.
    match unsafe { libc::fsync(descriptor) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Pipes and many character devices have nothing to sync.
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            error => Err(error),
        },
    }
}

/// The storage of an engine that is created only for its storage.
pub struct StorageOf<E> {
    engine: E,
}

impl<E: Engine> StorageOf<E> {
    /// The storage of this engine.
    pub fn new(engine: E) -> Self {
        StorageOf { engine }
    }

    /// Local files never replace a storage that the engine does not provide: they would be created under the names of
    /// its objects.
    fn storage(&mut self) -> io::Result<&mut dyn Storage> {
        self.engine.storage().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

impl<E: Engine> Storage for StorageOf<E> {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        self.storage()?.size(name)
    }

    fn sizes(&mut self, names: &[PathBuf], progress: &mut dyn FnMut()) -> Result<Vec<Option<u64>>, String> {
        self.storage().map_err(|error| iolite_types::describe_error(&error))?.sizes(names, progress)
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        self.storage()?.open(name)
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        self.storage()?.sync(name)
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        self.storage()?.unlink(name)
    }

    fn list(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        self.storage()?.list(directory, progress)
    }

    fn list_with_older(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        self.storage()?.list_with_older(directory, progress)
    }

    fn memory(&mut self, bytes: usize) -> Option<io::Result<*mut u8>> {
        self.engine.storage()?.memory(bytes)
    }
}

impl Stored for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        let metadata = self.metadata()?;
        let held = metadata.len().max(metadata.blocks() * 512);
        Ok(free_bytes(self)?.map(|free| Room { held, free }))
    }

    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        let (descriptor, length) = (self.as_raw_fd(), size as libc::off_t);
        let native = |mode| {
            // SAFETY: no pointers are involved.
            match unsafe { libc::fallocate(descriptor, mode, 0, length) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        match how {
            Fallocate::None => Ok(()),
            Fallocate::Truncate => self.set_len(size),
            // SAFETY: no pointers are involved.
            Fallocate::Posix => match unsafe { libc::posix_fallocate(descriptor, 0, length) } {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            },
            Fallocate::Native => native(0),
            Fallocate::Keep => native(libc::FALLOC_FL_KEEP_SIZE),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}
