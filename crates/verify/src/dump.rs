//! `verify_dump`: saves the data that was read and the expected data as files.

use crate::block::{Field, Mismatch};
use std::path::Path;

/// Saves a wrong interval as `NAME.OFFSET.received` (`.hdr_fail` if its header is wrong), and the intended content, if
/// that is known, as `NAME.OFFSET.expected`. Returns a line for each file with its path, or the reason why it could not
/// be saved.
pub(crate) fn save(directory: &Path, file: &str, read: &[u8], mismatch: &Mismatch) -> Vec<String> {
    let name = Path::new(file).file_name().map_or_else(|| file.into(), |name| name.to_string_lossy());
    let header = !matches!(mismatch.field, Field::Digest | Field::Pattern);
    let received = if header { "hdr_fail" } else { "received" };
    let start = (mismatch.offset - mismatch.block_offset) as usize;
    let interval = &read[start..start + mismatch.length];
    let mut lines = vec![one(directory, &name, received, mismatch.offset, interval)];
    if let Some(expected) = &mismatch.reconstructed {
        lines.push(one(directory, &name, "expected", mismatch.offset, expected));
    }
    lines
}

fn one(directory: &Path, name: &str, what: &str, offset: u64, bytes: &[u8]) -> String {
    let path = directory.join(format!("{name}.{offset}.{what}"));
    match std::fs::write(&path, bytes) {
        Ok(()) => format!("       {what} data dumped as {}", path.display()),
        Err(error) => format!("       {what} data could not be dumped as {}: {error}", path.display()),
    }
}
