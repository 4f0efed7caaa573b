//! Why a state cannot be loaded.

use crate::state::{StateError, is_state_name};
use std::path::{Path, PathBuf};

/// Why a state cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    State(PathBuf, #[source] StateError),
    /// It does not exist.
    #[error("{path}: there is no such state; {hint}")]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// The state that exists instead, and the remedy.
        hint: String,
    },
    /// It is the state of another job.
    #[error("{path}: is the state of {option}={found}, and the job has {wanted}")]
    Other {
        /// The file.
        path: PathBuf,
        /// The option that differs.
        option: &'static str,
        /// Its value in the state.
        found: String,
        /// Its value in the job.
        wanted: String,
    },
    /// The job's buffers are too small for the blocks that were written.
    #[error("{path}: has writes of {length} bytes, and the job has blocks of {largest}; give it the same bs")]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes of the largest write.
        length: u64,
        /// Bytes of the job's largest block.
        largest: u64,
    },
}

impl LoadError {
    /// The error for a missing state, with the names of other states in its directory.
    pub(crate) fn missing(path: &Path) -> LoadError {
        LoadError::Missing { path: path.to_owned(), hint: hint(path) }
    }
}

/// The remedy for a missing state.
fn hint(path: &Path) -> String {
    /// How many names are listed.
    const MOST: usize = 8;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut others: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_state_name(name.as_ref()))
        .collect();
    if others.is_empty() {
        return format!(
            "there is none of another job in {} either. --aux-path names the directory that the interrupted run kept its \
             state in; a job that has read everything back leaves one only with verify_state_save=1",
            directory.display()
        );
    }
    others.sort();
    let more = if others.len() > MOST { ", …" } else { "" };
    others.truncate(MOST);
    format!(
        "there are those of other jobs: {}{more}. A state is called local-NAME-NUMBER-verify.state: give this job the name \
         of the one that wrote, and as many jobs and clones before it (those that --section leaves out count); `iolite \
         verify-state FILE` tells whose one is",
        others.join(", ")
    )
}
