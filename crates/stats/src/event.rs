//! The events of a run, as a stream of values: the same stream is shown, stored and forwarded.

use crate::in_flight::InFlight;
use crate::report::{CheckedBlocks, JobError, Report};
use crate::snapshot::Snapshot;
use crate::steady::{Measurement, SteadyReport};
use serde::{Deserialize, Serialize};

/// The version of the serialised form of [`Event`], [`Snapshot`] and [`Report`]. It grows when a reader of the form
/// before could misunderstand the new one.
pub const EVENT_VERSION: u32 = 1;

/// Something that happened in a run. Events come in the order in which the controller learnt of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_VERSION`] of the program that reports it.
    pub version: u32,
    /// The machine of the event; `None` = this one. Set when events are forwarded to another machine.
    pub host: Option<String>,
    /// Nanoseconds since the run began.
    pub at_ns: u64,
    /// Where it happened; `None` = in the run as a whole.
    pub source: Option<Source>,
    /// The event itself.
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

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EventKind {
    /// A line for the report's reader: "a: Laying out IO file (1 file / 1MiB)".
    Note(String),
    /// Something is suspicious or unexpected, but nothing has failed.
    Warning(String),
    /// Something went wrong: in one I/O or file, or in the run.
    Trouble(String),
    /// A failed I/O that ends its job. Many I/Os and workers may fail in the same way.
    Fatal(String),
    /// Failed I/Os after which their job continues, so many of one kind.
    Tolerated(String, u64),
    /// Checked data differs from the data written: a message of several lines.
    WrongData(String),
    /// A worker ended with an error.
    Failed {
        /// Its process or thread.
        pid: i32,
        /// The error.
        error: JobError,
        /// The blocks that it had verified.
        blocks: CheckedBlocks,
    },
    /// The progress of the run, for the status line.
    Snapshot(Box<Snapshot>),
    /// The progress of the run, for its series: at even intervals, with latencies.
    Sample(Box<Snapshot>),
    /// A full interim report that was requested.
    Status(Box<Report>),
    /// The I/Os in flight, together with a report that was requested.
    InFlight {
        /// The oldest ones, the oldest first.
        ios: Vec<InFlight>,
        /// How many more there are.
        left_out: u64,
    },
    /// A slice of the run is over; the report is of everything so far.
    Slice(Box<Report>),
    /// The run is ending, because of this signal; 0 = for another reason.
    Terminating(i32),
    /// The steps that the run takes together with the runs on other machines. Sent before the first of them.
    InStep(InStep),
    /// The jobs behind the barrier with this number are set up, and wait for their start time.
    Ready(u32),
    /// No job waits at this barrier any more: the jobs behind it ended before they began.
    Passed(u32),
    /// The jobs behind this barrier have begun.
    Started {
        /// The barrier.
        barrier: u32,
        /// How many nanoseconds later than the given start time.
        late_ns: u64,
    },
    /// An interval of a steady state that is judged over several machines.
    Measured(Measured),
}

/// The steps that a run takes together with the runs on other machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InStep {
    /// How many barriers it has. The first is its start.
    pub barriers: u32,
    /// The steady states that are judged over all machines, without measurements.
    pub steady: Vec<SteadyReport>,
}

/// An interval of a steady state on one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The place in [`InStep::steady`].
    pub state: u32,
    /// The number of the interval, from 0. The first intervals of all jobs begin together.
    pub interval: u64,
    /// The measurement.
    pub found: Interval,
}

/// The measurement of one interval of a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interval {
    /// The rates of the jobs.
    Rates {
        /// The measurement.
        measured: Measurement,
        /// How many latencies there were.
        latencies: u64,
    },
    /// Counters were reset in it, so it has no result.
    LeftOut,
    /// The jobs have ended: no more intervals follow.
    Over,
}

/// A command to a run from another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The jobs behind this barrier begin when the system's monotonic clock reaches this time, in nanoseconds.
    Start {
        /// Its number.
        barrier: u32,
        /// The moment.
        at_ns: u64,
    },
    /// This place of [`InStep::steady`] is steady.
    Steady(u32),
    /// Send the files that the run has left.
    Send,
    /// Run the command of the trigger, now that everything has been saved.
    Trigger,
}

impl Word {
    /// As bytes: the kind, the number and the time, each with the lowest byte first.
    pub fn to_bytes(self) -> [u8; 13] {
        let (kind, number, moment) = match self {
            Word::Start { barrier, at_ns } => (0, barrier, at_ns),
            Word::Steady(place) => (1, place, 0),
            Word::Send => (2, 0, 0),
            Word::Trigger => (3, 0, 0),
        };
        let mut bytes = [kind; 13];
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        bytes[5..].copy_from_slice(&moment.to_le_bytes());
        bytes
    }

    /// The command in these bytes; `None` = it is unknown.
    pub fn from_bytes(bytes: &[u8]) -> Option<Word> {
        let bytes: &[u8; 13] = bytes.try_into().ok()?;
        let number = u32::from_le_bytes(bytes[1..5].try_into().ok()?);
        let moment = u64::from_le_bytes(bytes[5..].try_into().ok()?);
        match bytes[0] {
            0 => Some(Word::Start { barrier: number, at_ns: moment }),
            1 => Some(Word::Steady(number)),
            2 => Some(Word::Send),
            3 => Some(Word::Trigger),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_travel_as_bytes() {
        let start = Word::Start { barrier: 7, at_ns: u64::MAX - 1 };
        for word in [start, Word::Steady(u32::MAX), Word::Send, Word::Trigger] {
            assert_eq!(Word::from_bytes(&word.to_bytes()), Some(word));
        }
        assert_eq!(Word::from_bytes(&[9; 13]), None);
        assert_eq!(Word::from_bytes(&[0; 8]), None);
    }

    #[test]
    fn events_travel_as_text() {
        let kinds = [
            EventKind::Note("a: Laying out IO file (1 file / 1MiB)".into()),
            EventKind::Failed {
                pid: 7,
                error: JobError { errno: 28, what: "func=write".into() },
                blocks: CheckedBlocks::default(),
            },
            EventKind::Snapshot(Box::default()),
            EventKind::Status(Box::default()),
            EventKind::Terminating(15),
            EventKind::InStep(InStep { barriers: 2, steady: vec![SteadyReport::default()] }),
            EventKind::Ready(1),
            EventKind::Passed(2),
            EventKind::Started { barrier: 1, late_ns: 5 },
            EventKind::Measured(Measured { state: 1, interval: 2, found: Interval::LeftOut }),
        ];
        for kind in kinds {
            let source = Some(Source { job: "a".into(), worker: 3 });
            let event = Event::new(u64::MAX, source, kind);
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }
}
