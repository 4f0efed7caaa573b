//! Lines of a log: `TIME_MS, VALUE, DIRECTION, BLOCKSIZE[, OFFSET], PRIORITY[, ISSUE_NS]`.
//!
//! All logs of an I/O have the same line except for the value, and consecutive I/Os share most of it: the time stays
//! the same for a millisecond, and direction and size often do not change. So a line consists of a head, the value and
//! a tail, and the head and the tail are formatted again only if they change.

use crate::decimal;
use iolite_types::Direction;

/// The columns that lines have in addition to the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Columns {
    /// The offset (`log_offset`).
    pub offset: bool,
    /// The priority itself, instead of whether it is a real-time priority (`log_prio`).
    pub priority: bool,
    /// The time of issue (`log_issue_time`). Only submission and completion latencies have one; in the lines of other
    /// kinds it is 0.
    pub issue: bool,
    /// The largest value of a window after the mean (`log_window_value=both`).
    pub both: bool,
}

/// One entry with all columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time in milliseconds from the log's zero.
    pub time_ms: u64,
    /// The value.
    pub value: u64,
    /// The largest value of the window, if it is logged too.
    pub most: u64,
    /// The direction, by number.
    pub direction: u32,
    /// Length in bytes; 0 for a window.
    pub length: u64,
    /// Offset in bytes; 0 for a window.
    pub offset: u64,
    /// The I/O priority: class and level.
    pub priority: u16,
    /// Time of issue in nanoseconds from the log's zero; 0 for a window, and for a value that does not begin with it.
    pub issue_ns: u64,
}

/// The most bytes in a line: eight numbers of 20 digits with their separators.
pub const LONGEST_LINE: usize = 8 * (decimal::MOST_DIGITS + 2);

/// Heads and tails are copied as fixed pieces of this size, whatever their length, so that no call to `memcpy` is
/// needed.
const HEAD: usize = 24;
const SHORT_TAIL: usize = 32;
const LONG_TAIL: usize = 96;

/// The head and tail of lines.
#[derive(Clone, Debug)]
pub(crate) struct LineMaker {
    columns: Columns,
    head: [u8; HEAD],
    head_length: usize,
    /// The head is valid for the millisecond from this nanosecond on.
    head_from: u64,
    tail: [u8; LONG_TAIL],
    tail_length: usize,
    /// Where the time of issue begins in the tail, if there is such a column.
    issue_at: usize,
    /// The direction, length and priority for which `tail` begins with the right columns.
    stem: (Direction, u64, u16),
    stem_length: usize,
    /// The column of the priority, and its length.
    priority: [u8; 8],
    priority_length: usize,
}

const MILLISECOND: u64 = 1_000_000;

impl LineMaker {
    /// A maker of lines with these columns.
    pub fn new(columns: Columns) -> LineMaker {
        let mut maker = LineMaker {
            columns,
            head: [0; HEAD],
            head_length: 0,
            head_from: 0,
            tail: [0; LONG_TAIL],
            tail_length: 0,
            issue_at: 0,
            stem: (Direction::Read, 0, 0),
            stem_length: 0,
            priority: [0; 8],
            priority_length: 0,
        };
        maker.renew_head(0);
        maker.renew_stem(Direction::Read, 0, 0);
        maker
    }

    /// Sets the time of the next lines, in nanoseconds.
    #[inline(always)]
    pub fn at(&mut self, nanoseconds: u64) {
        if nanoseconds.wrapping_sub(self.head_from) >= MILLISECOND {
            self.renew_head(nanoseconds);
        }
    }

    /// The time of the next lines, in milliseconds.
    pub fn time_ms(&self) -> u64 {
        self.head_from / MILLISECOND
    }

    fn renew_head(&mut self, nanoseconds: u64) {
        let ms = nanoseconds / MILLISECOND;
        self.head_from = ms * MILLISECOND;
        let digits = decimal::put(&mut self.head, ms);
        self.head[digits..digits + 2].copy_from_slice(b", ");
        self.head_length = digits + 2;
    }

    /// Sets the I/O of the next lines.
    #[inline(always)]
    pub fn of(&mut self, direction: Direction, length: u64, priority: u16, offset: u64, issue: u64) {
        if self.stem != (direction, length, priority) {
            self.renew_stem(direction, length, priority);
        }
        if self.columns.offset || self.columns.issue {
            self.finish_tail(offset, issue);
        }
    }

    fn renew_stem(&mut self, direction: Direction, length: u64, priority: u16) {
        self.stem = (direction, length, priority);
        let text = priority_text(self.columns, priority);
        self.priority_length = put_bytes(&mut self.priority, 0, text.as_bytes());
        let mut at = put_bytes(&mut self.tail, 0, b", ");
        at += decimal::put(&mut self.tail[at..], direction as u64);
        at = put_bytes(&mut self.tail, at, b", ");
        at += decimal::put(&mut self.tail[at..], length);
        self.stem_length = put_bytes(&mut self.tail, at, b", ");
        self.finish_tail(0, 0);
    }

    #[inline(always)]
    fn finish_tail(&mut self, offset: u64, issue: u64) {
        let mut at = self.stem_length;
        if self.columns.offset {
            at += decimal::put(&mut self.tail[at..], offset);
            at = put_bytes(&mut self.tail, at, b", ");
        }
        self.tail[at..at + 8].copy_from_slice(&self.priority);
        at += self.priority_length;
        if self.columns.issue {
            at = put_bytes(&mut self.tail, at, b", ");
            self.issue_at = at;
            at += decimal::put(&mut self.tail[at..], issue);
        }
        self.tail_length = put_bytes(&mut self.tail, at, b"\n");
    }

    /// Writes a line to the beginning of `out`, which must have room for [`LONGEST_LINE`]. Returns its length.
    /// `has_issue`: the time of issue is that of the I/O, and not 0.
    #[inline(always)]
    pub fn put(&self, out: &mut [u8], value: u64, most: u64, has_issue: bool) -> usize {
        out[..HEAD].copy_from_slice(&self.head);
        let mut at = self.head_length;
        at += decimal::put(&mut out[at..], value);
        if self.columns.both {
            at = put_bytes(out, at, b", ");
            at += decimal::put(&mut out[at..], most);
        }
        if self.tail_length <= SHORT_TAIL {
            out[at..at + SHORT_TAIL].copy_from_slice(&self.tail[..SHORT_TAIL]);
        } else {
            out[at..at + LONG_TAIL].copy_from_slice(&self.tail);
        }
        if self.columns.issue && !has_issue {
            return put_bytes(out, at + self.issue_at, b"0\n");
        }
        at + self.tail_length
    }
}

#[inline(always)]
fn put_bytes(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    out[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

/// The column of the priority: the number itself, or 1 for the real-time class and 0 for the others.
fn priority_text(columns: Columns, priority: u16) -> String {
    const REAL_TIME: u16 = 1;
    if columns.priority {
        format!("0x{priority:04x}")
    } else {
        u8::from(priority >> 13 == REAL_TIME).to_string()
    }
}

impl Sample {
    /// The line of this entry. This is slower than the way lines are made while a job runs.
    pub fn line(&self, columns: Columns) -> String {
        let mut line = format!("{}, {}", self.time_ms, self.value);
        if columns.both {
            line += &format!(", {}", self.most);
        }
        line += &format!(", {}, {}", self.direction, self.length);
        if columns.offset {
            line += &format!(", {}", self.offset);
        }
        line += &format!(", {}", priority_text(columns, self.priority));
        if columns.issue {
            line += &format!(", {}", self.issue_ns);
        }
        line + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(maker: &mut LineMaker, sample: &Sample, nanoseconds: u64) -> String {
        let mut out = [0; LONGEST_LINE];
        maker.at(nanoseconds);
        let direction = Direction::ALL[sample.direction as usize];
        maker.of(direction, sample.length, sample.priority, sample.offset, sample.issue_ns);
        let length = maker.put(&mut out, sample.value, sample.most, true);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_lines_that_tools_know() {
        let sample =
            Sample { time_ms: 9, value: 35737, length: 4096, offset: 1_024_000, ..Sample::default() };
        let both = Columns { offset: true, priority: true, ..Columns::default() };
        assert_eq!(sample.line(both), "9, 35737, 0, 4096, 1024000, 0x0000\n");
        assert_eq!(sample.line(Columns::default()), "9, 35737, 0, 4096, 0\n");
        let urgent = Sample { priority: 1 << 13 | 4, issue_ns: 77, most: 99, ..sample };
        assert_eq!(urgent.line(Columns::default()), "9, 35737, 0, 4096, 1\n");
        let all = Columns { offset: true, priority: true, issue: true, both: true };
        assert_eq!(urgent.line(all), "9, 35737, 99, 0, 4096, 1024000, 0x2004, 77\n");
    }

    #[test]
    fn the_longest_line_has_room() {
        let columns = Columns { offset: true, priority: true, issue: true, both: true };
        let huge = u64::MAX;
        let sample = Sample {
            time_ms: huge / MILLISECOND,
            value: huge,
            most: huge,
            direction: 2,
            length: huge,
            offset: huge,
            priority: 0xffff,
            issue_ns: huge,
        };
        let line = made(&mut LineMaker::new(columns), &sample, huge);
        assert_eq!(line, sample.line(columns));
        assert!(line.len() <= LONGEST_LINE);
    }

    #[test]
    fn a_line_without_a_time_of_issue_has_a_zero() {
        let columns = Columns { offset: true, issue: true, ..Columns::default() };
        let mut maker = LineMaker::new(columns);
        let mut out = [0; LONGEST_LINE];
        maker.at(9 * MILLISECOND);
        maker.of(Direction::Write, 4096, 0, 8192, 8_765_432);
        let mut line = |has_issue| {
            let length = maker.put(&mut out, 77, 0, has_issue);
            String::from_utf8(out[..length].to_vec()).unwrap()
        };
        assert_eq!(line(false), "9, 77, 1, 4096, 8192, 0, 0\n");
        assert_eq!(line(true), "9, 77, 1, 4096, 8192, 0, 8765432\n");
    }

    fn any_sample() -> impl Strategy<Value = (u64, u64, u64, u32, u64, u64, u64)> {
        let number = || (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift);
        (number(), number(), number(), 0u32..3, number(), number(), number())
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn fast_and_plain_lines_are_the_same(
            samples in prop::collection::vec(any_sample(), 1..20),
            flags in 0u8..16,
            priority in any::<u16>(),
        ) {
            let columns = Columns {
                offset: flags & 1 != 0,
                priority: flags & 2 != 0,
                issue: flags & 4 != 0,
                both: flags & 8 != 0,
            };
            let mut maker = LineMaker::new(columns);
            for (at, value, most, direction, length, offset, issue_ns) in samples {
                let time_ms = at / MILLISECOND;
                let sample = Sample { time_ms, value, most, direction, length, offset, priority, issue_ns };
                prop_assert_eq!(made(&mut maker, &sample, at), sample.line(columns));
            }
        }
    }
}
