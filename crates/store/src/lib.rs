//! A store of runs: results kept in an SQLite file.
//!
//! SQLite's rollback journal keeps the file consistent whenever a program is killed, and lets several programs use it
//! at once; changes that belong together are one transaction. The journal is preferred to a write-ahead log because it
//! needs no shared memory (home directories may be on NFS), and leaves a single file.
//!
//! A report is kept as compressed text; the values that lists and filters need are stored separately
//! (`sqlite/summary.rs`). The format of the file has a version (`sqlite/schema.rs`). The size of the store is limited
//! (`sqlite/limits.rs`).
//!
//! SQLite is most of what building this takes, so it is a feature of its own, `sqlite`. Without it, stores are still
//! recognised, so that nothing overwrites one, but none can be opened.

mod error;
mod header;
#[cfg(not(feature = "sqlite"))]
mod left_out;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use error::StoreError;
#[cfg(not(feature = "sqlite"))]
pub use left_out::Store;
#[cfg(feature = "sqlite")]
pub use sqlite::Store;

use iolite_types::{RunStatus, is_bidi_control};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another program may use the store before this one gives up.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The most characters of a label.
const LONGEST_LABEL: usize = 200;

/// The values of a run that a list shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its number, which is never reused in the store.
    pub number: i64,
    /// The label; empty = none.
    pub label: String,
    /// When it was kept: milliseconds since 1970.
    pub kept_ms: u64,
    /// When its first job began, or when it was reported: milliseconds since 1970.
    pub began_ms: u64,
    /// The machine; empty = not known.
    pub host: String,
    /// The program that made it.
    pub program: String,
    /// How it ended; `None` = unknown: the report does not say, or was stored by a version without this.
    pub status: Option<RunStatus>,
    /// The names of its jobs, each once.
    pub jobs: Vec<String>,
    /// I/Os per second of all jobs and directions.
    pub iops: f64,
    /// Bytes per second of all jobs and directions.
    pub bandwidth: f64,
    /// Bytes that it takes in the store.
    pub size: u64,
}

impl Run {
    /// The standard test that it is: `pts`.
    pub fn test(&self) -> Option<&str> {
        iolite_stored::test_of_program(&self.program)
    }
}

/// A run has been kept.
#[derive(Debug)]
pub struct Kept {
    /// Its number.
    pub number: i64,
    /// Runs that were dropped because of the limits.
    pub dropped: Vec<Run>,
}

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Compressed bytes of all reports together.
    pub bytes: u64,
    /// The number of runs.
    pub runs: u64,
    /// Days since a run was stored; 0 = no limit.
    pub days: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 1 << 30, runs: 10_000, days: 0 }
    }
}

/// Whether a file is a store of runs, or a store's journal. No other file may replace these.
pub fn is_store(path: &Path) -> bool {
    let holds_runs = |path: &Path| {
        // Opening a pipe would wait for its other end.
        path.metadata().is_ok_and(|found| found.is_file())
            && std::fs::File::open(path).is_ok_and(|file| header::check(file).is_ok_and(|empty| !empty))
    };
    let of_journal = || Some(PathBuf::from(path.to_str()?.strip_suffix("-journal")?));
    holds_runs(path) || of_journal().is_some_and(|path| holds_runs(&path))
}

/// The default place of the store: in the user's data directory. `None` = the environment does not name that directory.
pub fn usual_place(environment: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    // The specification demands that relative names are ignored.
    let absolute = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("iolite/runs.db"))
}

/// Checks that a text can be a label. An empty text means no label.
///
/// # Errors
/// Why not.
pub fn check_label(label: &str) -> std::result::Result<(), String> {
    if label.chars().count() > LONGEST_LABEL {
        return Err(format!("a label has at most {LONGEST_LABEL} characters"));
    }
    if label.chars().any(|c| c.is_control() || is_bidi_control(c)) {
        return Err("a label has no control characters, and none that turn text around".to_owned());
    }
    if label.trim() != label {
        return Err("a label does not begin or end with a blank".to_owned());
    }
    Ok(())
}
