//! The storage of the engine. File names stand for disks of targets.

use super::LibiscsiEngine;
use super::disk::Disk;
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use std::io;
use std::path::{Path, PathBuf};

impl Storage for LibiscsiEngine {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        Ok(Some(self.disk(name)?.size))
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        Ok(Box::new(Opened(self.disk(name)?)))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        self.disk(name)?.sync()
    }

    fn unlink(&mut self, _: &Path) -> io::Result<()> {
        Err(unsupported("a disk of a target cannot be removed by a job; leave unlink out"))
    }

    fn list(&mut self, _: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        Err(unsupported("disks are not listed; name them with filename="))
    }
}

fn unsupported(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, words.to_owned())
}

/// A disk, open to be laid out.
struct Opened<'a>(&'a mut Disk);

impl Stored for Opened<'_> {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.0.size)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    fn extend(&mut self, size: u64, _: Fallocate) -> io::Result<()> {
        match self.0.size {
            has if size > has => Err(io::Error::other(format!(
                "the disk has {has} bytes, and {size} are needed; use a smaller size="
            ))),
            _ => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}
