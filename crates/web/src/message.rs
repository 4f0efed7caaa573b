//! What a run says to the process of its page, in the frames of `iolite-remote`.

use iolite_remote::message::Message;
use iolite_stats::{Event, Report};
use serde::{Deserialize, Serialize};

/// More bytes than these are no message of a run.
const MOST: u32 = 256 << 20;

/// What the process needs to know before anything happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The report before anything was measured, with the facts.
    pub outline: Report,
    /// The block of the report that tells of each worker; `None` = none does.
    pub blocks: Vec<Option<u32>>,
    /// The program and its version, in one word.
    pub program: String,
    /// For how many milliseconds the page stays when the run is over; `None` = until the pages that are open have the report.
    pub linger_ms: Option<u64>,
}

/// The secrets in the addresses that are printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    /// For who may also end the run.
    pub owner: String,
    /// For who may look.
    pub guest: String,
}

/// To the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToPage {
    /// First.
    Hello(Box<Hello>, Tokens),
    /// Something has happened.
    Event(Box<Event>),
    /// The run is over, and this is the page of its report.
    End(String),
}

impl Message for ToPage {
    fn kind(&self) -> u8 {
        match self {
            ToPage::Hello(..) => 1,
            ToPage::Event(_) => 2,
            ToPage::End(_) => 3,
        }
    }

    fn limit(kind: u8) -> Option<u32> {
        (1..=3).contains(&kind).then_some(MOST)
    }
}

/// The one byte that the process answers: it has the final report, and goes on without the run.
pub(crate) const HAS_ALL: u8 = b'+';
