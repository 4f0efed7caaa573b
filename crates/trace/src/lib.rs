//! I/O traces: which I/O was done, where and when.
//!
//! There are two kinds: text logs (versions 2 and 3), which name files, and the binary traces of blktrace, which
//! number devices. Both are read as the same stream of [`Record`]s by a [`TraceReader`], one after the other and in
//! memory that does not grow with the trace. What is wrong in a trace is an error that names file and line or record.
//! Nothing here knows of options or engines.

#![forbid(unsafe_code)]

pub mod blk;
mod error;
mod mapping;
mod merge;
mod reader;
mod scan;
mod source;
pub mod summary;
mod text;
mod whole;
mod writer;

pub use error::{Place, TraceError};
pub use mapping::{Kinds, Mapping};
pub use merge::{Merge, MergeInput, merge};
pub use reader::{Format, TraceReader};
pub use scan::{Blocks, Scan, ScannedFile, scan};
pub use source::{is_stream, open};
pub use text::{TextReader, TextVersion};
pub use whole::WholeRecords;
pub use writer::TextWriter;

use iolite_types::Operation;
use std::fmt;
use std::path::PathBuf;

/// Most files and devices that one trace may name. Names are the only thing that is kept while a trace is read.
pub const MOST_FILES: usize = 1 << 20;

/// What a trace calls a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// By its path.
    Path(PathBuf),
    /// By the numbers of a device.
    Device {
        /// The driver.
        major: u32,
        /// Which of the driver's devices.
        minor: u32,
    },
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileName::Path(path) => write!(f, "{}", path.display()),
            FileName::Device { major, minor } => write!(f, "{major}:{minor}"),
        }
    }
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds. Where zero is differs between traces; only differences count.
    pub time_ns: u64,
    /// Which file, as a place in [`TraceReader::files`].
    pub file: u32,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The file is one of those that the trace uses.
    Add,
    /// It was opened.
    Open,
    /// It was closed.
    Close,
    /// Nothing, until this time.
    Wait,
    /// An I/O was asked for. Syncs have no offset and no length.
    Io {
        /// What.
        operation: Operation,
        /// Where, in bytes.
        offset: u64,
        /// How much, in bytes.
        length: u64,
    },
    /// The device was given a request (block traces only).
    Issued,
    /// The device was relieved of a request: it is done, or was given back (block traces only).
    Returned,
}
