//! The slots of a session. Each holds one call at a time, and numbers its calls.

use super::compound::{self, operation::SEQUENCE};
use super::status::{BAD_HIGH_SLOT, BAD_SESSION, BAD_SLOT, CONN_NOT_BOUND, DEAD_SESSION, RETRY_UNCACHED};
use super::status::{SEQ_FALSE_RETRY, SEQ_MISORDERED, STALE_CLIENT};
use crate::NfsError;
use crate::protocol::BUSY;
use crate::xdr::{Reader, Writer};

/// The slots that only calls get whose answers somebody waits for. A new connection needs them before the other calls
/// have been repeated.
const RESERVED: u32 = 2;

/// The smallest session of which slots are reserved.
const SMALL: usize = 4;

/// A flag in answers: the server has restarted, and kept the session but not the state of open files.
const RESTART_RECLAIM_NEEDED: u32 = 0x100;

/// What the session says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequenced {
    /// Its operations were performed, and their results follow.
    Performed,
    /// The server still performs it: repeat it with the same number.
    InProgress,
    /// It was performed, but its answer was not kept.
    NotKept,
    /// It was not performed.
    Refused(u32),
}

/// The slots of a session.
#[derive(Default)]
pub(crate) struct SlotTable {
    /// The session's name; `None` = there is none.
    session: Option<[u8; 16]>,
    /// The number of the current or next call of each slot.
    numbers: Vec<u32>,
    free: Vec<u32>,
    reserved: Vec<u32>,
    /// Slots that the server no longer wants to be used.
    retired: Vec<u32>,
    /// The highest slot that the server wants to be used.
    highest: u32,
    /// Slots of calls whose connection was lost before their answer came, with the arguments of the calls.
    orphans: Vec<(u32, Vec<u8>)>,
    /// Slots of calls that were given up, with the numbers of these calls, which the server may still answer.
    stranded: Vec<(u32, u32)>,
    is_lost: bool,
    /// The server has asked the client to reclaim its open files.
    needs_reclaim: bool,
    /// The client reclaims its open files. Until it has told the server that it is done, each answer has the flag.
    pub(super) is_reclaiming: bool,
}

impl SlotTable {
    /// The slots of a new session.
    pub(crate) fn new(session: [u8; 16], count: u32) -> SlotTable {
        let kept = if count as usize >= SMALL { RESERVED } else { 0 };
        SlotTable {
            session: Some(session),
            numbers: vec![1; count as usize],
            free: (kept..count).rev().collect(),
            reserved: (0..kept).rev().collect(),
            highest: count.saturating_sub(1),
            ..SlotTable::default()
        }
    }

    /// How many calls can be in flight.
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Whether the session is known to have ended.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether calls can go on over another connection.
    pub(super) fn is_usable(&self) -> bool {
        let is_known = self.orphans.len() < RESERVED as usize && self.stranded.is_empty();
        self.session.is_some() && !self.is_lost && is_known && self.numbers.len() >= SMALL
    }

    /// The session's name.
    pub(super) fn session(&self) -> Option<[u8; 16]> {
        self.session
    }

    pub(super) fn needs_reclaim(&self) -> bool {
        self.needs_reclaim
    }

    /// Whether there is a slot for a read, a write or a commit.
    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes a slot for a read, a write or a commit.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Takes a slot for a call with these arguments. If its connection was lost before, that is the slot it had.
    pub(crate) fn take_for(&mut self, call: &[u8]) -> Option<u32> {
        match self.orphans.iter().position(|(_, orphan)| orphan == call) {
            Some(place) => Some(self.orphans.swap_remove(place).0),
            None => self.reserved.pop().or_else(|| self.free.pop()),
        }
    }

    /// Notes that the connection of a call was lost before its answer came.
    pub(crate) fn orphan(&mut self, slot: u32, call: Vec<u8>) {
        self.orphans.push((slot, call));
    }

    /// Notes that a call was given up.
    pub(crate) fn strand(&mut self, slot: u32, id: u32) {
        self.stranded.push((slot, id));
    }

    /// The slot of a call that was given up and is answered now.
    pub(crate) fn unstrand(&mut self, id: u32) -> Option<u32> {
        let place = self.stranded.iter().position(|(_, stranded)| *stranded == id)?;
        Some(self.stranded.swap_remove(place).0)
    }

    /// Appends the operation that begins a call. `is_kept`: the server keeps the answer.
    pub(crate) fn sequence(&self, slot: u32, is_kept: bool, writer: &mut Writer<'_>) {
        writer.u32(SEQUENCE);
        writer.0.extend_from_slice(&self.session.unwrap_or_default());
        let number = self.numbers.get(slot as usize).copied().unwrap_or_default();
        writer.u32(number).u32(slot).u32(slot.max(self.highest)).u32(u32::from(is_kept));
    }

    /// Frees the slot of a call that was performed.
    pub(crate) fn release(&mut self, slot: u32) {
        if let Some(number) = self.numbers.get_mut(slot as usize) {
            *number = number.wrapping_add(1);
            self.free(slot);
        }
    }

    /// Frees the slot of a call that the session has not counted: the next call has the same number.
    pub(crate) fn free(&mut self, slot: u32) {
        if slot < RESERVED && self.numbers.len() >= SMALL {
            self.reserved.push(slot);
        } else if slot > self.highest {
            self.retired.push(slot);
        } else {
            self.free.push(slot);
        }
    }

    /// Reads the result of SEQUENCE, and frees the slot unless the call is still in progress.
    ///
    /// # Errors
    /// The session has ended, or the answer is invalid.
    pub(crate) fn answered(&mut self, slot: u32, reader: &mut Reader<'_>) -> Result<Sequenced, NfsError> {
        let code = match read(slot, reader)? {
            Ok((highest, flags)) => {
                self.release(slot);
                self.resize(highest);
                if flags & RESTART_RECLAIM_NEEDED != 0 && !self.is_reclaiming {
                    (self.is_lost, self.needs_reclaim) = (true, true);
                }
                return Ok(Sequenced::Performed);
            }
            Err(code) => code,
        };
        Ok(match code {
            BUSY => Sequenced::InProgress,
            RETRY_UNCACHED => {
                self.release(slot);
                Sequenced::NotKept
            }
            BAD_SESSION | DEAD_SESSION | BAD_SLOT | BAD_HIGH_SLOT | CONN_NOT_BOUND | SEQ_MISORDERED
            | SEQ_FALSE_RETRY | STALE_CLIENT => {
                self.is_lost = true;
                return Err(NfsError::SessionLost(code));
            }
            code => {
                self.free(slot);
                Sequenced::Refused(code)
            }
        })
    }

    /// Whether the call in this slot was performed. Reads the result of SEQUENCE without taking note of it.
    pub(crate) fn is_performed(&self, slot: u32, reader: &mut Reader<'_>) -> bool {
        matches!(read(slot, reader), Ok(Ok(_)))
    }

    /// Uses fewer slots, or more again, as the server wants it.
    fn resize(&mut self, highest: u32) {
        // (At least one slot that is not reserved, and none beyond the session.)
        let last = self.numbers.len().saturating_sub(1) as u32;
        let highest = highest.clamp(RESERVED.min(last), last);
        if highest == self.highest {
            return;
        }
        self.highest = highest;
        let all = self.free.drain(..).chain(self.retired.drain(..));
        let (retired, free): (Vec<u32>, Vec<u32>) = all.partition(|&slot| slot > highest);
        (self.free, self.retired) = (free, retired);
    }
}

/// Reads the result of SEQUENCE for a call in this slot: the highest slot that the server wants to be used, and its
/// flags; or the status of a refusal.
fn read(slot: u32, reader: &mut Reader<'_>) -> Result<Result<(u32, u32), u32>, NfsError> {
    let (status, count) = compound::head(reader)?;
    if count == 0 {
        return Ok(Err(status));
    }
    match compound::status_of(SEQUENCE, reader)? {
        0 => {}
        code => return Ok(Err(code)),
    }
    // The session's name and the number of the call.
    reader.take(16 + 4)?;
    if reader.u32()? != slot {
        return Err(NfsError::Malformed);
    }
    let (_, highest, flags) = (reader.u32()?, reader.u32()?, reader.u32()?);
    Ok(Ok((highest, flags)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(slot: u32, status: u32, highest: u32, flags: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer(&mut bytes);
        writer.u32(status).u32(0).u32(1).u32(SEQUENCE).u32(status);
        if status == 0 {
            writer.u64(0).u64(0).u32(1).u32(slot).u32(highest).u32(highest).u32(flags);
        }
        bytes
    }

    fn hear(table: &mut SlotTable, slot: u32, status: u32, highest: u32) -> Result<Sequenced, NfsError> {
        table.answered(slot, &mut Reader::new(&answer(slot, status, highest, 0)))
    }

    /// The number that the next call in this slot has.
    fn number(table: &SlotTable, slot: u32) -> u32 {
        let mut bytes = Vec::new();
        table.sequence(slot, false, &mut Writer(&mut bytes));
        u32::from_be_bytes(bytes[20..24].try_into().unwrap())
    }

    #[test]
    fn only_what_the_server_has_seen_gets_another_number() {
        let mut table = SlotTable::new([1; 16], 8);
        let slot = table.take().unwrap();
        assert_eq!((slot, number(&table, slot)), (2, 1), "the first two are reserved");
        assert_eq!(hear(&mut table, slot, BUSY, 7), Ok(Sequenced::InProgress));
        assert_eq!(number(&table, slot), 1);
        assert_eq!(hear(&mut table, slot, 0, 7), Ok(Sequenced::Performed));
        assert_eq!((table.take(), number(&table, slot)), (Some(slot), 2));
        assert_eq!(hear(&mut table, slot, RETRY_UNCACHED, 7), Ok(Sequenced::NotKept));
        assert_eq!((table.take(), number(&table, slot)), (Some(slot), 3));
        assert_eq!(hear(&mut table, slot, 10065, 7), Ok(Sequenced::Refused(10065)));
        assert_eq!((table.take(), number(&table, slot)), (Some(slot), 3));
        let lost = hear(&mut table, slot, BAD_SESSION, 7);
        assert_eq!((lost, table.is_usable()), (Err(NfsError::SessionLost(BAD_SESSION)), false));
    }

    #[test]
    fn a_call_that_lost_its_connection_is_repeated_in_its_slot() {
        let mut table = SlotTable::new([1; 16], 8);
        let slot = table.take_for(b"remove").unwrap();
        table.orphan(slot, b"remove".to_vec());
        let other = table.take_for(b"commit").unwrap();
        assert_ne!(other, slot);
        assert_eq!((table.take_for(b"remove"), number(&table, slot)), (Some(slot), 1));
        table.orphan(slot, b"remove".to_vec());
        assert!(table.is_usable());
        table.orphan(other, b"commit".to_vec());
        assert!(!table.is_usable(), "none is left for other calls");
    }

    #[test]
    fn a_slot_is_free_when_a_call_that_was_given_up_is_answered() {
        let mut table = SlotTable::new([1; 16], 3);
        let slots: Vec<u32> = std::iter::from_fn(|| table.take()).collect();
        assert_eq!(slots, [0, 1, 2], "a small session reserves none");
        table.strand(1, 77);
        assert_eq!((table.unstrand(78), table.unstrand(77)), (None, Some(1)));
        hear(&mut table, 1, 0, 2).unwrap();
        assert_eq!((table.take(), number(&table, 1)), (Some(1), 2));
    }

    #[test]
    fn the_server_may_want_fewer_slots_for_a_while() {
        let mut table = SlotTable::new([1; 16], 8);
        let slot = table.take().unwrap();
        hear(&mut table, slot, 0, 3).unwrap();
        let mut taken: Vec<u32> = std::iter::from_fn(|| table.take()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [2, 3]);
        hear(&mut table, 2, 0, 100).unwrap();
        assert_eq!(std::iter::from_fn(|| table.take()).count(), 5);
        let restarted = answer(3, 0, 7, RESTART_RECLAIM_NEEDED);
        table.is_reclaiming = true;
        assert_eq!(table.answered(3, &mut Reader::new(&restarted)), Ok(Sequenced::Performed));
        assert!(!table.is_lost() && !table.needs_reclaim(), "the files are being reclaimed");
        table.is_reclaiming = false;
        assert_eq!(table.answered(3, &mut Reader::new(&restarted)), Ok(Sequenced::Performed));
        assert!(table.is_lost() && table.needs_reclaim());
    }

    #[test]
    fn no_call_names_a_slot_beyond_a_small_session() {
        for count in [1, 2, 3] {
            let mut table = SlotTable::new([1; 16], count);
            hear(&mut table, 0, 0, count - 1).unwrap();
            let mut bytes = Vec::new();
            table.sequence(0, false, &mut Writer(&mut bytes));
            assert_eq!(u32::from_be_bytes(bytes[28..32].try_into().unwrap()), count - 1);
        }
    }

    #[test]
    fn answers_about_other_slots_are_invalid() {
        let mut table = SlotTable::new([1; 16], 8);
        let of_another = answer(3, 0, 7, 0);
        assert_eq!(table.answered(2, &mut Reader::new(&of_another)), Err(NfsError::Malformed));
        assert!(!table.is_performed(2, &mut Reader::new(&of_another)));
        assert!(table.is_performed(3, &mut Reader::new(&of_another)));
    }
}
