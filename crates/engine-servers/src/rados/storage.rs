//! File names in a pool: sizes, and creating, listing and removing objects.

use super::{RadosEngine, object_name};
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use std::ffi::{CStr, CString};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr;

/// An object that is being created.
struct Making<'a> {
    engine: &'a mut RadosEngine,
    name: CString,
}

impl RadosEngine {
    /// The size of an object; `None` = it does not exist.
    fn size_of(&self, name: &CString) -> io::Result<Option<u64>> {
        let mut size = 0;
        // SAFETY: the name ends with a zero, there is room for the size, and the time is not requested.
        let result =
            unsafe { (self.rados().stat)(self.pool.handle, name.as_ptr(), &raw mut size, ptr::null_mut()) };
        match result {
            0.. => Ok(Some(size)),
            result if result == -libc::ENOENT => Ok(None),
            result => self.checked(name, result).map(|()| None),
        }
    }
}

impl Storage for RadosEngine {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        self.size_of(&object_name(name)?)
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let name = object_name(name)?;
        if self.options.touch_objects {
            self.touch(&name)?;
        }
        Ok(Box::new(Making { engine: self, name }))
    }

    /// Data that the cluster has acknowledged is on stable storage.
    fn sync(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        let name = object_name(name)?;
        // SAFETY: the name ends with a zero.
        match unsafe { (self.rados().remove)(self.pool.handle, name.as_ptr()) } {
            result if result == -libc::ENOENT => Err(io::ErrorKind::NotFound.into()),
            result => self.checked(&name, result),
        }
    }

    /// A directory is the part of a name before a slash; the empty directory has all objects.
    fn list(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let (rados, mut names) = (self.rados(), Vec::new());
        let mut list = ptr::null_mut();
        // SAFETY: there is room for the handle.
        let opened = unsafe { (rados.list_open)(self.pool.handle, &raw mut list) };
        self.checked(&c"(all)".to_owned(), opened)?;
        let ended = loop {
            let mut name = ptr::null();
            // SAFETY: the list is open, and there is room for the name. Locators and namespaces are not wanted.
            match unsafe { (rados.list_next)(list, &raw mut name, ptr::null_mut(), ptr::null_mut()) } {
                0.. => {}
                result if result == -libc::ENOENT => break 0,
                result => break result,
            }
            // SAFETY: the library gives a text with a zero at its end, valid until the next one is asked for.
            let name = PathBuf::from(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
            progress();
            if name.starts_with(directory) {
                names.push(name);
            }
        };
        // SAFETY: it is open, and not used after this.
        unsafe { (rados.list_close)(list) };
        self.checked(&c"(all)".to_owned(), ended)?;
        names.sort();
        Ok(names)
    }
}

impl Stored for Making<'_> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.engine.size_of(&self.name)?.unwrap_or(0))
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    /// Space cannot be reserved. An object is as long as the data written to it, unless it is truncated to a size.
    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        if how != Fallocate::Truncate {
            return Ok(());
        }
        let (rados, pool) = (self.engine.rados(), self.engine.pool.handle);
        // SAFETY: the name ends with a zero.
        let result = unsafe { (rados.truncate)(pool, self.name.as_ptr(), size) };
        self.engine.checked(&self.name, result)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (rados, pool) = (self.engine.rados(), self.engine.pool.handle);
        let (start, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the bytes are valid, and the name ends with a zero.
        let result = unsafe { (rados.write)(pool, self.name.as_ptr(), start, length, offset) };
        self.engine.checked(&self.name, result)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
