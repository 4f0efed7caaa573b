//! The first bytes of a store.

use crate::error::{Result, StoreError};
use std::io::Read;

/// The application id that marks an SQLite file as a store of runs: `Iolt`.
pub const APPLICATION: i64 = 0x496f_6c74;

/// The beginning of an SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The offset of the application id in the file: four bytes, big endian.
const APPLICATION_AT: usize = 68;
/// Bytes of the header, according to SQLite's documentation.
const HEADER: u64 = 100;

/// The reason why an SQLite file is not ours.
pub const ANOTHER: &str = "it is an SQLite file of another program";

/// Checks the first bytes of a file without SQLite, because SQLite would recover, and so change, an unfinished file of
/// another program. Returns whether the file is empty.
///
/// # Errors
/// The file is not a store, or cannot be read.
pub fn check(file: impl Read) -> Result<bool> {
    let mut header = Vec::new();
    file.take(HEADER).read_to_end(&mut header)?;
    let application = APPLICATION.to_be_bytes();
    match header.get(APPLICATION_AT..APPLICATION_AT + 4) {
        _ if header.is_empty() => Ok(true),
        _ if !header.starts_with(MAGIC) => Err(StoreError::Foreign("it is not an SQLite file")),
        Some(found) if *found == application[4..] => Ok(false),
        // Another program is creating the store: SQLite writes the first page before the store has content.
        Some([0, 0, 0, 0]) if is_first_page(&header) => Ok(true),
        _ => Err(StoreError::Foreign(ANOTHER)),
    }
}

/// Whether this is the header of an empty database of one page, without a write-ahead log.
fn is_first_page(header: &[u8]) -> bool {
    const FORMATS_AT: usize = 18;
    const PAGES_AT: usize = 28;
    const VERSION_AT: usize = 60;
    let number = |at: usize| header.get(at..at + 4);
    header.get(FORMATS_AT..FORMATS_AT + 2) == Some(&[1, 1])
        && number(PAGES_AT) == Some(&[0, 0, 0, 1])
        && number(VERSION_AT) == Some(&[0; 4])
}
