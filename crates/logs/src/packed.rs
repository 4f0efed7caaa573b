//! Compressed logs (`.fz`): a sequence of zlib streams with entries in the layout of fio 3.33.
//!
//! An entry has 32 bytes, all little endian: time in ms (u64), value (u64), direction and flags (u32), priority (u16),
//! two unused bytes, length (u64). The offset (u64) follows if its flag is set. The time of issue and the largest value
//! of a window, which that version of fio does not know, have flags of our own, with eight more bytes each.
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
/// The time of issue follows (ours).
const ISSUE: u32 = 1 << 29;
/// The largest value follows (ours).
const BOTH: u32 = 1 << 28;

/// Size of an entry without additional fields, in bytes.
const PLAIN: usize = 32;

/// Appends an entry.
pub(crate) fn put(out: &mut Vec<u8>, sample: &Sample, columns: Columns) {
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let word = sample.direction
        | flag(columns.offset, OFFSET)
        | flag(columns.priority, PRIORITY)
        | flag(columns.issue, ISSUE)
        | flag(columns.both, BOTH);
    out.extend_from_slice(&sample.time_ms.to_le_bytes());
    out.extend_from_slice(&sample.value.to_le_bytes());
    out.extend_from_slice(&word.to_le_bytes());
    out.extend_from_slice(&sample.priority.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&sample.length.to_le_bytes());
    let behind =
        [(columns.offset, sample.offset), (columns.issue, sample.issue_ns), (columns.both, sample.most)];
    for (_, value) in behind.into_iter().filter(|(wanted, _)| *wanted) {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// The entry at the beginning of `bytes`, its columns, and its length; `None` if it is incomplete.
pub(crate) fn take(bytes: &[u8]) -> Option<(Sample, Columns, usize)> {
    let word = |at: usize| {
        let eight = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes([
            eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7],
        ]))
    };
    let middle = word(16)?;
    let flags = middle as u32;
    let columns = Columns {
        offset: flags & OFFSET != 0,
        priority: flags & PRIORITY != 0,
        issue: flags & ISSUE != 0,
        both: flags & BOTH != 0,
    };
    let mut sample = Sample {
        time_ms: word(0)?,
        value: word(8)?,
        direction: flags & !(OFFSET | PRIORITY | ISSUE | BOTH),
        priority: (middle >> 32) as u16,
        length: word(24)?,
        ..Sample::default()
    };
    let mut at = PLAIN;
    for (wanted, value) in [
        (columns.offset, &mut sample.offset),
        (columns.issue, &mut sample.issue_ns),
        (columns.both, &mut sample.most),
    ] {
        if wanted {
            *value = word(at)?;
            at += 8;
        }
    }
    Some((sample, columns, at))
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

    #[test]
    fn the_layout_that_fio_reads() {
        let sample = Sample {
            time_ms: 1,
            value: 0x44a,
            direction: 1,
            length: 4096,
            offset: 8192,
            priority: 0x4003,
            ..Sample::default()
        };
        let columns = Columns { offset: true, priority: true, ..Columns::default() };
        let mut bytes = Vec::new();
        put(&mut bytes, &sample, columns);
        let expected = [
            &[1, 0, 0, 0, 0, 0, 0, 0, 0x4a, 4, 0, 0, 0, 0, 0, 0][..],
            &[1, 0, 0, 0xc0, 3, 0x40, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0],
            &[0, 0x20, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(take(&bytes), Some((sample, columns, 40)));
        assert_eq!(take(&bytes[..39]), None);
        assert_eq!(take(&[]), None);
    }

    #[test]
    fn what_is_put_is_taken() {
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
            let (taken, found, length) = take(&bytes).unwrap();
            assert_eq!((found, length), (columns, bytes.len()));
            assert_eq!(taken.line(columns), sample.line(columns));
        }
    }
}
