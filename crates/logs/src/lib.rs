//! Log files: one entry per I/O, averages over windows, histograms over windows.
//!
//! The formats are those of fio (`docs/logs.md` describes them). A worker reports each I/O to its [`Recorder`], and a
//! thread writes the files. Other code that writes files beside a running job uses a [`Queue`] with another [`Sink`].
//! [`reading`] reads logs: their names, lines and entries; [`HistogramLine`] parses lines of histograms, and
//! [`inflate`] decompresses logs.
//!
//! The worker's side is `recorder.rs`; `queue.rs` leads to the thread that writes (`writer.rs`), whose lines are made in `line.rs` and
//! `histogram.rs`.

mod asked;
mod decimal;
mod file;
mod grid;
mod histogram;
pub mod inflate;
mod item;
mod job;
mod kind;
mod line;
mod outlet;
mod packed;
mod queue;
pub mod reading;
mod recorder;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

pub use asked::Demand;
pub use histogram::{HistogramLine, MOST_COARSENESS, percentile};
pub use item::Io;
pub use job::{Job, JobSigns};
pub use kind::LogKind;
pub use line::{Columns, Sample};
pub use outlet::Outlet;
pub use queue::{Queue, Sink};
pub use recorder::{Recorder, Settings};
pub use windows::WindowValue;

use std::io;
use std::path::Path;

/// How entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// Write lines while the job runs.
    Text,
    /// Write compressed streams.
    Compressed {
        /// Bytes of entries in a stream, before compression.
        stream: usize,
    },
    /// Hold compressed streams in memory, and write them as lines at the end.
    Held {
        /// Bytes of entries in a stream, before compression.
        stream: usize,
    },
}

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct LogError {
    /// The file, or another resource that failed.
    pub what: String,
    /// The reason.
    #[source]
    pub error: io::Error,
}

impl LogError {
    /// The failure of `what` for this reason.
    pub fn new(what: &str, error: io::Error) -> LogError {
        LogError { what: what.to_owned(), error }
    }

    fn at(path: &Path, error: io::Error) -> LogError {
        LogError { what: path.display().to_string(), error }
    }
}
