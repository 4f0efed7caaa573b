//! What a run says to the process of its page, in the frames of `iolite-remote`.

use crate::access::Token;
use crate::security::Certified;
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
    /// The nanoseconds between two samples.
    pub interval_ns: u64,
    /// The jobs are other machines, of which the first is all together.
    pub of_hosts: bool,
    /// For how many milliseconds the page stays when the run is over; `None` = until the pages that are open have the report.
    pub linger_ms: Option<u64>,
}

/// How the pages of a run are served. A run that a page has started has none of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The secrets in the addresses that are printed.
    pub tokens: Vec<Token>,
    /// What the pages are encrypted with.
    pub certified: Option<Certified>,
}

/// To the process of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToPage {
    /// First.
    Hello(Box<Hello>, Setup),
    /// Something has happened.
    Event(Box<Event>),
    /// The run is over, and this is the page of its report.
    End(String),
    /// What is said of a job that a page has sent; it does not run.
    Judged(Judgement),
    /// The report of a run that a page has started, in JSON, to be kept. Before the end.
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

/// A job that somebody has written in a page, for the process that looks at it, or runs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The job file.
    pub text: String,
    /// What is to be done with it.
    pub step: Step,
}

/// What is to be done with a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Look for mistakes.
    Check,
    /// Run it, if it has none.
    Start {
        /// What may be written over although it holds data, by name.
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

/// What is said of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// What is wrong or suspicious, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// What holds data that the job would destroy.
    pub held: Vec<Held>,
}

impl Judgement {
    /// Whether something is wrong, and not only suspicious.
    pub fn is_refusal(&self) -> bool {
        self.mistakes.iter().any(|one| !one.is_warning)
    }

    /// What is not among these names.
    pub fn unconfirmed(&self, names: &[String]) -> bool {
        self.held.iter().any(|one| !names.contains(&one.name))
    }
}

/// Something wrong or suspicious in a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// Line and column, from 1; `None` = no single place is to blame.
    pub place: Option<(u32, u32)>,
    /// In words.
    pub message: String,
    /// It is accepted all the same.
    pub is_warning: bool,
}

/// Something that holds data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The name by which it is confirmed.
    pub name: String,
    /// What it holds, in words.
    pub what: String,
}

/// The one byte that the process answers: it has the final report, and goes on without the run.
pub(crate) const HAS_ALL: u8 = b'+';
