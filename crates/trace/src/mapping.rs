//! Maps the offsets of a trace to those of a replay, and leaves out I/Os.

use crate::{Event, Format};
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
    /// Syncs of all kinds.
    pub sync: bool,
}

impl Kinds {
    /// Whether this operation is among these kinds.
    pub fn contain(self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
            Operation::Trim => self.trim,
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange => self.sync,
            // Traces contain no work.
            Operation::Work => false,
        }
    }
}

/// The changes to each I/O of a trace before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Offsets are divided by this.
    pub divisor: u64,
    /// The quotients are rounded down to a multiple of this. Lengths of block traces are rounded up to a multiple, as
    /// in fio.
    pub align: u64,
    /// I/Os of these kinds are left out.
    pub skip: Kinds,
}

impl Default for Mapping {
    fn default() -> Self {
        Mapping { divisor: 1, align: 1, skip: Kinds::default() }
    }
}

impl Mapping {
    /// The event of the replay for an event of the trace; `None` if it is left out. I/Os of 0 bytes are left out.
    pub fn apply(&self, event: Event, format: Format) -> Option<Event> {
        let Event::Io { operation, offset, length } = event else { return Some(event) };
        if self.skip.contain(operation) || (length == 0 && operation.direction().is_some()) {
            return None;
        }
        let offset = offset / self.divisor.max(1);
        let align = self.align.max(1);
        let offset = offset - offset % align;
        let length = match format {
            Format::Blktrace => length.checked_next_multiple_of(align).unwrap_or(length),
            Format::Text(_) => length,
        };
        Some(Event::Io { operation, offset, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextVersion;

    const LOG: Format = Format::Text(TextVersion::V3);

    fn io(operation: Operation, offset: u64, length: u64) -> Event {
        Event::Io { operation, offset, length }
    }

    #[test]
    fn offsets_are_divided_and_then_aligned() {
        let mapping = Mapping { divisor: 3, align: 4096, ..Mapping::default() };
        let of_log = |event| mapping.apply(event, LOG);
        assert_eq!(of_log(io(Operation::Write, 20_480, 8192)), Some(io(Operation::Write, 4096, 8192)));
        assert_eq!(of_log(io(Operation::Read, 8192, 512)), Some(io(Operation::Read, 0, 512)));
        assert_eq!(of_log(Event::Open), Some(Event::Open));
    }

    /// Observed with fio 3.33.
    #[test]
    fn lengths_of_block_traces_are_aligned_as_well() {
        let mapping = Mapping { divisor: 2, align: 4096, ..Mapping::default() };
        let of_blocks = |event| mapping.apply(event, Format::Blktrace);
        assert_eq!(of_blocks(io(Operation::Read, 5120, 5120)), Some(io(Operation::Read, 0, 8192)));
        assert_eq!(
            of_blocks(io(Operation::Trim, 102_400, 66_048)),
            Some(io(Operation::Trim, 49_152, 69_632))
        );
        assert_eq!(of_blocks(io(Operation::Write, 0, 4096)), Some(io(Operation::Write, 0, 4096)));
        assert_eq!(of_blocks(io(Operation::Sync, 0, 0)), Some(io(Operation::Sync, 0, 0)));
        let huge = Mapping { align: 1 << 63, ..Mapping::default() };
        let all = huge.apply(io(Operation::Trim, i64::MAX as u64 - 511, 511), Format::Blktrace);
        assert_eq!(all, Some(io(Operation::Trim, 0, 1 << 63)));
    }

    #[test]
    fn skipped_operations_are_dropped() {
        let mapping =
            Mapping { skip: Kinds { write: true, sync: true, ..Kinds::default() }, ..Mapping::default() };
        assert_eq!(mapping.apply(io(Operation::Write, 0, 512), LOG), None);
        assert_eq!(mapping.apply(io(Operation::DataSync, 0, 0), LOG), None);
        assert_eq!(mapping.apply(io(Operation::Trim, 0, 512), LOG), Some(io(Operation::Trim, 0, 512)));
        assert_eq!(mapping.apply(io(Operation::Read, 0, 0), LOG), None, "there is nothing to be read");
    }
}
