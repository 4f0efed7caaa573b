//! Requests: the head of one, within limits. Nothing that is served takes a body.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes that a head has at most. That of a browser has one to two thousand.
const MOST_BYTES: usize = 16 << 10;
/// Lines that a head has at most.
const MOST_HEADERS: usize = 64;
/// How long a head may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, as it was sent, up to a question mark.
    pub path: String,
    /// What is behind the question mark.
    pub query: String,
    /// Names in small letters, and values.
    headers: Vec<(String, String)>,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What arrived is no request: status and reason of the answer.
    Bad(u16, &'static str),
    /// Nobody waits for an answer: the connection was closed or has failed, or nothing came.
    Gone,
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Refusal {
        Refusal::Gone
    }
}

impl Request {
    /// Reads one.
    pub fn read(from: &mut TcpStream) -> Result<Request, Refusal> {
        let until = Instant::now() + PATIENCE;
        let mut head = Vec::new();
        let mut part = [0; 4096];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(if head.is_empty() {
                    Refusal::Gone
                } else {
                    Refusal::Bad(408, "the request is not complete")
                });
            }
            from.set_read_timeout(Some(left))?;
            match from.read(&mut part) {
                Ok(0) => return Err(Refusal::Gone),
                Ok(count) => head.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The time is over.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Err(Refusal::Gone),
            }
            if let Some(request) = Request::parse(&head)? {
                return Ok(request);
            }
        }
    }

    /// The request in these bytes; `None` = it is not complete.
    pub fn parse(head: &[u8]) -> Result<Option<Request>, Refusal> {
        let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut lines);
        match parsed.parse(&head[..head.len().min(MOST_BYTES)]) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) if head.len() < MOST_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal::Bad(431, "the head of the request is too long"));
            }
            Err(_) => return Err(Refusal::Bad(400, "this is no request")),
        }
        let target = parsed.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(Refusal::Bad(400, "the target of the request is no path"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Vec::with_capacity(parsed.headers.len());
        for header in parsed.headers.iter() {
            // What is no text is none of ours.
            let Ok(value) = std::str::from_utf8(header.value) else { continue };
            headers.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let method = parsed.method.unwrap_or_default().to_owned();
        let request = Request { method, path: path.to_owned(), query: query.to_owned(), headers };
        if request.has_body() {
            return Err(Refusal::Bad(413, "requests have no body here"));
        }
        Ok(Some(request))
    }

    /// The values of a header, whose name is given in small letters.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The value of a header; `None` = it is not there, or several times.
    pub fn one<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut found = self.all(name);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    fn has_body(&self) -> bool {
        self.all("transfer-encoding").next().is_some()
            || self.all("content-length").any(|length| length != "0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_head_is_read_when_it_is_complete() {
        let text = "GET /a/b?c=d?e HTTP/1.1\r\nHost: x\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(Request::parse(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
        let request = Request::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.path, &*request.query), ("GET", "/a/b", "c=d?e"));
        assert_eq!(
            (request.one("host"), request.one("cookie"), request.one("none")),
            (Some("x"), None, None)
        );
        assert_eq!(request.all("cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
    }

    #[test]
    fn what_is_too_long_or_no_request_is_refused() {
        let status = |text: &str| match Request::parse(text.as_bytes()) {
            Err(Refusal::Bad(status, _)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(20_000))), 431);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100))), 431);
        assert_eq!(status("\u{16}\u{3}\u{1}"), 400, "TLS");
        assert_eq!(status("GET http://elsewhere/ HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 413);
        assert_eq!(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
        assert!(Request::parse(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").unwrap().is_some());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn rubbish_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Request::parse(&bytes);
        }
    }
}
