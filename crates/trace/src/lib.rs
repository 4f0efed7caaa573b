//! I/O traces: recordings of which I/O was done, where and when.
//!
//! There are two kinds: text logs (versions 2 and 3), which name files, and the binary traces of blktrace, which number
//! devices. A [`TraceReader`] reads both as the same stream of [`Record`]s, in memory that does not grow with the
//! trace. An error in a trace names the file and the line or record. Nothing here knows of options or engines.

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

/// The most files and devices that one trace may name. Only their names take memory while a trace is read.
pub const MOST_FILES: usize = 1 << 20;

/// The name of a file in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// A path.
    Path(PathBuf),
    /// The numbers of a device.
    Device {
        /// The major number: the driver.
        major: u32,
        /// The minor number: the device of the driver.
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
    /// The time in nanoseconds. The zero differs between traces, so only differences are meaningful.
    pub time_ns: u64,
    /// The file, as an index into [`TraceReader::files`].
    pub file: u32,
    /// The event.
    pub event: Event,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The trace begins to use the file.
    Add,
    /// The file was opened.
    Open,
    /// The file was closed.
    Close,
    /// Nothing happened until this time.
    Wait,
    /// An I/O was requested. Syncs have no offset and no length.
    Io {
        /// The operation.
        operation: Operation,
        /// The offset in bytes.
        offset: u64,
        /// The length in bytes.
        length: u64,
    },
    /// A request was issued to the device (block traces only).
    Issued,
    /// The device completed or returned a request (block traces only).
    Returned,
}
