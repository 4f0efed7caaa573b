//! Objects that are uploaded in parts: `http_s3_multipart_size`.
//!
//! If each block is an object, a write that is longer than a part becomes a separate upload. If a file is one object,
//! each of its writes is one or more parts of one upload, in any order. A part that is written again before the object
//! is complete replaces the server's copy. The write that completes the object also ends the upload, and is done when
//! the server has assembled the object. Every part is a separate request. The job's depth limits how many requests are
//! in flight.
//!
//! Incomplete uploads are aborted at the end of the job. If a job is killed, the next one aborts its uploads
//! (`ledger.rs`).

mod left;
mod whole;

pub(super) use self::whole::Whole;

use super::ledger::Ledger;
use super::{HttpEngine, remedy};
use iolite_engine::{Completion, Errno, Outcome};
use iolite_http::multipart::{self, Part};
use iolite_http::{Answer, Done, Method, Object, Refusal, Request, Sink};
use iolite_options::engines::ObjectMode;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Request tokens from this value on belong to steps, and lower ones to units.
pub(super) const STEPS: u32 = 1 << 31;

/// A write that is uploaded in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) buffer: *mut u8,
    pub(super) length: u64,
    pub(super) offset: u64,
    pub(super) unit: u32,
    pub(super) file: u32,
}

/// An upload that is under way.
struct Upload {
    name: String,
    /// The file whose object is uploaded; `None` = the object is that of one unit.
    file: Option<u32>,
    /// Its number in the ledger.
    number: u64,
    id: Option<String>,
    /// The offset of the first part in the file.
    start: u64,
    /// The length of the object in bytes.
    length: u64,
    parts: Vec<State>,
    /// How many parts the server has stored.
    there: usize,
    /// Writes that wait for the id.
    waiting: Vec<Write>,
    /// Writes that wait because another unit is sending the same part, or because this upload is ending and they
    /// belong to the next one.
    held: VecDeque<Write>,
    /// The unit that ends the upload, while that request is under way.
    ends_for: Option<u32>,
    /// The upload is being aborted, or its state is unknown.
    is_lost: bool,
    /// The body of the request that ends the upload.
    body: String,
    /// The server may have been asked more than once to begin the upload.
    is_repeated: bool,
}

/// A part.
#[derive(Clone, Debug)]
enum State {
    Missing,
    UnderWay,
    There(Part),
}

/// A request for an upload.
enum Step {
    Begin,
    /// Sends a part: the unit, the index of the part, and the address and length of its data.
    Part(u32, usize, (*const u8, usize)),
    End,
    /// Checks whether the object exists, because the server was asked more than once to end the upload, and no longer
    /// knows it.
    Look,
    /// Aborts the upload, and then completes the unit that failed, if there is one.
    Abort(Option<u32>),
}

/// The progress of a unit.
#[derive(Clone, Default)]
struct Progress {
    /// How many parts have been neither acknowledged nor refused.
    left: usize,
    failed: bool,
}

/// The uploads of an engine.
pub(super) struct Uploads {
    /// The size of a part in bytes.
    part: u64,
    /// The maximum number of requests in flight.
    most: usize,
    all: BTreeMap<u32, Upload>,
    of_file: BTreeMap<u32, u32>,
    next: u32,
    /// The requests in flight, indexed by their tokens.
    steps: Vec<Option<(u32, Step)>>,
    free: Vec<usize>,
    /// Requests that wait until the depth allows sending them.
    queue: VecDeque<(u32, Step)>,
    units: Vec<Progress>,
    /// Units that are complete.
    pub(super) over: VecDeque<Completion>,
    pub(super) ledger: Ledger,
    has_looked: bool,
    /// Messages for the user.
    pub(super) news: Vec<String>,
}

impl Uploads {
    pub(super) fn new(part: u64, depth: usize, ledger: Ledger) -> Uploads {
        Uploads {
            part,
            most: depth,
            all: BTreeMap::new(),
            of_file: BTreeMap::new(),
            next: 0,
            steps: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            units: Vec::new(),
            over: VecDeque::new(),
            ledger,
            has_looked: false,
            news: Vec::new(),
        }
    }

    /// Whether a write is uploaded in parts. `end` is the final length of the file.
    pub(super) fn takes(&self, mode: ObjectMode, length: u64, end: u64) -> bool {
        match mode {
            ObjectMode::Block => length > self.part,
            ObjectMode::Range => end > self.part,
        }
    }

    /// Whether this range consists of whole parts of a file of this length.
    pub(super) fn fits(&self, offset: u64, length: u64, end: u64) -> bool {
        offset.is_multiple_of(self.part) && (length.is_multiple_of(self.part) || offset + length == end)
    }

    /// The size of a part in bytes.
    pub(super) fn part(&self) -> u64 {
        self.part
    }

    fn parts(&self, length: u64) -> usize {
        length.div_ceil(self.part) as usize
    }
}

/// Why writes of this block size (0 = sizes differ) cannot be parts of a file of this size; `None` = they can.
pub(super) fn obstacle(part: u64, mode: ObjectMode, block: u64, end: u64) -> Option<String> {
    let object = if mode == ObjectMode::Block { block } else { end };
    if object.div_ceil(part) > multipart::MOST_PARTS {
        let least = object.div_ceil(multipart::MOST_PARTS).next_multiple_of(1 << 20);
        return Some(format!(
            "an object of {object} bytes would have more than {} parts; give http_s3_multipart_size={least} or more",
            multipart::MOST_PARTS
        ));
    }
    let fits =
        mode == ObjectMode::Block || end <= part || block == end || (block > 0 && block.is_multiple_of(part));
    if fits && mode == ObjectMode::Range && end > part && !end.is_multiple_of(block) {
        return Some(format!(
            "blocks of {block} bytes never make an object of {end} bytes whole: size= has to be a multiple of bs="
        ));
    }
    (!fits).then(|| {
        format!(
            "http_object_mode=range writes parts of {part} bytes (http_s3_multipart_size): bs= has to be that, a multiple of \
             it, or the size of the file, {end} bytes"
        )
    })
}

impl HttpEngine {
    fn uploads(&mut self) -> &mut Uploads {
        self.uploads.as_deref_mut().expect("there are uploads where there are parts")
    }

    /// Begins a write that is uploaded in parts. [`HttpEngine::send_steps`] sends them.
    ///
    /// # Safety
    /// As [`iolite_engine::Engine::queue`].
    pub(super) unsafe fn begin_write(&mut self, write: Write) {
        let uploads = self.uploads();
        let index = write.unit as usize;
        if uploads.units.len() <= index {
            uploads.units.resize(index + 1, Progress::default());
        }
        uploads.units[index] = Progress::default();
        self.join(write);
    }

    /// Adds a write to the upload of its object, or to a new one.
    fn join(&mut self, write: Write) {
        let is_range = self.options.http_object_mode == ObjectMode::Range;
        let uploads = self.uploads();
        if is_range && let Some(&key) = uploads.of_file.get(&write.file) {
            let (first, count) = ((write.offset / uploads.part) as usize, uploads.parts(write.length));
            let upload = uploads.all.get_mut(&key).expect("the upload of a file is there");
            let is_busy =
                upload.parts[first..first + count].iter().any(|part| matches!(part, State::UnderWay));
            let end = write.offset + write.length;
            let overlaps = |held: &Write| held.offset < end && write.offset < held.offset + held.length;
            if upload.is_lost || upload.ends_for.is_some() || is_busy || upload.held.iter().any(overlaps) {
                upload.held.push_back(write);
            } else if upload.id.is_some() {
                self.queue_parts(key, write);
            } else {
                uploads.units[write.unit as usize].left = count;
                upload.parts[first..first + count].fill(State::UnderWay);
                upload.waiting.push(write);
            }
            return;
        }
        if let Err(error) = self.begin_upload(write) {
            self.unit_failed(write.unit, &error.to_string());
        }
    }

    /// Begins an upload for this write and for later ones of the same object.
    fn begin_upload(&mut self, write: Write) -> io::Result<()> {
        let Some(file) = self.files.get(write.file) else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let (file_name, end) = (file.name.clone(), file.end);
        let is_part =
            super::name_object(&mut self.name, &self.options, &file_name, write.offset, write.length);
        let (start, length) = if is_part.is_some() { (0, end) } else { (write.offset, write.length) };
        let (name, server) = (self.name.clone(), self.server());
        let uploads = self.uploads();
        let number = uploads.ledger.begin(&server, &name)?;
        uploads.next += 1;
        let key = uploads.next;
        let mut parts = vec![State::Missing; uploads.parts(length)];
        let first = ((write.offset - start) / uploads.part) as usize;
        let count = uploads.parts(write.length);
        parts[first..first + count].fill(State::UnderWay);
        uploads.units[write.unit as usize].left = count;
        let file = is_part.map(|_| write.file);
        let upload = Upload {
            name,
            file,
            number,
            id: None,
            start,
            length,
            parts,
            there: 0,
            waiting: vec![write],
            held: VecDeque::new(),
            ends_for: None,
            is_lost: false,
            body: String::new(),
            is_repeated: false,
        };
        uploads.all.insert(key, upload);
        if let Some(file) = file {
            uploads.of_file.insert(file, key);
        }
        uploads.queue.push_back((key, Step::Begin));
        Ok(())
    }

    /// Queues the parts of a write after its upload has got an id.
    fn queue_parts(&mut self, key: u32, write: Write) {
        let uploads = self.uploads();
        let upload = uploads.all.get_mut(&key).expect("it waits for this upload");
        let first = ((write.offset - upload.start) / uploads.part) as usize;
        let mut from = 0;
        let mut number = first;
        while from < write.length {
            let length = uploads.part.min(write.length - from) as usize;
            // If the server has the part, the new one replaces it.
            if let State::There(_) = std::mem::replace(&mut upload.parts[number], State::UnderWay) {
                upload.there -= 1;
            }
            let start = write.buffer.wrapping_add(from as usize).cast_const();
            uploads.queue.push_back((key, Step::Part(write.unit, number, (start, length))));
            from += length as u64;
            number += 1;
        }
        uploads.units[write.unit as usize].left = number - first;
    }

    /// Sends queued requests, as many as the depth allows.
    pub(super) fn send_steps(&mut self) {
        while self.client.in_flight() < self.uploads().most.max(1) {
            let Some((key, step)) = self.uploads().queue.pop_front() else { return };
            if let Step::Part(unit, number, _) = &step
                && self.uploads().units[*unit as usize].failed
            {
                // Another part of the unit was refused, so this part is not sent.
                let (unit, number) = (*unit, *number);
                self.part_over(key, unit, number, None);
                continue;
            }
            self.send_step(key, step);
        }
    }

    fn send_step(&mut self, key: u32, step: Step) {
        let uploads = self.uploads.as_deref_mut().expect("there are uploads where there are steps");
        let Some(upload) = uploads.all.get_mut(&key) else { return };
        let id = upload.id.as_deref().unwrap_or_default();
        let (method, query, (start, length)) = match &step {
            Step::Begin => (Method::Post, multipart::beginning().to_owned(), (std::ptr::null(), 0)),
            Step::Part(_, number, body) => (Method::Put, multipart::part_query(number + 1, id), *body),
            Step::End => {
                let parts = upload.parts.iter().filter_map(|part| match part {
                    State::There(part) => Some(part),
                    _ => None,
                });
                upload.body = multipart::ending(parts);
                (Method::Post, multipart::upload_query(id), (upload.body.as_ptr(), upload.body.len()))
            }
            Step::Look => (Method::Head, String::new(), (std::ptr::null(), 0)),
            Step::Abort(_) => (Method::Delete, multipart::upload_query(id), (std::ptr::null(), 0)),
        };
        let body: &[u8] = match length {
            0 => &[],
            // SAFETY: the unit's buffer is valid until the unit is complete, which is after its parts. The body of
            // the last request belongs to the upload, which does not remove or change it before the request is over.
            _ => unsafe { std::slice::from_raw_parts(start, length) },
        };
        let object = Object { name: &upload.name, part: None, query: &query, source: "" };
        let head = self.client.head(method, &object, body);
        let request = Request {
            head,
            body: (start, length),
            sink: Sink::Text,
            head_only: matches!(step, Step::Look),
            fields: true,
            // Assembling a large object takes long. Meanwhile, the server keeps sending data to show that it is
            // alive.
            patient: matches!(step, Step::End),
        };
        let slot = uploads.free.pop().unwrap_or_else(|| {
            uploads.steps.push(None);
            uploads.steps.len() - 1
        });
        uploads.steps[slot] = Some((key, step));
        // SAFETY: as above.
        unsafe { self.client.begin(STEPS | slot as u32, request) };
    }

    /// Continues with all finished requests.
    pub(super) fn go_on_with_uploads(&mut self) {
        while let Some(done) = self.client.next_done() {
            if done.token < STEPS {
                let unit = done.token;
                if let Some(outcome) = self.request_over(done) {
                    self.uploads().over.push_back(Completion { unit, outcome });
                }
            } else {
                self.step_done(done);
            }
            self.send_steps();
        }
    }

    fn step_done(&mut self, done: Done) {
        let slot = (done.token - STEPS) as usize;
        let uploads = self.uploads();
        let Some((key, step)) = uploads.steps[slot].take() else { return };
        uploads.free.push(slot);
        let is_repeated = done.is_repeated;
        match step {
            Step::Begin => self.upload_begun(key, done.result.map_err(|failure| failure.words), is_repeated),
            Step::Part(unit, number, _) => {
                if self.units[unit as usize].length <= self.uploads().part {
                    self.units[unit as usize].over(&done);
                }
                let outcome = self.granted(done.result.map_err(|failure| failure.words)).and_then(|answer| {
                    Part::of(&answer).ok_or_else(|| "the answer says no ETag of the part".to_owned())
                });
                match outcome {
                    Ok(part) => self.part_over(key, unit, number, Some(part)),
                    Err(words) => {
                        self.note_failure(unit, key, &format!("part {}", number + 1), &words);
                        self.part_over(key, unit, number, None);
                    }
                }
            }
            Step::End => self.upload_ended(key, done.result.map_err(|failure| failure.words), is_repeated),
            Step::Look => {
                let answer = done.result.map_err(|failure| failure.words);
                let upload = self.uploads().all.get(&key);
                let shape = upload.map(|upload| (upload.length, upload.parts.len()));
                let result = shape.ok_or_else(String::new).and_then(|shape| became(answer?, shape));
                self.ended(key, result);
            }
            Step::Abort(unit) => {
                let is_gone = done.result.is_ok_and(|answer| answer.is_success() || answer.status == 404);
                if let Some(unit) = unit {
                    self.complete(unit, Err(Errno(libc::EIO)));
                }
                self.forget(key, is_gone);
            }
        }
    }

    /// Turns an answer that refuses the request into an error.
    fn granted(&self, result: Result<Answer, String>) -> Result<Answer, String> {
        let answer = result?;
        if answer.is_success() && !multipart::is_refused_in_body(&answer) {
            return Ok(answer);
        }
        let refusal = Refusal::of(&answer);
        Err(format!("{refusal}{}", remedy::of(&refusal, &self.options, false)))
    }

    fn upload_begun(&mut self, key: u32, result: Result<Answer, String>, is_repeated: bool) {
        let is_answered = result.is_ok();
        let begun = self.granted(result).and_then(|answer| {
            multipart::begun_id(&answer).ok_or_else(|| "the answer has no UploadId".to_owned())
        });
        let uploads = self.uploads();
        let Some(upload) = uploads.all.get_mut(&key) else { return };
        upload.is_repeated = is_repeated;
        let waiting = std::mem::take(&mut upload.waiting);
        upload.id = begun.as_ref().ok().cloned();
        let noted = uploads.ledger.begun(upload.number, upload.id.as_deref(), is_repeated);
        let begun = begun.and_then(|_| noted.map_err(|error| error.to_string()));
        match begun {
            Ok(()) => waiting.into_iter().for_each(|write| self.queue_parts(key, write)),
            Err(words) => {
                let has_id = upload.id.is_some();
                for write in waiting {
                    self.note_failure(write.unit, key, "its beginning", &words);
                    self.complete(write.unit, Err(Errno(libc::EIO)));
                }
                // If there was no answer, the server may have begun the upload. The end of the job checks that.
                self.forget(key, is_answered && !has_id);
            }
        }
    }

    /// Handles a part that the server has stored (`Some`) or that has failed.
    fn part_over(&mut self, key: u32, unit: u32, number: usize, part: Option<Part>) {
        let uploads = self.uploads();
        let progress = &mut uploads.units[unit as usize];
        progress.left -= 1;
        progress.failed |= part.is_none();
        let (is_last, failed) = (progress.left == 0, progress.failed);
        let upload = uploads.all.get_mut(&key).expect("a part under way keeps its upload");
        upload.parts[number] = match part {
            Some(part) => {
                upload.there += 1;
                State::There(part)
            }
            None => State::Missing,
        };
        let (is_whole, of_unit) = (upload.there == upload.parts.len(), upload.file.is_none());
        if !is_last {
            return;
        }
        if !is_whole {
            // Other writes may have waited for this one.
            for write in std::mem::take(&mut upload.held) {
                self.join(write);
            }
        }
        let uploads = self.uploads();
        match (failed, is_whole) {
            (true, _) if of_unit => {
                if let Some(upload) = uploads.all.get_mut(&key) {
                    upload.is_lost = true;
                }
                uploads.queue.push_back((key, Step::Abort(Some(unit))));
            }
            (true, _) => self.complete(unit, Err(Errno(libc::EIO))),
            (false, true) => {
                if let Some(upload) = uploads.all.get_mut(&key) {
                    upload.ends_for = Some(unit);
                }
                uploads.queue.push_back((key, Step::End));
            }
            (false, false) => {
                let length = self.units[unit as usize].length;
                self.complete(unit, Ok(length));
            }
        }
    }

    fn upload_ended(&mut self, key: u32, result: Result<Answer, String>, is_repeated: bool) {
        if is_repeated && result.as_ref().is_ok_and(is_unknown) {
            // An earlier request may have ended the upload, and its answer was lost.
            self.uploads().queue.push_back((key, Step::Look));
            return;
        }
        let result = self.granted(result).map(drop);
        self.ended(key, result);
    }

    /// Handles the outcome of ending an upload: whether it has become its object.
    fn ended(&mut self, key: u32, result: Result<(), String>) {
        let Some(unit) = self.uploads().all.get_mut(&key).and_then(|upload| upload.ends_for.take()) else {
            return;
        };
        match result {
            Err(words) => {
                self.note_failure(unit, key, "its end", &words);
                let uploads = self.uploads();
                if let Some(upload) = uploads.all.get_mut(&key) {
                    upload.is_lost = true;
                }
                uploads.queue.push_back((key, Step::Abort(Some(unit))));
            }
            Ok(()) => {
                let length = self.units[unit as usize].length;
                self.complete(unit, Ok(length));
                self.forget(key, true);
            }
        }
    }

    /// Keeps the message of a unit's first failure.
    fn note_failure(&mut self, unit: u32, key: u32, what: &str, words: &str) {
        let name = self.uploads().all.get(&key).map_or("", |upload| &upload.name);
        let text = format!("PUT {name} in parts, {what}: {words}");
        self.units[unit as usize].words.get_or_insert(text);
    }

    fn unit_failed(&mut self, unit: u32, words: &str) {
        self.units[unit as usize].words.get_or_insert_with(|| words.to_owned());
        self.complete(unit, Err(Errno(libc::EIO)));
    }

    fn complete(&mut self, unit: u32, outcome: Outcome) {
        self.uploads().over.push_back(Completion { unit, outcome });
    }

    /// Forgets an upload that has ended. Unless the server is known to have forgotten it too, it stays in the ledger,
    /// to be checked at the end of the job.
    fn forget(&mut self, key: u32, is_gone: bool) {
        let uploads = self.uploads();
        let Some(upload) = uploads.all.remove(&key) else { return };
        // If the server was asked more than once to begin the upload, there may be another one.
        if is_gone && !upload.is_repeated {
            uploads.ledger.over(upload.number);
        }
        if let Some(file) = upload.file {
            uploads.of_file.remove(&file);
        }
        for write in upload.held {
            self.join(write);
        }
    }

    /// The server's name in the ledger.
    fn server(&self) -> String {
        let endpoint = self.client.endpoint();
        format!("{}://{endpoint}", if endpoint.is_encrypted() { "https" } else { "http" })
    }
}

/// Whether the answer says that the server does not know the upload (any more).
fn is_unknown(answer: &Answer) -> bool {
    answer.status == 404 && Refusal::of(answer).code.as_deref() == Some("NoSuchUpload")
}

/// Checks whether this answer to HEAD describes the object that an upload was to become: its length and its number of
/// parts.
fn became(answer: Answer, (length, parts): (u64, usize)) -> Result<(), String> {
    let unknown = "the server knows nothing of the upload, which it was asked more than once to end, and";
    if !answer.is_success() {
        return Err(format!("{unknown} of the object it says {}", Refusal::of(&answer)));
    }
    // Many servers end the tag of such an object with the number of its parts.
    let tag = answer.field("etag").unwrap_or_default().trim_matches('"');
    let told = tag.rsplit_once('-').and_then(|(_, count)| count.parse::<usize>().ok());
    if answer.told != Some(length) || told.is_some_and(|count| count != parts) {
        return Err(format!("{unknown} the object is another one than that which was written"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_to_be_parts() {
        let range = |block, end| obstacle(8 << 20, ObjectMode::Range, block, end);
        assert_eq!(range(8 << 20, 104 << 20), None);
        assert_eq!(range(16 << 20, 160 << 20), None);
        assert_eq!(range(100 << 20, 100 << 20), None);
        assert_eq!(range(4096, 8 << 20), None, "it has one part: that is no matter of this");
        assert!(range(4096, 100 << 20).unwrap().contains("bs= has to be"));
        assert!(range(8 << 20, 100 << 20).is_some_and(|words| words.contains("a multiple of bs=")));
        assert!(range(0, 100 << 20).unwrap().contains("bs= has to be"));
        assert!(range(8 << 20, 100 << 30).unwrap().contains("http_s3_multipart_size=11534336"));
        assert_eq!(obstacle(8 << 20, ObjectMode::Block, 4096, 1 << 40), None);
    }
}
