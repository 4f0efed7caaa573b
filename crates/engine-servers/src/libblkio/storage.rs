//! The storage of the engine. Every file name stands for the one device of the driver.

use super::LibblkioEngine;
use super::queue::error_of;
use iolite_engine::{Storage, Stored};
use std::io;
use std::path::{Path, PathBuf};

impl Storage for LibblkioEngine {
    fn size(&mut self, _: &Path) -> io::Result<Option<u64>> {
        self.instance.size().map(Some).map_err(error_of)
    }

    fn open(&mut self, _: &Path) -> io::Result<Box<dyn Stored + '_>> {
        // (Only what is to become larger is opened.)
        Err(unsupported("a device of libblkio cannot be made larger; use a smaller size="))
    }

    fn sync(&mut self, _: &Path) -> io::Result<()> {
        self.flush()
    }

    fn unlink(&mut self, _: &Path) -> io::Result<()> {
        Err(unsupported("a device of libblkio cannot be removed by a job; leave unlink out"))
    }

    fn list(&mut self, _: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        Err(unsupported("libblkio_path= names one device, and there is nothing to list; leave opendir out"))
    }

    fn memory(&mut self, bytes: usize) -> Option<io::Result<*mut u8>> {
        let name = &self.instance.name;
        let region = self.instance.allocate(bytes, &self.queue.silence);
        let region = region.map_err(|(errno, words)| error_of((errno, format!("{name}: {words}"))));
        Some(region.map(|region| {
            self.memory.push(region);
            region.start.cast()
        }))
    }
}

fn unsupported(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, words.to_owned())
}
