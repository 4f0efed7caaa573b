//! The state of one file: the writes that must be there, and those that may be there.

use super::layout::Covered;
use super::table::Table;
use serde::{Deserialize, Serialize};

/// The writes that are required (`verify_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// The acknowledged ones: sufficient if only the process was killed.
    Completed,
    /// The flushed ones: all that storage guarantees after a power failure.
    Fsynced,
}

/// A write that had been issued, but not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Its number in its job.
    pub number: u64,
    /// The index of its file.
    pub file: u32,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

/// A place that must hold one of several writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The index of the file.
    pub file: u32,
    /// The offset of the write in the file, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// The writes that are valid there.
    pub accepted: Accepted,
}

/// Writes that are valid in a place: those from `oldest` to `latest`, and one that was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The number of the oldest one.
    pub oldest: u64,
    /// The number of the latest one that was acknowledged.
    pub latest: u64,
    /// The number of a write in flight, which may have been done or not.
    pub in_flight: Option<u64>,
}

/// How much a state records of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blocks with a known state.
    pub blocks: u64,
    /// Writes without an overwritten part.
    pub writes: u64,
    /// Writes among them that the policy requires.
    pub demands: u64,
    /// The required ones for which more than one write is valid.
    pub open: u64,
}

impl Accepted {
    /// The number of the write to check a block against if its header has the number `found`: that write if it is
    /// valid, otherwise the latest one. A header stores `bits` of a number (64, or 16 in the old layout).
    pub fn pick(&self, found: Option<u64>, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let candidates = self.in_flight.into_iter().chain([self.latest]);
        let Some(found) = found else { return self.latest };
        if let Some(number) = candidates.into_iter().find(|number| number & mask == found & mask) {
            return number;
        }
        // The latest number up to `latest` with the same bits.
        let back = (self.latest.wrapping_sub(found)) & mask;
        match self.latest.checked_sub(back) {
            Some(number) if number >= self.oldest => number,
            _ => self.latest,
        }
    }
}

/// The recorded state of one file.
#[derive(Debug)]
pub struct SavedFile {
    pub(super) file: u32,
    pub(super) start: u64,
    pub(super) block: u64,
    pub(super) is_uniform: bool,
    pub(super) covered: Covered,
    pub(super) needs_flushed: bool,
    pub(super) acknowledged: Table,
    pub(super) flushed: Option<Table>,
    /// In the order of their offsets; they do not overlap.
    pub(super) in_flight: Vec<InFlight>,
}

impl SavedFile {
    /// The writes that must be there, in the order of their offsets.
    pub fn demands(&self) -> impl Iterator<Item = Demand> {
        self.writes().filter_map(|(first, last)| self.demand(first, last))
    }

    /// The first demand at or after this block of the table, and the block after it.
    pub fn next_demand(&self, from: usize) -> Option<(Demand, usize)> {
        let mut from = from;
        loop {
            let (first, last) = self.acknowledged.whole_write(from..self.acknowledged.len())?;
            from = last + 1;
            if let Some(demand) = self.demand(first, last) {
                return Some((demand, from));
            }
        }
    }

    /// The writes that must be there, at or after this block of the table.
    pub fn demands_from(&self, from: usize) -> impl Iterator<Item = Demand> {
        let mut from = from;
        std::iter::from_fn(move || {
            let (demand, next) = self.next_demand(from)?;
            from = next;
            Some(demand)
        })
    }

    /// How much is known. Reads the complete table several times.
    pub fn summary(&self) -> Summary {
        let demands = || self.demands().map(|demand| demand.accepted);
        let is_open =
            |accepted: &Accepted| accepted.oldest != accepted.latest || accepted.in_flight.is_some();
        let entries = || (0..self.acknowledged.len()).map(|block| self.acknowledged.entry(block));
        Summary {
            blocks: entries().filter(|&entry| entry != 0).count() as u64,
            writes: self.writes().count() as u64,
            demands: demands().count() as u64,
            open: demands().filter(is_open).count() as u64,
        }
    }

    /// The first and the last block of each write without an overwritten part.
    fn writes(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let (first, last) = self.acknowledged.whole_write(from..self.acknowledged.len())?;
            from = last + 1;
            Some((first, last))
        })
    }

    fn demand(&self, first: usize, last: usize) -> Option<Demand> {
        let offset = self.start + first as u64 * self.block;
        let length = (last - first + 1) as u64 * self.block;
        // A write in flight may have overwritten a part.
        let in_flight = match self.over(offset, length) {
            Over::Nothing => None,
            Over::Same(number) => Some(number),
            Over::Part => return None,
        };
        let number = self.acknowledged.latest(self.acknowledged.entry(first));
        let is_flushed = !self.needs_flushed || self.covered.has(number);
        let oldest = if is_flushed { number } else { self.flushed_before(first, last)? };
        Some(Demand {
            file: self.file,
            offset,
            length,
            // (In a damaged table they may be reversed.)
            accepted: Accepted { oldest: oldest.min(number), latest: number, in_flight },
        })
    }

    /// The writes that may have left data in a place, completely or in part: each acknowledged write that no later one
    /// of this job has overwritten (with those that are equally valid under the policy), and each write that was in
    /// flight.
    pub fn standing(&self, offset: u64, length: u64) -> Vec<Accepted> {
        let block = |at: u64| (at.saturating_sub(self.start) / self.block) as usize;
        let end = block((offset + length).saturating_add(self.block - 1)).min(self.acknowledged.len());
        let mut standing: Vec<Accepted> =
            (block(offset)..end).filter_map(|block| self.acknowledged_at(block)).collect();
        standing.dedup();
        let is_there =
            |write: &&InFlight| write.offset < offset + length && offset < write.offset + write.length;
        let in_flight = self.in_flight.iter().filter(is_there).map(|write| write.number);
        standing.extend(in_flight.map(|number| Accepted {
            oldest: number,
            latest: number,
            in_flight: Some(number),
        }));
        standing
    }

    fn acknowledged_at(&self, block: usize) -> Option<Accepted> {
        let entry = Some(self.acknowledged.entry(block)).filter(|&entry| entry != 0)?;
        let number = self.acknowledged.latest(entry);
        let is_flushed = !self.needs_flushed || self.covered.has(number);
        let flushed = || self.flushed.as_ref().map_or(0, |flushed| flushed.latest(flushed.entry(block)));
        let oldest = if is_flushed { number } else { flushed().min(number) };
        Some(Accepted { oldest, latest: number, in_flight: None })
    }

    /// The flushed write that was here before. `None`: no such write, or writes have several sizes: then others may
    /// have overwritten a part of it in between, and any mixture may be left.
    fn flushed_before(&self, first: usize, last: usize) -> Option<u64> {
        let flushed = self.flushed.as_ref().filter(|_| self.is_uniform)?;
        let is_whole = flushed.whole_write(first..last + 1) == Some((first, last));
        is_whole.then(|| flushed.latest(flushed.entry(first)))
    }

    fn over(&self, offset: u64, length: u64) -> Over {
        let after = self.in_flight.partition_point(|write| write.offset + write.length <= offset);
        match self.in_flight.get(after) {
            Some(write) if (write.offset, write.length) == (offset, length) => Over::Same(write.number),
            Some(write) if write.offset < offset + length => Over::Part,
            _ => Over::Nothing,
        }
    }
}

/// A write in flight over the place of another write.
enum Over {
    Nothing,
    Same(u64),
    Part,
}
