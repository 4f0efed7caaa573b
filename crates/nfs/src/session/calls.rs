//! Calls in flight and their outcomes.

use super::file::Mark;
use super::{Counts, Done, File, Stability};
use crate::NfsError;
use crate::connection::{Landing, Sink};
use crate::protocol::{Verifier, read_head, skip_change, verifier};
use crate::rpc;
use crate::status::JUKEBOX;
use crate::xdr::Reader;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The maximum number of calls in flight: 16 bits of a call's number are its slot.
pub(super) const MOST: usize = 1 << 16;

/// The time after which a request is sent again to a busy server.
const PAUSE: Duration = Duration::from_millis(100);

/// The purpose of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    /// The slot is free.
    #[default]
    Nothing,
    Read,
    Write,
    /// Commits earlier writes to stable storage.
    Commit,
    /// A call for whose answer a function of the session waits.
    Plain,
}

/// A slot for a call.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) what: What,
    /// The call's number, which its reply repeats.
    pub(super) id: u32,
    /// The position of the call in the order in which calls began, for sending them again in this order.
    pub(super) order: u64,
    /// The owner's unit; `None` = a commit that the owner does not wait for, or a plain call.
    pub(super) unit: Option<u32>,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) at: *mut u8,
    pub(super) length: usize,
    /// The last of the file's writes that a commit covers.
    pub(super) mark: Mark,
    /// Where written data must be before the server answers.
    pub(super) stability: Stability,
    /// Since when the server has been too busy for the call.
    busy: Option<Instant>,
}

// SAFETY: the pointer is to memory that the caller keeps valid, and is used by one thread at a time.
unsafe impl Send for Slot {}

/// A unit of the owner. It takes one call, or several if it is larger than the server accepts.
#[derive(Clone, Debug, Default)]
pub(super) struct Whole {
    /// Calls that have not been answered.
    pub(super) open: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Where the file ends, if the unit has reached its end.
    pub(super) end: Option<u64>,
    pub(super) error: Option<Box<NfsError>>,
}

/// Everything in flight.
pub(super) struct Calls {
    pub(super) slots: Vec<Slot>,
    free: Vec<u16>,
    pub(super) wholes: Vec<Whole>,
    pub(super) files: Vec<Option<File>>,
    pub(super) done: VecDeque<Done>,
    /// Calls to send again for the rest, after a short answer.
    pub(super) again: Vec<usize>,
    /// Calls that the server was too busy for, and when to send them again.
    pub(super) later: Vec<(Instant, usize)>,
    /// The answer to a plain call.
    pub(super) answer: Option<(usize, Result<Vec<u8>, NfsError>)>,
    /// The verifier of a file has changed: uncommitted writes have to be sent again.
    pub(super) is_restless: bool,
    /// Copies of written data are kept until it is committed.
    pub(super) keeps: bool,
    /// How long the server may be too busy for a call.
    pub(super) patience: Duration,
    pub(super) counts: Counts,
    order: u64,
    sequence: u32,
    /// Units in flight.
    pub(super) units: usize,
}

impl Calls {
    pub(super) fn new(keeps: bool, patience: Duration) -> Calls {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Calls {
            slots: Vec::new(),
            free: Vec::new(),
            wholes: Vec::new(),
            files: Vec::new(),
            done: VecDeque::new(),
            again: Vec::new(),
            later: Vec::new(),
            answer: None,
            is_restless: false,
            keeps,
            patience,
            counts: Counts::default(),
            order: 0,
            // (The server may remember call numbers of an earlier program that used the same port.)
            sequence: time.map_or(1, |time| time.subsec_nanos()) << 16,
            units: 0,
        }
    }

    /// How many more calls can begin.
    pub(super) fn room(&self) -> usize {
        self.free.len() + (MOST - self.slots.len())
    }

    /// How many calls have not been answered.
    pub(super) fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot for a call. There must be room for it.
    pub(super) fn begin(
        &mut self,
        what: What,
        unit: Option<u32>,
        file: u32,
        range: (u64, *mut u8, usize),
    ) -> usize {
        let place = match self.free.pop() {
            Some(place) => place as usize,
            None => {
                self.slots.push(Slot {
                    what: What::Nothing,
                    id: 0,
                    order: 0,
                    unit: None,
                    file: 0,
                    offset: 0,
                    at: std::ptr::null_mut(),
                    length: 0,
                    mark: Mark::default(),
                    stability: Stability::Unstable,
                    busy: None,
                });
                self.slots.len() - 1
            }
        };
        self.order += 1;
        self.sequence = self.sequence.wrapping_add(1 << 16);
        let (offset, at, length) = range;
        let id = self.sequence | place as u32;
        let (mark, stability, busy) = (Mark::default(), Stability::Unstable, None);
        let order = self.order;
        self.slots[place] = Slot { what, id, order, unit, file, offset, at, length, mark, stability, busy };
        place
    }

    /// Gives a call a new number, because the server must see it as a new call.
    pub(super) fn renew(&mut self, place: usize) {
        self.sequence = self.sequence.wrapping_add(1 << 16);
        self.slots[place].id = self.sequence | place as u32;
    }

    /// Forgets a plain call, so that its answer is ignored.
    pub(super) fn abandon(&mut self, place: usize) {
        if self.slots[place].what == What::Plain {
            self.end(place);
        }
    }

    fn end(&mut self, place: usize) {
        self.slots[place].what = What::Nothing;
        self.free.push(place as u16);
    }

    pub(super) fn begin_unit(&mut self, unit: u32, offset: u64, length: u64, calls: u32) {
        let unit = unit as usize;
        if self.wholes.len() <= unit {
            self.wholes.resize(unit + 1, Whole::default());
        }
        self.wholes[unit] = Whole { open: calls, offset, length, end: None, error: None };
        self.units += 1;
    }

    /// Ends a part of a unit. The unit is done after its last part.
    pub(super) fn end_part(&mut self, unit: Option<u32>, result: Result<(), NfsError>) {
        let Some(unit) = unit else { return };
        let whole = &mut self.wholes[unit as usize];
        whole.open -= 1;
        if let Err(error) = result {
            whole.error.get_or_insert_with(|| Box::new(error));
        }
        if whole.open > 0 {
            return;
        }
        let result = match whole.error.take() {
            Some(error) => Err(error),
            None => {
                Ok(whole.end.map_or(whole.length, |end| end.saturating_sub(whole.offset).min(whole.length)))
            }
        };
        self.units -= 1;
        self.done.push_back(Done { unit, answered: Instant::now(), result });
    }

    /// Ends a call and its part of a unit.
    fn finish(&mut self, place: usize, result: Result<(), NfsError>) {
        let unit = self.slots[place].unit;
        self.end(place);
        self.end_part(unit, result);
    }

    /// Ends everything in flight with an error.
    pub(super) fn fail_all(&mut self, error: &NfsError) {
        for place in 0..self.slots.len() {
            match self.slots[place].what {
                What::Nothing => {}
                What::Plain => {
                    self.answer = Some((place, Err(error.clone())));
                    self.end(place);
                }
                What::Commit => {
                    self.settle(place);
                    self.finish(place, Err(error.clone()));
                }
                What::Read | What::Write => self.finish(place, Err(error.clone())),
            }
        }
        for place in 0..self.files.len() {
            let Some(file) = &mut self.files[place] else { continue };
            file.give_up();
            let waiting = std::mem::take(&mut file.waiting);
            for unit in waiting {
                self.end_part(unit, Err(error.clone()));
            }
        }
        self.again.clear();
        self.later.clear();
    }

    /// Closes a file. Ends its commits in flight, so that their answers are not mistaken for answers about the next
    /// file in this slot. `result`: whether all of the file's data has been committed.
    pub(super) fn close(&mut self, file: u32, result: &Result<(), NfsError>) -> Option<File> {
        for place in 0..self.slots.len() {
            if self.slots[place].what == What::Commit && self.slots[place].file == file {
                self.settle(place);
                self.later.retain(|&(_, later)| later != place);
                self.finish(place, result.clone());
            }
        }
        let mut closed = self.files[file as usize].take()?;
        for unit in std::mem::take(&mut closed.waiting) {
            self.end_part(unit, result.clone());
        }
        Some(closed)
    }

    /// Counts a commit of a file as done.
    fn settle(&mut self, place: usize) {
        if let Some(file) = &mut self.files[self.slots[place].file as usize] {
            file.commits -= 1;
        }
    }

    fn name(&self, place: usize) -> String {
        let file = self.files.get(self.slots[place].file as usize).and_then(Option::as_ref);
        file.map_or_else(String::new, |file| file.name.clone())
    }

    /// The slot of the call with this number.
    fn find(&self, id: u32) -> Option<usize> {
        let place = (id & 0xffff) as usize;
        self.slots.get(place).filter(|slot| slot.what != What::Nothing && slot.id == id).map(|_| place)
    }

    /// Handles the refusal of a read, a write or a commit.
    fn refuse(&mut self, place: usize, code: u32) {
        let slot = &mut self.slots[place];
        if code == JUKEBOX {
            self.counts.busy += 1;
            let now = Instant::now();
            if now - *slot.busy.get_or_insert(now) < self.patience {
                self.later.push((now + PAUSE, place));
                return;
            }
        }
        let (verb, offset, length) = match slot.what {
            What::Read => ("READ", slot.offset, slot.length),
            What::Write => ("WRITE", slot.offset, slot.length),
            _ => ("COMMIT", 0, 0),
        };
        let name = self.name(place);
        let what = match length {
            0 => format!("{verb} {name}"),
            _ => format!("{verb} {name} at {offset}, {length} bytes"),
        };
        if self.slots[place].what == What::Commit {
            self.settle(place);
            // Closing the file will report the error as well.
            if let Some(file) = &mut self.files[self.slots[place].file as usize] {
                file.give_up();
            }
        }
        self.finish(place, Err(NfsError::Refused { what, code }));
    }

    /// Handles the answer to a read, with `count` bytes.
    fn read(&mut self, place: usize, count: usize, is_end: bool) {
        let slot = &mut self.slots[place];
        if count < slot.length {
            slot.offset += count as u64;
            slot.at = slot.at.wrapping_add(count);
            slot.length -= count;
            slot.busy = None;
            // An empty answer counts as the end of the file, too: otherwise the call would be repeated for ever.
            if !is_end && count > 0 {
                self.again.push(place);
                return;
            }
            let (end, unit) = (slot.offset, slot.unit);
            if let Some(unit) = unit {
                let whole = &mut self.wholes[unit as usize];
                whole.end = Some(whole.end.map_or(end, |before| before.min(end)));
            }
        }
        self.finish(place, Ok(()));
    }

    /// Handles the answer to a write: the server has accepted `count` bytes, perhaps only into its memory.
    fn written(&mut self, place: usize, count: usize, is_stable: bool, verifier: Verifier) {
        let slot = &mut self.slots[place];
        let count = count.min(slot.length);
        if let (false, Some(file)) = (is_stable, &mut self.files[slot.file as usize]) {
            // SAFETY: the owner keeps the data valid until the unit is complete, and it is not complete yet.
            let data = unsafe { std::slice::from_raw_parts(slot.at, count) };
            let kept = self.keeps.then_some(data);
            if file.note(slot.offset, count, kept, verifier) {
                self.is_restless = true;
            }
        }
        slot.offset += count as u64;
        slot.at = slot.at.wrapping_add(count);
        slot.length -= count;
        slot.busy = None;
        match (slot.length, count) {
            (0, _) => self.finish(place, Ok(())),
            (_, 0) => self.refuse(place, 5),
            _ => self.again.push(place),
        }
    }

    /// Handles the answer to a commit: marks the earlier writes as stable, if the server's verifier shows that it has
    /// not restarted since.
    fn committed(&mut self, place: usize, verifier: Verifier) {
        self.settle(place);
        let Slot { unit, file, mark, .. } = self.slots[place];
        self.end(place);
        let Some(file) = &mut self.files[file as usize] else { return self.end_part(unit, Ok(())) };
        if file.unstable() == 0 || file.verifier == Some(verifier) {
            file.is_stable(mark);
            return self.end_part(unit, Ok(()));
        }
        if self.keeps {
            // The commit ends after the data has been sent again.
            file.waiting.push(unit);
            file.has_changed = true;
            self.is_restless = true;
            return;
        }
        let lost = file.lose();
        self.end_part(unit, Err(lost));
    }

    fn reply(&mut self, place: usize, reader: &mut Reader<'_>) -> Result<(), NfsError> {
        let accepted = rpc::accepted(reader);
        if let Err(error) = accepted {
            if self.slots[place].what == What::Commit {
                self.settle(place);
            }
            self.finish(place, Err(error));
            return Ok(());
        }
        match reader.u32()? {
            0 => {}
            code => {
                self.refuse(place, code);
                return Ok(());
            }
        }
        match self.slots[place].what {
            What::Read => {
                let (is_end, length) = read_head(reader)?;
                if length > self.slots[place].length {
                    return Err(NfsError::Malformed);
                }
                let data = reader.take(length)?;
                // SAFETY: the owner keeps the memory valid for this length until the unit is complete.
                unsafe { self.slots[place].at.copy_from_nonoverlapping(data.as_ptr(), length) };
                self.read(place, length, is_end);
            }
            What::Write => {
                skip_change(reader)?;
                let (count, stability) = (reader.u32()? as usize, reader.u32()?);
                let verifier = verifier(reader)?;
                self.written(place, count, stability != 0, verifier);
            }
            What::Commit => {
                skip_change(reader)?;
                let verifier = verifier(reader)?;
                self.committed(place, verifier);
            }
            What::Plain | What::Nothing => {}
        }
        Ok(())
    }
}

impl Sink for Calls {
    fn record(&mut self, record: &[u8]) -> Result<(), NfsError> {
        let mut reader = Reader::new(record);
        // (Replies to calls that were given up are ignored.)
        let Some(place) = self.find(reader.u32()?) else { return Ok(()) };
        if self.slots[place].what != What::Plain {
            return self.reply(place, &mut reader);
        }
        let answer = rpc::accepted(&mut reader).map(|()| record[reader.at()..].to_vec());
        self.answer = Some((place, answer));
        self.end(place);
        Ok(())
    }

    fn landing(&mut self, beginning: &[u8], length: usize) -> Option<Landing> {
        let mut reader = Reader::new(beginning);
        let place = self.find(reader.u32().ok()?)?;
        let slot = &self.slots[place];
        if slot.what != What::Read {
            return None;
        }
        // A bad reply is reported after all of it has arrived.
        rpc::accepted(&mut reader).ok()?;
        if reader.u32().ok()? != 0 {
            return None;
        }
        let (is_end, data) = read_head(&mut reader).ok()?;
        let fits = data <= slot.length && reader.at() + data <= length;
        fits.then(|| Landing { slot: place, head: reader.at(), to: slot.at, length: data, is_end })
    }

    fn landed(&mut self, landing: &Landing) {
        self.read(landing.slot, landing.length, landing.is_end);
    }
}
