//! How the offsets of a trace become those of a replay, and which of its I/Os are left out.

use crate::Event;
use iolite_types::Operation;

/// Kinds of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// Syncs of all sorts.
    pub sync: bool,
}

impl Kinds {
    /// Is this operation among them?
    pub fn contain(self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
            Operation::Trim => self.trim,
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => self.sync,
        }
    }
}

/// What is done to each I/O of a trace before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Offsets are divided by this.
    pub divisor: u64,
    /// Then they are rounded down to a multiple of this.
    pub align: u64,
    /// These are left out.
    pub skip: Kinds,
}

impl Default for Mapping {
    fn default() -> Self {
        Mapping { divisor: 1, align: 1, skip: Kinds::default() }
    }
}

impl Mapping {
    /// What becomes of an event; `None` = nothing. I/Os of no bytes are nothing.
    pub fn apply(&self, event: Event) -> Option<Event> {
        let Event::Io { operation, offset, length } = event else { return Some(event) };
        if self.skip.contain(operation) || (length == 0 && operation.direction().is_some()) {
            return None;
        }
        let offset = offset / self.divisor.max(1);
        let offset = offset - offset % self.align.max(1);
        Some(Event::Io { operation, offset, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(operation: Operation, offset: u64, length: u64) -> Event {
        Event::Io { operation, offset, length }
    }

    #[test]
    fn offsets_are_divided_and_then_aligned() {
        let mapping = Mapping { divisor: 3, align: 4096, ..Mapping::default() };
        assert_eq!(mapping.apply(io(Operation::Write, 20_480, 8192)), Some(io(Operation::Write, 4096, 8192)));
        assert_eq!(mapping.apply(io(Operation::Read, 8192, 4096)), Some(io(Operation::Read, 0, 4096)));
        assert_eq!(mapping.apply(Event::Open), Some(Event::Open));
    }

    #[test]
    fn what_is_skipped_is_gone() {
        let mapping =
            Mapping { skip: Kinds { write: true, sync: true, ..Kinds::default() }, ..Mapping::default() };
        assert_eq!(mapping.apply(io(Operation::Write, 0, 512)), None);
        assert_eq!(mapping.apply(io(Operation::DataSync, 0, 0)), None);
        assert_eq!(mapping.apply(io(Operation::Trim, 0, 512)), Some(io(Operation::Trim, 0, 512)));
        assert_eq!(mapping.apply(io(Operation::Read, 0, 0)), None, "there is nothing to be read");
    }
}
