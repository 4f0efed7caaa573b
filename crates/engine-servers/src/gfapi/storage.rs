//! Finds the sizes of files on a volume, and creates, syncs, removes and lists files.

use super::Files;
use super::library::Gfapi;
use super::volume::{about, checked, volume_name};
use iolite_engine::library::Handle;
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use libc::{off64_t, stat64};
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr;

/// A file that is open for layout.
struct Opened<'a> {
    files: &'a Files,
    lib: &'static Gfapi,
    handle: Handle,
    name: String,
}

impl Files {
    fn about(&self, path: &Path, error: &io::Error) -> io::Error {
        about(&path.display().to_string(), &self.options, error)
    }
}

impl Storage for Files {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        let status = self.volume.status(&volume_name(name)?).map_err(|error| self.about(name, &error))?;
        let Some(status) = status else { return Ok(None) };
        let what = match status.st_mode & libc::S_IFMT {
            libc::S_IFREG => return Ok(Some(status.st_size as u64)),
            libc::S_IFDIR => "it is a directory; name a file in it, or give it as directory=",
            _ => "it is not a regular file",
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let opened = self.volume.make_file(&volume_name(name)?, libc::O_RDWR);
        let handle = opened.map_err(|error| self.about(name, &error))?;
        Ok(Box::new(Opened { lib: self.volume.lib, handle, name: name.display().to_string(), files: self }))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        let wanted = volume_name(name)?;
        let lib = self.volume.lib;
        // SAFETY: the file is open.
        let sync = |handle| checked(unsafe { (lib.sync)(handle, ptr::null_mut(), ptr::null_mut()) });
        // Cached writes are only flushed by a sync through the handle with which they were written.
        if let Some(file) = self.open.iter().find(|file| file.name == wanted) {
            return sync(file.handle).map_err(|error| self.about(name, &error));
        }
        let opened = self.volume.open_file(&wanted, libc::O_RDWR);
        let synced = opened.and_then(|handle| {
            let synced = sync(handle);
            // SAFETY: the file is open, and is not used after this.
            let closed = checked(unsafe { (lib.close)(handle) });
            synced.and(closed)
        });
        synced.map_err(|error| self.about(name, &error))
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        match self.volume.unlink(&volume_name(name)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
            result => result.map_err(|error| self.about(name, &error)),
        }
    }

    fn list(&mut self, directory: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let place = if directory.as_os_str().is_empty() { Path::new("/") } else { directory };
        let names = self.volume.list(&volume_name(place)?).map_err(|error| self.about(place, &error))?;
        let mut names: Vec<PathBuf> = names.into_iter().map(|name| directory.join(name)).collect();
        names.sort();
        Ok(names)
    }
}

impl Opened<'_> {
    fn status(&self) -> io::Result<stat64> {
        let mut status = MaybeUninit::<stat64>::uninit();
        // SAFETY: the file is open, and there is room for the answer.
        self.told(unsafe { (self.lib.fstat)(self.handle, status.as_mut_ptr()) })?;
        // SAFETY: the call has succeeded, so the attributes are filled in.
        Ok(unsafe { status.assume_init() })
    }

    fn told(&self, result: libc::c_int) -> io::Result<()> {
        checked(result).map_err(|error| about(&self.name, &self.files.options, &error))
    }
}

impl Stored for Opened<'_> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.status()?.st_size as u64)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        let status = self.status()?;
        let free = self.files.volume.free()?;
        Ok(Some(Room { held: (status.st_size as u64).max(status.st_blocks as u64 * 512), free }))
    }

    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        let (size, keep) = match how {
            Fallocate::None => return Ok(()),
            Fallocate::Truncate => {
                let nothing = ptr::null_mut();
                // SAFETY: the file is open.
                return self
                    .told(unsafe { (self.lib.truncate)(self.handle, size as off64_t, nothing, nothing) });
            }
            Fallocate::Native | Fallocate::Posix => (size, 0),
            Fallocate::Keep => (size, 1),
        };
        // SAFETY: the file is open.
        self.told(unsafe { (self.lib.allocate)(self.handle, keep, 0, size as usize) })
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            let rest = &bytes[written..];
            let at = (offset + written as u64) as off64_t;
            let nothing = ptr::null_mut();
            // SAFETY: the file is open, and the bytes are valid.
            let count = unsafe {
                (self.lib.write)(self.handle, rest.as_ptr().cast(), rest.len(), at, 0, nothing, nothing)
            };
            match usize::try_from(count) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(_) => self.told(-1)?,
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        // SAFETY: the file is open.
        self.told(unsafe { (self.lib.sync)(self.handle, ptr::null_mut(), ptr::null_mut()) })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // (A caller that needs the data on stable storage has called `sync` and seen its error.) SAFETY: the file is
        // open, and is not used after this.
        unsafe { (self.lib.close)(self.handle) };
    }
}
