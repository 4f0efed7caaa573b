//! The storage of the engine. Every file name stands for the one device that the server exports.

use super::NbdEngine;
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use std::io;
use std::path::{Path, PathBuf};

/// The device, open to be laid out.
struct Device<'a>(&'a mut NbdEngine);

impl Storage for NbdEngine {
    fn size(&mut self, _: &Path) -> io::Result<Option<u64>> {
        Ok(Some(self.connection.size))
    }

    fn open(&mut self, _: &Path) -> io::Result<Box<dyn Stored + '_>> {
        Ok(Box::new(Device(self)))
    }

    fn sync(&mut self, _: &Path) -> io::Result<()> {
        self.connection.sync()
    }

    fn unlink(&mut self, _: &Path) -> io::Result<()> {
        Err(unsupported("a device of a server cannot be removed by a job; leave unlink out"))
    }

    fn list(&mut self, _: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        Err(unsupported("uri= names one device, and there is nothing to list; leave opendir out"))
    }
}

fn unsupported(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, words.to_owned())
}

impl Stored for Device<'_> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.connection.size)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    fn extend(&mut self, size: u64, _: Fallocate) -> io::Result<()> {
        match self.0.connection.size {
            has if size > has => Err(io::Error::other(format!(
                "the device has {has} bytes, and {size} are needed; use a smaller size="
            ))),
            _ => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.connection.write_all(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.connection.sync()
    }
}
