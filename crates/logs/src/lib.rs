//! Log files: one entry per I/O, averages over windows, histograms over windows.
//!
//! The formats are fio's (`docs/logs.md` describes them). A worker tells its [`Recorder`] of each I/O; a thread writes.
//! Others who write files beside a running job have a [`Queue`] and a [`Sink`] of their own.
//! [`inflate`] reads compressed logs again, [`HistogramLine`] histograms.

mod decimal;
mod file;
mod histogram;
pub mod inflate;
mod item;
mod kind;
mod line;
mod outlet;
mod packed;
mod queue;
mod recorder;
mod windows;
mod writer;

#[cfg(test)]
mod tests;

pub use histogram::{HistogramLine, MOST_COARSENESS};
pub use item::Io;
pub use kind::LogKind;
pub use line::{Columns, Sample};
pub use outlet::{CalledOff, Outlet};
pub use queue::{Queue, Sink};
pub use recorder::{Recorder, Settings};
pub use windows::WindowValue;

use std::io;
use std::path::Path;

/// How entries are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Form {
    /// As lines, at once.
    Text,
    /// As compressed streams of so many bytes of entries.
    Compressed {
        /// Bytes before they are compressed.
        stream: usize,
    },
    /// As lines, but only at the end: meanwhile compressed in memory.
    Held {
        /// Bytes that are compressed together.
        stream: usize,
    },
}

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct LogError {
    /// The file, or what else could not be had.
    pub what: String,
    /// Why.
    #[source]
    pub error: io::Error,
}

impl LogError {
    /// `what` could not be had or done, for this reason.
    pub fn new(what: &str, error: io::Error) -> LogError {
        LogError { what: what.to_owned(), error }
    }

    fn at(path: &Path, error: io::Error) -> LogError {
        LogError { what: path.display().to_string(), error }
    }
}
