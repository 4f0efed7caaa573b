//! Creates the files that an engine will look up or remove by name. There may be millions of names, so none is kept in
//! memory.

use super::{named, one};
use iolite_content::Content;
use iolite_engine::{LocalStorage, Storage};
use iolite_os::explained;
use iolite_plan::NamedFiles;
use iolite_plan::resolve::{Creation, FileSizes, NameAct, NameKind};
use std::io;
use std::path::Path;

/// Creates the files and directories that must exist under these names.
pub(super) fn create(
    job: &str,
    rules: &Creation,
    files: &NamedFiles,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    // Opening a directory does not create it; but if nothing may be made, there is no need to look.
    let is_made_later = rules.on_open && (files.name_use.of == NameKind::File || !files.may_be_made);
    if is_made_later || files.name_use.act == NameAct::Make {
        return Ok(());
    }
    match files.name_use.of {
        NameKind::File => make_files(job, rules, files, note, stop),
        NameKind::Directory => make_directories(files, stop),
    }
}

/// Creates the missing directories.
fn make_directories(files: &NamedFiles, stop: &dyn Fn() -> bool) -> io::Result<()> {
    for name in files.names.iter() {
        if stop() {
            break;
        }
        if std::fs::symlink_metadata(&name).is_err() {
            may_be_made(files).map_err(|error| named(&name, &error))?;
        }
        match std::fs::create_dir(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_directory = std::fs::metadata(&name).is_ok_and(|found| found.is_dir());
                if !is_directory {
                    let error = io::Error::from_raw_os_error(libc::ENOTDIR);
                    return Err(named(&name, &error));
                }
            }
            made => made.map_err(|error| named(&name, &error))?,
        }
    }
    Ok(())
}

/// Creates the files that are missing or too small.
fn make_files(
    job: &str,
    rules: &Creation,
    files: &NamedFiles,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let (mut count, mut total) = (0, 0u64);
    for_each_missing(files, stop, &mut |_, size| {
        count += 1;
        total = total.saturating_add(size);
        Ok(())
    })?;
    if count == 0 {
        return Ok(());
    }
    note(super::describe(job, count, total));
    let mut content = Content::new(&rules.content);
    for_each_missing(files, stop, &mut |name, size| {
        let mut storage = LocalStorage;
        let mut file = storage.open(name)?;
        one(rules, &mut *file, (size, None), &mut content, note, stop)
    })
}

/// Calls `act` with each name whose file is missing or too small, and with the size that the file should have.
fn for_each_missing(
    files: &NamedFiles,
    stop: &dyn Fn() -> bool,
    act: &mut dyn FnMut(&Path, u64) -> io::Result<()>,
) -> io::Result<()> {
    for (file, name) in (0u32..).zip(files.names.iter()) {
        if stop() {
            break;
        }
        let present = size_of(&name, files.name_use.act).map_err(|error| named(&name, &error))?;
        let missing = match (present, files.sizes) {
            (None, _) => Some(may_be_made(files).map_err(|error| named(&name, &error))?.of(file)),
            (Some(present), Some(sizes)) if present < sizes.of(file) => {
                Some(may_be_made(files).map_err(|error| named(&name, &error))?.of(file))
            }
            (Some(_), Some(_)) => None,
            (Some(_), None) => None,
        };
        if let Some(size) = missing {
            act(&name, size).map_err(|error| named(&name, &error))?;
        }
    }
    Ok(())
}

/// The sizes of missing files, if they may be created.
fn may_be_made(files: &NamedFiles) -> io::Result<FileSizes> {
    let refused = |why: &str| {
        let missing = io::Error::from_raw_os_error(libc::ENOENT);
        Err(explained(&missing, format!("it does not exist, or is too small, {why}")))
    };
    match files.sizes {
        _ if !files.may_be_made => refused("and allow_file_create=0 or --readonly forbids that it is made"),
        Some(sizes) => Ok(sizes),
        None => refused("so you need to specify size= or filesize="),
    }
}

/// The size of the file with this name; `None` = no such file.
fn size_of(name: &Path, act: NameAct) -> io::Result<Option<u64>> {
    match std::fs::metadata(name) {
        Ok(found) if found.is_file() => Ok(Some(found.len())),
        Ok(found) if found.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        // A device has a fixed size. It may be looked up, but not removed.
        Ok(_) if act == NameAct::LookUp => Ok(Some(u64::MAX)),
        Ok(_) => Err(io::Error::other("this is not a regular file, and is not removed")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
