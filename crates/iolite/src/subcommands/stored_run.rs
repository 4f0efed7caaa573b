//! Runs of the store, as they are named on command lines: `12`, `run:12`, `run:12,14-18`, `label:NAME`.

use crate::saving;
use iolite_options::commands::Asked;
use iolite_store::{Run, Store};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The most runs in a range.
const MOST_RUNS: i64 = 10_000;

/// The store of a command.
pub struct Opened {
    /// Its file.
    pub path: PathBuf,
    /// All its runs, the oldest first.
    pub runs: Vec<Run>,
    store: Option<Store>,
}

impl Opened {
    /// Opens the store that the command names with `--store`. A missing store has no runs.
    pub fn of(asked: &Asked) -> Result<Opened, String> {
        let path = saving::place(asked.value("store").map(Path::new))?;
        let told = |error: iolite_store::StoreError| format!("{}: {error}", path.display());
        let store = Store::open_existing(&path).map_err(told)?;
        let runs = store.as_ref().map_or(Ok(Vec::new()), Store::runs).map_err(told)?;
        Ok(Opened { path, runs, store })
    }

    /// An error of the store, with the name of its file.
    pub fn told(&self, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.path.display())
    }

    /// The store, for changes.
    pub fn store(&mut self) -> Result<&mut Store, String> {
        let missing = self.missing();
        self.store.as_mut().ok_or(missing)
    }

    /// The error for a store that does not exist.
    fn missing(&self) -> String {
        self.told(&"there is no store yet (--save makes it)")
    }

    /// The error for runs that are not there.
    fn none(&self, why: &dyn std::fmt::Display) -> String {
        if self.store.is_some() { self.told(why) } else { self.missing() }
    }

    /// The report of a run.
    pub fn report(&self, run: &Run) -> Result<String, String> {
        let report = self.store.as_ref().map_or(Ok(None), |store| store.report(run.number));
        let report = report.map_err(|error| self.told(&error))?;
        // Another program may have removed it meanwhile.
        report.ok_or_else(|| self.told(&format_args!("there is no run {}", run.number)))
    }

    /// The runs that a word names, the oldest first.
    pub fn named(&self, word: &str) -> Result<Vec<&Run>, String> {
        if let Some(label) = word.strip_prefix("label:") {
            let found: Vec<&Run> =
                self.runs.iter().filter(|run| run.label == label && !label.is_empty()).collect();
            if found.is_empty() {
                return Err(self.none(&format_args!("there is no run with the label {label:?}")));
            }
            return Ok(found);
        }
        let list = word.strip_prefix("run:").unwrap_or(word);
        let bad = || {
            format!(
                "{word:?} is not a run of a store: 12, run:12,14-18 or label:NAME (iolite runs lists them)"
            )
        };
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number > 0);
        let mut found = Vec::new();
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
            if last < first || last - first >= MOST_RUNS {
                return Err(bad());
            }
            let before = found.len();
            found.extend(self.runs.iter().filter(|run| (first..=last).contains(&run.number)));
            if found.len() == before {
                return Err(self.none(&format_args!("there is no run {part}")));
            }
        }
        found.sort_by_key(|run| run.number);
        found.dedup_by_key(|run| run.number);
        Ok(found)
    }
}

/// Whether a word names runs of a store, rather than files. (A file of such a name is `./run:12`.)
pub fn is_kept(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("run:") || word.starts_with("label:"))
}
