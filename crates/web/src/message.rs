//! Messages of a run to the process of its page, in the frames of `iolite-remote`.

use crate::access::Token;
use crate::security::Certified;
use iolite_remote::frame;
use iolite_remote::message::Message;
use iolite_stats::{Event, Report};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixStream;

/// Reads the announcement of a run that is to be shown.
///
/// # Errors
/// The run is gone, or this is no announcement.
pub fn read_hello(channel: &mut UnixStream) -> io::Result<Hello> {
    match frame::read(channel) {
        Ok(ToPage::Hello(hello, _)) => Ok(*hello),
        Ok(_) | Err(_) => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Reads the next event of the run; `None` = it is over.
pub fn read_event(channel: &mut UnixStream) -> Option<Event> {
    match frame::read(channel) {
        Ok(ToPage::Event(event)) => Some(*event),
        _ => None,
    }
}

/// The longest frame of a message of a run.
const MOST: u32 = 256 << 20;

/// The first message to the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The report before the first measurement, with the facts.
    pub outline: Report,
    /// The report block of each worker, if any.
    pub blocks: Vec<Option<u32>>,
    /// The program and its version, in one word.
    pub program: String,
    /// The nanoseconds between two samples.
    pub interval_ns: u64,
    /// The jobs stand for machines; the first one stands for all of them.
    pub of_hosts: bool,
    /// How long the page stays after the run, in milliseconds; `None` = until all open pages have the report.
    pub linger_ms: Option<u64>,
}

/// How the pages of a run are served. Empty for a run that was started from a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The tokens in the printed addresses.
    pub tokens: Vec<Token>,
    /// The certificate and key of the pages.
    pub certified: Option<Certified>,
}

/// A message to the process of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToPage {
    /// The first message.
    Hello(Box<Hello>, Setup),
    /// An event of the run.
    Event(Box<Event>),
    /// The run has ended; the page of its report.
    End(String),
    /// The verdict on a job from a page, which will not run.
    Judged(Judgement),
    /// The report of a run that was started from a page, in JSON, to be stored. Sent before `End`.
    Report(String),
}

impl Message for ToPage {
    fn kind(&self) -> u8 {
        match self {
            ToPage::Hello(..) => 1,
            ToPage::Event(_) => 2,
            ToPage::End(_) => 3,
            ToPage::Judged(_) => 4,
            ToPage::Report(_) => 5,
        }
    }

    fn limit(kind: u8) -> Option<u32> {
        (1..=5).contains(&kind).then_some(MOST)
    }
}

/// A job that was written in a page, for the process that checks or runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The job file.
    pub text: String,
    /// Check or run it.
    pub step: Step,
}

/// Whether to check or run a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Check it for mistakes.
    Check,
    /// Run it, if it has no mistakes.
    Start {
        /// The names of devices and files that hold data and may be overwritten.
        confirmed: Vec<String>,
    },
}

impl Message for Written {
    fn kind(&self) -> u8 {
        1
    }

    fn limit(kind: u8) -> Option<u32> {
        (kind == 1).then_some(MOST)
    }
}

/// The verdict on a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Mistakes and warnings, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// Devices and files with data that the job would destroy.
    pub held: Vec<Held>,
}

impl Judgement {
    /// Whether the job has mistakes, not only warnings.
    pub fn is_refusal(&self) -> bool {
        self.mistakes.iter().any(|one| !one.is_warning)
    }

    /// Whether some data is not among these names.
    pub fn unconfirmed(&self, names: &[String]) -> bool {
        self.held.iter().any(|one| !names.contains(&one.name))
    }
}

/// A mistake in a job, or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Line and column, from 1; `None` = no single place.
    pub place: Option<(u32, u32)>,
    /// The message.
    pub message: String,
    /// It is only a warning.
    pub is_warning: bool,
}

/// A device or file that holds data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The name to confirm.
    pub name: String,
    /// A description of the data.
    pub what: String,
}

/// The one-byte answer: the process has the final report, and continues without the run.
pub(crate) const HAS_ALL: u8 = b'+';
