//! The directory of runs that belong together: their plan, a report for each, and the result.
//!
//! A report is written under a temporary name and renamed when it is complete, so reports under final names are always
//! complete, whatever interrupts the program. Only one program at a time works in a directory: further ones fail with a
//! message.

use crate::saving;
use iolite_report::clock;
use iolite_sweep::Figures;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that describes the runs.
const PLAN: &str = "plan.json";
/// The file whose lock shows that a program is working here. It is removed only with the whole directory, by the program
/// that holds its lock; who waited for that lock opens the file anew.
const LOCK: &str = ".lock";
/// Keys of the plan: when the runs began, and when all were done, in milliseconds since 1970.
const BEGUN: &str = "begun_ms";
const FINISHED: &str = "finished_ms";

/// Where the directory is to be.
pub enum Place {
    /// The user has named it.
    Named(PathBuf),
    /// The usual name. If there are other or finished runs, numbers are added to it: `job-2.sweep`.
    Usual(PathBuf),
}

/// The directory of runs that belong together.
pub struct Directory {
    pub path: PathBuf,
    /// The description of the runs.
    pub plan: Value,
    /// When the runs that are continued here began, in milliseconds since 1970; `None` = they begin now.
    pub begun_before: Option<u64>,
    /// The lock, held while it is open. `None` = the file system has no locks.
    _lock: Option<File>,
}

/// Why a directory cannot be used.
enum Refusal {
    /// It has other runs, or finished ones; another name may do.
    Taken(String),
    Failed(String),
}

impl Directory {
    /// Creates the directory, or opens one in which the same runs were interrupted. `what` names the purpose in
    /// messages. Values that are `null` in the plan are chosen by `fill` for a new directory, and taken from the
    /// existing plan otherwise.
    pub fn open(
        place: Place,
        what: &str,
        mut plan: Value,
        fill: &dyn Fn(&mut Value) -> Result<(), String>,
    ) -> Result<Directory, String> {
        (plan[BEGUN], plan[FINISHED]) = (Value::Null, Value::Null);
        let told = |refusal| match refusal {
            Refusal::Taken(why) | Refusal::Failed(why) => why,
        };
        let usual = match place {
            Place::Named(path) => return Self::at(&path, what, &plan, fill).map_err(told),
            Place::Usual(path) => path,
        };
        let mut number = 1;
        let mut path = usual.clone();
        loop {
            match Self::at(&path, what, &plan, fill) {
                Err(Refusal::Taken(_)) => {
                    number += 1;
                    path = numbered(&usual, number);
                }
                opened => return opened.map_err(told),
            }
        }
    }

    /// Opens a directory in which the same runs were interrupted, under the named place or under the usual name with any
    /// number. It never makes one.
    pub fn resume(place: Place, what: &str, mut plan: Value) -> Result<Directory, String> {
        /// More numbers than anyone has.
        const NUMBERS: u32 = 999;
        (plan[BEGUN], plan[FINISHED]) = (Value::Null, Value::Null);
        let (usual, numbers) = match place {
            Place::Named(path) => (path, 1),
            Place::Usual(path) => (path, NUMBERS),
        };
        let mut refusals = Vec::new();
        for number in 1..=numbers {
            let path = if number == 1 { usual.clone() } else { numbered(&usual, number) };
            if !path.join(PLAN).exists() {
                continue;
            }
            match Self::at(&path, what, &plan, &|_| Ok(())) {
                Ok(directory) if directory.begun_before.is_some() => return Ok(directory),
                Ok(_) => refusals.push(format!("{}: its plan does not say when it began", path.display())),
                Err(Refusal::Failed(why)) => return Err(why),
                Err(Refusal::Taken(why)) => {
                    let found = std::fs::read_to_string(path.join(PLAN)).unwrap_or_default();
                    let found: Value = serde_json::from_str(&found).unwrap_or_default();
                    refusals.push(match difference(&found, &plan, "") {
                        Some(difference) => format!("{} is another one: {difference}", path.display()),
                        None => why,
                    });
                }
            }
        }
        if refusals.is_empty() {
            return Err(format!(
                "--resume: {}: there is no procedure that was interrupted; name its directory with --output",
                usual.display()
            ));
        }
        Err(format!(
            "--resume: there is no procedure that was interrupted and has these options; nothing was begun: {}",
            refusals.join("; ")
        ))
    }

    fn at(
        path: &Path,
        what: &str,
        plan: &Value,
        fill: &dyn Fn(&mut Value) -> Result<(), String>,
    ) -> Result<Directory, Refusal> {
        let told = |error: std::io::Error| Refusal::Failed(format!("--output={}: {error}", path.display()));
        let taken = |why: String| Refusal::Taken(format!("--output={}: {why}", path.display()));
        let mut plan = plan.clone();
        let is_there = path.join(PLAN).try_exists().map_err(told)?;
        if !is_there {
            if has_other_files(path) {
                return Err(taken(
                    "there are files of others in this directory; give another one".to_owned(),
                ));
            }
            fill(&mut plan).map_err(Refusal::Failed)?;
            plan[BEGUN] = saving::now_ms().into();
            std::fs::create_dir_all(path).map_err(told)?;
        }
        let lock = lock(path).map_err(Refusal::Failed)?;
        let found = match std::fs::read_to_string(path.join(PLAN)) {
            Ok(text) => serde_json::from_str::<Value>(&text).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_there => {
                let directory = Directory { path: path.to_owned(), plan, begun_before: None, _lock: lock };
                directory.keep_plan().map_err(Refusal::Failed)?;
                return Ok(directory);
            }
            Err(error) => return Err(told(error)),
        };
        for (key, value) in plan.as_object_mut().into_iter().flatten() {
            if value.is_null() || key == BEGUN {
                *value = found[key.as_str()].clone();
            }
        }
        if found != plan {
            return Err(taken(format!(
                "there is another {what} (other options, values or jobs); give another directory, or remove it"
            )));
        }
        if let Some(finished) = plan[FINISHED].as_u64() {
            return Err(taken(format!(
                "this {what} was finished at {}, and its results are there; to measure again, give another directory, \
                 or remove it",
                clock::minute(finished)
            )));
        }
        let begun_before = plan[BEGUN].as_u64();
        Ok(Directory { path: path.to_owned(), plan, begun_before, _lock: lock })
    }

    /// All runs are done: from now on, the same command is not continued here.
    pub fn finish(&mut self) -> Result<(), String> {
        self.plan[FINISHED] = saving::now_ms().into();
        self.keep_plan()
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
        settle(&growing, &self.path.join(name)).map_err(told)?;
        Ok(report)
    }

    /// Removes the incomplete report of a run.
    pub fn give_up(&self, name: &str) {
        let _ = std::fs::remove_file(self.part(name));
    }

    /// Writes a complete file. A kill, a full disk or a loss of power leaves either the old file or the new one.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let (growing, path) = (self.growing(name)?, self.path.join(name));
        let written = std::fs::write(&growing, text).and_then(|()| settle(&growing, &path));
        written.map_err(|error| {
            let _ = std::fs::remove_file(&growing);
            format!("{}: {error}", path.display())
        })
    }

    /// Removes these files, and the directory if it is then empty.
    pub fn remove(&self, names: impl IntoIterator<Item = String>) {
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

/// The first value in which the plan of a directory differs from another one. Values that are `null` do not count.
fn difference(found: &Value, plan: &Value, name: &str) -> Option<String> {
    match plan {
        Value::Null => None,
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            difference(&found[key.as_str()], value, &name)
        }),
        _ if found == plan => None,
        _ => Some(format!("{name} is {found} there and {plan} now")),
    }
}

/// A name with a number: `job-2.sweep`.
fn numbered(usual: &Path, number: u32) -> PathBuf {
    let mut name = usual.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(ending) = usual.extension() {
        name.push(".");
        name.push(ending);
    }
    usual.with_file_name(name)
}

/// Whether a directory without a plan has files of others.
fn has_other_files(path: &Path) -> bool {
    // A run that was killed at its start has left only a part of its plan. (A plan that has appeared since belongs to
    // another program, which holds the lock.)
    let is_begun = |name: &std::ffi::OsStr| name == "plan.json.part" || name == PLAN || name == LOCK;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| !is_begun(&entry.file_name()))
}

/// Locks the directory against other programs. `None` = the file system has no locks.
fn lock(path: &Path) -> Result<Option<File>, String> {
    let place = path.join(LOCK);
    let failed = |error: std::io::Error| format!("--output={}: {error}", place.display());
    loop {
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&place).map_err(failed)?;
        match iolite_os::files::try_lock(&file) {
            // Another program may have removed the file since it was opened.
            Ok(()) if is_at(&file, &place) => return Ok(Some(file)),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(format!(
                    "--output={}: another program is at work in this directory; wait for its end, or give another \
                     directory",
                    path.display()
                ));
            }
            Err(_) => return Ok(None),
        }
    }
}

/// Gives a complete file its final name, durably.
fn settle(growing: &Path, path: &Path) -> std::io::Result<()> {
    File::open(growing)?.sync_all()?;
    std::fs::rename(growing, path)?;
    let Some(directory) = path.parent() else { return Ok(()) };
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        // Some file systems cannot sync directories.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => Ok(()),
    }
}

/// Whether this open file is the one with this name.
fn is_at(file: &File, name: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let open = file.metadata().map(identity);
    open.is_ok_and(|open| std::fs::metadata(name).map(identity).is_ok_and(|named| named == open))
}

fn read(path: &Path, text: &str) -> Result<Value, String> {
    iolite_stored::last_report(text).map_err(|error| error.of(&path.display().to_string()))
}
