//! What a worker has written, kept so that it can be checked after the worker was killed.
//!
//! A [`Recorder`] writes into a file that is mapped into memory: what it has stored is in the file, whatever ends the
//! process, at whatever instruction. [`Saved`] reads such a file and says for each block what has to be there.
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
//! So a kill between any two instructions leaves one of three things of a write: nothing, because it was not issued; a
//! write in flight, which may have reached the file or not; or an acknowledged write. A table has four bytes for each
//! block: 30 bits of the number of the write, and whether the block is the first or the last one of that write. So a write
//! of which a part was overwritten is recognised, and is not required.
//!
//! A flush covers the writes that had been acknowledged when it was issued. If a write is overwritten while the flush that
//! covers it is still in flight, that it was covered may be forgotten. Then the write before it remains a valid answer:
//! nothing is ever required that storage has not promised.
//!
//! Writes in flight do not overlap; the caller has to see to that.

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
pub use setup::{Setup, StateFile, StateImprint};

use std::fs::File;
use std::io;
use std::path::Path;

/// Puts a state file on stable storage, if there is one.
///
/// # Errors
///
/// Those of the file system, except that there is no such file: its job has not begun, or was verified.
pub fn sync(path: &Path) -> io::Result<()> {
    match File::open(path).and_then(|file| file.sync_all()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
