//! Compressed logs (`.fz`): a sequence of zlib streams with entries in the layout of fio 3.41.
//!
//! An entry has 40 bytes, all little endian: time in ms (u64), value (u64), the largest value of a window (u64, 0
//! without it), direction and flags (u32), priority (u16), two unused bytes, length (u64). The offset (u64) and the
//! time of issue (u64) follow if their flags are set. (Observed in logs of fio 3.41 with each of the options.) Entries
//! of fio 3.33 lack the largest value and the time of issue; they are read too.
//!
//! Histograms are stored as text in such streams (fio's files of this kind contain nothing readable).

use crate::{Columns, Sample};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// An offset follows.
const OFFSET: u32 = 1 << 31;
/// The line shows the priority itself.
const PRIORITY: u32 = 1 << 30;
/// The line shows the largest value.
const BOTH: u32 = 1 << 29;
/// The time of issue follows.
const ISSUE: u32 = 1 << 28;

/// The layout of entries, by fio release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The layout that we write.
    Of3_41,
    /// Without the largest value and the time of issue.
    Of3_33,
}

impl Layout {
    /// The layout of the entries that begin here: the older one only if the bytes make sense in it, and not in the
    /// other. `is_all` = no more bytes follow.
    pub fn of(bytes: &[u8], is_all: bool) -> Layout {
        let make_sense = |layout: Layout| layout.makes_sense(bytes, is_all);
        match !make_sense(Layout::Of3_41) && make_sense(Layout::Of3_33) {
            true => Layout::Of3_33,
            false => Layout::Of3_41,
        }
    }

    fn makes_sense(self, bytes: &[u8], is_all: bool) -> bool {
        let mut at = 0;
        while let Some((sample, columns, length)) = self.take(&bytes[at..]) {
            // Read, write, trim, and sync.
            if sample.direction > 3 || (!columns.both && sample.most > 0) {
                return false;
            }
            at += length;
        }
        !is_all || at == bytes.len()
    }

    /// The entry at the beginning of `bytes`, its columns, and its length; `None` if it is incomplete.
    pub fn take(self, bytes: &[u8]) -> Option<(Sample, Columns, usize)> {
        let mut at = 0;
        let mut word = || {
            let (eight, _) = bytes.get(at..)?.split_first_chunk()?;
            at += 8;
            Some(u64::from_le_bytes(*eight))
        };
        let (time_ms, value) = (word()?, word()?);
        let most = if self == Layout::Of3_41 { word()? } else { 0 };
        let (middle, length) = (word()?, word()?);
        let flags = middle as u32;
        let columns = Columns {
            offset: flags & OFFSET != 0,
            priority: flags & PRIORITY != 0,
            both: flags & BOTH != 0,
            issue: flags & ISSUE != 0,
        };
        let sample = Sample {
            time_ms,
            value,
            most,
            direction: flags & !(OFFSET | PRIORITY | ISSUE | BOTH),
            priority: (middle >> 32) as u16,
            length,
            offset: if columns.offset { word()? } else { 0 },
            issue_ns: if columns.issue { word()? } else { 0 },
        };
        Some((sample, columns, at))
    }
}

/// Appends an entry.
pub(crate) fn put(out: &mut Vec<u8>, sample: &Sample, columns: Columns) {
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let word = sample.direction
        | flag(columns.offset, OFFSET)
        | flag(columns.priority, PRIORITY)
        | flag(columns.both, BOTH)
        | flag(columns.issue, ISSUE);
    let most = if columns.both { sample.most } else { 0 };
    out.extend_from_slice(&sample.time_ms.to_le_bytes());
    out.extend_from_slice(&sample.value.to_le_bytes());
    out.extend_from_slice(&most.to_le_bytes());
    out.extend_from_slice(&word.to_le_bytes());
    out.extend_from_slice(&sample.priority.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&sample.length.to_le_bytes());
    for (_, value) in [(columns.offset, sample.offset), (columns.issue, sample.issue_ns)]
        .iter()
        .filter(|(wanted, _)| *wanted)
    {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Compresses bytes into one stream.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    // Compression competes with the job for the CPU, so it has to be fast.
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    let compressed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    compressed.unwrap_or_else(|_| unreachable!("writing to memory does not fail"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that fio 3.41 wrote with `log_offset`, `log_prio` and `log_issue_time`.
    const OF_3_41: &str = "0000000000000000 3cf9000000000000 0000000000000000 000000d003400000 0010000000000000 \
                           00f0000000000000 ba44090000000000";

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<char> = hexadecimal.chars().filter(|c| !c.is_whitespace()).collect();
        digits.chunks(2).map(|two| u8::from_str_radix(&String::from_iter(two), 16).unwrap()).collect()
    }

    #[test]
    fn the_layout_that_fio_reads() {
        let sample = Sample {
            value: 63804,
            length: 4096,
            offset: 61440,
            priority: 0x4003,
            issue_ns: 607_418,
            ..Sample::default()
        };
        let columns = Columns { offset: true, priority: true, issue: true, both: false };
        let mut packed = Vec::new();
        put(&mut packed, &sample, columns);
        assert_eq!(packed, bytes(OF_3_41));
        assert_eq!(Layout::of(&packed, true), Layout::Of3_41);
        assert_eq!(Layout::Of3_41.take(&packed), Some((sample, columns, 56)));
        assert_eq!(Layout::Of3_41.take(&packed[..55]), None);
        assert_eq!(Layout::Of3_41.take(&[]), None);
        // With `log_window_value=both`.
        let both = bytes(
            "3c00000000000000 4f84050000000000 632d0c0000000000 010000a000000000 0000000000000000 0000000000000000",
        );
        let (sample, columns, _) = Layout::Of3_41.take(&both).unwrap();
        assert_eq!((sample.value, sample.most, sample.direction), (361_551, 798_051, 1));
        assert!(columns.both && columns.offset && !columns.issue && !columns.priority);
    }

    #[test]
    fn the_layout_of_older_logs_is_recognised() {
        let entry =
            bytes("0100000000000000 4a04000000000000 010000c003400000 0010000000000000 0020000000000000");
        for count in 1..4 {
            let log = entry.repeat(count);
            assert_eq!(Layout::of(&log, true), Layout::Of3_33, "{count}");
        }
        let (sample, columns, length) = Layout::Of3_33.take(&entry).unwrap();
        assert_eq!((sample.direction, sample.offset, sample.priority, length), (1, 8192, 0x4003, 40));
        assert!(columns.offset && columns.priority && !columns.both && !columns.issue);
        let plain = bytes("0100000000000000 4a04000000000000 0000000000000000 0010000000000000");
        assert_eq!(Layout::of(&plain, true), Layout::Of3_33);
        assert_eq!(Layout::of(&plain.repeat(9), false), Layout::Of3_33);
    }

    #[test]
    fn packed_samples_are_unpacked_unchanged() {
        let sample = Sample {
            time_ms: 5,
            value: 6,
            most: 7,
            direction: 2,
            length: 8,
            offset: 9,
            priority: 10,
            issue_ns: 11,
        };
        for flags in 0..16 {
            let columns = Columns {
                offset: flags & 1 != 0,
                priority: flags & 2 != 0,
                issue: flags & 4 != 0,
                both: flags & 8 != 0,
            };
            let mut bytes = Vec::new();
            put(&mut bytes, &sample, columns);
            assert_eq!(Layout::of(&bytes, true), Layout::Of3_41);
            let (taken, found, length) = Layout::Of3_41.take(&bytes).unwrap();
            assert_eq!((found, length), (columns, bytes.len()));
            assert_eq!(taken.line(columns), sample.line(columns));
        }
    }
}
