//! The storage of the engine. Every file name stands for the one device of the driver.

use super::LibblkioEngine;
use super::queue::error_of;
use iolite_engine::{Room, Storage, Stored, Unit};
use iolite_options::Fallocate;
use iolite_types::Operation;
use std::io;
use std::path::{Path, PathBuf};

/// The largest piece that is written at once when the device is laid out.
const PIECE: usize = 1 << 20;

/// The device, open to be laid out.
struct Device<'a>(&'a mut LibblkioEngine);

impl Storage for LibblkioEngine {
    fn size(&mut self, _: &Path) -> io::Result<Option<u64>> {
        self.instance.size().map(Some).map_err(error_of)
    }

    fn open(&mut self, _: &Path) -> io::Result<Box<dyn Stored + '_>> {
        Ok(Box::new(Device(self)))
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
        Some(self.allocate(bytes).map_err(error_of))
    }
}

fn unsupported(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, words.to_owned())
}

impl Stored for Device<'_> {
    fn size(&mut self) -> io::Result<u64> {
        self.0.instance.size().map_err(error_of)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        Ok(None)
    }

    fn extend(&mut self, size: u64, _: Fallocate) -> io::Result<()> {
        match self.0.instance.size().map_err(error_of)? {
            has if size > has => Err(io::Error::other(format!(
                "the device has {has} bytes, and {size} are needed; use a smaller size="
            ))),
            _ => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let memory = self.0.allocate(bytes.len().min(PIECE)).map_err(error_of)?;
        for (number, piece) in (0..).zip(bytes.chunks(PIECE)) {
            // SAFETY: the memory has room for a piece, and nothing is in flight that uses it.
            unsafe { memory.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
            let unit = Unit {
                buffer: memory,
                length: piece.len() as u64,
                offset: offset + number * PIECE as u64,
                index: 0,
                file: 0,
                operation: Operation::Write,
                priority: 0,
            };
            // SAFETY: the memory is the engine's until it is dropped.
            unsafe { self.0.queue.perform(&unit, false) }.map_err(error_of)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
