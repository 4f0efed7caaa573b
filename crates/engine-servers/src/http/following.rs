//! Requests that follow the first one of a unit: those that look for what was written (`http_visible`), and the removal
//! of all versions of an object (`http_s3_delete_versions`).

use super::{HttpEngine, name_object, remedy};
use iolite_engine::{Completion, Errno, Outcome};
use iolite_http::{Answer, Done, Method, Object, Refusal, Request, Sink, listing};
use iolite_options::engines::Visible;
use std::path::Path;
use std::time::{Duration, Instant};

/// The shortest and the longest pause before the next look. In between it is a share of the time so far, so that a delay
/// is known to this share of it.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(100)];
const SHARE: u32 = 8;

/// What follows a request of a unit.
#[derive(Clone, Debug)]
pub(super) enum Next {
    /// Looks for the object with this tag, which the server acknowledged at `since`.
    Look { tag: Option<String>, since: Instant },
    /// Removes these versions, after which there may be more. `None` = the list of versions was requested.
    Remove(Option<(Vec<String>, bool)>),
}

/// A request without a body whose answer is a text.
pub(super) fn of_head(head: iolite_http::Head) -> Request {
    Request {
        head,
        body: (std::ptr::null(), 0),
        sink: Sink::Text,
        head_only: false,
        fields: true,
        patient: false,
    }
}

impl HttpEngine {
    /// Takes the ends of requests, and goes on with their units.
    pub(super) fn follow(&mut self) {
        while let Some(done) = self.client.next_done() {
            let unit = done.token;
            if let Some(outcome) = self.request_over(done) {
                self.over.push_back(Completion { unit, outcome });
            }
        }
    }

    /// The outcome of a unit whose request is over; `None` = another request of it follows.
    pub(super) fn request_over(&mut self, done: Done) -> Option<Outcome> {
        let index = done.token as usize;
        let length = self.units[index].length;
        match self.units[index].next.take() {
            Some(Next::Look { tag, since }) => self.looked(index, done, tag, since),
            Some(Next::Remove(left)) => match self.removed(index, done, left) {
                Ok(true) => Some(Ok(length)),
                Ok(false) => None,
                Err(words) => Some(self.failed(index, &words)),
            },
            None => {
                let is_write = matches!(self.units[index].method, Some(Method::Put | Method::Copy));
                let looks = is_write && self.options.http_visible != Visible::Off;
                let tag = done.result.as_ref().ok().filter(|_| looks).and_then(Answer::tag);
                let outcome = self.outcome(done);
                if !looks || outcome.is_err() || self.is_stopping {
                    return Some(outcome);
                }
                self.look(index, Next::Look { tag, since: Instant::now() }, Duration::ZERO);
                None
            }
        }
    }

    /// A unit has failed in a request that followed.
    fn failed(&mut self, index: usize, words: &str) -> Outcome {
        let request = self.in_words(index);
        self.units[index].words = Some(format!("{request}: {words}"));
        Err(Errno(libc::EIO))
    }

    fn refusal(&self, answer: &Answer) -> String {
        let refusal = Refusal::of(answer);
        format!("{refusal}{}", remedy::of(&refusal, &self.options, false))
    }

    /// The name of the object of a unit, in `self.name`.
    fn name_of(&mut self, index: usize) {
        let super::Flying { file, offset, length, .. } = self.units[index];
        if let Some(file) = self.files.get(file) {
            name_object(&mut self.name, &self.options, &file.name, offset, length);
        }
    }

    /// Looks for the object of a unit after a pause.
    fn look(&mut self, index: usize, next: Next, pause: Duration) {
        self.name_of(index);
        let whole = Object::whole(&self.name);
        let request = match self.options.http_visible {
            Visible::List => {
                let (bucket, key) = self.listed(Path::new(&self.name)).unwrap_or_default();
                let query = listing::query(&key, 1, None);
                of_head(self.client.head(Method::Get, &Object { name: &bucket, query: &query, ..whole }, &[]))
            }
            Visible::Head => {
                Request { head_only: true, ..of_head(self.client.head(Method::Head, &whole, &[])) }
            }
            // The data is received, and not kept.
            _ => {
                let sink = Sink::Memory(std::ptr::null_mut(), 0);
                Request { sink, ..of_head(self.client.head(Method::Get, &whole, &[])) }
            }
        };
        self.units[index].next = Some(next);
        // SAFETY: there is no body, and the answer goes to no memory of the caller.
        unsafe {
            match pause.is_zero() {
                true => self.client.begin(index as u32, request),
                false => self.client.begin_after(pause, index as u32, request),
            }
        }
    }

    /// Takes the answer of a look.
    fn looked(&mut self, index: usize, done: Done, tag: Option<String>, since: Instant) -> Option<Outcome> {
        let length = self.units[index].length;
        let seen = match done.result {
            // (The object was written; how long it takes to be seen stays unknown.)
            Err(_) if self.is_stopping => return Some(Ok(length)),
            Err(failure) => Err(failure.words),
            Ok(answer) if answer.status == 404 && self.options.http_visible != Visible::List => Ok(false),
            Ok(answer) if !answer.is_success() => Err(self.refusal(&answer)),
            Ok(answer) if self.options.http_visible == Visible::List => {
                self.name_of(index);
                let key = self.listed(Path::new(&self.name)).map(|(_, key)| key);
                key.and_then(|key| listing::lists(&answer, &key, tag.as_deref()))
            }
            Ok(answer) => Ok(match (&tag, answer.field("etag")) {
                (Some(tag), Some(found)) => tag == found,
                _ => true,
            }),
        };
        let waited = since.elapsed();
        let limit = Duration::from_micros(self.options.http_timeout);
        let why = match seen {
            Ok(true) => {
                let time = done.marks.sent.map_or(waited, |sent| sent.saturating_duration_since(since));
                self.units[index].visible = Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                return Some(Ok(length));
            }
            Ok(false) if self.is_stopping => return Some(Ok(length)),
            Ok(false) if limit.is_zero() || waited < limit => {
                let pause = (waited / SHARE).clamp(PAUSES[0], PAUSES[1]);
                self.look(index, Next::Look { tag, since }, pause);
                return None;
            }
            Ok(false) => format!("it is not seen within {} s (http_timeout)", limit.as_secs_f64()),
            Err(words) => words,
        };
        Some(self.failed(index, &format!("http_visible: {why}")))
    }

    /// The request for the versions of the object whose name is in `self.name`.
    pub(super) fn ask_for_versions(&mut self) -> Result<Request, String> {
        let (bucket, key) = self.listed(Path::new(&self.name))?;
        let query = listing::versions_query(&key, None);
        let object = Object { name: &bucket, query: &query, ..Object::whole("") };
        Ok(of_head(self.client.head(Method::Get, &object, &[])))
    }

    /// Takes the end of a request of a removal. Returns whether all versions have been removed.
    fn removed(
        &mut self,
        index: usize,
        done: Done,
        left: Option<(Vec<String>, bool)>,
    ) -> Result<bool, String> {
        let answer = done.result.map_err(|failure| failure.words)?;
        // An earlier attempt, or another client, may have removed this version.
        let is_gone = left.is_some() && answer.status == 404;
        if !(answer.is_success() || is_gone) {
            return Err(self.refusal(&answer));
        }
        self.name_of(index);
        let (mut ids, is_cut) = match left {
            Some(left) => left,
            None => {
                let (_, key) = self.listed(Path::new(&self.name))?;
                let (versions, is_cut) = listing::versions(&answer)?;
                let count = versions.len();
                let own = versions.into_iter().filter(|version| version.key == key);
                let ids: Vec<String> = own.map(|version| version.id).collect();
                // (The name comes before longer ones that begin like it.)
                let is_cut = is_cut && ids.len() == count && count > 0;
                (ids, is_cut)
            }
        };
        let request = match ids.pop() {
            Some(id) => {
                let query = listing::version_query(&id);
                let object = Object { query: &query, ..Object::whole(&self.name) };
                self.units[index].next = Some(Next::Remove(Some((ids, is_cut))));
                of_head(self.client.head(Method::Delete, &object, &[]))
            }
            None if is_cut => {
                self.units[index].next = Some(Next::Remove(None));
                self.ask_for_versions()?
            }
            None => return Ok(true),
        };
        // SAFETY: there is no body, and the answer goes to no memory of the caller.
        unsafe { self.client.begin(index as u32, request) };
        Ok(false)
    }
}
