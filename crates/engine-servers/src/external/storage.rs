//! The storage of an external engine.

use super::{ExternalEngine, abi, checked, name_of};
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The error for a missing function. Engines with their own storage have all of them, or were not loaded.
fn missing() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSYS)
}

/// The storage of one engine: its functions and their first argument.
#[derive(Clone, Copy)]
struct Hooks<'a> {
    engine: &'a abi::Engine,
    state: *mut c_void,
}

impl Hooks<'_> {
    fn size(self, name: &CString) -> io::Result<Option<u64>> {
        let size_of = self.engine.size_of.ok_or_else(missing)?;
        let mut size = 0;
        // SAFETY: the name is valid through the call, and there is room for a number.
        match checked(unsafe { size_of(self.state, name.as_ptr(), &raw mut size) }) {
            Ok(()) => Ok(Some(size)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn extend(self, name: &CString, size: u64) -> io::Result<()> {
        let extend = self.engine.extend.ok_or_else(missing)?;
        // SAFETY: the name is valid through the call.
        checked(unsafe { extend(self.state, name.as_ptr(), size) })
    }

    fn sync(self, name: &CString) -> io::Result<()> {
        let sync = self.engine.sync.ok_or_else(missing)?;
        // SAFETY: the name is valid through the call.
        checked(unsafe { sync(self.state, name.as_ptr()) })
    }
}

impl<const SYNCHRONOUS: bool> ExternalEngine<SYNCHRONOUS> {
    fn hooks(&self) -> Hooks<'_> {
        Hooks { engine: &self.engine, state: self.state }
    }
}

impl<const SYNCHRONOUS: bool> Storage for ExternalEngine<SYNCHRONOUS> {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        self.hooks().size(&name_of(name)?)
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let hooks = self.hooks();
        let name = name_of(name)?;
        hooks.extend(&name, 0)?;
        Ok(Box::new(Open { hooks, name }))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        self.hooks().sync(&name_of(name)?)
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        let unlink = self.engine.unlink.ok_or_else(missing)?;
        let name = name_of(name)?;
        // SAFETY: the name is valid through the call.
        checked(unsafe { unlink(self.state, name.as_ptr()) })
    }

    fn list(&mut self, directory: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let list = self.engine.list.ok_or_else(missing)?;
        let prefix = name_of(directory)?;
        let mut names: Vec<PathBuf> = Vec::new();
        // SAFETY: the prefix and the list are valid through the call, in which `note` is called.
        checked(unsafe { list(self.state, prefix.as_ptr(), note, (&raw mut names).cast()) })?;
        names.sort();
        Ok(names)
    }
}

/// Notes a name of a list.
unsafe extern "C" fn note(names: *mut c_void, name: *const c_char) -> c_int {
    // SAFETY: the engine passes on the pointer that it was given, and a string.
    let (names, name) = unsafe { (&mut *names.cast::<Vec<PathBuf>>(), CStr::from_ptr(name)) };
    names.push(OsStr::from_bytes(name.to_bytes()).into());
    0
}

/// An open file of the storage.
struct Open<'a> {
    hooks: Hooks<'a>,
    name: CString,
}

impl Stored for Open<'_> {
    fn size(&mut self) -> io::Result<u64> {
        self.hooks.size(&self.name)?.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        match how {
            Fallocate::None | Fallocate::Keep => Ok(()),
            Fallocate::Native | Fallocate::Posix | Fallocate::Truncate => self.hooks.extend(&self.name, size),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        if self.size()? < end {
            self.hooks.extend(&self.name, end)?;
        }
        let write_at = self.hooks.engine.write_at.ok_or_else(missing)?;
        let (data, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
        // SAFETY: name and bytes are valid through the call.
        checked(unsafe { write_at(self.hooks.state, self.name.as_ptr(), data, length, offset) })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.hooks.sync(&self.name)
    }
}
