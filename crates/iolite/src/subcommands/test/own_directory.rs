//! The directory of a test in its target: everything that the test writes is in there, so nothing else can be lost, and
//! what a killed test has left can be told from everything else.
//!
//! A test holds a lock on a file in its directory. If nobody holds it, the test has been killed. On some file systems, machines
//! do not see the locks of each other; so the file also says which machine made it, and only what was made by this one, since
//! it has started, is removed without being asked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The directories of one kind of test.
#[derive(Debug)]
pub struct Kind {
    /// How their names begin.
    pub prefix: &'static str,
    /// The file in it that shows whose it is, and whether a test is at work.
    pub lock: &'static str,
    /// What is in that file.
    pub words: &'static str,
    /// Whether the test makes files, or directories with all that is in them, of this name.
    pub is_own: fn(&str) -> bool,
}

/// Those of `iolite test`.
pub static OF_TESTS: Kind = Kind {
    prefix: "iolite-test.",
    lock: "iolite-test.lock",
    words: "This directory belongs to a running `iolite test`. If none is running, `iolite test --clean` removes it.\n",
    is_own: |name| name == DATA || name.starts_with(SMALL),
};
/// The file that is read and written.
const DATA: &str = "data";
/// How the names of small files begin.
const SMALL: &str = "small.";

/// The most bytes of what a lock says about its machine.
const MOST_OF_MACHINE: usize = 512;

/// This machine, for people and for comparisons: its name, and the number of its start, which no other machine has.
fn machine() -> String {
    let of = |name: &str| {
        fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
    };
    format!("Machine: {}, started as {}\n", of("hostname"), of("random/boot_id"))
}

/// The directory of a test. It is removed when this value is dropped.
#[derive(Debug)]
pub struct OwnDirectory {
    pub path: PathBuf,
    kind: &'static Kind,
    /// The lock, held while it is open.
    _lock: File,
}

/// A directory that a killed test has left.
pub struct Left {
    pub path: PathBuf,
    kind: &'static Kind,
    /// This machine made it, since it has started; so nobody is at work there.
    is_of_here: bool,
    /// Its lock, so that nobody else removes it at the same time.
    _lock: Option<File>,
}

impl OwnDirectory {
    /// Makes the directory of a test.
    pub fn make(target: &Path, kind: &'static Kind) -> Result<OwnDirectory, String> {
        let mut number = std::process::id();
        loop {
            let path = target.join(format!("{}{number}", kind.prefix));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self::locked(path, kind),
                // A killed test, perhaps of another machine, had the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number = number.wrapping_add(1),
                Err(error) => return Err(told(&path, &error)),
            }
        }
    }

    /// Makes the directory of a test under this name, which others know.
    pub fn make_named(path: PathBuf, kind: &'static Kind) -> Result<OwnDirectory, String> {
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{}: it is there already. {}", path.display(), kind.words.trim_end())
            }
            _ => told(&path, &error),
        })?;
        Self::locked(path, kind)
    }

    /// A new directory, with its lock.
    fn locked(path: PathBuf, kind: &'static Kind) -> Result<OwnDirectory, String> {
        let lock = path.join(kind.lock);
        let made = OpenOptions::new().write(true).create_new(true).open(&lock).and_then(|mut file| {
            // Without locks, only --clean removes what a killed test leaves.
            let _ = iolite_os::files::try_lock(&file);
            file.write_all(format!("{}{}", kind.words, machine()).as_bytes())?;
            Ok(file)
        });
        match made {
            Ok(file) => Ok(OwnDirectory { path, kind, _lock: file }),
            Err(error) => {
                let _ = fs::remove_file(&lock);
                let _ = fs::remove_dir(&path);
                Err(told(&lock, &error))
            }
        }
    }

    /// The file that is read and written.
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// What killed tests have left in a directory.
    pub fn left(target: &Path, kind: &'static Kind) -> Result<Vec<Left>, String> {
        let mut found: Vec<PathBuf> = fs::read_dir(target)
            .map_err(|error| told(target, &error))?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(kind.prefix))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        Ok(found.into_iter().filter_map(|path| Left::at(path, kind)).collect())
    }

    /// Removes what killed tests of this machine have left in a directory. Returns a line about each directory.
    pub fn remove_left(target: &Path, kind: &'static Kind) -> Result<Vec<String>, String> {
        let tell = |left: Left| -> Result<String, String> {
            if left.is_of_here {
                left.remove()?;
                return Ok(format!("{}: removed; a test that was killed had left it", left.path.display()));
            }
            Ok(format!(
                "{}: it stays, because another machine made it, or this one before a restart. {}",
                left.path.display(),
                kind.words.trim_end()
            ))
        };
        Self::left(target, kind)?.into_iter().map(tell).collect()
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next test.
        let _ = remove(&self.path, self.kind);
    }
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {}", path.display(), iolite_types::describe_error(error))
}

impl Left {
    /// A directory that a killed test of this user has left; `None` = it is something else, or a test is at work there.
    fn at(path: PathBuf, kind: &'static Kind) -> Option<Left> {
        let own = fs::symlink_metadata(&path).ok().filter(|found| found.is_dir())?.uid();
        let lock = path.join(kind.lock);
        let found = fs::symlink_metadata(&lock).ok().filter(fs::Metadata::is_file)?;
        let user = fs::metadata("/proc/self").ok()?.uid();
        if own != user || found.uid() != user || found.len() > (kind.words.len() + MOST_OF_MACHINE) as u64 {
            return None;
        }
        let file = OpenOptions::new().read(true).write(true).open(&lock).ok()?;
        let text = fs::read_to_string(&lock).ok()?;
        let is_of_here = text
            .strip_prefix(kind.words)
            .is_some_and(|made_by| made_by == machine() && !made_by.ends_with("as \n"));
        match iolite_os::files::try_lock(&file) {
            Ok(()) => Some(Left { path, kind, is_of_here, _lock: Some(file) }),
            Err(_) => None,
        }
    }

    /// Removes it.
    pub fn remove(&self) -> Result<(), String> {
        remove(&self.path, self.kind).map_err(|error| {
            format!("{}: it cannot be removed: {}", self.path.display(), iolite_types::describe_error(&error))
        })
    }
}

/// Removes the files that a test makes, the lock last, and the directory. Other files, and with them the directory, stay.
fn remove(path: &Path, kind: &Kind) -> io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        if !(kind.is_own)(&entry.file_name().to_string_lossy()) {
            continue;
        }
        // (Links are not followed.)
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    if fs::read_dir(path)?.flatten().all(|entry| entry.file_name() == kind.lock) {
        fs::remove_file(path.join(kind.lock))?;
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_killed_tests_left_is_removed() {
        let target = tempfile::tempdir().unwrap();
        let working = OwnDirectory::make(target.path(), &OF_TESTS).unwrap();
        fs::write(working.data(), "x").unwrap();
        assert!(OwnDirectory::left(target.path(), &OF_TESTS).unwrap().is_empty(), "a test is at work");
        // A killed one.
        let killed = target.path().join("iolite-test.1");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join(DATA), "x").unwrap();
        fs::write(killed.join("small.1"), "").unwrap();
        assert!(
            OwnDirectory::left(target.path(), &OF_TESTS).unwrap().is_empty(),
            "without the lock it is somebody's"
        );
        fs::write(killed.join(OF_TESTS.lock), OF_TESTS.words).unwrap();
        let left = OwnDirectory::left(target.path(), &OF_TESTS).unwrap();
        assert_eq!(left.len(), 1);
        // Files of others stay.
        fs::write(killed.join("thesis"), "x").unwrap();
        assert!(left[0].remove().is_err());
        assert!(killed.join("thesis").exists() && !killed.join(DATA).exists());
        fs::remove_file(killed.join("thesis")).unwrap();
        left[0].remove().unwrap();
        assert!(!killed.exists());
        let path = working.path.clone();
        drop(working);
        assert!(!path.exists());
    }

    #[test]
    fn only_what_this_machine_has_left_is_removed_unasked() {
        let target = tempfile::tempdir().unwrap();
        for (name, made_by) in
            [("1", machine()), ("2", "Machine: other, started as 7\n".to_owned()), ("3", String::new())]
        {
            let path = target.path().join(format!("iolite-test.{name}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(OF_TESTS.lock), format!("{}{made_by}", OF_TESTS.words)).unwrap();
        }
        let told = OwnDirectory::remove_left(target.path(), &OF_TESTS).unwrap();
        assert!(told[0].contains("1: removed") && told[1].contains("2: it stays"), "{told:?}");
        assert!(told[2].contains("--clean"), "{told:?}");
        assert_eq!(OwnDirectory::left(target.path(), &OF_TESTS).unwrap().len(), 2, "--clean removes them");
        let named = OwnDirectory::make_named(target.path().join("iolite-test.2"), &OF_TESTS).unwrap_err();
        assert!(named.contains("there already") && named.contains("--clean"), "{named}");
    }

    #[test]
    fn links_are_not_followed() {
        let target = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join(OF_TESTS.lock), OF_TESTS.words).unwrap();
        fs::write(other.path().join(DATA), "x").unwrap();
        std::os::unix::fs::symlink(other.path(), target.path().join("iolite-test.2")).unwrap();
        assert!(OwnDirectory::left(target.path(), &OF_TESTS).unwrap().is_empty());
    }
}
