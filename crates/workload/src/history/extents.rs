//! A list of the writes that have not been overwritten.

use super::Written;
use crate::Io;
use iolite_types::Direction;
use std::collections::BTreeMap;

/// The writes that have not been overwritten, sorted by file and offset.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// Maps file and offset to length and number. The writes do not overlap.
    writes: BTreeMap<(u32, u64), (u64, u64)>,
}

/// Bytes of memory per write: key, value, and their share of a B-tree node that is filled to the usual degree.
pub(super) const BYTES_PER_WRITE: u64 = 60;

impl Extents {
    /// Records a write, which overwrites earlier ones.
    pub fn wrote(&mut self, written: Written) {
        self.forget(&written.io);
        let Io { file, offset, length, .. } = written.io;
        self.writes.insert((file, offset), (length, written.number));
    }

    /// Forgets all writes that touch this place.
    pub fn forget(&mut self, io: &Io) {
        while let Some(key) = self.touching(io) {
            self.writes.remove(&key);
        }
    }

    /// A write that touches this place.
    fn touching(&self, io: &Io) -> Option<(u32, u64)> {
        let (&key, &(length, _)) = self.writes.range(..(io.file, io.offset + io.length)).next_back()?;
        (key.0 == io.file && key.1 + length > io.offset).then_some(key)
    }

    /// Removes the first write and returns it.
    pub fn pop(&mut self) -> Option<Written> {
        self.writes.pop_first().map(|(key, value)| written(key, value))
    }

    /// The first write at or after this place.
    pub fn next(&self, file: u32, offset: u64) -> Option<Written> {
        self.writes.range((file, offset)..).next().map(|(&key, &value)| written(key, value))
    }

    /// The first write that lies entirely within this place.
    pub fn first_within(&self, place: &Io) -> Option<Written> {
        let end = place.offset + place.length;
        let mut inside = self.writes.range((place.file, place.offset)..(place.file, end));
        let (&key, &value) = inside.next().filter(|(key, value)| key.1 + value.0 <= end)?;
        Some(written(key, value))
    }

    /// The number of writes in the list.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The approximate memory in bytes.
    pub fn bytes(&self) -> u64 {
        self.writes.len() as u64 * BYTES_PER_WRITE
    }
}

fn written((file, offset): (u32, u64), (length, number): (u64, u64)) -> Written {
    Written { io: Io { file, offset, length, direction: Direction::Write }, number }
}
