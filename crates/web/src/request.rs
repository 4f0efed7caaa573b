//! Requests: parses the head, within limits, and reads the body if the sender is authorised.

use crate::transport::Wire;
use std::io::{self, Read};
use std::time::Duration;

/// The most bytes of a head. Browsers send one to two thousand.
const MOST_BYTES: usize = 16 << 10;
/// The most lines of a head.
const MOST_HEADERS: usize = 64;
/// How long a head may take to arrive, and how long a body may.
const PATIENCE: Duration = Duration::from_secs(5);
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, as it was sent, up to a question mark.
    pub path: String,
    /// The query: the text after the question mark.
    pub query: String,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
    /// The length of its body, and the bytes of it that came together with the head.
    length: usize,
    begun: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The data is not a valid request: the status and reason of the answer.
    Bad(u16, &'static str),
    /// No answer is expected: the connection was closed or has failed, or no data came.
    Gone,
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Refusal {
        Refusal::Gone
    }
}

impl Request {
    /// Reads the head of a request with a body of at most `most` bytes.
    pub fn read(from: &mut Wire, most: usize) -> Result<Request, Refusal> {
        from.read_within(PATIENCE);
        let mut head = Vec::new();
        let mut part = [0; 4096];
        loop {
            match from.read(&mut part) {
                Ok(0) => return Err(Refusal::Gone),
                Ok(count) => head.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::TimedOut && !head.is_empty() => {
                    return Err(Refusal::Bad(408, "the request is not complete"));
                }
                Err(_) => return Err(Refusal::Gone),
            }
            if let Some(request) = Request::parse(&head, most)? {
                return Ok(request);
            }
        }
    }

    /// The body.
    pub fn body(&self, from: &mut Wire) -> io::Result<Vec<u8>> {
        let mut body = self.begun.clone();
        let missing = self.length.saturating_sub(body.len());
        from.read_within(BODY_PATIENCE);
        from.take(missing as u64).read_to_end(&mut body)?;
        if body.len() < self.length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) }
    }

    /// Parses the request at the beginning of these bytes, with a body of at most `most` bytes; `None` = its head is
    /// incomplete.
    pub fn parse(head: &[u8], most: usize) -> Result<Option<Request>, Refusal> {
        let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut lines);
        let end = match parsed.parse(&head[..head.len().min(MOST_BYTES)]) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) if head.len() < MOST_BYTES => return Ok(None),
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                return Err(Refusal::Bad(431, "the head of the request is too long"));
            }
            Err(_) => return Err(Refusal::Bad(400, "this is not a request")),
        };
        let target = parsed.path.unwrap_or_default();
        if !target.starts_with('/') {
            return Err(Refusal::Bad(400, "the target of the request is not a path"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Vec::with_capacity(parsed.headers.len());
        for header in parsed.headers.iter() {
            // All headers that we read have text values.
            let Ok(value) = std::str::from_utf8(header.value) else { continue };
            headers.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let method = parsed.method.unwrap_or_default().to_owned();
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut request = Request { method, path, query, headers, length: 0, begun: Vec::new() };
        request.length = request.body_length(most)?;
        // Data after the request is ignored: a connection has one request.
        request.begun = head[end..].iter().take(request.length).copied().collect();
        Ok(Some(request))
    }

    /// The values of a header, given its name in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The value of a header; `None` = it occurs never, or several times.
    pub fn one<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut found = self.all(name);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    fn body_length(&self, most: usize) -> Result<usize, Refusal> {
        let too_long = || {
            Refusal::Bad(413, if most == 0 { "requests have no body here" } else { "the body is too long" })
        };
        if self.all("transfer-encoding").next().is_some() {
            return Err(too_long());
        }
        if self.all("content-length").next().is_none() {
            return Ok(0);
        }
        let length = self.one("content-length").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length = length.and_then(|text| text.parse().ok()).filter(|length| *length <= most);
        length.ok_or_else(too_long)
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
            assert_eq!(Request::parse(&text.as_bytes()[..end], 0), Ok(None), "{end}");
        }
        let request = Request::parse(text.as_bytes(), 0).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.path, &*request.query), ("GET", "/a/b", "c=d?e"));
        assert_eq!(
            (request.one("host"), request.one("cookie"), request.one("none")),
            (Some("x"), None, None)
        );
        assert_eq!(request.all("cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
    }

    #[test]
    fn overlong_and_invalid_requests_are_refused() {
        let status = |text: &str| match Request::parse(text.as_bytes(), 0) {
            Err(Refusal::Bad(status, _)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(status(&format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(20_000))), 431);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100))), 431);
        assert_eq!(status("\u{16}\u{3}\u{1}"), 400, "TLS");
        assert_eq!(status("GET http://elsewhere/ HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), 413);
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: +0\r\n\r\n"), 413);
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"), 413);
        assert_eq!(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
        assert!(Request::parse(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0).unwrap().is_some());
    }

    #[test]
    fn a_body_is_as_long_as_it_says() {
        let text = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd";
        assert_eq!(Request::parse(text, 2), Err(Refusal::Bad(413, "the body is too long")));
        let request = Request::parse(text, 3).unwrap().unwrap();
        assert_eq!((request.length, &*request.begun), (3, &b"abc"[..]));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn rubbish_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Request::parse(&bytes, 10);
        }
    }
}
