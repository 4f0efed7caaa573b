//! Finds the sizes of files on the server, and creates, syncs, removes and lists files.

use super::{NfsEngine, server_name, system};
use iolite_engine::{Room, Storage, Stored};
use iolite_nfs::{Handle, Kind, Session};
use iolite_options::Fallocate;
use std::io;
use std::path::{Path, PathBuf};

/// A file on the server that is open for layout.
struct Remote<'a> {
    session: &'a mut Session,
    file: Handle,
}

impl Drop for Remote<'_> {
    fn drop(&mut self) {
        // (A caller that needs the data on stable storage has called `sync` and seen its error.)
        let _ = self.session.close(self.file);
    }
}

impl Storage for NfsEngine {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        let found = self.session.find(server_name(name)?).map_err(system)?;
        match found {
            Some((_, attributes)) if attributes.kind == Kind::File => Ok(Some(attributes.size)),
            Some((_, attributes)) => {
                let what = match attributes.kind {
                    Kind::Directory => "it is a directory; name a file in it, or give it as directory=",
                    Kind::Link => "it is a symbolic link, which is not followed; name the file itself",
                    _ => "it is not a regular file",
                };
                Err(io::Error::new(io::ErrorKind::InvalidInput, what))
            }
            None => Ok(None),
        }
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let (file, _) = self.session.create(server_name(name)?).map_err(system)?;
        Ok(Box::new(Remote { session: &mut self.session, file }))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        let name = server_name(name)?;
        if let Some(file) = self.session.opened(name) {
            return self.session.sync(file).map_err(system);
        }
        let (file, _) = self.session.open(name, true).map_err(system)?;
        let synced = self.session.sync(file);
        synced.and(self.session.close(file)).map_err(system)
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        self.session.remove(server_name(name)?).map_err(system)
    }

    fn list(&mut self, directory: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let names = self.session.list(server_name(directory)?).map_err(system)?;
        Ok(names.into_iter().map(|name| directory.join(name)).collect())
    }
}

impl Stored for Remote<'_> {
    fn size(&mut self) -> io::Result<u64> {
        self.session.status(self.file).map(|attributes| attributes.size).map_err(system)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        let attributes = self.session.status(self.file).map_err(system)?;
        let free = self.session.free().map_err(system)?;
        Ok(Some(Room { held: attributes.size.max(attributes.used), free }))
    }

    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        match how {
            Fallocate::None => Ok(()),
            Fallocate::Truncate => self.session.set_size(self.file, size).map_err(system),
            // The protocol has no such operation.
            Fallocate::Native | Fallocate::Keep | Fallocate::Posix => {
                Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
            }
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.session.write_all(self.file, bytes, offset).map_err(system)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.session.sync(self.file).map_err(system)
    }
}
