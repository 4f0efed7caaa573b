//! The items that a worker sends to its log writer.

use crate::LogKind;
use iolite_types::Direction;

/// A completed I/O, as the worker reports it. All times are in nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    /// The direction.
    pub direction: Direction,
    /// The length in bytes.
    pub length: u64,
    /// The offset in the file in bytes.
    pub offset: u64,
    /// When it was made.
    pub start: u64,
    /// When it was issued.
    pub issue: u64,
    /// When it was reaped.
    pub complete: u64,
    /// Whether it was queued, so that it has a submission latency.
    pub queued: bool,
    /// The I/O priority: class and level.
    pub priority: u16,
    /// From its issue to the first byte of the answer; `None` = the unit is not a request, or there is no such time.
    pub first_byte: Option<u64>,
}

/// An entry of the queue. It is small because at full speed the memory traffic counts: two entries fit in a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// An I/O.
    Io {
        /// Nanoseconds from the log's zero to its completion.
        complete: u64,
        offset: u64,
        /// Total latency.
        lat: u32,
        /// Submission latency.
        slat: u32,
        length: u32,
        priority: u16,
        /// Direction, and whether there is a submission latency: see [`class_of`].
        class: u8,
    },
    /// The upper halves of the numbers of the next I/O, if they do not fit into an [`Item::Io`].
    Wide { lat: u32, slat: u32, length: u32 },
    /// The time to the first byte of the next I/O.
    FirstByte(u64),
    /// The value of a completed window.
    Window { kind: LogKind, direction: Direction, at: u64, value: u64, most: u64 },
}

const QUEUED: u8 = 4;

pub(crate) fn class_of(direction: Direction, queued: bool) -> u8 {
    direction as u8 | if queued { QUEUED } else { 0 }
}

/// Direction, and whether there is a submission latency.
pub(crate) fn of_class(class: u8) -> (Direction, bool) {
    (Direction::ALL[usize::from(class & 3) % 3], class & QUEUED != 0)
}

/// An I/O as the writer sees it: an [`Item::Io`] with full-width numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub direction: Direction,
    pub queued: bool,
    /// Completion, in nanoseconds from the log's zero.
    pub complete: u64,
    pub offset: u64,
    pub length: u64,
    pub lat: u64,
    pub slat: u64,
    pub priority: u16,
    pub first_byte: Option<u64>,
}

impl Done {
    /// `io`, with times relative to `zero`.
    #[inline(always)]
    pub fn new(io: &Io, zero: u64) -> Done {
        Done {
            direction: io.direction,
            queued: io.queued,
            complete: io.complete.wrapping_sub(zero),
            offset: io.offset,
            length: io.length,
            lat: io.complete.saturating_sub(io.start),
            slat: io.issue.saturating_sub(io.start),
            priority: io.priority,
            first_byte: io.first_byte,
        }
    }

    /// Completion latency.
    #[inline(always)]
    pub fn clat(&self) -> u64 {
        self.lat.saturating_sub(self.slat)
    }

    /// The item with the upper halves of the numbers, if they are not zero.
    #[inline(always)]
    pub fn upper(&self) -> Option<Item> {
        let upper = |value: u64| (value >> 32) as u32;
        // The submission latency is no larger than the total latency, so it need not be looked at.
        ((self.lat | self.length) >> 32 != 0).then(|| Item::Wide {
            lat: upper(self.lat),
            slat: upper(self.slat),
            length: upper(self.length),
        })
    }

    /// The item with the lower halves.
    #[inline(always)]
    pub fn lower(&self) -> Item {
        Item::Io {
            complete: self.complete,
            offset: self.offset,
            lat: self.lat as u32,
            slat: self.slat as u32,
            length: self.length as u32,
            priority: self.priority,
            class: class_of(self.direction, self.queued),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_items_in_a_line_of_the_cache() {
        assert_eq!(size_of::<Item>(), 32);
    }

    #[test]
    fn long_ones_need_two_items() {
        let io = Io {
            direction: Direction::Trim,
            length: 4096,
            offset: 1 << 50,
            start: 1_000,
            issue: 3_000,
            complete: 10_000,
            queued: true,
            priority: 0,
            first_byte: None,
        };
        let done = Done::new(&io, 500);
        assert_eq!((done.complete, done.lat, done.slat, done.clat()), (9_500, 9_000, 2_000, 7_000));
        assert_eq!(done.upper(), None);
        let long = Done::new(&Io { complete: 1_000 + (5 << 32), ..io }, 0);
        assert_eq!(long.upper(), Some(Item::Wide { lat: 5, slat: 0, length: 0 }));
        for direction in Direction::ALL {
            for queued in [false, true] {
                assert_eq!(of_class(class_of(direction, queued)), (direction, queued));
            }
        }
    }
}
