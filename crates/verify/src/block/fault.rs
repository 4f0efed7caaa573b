//! Faults of an interval: the wrong part.

use super::expected::Write;
use super::header::Header;
use super::kind::Kind;
use super::spec::Spec;
use std::fmt::Write as _;

/// A fault of an interval: the value that was found, and the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Magic { found: u16 },
    HeaderChecksum { stored: u32, calculated: u32 },
    Length { found: u32, wanted: usize },
    Kind { found: u8 },
    Offset { found: u64, wanted: u64 },
    Job { found: u16, wanted: u16 },
    Sequence { found: u64, wanted: u64 },
    Seed { found: u64, wanted: u64 },
    Digest { stored: Vec<u8>, calculated: Vec<u8> },
    Pattern { found: u8, wanted: u8 },
}

/// The part of a block that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The first bytes of the header: this is no header.
    Magic,
    /// The checksum of the header.
    HeaderChecksum,
    /// The length of the interval.
    Length,
    /// The method.
    Kind,
    /// The place in the file.
    Offset,
    /// The job that wrote it.
    Job,
    /// The number of the write.
    Sequence,
    /// The seed of the content.
    Seed,
    /// The checksum of the data.
    Digest,
    /// The data, which should be a pattern.
    Pattern,
    /// The file ends before the end of the block.
    End,
}

impl Field {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Field::Magic => "magic",
            Field::HeaderChecksum => "header_checksum",
            Field::Length => "length",
            Field::Kind => "kind",
            Field::Offset => "offset",
            Field::Job => "job",
            Field::Sequence => "sequence",
            Field::Seed => "seed",
            Field::Digest => "digest",
            Field::Pattern => "pattern",
            Field::End => "end",
        }
    }
}

impl Fault {
    /// The field, its expected value, and the value found.
    pub(super) fn words(&self, kind: Kind) -> (Field, String, String) {
        match self {
            Fault::Magic { found } => (Field::Magic, "acca".into(), format!("{found:x}")),
            Fault::HeaderChecksum { stored, calculated } => {
                (Field::HeaderChecksum, format!("{calculated:08x}"), format!("{stored:08x}"))
            }
            Fault::Length { found, wanted } => (Field::Length, wanted.to_string(), found.to_string()),
            Fault::Kind { found } => {
                let name = Kind::from_number(*found).map_or("none that is known", Kind::name);
                (Field::Kind, format!("{} ({})", kind.number(), kind.name()), format!("{found} ({name})"))
            }
            Fault::Offset { found, wanted } => (Field::Offset, wanted.to_string(), found.to_string()),
            Fault::Job { found, wanted } => (Field::Job, wanted.to_string(), found.to_string()),
            Fault::Sequence { found, wanted } => (Field::Sequence, wanted.to_string(), found.to_string()),
            Fault::Seed { found, wanted } => (Field::Seed, wanted.to_string(), found.to_string()),
            Fault::Digest { stored, calculated } => (Field::Digest, hex(stored), hex(calculated)),
            Fault::Pattern { found, wanted } => {
                (Field::Pattern, format!("{wanted:02x}"), format!("{found:02x}"))
            }
        }
    }
}

/// The first field in which a header differs from this write. `None`: the header belongs to it.
pub(super) fn difference(spec: &Spec, header: &Header, write: &Write) -> Option<Fault> {
    let seed = write.seed.filter(|_| spec.check_seed);
    let sequence = write.sequence.filter(|_| spec.check_sequence);
    let sequence = sequence.map(|sequence| header.format.stored_sequence(sequence));
    if let Some(wanted) = write.job.filter(|&job| job != header.job) {
        return Some(Fault::Job { found: header.job, wanted });
    }
    if let Some(wanted) = sequence.filter(|&sequence| sequence != header.sequence) {
        return Some(Fault::Sequence { found: header.sequence, wanted });
    }
    let wanted = seed.filter(|&seed| seed != header.seed)?;
    Some(Fault::Seed { found: header.seed, wanted })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
