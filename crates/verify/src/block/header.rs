//! The header in front of each verify interval, in both of its layouts. Numbers are little endian.
//!
//! | field | 3.41 and 3.42 | 3.33 |
//! |---|---|---|
//! | magic 0xacca | 0, u16 | 0, u16 |
//! | version 0x81 | 2, u8 | |
//! | kind | 3, u8 | 2, u16 |
//! | length of the interval | 4, u32 | 4, u32 |
//! | seed of the content | 8, u64 | 8, u64 |
//! | offset in the file | 16, u64 | 16, u64 |
//! | time, seconds | 24, u32 | 24, u32 |
//! | time, nanoseconds | 28, u32 | 28, u32 |
//! | number of the write in its job | 32, u64 | 34, u16 |
//! | number of the job | 40, u16 | 32, u16 |
//! | zeros | 42, u16 | |
//! | checksum of all before it | 44, u32 | 36, u32 |
//! | size | 48 | 40 |

use super::digest::header_checksum;
use serde::{Deserialize, Serialize};
use std::ops::Range;

const MAGIC: u16 = 0xacca;
const VERSION: u8 = 0x81;

/// The layout of headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HeaderFormat {
    /// The layout of fio 3.41 and 3.42.
    #[default]
    V342,
    /// The layout of fio 3.33 and older.
    V333,
}

impl HeaderFormat {
    /// Bytes of a header, without the checksum of the data behind it.
    pub const fn size(self) -> usize {
        match self {
            HeaderFormat::V342 => 48,
            HeaderFormat::V333 => 40,
        }
    }

    /// The place of the checksum of the header.
    pub(super) const fn checksum_at(self) -> usize {
        self.size() - 4
    }

    /// The part of a write's number that this format stores.
    pub fn stored_sequence(self, sequence: u64) -> u64 {
        match self {
            HeaderFormat::V342 => sequence,
            HeaderFormat::V333 => sequence & 0xffff,
        }
    }
}

/// The fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its layout.
    pub format: HeaderFormat,
    /// The number of the method; it may be unknown.
    pub kind: u8,
    /// Bytes of the interval, including the header.
    pub length: u32,
    /// The seed of the write. Random content comes from it.
    pub seed: u64,
    /// The offset of the interval in the file.
    pub offset: u64,
    /// When it was written: seconds since 1970.
    pub seconds: u32,
    /// The nanoseconds of that second.
    pub nanoseconds: u32,
    /// The number of the write in its job (in the old layout its low 16 bits).
    pub sequence: u64,
    /// The number of the job.
    pub job: u16,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    Magic(u16),
    Checksum { stored: u32, calculated: u32 },
}

impl Header {
    /// The place of the time, in both layouts.
    pub(super) const TIME: Range<usize> = 24..32;

    /// Writes the header to the beginning of `place`.
    pub(super) fn store(&self, place: &mut [u8]) {
        let checksum_at = self.format.checksum_at();
        place[..2].copy_from_slice(&MAGIC.to_le_bytes());
        place[4..8].copy_from_slice(&self.length.to_le_bytes());
        place[8..16].copy_from_slice(&self.seed.to_le_bytes());
        place[16..24].copy_from_slice(&self.offset.to_le_bytes());
        place[24..28].copy_from_slice(&self.seconds.to_le_bytes());
        place[28..32].copy_from_slice(&self.nanoseconds.to_le_bytes());
        match self.format {
            HeaderFormat::V342 => {
                place[2] = VERSION;
                place[3] = self.kind;
                place[32..40].copy_from_slice(&self.sequence.to_le_bytes());
                place[40..42].copy_from_slice(&self.job.to_le_bytes());
                place[42..44].fill(0);
            }
            HeaderFormat::V333 => {
                place[2..4].copy_from_slice(&u16::from(self.kind).to_le_bytes());
                place[32..34].copy_from_slice(&self.job.to_le_bytes());
                place[34..36].copy_from_slice(&(self.sequence as u16).to_le_bytes());
            }
        }
        let checksum = header_checksum(&place[..checksum_at]);
        place[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the header at the beginning of `bytes`, which have to be as long as the longest header.
    pub(super) fn load(bytes: &[u8]) -> Result<Header, Bad> {
        let magic = u16_at(bytes, 0);
        if magic != MAGIC {
            return Err(Bad::Magic(magic));
        }
        let header = Header::fields(bytes);
        let checksum_at = header.format.checksum_at();
        let stored = u32_at(bytes, checksum_at);
        let calculated = header_checksum(&bytes[..checksum_at]);
        if stored != calculated { Err(Bad::Checksum { stored, calculated }) } else { Ok(header) }
    }

    /// The values of the fields, whether or not this is a header.
    pub(super) fn fields(bytes: &[u8]) -> Header {
        let format = if bytes[2] == VERSION { HeaderFormat::V342 } else { HeaderFormat::V333 };
        let (kind, sequence, job) = match format {
            HeaderFormat::V342 => (bytes[3], u64_at(bytes, 32), u16_at(bytes, 40)),
            HeaderFormat::V333 => {
                let kind = u8::try_from(u16_at(bytes, 2)).unwrap_or(u8::MAX);
                (kind, u16_at(bytes, 34).into(), u16_at(bytes, 32))
            }
        };
        Header {
            format,
            kind,
            length: u32_at(bytes, 4),
            seed: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            seconds: u32_at(bytes, 24),
            nanoseconds: u32_at(bytes, 28),
            sequence,
            job,
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
