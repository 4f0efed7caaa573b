//! Whether the local files of a job fit into the free space of their file systems.

use super::{UNITS, named};
use iolite_os::explained;
use iolite_os::files::{free_bytes, has_hole};
use iolite_plan::resolve::Creation;
use iolite_plan::{FileKind, FileLayout, Layout};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that files of one file system need.
struct Wanted<'a> {
    /// The device number of the file system.
    on: u64,
    free: u64,
    bytes: u64,
    first: &'a Path,
}

/// Checks that there is room for what is filled and for what the job surely writes, before anything is made or reported: a
/// full file system hurts other users too. What cannot be examined is left to the job.
pub(super) fn check(rules: &Creation, layout: &Layout) -> io::Result<()> {
    if rules.may_be_short {
        return Ok(());
    }
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    for file in layout.files.iter().filter(|file| file.kind == FileKind::Regular) {
        let bytes = needed(rules, file);
        let Some(place) = (bytes > 0).then(|| file_system_of(&file.path)).flatten() else { continue };
        let (Ok(Some(free)), Ok(facts)) = (free_bytes(&place), place.metadata()) else { continue };
        match wanted.iter_mut().find(|wanted| wanted.on == facts.dev()) {
            Some(wanted) => wanted.bytes = wanted.bytes.saturating_add(bytes),
            None => wanted.push(Wanted { on: facts.dev(), free, bytes, first: &file.path }),
        }
    }
    wanted
        .iter()
        .try_for_each(|wanted| enough(wanted.bytes, wanted.free).map_err(|error| named(wanted.first, &error)))
}

/// How many more bytes than it holds the file surely needs.
fn needed(rules: &Creation, file: &FileLayout) -> u64 {
    let found = std::fs::metadata(&file.path).ok();
    let length = found.as_ref().map_or(0, Metadata::len);
    // Blocks that are reserved beyond the end already belong to the file.
    let reserved = found.as_ref().map_or(0, |found| found.blocks() * 512);
    match file.extend_to {
        Some(size) if rules.is_filled && !rules.on_open && size > length => {
            size.saturating_sub(length.max(reserved))
        }
        _ => {
            let written = rules.surely_written.map_or(0, |most| most.min(file.length));
            // (Not every file system counts blocks.)
            let is_sparse = written > reserved && File::open(&file.path).is_ok_and(|file| has_hole(&file));
            written.saturating_sub(if is_sparse { reserved } else { length.max(reserved) })
        }
    }
}

/// The file, or the innermost directory above it, that exists.
fn file_system_of(path: &Path) -> Option<File> {
    let path = std::path::absolute(path).ok()?;
    let there = path.ancestors().find(|path| path.exists())?;
    File::open(there).ok()
}

/// Checks that so many bytes are free.
pub(super) fn enough(bytes: u64, free: u64) -> io::Result<()> {
    if bytes <= free {
        return Ok(());
    }
    let text = format!(
        "{} more ({bytes} bytes) are needed, and the file system has {} free ({free}); use a smaller size, or fill_device=1 \
         to take what there is",
        UNITS.bytes(bytes),
        UNITS.bytes(free)
    );
    Err(explained(&io::Error::from_raw_os_error(libc::ENOSPC), text))
}
