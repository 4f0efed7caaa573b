//! Directories in which runs for other machines keep their files until these are sent.
//!
//! The process of a run creates its directory and locks it: the lock lasts until this process and its workers have
//! ended, however they end. So the next agent recognises and removes the directory of a killed agent. Files that a
//! client has not received get another name, and are not removed.

use crate::user;
use iolite_os::files::try_lock;
use iolite_os::process::secret;
use iolite_os::time::monotonic_ns;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The beginning of a directory's name; the process that started the run, and a secret, follow.
const NAME: &str = "iolite-run-";
/// The beginning of the name of a directory with unsent files; the secret follows.
const KEPT: &str = "iolite-logs-";
/// The digits of the secret.
const DIGITS: usize = 16;

/// A new name for the private directory of a run. It is random, so that no one else can create the directory first.
pub fn new() -> PathBuf {
    let (process, secret) = (std::process::id(), secret::<8>().map(u64::from_ne_bytes));
    let secret = secret.unwrap_or_else(|_| monotonic_ns());
    std::env::temp_dir().join(format!("{NAME}{process}-{secret:016x}"))
}

/// Creates the directory of this process's run, for its user only, and locks it until the process has ended.
///
/// # Errors
/// It cannot be created.
pub fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)?;
    // On file systems without locks, no agent can lock the directory later, so none removes it.
    if let Ok(file) = File::open(directory)
        && try_lock(&file).is_ok()
    {
        // Workers inherit the descriptor; started programs do not.
        let _ = file.into_raw_fd();
    }
    Ok(())
}

/// Removes the directory of a run. If `keeps` is true and its files have data, they stay, under the returned name.
pub(crate) fn end(directory: &Path, keeps: bool) -> Option<PathBuf> {
    if keeps && has_data(directory) {
        let secret = directory.file_name()?.to_str()?.rsplit('-').next()?.to_owned();
        let kept = directory.with_file_name(format!("{KEPT}{secret}"));
        return Some(fs::rename(directory, &kept).map_or_else(|_| directory.to_owned(), |()| kept));
    }
    // The directory may not exist.
    let _ = fs::remove_dir_all(directory);
    None
}

/// Whether there is a file with data.
fn has_data(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let has_data = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => has_data(&path),
        Ok(found) => found.len() > 0,
        Err(_) => false,
    };
    entries.map(|entry| entry.path()).any(has_data)
}

/// Removes the directories of runs whose processes and agent are gone. Returns their names.
pub fn remove_dead() -> Vec<PathBuf> {
    remove_dead_in(&std::env::temp_dir())
}

fn remove_dead_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.map(|entry| entry.path());
    found.filter(|path| is_dead(path) && fs::remove_dir_all(path).is_ok()).collect()
}

/// Whether this is the directory of a run, of this user, which no living process needs.
fn is_dead(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(NAME));
    let Some((process, secret)) = name.and_then(|name| name.split_once('-')) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_secret = secret.len() == DIGITS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_own = |found: &fs::Metadata| found.is_dir() && found.uid() == user::own();
    if !is_number(process) || !is_secret || !fs::symlink_metadata(path).is_ok_and(|found| is_own(&found)) {
        return false;
    }
    // While the process that started the run is alive, it removes the directory itself. In a container, the next agent
    // may have the same number.
    let is_alive = process != std::process::id().to_string() && Path::new("/proc").join(process).exists();
    // The lock also shows processes without a number here, such as those of another container.
    !is_alive && File::open(path).is_ok_and(|file| try_lock(&file).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_dead_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        // The number of a process that has ended.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let make = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("x.log"), "1").unwrap();
            path
        };
        let dead = make(&format!("{NAME}{}-0123456789abcdef", ended.id()));
        let locked = make(&format!("{NAME}{}-0123456789abcde0", ended.id()));
        let lock = File::open(&locked).unwrap();
        try_lock(&lock).unwrap();
        let others = [
            make(&format!("{NAME}1-0123456789abcdef")),
            make(&format!("{KEPT}0123456789abcdef")),
            make(&format!("{NAME}{}-0123", ended.id())),
            make(&format!("{NAME}x-0123456789abcdef")),
        ];
        let link = dir.path().join(format!("{NAME}{}-0123456789abcdee", ended.id()));
        std::os::unix::fs::symlink(&others[1], &link).unwrap();
        assert_eq!(remove_dead_in(dir.path()), [dead.as_path()]);
        assert!(!dead.exists() && locked.exists() && link.exists());
        assert!(others.iter().all(|other| other.join("x.log").exists()));
        drop(lock);
        // A process that another test has just started may have the lock open for a moment.
        let removed =
            std::iter::repeat_with(|| remove_dead_in(dir.path())).find(|removed| !removed.is_empty());
        assert_eq!(removed, Some(vec![locked]));
    }

    #[test]
    fn a_run_locks_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(try_lock(&File::open(&path).unwrap()).is_err());
        assert!(make(&path).is_err());
    }

    #[test]
    fn files_with_something_in_them_stay() {
        let dir = tempfile::tempdir().unwrap();
        let run = |number: u32| dir.path().join(format!("{NAME}7-{number:016x}"));
        for (number, data, keeps) in [(1, None, true), (2, Some(""), true), (3, Some("1"), false)] {
            fs::create_dir_all(run(number).join("logs")).unwrap();
            data.iter().for_each(|data| fs::write(run(number).join("logs/x.log"), data).unwrap());
            assert_eq!(end(&run(number), keeps), None);
            assert!(!run(number).exists());
        }
        fs::create_dir_all(run(4).join("logs")).unwrap();
        fs::write(run(4).join("logs/x.log"), "1").unwrap();
        let kept = end(&run(4), true).unwrap();
        assert_eq!(kept, dir.path().join(format!("{KEPT}{:016x}", 4)));
        assert!(kept.join("logs/x.log").exists() && !run(4).exists());
        assert_eq!(end(&run(5), true), None);
    }
}
