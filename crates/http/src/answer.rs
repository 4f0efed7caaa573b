//! Parses an answer as it arrives, piece by piece.

use crate::refusal::element_text;
use std::io;

/// The maximum length of a head, or of a line between two chunks, in bytes: these are buffered until they are
/// complete.
pub(crate) const MOST_HEAD: usize = 16 << 10;
/// The maximum number of fields in a head.
const MOST_FIELDS: usize = 96;
/// The maximum number of bytes that are kept of a text: enough for the explanation of a refusal, or for a list of a
/// thousand long names.
const MOST_TEXT: usize = 4 << 20;

/// The answer of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status: 200 to 299 is success.
    pub status: u16,
    /// The length of the body according to the head; `None` = the head does not give it.
    pub told: Option<u64>,
    /// The offset of the body in the object, if the body is a part of it (`Content-Range`); `None` = the head does
    /// not give it.
    pub part_start: Option<u64>,
    /// The length of the received body in bytes, including bytes that did not fit into memory.
    pub length: u64,
    /// The fields of the head, with names in lower case; empty unless the request asked for them or was refused.
    pub fields: Vec<(String, String)>,
    /// The body, if the request asked for a text or was refused.
    pub text: Vec<u8>,
}

impl Answer {
    /// Whether the request was granted.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The tag of the object that a request has made: S3 tells that of a copy in the body.
    pub fn tag(&self) -> Option<String> {
        let in_body = || element_text(&String::from_utf8_lossy(&self.text), "ETag");
        self.field("etag").map(str::to_owned).or_else(in_body)
    }

    /// The value of the field with this name, which must be in lower case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Where a body goes.
pub(crate) enum Place<'a> {
    /// Into memory that the owner of the request provides.
    Memory(&'a mut [u8]),
    /// Into the text of the answer.
    Text,
}

/// The kind of answer that the request expects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The answer has a head only.
    pub head_only: bool,
    /// The fields of the head are kept for every status.
    pub fields: bool,
}

/// How a body ends, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// The body ends after this many more bytes.
    Length(u64),
    /// The body comes in chunks, and the line with the length of a chunk is next.
    PieceHead,
    /// Within a chunk that has this many more bytes.
    Piece(u64),
    /// At the line break after a chunk.
    PieceEnd,
    /// In the lines after the last chunk.
    Trailer,
    /// The body ends when the connection ends.
    Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Body(Body),
    Complete,
}

/// An answer that is being received.
#[derive(Debug)]
pub(crate) struct Incoming {
    stage: Stage,
    pub(crate) answer: Answer,
    /// The connection cannot be used for another request.
    pub(crate) closes: bool,
    /// Some of the answer has arrived.
    pub(crate) has_begun: bool,
}

impl Incoming {
    pub(crate) fn new() -> Incoming {
        Incoming { stage: Stage::Head, answer: Answer::default(), closes: false, has_begun: false }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// The offset in the body of the next bytes, and how many of them belong to it, if they can be received directly
    /// into memory. `None` = the next bytes have to be parsed.
    pub(crate) fn straight(&self) -> Option<(usize, u64)> {
        match self.stage {
            Stage::Body(Body::Length(left)) if self.answer.is_success() => {
                Some((self.answer.length as usize, left))
            }
            _ => None,
        }
    }

    /// Counts bytes that were received directly into memory ([`Incoming::straight`]).
    pub(crate) fn received(&mut self, count: u64) {
        let Stage::Body(Body::Length(left)) = &mut self.stage else { unreachable!("the length is known") };
        *left -= count;
        self.answer.length += count;
        if *left == 0 {
            self.stage = Stage::Complete;
        }
    }

    /// Notes that the connection has ended.
    ///
    /// # Errors
    /// The answer is incomplete.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.closes = true;
        if self.stage == Stage::Body(Body::Connection) {
            self.stage = Stage::Complete;
        }
        match self.stage {
            Stage::Complete => Ok(()),
            Stage::Body(Body::Length(left)) => {
                let (have, all) = (self.answer.length, self.answer.length + left);
                let words = format!("the connection was cut after {have} of {all} bytes of the answer");
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, words))
            }
            Stage::Body(_) => {
                let words = "the connection was cut in the middle of the answer";
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, words))
            }
            Stage::Head => {
                let words = if self.has_begun {
                    "the connection was cut in the middle of the answer's head"
                } else {
                    "the server ended the connection and did not answer"
                };
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, words))
            }
        }
    }

    /// Parses received bytes and returns how many it has used. The caller passes the remaining ones again, followed
    /// by newly received ones.
    ///
    /// # Errors
    /// The bytes are not an HTTP answer.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        place: &mut Place<'_>,
        expected: Expected,
    ) -> io::Result<usize> {
        let mut used = 0;
        self.has_begun |= !bytes.is_empty();
        loop {
            let rest = &bytes[used..];
            let Stage::Body(body) = self.stage else {
                if self.stage == Stage::Complete {
                    return Ok(used);
                }
                match self.head(rest, expected)? {
                    0 => return Ok(used),
                    count => used += count,
                }
                continue;
            };
            match body {
                Body::Length(left) => {
                    let count = left.min(rest.len() as u64);
                    self.keep(&rest[..count as usize], place);
                    used += count as usize;
                    self.stage =
                        if left == count { Stage::Complete } else { Stage::Body(Body::Length(left - count)) };
                    if left != count {
                        return Ok(used);
                    }
                }
                Body::Connection => {
                    self.keep(rest, place);
                    return Ok(bytes.len());
                }
                Body::Piece(left) => {
                    let count = left.min(rest.len() as u64);
                    self.keep(&rest[..count as usize], place);
                    used += count as usize;
                    let next = if left == count { Body::PieceEnd } else { Body::Piece(left - count) };
                    self.stage = Stage::Body(next);
                    if left != count {
                        return Ok(used);
                    }
                }
                Body::PieceHead | Body::PieceEnd | Body::Trailer => {
                    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
                        if rest.len() >= MOST_HEAD {
                            return Err(no_answer("a line without an end"));
                        }
                        return Ok(used);
                    };
                    self.line(body, rest[..end].trim_ascii())?;
                    used += end + 1;
                }
            }
        }
    }

    /// Parses a line between the chunks of a body.
    fn line(&mut self, body: Body, line: &[u8]) -> io::Result<()> {
        self.stage = match body {
            Body::PieceEnd if line.is_empty() => Stage::Body(Body::PieceHead),
            Body::PieceEnd => return Err(no_answer("a piece is longer than it says")),
            Body::Trailer if line.is_empty() => Stage::Complete,
            Body::Trailer => Stage::Body(Body::Trailer),
            _ => {
                let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
                let digits = std::str::from_utf8(digits).ok();
                match digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
                    Some(0) => Stage::Body(Body::Trailer),
                    Some(length) => Stage::Body(Body::Piece(length)),
                    None => return Err(no_answer("a piece without a length")),
                }
            }
        };
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8], place: &mut Place<'_>) {
        match place {
            Place::Memory(memory) if self.answer.is_success() => {
                // Bytes beyond the buffer are counted, not kept.
                let start = (self.answer.length as usize).min(memory.len());
                let count = bytes.len().min(memory.len() - start);
                memory[start..start + count].copy_from_slice(&bytes[..count]);
            }
            _ => {
                let room = MOST_TEXT.saturating_sub(self.answer.text.len());
                self.answer.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
        self.answer.length += bytes.len() as u64;
    }

    /// Parses the head. Returns its length in bytes; 0 = it is incomplete.
    fn head(&mut self, bytes: &[u8], expected: Expected) -> io::Result<usize> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if bytes.len() < MOST_HEAD => return Ok(0),
            Ok(httparse::Status::Partial) => return Err(no_answer("its head has no end")),
            Err(error) => return Err(no_answer(&error.to_string())),
        };
        let status = head.code.unwrap_or(0);
        if (100..200).contains(&status) {
            // An interim answer (1xx). The final answer follows it.
            return Ok(length);
        }
        self.answer.status = status;
        self.closes = head.version == Some(0);
        let mut is_chunked = false;
        for field in head.headers.iter() {
            let value = field.value.trim_ascii();
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                let number: u64 = number.ok_or_else(|| no_answer("its length is not a number"))?;
                if self.answer.told.is_some_and(|told| told != number) {
                    return Err(no_answer("it has two lengths"));
                }
                self.answer.told = Some(number);
            } else if is("transfer-encoding") {
                is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            } else if is("connection") {
                let mut words = value.split(|&byte| byte == b',');
                self.closes |= words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
            } else if is("content-range") {
                self.answer.part_start = start_of_range(value);
            }
        }
        if expected.fields || !self.answer.is_success() {
            let owned = |field: &httparse::Header<'_>| {
                (field.name.to_ascii_lowercase(), String::from_utf8_lossy(field.value).into_owned())
            };
            self.answer.fields = head.headers.iter().map(owned).collect();
        }
        self.stage = match self.answer.told {
            _ if expected.head_only || status == 204 || status == 304 => Stage::Complete,
            _ if is_chunked => Stage::Body(Body::PieceHead),
            Some(0) => Stage::Complete,
            Some(length) => Stage::Body(Body::Length(length)),
            None => Stage::Body(Body::Connection),
        };
        Ok(length)
    }
}

/// The first number of `bytes 4096-8191/65536`.
fn start_of_range(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    text.strip_prefix("bytes")?.trim_start().split_once('-')?.0.trim().parse().ok()
}

fn no_answer(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent no valid HTTP/1.1 answer ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Expected = Expected { head_only: false, fields: false };

    /// Parses an answer that arrives in pieces of this size.
    fn received(
        text: &[u8],
        size: usize,
        memory: &mut [u8],
        expected: Expected,
    ) -> io::Result<(Incoming, usize)> {
        let mut incoming = Incoming::new();
        let mut place = Place::Memory(memory);
        let (mut held, mut taken) = (Vec::new(), 0);
        for piece in text.chunks(size) {
            held.extend_from_slice(piece);
            let used = incoming.take(&held, &mut place, expected)?;
            taken += used;
            held.drain(..used);
            if incoming.is_complete() {
                break;
            }
        }
        Ok((incoming, taken))
    }

    #[test]
    fn bodies_end_where_the_head_says_however_they_are_split() {
        let length: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Id: 1\r\n\r\nabcdef";
        let pieces: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n2\r\nef\r\n0\r\nT: 1\r\n\r\n";
        let told: &[u8] =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 Partial\r\ncontent-length:6\r\n\r\nabcdef";
        for text in [length, pieces, told] {
            for size in 1..=text.len() {
                let mut memory = [0; 8];
                let (incoming, taken) = received(text, size, &mut memory, USUAL).unwrap();
                assert!(incoming.is_complete() && !incoming.closes);
                assert_eq!((taken, incoming.answer.length, &memory), (text.len(), 6, b"abcdef\0\0"));
                assert!(incoming.answer.fields.is_empty() && incoming.answer.text.is_empty());
            }
        }
        let mut memory = [0; 6];
        let followed = [length, b"HTTP"].concat();
        let (incoming, taken) = received(&followed, followed.len(), &mut memory, USUAL).unwrap();
        assert_eq!((incoming.answer.status, taken), (200, length.len()));
    }

    #[test]
    fn refusals_are_kept_as_text_with_their_fields() {
        let text = b"HTTP/1.1 404 Not Found\r\nX-Amz-Request-Id: 17\r\nContent-Length: 4\r\n\r\nNope";
        let mut memory = [7; 4];
        let (incoming, _) = received(text, 9, &mut memory, USUAL).unwrap();
        let answer = incoming.answer;
        assert_eq!((answer.status, answer.is_success(), memory), (404, false, [7; 4]));
        assert_eq!((answer.field("x-amz-request-id"), &*answer.text), (Some("17"), &b"Nope"[..]));
    }

    #[test]
    fn the_head_says_which_part_it_is_and_whether_more_may_follow() {
        let text = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4096-4097/9000\r\n\
                     Connection: keep-alive, Close\r\nContent-Length: 2\r\n\r\nab";
        let (incoming, _) = received(text, 7, &mut [0; 2], USUAL).unwrap();
        assert_eq!((incoming.answer.part_start, incoming.closes), (Some(4096), true));
    }

    #[test]
    fn more_than_there_is_room_for_is_counted() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef";
        let mut memory = [0; 2];
        let (incoming, _) = received(text, 3, &mut memory, USUAL).unwrap();
        assert_eq!((incoming.answer.length, &memory), (6, b"ab"));
    }

    #[test]
    fn some_answers_have_a_head_only() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n";
        let expected = Expected { head_only: true, fields: true };
        let (incoming, _) = received(head, 50, &mut [], expected).unwrap();
        assert!(incoming.is_complete());
        assert_eq!((incoming.answer.told, incoming.answer.field("content-length")), (Some(600), Some("600")));
        let deleted = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert!(received(deleted, 50, &mut [], USUAL).unwrap().0.is_complete());
    }

    #[test]
    fn an_early_end_is_reported_with_the_missing_part() {
        for (text, words) in [
            ("", "did not answer"),
            ("HTTP/1.1 2", "in the middle of the answer's head"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nab", "after 2 of 6 bytes"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nab", "in the middle of the answer"),
        ] {
            let mut incoming = Incoming::new();
            incoming.take(text.as_bytes(), &mut Place::Text, USUAL).unwrap();
            let error = incoming.end().unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
        let mut incoming = Incoming::new();
        incoming.take(b"HTTP/1.0 200 OK\r\n\r\nab", &mut Place::Text, USUAL).unwrap();
        incoming.end().unwrap();
        assert!(incoming.is_complete() && incoming.closes);
        assert_eq!(incoming.answer.length, 2);
    }

    #[test]
    fn invalid_answers_are_refused() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        ] {
            let error = Incoming::new().take(text.as_bytes(), &mut Place::Text, USUAL).unwrap_err();
            assert!(error.to_string().contains("no valid HTTP/1.1 answer"), "{text:?}: {error}");
        }
    }
}
