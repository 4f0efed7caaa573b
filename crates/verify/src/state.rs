//! A record of a worker's writes, with which they can be checked after the worker was killed.
//!
//! A [`Recorder`] writes into a file that is mapped into memory: everything stored there is in the file, at whatever
//! instruction the process ends. [`Saved`] reads such a file and gives the valid writes for each block.
//!
//! The file is a description in JSON ([`Setup`]) followed by words that change while the worker runs (`state/layout.rs`
//! has their places):
//!
//! - how many writes were issued and acknowledged;
//! - the writes in flight, one slot for each unit of the depth: filled before a write is issued, and emptied after it was
//!   acknowledged *and* entered into the table;
//! - for each file, which writes a flush has covered;
//! - a table of the last acknowledged write of each block, and, if there are flushes, a second one of the last write before
//!   it that a flush had covered.
//!
//! So a kill between any two instructions leaves a write in one of three states: not issued; in flight, so that it may
//! or may not have reached the file; or acknowledged. A table has four bytes for each block: 30 bits of the number of
//! the write, and whether the block is the first or the last one of that write. So a write that was partly overwritten
//! is recognised, and is not required.
//!
//! A flush covers the writes that had been acknowledged when it was issued. If a write is overwritten while the flush
//! that covers it is still in flight, the record of that flush may be lost. Then the write before it remains valid,
//! too: the state never requires more than the storage has promised.
//!
//! The caller must ensure that writes in flight do not overlap.

mod entry;
mod file;
mod layout;
mod mapping;
mod names;
mod recorder;
mod saved;
mod setup;
mod table;

pub use file::{Accepted, Demand, InFlight, Policy, SavedFile, Summary};
pub use layout::Covered;
pub use names::{StateNames, is_state_name};
pub use recorder::Recorder;
pub use saved::{Saved, StateError};
pub(crate) use setup::place_of;
pub use setup::{FileIdentity, Setup, StateFile, StateImprint};

use std::fs::File;
use std::io;
use std::path::Path;

/// Syncs a state file, if it exists.
///
/// # Errors
///
/// Errors of the file system, except for a missing file: its job has not begun, or was verified.
pub fn sync(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
