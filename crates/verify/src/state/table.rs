//! The table of the blocks of a file.

use super::entry;
use super::mapping::Mapping;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// A table of blocks. It stays in the state file, which its job may still be writing: an entry may have changed the
/// next time it is read.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) mapping: Arc<Mapping>,
    /// The place of the first entry.
    pub(super) at: u64,
    pub(super) blocks: u64,
    /// The place of the number of writes that were issued.
    pub(super) issued_at: u64,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.blocks as usize
    }

    pub(super) fn entry(&self, block: usize) -> u32 {
        u32::from_le(self.mapping.entries(self.at, self.blocks)[block].load(Acquire))
    }

    /// How many writes have been issued: more than the number of any entry that was read before.
    pub(super) fn issued(&self) -> u64 {
        self.mapping.load(self.issued_at)
    }

    /// The write that an entry stands for.
    pub(super) fn latest(&self, entry: u32) -> u64 {
        entry::latest(entry, self.issued())
    }

    /// The first and the last block of the first write in this range without an overwritten block.
    pub(super) fn whole_write(&self, range: Range<usize>) -> Option<(usize, usize)> {
        let number = |entry: u32| entry & entry::NUMBER;
        let mut first = range.start;
        while first < range.end {
            let begins = self.entry(first);
            let (mut last, mut ends) = (first, begins);
            if begins & entry::FIRST != 0 {
                while ends & entry::LAST == 0 && last + 1 < range.end {
                    let next = self.entry(last + 1);
                    if next & entry::FIRST != 0 || number(next) != number(begins) {
                        break;
                    }
                    (last, ends) = (last + 1, next);
                }
                if ends & entry::LAST != 0 {
                    return Some((first, last));
                }
            }
            first = last + 1;
        }
        None
    }
}
