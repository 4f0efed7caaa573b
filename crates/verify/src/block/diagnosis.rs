//! Descriptions of a wrong block; `inquiry.rs` finds the right one.

use super::kind::Kind;
use std::fmt;
use std::ops::Range;

/// The kind of damage that a wrong block shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// The block is all zeros: it was never written, it was discarded, or the storage returned zeros.
    Zeros,
    /// These sectors (offsets in the file) are zero and should not be; the rest is right.
    ZeroedSectors(Range<u64>),
    /// A block that belongs to another place.
    Misdirected {
        /// The offset where it belongs.
        belongs_to: u64,
    },
    /// An earlier write to this place: the later one was lost.
    Older {
        /// The number of the write that was found.
        found: u64,
        /// The number of the write that should be there.
        expected: u64,
        /// The passes of these writes, from 1; `None` = not known, or the same.
        passes: Option<(u64, u64)>,
        /// The run was stopped so soon after the write that it may have been in flight, if more I/Os than this were at a
        /// time; `None` = it was complete.
        in_flight_above: Option<u64>,
    },
    /// A write of an earlier run: the one of a later run was lost.
    EarlierRun {
        /// The number of the write that was found.
        found: u64,
        /// The number of the write of the later run.
        expected: u64,
    },
    /// A write to this place, but not an expected one: by another job, or a later one.
    OtherWrite,
    /// Only a part of the write is there.
    Torn {
        /// The sector (offset in the file) at which it was cut.
        at: u64,
        /// The write is there up to that sector; otherwise from that sector on.
        beginning: bool,
    },
    /// A single bit is wrong.
    BitFlip {
        /// The offset of the byte in the file.
        offset: u64,
        /// The bit; 0 is the lowest.
        bit: u8,
    },
    /// The data has moved by this many bytes, towards higher offsets if positive.
    Shifted(i64),
    /// It was written as a block of another length.
    WrongLength {
        /// Bytes of the interval that was written.
        written: u64,
    },
    /// It was written with the method of this number.
    OtherKind(u8),
    /// An unexpected pattern; its first bytes in hexadecimal.
    OtherPattern(String),
    /// The data matches its checksum, and the header is damaged.
    DamagedHeader,
    /// The file ends at this offset: it was cut off, or was never that long.
    CutOff(u64),
    /// A part of the data is wrong, in an unknown way.
    Damaged,
    /// It resembles no known damage.
    Unknown,
}

impl Diagnosis {
    /// Its name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Diagnosis::Zeros => "zeros",
            Diagnosis::ZeroedSectors(_) => "zeroed_sectors",
            Diagnosis::Misdirected { .. } => "misdirected",
            Diagnosis::Older { .. } => "older",
            Diagnosis::EarlierRun { .. } => "earlier_run",
            Diagnosis::OtherWrite => "other_write",
            Diagnosis::Torn { .. } => "torn",
            Diagnosis::BitFlip { .. } => "bit_flip",
            Diagnosis::Shifted(_) => "shifted",
            Diagnosis::WrongLength { .. } => "wrong_length",
            Diagnosis::OtherKind(_) => "other_kind",
            Diagnosis::OtherPattern(_) => "other_pattern",
            Diagnosis::DamagedHeader => "damaged_header",
            Diagnosis::CutOff(_) => "cut_off",
            Diagnosis::Damaged => "damaged",
            Diagnosis::Unknown => "unknown",
        }
    }

    /// Whether a block may look like this because it was never written.
    pub fn may_be_unwritten(&self) -> bool {
        match self {
            Diagnosis::Zeros
            | Diagnosis::CutOff(_)
            | Diagnosis::Older { .. }
            | Diagnosis::EarlierRun { .. }
            | Diagnosis::OtherWrite
            | Diagnosis::Misdirected { .. }
            | Diagnosis::WrongLength { .. }
            | Diagnosis::OtherKind(_)
            | Diagnosis::OtherPattern(_)
            | Diagnosis::Unknown => true,
            Diagnosis::ZeroedSectors(_)
            | Diagnosis::Torn { .. }
            | Diagnosis::BitFlip { .. }
            | Diagnosis::Shifted(_)
            | Diagnosis::DamagedHeader
            | Diagnosis::Damaged => false,
        }
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Diagnosis::Zeros => to.write_str("zeros: never written, discarded, or lost"),
            Diagnosis::ZeroedSectors(Range { start, end }) => {
                write!(to, "zeroed sectors: {} bytes at offset {start} are zero", end - start)
            }
            Diagnosis::Misdirected { belongs_to } => {
                write!(to, "a misdirected block: it belongs to offset {belongs_to}")
            }
            Diagnosis::Older { found, expected, passes, in_flight_above } => {
                write!(to, "an older generation: write {found} is there, write {expected} was lost")?;
                if let Some((found, expected)) = passes {
                    write!(to, " (pass {found}, where the blocks around it are of pass {expected})")?;
                }
                match in_flight_above {
                    Some(depth) => write!(
                        to,
                        ", or in flight, if the run was killed and its iodepth was above {depth} (check with the iodepth of the run)"
                    ),
                    None => Ok(()),
                }
            }
            Diagnosis::EarlierRun { found, expected } => write!(
                to,
                "a block left from an earlier run: its write {found} is there, write {expected} of a later run was lost"
            ),
            Diagnosis::OtherWrite => to.write_str("another write to the same place"),
            Diagnosis::Torn { at, beginning } => {
                let (there, missing) = if *beginning { ("before", "behind") } else { ("from", "before") };
                write!(
                    to,
                    "a torn write: what is {there} offset {at} is right, and {missing} it is other data"
                )
            }
            Diagnosis::BitFlip { offset, bit } => {
                write!(to, "a bit flip: bit {bit} of the byte at offset {offset}")
            }
            Diagnosis::Shifted(by) => {
                let where_to = if *by > 0 { "higher" } else { "lower" };
                write!(to, "shifted data: it has moved by {} bytes to {where_to} offsets", by.unsigned_abs())
            }
            Diagnosis::WrongLength { written } => {
                write!(to, "a block of wrong length: it was written as one of {written} bytes")
            }
            Diagnosis::OtherKind(number) => {
                let name = Kind::from_number(*number).map_or("unknown", Kind::name);
                write!(to, "a block that was written with verify={name} (type {number})")
            }
            Diagnosis::OtherPattern(bytes) => write!(to, "another pattern: {bytes}…"),
            Diagnosis::DamagedHeader => to.write_str("a damaged header: the data is what its checksum says"),
            Diagnosis::CutOff(end) => write!(to, "lost data: the file ends at offset {end}"),
            Diagnosis::Damaged => to.write_str("damaged data"),
            Diagnosis::Unknown => to.write_str("nothing that is known"),
        }
    }
}
