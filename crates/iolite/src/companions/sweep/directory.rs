//! Where a sweep keeps what it has: what it is, a report for each point, and the result.
//!
//! A report grows under another name and gets its own when it is complete, so whatever ends the sweep, all that have
//! their names are whole.

use super::Sweep;
use iolite_sweep::Figures;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the sweep is.
const PLAN: &str = "plan.json";

/// The directory of a sweep.
pub struct Directory {
    pub path: PathBuf,
    /// Files that the sweep makes for its jobs, and removes in the end.
    pub files: Vec<PathBuf>,
}

impl Directory {
    /// Makes the directory of a new sweep, or finds what is there of this one.
    pub fn open(path: &Path, sweep: &Sweep) -> Result<Directory, String> {
        let told = |error: std::io::Error| format!("--output={}: {error}", path.display());
        let plan = path.join(PLAN);
        let mut wanted = described(sweep);
        match std::fs::read_to_string(&plan) {
            Ok(text) => {
                let mut found: Value = serde_json::from_str(&text).unwrap_or_default();
                let files = found["files"].take();
                wanted["files"] = Value::Null;
                if found != wanted {
                    return Err(format!(
                        "--output={}: there is another sweep (other options, values or jobs); give another directory, or remove it",
                        path.display()
                    ));
                }
                let files =
                    files.as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from);
                return Ok(Directory { path: path.to_owned(), files: files.collect() });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(told(error)),
        }
        // A sweep that was killed when it began has left nothing but the beginning of its plan.
        let is_begun = |name: &std::ffi::OsStr| name == "plan.json.part";
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_used = entries.into_iter().any(|entry| !is_begun(&entry.file_name()));
        if is_used {
            return Err(format!(
                "--output={}: there are files of others in this directory; give another one",
                path.display()
            ));
        }
        let files = own_files(sweep)?;
        wanted["files"] = files.iter().map(|file| Value::from(file.display().to_string())).collect();
        std::fs::create_dir_all(path).map_err(told)?;
        let directory = Directory { path: path.to_owned(), files };
        directory.write(PLAN, &format!("{wanted:#}\n"))?;
        Ok(directory)
    }

    fn point(&self, number: usize) -> PathBuf {
        self.path.join(format!("point-{number:04}.json"))
    }

    /// Where the report of a point grows.
    pub fn growing(&self, number: usize) -> PathBuf {
        self.path.join(format!("point-{number:04}.json.part"))
    }

    /// Whether a point is there.
    pub fn has(&self, number: usize) -> bool {
        self.point(number).exists()
    }

    /// The report of a point; `None` = it is still to be made.
    pub fn report(&self, number: usize) -> Result<Option<Value>, String> {
        let path = self.point(number);
        match std::fs::read_to_string(&path) {
            Ok(text) => read(&path, &text).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Whether the report of a point that is not complete has any I/O. One of a run that did not begin has none.
    pub fn has_moved(&self, number: usize) -> bool {
        let growing = self.growing(number);
        let report = std::fs::read_to_string(&growing).ok().and_then(|text| read(&growing, &text).ok());
        report.and_then(|report| Figures::of(&report).ok()).is_some_and(|figures| figures.iops > 0.0)
    }

    /// The report of a point is complete.
    pub fn complete(&self, number: usize) -> Result<Value, String> {
        let growing = self.growing(number);
        let told = |error: std::io::Error| format!("{}: {error}", growing.display());
        let report = read(&growing, &std::fs::read_to_string(&growing).map_err(told)?)?;
        std::fs::File::open(&growing).and_then(|file| file.sync_all()).map_err(told)?;
        std::fs::rename(&growing, self.point(number)).map_err(told)?;
        Ok(report)
    }

    /// Removes what there is of a point that is not complete.
    pub fn give_up(&self, number: usize) {
        let _ = std::fs::remove_file(self.growing(number));
    }

    /// Writes a file, whole.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let (growing, path) = (self.path.join(format!("{name}.part")), self.path.join(name));
        let written = std::fs::write(&growing, text).and_then(|()| std::fs::rename(&growing, &path));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Removes the files of the jobs.
    pub fn clean_up(&mut self) {
        self.files.drain(..).for_each(|file| drop(std::fs::remove_file(file)));
    }
}

fn read(path: &Path, text: &str) -> Result<Value, String> {
    iolite_stored::last_report(text).map_err(|error| error.of(&path.display().to_string()))
}

/// What makes the sweep the same when it goes on. (Of its job files, which may have secrets, only a fingerprint.)
fn described(sweep: &Sweep) -> Value {
    let runs: Vec<Value> = sweep
        .runs
        .iter()
        .map(|run| json!({ "values": run.words(), "jobs": format!("{:032x}", xxhash_rust::xxh3::xxh3_128(run.load.text.as_bytes())) }))
        .collect();
    json!({ "format": 1, "sweep": sweep.name, "points": runs, "files": null })
}

/// The files that a preset makes. None of them may be there: it would be overwritten.
fn own_files(sweep: &Sweep) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for run in &sweep.runs {
        for file in run.load.files.iter().filter(|_| sweep.cases[run.case].owns_file(&sweep.axes)) {
            let file = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
            if std::fs::symlink_metadata(&file).is_ok() {
                return Err(format!(
                    "{}: this file is there, and would be overwritten; remove it, or name one with --filename",
                    file.display()
                ));
            }
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}
