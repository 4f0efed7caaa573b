//! Blocks that were read.

use super::digest::{Digest, digest};
use super::header::Bad;
use super::mismatch::Fault;
use super::stamp::{Data, swap};
use super::{Header, HeaderFormat, Kind, Mismatch, Spec};
use iolite_content::{Fill, PatternPiece};

/// The longest header without the checksum behind it.
pub(super) const HEADER: usize = HeaderFormat::V342.size();

/// What a block ought to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected<'a> {
    /// Where it was read: the place in the file.
    pub offset: u64,
    /// The writes whose data is a good answer, the latest first. None: nothing is known about who wrote it, and
    /// any write to this place will do.
    pub writes: &'a [Write],
}

/// A write, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// Which write of its job.
    pub sequence: Option<u64>,
    /// The seed of its content.
    pub seed: Option<u64>,
    /// Whose.
    pub job: Option<u16>,
}

/// Checks blocks.
#[derive(Clone, Debug)]
pub struct Verifier {
    data: Data,
    /// The pattern that blocks are compared with.
    pattern: Vec<u8>,
    /// Whether `pattern` depends on where the block is.
    moves: bool,
}

impl Verifier {
    /// Blocks as `spec` describes them.
    pub fn new(spec: &Spec) -> Verifier {
        let moves = match &spec.fill {
            Fill::Pattern(pieces) => pieces.contains(&PatternPiece::Offset),
            Fill::Zeros | Fill::Random => true,
        };
        Verifier { data: Data::new(spec), pattern: Vec::new(), moves }
    }

    /// Whether headers tell the seed of the content: some of it is random.
    pub fn has_seeds(&self) -> bool {
        self.data.spec.kind.has_header() && self.data.is_random()
    }

    /// Checks a block that was read; it may be a part of what was written, made of whole intervals.
    ///
    /// # Errors
    ///
    /// The first interval that is not what it ought to be, and what it looks like.
    pub fn check(&mut self, block: &[u8], expected: &Expected) -> Result<(), Box<Mismatch>> {
        self.check_from(0, block, expected)
    }

    /// The same, for the intervals that begin at or behind a place in the block: the next one after a wrong one.
    ///
    /// # Errors
    ///
    /// The first of them that is wrong.
    pub fn check_from(
        &mut self,
        from: usize,
        block: &[u8],
        expected: &Expected,
    ) -> Result<(), Box<Mismatch>> {
        let kind = self.data.spec.kind;
        if kind == Kind::Null || from >= block.len() {
            return Ok(());
        }
        if kind.compares_pattern() {
            self.make_pattern(block.len(), expected.offset);
        }
        if kind == Kind::Pattern {
            return match first_difference(block, &self.pattern) {
                None => Ok(()),
                Some(at) => {
                    let fault = Fault::Pattern { at, found: block[at], wanted: self.pattern[at] };
                    Err(self.mismatch(block, 0, block.len(), fault, expected))
                }
            };
        }
        let length = self.data.spec.interval_of(block.len());
        for start in (0..block.len()).step_by(length).skip_while(|&start| start < from) {
            if let Err(fault) = self.check_interval(&block[start..start + length], start, expected) {
                return Err(self.mismatch(block, start, length, fault, expected));
            }
        }
        Ok(())
    }

    fn mismatch(
        &mut self,
        block: &[u8],
        start: usize,
        length: usize,
        fault: Fault,
        expected: &Expected,
    ) -> Box<Mismatch> {
        Box::new(Mismatch::new(&mut self.data, block, start..start + length, fault, expected))
    }

    fn make_pattern(&mut self, length: usize, offset: u64) {
        let is_there = self.pattern.len() == length && !self.moves && self.data.spec.kind == Kind::Pattern;
        if !is_there {
            self.pattern.resize(length, 0);
            self.data.fill(&mut self.pattern, offset, 0);
        }
    }

    fn check_interval(&mut self, interval: &[u8], start: usize, expected: &Expected) -> Result<(), Fault> {
        let kind = self.data.spec.kind;
        let header = header_of(&self.data.spec, interval)?;
        self.check_header(&header, interval.len(), expected.offset + start as u64, expected)?;
        let overhead = self.data.spec.overhead(header.format);
        let at = place_of(&self.data.spec, interval.len());
        if interval.len() < at + overhead {
            // No room for a header of this layout.
            return Err(Fault::Length { found: header.length, wanted: interval.len() });
        }
        if kind == Kind::PatternHeader {
            let place = &mut self.pattern[start..start + interval.len()];
            place[..overhead].copy_from_slice(&interval[at..at + overhead]);
            swap(place, self.data.spec.offset, overhead);
            return match first_difference(interval, place) {
                None => Ok(()),
                Some(at) => Err(Fault::Pattern { at, found: interval[at], wanted: place[at] }),
            };
        }
        if !kind.has_digest() {
            return Ok(());
        }
        let (stored, calculated) = sums(&self.data.spec, interval, header.format);
        if stored == calculated.as_bytes() {
            return Ok(());
        }
        Err(Fault::Digest { stored: stored.to_vec(), calculated: calculated.as_bytes().to_vec() })
    }

    fn check_header(
        &self,
        header: &Header,
        length: usize,
        offset: u64,
        expected: &Expected,
    ) -> Result<(), Fault> {
        if header.length as usize != length {
            return Err(Fault::Length { found: header.length, wanted: length });
        }
        if Kind::from_number(header.kind) != Some(self.data.spec.kind) {
            return Err(Fault::Kind { found: header.kind });
        }
        if header.offset != offset {
            return Err(Fault::Offset { found: header.offset, wanted: offset });
        }
        let fault = |write: &Write| difference(&self.data, header, write);
        match expected.writes {
            [] => Ok(()),
            writes if writes.iter().any(|write| fault(write).is_none()) => Ok(()),
            [latest, ..] => fault(latest).map_or(Ok(()), Err),
        }
    }
}

/// In what a header is not of this write.
pub(super) fn difference(data: &Data, header: &Header, write: &Write) -> Option<Fault> {
    let spec = &data.spec;
    let seed = write.seed.filter(|_| spec.check_seed).map(|seed| data.stored_seed(seed));
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

/// Where the header of an interval is.
pub(super) fn place_of(spec: &Spec, length: usize) -> usize {
    if spec.offset + spec.overhead(HeaderFormat::V333) <= length { spec.offset } else { 0 }
}

/// The header of an interval.
fn header_of(spec: &Spec, interval: &[u8]) -> Result<Header, Fault> {
    Header::load(&header_bytes(spec, interval)).map_err(|bad| match bad {
        Bad::Magic(found) => Fault::Magic { found },
        Bad::Checksum { stored, calculated } => Fault::HeaderChecksum { stored, calculated },
    })
}

/// The bytes of its header, with zeros behind the end of the interval.
pub(super) fn header_bytes(spec: &Spec, interval: &[u8]) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let place = place_of(spec, interval.len());
    let there = HEADER.min(interval.len() - place);
    bytes[..there].copy_from_slice(&interval[place..place + there]);
    bytes
}

/// The checksum that an interval holds, and the one of its data. There is room for both and the header.
pub(super) fn sums<'a>(spec: &Spec, interval: &'a [u8], format: HeaderFormat) -> (&'a [u8], Digest) {
    let place = place_of(spec, interval.len());
    let overhead = spec.overhead(format);
    let data: &[&[u8]] = if place >= overhead {
        &[&interval[overhead..place], &interval[..overhead], &interval[place + overhead..]]
    } else {
        &[&interval[overhead..]]
    };
    (&interval[place + format.size()..place + overhead], digest(spec.kind, data))
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    one.iter().zip(other).position(|(one, other)| one != other).or(Some(one.len().min(other.len())))
}
