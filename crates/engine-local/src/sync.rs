//! `sync`: read(2) and write(2) at the file's position, which lseek(2) moves when the next unit is elsewhere.

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Unit};
use std::io;

/// The position after a failed call is unknown, so the next unit seeks.
const UNKNOWN: u64 = u64::MAX;

/// One read or write per unit, and a seek if the position differs.
#[derive(Debug)]
pub struct SyncEngine {
    files: Files,
    /// The position of each file.
    positions: Vec<u64>,
}

impl SyncEngine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        Ok(SyncEngine { files: Files::new(config), positions: vec![UNKNOWN; config.files] })
    }

    /// Moves the position to the unit's offset; pipes have none.
    fn seek(&self, unit: &Unit) -> Result<(), Errno> {
        if self.files.is_pipe(unit.file) {
            return Ok(());
        }
        // SAFETY: takes nothing but integers.
        match unsafe { libc::lseek(self.files.raw(unit.file), unit.offset as i64, libc::SEEK_SET) } {
            -1 => Err(Errno::last()),
            _ => Ok(()),
        }
    }
}

impl Transfer for SyncEngine {
    has_files!();

    fn opened(&mut self, index: u32, _spec: &FileSpec, _mode: OpenMode) -> io::Result<()> {
        let index = index as usize;
        if index >= self.positions.len() {
            self.positions.resize(index + 1, UNKNOWN);
        }
        self.positions[index] = 0;
        Ok(())
    }

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let Some(&position) = self.positions.get(unit.file as usize) else {
            return Err(Errno(libc::EBADF));
        };
        if position != unit.offset {
            self.seek(unit)?;
        }
        let (buffer, length) = (unit.buffer.cast(), unit.length as usize);
        let outcome = retry(&self.files, unit.file, |descriptor| {
            if write {
                // SAFETY: the caller promises a buffer of this length.
                unsafe { libc::write(descriptor, buffer, length) }
            } else {
                // SAFETY: as above, and the worker does not touch it meanwhile.
                unsafe { libc::read(descriptor, buffer, length) }
            }
        });
        self.positions[unit.file as usize] = outcome.map_or(UNKNOWN, |bytes| unit.offset + bytes);
        outcome
    }
}
