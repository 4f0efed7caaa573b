//! Files before the run: what is there, what it has to become, and making it so.

use crate::sys;
use iolite_content::Content;
use iolite_options::engines::Facets;
use iolite_options::{Fallocate, JobOptions};
use iolite_os::explained;
use iolite_plan::resolve::content;
use iolite_plan::{
    FileFacts, FileKind, FileLayout, JobPlan, Layout, LayoutContext, Plan, Problem, WorkerPlan,
};
use iolite_types::describe_error;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tracing::debug;

/// How much is written at once when a file is filled.
const CHUNK: usize = 1 << 20;

/// Decides the layout of every worker's files, in order, as if the files of the earlier ones had been made already.
pub fn resolve(plan: &Plan) -> Result<Vec<Layout>, Vec<Problem>> {
    let mut known: HashMap<PathBuf, FileFacts> = HashMap::new();
    let mut layouts = Vec::with_capacity(plan.workers.len());
    let mut problems: Vec<Problem> = Vec::new();
    for worker in &plan.workers {
        let job = plan.job_of(worker);
        match of_worker(job, worker, &mut known) {
            Ok(layout) => layouts.push(layout),
            Err(message) => {
                let problem = Problem { job: job.options.name.clone(), origin: None, message };
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
            }
        }
    }
    if problems.is_empty() { Ok(layouts) } else { Err(problems) }
}

fn of_worker(
    job: &JobPlan,
    worker: &WorkerPlan,
    known: &mut HashMap<PathBuf, FileFacts>,
) -> Result<Layout, String> {
    let options = &job.options;
    let facets = job.engine.facets;
    let mut files = Vec::with_capacity(worker.files.len());
    for path in &worker.files {
        let found = if !facets.has_local_files() {
            FileFacts { kind: FileKind::Regular, size: None }
        } else if let Some(known) = known.get(path) {
            *known
        } else {
            facts(path).map_err(|error| unusable(path, &error))?
        };
        check_kind(options, path, found)?;
        files.push((path.clone(), found));
    }
    if let Some(replay) = &worker.replay {
        let layout = iolite_plan::replay_layout(replay, &files, facets.keeps_data())?;
        return checked(options, layout, facets, known);
    }
    let context = LayoutContext { clone: worker.clone, keeps_data: facets.keeps_data(), seed: worker.seed };
    let layout = iolite_plan::layout(options, context, &files).map_err(|error| error.to_string())?;
    checked(options, layout, facets, known)
}

/// The layout, if its files may be made; then they are known to become what it says.
fn checked(
    options: &JobOptions,
    layout: Layout,
    facets: Facets,
    known: &mut HashMap<PathBuf, FileFacts>,
) -> Result<Layout, String> {
    if facets.has_local_files() {
        for file in &layout.files {
            if !file.exists && !options.allow_file_create {
                return Err(format!("{} does not exist, and allow_file_create=0", file.path.display()));
            }
            // (How large a file becomes that fills the file system is seen when it has.)
            if let (FileKind::Regular, Some(size), false) =
                (file.kind, file.extend_to, iolite_plan::is_endless(options))
            {
                known.insert(file.path.clone(), FileFacts { kind: FileKind::Regular, size: Some(size) });
            }
        }
    }
    Ok(layout)
}

/// `filetype` says what the job expects to find.
fn check_kind(options: &JobOptions, path: &Path, found: FileFacts) -> Result<(), String> {
    use iolite_options::FileType;
    let expected = match options.filetype {
        FileType::None => return Ok(()),
        FileType::File => FileKind::Regular,
        FileType::Block => FileKind::Block,
        FileType::Char => FileKind::Char,
    };
    if found.kind == expected {
        return Ok(());
    }
    Err(format!("filetype={}: {} is not of that type", options.filetype.keyword(), path.display()))
}

fn unusable(path: &Path, error: &io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(libc::EISDIR) => "; name a file in it, or give it as directory=",
        _ => "",
    };
    format!("{}: {}{remedy}", path.display(), describe_error(error))
}

/// What is there under this name.
fn facts(path: &Path) -> io::Result<FileFacts> {
    let kind = iolite_engine::kind_of(path)?;
    let size = match kind {
        FileKind::Char | FileKind::Pipe => None,
        FileKind::Block => Some(iolite_engine::block_device_size(path)?),
        FileKind::Regular => match std::fs::metadata(path) {
            Ok(metadata) => Some(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        },
    };
    Ok(FileFacts { kind, size })
}

/// Whether the files are filled until the file system is full, so that their size is known only then.
pub fn fills(job: &JobPlan) -> bool {
    job.options.fill_device
        && job.options.read_iolog.is_empty()
        && job.options.rw.reads()
        && job.engine.facets.has_local_files()
        && !job.options.create_on_open
}

/// The layout with the sizes that files which [`fills`] is true for have reached.
///
/// # Errors
/// When there was no room for as much as one block.
pub fn reached(job: &JobPlan, layout: &Layout) -> io::Result<Layout> {
    let size_of = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let reached = layout.reached(job.options.smallest_block(), size_of);
    if reached.files.is_empty() {
        let error = io::Error::from_raw_os_error(libc::ENOSPC);
        return Err(explained(&error, "fill_device: there is no room for one block".into()));
    }
    Ok(reached)
}

/// Makes a worker's files what the job needs. `note` is told what is being laid out, `stop` asked now and then.
pub fn create(
    job: &JobPlan,
    layout: &Layout,
    plan: &WorkerPlan,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let options = &job.options;
    if !job.engine.facets.has_local_files() {
        return Ok(());
    }
    for file in &layout.files {
        if file.kind == FileKind::Regular
            && let Some(parent) = file.path.parent()
            && !parent.as_os_str().is_empty()
        {
            std::fs::create_dir_all(parent).map_err(|error| named(parent, &error))?;
        }
    }
    if options.create_on_open {
        return Ok(());
    }
    let needed: Vec<(&FileLayout, u64)> = layout
        .files
        .iter()
        .filter_map(|file| {
            let size = file.extend_to?;
            let present = std::fs::metadata(&file.path).map_or(0, |metadata| metadata.len());
            (present < size).then_some((file, size))
        })
        .collect();
    if needed.is_empty() {
        return Ok(());
    }
    note(describe(&options.name, &needed));
    let mut content = Content::new(&content::layout_spec(options, layout, plan));
    for (file, size) in needed {
        debug!(target: "file", "{}: made {size} bytes large", file.path.display());
        if stop() {
            break;
        }
        one(options, &file.path, size, &mut content, note, stop)
            .map_err(|error| named(&file.path, &error))?;
    }
    Ok(())
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    explained(error, format!("{}: {}", path.display(), describe_error(error)))
}

fn describe(job: &str, files: &[(&FileLayout, u64)]) -> String {
    let total: u64 = files.iter().map(|(_, size)| size).sum();
    match files.len() {
        1 => format!("{job}: Laying out IO file (1 file / {}MiB)", total >> 20),
        count => format!("{job}: Laying out IO files ({count} files / total {}MiB)", total >> 20),
    }
}

/// Makes or extends one file. What it holds already stays; what is added is random data where the job may read it,
/// and otherwise whatever `fallocate` gives. With `fill_device` the end of the room is as good an end as the size.
fn one(
    options: &JobOptions,
    path: &Path,
    size: u64,
    content: &mut Content,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path)?;
    let metadata = file.metadata()?;
    let present = metadata.len();
    let is_filled = options.rw.reads() || options.overwrite || options.pre_read;
    if is_filled && !options.fill_device {
        // What is reserved behind its end already belongs to the file.
        let held = present.max(metadata.blocks() * 512);
        check_room(&file, size.saturating_sub(held))?;
    }
    // Room that is reserved at once is not found out about by filling it.
    if !options.fill_device {
        preallocate(options.fallocate, &file, size, note, stop)?;
    }
    if is_filled {
        match fill(options, &file, present..size, content, stop) {
            Err(error) if options.fill_device && is_full(&error) => {}
            result => result?,
        }
    }
    if options.create_fsync && !stop() {
        file.sync_all()?;
    }
    Ok(())
}

/// Is there room for so many more bytes? Found out before they are written: a full file system hurts others as well.
fn check_room(file: &File, bytes: u64) -> io::Result<()> {
    match sys::free_bytes(file)? {
        Some(free) if bytes > free => {
            let text = format!(
                "{bytes} more bytes are needed, and the file system has {free} free; use a smaller size, or \
                 fill_device=1 to take what there is"
            );
            Err(explained(&io::Error::from_raw_os_error(libc::ENOSPC), text))
        }
        _ => Ok(()),
    }
}

/// Writes this part of the file.
fn fill(
    options: &JobOptions,
    file: &File,
    part: Range<u64>,
    content: &mut Content,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let block = content::block(options).min(CHUNK);
    let mut buffer = vec![0; CHUNK / block * block];
    let mut at = part.start;
    let mut most = buffer.len() as u64;
    while at < part.end && !stop() {
        let length = (part.end - at).min(most) as usize;
        for (number, block_content) in (0..).zip(buffer[..length].chunks_mut(block)) {
            content.prepare_write(block_content, at + number * block as u64);
        }
        match file.write_all_at(&buffer[..length], at) {
            // There may be room for a part of it still.
            Err(error) if options.fill_device && is_full(&error) && length > block => most = block as u64,
            result => {
                result?;
                at += length as u64;
            }
        }
    }
    Ok(())
}

/// Whether this says that there is no more room.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Gives a file its blocks or its size, as `fallocate` says. That a file system cannot, or has no room for all of
/// it, is no error: the job will find out where the room ends, as it would have anyway. But `posix`, which was asked
/// for by name and always can, says so.
fn preallocate(
    how: Fallocate,
    file: &File,
    size: u64,
    note: &mut dyn FnMut(String),
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let descriptor = file.as_raw_fd();
    let length = size as libc::off_t;
    loop {
        let errno = match how {
            Fallocate::None => 0,
            Fallocate::Truncate => return file.set_len(size),
            // SAFETY: no pointers are involved.
            Fallocate::Posix => unsafe { libc::posix_fallocate(descriptor, 0, length) },
            Fallocate::Native => fallocate(descriptor, 0, length),
            Fallocate::Keep => fallocate(descriptor, libc::FALLOC_FL_KEEP_SIZE, length),
        };
        match errno {
            0 => return Ok(()),
            libc::EINTR if stop() => return Ok(()),
            libc::EINTR => {}
            errno if how == Fallocate::Posix => {
                let error = io::Error::from_raw_os_error(errno);
                note(format!("posix_fallocate fails: {}", describe_error(&error)));
                return Ok(());
            }
            libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENOSPC | libc::EDQUOT | libc::EFBIG => {
                return Ok(());
            }
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// The errno of fallocate(2), 0 for none.
fn fallocate(descriptor: RawFd, mode: libc::c_int, length: libc::off_t) -> libc::c_int {
    // SAFETY: no pointers are involved.
    match unsafe { libc::fallocate(descriptor, mode, 0, length) } {
        0 => 0,
        _ => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_content::Spec;
    use iolite_os::errno_of;

    #[test]
    fn a_file_grows_behind_what_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"precious").unwrap();
        let mut content = Content::new(&Spec::random(1));
        let options = JobOptions::default();
        one(&options, &path, 5000, &mut content, &mut |_| (), &|| false).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 5000);
        assert_eq!(&bytes[..8], b"precious");
        assert!(bytes[8..].iter().any(|&byte| byte != 0));
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
            let options =
                JobOptions { fallocate: how, rw: iolite_options::ReadWrite::Write, ..JobOptions::default() };
            one(&options, &path, 1 << 20, &mut content, &mut |_| (), &|| false).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), expected, "{how:?}");
        }
    }

    #[test]
    fn a_file_too_large_for_posix_fallocate_is_told_and_left_to_the_job() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let options = JobOptions {
            fallocate: Fallocate::Posix,
            rw: iolite_options::ReadWrite::Write,
            ..JobOptions::default()
        };
        let mut notes = Vec::new();
        let mut content = Content::new(&Spec::random(1));
        // Larger than any file can be.
        let mut note = |text| notes.push(text);
        one(&options, &path, i64::MAX as u64, &mut content, &mut note, &|| false).unwrap();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("posix_fallocate fails: "), "{notes:?}");
    }

    #[test]
    fn what_does_not_fit_is_not_begun() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut content = Content::new(&Spec::random(1));
        // More than any file system here has free, less than the largest file.
        let error =
            one(&JobOptions::default(), &path, 1 << 62, &mut content, &mut |_| (), &|| false).unwrap_err();
        assert_eq!(errno_of(&error), libc::ENOSPC);
        assert!(error.to_string().contains("4611686018427387904 more bytes are needed"), "{error}");
        assert_eq!(std::fs::metadata(&path).unwrap().blocks(), 0);
    }

    #[test]
    fn nothing_is_reserved_where_the_device_is_to_be_filled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let options =
            JobOptions { fill_device: true, rw: iolite_options::ReadWrite::Write, ..JobOptions::default() };
        let mut content = Content::new(&Spec::random(1));
        one(&options, &path, 1 << 20, &mut content, &mut |_| (), &|| false).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }
}
