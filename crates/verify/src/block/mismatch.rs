//! What is wrong with a block, in words.

use super::check::header_bytes;
use super::inquiry::Inquiry;
use super::stamp::Data;
use super::{Diagnosis, Expected, Header, Kind, Write};
use std::fmt::Write as _;
use std::ops::Range;

/// What is wrong, with the values.
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
    Pattern { at: usize, found: u8, wanted: u8 },
}

/// Which part of a block is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// There is no header.
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
    /// The data, where it should be a pattern.
    Pattern,
    /// It is not there: the file ends before.
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

/// How much of an interval is other than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differences {
    /// The first byte that differs, as an offset in the file.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// How many bytes differ.
    pub bytes: u64,
    /// How many bits differ.
    pub bits: u64,
}

/// An interval that is not what it ought to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The method.
    pub kind: Kind,
    /// Which part is wrong.
    pub field: Field,
    /// What it should be: numbers in decimal, checksums and bytes in hexadecimal. For a checksum, the stored one.
    pub expected: String,
    /// What it is. For a checksum of data, that of the data which was read.
    pub found: String,
    /// Where the interval is in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: usize,
    /// Where the block is that was read.
    pub block_offset: u64,
    /// Its bytes.
    pub block_length: usize,
    /// The header of the interval, where it can be trusted: whose write this is.
    pub header: Option<Header>,
    /// The write that was expected, the latest when there are several.
    pub wanted: Option<Write>,
    /// What it looks like.
    pub diagnosis: Diagnosis,
    /// Compared with what the interval most likely should be, where that is known.
    pub differences: Option<Differences>,
    /// The interval as it most likely should be, where that is known.
    pub reconstructed: Option<Vec<u8>>,
}

impl Mismatch {
    /// Finds out what happened to the interval in `range` of a block.
    pub(super) fn new(
        data: &mut Data,
        block: &[u8],
        range: Range<usize>,
        fault: Fault,
        expected: &Expected,
    ) -> Mismatch {
        let kind = data.spec.kind;
        let interval = &block[range.clone()];
        let header =
            kind.has_header().then(|| Header::load(&header_bytes(&data.spec, interval)).ok()).flatten();
        let offset = expected.offset + range.start as u64;
        let findings =
            Inquiry { data, block, range: range.clone(), header, expected, fault: &fault }.findings();
        let (field, expected_value, found) = fault.words(kind);
        Mismatch {
            kind,
            field,
            expected: expected_value,
            found,
            offset,
            length: range.len(),
            block_offset: expected.offset,
            block_length: block.len(),
            header,
            wanted: expected.writes.first().copied(),
            diagnosis: findings.diagnosis,
            differences: findings.differences,
            reconstructed: findings.reconstructed,
        }
    }

    /// A block that cannot be read, because its file ends at `end`, before the block or in it.
    pub fn cut_off(kind: Kind, offset: u64, length: usize, end: u64) -> Mismatch {
        Mismatch {
            kind,
            field: Field::End,
            expected: (offset + length as u64).to_string(),
            found: end.to_string(),
            offset,
            length,
            block_offset: offset,
            block_length: length,
            header: None,
            wanted: None,
            diagnosis: Diagnosis::CutOff(end),
            differences: None,
            reconstructed: None,
        }
    }

    /// The whole report, several lines without a line break at the end. The first ones are like fio's: the headline, and
    /// what the checksum should be. The one that is stored is called expected there.
    pub fn text(&self, file: &str) -> String {
        let mut text = format!(
            "{} at file {file} offset {}, length {} (requested block: offset={}, length={}",
            self.headline(),
            self.offset,
            self.length,
            self.block_offset,
            self.block_length
        );
        text.push_str(match self.field {
            // fio tells the state of its unit as well. Its number is the one of most reads there.
            Field::Digest | Field::Pattern => ", flags=8)",
            _ => ")",
        });
        match self.field {
            Field::Digest => {
                let _ = write!(text, "\n       Expected CRC: {}", self.expected);
                let _ = write!(text, "\n       Received CRC: {}", self.found);
            }
            Field::Pattern => {
                let _ = write!(text, "\n       got pattern '{}', wanted '{}'", self.found, self.expected);
            }
            _ => {}
        }
        let _ = write!(text, "\n  looks like: {}", self.diagnosis);
        if let Some(header) = &self.header {
            let _ = write!(text, "\n  holds: {}", identity(header));
        }
        if let Some(wanted) = self.wanted.as_ref().map(write_words).filter(|words| !words.is_empty()) {
            let _ = write!(text, "\n  expected: {wanted}");
        }
        if let Some(Differences { first, last, bytes, bits }) = &self.differences {
            let _ = write!(
                text,
                "\n  differs in: {} and {}, from offset {first} to {last}",
                counted(*bytes, "byte"),
                counted(*bits, "bit")
            );
        }
        text
    }

    fn headline(&self) -> String {
        let (found, expected, kind) = (&self.found, &self.expected, self.kind.name());
        match self.field {
            Field::Magic => format!("verify: bad magic header {found}, wanted {expected}"),
            Field::HeaderChecksum => format!("verify: bad header crc {found}, calculated {expected}"),
            Field::Length => format!("verify: bad header length {found}, wanted {expected}"),
            Field::Kind => format!("verify: bad header type {found}, wanted {expected}"),
            Field::Offset => format!("verify: bad header offset {found}, wanted {expected}"),
            Field::Job => format!("verify: bad header thread {found}, wanted {expected}"),
            Field::Sequence => format!("verify: bad header numberio {found}, wanted {expected}"),
            Field::Seed => format!("verify: bad header rand_seed {found}, wanted {expected}"),
            Field::Digest | Field::Pattern => format!("{kind}: verify failed"),
            Field::End => format!("verify: bad end of file {found}, wanted {expected} or more"),
        }
    }
}

impl Fault {
    /// The field, what it should be, and what it is.
    fn words(&self, kind: Kind) -> (Field, String, String) {
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
            Fault::Pattern { found, wanted, .. } => {
                (Field::Pattern, format!("{wanted:02x}"), format!("{found:02x}"))
            }
        }
    }
}

/// Whose write a header belongs to.
fn identity(header: &Header) -> String {
    format!(
        "write {} of job {}, for offset {}, of {}.{:09}",
        header.sequence, header.job, header.offset, header.seconds, header.nanoseconds
    )
}

fn write_words(write: &Write) -> String {
    let sequence = write.sequence.map(|sequence| format!("write {sequence}"));
    let job = write.job.map(|job| format!("of job {job}"));
    let seed = write.seed.map(|seed| format!("with seed {seed:016x}"));
    [sequence, job, seed].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
