//! Answers. Each one ends its connection.

use crate::transport::Wire;
use serde_json::Value;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

/// The default content policy of pages: nothing is allowed.
const NO_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How long the rest of a rejected request is read and discarded, so that the answer arrives (closing a connection with
/// unread data discards the answer too).
const DRAIN: Duration = Duration::from_millis(200);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The kind of content.
    kind: &'static str,
    /// The content policy.
    policy: String,
    /// A cookie to set.
    cookie: Option<String>,
    /// The content. All answers with the page of a report share its memory.
    body: Arc<Vec<u8>>,
}

impl Answer {
    /// A line of text.
    pub fn text(status: u16, words: &str) -> Answer {
        Answer::of(status, "text/plain; charset=utf-8", format!("{words}\n").into_bytes())
    }

    /// A page with this content policy.
    pub fn page(text: impl Into<Vec<u8>>, policy: &str) -> Answer {
        Answer::shared_page(Arc::new(text.into()), policy)
    }

    /// A page that several answers share.
    pub fn shared_page(text: Arc<Vec<u8>>, policy: &str) -> Answer {
        Answer {
            policy: policy.to_owned(),
            body: text,
            ..Answer::of(200, "text/html; charset=utf-8", Vec::new())
        }
    }

    /// A file that belongs to a page.
    pub fn file(kind: &'static str, text: impl Into<Vec<u8>>) -> Answer {
        Answer::of(200, kind, text.into())
    }

    /// The answer to a script of a page.
    pub fn json(status: u16, value: &Value) -> Answer {
        Answer::of(status, "application/json", value.to_string().into_bytes())
    }

    fn of(status: u16, kind: &'static str, body: Vec<u8>) -> Answer {
        Answer { status, kind, policy: NO_POLICY.to_owned(), cookie: None, body: Arc::new(body) }
    }

    /// The answer with a cookie.
    pub fn with_cookie(self, cookie: String) -> Answer {
        Answer { cookie: Some(cookie), ..self }
    }

    /// Sends it, and ends the connection.
    pub fn send(&self, to: &mut Wire) -> io::Result<()> {
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let cookie =
            self.cookie.as_ref().map(|cookie| format!("Set-Cookie: {cookie}\r\n")).unwrap_or_default();
        let head = head(self.status, self.kind, &self.policy, &(length + &cookie));
        to.send(&[head.as_bytes(), &self.body])?;
        to.finish()?;
        to.read_within(DRAIN);
        let mut rest = [0; 4096];
        for _ in 0..16 {
            if matches!(to.read(&mut rest), Ok(0) | Err(_)) {
                break;
            }
        }
        Ok(())
    }
}

/// The head of an endless answer: events, one after the other.
pub fn stream_head() -> String {
    head(200, "text/event-stream", NO_POLICY, "")
}

fn head(status: u16, kind: &str, policy: &str, more: &str) -> String {
    let reason = match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Security-Policy: {policy}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n{more}\r\n"
    )
}
