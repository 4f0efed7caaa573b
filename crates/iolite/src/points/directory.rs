//! The directory of runs that belong together: their plan, a report for each, and the result.
//!
//! A report is written under a temporary name and renamed when it is complete, so reports under final names are always
//! complete, whatever interrupts the program. Only one program at a time works in a directory: further ones fail with a
//! message.

use iolite_sweep::Figures;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file that describes the runs.
const PLAN: &str = "plan.json";
/// The file whose lock shows that a program is working here. It is never removed, because that could remove the file of
/// a later program.
const LOCK: &str = ".lock";

/// The directory of runs that belong together.
pub struct Directory {
    pub path: PathBuf,
    /// The description of the runs.
    pub plan: Value,
    /// The lock, held while it is open. `None` = the file system has no locks.
    _lock: Option<File>,
}

impl Directory {
    /// Creates the directory, or opens an existing one with the same plan. `what` names the purpose in messages. Values
    /// that are `null` in the plan are chosen by `fill` for a new directory, and taken from the existing plan
    /// otherwise.
    pub fn open(
        path: &Path,
        what: &str,
        mut plan: Value,
        fill: impl FnOnce(&mut Value) -> Result<(), String>,
    ) -> Result<Directory, String> {
        let told = |error: std::io::Error| format!("--output={}: {error}", path.display());
        let is_there = path.join(PLAN).try_exists().map_err(told)?;
        let mut new = plan.clone();
        if !is_there {
            check_unused(path)?;
            fill(&mut new)?;
            std::fs::create_dir_all(path).map_err(told)?;
        }
        let lock = lock(path)?;
        let found = match std::fs::read_to_string(path.join(PLAN)) {
            Ok(text) => serde_json::from_str::<Value>(&text).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_there => {
                let directory = Directory { path: path.to_owned(), plan: new, _lock: lock };
                directory.keep_plan()?;
                return Ok(directory);
            }
            Err(error) => return Err(told(error)),
        };
        for (key, value) in plan.as_object_mut().into_iter().flatten() {
            if value.is_null() {
                *value = found[key.as_str()].clone();
            }
        }
        if found != plan {
            return Err(format!(
                "--output={}: there is another {what} (other options, values or jobs); give another directory, or remove it",
                path.display()
            ));
        }
        Ok(Directory { path: path.to_owned(), plan, _lock: lock })
    }

    /// Writes the plan.
    pub fn keep_plan(&self) -> Result<(), String> {
        self.write(PLAN, &format!("{:#}\n", self.plan))
    }

    /// The temporary file of a run's report.
    pub fn growing(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.path.join(format!("{name}.part"));
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    fn part(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.part"))
    }

    /// Whether the report of a run exists.
    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// The report of a run; `None` = the run is still to be done.
    pub fn report(&self, name: &str) -> Result<Option<Value>, String> {
        let path = self.path.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => read(&path, &text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Whether an incomplete report has any I/O. The report of a run that did not begin has none.
    pub fn has_moved(&self, name: &str) -> bool {
        let growing = self.part(name);
        let report = std::fs::read_to_string(&growing).ok().and_then(|text| read(&growing, &text).ok());
        report.and_then(|report| Figures::of(&report).ok()).is_some_and(|figures| figures.iops > 0.0)
    }

    /// The text of the report in the temporary file.
    pub fn grown(&self, name: &str) -> Result<String, String> {
        let growing = self.part(name);
        std::fs::read_to_string(&growing).map_err(|error| format!("{}: {error}", growing.display()))
    }

    /// The report of a run is complete.
    pub fn complete(&self, name: &str) -> Result<Value, String> {
        let growing = self.part(name);
        let told = |error: std::io::Error| format!("{}: {error}", growing.display());
        let report = read(&growing, &self.grown(name)?)?;
        File::open(&growing).and_then(|file| file.sync_all()).map_err(told)?;
        std::fs::rename(&growing, self.path.join(name)).map_err(told)?;
        Ok(report)
    }

    /// Removes the incomplete report of a run.
    pub fn give_up(&self, name: &str) {
        let _ = std::fs::remove_file(self.part(name));
    }

    /// Writes a complete file.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let (growing, path) = (self.part(name), self.path.join(name));
        let written = std::fs::write(&growing, text).and_then(|()| std::fs::rename(&growing, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Removes these files, and the directory if it is then empty.
    pub fn remove(self, names: impl IntoIterator<Item = String>) {
        let mut within: Vec<PathBuf> = Vec::new();
        for name in names.into_iter().chain([PLAN.to_owned(), LOCK.to_owned()]) {
            let path = self.path.join(name);
            let _ = std::fs::remove_file(&path);
            within.extend(path.parent().filter(|parent| *parent != self.path).map(Path::to_owned));
        }
        within.dedup();
        // Directories stay if they contain other files.
        within.iter().chain([&self.path]).for_each(|path| drop(std::fs::remove_dir(path)));
    }
}

/// Refuses a directory with other files as a new directory.
fn check_unused(path: &Path) -> Result<(), String> {
    // A run that was killed at its start has left only a part of its plan. (A plan that has appeared since belongs to
    // another program, which holds the lock.)
    let is_begun = |name: &std::ffi::OsStr| name == "plan.json.part" || name == PLAN || name == LOCK;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    if entries.into_iter().any(|entry| !is_begun(&entry.file_name())) {
        return Err(format!(
            "--output={}: there are files of others in this directory; give another one",
            path.display()
        ));
    }
    Ok(())
}

/// Locks the directory against other programs. `None` = the file system has no locks.
fn lock(path: &Path) -> Result<Option<File>, String> {
    let place = path.join(LOCK);
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&place);
    let file = opened.map_err(|error| format!("--output={}: {error}", place.display()))?;
    match iolite_os::files::try_lock(&file) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(format!(
            "--output={}: another program is at work in this directory; wait for its end, or give another directory",
            path.display()
        )),
        Err(_) => Ok(None),
    }
}

fn read(path: &Path, text: &str) -> Result<Value, String> {
    iolite_stored::last_report(text).map_err(|error| error.of(&path.display().to_string()))
}
