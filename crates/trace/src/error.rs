//! Errors in a trace, with their places.

use std::fmt;
use std::io;

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The trace as a whole.
    Whole,
    /// A line of a text log, from 1.
    Line(u64),
    /// A record of a binary trace, from 1.
    Record(u64),
}

/// The reason why a trace cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub struct TraceError {
    /// The trace's name.
    pub trace: String,
    /// The place in the trace.
    pub place: Place,
    /// The error, and a remedy.
    pub message: String,
    /// The system's error, if the system caused this one.
    #[source]
    pub source: Option<io::Error>,
}

impl TraceError {
    /// An error in the trace itself.
    pub fn new(trace: &str, place: Place, message: impl Into<String>) -> TraceError {
        TraceError { trace: trace.to_owned(), place, message: message.into(), source: None }
    }

    /// Whether this is not a failure: the next record has not arrived yet (see [`crate::WholeRecords`]).
    pub fn is_nothing_yet(&self) -> bool {
        self.source.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// An error of the system while reading or writing the trace.
    pub fn io(trace: &str, place: Place, error: io::Error) -> TraceError {
        TraceError { trace: trace.to_owned(), place, message: error.to_string(), source: Some(error) }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.trace)?;
        match self.place {
            Place::Whole => {}
            Place::Line(line) => write!(f, ":{line}")?,
            Place::Record(record) => write!(f, ": record {record}")?,
        }
        write!(f, ": {}", self.message)
    }
}
