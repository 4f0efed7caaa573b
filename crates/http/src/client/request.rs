//! Requests, their limits, and their outcomes.

use crate::answer::Answer;
use std::fmt;
use std::time::{Duration, Instant};

/// Where the body of a successful answer goes.
#[derive(Clone, Copy, Debug)]
pub enum Sink {
    /// To this address, which has room for this many bytes. Bytes that do not fit are only counted.
    Memory(*mut u8, usize),
    /// To [`Answer::text`], which keeps at most 4 MiB.
    Text,
}

/// The head of a request: the request line, all fields, and the empty line after them.
pub struct Head {
    pub(super) text: String,
    /// The index of the host that it is for, and which its signature names.
    pub(super) host: usize,
}

/// A head that the caller has built, for the first host.
impl From<String> for Head {
    fn from(text: String) -> Head {
        Head { text, host: 0 }
    }
}

/// A request to send.
pub struct Request {
    /// Its head, which [`Client::head`](super::Client::head) builds.
    pub head: Head,
    /// The body: its address and its length.
    pub body: (*const u8, usize),
    /// Where the body of the answer goes.
    pub sink: Sink,
    /// The answer has a head only (HEAD).
    pub head_only: bool,
    /// The answer keeps the fields of its head for every status.
    pub fields: bool,
    /// The request may take ten times longer than the timeout, as long as the server sends something.
    pub patient: bool,
}

impl Request {
    /// The length of its body and of the expected answer's body, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let answer = match self.sink {
            Sink::Memory(_, length) => length,
            Sink::Text => 0,
        };
        (self.body.1 + answer) as u64
    }
}

/// Debug output contains no secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.head.text.lines().next().unwrap_or_default();
        f.debug_struct("Request").field("line", &line).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The limits of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The longest time without any data in either direction. A whole attempt may take this long, plus one second for
    /// each 64 KiB of the bodies. `None` = no limit.
    pub timeout: Option<Duration>,
    /// How often a request is repeated after a temporary failure.
    pub retries: u32,
    /// Messages on standard error: 0 = none, 1 = requests and their statuses, 2 = also their heads, without secrets.
    pub verbose: u32,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason, for the user.
    pub words: String,
}

/// When an attempt reached what. `None` = it did not, or it needed not: a kept connection is connected already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The connection was established.
    pub connected: Option<Instant>,
    /// The handshake of TLS was over.
    pub secured: Option<Instant>,
    /// The system had all of the request.
    pub sent: Option<Instant>,
    /// The first byte of the answer arrived.
    pub first_byte: Option<Instant>,
}

/// A finished request.
#[derive(Debug)]
pub struct Done {
    /// The token that the caller passed to [`Client::begin`](super::Client::begin).
    pub token: u32,
    /// The answer, which may be a refusal, or the reason why there is none.
    pub result: Result<Answer, Failure>,
    /// When the last attempt reached what.
    pub marks: Marks,
    /// The request was sent more than once, so the server may have carried out an earlier attempt.
    pub is_repeated: bool,
}

/// Counts of connections and retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections made.
    pub connections: u64,
    /// Retries of requests.
    pub retries: u64,
    /// Answers with status 429 or 503: the server asked for fewer requests.
    pub throttled: u64,
}
