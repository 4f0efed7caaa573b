//! Calls in flight and their outcomes.

use super::file::Mark;
use super::file::Opened;
use super::{Counts, Done, File, Stability};
use crate::NfsError;
use crate::connection::{Landing, Sink};
use crate::protocol::{Answer, BUSY, Protocol, Verifier, Version};
use crate::rpc;
use crate::v4::{self, Sequenced, SlotTable, State};
use crate::xdr::Reader;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The maximum number of calls in flight: 16 bits of a call's number are its slot.
pub(super) const MOST: usize = 1 << 16;

/// The time after which a request is sent again to a busy server.
const PAUSE: Duration = Duration::from_millis(100);

/// The maximum number of calls of the server that wait for an answer. (None is to be expected.)
const MOST_CALLBACKS: usize = 64;

/// The purpose of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum What {
    /// The slot is free.
    #[default]
    Nothing,
    Read,
    Write,
    /// Commits earlier writes to stable storage.
    Commit,
    /// Renews the lease of version 4 while nothing else is sent.
    Renew,
    /// A call for whose answer a function of the session waits.
    Plain,
}

/// A slot for a call.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) what: What,
    /// The call's number, which its reply repeats.
    pub(crate) id: u32,
    /// The position of the call in the order in which calls began, for sending them again in this order.
    pub(super) order: u64,
    /// The owner's unit; `None` = a commit that the owner does not wait for, or a plain call.
    pub(super) unit: Option<u32>,
    pub(super) file: u32,
    pub(crate) offset: u64,
    pub(super) at: *mut u8,
    pub(crate) length: usize,
    /// The last of the file's writes that a commit covers.
    pub(super) mark: Mark,
    /// Where written data must be before the server answers.
    pub(crate) stability: Stability,
    /// Since when the server has been too busy for the call.
    busy: Option<Instant>,
    /// The slot of the session of version 4 that the call occupies. (Repeated with the same slot and the same number in
    /// it, a call is performed only once.)
    pub(crate) session_slot: Option<u32>,
    /// The state of the open file with which the call was sent.
    pub(super) state: State,
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
pub(crate) struct Calls {
    pub(crate) protocol: &'static dyn Protocol,
    /// The slots of the session of version 4. (Version 3 has none.)
    pub(crate) table: SlotTable,
    /// Calls that wait for a slot of the session.
    pub(super) waiting: VecDeque<usize>,
    /// Numbers of calls of the server, which have not been answered.
    pub(super) callbacks: Vec<u32>,
    /// The server no longer knows the state of some open files.
    pub(crate) has_doubtful: bool,
    pub(crate) slots: Vec<Slot>,
    free: Vec<u16>,
    pub(super) wholes: Vec<Whole>,
    pub(crate) files: Vec<Option<File>>,
    pub(super) done: VecDeque<Done>,
    /// Calls to send again for the rest, after a short answer.
    pub(super) again: Vec<usize>,
    /// Calls that the server was too busy for, and when to send them again.
    pub(super) later: Vec<(Instant, usize)>,
    /// The arguments of the plain call in flight.
    pub(super) call: Vec<u8>,
    /// The answer to a plain call.
    pub(super) answer: Option<(usize, Result<Vec<u8>, NfsError>)>,
    /// The verifier of a file has changed: uncommitted writes have to be sent again.
    pub(super) is_restless: bool,
    /// Copies of written data are kept until it is committed.
    pub(super) keeps: bool,
    /// How long the server may be too busy for a call.
    pub(super) patience: Duration,
    pub(crate) counts: Counts,
    order: u64,
    sequence: u32,
    /// Units in flight.
    pub(super) units: usize,
}

impl Calls {
    pub(super) fn new(version: Version, keeps: bool, patience: Duration) -> Calls {
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Calls {
            protocol: version.protocol(),
            table: SlotTable::default(),
            waiting: VecDeque::new(),
            callbacks: Vec::new(),
            has_doubtful: false,
            slots: Vec::new(),
            free: Vec::new(),
            wholes: Vec::new(),
            files: Vec::new(),
            done: VecDeque::new(),
            again: Vec::new(),
            later: Vec::new(),
            call: Vec::new(),
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
                    session_slot: None,
                    state: State::default(),
                });
                self.slots.len() - 1
            }
        };
        self.order += 1;
        self.sequence = self.sequence.wrapping_add(1 << 16);
        let (offset, at, length) = range;
        let id = self.sequence | place as u32;
        let (mark, stability, busy) = (Mark::default(), Stability::Unstable, None);
        let (order, session_slot, state) = (self.order, None, State::default());
        self.slots[place] = Slot {
            what,
            id,
            order,
            unit,
            file,
            offset,
            at,
            length,
            mark,
            stability,
            busy,
            session_slot,
            state,
        };
        place
    }

    /// Gives a call a new number, because the server must see it as a new call.
    pub(super) fn renew(&mut self, place: usize) {
        self.sequence = self.sequence.wrapping_add(1 << 16);
        self.slots[place].id = self.sequence | place as u32;
    }

    /// Forgets a plain call, whose connection was lost. If it is repeated, it gets the same slot of the session.
    pub(super) fn abandon(&mut self, place: usize) {
        if self.slots[place].what == What::Plain {
            if let Some(slot) = self.slots[place].session_slot.take() {
                self.table.orphan(slot, std::mem::take(&mut self.call));
            }
            self.end(place);
        }
    }

    /// Gives all calls in flight new slots of a new session.
    pub(crate) fn forget_session_slots(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.session_slot = None);
    }

    fn end(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        slot.what = What::Nothing;
        if let Some(session_slot) = slot.session_slot.take() {
            // The server may still answer.
            self.table.strand(session_slot, slot.id);
        }
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
                What::Read | What::Write | What::Renew => self.finish(place, Err(error.clone())),
            }
        }
        self.waiting.clear();
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
                self.again.retain(|&again| again != place);
                self.waiting.retain(|&waiting| waiting != place);
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
        self.opened(place).map_or_else(String::new, |opened| opened.name.clone())
    }

    /// The file of this call.
    pub(crate) fn opened(&self, place: usize) -> Option<&Opened> {
        let file = self.files.get(self.slots[place].file as usize).and_then(Option::as_ref);
        file.map(|file| &file.opened)
    }

    /// The slot of the call with this number.
    fn find(&self, id: u32) -> Option<usize> {
        let place = (id & 0xffff) as usize;
        self.slots.get(place).filter(|slot| slot.what != What::Nothing && slot.id == id).map(|_| place)
    }

    /// Handles the refusal of a read, a write or a commit.
    pub(super) fn refuse(&mut self, place: usize, code: u32) {
        let version = self.protocol.version();
        let is_busy = is_busy(version, code);
        let has_lost_state = version == Version::Four && v4::has_lost_state(code);
        // (What was performed, but whose answer was not kept, may be performed again. No other version has this number.)
        if (is_busy || has_lost_state || code == v4::RETRY_UNCACHED) && self.may_wait(place) {
            self.counts.busy += u64::from(is_busy);
            let Slot { file, state, .. } = self.slots[place];
            let file = self.files.get_mut(file as usize).and_then(Option::as_mut);
            // (A late answer may be about a state that has been replaced already.)
            if let (true, Some(file)) = (has_lost_state, file.filter(|file| file.opened.state == state)) {
                file.is_doubtful = true;
                self.has_doubtful = true;
            }
            return;
        }
        let slot = &self.slots[place];
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
        self.finish(place, Err(NfsError::Refused { what, code, version }));
    }

    /// Sends a call again later, unless the server has put it off for too long.
    fn may_wait(&mut self, place: usize) -> bool {
        let now = Instant::now();
        let may = now - *self.slots[place].busy.get_or_insert(now) < self.patience;
        if may {
            self.later.push((now + PAUSE, place));
        }
        may
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
            self.free_uncounted(place);
            if self.slots[place].what == What::Commit {
                self.settle(place);
            }
            self.finish(place, Err(error));
            return Ok(());
        }
        if self.slots[place].session_slot.is_some() && !self.is_sequenced(place, reader)? {
            return Ok(());
        }
        match self.protocol.read_answer(self.slots[place].what, reader)? {
            Answer::Refused(code) => self.refuse(place, code),
            Answer::Read { is_end, length } => {
                if length > self.slots[place].length {
                    return Err(NfsError::Malformed);
                }
                let data = reader.take(length)?;
                // SAFETY: the owner keeps the memory valid for this length until the unit is complete.
                unsafe { self.slots[place].at.copy_from_nonoverlapping(data.as_ptr(), length) };
                self.read(place, length, is_end);
            }
            Answer::Written { count, is_stable, verifier } => self.written(place, count, is_stable, verifier),
            Answer::Committed(verifier) => self.committed(place, verifier),
            Answer::Renewed => self.finish(place, Ok(())),
        }
        Ok(())
    }

    /// Frees the session's slot of a call that was refused before the session counted it.
    fn free_uncounted(&mut self, place: usize) {
        if let Some(slot) = self.slots[place].session_slot.take() {
            self.table.free(slot);
        }
    }

    /// Reads what the session of version 4 says about a call. Returns false if it was not performed.
    fn is_sequenced(&mut self, place: usize, reader: &mut Reader<'_>) -> Result<bool, NfsError> {
        let Some(slot) = self.slots[place].session_slot else { return Ok(true) };
        match self.table.answered(slot, reader)? {
            Sequenced::Performed => {
                self.slots[place].session_slot = None;
                Ok(true)
            }
            Sequenced::InProgress if self.may_wait(place) => {
                self.counts.busy += 1;
                Ok(false)
            }
            Sequenced::InProgress => Err(NfsError::SessionLost(BUSY)),
            // It was performed, and may be repeated as a new call.
            Sequenced::NotKept => {
                self.slots[place].session_slot = None;
                if !self.may_wait(place) {
                    self.refuse(place, v4::RETRY_UNCACHED);
                }
                Ok(false)
            }
            Sequenced::Refused(code) => {
                self.slots[place].session_slot = None;
                self.refuse(place, code);
                Ok(false)
            }
        }
    }

    /// Handles the answer to a plain call.
    fn plain(&mut self, place: usize, record: &[u8], reader: &mut Reader<'_>) -> Result<(), NfsError> {
        let mut answer = rpc::accepted(reader);
        let mut status = &record[..0];
        if answer.is_err() {
            self.free_uncounted(place);
        }
        if let (Ok(()), Some(slot)) = (&answer, self.slots[place].session_slot) {
            let busy = NfsError::Refused { what: String::new(), code: BUSY, version: Version::Four };
            status = reader.clone().take(4)?;
            match self.table.answered(slot, reader)? {
                Sequenced::Performed => {}
                // (The call is repeated; with the same slot, the server knows that it is the same.)
                Sequenced::InProgress => {
                    answer = Err(busy);
                    let call = std::mem::take(&mut self.call);
                    self.table.orphan(slot, call);
                }
                Sequenced::NotKept => {
                    answer = Err(NfsError::Refused {
                        what: String::new(),
                        code: v4::RETRY_UNCACHED,
                        version: Version::Four,
                    });
                }
                Sequenced::Refused(code) => {
                    answer = Err(NfsError::Refused { what: "SEQUENCE".into(), code, version: Version::Four });
                }
            }
            self.slots[place].session_slot = None;
        }
        self.answer = Some((place, answer.map(|()| [status, &record[reader.at()..]].concat())));
        self.end(place);
        Ok(())
    }
}

/// Whether the server asks to try again later.
pub(super) fn is_busy(version: Version, code: u32) -> bool {
    code == BUSY || (version == Version::Four && code == v4::GRACE)
}

impl Sink for Calls {
    fn record(&mut self, record: &[u8]) -> Result<(), NfsError> {
        let mut reader = Reader::new(record);
        let id = reader.u32()?;
        if rpc::is_call(&reader) {
            if self.callbacks.len() < MOST_CALLBACKS {
                self.callbacks.push(id);
            }
            return Ok(());
        }
        match self.find(id) {
            Some(place) if self.slots[place].what == What::Plain => self.plain(place, record, &mut reader),
            Some(place) => self.reply(place, &mut reader),
            // (Other replies to calls that were given up are ignored.)
            None => match self.table.unstrand(id) {
                Some(slot) if rpc::accepted(&mut reader).is_ok() => {
                    self.table.answered(slot, &mut reader).map(drop)
                }
                Some(slot) => {
                    self.table.free(slot);
                    Ok(())
                }
                None => Ok(()),
            },
        }
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
        if let Some(session_slot) = slot.session_slot
            && !self.table.is_performed(session_slot, &mut reader)
        {
            return None;
        }
        let Ok(Answer::Read { is_end, length: data }) = self.protocol.read_answer(What::Read, &mut reader)
        else {
            return None;
        };
        let fits = data <= slot.length && reader.at() + data <= length;
        fits.then(|| Landing { slot: place, head: reader.at(), to: slot.at, length: data, is_end })
    }

    fn landed(&mut self, landing: &Landing) {
        if let Some(slot) = self.slots[landing.slot].session_slot.take() {
            self.table.release(slot);
        }
        self.read(landing.slot, landing.length, landing.is_end);
    }
}
