//! Lays out an object in parts before a job, one part after the other.

use super::super::HttpEngine;
use super::{became, is_unknown};
use iolite_http::multipart::{self, Part};
use iolite_http::{Answer, Method, Object, Request, Sink};

/// An object that is being laid out in parts.
pub(in crate::http) struct Whole {
    number: u64,
    id: String,
    /// The server may have been asked more than once to begin the upload.
    is_repeated: bool,
    /// The number of bytes so far.
    length: u64,
    parts: Vec<Part>,
}

impl Whole {
    /// The number of parts so far.
    pub(in crate::http) fn count(&self) -> u64 {
        self.parts.len() as u64
    }
}

impl HttpEngine {
    /// Writes the next part of an object. The first part begins the upload.
    pub(in crate::http) fn put_part(
        &mut self,
        whole: &mut Option<Whole>,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), String> {
        if whole.is_none() {
            let server = self.server();
            let uploads = self.uploads();
            let number = uploads.ledger.begin(&server, name).map_err(|error| error.to_string())?;
            let (result, is_repeated) = self.perform(Method::Post, name, multipart::beginning(), &[]);
            let is_answered = result.is_ok();
            let id = self.granted(result).and_then(|answer| {
                multipart::begun_id(&answer).ok_or_else(|| "the answer has no UploadId".to_owned())
            });
            let ledger = &mut self.uploads().ledger;
            let noted = ledger.begun(number, id.as_deref().ok(), is_repeated);
            if id.is_err() && is_answered && !is_repeated {
                ledger.over(number);
            }
            let id = id.map_err(|words| format!("POST {name} in parts: {words}"))?;
            noted.map_err(|error| error.to_string())?;
            *whole = Some(Whole { number, id, is_repeated, length: 0, parts: Vec::new() });
        }
        let whole = whole.as_mut().expect("it has been begun");
        let query = multipart::part_query(whole.parts.len() + 1, &whole.id);
        let answer = self.send(Method::Put, name, &query, bytes)?;
        whole.parts.push(Part::of(&answer).ok_or("the answer says no ETag of the part")?);
        whole.length += bytes.len() as u64;
        Ok(())
    }

    /// Ends the upload, which creates the object.
    pub(in crate::http) fn end_parts(&mut self, whole: &Whole, name: &str) -> Result<(), String> {
        let body = multipart::ending(&whole.parts);
        let query = multipart::upload_query(&whole.id);
        let (result, is_repeated) = self.perform(Method::Post, name, &query, body.as_bytes());
        let result = if is_repeated && result.as_ref().is_ok_and(is_unknown) {
            let (answer, _) = self.perform(Method::Head, name, "", &[]);
            answer.and_then(|answer| became(answer, (whole.length, whole.parts.len())))
        } else {
            self.granted(result).map(drop)
        };
        result.map_err(|words| format!("POST {name} in parts, its end: {words}"))?;
        if !whole.is_repeated {
            self.uploads().ledger.over(whole.number);
        }
        Ok(())
    }

    fn send(&mut self, method: Method, name: &str, query: &str, body: &[u8]) -> Result<Answer, String> {
        let (answer, _) = self.perform(method, name, query, body);
        self.granted(answer).map_err(|words| format!("{} {name} in parts: {words}", method.word()))
    }

    /// Sends a request and waits for its answer. Also returns whether the request was sent more than once.
    fn perform(
        &mut self,
        method: Method,
        name: &str,
        query: &str,
        body: &[u8],
    ) -> (Result<Answer, String>, bool) {
        let head = self.client.head(method, &Object { name, part: None, query, source: "" }, body);
        let request = Request {
            head,
            body: (body.as_ptr(), body.len()),
            sink: Sink::Text,
            head_only: method == Method::Head,
            fields: true,
            patient: method == Method::Post,
        };
        // SAFETY: the body is borrowed until this returns.
        let done = unsafe { self.client.perform(None, request) };
        (done.result.map_err(|failure| failure.words), done.is_repeated)
    }
}
