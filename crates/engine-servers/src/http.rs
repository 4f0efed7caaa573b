//! `http`: objects on a server that speaks S3, WebDAV or Swift.
//!
//! A unit is one request: a read is GET (or HEAD, `http_read=head`), a write PUT, a trim DELETE. The job's depth limits how many are in flight,
//! each on its own connection, which is kept for the next request. There are no threads: the worker drives all requests
//! when it commits and when it reaps. A sync does nothing, because a server answers a PUT after it has stored the
//! object.
//!
//! With `http_object_mode=block` each block is an object, named FILE_OFFSET_LENGTH in decimal bytes, as in fio; with
//! `range` a file is one object: reads ask for a range of it, and writes replace it.

mod following;
mod ledger;
mod multipart;
mod remedy;
mod set_up;
mod storage;

use self::following::Next;
use self::ledger::Ledger;
use self::multipart::{Uploads, Write as PartWrite};
use iolite_engine::by_index::ByIndex;
use iolite_engine::completed_later::MonotonicClock;
use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Outcome, Queued, Requests,
    StageEnds, Storage, Unit,
};
use iolite_http::multipart::is_refused_in_body;
use iolite_http::{Answer, Client, Done, Marks, Method, Object, Refusal, Request, Sink, listing};
use iolite_options::engines::{HttpOptions, HttpProtocol, ObjectMode, ReadRequest, Visible, WriteRequest};
use iolite_types::Operation;
use std::collections::VecDeque;
use std::fmt::Write;
use std::io;
use std::time::{Duration, Instant};

/// The default size of the parts in which a large object is laid out before a job, in bytes.
const LAID_OUT_PART: u64 = 16 << 20;

/// The engine.
pub struct HttpEngine {
    client: Client,
    options: HttpOptions,
    /// The size of every I/O in bytes; 0 = sizes differ.
    block: u64,
    files: ByIndex<File>,
    /// The units in flight, by their index.
    units: Vec<Flying>,
    clock: MonotonicClock,
    /// A buffer for the name of an object.
    name: String,
    /// A buffer for the name of the object that a write copies.
    source: String,
    /// The number of missing objects that were read as zeros, or were to be trimmed.
    missing: u64,
    /// The number of removed objects that are still there as older versions.
    marked: u64,
    /// The position of each unit in its list: the file and the token of the next page; `None` = the beginning.
    cursors: Vec<Option<(u32, String)>>,
    names_listed: u64,
    /// Units in flight.
    flying: usize,
    /// Requests of units that have not been committed. They are sent on commit, so that signing the later requests of a
    /// batch does not add to the time to the first byte of the earlier ones.
    unsent: Vec<(u32, Request)>,
    /// Objects that are uploaded in parts; `None` = the protocol does not support that.
    uploads: Option<Box<Uploads>>,
    /// Large writes are uploaded in parts.
    splits: bool,
    /// More requests may follow the first one of a unit.
    follows: bool,
    /// Finished units that have not been reaped, if requests follow.
    over: VecDeque<Completion>,
    /// The job was asked to end.
    is_stopping: bool,
}

/// An open file.
struct File {
    /// Its name on the server, which begins with a slash.
    name: String,
    /// The end of the region that the job may touch.
    end: u64,
}

/// A unit in flight, and why it failed.
#[derive(Clone, Default)]
struct Flying {
    buffer: usize,
    length: u64,
    offset: u64,
    file: u32,
    method: Option<Method>,
    words: Option<String>,
    /// When its request was about to be sent.
    issued: Option<Instant>,
    /// When its request reached what; `None` = it was several requests.
    marks: Option<Marks>,
    is_repeated: bool,
    /// What follows the request that is under way.
    next: Option<Next>,
    /// How long it took until the written object was seen, in nanoseconds.
    visible: Option<u64>,
}

impl Flying {
    /// Its request is over.
    fn over(&mut self, done: &Done) {
        (self.marks, self.is_repeated) = (Some(done.marks), done.is_repeated);
    }
}

impl HttpEngine {
    /// Creates an engine for this server. It connects with the first request.
    ///
    /// # Errors
    /// The server's name cannot be resolved, or keys or certificates are missing or cannot be used.
    pub fn new(config: &EngineConfig, options: &HttpOptions) -> Result<Self, EngineError> {
        let options = set_up::with_region(options);
        let client = set_up::connect(&options, config.worker).map_err(EngineError::Http)?;
        let part = options.http_s3_multipart_size;
        let uploads = (options.http_mode == HttpProtocol::S3).then(|| {
            let part = if part > 0 { part } else { LAID_OUT_PART };
            Box::new(Uploads::new(part, config.depth, Ledger::new(&config.auxiliary)))
        });
        let follows = options.http_visible != Visible::Off || options.http_s3_delete_versions;
        Ok(HttpEngine {
            client,
            options,
            block: config.block,
            files: ByIndex::with_room(config.files),
            units: vec![Flying::default(); config.depth],
            clock: MonotonicClock::now(),
            name: String::new(),
            source: String::new(),
            missing: 0,
            marked: 0,
            cursors: Vec::new(),
            names_listed: 0,
            flying: 0,
            unsent: Vec::with_capacity(config.depth),
            splits: part > 0 && uploads.is_some(),
            follows,
            over: VecDeque::with_capacity(config.depth),
            is_stopping: false,
            uploads,
        })
    }

    /// The name of a file on the server.
    fn server_name(&self, path: &std::path::Path) -> io::Result<String> {
        set_up::server_name(&self.options, path)
            .map_err(|words| io::Error::new(io::ErrorKind::InvalidInput, words))
    }

    /// Begins the request of a unit.
    ///
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn begin(&mut self, unit: &Unit, method: Method) -> Result<(), Errno> {
        let file = self.files.of_open(unit.file)?;
        let end = file.end;
        let part = name_object(&mut self.name, &self.options, &file.name, unit.offset, unit.length);
        let is_look = method == Method::Head;
        let part = part.filter(|_| method == Method::Get);
        if self.options.http_s3_list > 0 && method == Method::Get {
            return self.begin_list(unit);
        }
        let length = unit.length as usize;
        let body: &[u8] = match method {
            // SAFETY: the caller promises that the buffer is valid for these bytes.
            Method::Put if length > 0 => unsafe { std::slice::from_raw_parts(unit.buffer, length) },
            _ => &[],
        };
        if self.units.len() <= unit.index as usize {
            self.units.resize(unit.index as usize + 1, Flying::default());
        }
        self.units[unit.index as usize] = Flying {
            buffer: unit.buffer.addr(),
            length: unit.length,
            offset: unit.offset,
            file: unit.file,
            method: Some(method),
            ..Flying::default()
        };
        if self.splits && !is_look && method != Method::Get && self.is_of_parts(unit, method, end)? {
            let Unit { buffer, length, offset, index, file, .. } = *unit;
            self.units[index as usize].issued = Some(Instant::now());
            // SAFETY: the caller upholds the same contract.
            unsafe { self.begin_write(PartWrite { buffer, length, offset, unit: index, file }) };
            return Ok(());
        }
        if method == Method::Delete && self.options.http_s3_delete_versions {
            let request = self.ask_for_versions().map_err(|_| Errno(libc::EINVAL))?;
            self.units[unit.index as usize].next = Some(Next::Remove(None));
            self.unsent.push((unit.index, request));
            return Ok(());
        }
        let version = match method {
            Method::Get | Method::Head if !self.options.http_s3_version_id.is_empty() => {
                listing::version_query(&self.options.http_s3_version_id)
            }
            _ => String::new(),
        };
        self.source.clear();
        if method == Method::Copy {
            let source = &self.options.http_copy_source;
            name_object(&mut self.source, &self.options, source, unit.offset, unit.length);
        }
        let object = Object { name: &self.name, part, query: &version, source: &self.source };
        let head = self.client.head(method, &object, body);
        let sink = match method {
            Method::Get => Sink::Memory(unit.buffer, length),
            _ => Sink::Text,
        };
        let body = (body.as_ptr(), body.len());
        let fields = self.follows || method == Method::Delete;
        let request = Request { head, body, sink, head_only: is_look, fields, patient: false };
        self.unsent.push((unit.index, request));
        Ok(())
    }

    /// Requests the next page of the list of names for a unit. Each unit goes through the list on its own,
    /// repeatedly.
    fn begin_list(&mut self, unit: &Unit) -> Result<(), Errno> {
        let index = unit.index as usize;
        if self.units.len() <= index {
            self.units.resize(index + 1, Flying::default());
        }
        if self.cursors.len() <= index {
            self.cursors.resize(index + 1, None);
        }
        let name = self.files.of_open(unit.file)?;
        let (bucket, prefix) = self.listed(name.name.as_ref()).map_err(|_| Errno(libc::EINVAL))?;
        let cursor = self.cursors[index].as_ref().filter(|(file, _)| *file == unit.file);
        let from = cursor.map(|(_, token)| token.as_str());
        let query = listing::query(&prefix, self.options.http_s3_list, from);
        let Unit { buffer, length, offset, file, .. } = *unit;
        self.units[index] = Flying {
            buffer: buffer.addr(),
            length,
            offset,
            file,
            method: Some(Method::Get),
            ..Flying::default()
        };
        let head = self.client.head(
            Method::Get,
            &Object { name: &bucket, part: None, query: &query, source: "" },
            &[],
        );
        let request = Request {
            head,
            body: (std::ptr::null(), 0),
            sink: Sink::Text,
            head_only: false,
            fields: false,
            patient: false,
        };
        self.unsent.push((unit.index, request));
        Ok(())
    }

    /// The outcome of a page of a list.
    fn list_outcome(&mut self, done: Done) -> Outcome {
        let index = done.token as usize;
        let Flying { length, file, .. } = self.units[index];
        self.units[index].over(&done);
        let words = match done.result {
            Ok(answer) if answer.is_success() => match listing::page(&answer) {
                Ok(page) => {
                    self.names_listed += page.names as u64;
                    self.cursors[index] = page.next.map(|token| (file, token));
                    return Ok(length);
                }
                Err(why) => why,
            },
            Ok(answer) => {
                let refusal = Refusal::of(&answer);
                format!("{refusal}{}", remedy::of(&refusal, &self.options, false))
            }
            Err(failure) => failure.words,
        };
        let name = self.files.get(file).map_or("", |file| &file.name);
        self.units[index].words = Some(format!("GET list of {name}: {words}"));
        Err(Errno(libc::EIO))
    }

    /// Whether a write is uploaded in parts.
    fn is_of_parts(&mut self, unit: &Unit, method: Method, end: u64) -> Result<bool, Errno> {
        let Some(uploads) = &self.uploads else { return Ok(false) };
        let mode = self.options.http_object_mode;
        if !uploads.takes(mode, unit.length, end) {
            return Ok(false);
        }
        let is_whole = unit.offset == 0 && unit.length == end;
        let fits = match method {
            Method::Put => mode == ObjectMode::Block || uploads.fits(unit.offset, unit.length, end),
            _ => mode == ObjectMode::Block || is_whole,
        };
        if fits {
            return Ok(method == Method::Put);
        }
        let words = match method {
            Method::Put => "it is not part of the object (http_s3_multipart_size)",
            _ => "trims remove whole objects: bs= has to be the size of the file",
        };
        self.units[unit.index as usize].words = Some(words.to_owned());
        Err(Errno(libc::EINVAL))
    }

    /// The outcome of a unit.
    fn outcome(&mut self, done: Done) -> Outcome {
        let index = done.token as usize;
        let Flying { length, offset, method, .. } = self.units[index];
        if self.options.http_s3_list > 0 && method == Some(Method::Get) {
            return self.list_outcome(done);
        }
        self.units[index].over(&done);
        let is_read = method == Some(Method::Get);
        let must_be_there = is_read || method == Some(Method::Head);
        let words = match done.result {
            // (A server that copies for long sends the status before it knows the outcome.)
            Ok(answer)
                if answer.is_success() && !(method == Some(Method::Copy) && is_refused_in_body(&answer)) =>
            {
                match self.is_what_was_asked_for(&answer, offset, length) {
                    _ if !is_read => {
                        self.note_mark(&answer);
                        return Ok(length);
                    }
                    true => return Ok(length),
                    false => self.wrong_part(&answer, offset, length),
                }
            }
            // An earlier attempt has removed the object.
            Ok(answer) if answer.status == 404 && done.is_repeated && method == Some(Method::Delete) => {
                return Ok(length);
            }
            Ok(answer)
                if answer.status == 404
                    && self.options.lenient
                    && (must_be_there || method == Some(Method::Delete)) =>
            {
                self.missing += 1;
                if is_read {
                    let buffer = self.units[index].buffer as *mut u8;
                    // SAFETY: the unit's buffer is valid for its length until the unit is complete, and it is not
                    // complete before this returns.
                    unsafe { buffer.write_bytes(0, length as usize) };
                }
                return Ok(length);
            }
            Ok(answer) => {
                let refusal = Refusal::of(&answer);
                let remedy = match method {
                    Some(Method::Copy)
                        if refusal.status == 404 && refusal.code.as_deref() != Some("NoSuchBucket") =>
                    {
                        let source = &self.options.http_copy_source;
                        format!("; write the source first, with the same bs: filename={source}")
                    }
                    _ => remedy::of(&refusal, &self.options, must_be_there),
                };
                format!("{refusal}{remedy}")
            }
            Err(failure) => failure.words,
        };
        let request = self.in_words(index);
        self.units[index].words = Some(format!("{request}: {words}"));
        Err(Errno(libc::EIO))
    }

    /// Counts a removal after which the object is still there as a version.
    fn note_mark(&mut self, answer: &Answer) {
        self.marked += u64::from(answer.field("x-amz-delete-marker") == Some("true"));
    }

    /// Whether an answer contains the part of the object that a unit reads.
    fn is_what_was_asked_for(&self, answer: &Answer, offset: u64, length: u64) -> bool {
        let is_the_part = match (self.options.http_object_mode, answer.status) {
            (ObjectMode::Block, _) => true,
            (ObjectMode::Range, 206) => answer.part_start.is_none_or(|start| start == offset),
            // A server that does not support ranges sends the object from its beginning.
            (ObjectMode::Range, _) => offset == 0,
        };
        is_the_part && answer.length == length
    }

    fn wrong_part(&self, answer: &Answer, offset: u64, length: u64) -> String {
        let has = answer.length;
        match self.options.http_object_mode {
            ObjectMode::Block => {
                format!("the object has {has} bytes, not {length}: another client wrote it")
            }
            ObjectMode::Range if answer.status != 206 => {
                format!("the server gave all {has} bytes of the object, not the range that was asked for")
            }
            ObjectMode::Range if answer.part_start.is_some_and(|start| start != offset) => {
                format!("the server gave another range of the object than that which begins at {offset}")
            }
            ObjectMode::Range => {
                format!("there are {has} of these {length} bytes; {}", remedy::TOO_SHORT)
            }
        }
    }

    /// Goes on with units that consist of several requests.
    fn go_on(&mut self) {
        if self.splits {
            self.go_on_with_uploads();
        } else if self.follows {
            self.follow();
        }
    }

    /// The number of finished units that have not been reaped.
    fn count_over(&self) -> usize {
        match &self.uploads {
            Some(uploads) if self.splits => uploads.over.len(),
            _ if self.follows => self.over.len(),
            _ => self.client.count_done(),
        }
    }

    /// New messages about uploads.
    fn news(&mut self) -> Vec<String> {
        self.uploads.as_deref_mut().map(|uploads| std::mem::take(&mut uploads.news)).unwrap_or_default()
    }

    /// The request of a unit: `GET /bucket/name_0_4096`.
    fn in_words(&mut self, index: usize) -> String {
        let Flying { file, offset, length, method, .. } = self.units[index];
        let Some(file) = self.files.get(file) else { return String::new() };
        name_object(&mut self.name, &self.options, &file.name, offset, length);
        format!("{} {}", method.map_or("", Method::word), self.name)
    }
}

/// Builds the name of the object for a block of a file. If the block is only a part of the object, returns that part.
fn name_object(
    name: &mut String,
    options: &HttpOptions,
    file: &str,
    offset: u64,
    length: u64,
) -> Option<std::ops::Range<u64>> {
    name.clear();
    name.push_str(file);
    match options.http_object_mode {
        ObjectMode::Block => {
            // (Writing to a String does not fail.)
            let _ = write!(name, "_{offset}_{length}");
            None
        }
        ObjectMode::Range => Some(offset..offset.saturating_add(length)),
    }
}

impl Engine for HttpEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        let name = self.server_name(&spec.path)?;
        let objects = self.options.http_object_mode;
        let invalid = |words| Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        if self.splits && mode.write {
            let part = self.options.http_s3_multipart_size;
            if let Some(words) = multipart::obstacle(part, objects, self.block, spec.size) {
                return invalid(format!("{}: {words}", spec.path.display()));
            }
            self.abort_left();
        }
        let in_parts = self.splits && spec.size > self.options.http_s3_multipart_size;
        let is_whole = objects == ObjectMode::Block || self.block == spec.size || in_parts;
        if mode.write && !is_whole && !self.options.lenient {
            let words = format!(
                "{}: http_object_mode=range writes and trims whole objects: bs= has to be the size of the file, {} bytes",
                spec.path.display(),
                spec.size
            );
            return invalid(words);
        }
        self.files.set(index, File { name, end: spec.size });
        Ok(())
    }

    // The name is kept: it is needed to remove the file, and in messages about units.
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let method = match unit.operation {
            Operation::Read if self.options.http_read == ReadRequest::Head => Method::Head,
            Operation::Read => Method::Get,
            Operation::Write if self.options.http_write == WriteRequest::Copy => Method::Copy,
            Operation::Write => Method::Put,
            Operation::Trim => Method::Delete,
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => {
                return Queued::Completed(Ok(0));
            }
            Operation::Work => return Queued::Completed(Err(Errno(libc::ENOSYS))),
        };
        // SAFETY: the caller upholds the same contract.
        match unsafe { self.begin(unit, method) } {
            Ok(()) => {
                self.flying += 1;
                Queued::Queued
            }
            Err(errno) => Queued::Completed(Err(errno)),
        }
    }

    /// Sends the requests of the batch. The time to the first byte starts before a request is sent.
    fn commit(&mut self) -> Result<usize, Errno> {
        for (unit, request) in self.unsent.drain(..) {
            self.units[unit as usize].issued = Some(Instant::now());
            // SAFETY: the caller of `queue` promised that the buffer is valid until the unit is complete or the engine is gone.
            unsafe { self.client.begin(unit, request) };
        }
        if self.splits {
            self.send_steps();
        }
        Ok(0)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let wanted = min.min(max).min(self.flying - self.unsent.len());
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // (What was stopped is over without another event.)
        self.go_on();
        // Requests must make progress even if there is nothing to wait for.
        let mut has_driven = false;
        while self.count_over() < wanted || !has_driven {
            let left = match (wanted, end) {
                (0, _) => Some(Duration::ZERO),
                _ if self.count_over() >= wanted => Some(Duration::ZERO),
                (_, Some(end)) => Some(end.saturating_duration_since(Instant::now())),
                (_, None) => None,
            };
            match self.client.drive(left) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => break,
                Err(error) => return Err(Errno::from(&error)),
            }
            self.go_on();
            has_driven = true;
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
        for _ in 0..max {
            let completion = if self.splits {
                self.uploads.as_deref_mut().and_then(|uploads| uploads.over.pop_front())
            } else if self.follows {
                self.over.pop_front()
            } else {
                self.client.next_done().map(|over| {
                    let unit = over.token;
                    Completion { unit, outcome: self.outcome(over) }
                })
            };
            let Some(completion) = completion else { break };
            self.flying -= 1;
            done.push(completion);
        }
        Ok(())
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.units.get(unit as usize)?.words.clone()
    }

    fn first_byte(&self, unit: u32) -> Option<u64> {
        let Flying { issued, marks, .. } = self.units.get(unit as usize)?;
        let time = (*marks)?.first_byte?.saturating_duration_since((*issued)?);
        Some(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    fn visible(&self, unit: u32) -> Option<u64> {
        self.units.get(unit as usize)?.visible
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        // Of a request that was sent again, only the last attempt has marks, and looks that follow have none.
        let flying =
            self.units.get(unit as usize).filter(|flying| !flying.is_repeated && flying.visible.is_none())?;
        let Marks { connected, secured, sent, first_byte } = flying.marks?;
        let end = |mark| self.clock.ns(mark);
        // Some servers refuse a request before all of it has been sent.
        let (sent, first_byte) = (sent.or(first_byte).map(end), first_byte.map_or(u64::MAX, end));
        Some([connected.map_or(0, end), secured.map_or(0, end), sent.unwrap_or(u64::MAX), first_byte])
    }

    fn requests(&self) -> Requests {
        let counts = self.client.counts();
        Requests { repeated: counts.retries, throttled: counts.throttled }
    }

    fn stop_repeating(&mut self) {
        self.is_stopping = true;
        self.client.stop_repeating();
    }

    fn remarks(&mut self) -> Vec<String> {
        self.end_uploads();
        let mut lines = self.news();
        if self.names_listed > 0 {
            lines.push(format!("http: names listed: {}", self.names_listed));
        }
        if self.marked > 0 {
            lines.push(format!(
                "http: {} removed objects are still there, as older versions behind marks: the bucket keeps versions; \
                 http_s3_delete_versions=1 removes them all",
                self.marked
            ));
        }
        if self.missing > 0 {
            lines.push(format!(
                "http: {} requests for objects that are not there counted as done (404); under its own name this is \
                 an error",
                self.missing
            ));
        }
        lines
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

impl Drop for HttpEngine {
    /// Aborts incomplete uploads of jobs that end before their first unit, or unexpectedly.
    fn drop(&mut self) {
        self.end_uploads();
    }
}
