//! What happens in a run, as a stream of values: whoever shows, stores or forwards a run reads the same one.

use crate::{JobError, Report, Snapshot};
use serde::{Deserialize, Serialize};

/// The version of the serialised form of [`Event`], [`Snapshot`] and [`Report`]. It grows when a reader of the form
/// before could misunderstand the new one.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened in a run. Events come in the order in which the controller learnt of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_VERSION`] of the program that tells it.
    pub version: u32,
    /// The machine that it happened on; `None` = this one. Whoever forwards events to another machine fills it in.
    pub host: Option<String>,
    /// Nanoseconds since the run began.
    pub at_ns: u64,
    /// Where it happened; `None` = in the run as a whole.
    pub source: Option<Source>,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// Something that happened on this machine.
    pub fn new(at_ns: u64, source: Option<Source>, kind: EventKind) -> Event {
        Event { version: EVENT_VERSION, host: None, at_ns, source, kind }
    }
}

/// The worker in which something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The name of its job.
    pub job: String,
    /// Its number in the run, from 0.
    pub worker: u32,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EventKind {
    /// A line for the report's reader: "a: Laying out IO file (1 file / 1MiB)".
    Note(String),
    /// Something is suspicious or other than expected, and nothing has failed.
    Warning(String),
    /// Something went wrong: in one I/O or file, or in the run.
    Trouble(String),
    /// Data that was checked is not what was written: a report of several lines.
    WrongData(String),
    /// A worker ended with an error.
    Failed {
        /// Its process or thread.
        pid: i32,
        /// What failed.
        error: JobError,
    },
    /// Where the run stands, for the status line.
    Snapshot(Box<Snapshot>),
    /// Where the run stands, for its series: at even intervals, with latencies.
    Sample(Box<Snapshot>),
    /// A full report on the way, because somebody asked for it.
    Status(Box<Report>),
    /// A slice of the run is over; the report is of everything so far.
    Slice(Box<Report>),
    /// This signal ends the run.
    Terminating(i32),
    /// Everything is set up, and waits for the moment at which it may begin.
    Ready,
    /// The I/O has begun, so many nanoseconds after the moment that was given for it.
    Started(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_travel_as_text() {
        let kinds = [
            EventKind::Note("a: Laying out IO file (1 file / 1MiB)".into()),
            EventKind::Failed { pid: 7, error: JobError { errno: 28, what: "func=write".into() } },
            EventKind::Snapshot(Box::default()),
            EventKind::Status(Box::default()),
            EventKind::Terminating(15),
            EventKind::Ready,
            EventKind::Started(5),
        ];
        for kind in kinds {
            let source = Some(Source { job: "a".into(), worker: 3 });
            let event = Event::new(u64::MAX, source, kind);
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }
}
