//! The last writer of each place that several workers write to.
//!
//! A mapping that all workers share has a word for each granule of these places. A worker changes the words of a place
//! while it has the place to itself (see [`Turns`](crate::Turns)), so the changes come in the order of the writes. No
//! write is shorter than a granule. So two writes matter for a granule: the one that covers its first byte, and the one
//! that covers its last byte. The word names the worker of each of them, and how much of the granule each still covers.
//! So a worker can find out whether another one has overwritten a part of its write. (It knows its own later writes.)
//!
//! This takes eight bytes per granule, on pages that are touched only where data is written.

use iolite_os::memory;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most granules of a mapped place. Larger places count as endless and have no owners.
pub const MOST_GRANULES: u64 = 1 << 34;
/// Bytes of the largest granule: a word keeps places in it in 16 bits.
pub const LARGEST_GRANULE: u64 = 1 << 15;

const NOBODY: u16 = 0;
/// A write has failed, and the content is not known.
const UNKNOWN: u16 = u16::MAX;

/// The last writer of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No worker has written there in this run.
    Nobody,
    /// No rival has written there since this worker did.
    Me,
    /// A rival has written to it, or to a part of it.
    Others,
    /// A write to it has failed.
    Unknown,
}

/// A place that workers share: a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
    /// Bytes of a granule; at most [`LARGEST_GRANULE`], and no write is shorter.
    pub granule: u64,
}

impl Extent {
    /// How many granules the place has.
    pub fn granules(&self) -> u64 {
        self.end.div_ceil(self.granule) - self.start / self.granule
    }
}

/// The last writers of a granule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sides {
    /// The worker that wrote its first byte.
    left: u16,
    /// The end of the part that is still there.
    left_end: u16,
    /// The worker that wrote its last byte.
    right: u16,
    /// The start of the part that is still there.
    right_start: u16,
}

impl Sides {
    fn of_word(word: u64) -> Sides {
        let part = |at: u32| (word >> at) as u16;
        Sides { left: part(0), left_end: part(16), right: part(32), right_start: part(48) }
    }

    fn word(self) -> u64 {
        let Sides { left, left_end, right, right_start } = self;
        u64::from(left) | u64::from(left_end) << 16 | u64::from(right) << 32 | u64::from(right_start) << 48
    }

    /// The state after a write to this part of the granule, which has `granule` bytes.
    fn written(self, worker: u16, part: &Range<u16>, granule: u16) -> Sides {
        let mut sides = Sides {
            left_end: self.left_end.min(part.start),
            right_start: self.right_start.max(part.end),
            ..self
        };
        if part.start == 0 {
            (sides.left, sides.left_end) = (worker, part.end);
        }
        if part.end == granule {
            (sides.right, sides.right_start) = (worker, part.start);
        }
        sides
    }

    /// The owner of a write of this worker to this part, which the worker has not overwritten itself.
    fn owner(self, worker: u16, part: &Range<u16>) -> Owner {
        if self.left == UNKNOWN || self.right == UNKNOWN {
            return Owner::Unknown;
        }
        let stands = match part.start {
            0 => self.left == worker && self.left_end >= part.end,
            start => self.right == worker && self.right_start <= start,
        };
        match (stands, self.left, self.right) {
            (true, ..) => Owner::Me,
            (false, NOBODY, NOBODY) => Owner::Nobody,
            (false, ..) => Owner::Others,
        }
    }
}

/// The owners of all places.
#[derive(Debug)]
pub struct Owners {
    words: *mut AtomicU64,
    count: usize,
    /// Each place with the index of its first word.
    places: Vec<(Extent, usize)>,
}

// SAFETY: the words are atomics, and only shared references to them are handed out.
unsafe impl Send for Owners {}
// SAFETY: as above.
unsafe impl Sync for Owners {}

impl Owners {
    /// Maps these places. Must be called before workers are forked: they share the mapping.
    ///
    /// # Errors
    ///
    /// There is no memory for the mapping.
    pub fn of(extents: Vec<Extent>) -> io::Result<Owners> {
        let mut count = 0;
        let mut places = Vec::with_capacity(extents.len());
        for extent in extents {
            places.push((extent, count));
            let granules = usize::try_from(extent.granules()).map_err(io::Error::other)?;
            count = granules.checked_add(count).ok_or(io::ErrorKind::OutOfMemory)?;
        }
        let bytes = count.max(1).checked_mul(size_of::<AtomicU64>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Owners { words: memory::map_shared(bytes)?.cast(), count, places })
    }

    /// The most bytes of memory that this may take.
    pub fn bytes(&self) -> u64 {
        (self.count * size_of::<AtomicU64>()) as u64
    }

    /// This worker is about to write here.
    pub(crate) fn take(&self, place: usize, bytes: Range<u64>, worker: u16) {
        for (word, part, granule) in self.granules(place, bytes) {
            let after = |word| Some(Sides::of_word(word).written(worker, &part, granule).word());
            // Rivals may write to other bytes of the granule at the same time. `after` never refuses.
            let _ = word.fetch_update(Relaxed, Relaxed, after);
        }
    }

    /// The content of this place is no longer known.
    pub(crate) fn lose(&self, place: usize, bytes: Range<u64>) {
        self.take(place, bytes, UNKNOWN);
    }

    /// The owner of the place of a write of this worker, which the worker has not overwritten itself.
    pub(crate) fn owner(&self, place: usize, bytes: Range<u64>, worker: u16) -> Owner {
        let mut of_all = None;
        for (word, part, _) in self.granules(place, bytes) {
            let owner = Sides::of_word(word.load(Relaxed)).owner(worker, &part);
            of_all = match (of_all, owner) {
                (_, Owner::Unknown) => return Owner::Unknown,
                (None, owner) => Some(owner),
                (Some(one), other) if one == other => Some(one),
                _ => Some(Owner::Others),
            };
        }
        of_all.unwrap_or(Owner::Nobody)
    }

    /// The granules that these bytes touch, each with the covered part and its size.
    fn granules(
        &self,
        place: usize,
        bytes: Range<u64>,
    ) -> impl Iterator<Item = (&AtomicU64, Range<u16>, u16)> {
        let (Extent { start, granule, .. }, first) = self.places[place];
        (bytes.start / granule..bytes.end.div_ceil(granule)).map(move |number| {
            let index = (number - start / granule) as usize + first;
            assert!(index < self.count);
            // SAFETY: in bounds of the mapping, which lives as long as `self`; aligned, as a mapping begins on a page;
            // zeros are valid words, and no unique reference ever exists.
            let word = unsafe { &*self.words.add(index) };
            let at = number * granule;
            let from = bytes.start.max(at) - at;
            let to = bytes.end.min(at + granule) - at;
            (word, from as u16..to as u16, granule as u16)
        })
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and references into it borrow from the value.
        unsafe { memory::unmap(self.words.cast(), self.count.max(1) * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owners(end: u64, granule: u64) -> Owners {
        Owners::of(vec![Extent { start: 0, end: 100, granule: 512 }, Extent { start: 700, end, granule }])
            .unwrap()
    }

    #[test]
    fn rivals_leave_their_mark() {
        let owners = owners(4096, 512);
        assert_eq!(owners.count, 1 + 7);
        let owner = |bytes, worker| owners.owner(1, bytes, worker);
        assert_eq!(owner(700..4096, 1), Owner::Nobody);
        owners.take(1, 1000..2000, 1);
        assert_eq!(owner(1000..2000, 1), Owner::Me);
        assert_eq!(owner(1000..2000, 2), Owner::Others);
        // Next to it.
        owners.take(1, 2000..2600, 2);
        owners.take(1, 700..1000, 2);
        assert_eq!(owner(1000..2000, 1), Owner::Me);
        assert_eq!(owner(2000..2600, 2), Owner::Me);
        owners.take(1, 1999..2600, 2);
        assert_eq!(owner(1000..2000, 1), Owner::Others);
        owners.lose(1, 2600..3200);
        assert_eq!(owner(2600..3200, 2), Owner::Unknown);
        assert_eq!(owners.owner(0, 0..100, 1), Owner::Nobody);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        /// Compared with a model that records the last writer of each byte.
        #[test]
        fn owners_of_ranges_match_a_model(
            granule in prop::sample::select(vec![1u64, 64, 512]),
            writes in prop::collection::vec((1u16..4, 700u64..3000, 0u64..1000), 1..60),
        ) {
            let owners = owners(5000, granule);
            let mut bytes = vec![usize::MAX; 5000];
            let mut all = Vec::new();
            for (number, (worker, start, more)) in writes.into_iter().enumerate() {
                let range = start..start + granule + more;
                owners.take(1, range.clone(), worker);
                bytes[range.start as usize..range.end as usize].fill(number);
                all.push((worker, range));
            }
            for (number, (worker, range)) in all.iter().enumerate() {
                let place = &bytes[range.start as usize..range.end as usize];
                // The worker does not ask for places that it has overwritten itself.
                let own_later = all[number + 1..].iter().any(|(other, later)| {
                    other == worker && later.start < range.end && range.start < later.end
                });
                if own_later {
                    continue;
                }
                let stands = place.iter().all(|&by| by == number);
                let found = owners.owner(1, range.clone(), *worker);
                prop_assert_eq!(found, if stands { Owner::Me } else { Owner::Others });
            }
        }
    }
}
