//! Creates, extends and fills the files of a job before its I/O.

mod names;
mod room;

use iolite_content::Content;
use iolite_engine::{LocalStorage, Storage, Stored};
use iolite_host::Mounts;
use iolite_os::explained;
use iolite_plan::resolve::{Creation, Data, Fallocate};
use iolite_plan::{FileKind, FileLayout, Layout};
use iolite_types::describe_error;
use iolite_types::units::Units;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tracing::debug;

/// Units of the sizes in messages.
const UNITS: Units = Units { kb_base: 1024, unit_base: 0, figures: 4 };

/// The most extended files, or new directories, that messages name.
const MOST_TOLD: usize = 10;

/// Bytes per write when a file is filled.
const CHUNK: usize = 1 << 20;

/// The layout with the sizes that the files have reached, if they are filled until the file system is full.
///
/// # Errors
/// No file has room for even one block. A file whose size cannot be read counts as empty.
pub fn reached(rules: &Creation, layout: &Layout) -> io::Result<Layout> {
    let size_of = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let reached = layout.reached(rules.least, size_of);
    if reached.files.is_empty() {
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        return Err(explained(&error, "fill_device: there is no room for one block".into()));
    }
    Ok(reached)
}

/// Creates, extends and fills the files of a worker as its job needs them. Calls `note` with a message about the file
/// being laid out, and checks `stop` regularly.
///
/// # Errors
/// A file cannot be created, extended or filled. The error names it.
pub fn create(
    job: &str,
    rules: &Creation,
    layout: &Layout,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    if let Some(files) = &layout.named {
        make_directories(job, rules, layout, note)?;
        return names::create(job, rules, files, note, stop);
    }
    match rules.data {
        Data::OtherEnd | Data::Nowhere => Ok(()),
        Data::LocalFiles => {
            room::check(rules, layout)?;
            make_directories(job, rules, layout, note)?;
            create_in(&mut LocalStorage, job, rules, layout, note, stop)
        }
        Data::OwnStorage => create_in(&mut *own_storage(rules)?, job, rules, layout, note, stop),
    }
}

/// The storage of the engine, without the engine's I/O.
///
/// # Errors
/// It cannot be reached, or refuses.
pub(crate) fn own_storage(rules: &Creation) -> io::Result<Box<dyn Storage>> {
    let (engine, config) = &rules.engine;
    iolite_engines::storage_of(engine, config)
        .map_err(|error| explained(&io::Error::from_raw_os_error(error.errno()), error.to_string()))
}

/// Creates the directories above these files, and reports the new ones with the file system that they are on: the path
/// may have a typing error.
fn make_directories(
    job: &str,
    rules: &Creation,
    layout: &Layout,
    note: &mut dyn FnMut(String),
) -> io::Result<()> {
    let mut told = Vec::new();
    for directory in missing_directories(layout) {
        if rules.tells_directories {
            let place = Mounts::place_of(&directory);
            told.push(format!("{job}: making the directory {}{place}", directory.display()));
        }
        std::fs::create_dir_all(&directory).map_err(|error| named(&directory, &error))?;
    }
    tell(job, told, "making", "directories", note);
    Ok(())
}

/// The directories above the local files of a layout that do not exist at present, for [`create`] to make.
pub fn missing_directories(layout: &Layout) -> impl Iterator<Item = PathBuf> {
    let named = layout.named.iter().flat_map(|files| files.names.in_all_directories());
    let files = layout.files.iter().filter(|file| file.kind == FileKind::Regular);
    let files = files.map(|file| Cow::Borrowed(file.path.as_path()));
    let mut last = PathBuf::new();
    named.chain(files).filter_map(move |path| {
        // Successive names are mostly in the same directory.
        let parent = path.parent().filter(|&parent| parent != last)?;
        parent.clone_into(&mut last);
        (!parent.as_os_str().is_empty() && !parent.is_dir()).then(|| last.clone())
    })
}

/// Creates the files in this storage.
fn create_in(
    storage: &mut dyn Storage,
    job: &str,
    rules: &Creation,
    layout: &Layout,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    if rules.on_open {
        return Ok(());
    }
    let mut needed: Vec<(&FileLayout, u64)> = Vec::new();
    let mut extended: Vec<String> = Vec::new();
    for file in &layout.files {
        let Some(size) = file.extend_to else { continue };
        let present = storage.size(&file.path).map_err(|error| named(&file.path, &error))?.unwrap_or(0);
        if present >= size {
            continue;
        }
        needed.push((file, size));
        if present > 0 && rules.is_filled {
            let (from, to) = (UNITS.bytes(present), UNITS.bytes(size));
            extended.push(format!("{job}: extending {} from {from} to {to}", file.path.display()));
        }
    }
    if needed.is_empty() {
        return Ok(());
    }
    note(describe(job, needed.len(), needed.iter().map(|(_, size)| size).sum()));
    tell(job, extended, "extending", "files", note);
    let mut content = Content::new(&rules.content);
    for (file, size) in needed {
        debug!(target: "file", "{}: made {size} bytes large", file.path.display());
        if stop() {
            break;
        }
        let made = storage.open(&file.path);
        let written = rules.surely_written.map(|most| most.min(file.length));
        made.and_then(|mut made| one(rules, &mut *made, (size, written), &mut content, note, stop))
            .map_err(|error| named(&file.path, &error))?;
    }
    Ok(())
}

/// Reports what is done to files or directories, one by one unless there are many.
fn tell(job: &str, mut told: Vec<String>, act: &str, what: &str, note: &mut dyn FnMut(String)) {
    let untold = told.len().saturating_sub(MOST_TOLD);
    told.truncate(MOST_TOLD);
    told.into_iter().for_each(&mut *note);
    if untold > 0 {
        note(format!("{job}: {act} {untold} more {what}"));
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    explained(error, format!("{}: {}", path.display(), describe_error(error)))
}

fn describe(job: &str, files: usize, total: u64) -> String {
    match files {
        1 => format!("{job}: Laying out IO file (1 file / {}MiB)", total >> 20),
        count => format!("{job}: Laying out IO files ({count} files / total {}MiB)", total >> 20),
    }
}

/// Creates or extends one file and keeps the data that it has. The added part is filled with random data if the job may
/// read it; otherwise its content depends on `fallocate`. With `fill_device`, a full file system is a success too.
///
/// `written`: how many of its bytes the job surely writes, if that is known.
fn one(
    rules: &Creation,
    file: &mut dyn Stored,
    (size, written): (u64, Option<u64>),
    content: &mut Content,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let present = file.size()?;
    let needed = if rules.is_filled { Some(size) } else { written };
    if let (Some(needed), false) = (needed, rules.may_be_short) {
        check_room(file, needed)?;
    }
    if rules.must_extend {
        file.extend(size, Fallocate::Truncate)?;
    } else if !rules.may_be_short {
        // Reserve nothing if the file system is to be filled.
        preallocate(rules.fallocate, file, size, note, stop)?;
    }
    if rules.is_filled {
        match fill(rules, file, present..size, content, stop) {
            Err(error) if rules.may_be_short && is_full(&error) => {}
            result => result?,
        }
    }
    if rules.sync && !stop() {
        file.sync()?;
    }
    Ok(())
}

/// Checks that there is room for this many bytes of the file, before anything is written: a full file system hurts other
/// users too.
fn check_room(file: &mut dyn Stored, needed: u64) -> io::Result<()> {
    let Some(room) = file.room()? else { return Ok(()) };
    // Blocks that are reserved beyond the end already belong to the file.
    room::enough(needed.saturating_sub(room.held), room.free)
}

/// Writes random data to this part of the file.
fn fill(
    rules: &Creation,
    file: &mut dyn Stored,
    part: Range<u64>,
    content: &mut Content,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let block = rules.block.min(CHUNK);
    let mut buffer = vec![0; CHUNK / block * block];
    let mut at = part.start;
    let mut most = buffer.len() as u64;
    while at < part.end && !stop() {
        let length = (part.end - at).min(most) as usize;
        for (number, block_content) in (0..).zip(buffer[..length].chunks_mut(block)) {
            content.prepare_write(block_content, at + number * block as u64);
        }
        match file.write(&buffer[..length], at) {
            // A smaller part may still fit.
            Err(error) if rules.may_be_short && is_full(&error) && length > block => most = block as u64,
            result => {
                result?;
                at += length as u64;
            }
        }
    }
    Ok(())
}

/// Whether this error means that the file system is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Allocates a file's blocks or sets its size, as `fallocate` says. It is not an error if the file system does not
/// support that or lacks space: the job then fails when it writes, as it would without `fallocate`. Only `posix`
/// reports an error, because it works on every file system.
fn preallocate(
    how: Fallocate,
    file: &mut dyn Stored,
    size: u64,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    loop {
        let Err(error) = file.extend(size, how) else { return Ok(()) };
        match error.raw_os_error().unwrap_or(0) {
            _ if how == Fallocate::Truncate => return Err(error),
            libc::EINTR if stop() => return Ok(()),
            libc::EINTR => {}
            _ if how == Fallocate::Posix => {
                note(format!("posix_fallocate fails: {}", describe_error(&error)));
                return Ok(());
            }
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENOSPC | libc::EDQUOT | libc::EFBIG => {
                return Ok(());
            }
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_content::Spec;
    use iolite_os::errno_of;
    use iolite_plan::resolve::CreationTime;
    use std::os::unix::fs::MetadataExt;

    /// Rules for files that the job only writes (`is_filled` = false), or also reads.
    fn rules(is_filled: bool, fallocate: Fallocate) -> Creation {
        Creation {
            time: CreationTime::BeforeAll,
            data: Data::LocalFiles,
            engine: (
                "psync".into(),
                iolite_engine::EngineConfig::new(iolite_options::EngineOptions::None, 1),
            ),
            must_extend: false,
            on_open: false,
            again_on_open: false,
            tells_directories: true,
            fallocate,
            is_filled,
            surely_written: None,
            may_be_short: false,
            fills: false,
            sync: true,
            content: Spec::random(1),
            block: 4096,
            least: 4096,
        }
    }

    fn open(path: &Path) -> Box<dyn Stored> {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        Box::new(file.unwrap())
    }

    #[test]
    fn a_file_grows_after_its_existing_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"precious").unwrap();
        let mut content = Content::new(&Spec::random(1));
        one(
            &rules(true, Fallocate::Native),
            &mut *open(&path),
            (5000, None),
            &mut content,
            &mut |_| (),
            &|| false,
        )
        .unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 5000);
        assert_eq!(&bytes[..8], b"precious");
        assert!(bytes[8..].iter().any(|&byte| byte != 0));
    }

    #[test]
    fn extended_files_are_reported_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: String, size: usize| {
            let path = directory.path().join(name);
            std::fs::write(&path, vec![1; size]).unwrap();
            let (kind, offset, length) = (FileKind::Regular, 0, 1 << 20);
            FileLayout {
                path,
                kind,
                exists: true,
                offset,
                length,
                amount: length,
                extend_to: Some(length),
                is_whole: true,
                zoned: None,
            }
        };
        let told = |files: Vec<FileLayout>, is_filled| {
            let layout =
                Layout { files, pass_bytes: None, left_out: iolite_plan::LeftOut::default(), named: None };
            let mut notes = Vec::new();
            let rules = rules(is_filled, Fallocate::Native);
            create("a", &rules, &layout, &mut |text| notes.push(text), &|| false).unwrap();
            notes
        };
        let name = directory.path().display();
        let notes = told(vec![file("p".into(), 9), file("empty".into(), 0)], true);
        let extending = format!("a: extending {name}/p from 9B to 1024KiB");
        assert_eq!(notes, ["a: Laying out IO files (2 files / total 2MiB)", &extending]);
        assert_eq!(told(vec![file("p".into(), 1 << 20)], true), [""; 0]);
        assert_eq!(told(vec![file("p".into(), 9)], false).len(), 1, "it is going to be written");
        let many = told((0..13).map(|number| file(format!("p{number}"), 10_000)).collect(), true);
        assert_eq!((many.len(), many[11].as_str()), (12, "a: extending 3 more files"));
        assert!(
            many[10].ends_with("p9 from 10000B to 1024KiB")
                || many[10].ends_with("p9 from 9.77KiB to 1024KiB"),
            "{many:?}"
        );
    }

    #[test]
    fn fallocate_decides_the_size_of_files_that_are_only_written() {
        let directory = tempfile::tempdir().unwrap();
        for (how, expected) in [
            (Fallocate::None, 0),
            (Fallocate::Native, 1 << 20),
            (Fallocate::Posix, 1 << 20),
            (Fallocate::Keep, 0),
            (Fallocate::Truncate, 1 << 20),
        ] {
            let path = directory.path().join(how.keyword());
            let mut content = Content::new(&Spec::random(1));
            one(&rules(false, how), &mut *open(&path), (1 << 20, None), &mut content, &mut |_| (), &|| false)
                .unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), expected, "{how:?}");
        }
    }

    #[test]
    fn failing_posix_fallocate_is_reported_and_left_to_the_job() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let rules = rules(false, Fallocate::Posix);
        let mut notes = Vec::new();
        let mut content = Content::new(&Spec::random(1));
        // Larger than the largest possible file.
        let mut note = |text| notes.push(text);
        one(&rules, &mut *open(&path), (i64::MAX as u64, None), &mut content, &mut note, &|| false).unwrap();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("posix_fallocate fails: "), "{notes:?}");
    }

    #[test]
    fn files_larger_than_the_free_space_are_not_begun() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut content = Content::new(&Spec::random(1));
        // More than any file system here has free, but less than the largest possible file size.
        let error = one(
            &rules(true, Fallocate::Native),
            &mut *open(&path),
            (1 << 62, None),
            &mut content,
            &mut |_| (),
            &|| false,
        )
        .unwrap_err();
        assert_eq!(errno_of(&error), libc::ENOSPC);
        assert!(error.to_string().contains("4096PiB more (4611686018427387904 bytes) are needed"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().blocks(), 0);
        // Of a file that is only written, what the job surely writes counts.
        let only_written = rules(false, Fallocate::None);
        let mut made =
            |size| one(&only_written, &mut *open(&path), size, &mut content, &mut |_| (), &|| false);
        assert_eq!(errno_of(&made((1 << 62, Some(1 << 62))).unwrap_err()), libc::ENOSPC);
        assert!(made((1 << 62, Some(4096))).is_ok() && made((1 << 62, None)).is_ok());
    }

    #[test]
    fn nothing_is_reserved_where_the_device_is_to_be_filled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let rules = Creation { may_be_short: true, ..rules(false, Fallocate::Native) };
        let mut content = Content::new(&Spec::random(1));
        one(&rules, &mut *open(&path), (1 << 20, None), &mut content, &mut |_| (), &|| false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
