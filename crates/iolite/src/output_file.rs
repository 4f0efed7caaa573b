//! The file that a report goes to (`--output`).
//!
//! An existing report is replaced atomically: however the run ends, the old report stays until the new one is complete.
//! Until then the new one grows in a file next to it, whose name ends in `.unfinished`. A reader that follows that file
//! (`tail -f`) sees all of it, because it is renamed to the final name. If a file of that name exists (the user's, or
//! left by a killed run), it is kept, and the new name gets a number. If the file is empty or did not exist, the report
//! grows in the file itself. If the run is refused, a file that did not exist is removed.

use iolite_os::files;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How many names to try for the file next to the report.
const MOST_BESIDE: u32 = 100;

/// The suffix of an incomplete file.
const UNFINISHED: &str = ".unfinished";

/// The file next to this one in which its new content grows. (Links are followed first.)
pub fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(std::fs::canonicalize(path).as_deref().unwrap_or(path));
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// A file that a report goes to.
#[derive(Debug)]
pub struct Destination {
    way: Way,
}

/// How the report gets into the file.
#[derive(Debug)]
enum Way {
    /// It grows in the file itself. `made`: the path of the file, if it did not exist before.
    InPlace { file: File, is_fresh: bool, made: Option<PathBuf> },
    /// It grows in a file next to it, which replaces it at the end.
    Beside { file: File, path: PathBuf, target: PathBuf },
    /// The file cannot be replaced (its directory is not writable, it has several names, or it belongs to another
    /// user). The report grows in memory.
    Held { file: File, report: Vec<u8> },
    /// The report is complete.
    Complete,
}

impl Destination {
    /// Opens the file without changing its content.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or is a store of runs, which would be lost.
    pub fn open(path: &Path) -> io::Result<Destination> {
        if iolite_store::is_store(path) {
            return Err(io::Error::other("that is a store of runs, which would be lost; give another name"));
        }
        let (file, made) = match OpenOptions::new().write(true).create_new(true).open(path) {
            // (A link may lead to a file that does not exist.)
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).create(true).truncate(false).open(path)?, None)
            }
            made => (made?, Some(path.to_owned())),
        };
        let found = file.metadata()?;
        // Names such as /dev/stdout are open files of the caller, who is responsible for them.
        let is_foreign = path.starts_with("/dev") || path.starts_with("/proc");
        let way = if !found.is_file() || found.len() == 0 || is_foreign {
            Way::InPlace { file, is_fresh: true, made }
        } else {
            replacement(path, &found).unwrap_or(Way::Held { file, report: Vec::new() })
        };
        Ok(Destination { way })
    }

    /// Adds a part of the report.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(
        &mut self,
        part: &[u8],
        write: impl Fn(&mut dyn Write, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match &mut self.way {
            Way::InPlace { file, is_fresh, .. } => {
                if std::mem::take(is_fresh) && file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                write(file, part)
            }
            Way::Beside { file, .. } => write(file, part),
            Way::Held { report, .. } => {
                report.extend_from_slice(part);
                Ok(())
            }
            Way::Complete => Ok(()),
        }
    }

    /// The report is complete: replaces the content of the file.
    ///
    /// # Errors
    /// It cannot be replaced. Then it is unchanged.
    pub fn complete(&mut self) -> io::Result<()> {
        match &mut self.way {
            Way::InPlace { .. } | Way::Complete => Ok(()),
            Way::Beside { file, path, target } => {
                // Some file systems report only now that they are full; and a power failure must not leave an empty
                // file.
                file.sync_data()?;
                std::fs::rename(path, target)
            }
            Way::Held { file, report } => overwrite(file, report),
        }?;
        self.way = Way::Complete;
        Ok(())
    }

    /// The file in which the report grows, with a common offset; `None` = it does not grow in a file.
    pub fn share(&self) -> Option<File> {
        match &self.way {
            Way::InPlace { file, .. } | Way::Beside { file, .. } => file.try_clone().ok(),
            Way::Held { .. } | Way::Complete => None,
        }
    }

    /// Whether the file still has its old report.
    pub fn keeps_old(&self) -> bool {
        matches!(self.way, Way::Beside { .. } | Way::Held { .. })
    }
}

impl Drop for Destination {
    /// A run that could not begin has no report.
    fn drop(&mut self) {
        let path = match &self.way {
            // If it cannot be removed, the next run uses it.
            Way::Beside { path, .. } => path,
            Way::InPlace { file, is_fresh: true, made: Some(path) }
                if file.metadata().is_ok_and(|found| found.len() == 0) =>
            {
                path
            }
            _ => return,
        };
        let _ = std::fs::remove_file(path);
    }
}

/// A file that can replace the one at this path; `None` = not possible.
fn replacement(path: &Path, old: &std::fs::Metadata) -> Option<Way> {
    if old.nlink() > 1 {
        return None;
    }
    let target = std::fs::canonicalize(path).ok()?;
    let (file, path) = new_file(&beside(path))?;
    let new = file.metadata().ok()?;
    let is_alike = (new.uid(), new.gid()) == (old.uid(), old.gid());
    if !is_alike || file.set_permissions(std::fs::Permissions::from_mode(old.mode())).is_err() {
        let _ = std::fs::remove_file(&path);
        return None;
    }
    Some(Way::Beside { file, path, target })
}

/// Creates a file with this name or, if it exists, with a number appended.
fn new_file(path: &Path) -> Option<(File, PathBuf)> {
    for number in 0..MOST_BESIDE {
        let mut name = OsString::from(path);
        if number > 0 {
            name.push(format!(".{number}"));
        }
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Ok(file) => return Some((file, name.into())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Replaces the content of a file. If there is no room for the new content, the old content stays.
fn overwrite(file: &mut File, report: &[u8]) -> io::Result<()> {
    match files::reserve(file, report.len() as u64) {
        // Not every file system supports that.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
        _ => {}
    }
    file.write_all(report)?;
    file.set_len(report.len() as u64)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(to: &mut Destination, part: &str) {
        to.write(part.as_bytes(), |file, part| file.write_all(part)).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_old_report_is_kept_until_the_new_one_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        fs::write(&path, "a long old report").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut to = Destination::open(&path).unwrap();
        write(&mut to, "new");
        write(&mut to, "er");
        assert_eq!(fs::read_to_string(&path).unwrap(), "a long old report");
        // A reader such as tail(1) keeps the file open.
        let mut followed = File::open(beside(&path)).unwrap();
        to.complete().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["report"]);
        assert_eq!(io::read_to_string(&mut followed).unwrap(), "newer");
    }

    #[test]
    fn a_new_report_grows_where_it_belongs() {
        let directory = tempfile::tempdir().unwrap();
        for begin in [None, Some("")] {
            let path = directory.path().join("report");
            begin.map_or(Ok(()), |text| fs::write(&path, text)).unwrap();
            let mut to = Destination::open(&path).unwrap();
            write(&mut to, "new");
            assert_eq!(fs::read_to_string(&path).unwrap(), "new");
            to.complete().unwrap();
            assert_eq!(names(directory.path()), ["report"]);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_run_without_a_report_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        fs::write(&path, "old").unwrap();
        let mut to = Destination::open(&path).unwrap();
        write(&mut to, "the beginning of");
        drop(to);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["report"]);
        fs::write(directory.path().join("empty"), "").unwrap();
        for name in ["new", "empty"] {
            drop(Destination::open(&directory.path().join(name)).unwrap());
        }
        assert_eq!(names(directory.path()), ["empty", "report"]);
        let mut to = Destination::open(&directory.path().join("begun")).unwrap();
        write(&mut to, "the beginning of");
        drop(to);
        assert_eq!(names(directory.path()), ["begun", "empty", "report"]);
    }

    #[test]
    fn links_stay_links_and_a_file_that_is_there_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("reports")).unwrap();
        fs::write(path("reports/first"), "old").unwrap();
        fs::write(path("reports/first.unfinished"), "somebody's").unwrap();
        std::os::unix::fs::symlink("reports/first", path("latest")).unwrap();
        let mut to = Destination::open(&path("latest")).unwrap();
        write(&mut to, "new");
        assert_eq!(fs::read_to_string(path("reports/first.unfinished.1")).unwrap(), "new");
        to.complete().unwrap();
        assert!(fs::symlink_metadata(path("latest")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(path("reports/first")).unwrap(), "new");
        assert_eq!(names(&path("reports")), ["first", "first.unfinished"]);
        assert_eq!(fs::read_to_string(path("reports/first.unfinished")).unwrap(), "somebody's");
    }

    #[test]
    fn reports_that_cannot_be_replaced_are_overwritten_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let old = "old, and longer than what follows";
        fs::write(path("report"), old).unwrap();
        // All names next to it are taken; and the report has a second name.
        fs::write(path("report.unfinished"), "").unwrap();
        (1..MOST_BESIDE).for_each(|n| fs::write(path(&format!("report.unfinished.{n}")), "").unwrap());
        fs::write(path("one"), old).unwrap();
        fs::hard_link(path("one"), path("two")).unwrap();
        for name in ["report", "one"] {
            let mut to = Destination::open(&path(name)).unwrap();
            write(&mut to, "new");
            assert_eq!(fs::read_to_string(path(name)).unwrap(), old);
            to.complete().unwrap();
            assert_eq!(fs::read_to_string(path(name)).unwrap(), "new");
        }
        assert_eq!(fs::read_to_string(path("two")).unwrap(), "new");
    }

    #[test]
    fn a_device_gets_the_report_as_it_is_written() {
        let mut to = Destination::open(Path::new("/dev/full")).unwrap();
        let error = to.write(b"new", |file, part| file.write_all(part)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert!(!to.keeps_old());
    }
}
