//! Requests, their limits, and their outcomes.

use crate::answer::Answer;
use std::fmt;
use std::time::{Duration, Instant};

/// Where the body of a successful answer goes.
#[derive(Clone, Copy, Debug)]
pub enum Sink {
    /// To this memory of so many bytes. Bytes that do not fit are only counted.
    Memory(*mut u8, usize),
    /// Into [`Answer::text`], up to 4 MiB of it.
    Text,
}

/// A request as it is sent.
pub struct Request {
    /// The request line and all fields, with the empty line behind them.
    pub head: String,
    /// The body: where it is, and how long.
    pub body: (*const u8, usize),
    /// Where the body of the answer goes.
    pub sink: Sink,
    /// The answer has a head only (HEAD).
    pub head_only: bool,
    /// The fields of the answer's head are wanted, whatever the status.
    pub fields: bool,
    /// The server may take as long as it likes, as long as it is not silent.
    pub patient: bool,
}

impl Request {
    /// Bytes of its body, and of the answer's.
    pub(super) fn bytes(&self) -> u64 {
        let answer = match self.sink {
            Sink::Memory(_, length) => length,
            Sink::Text => 0,
        };
        (self.body.1 + answer) as u64
    }
}

/// Secrets are in no debug output.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.head.lines().next().unwrap_or_default();
        f.debug_struct("Request").field("line", &line).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The limits of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// For how long nothing may come or go. An attempt as a whole may take this long, and a second more for each 64 KiB of
    /// the bodies; `None` = as long as it likes.
    pub timeout: Option<Duration>,
    /// How often a request is repeated that failed for a reason that may pass.
    pub retries: u32,
    /// Messages on standard error: 0 none, 1 requests and their statuses, 2 heads as well, without secrets.
    pub verbose: u32,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub words: String,
}

/// A finished request.
#[derive(Debug)]
pub struct Done {
    /// The token that the caller began it with.
    pub token: u32,
    /// The answer, which may be a refusal, or why there is none.
    pub result: Result<Answer, Failure>,
    /// When the first byte of its answer came, or that of the last attempt; `None` = nothing came.
    pub first_byte: Option<Instant>,
    /// It was sent more than once, so the server may have carried out an earlier attempt.
    pub is_repeated: bool,
}

/// Counts of connections and retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections made.
    pub connections: u64,
    /// Requests that were repeated.
    pub retries: u64,
    /// Answers 429 and 503: the server asked for less.
    pub throttled: u64,
}
