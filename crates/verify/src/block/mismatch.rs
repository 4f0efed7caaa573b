//! The report of a wrong interval.

use super::diagnosis::Diagnosis;
use super::expected::Write;
use super::fault::Field;
use super::header::Header;
use super::kind::Kind;
use iolite_types::utc_to_the_nanosecond;
use std::fmt::Write as _;

/// The extent of the differences in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differences {
    /// The offset in the file of the first byte that differs.
    pub first: u64,
    /// The offset in the file of the last byte that differs.
    pub last: u64,
    /// How many bytes differ.
    pub bytes: u64,
    /// How many bits differ.
    pub bits: u64,
}

/// An interval with unexpected content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The method.
    pub kind: Kind,
    /// The wrong part.
    pub field: Field,
    /// The expected value of this part: numbers in decimal, checksums and bytes in hexadecimal. For data: the stored
    /// checksum.
    pub expected: String,
    /// The value found. For data: the checksum of the data that was read.
    pub found: String,
    /// The offset of the interval in the file.
    pub offset: u64,
    /// Bytes of the interval.
    pub length: usize,
    /// The offset of the block that was read.
    pub block_offset: u64,
    /// Bytes of that block.
    pub block_length: usize,
    /// The header of the interval, if its checksum is right: it names the write that was found.
    pub header: Option<Header>,
    /// The expected write; the latest, if several were valid.
    pub wanted: Option<Write>,
    /// The kind of damage.
    pub diagnosis: Diagnosis,
    /// The difference from the most likely intended content, if that is known.
    pub differences: Option<Differences>,
    /// The most likely intended content, if known.
    pub reconstructed: Option<Vec<u8>>,
}

impl Mismatch {
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

    /// The whole report: several lines, without a line break at the end. Headline and checksums look like fio's, which
    /// calls the stored checksum the expected one.
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
            // fio prints the flags of its unit as well; these are the usual flags of its reads.
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

/// The write that a header names, for messages.
fn identity(header: &Header) -> String {
    let Header { sequence, job, offset, seconds, nanoseconds, .. } = *header;
    // Blocks that the device compares have no time.
    let made = match (seconds, nanoseconds) {
        (0, 0) => String::new(),
        _ => format!(", made {}", utc_to_the_nanosecond(seconds.into(), nanoseconds)),
    };
    format!("write {sequence} of job {job}, for offset {offset}{made}")
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
