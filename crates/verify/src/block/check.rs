//! Checks blocks that were read.

use super::data::Data;
use super::expected::Expected;
use super::fault::{Fault, difference};
use super::header::{Bad, Header};
use super::inquiry::inquire;
use super::interval::{has_room, header_bytes, place_of, sums, swap};
use super::kind::Kind;
use super::mismatch::Mismatch;
use super::spec::Spec;
use iolite_content::{Fill, PatternPiece};

/// Checks blocks.
#[derive(Clone, Debug)]
pub struct Verifier {
    data: Data,
    /// The pattern that blocks are compared with.
    pattern: Vec<u8>,
    /// Whether `pattern` depends on the offset of the block.
    moves: bool,
}

impl Verifier {
    /// Checks blocks that were written as `spec` says.
    pub fn new(spec: &Spec) -> Verifier {
        let moves = match &spec.fill {
            Fill::Pattern(pieces) => pieces.contains(&PatternPiece::Offset),
            Fill::Zeros | Fill::Random => true,
        };
        Verifier { data: Data::new(spec), pattern: Vec::new(), moves }
    }

    /// Whether blocks have headers, which hold the seed of their write.
    pub fn has_seeds(&self) -> bool {
        self.data.spec.kind.has_header()
    }

    /// The header of a block's first interval, if there is one.
    pub fn header(&self, block: &[u8]) -> Option<Header> {
        let spec = &self.data.spec;
        let interval = &block[..spec.interval_of(block.len())];
        spec.kind.has_header().then(|| header_of(spec, interval).ok())?
    }

    /// Checks a block that was read. It may be a part of a written block if it consists of complete intervals.
    ///
    /// # Errors
    ///
    /// The first wrong interval, with its diagnosis.
    pub fn check(&mut self, block: &[u8], expected: &Expected) -> Result<(), Box<Mismatch>> {
        self.check_from(0, block, expected)
    }

    /// The same for the intervals from byte `from` of the block onwards, to find the next wrong one.
    ///
    /// # Errors
    ///
    /// The first wrong interval among them.
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
                    let fault = Fault::Pattern { found: block[at], wanted: self.pattern[at] };
                    Err(self.mismatch(block, 0, block.len(), &fault, expected))
                }
            };
        }
        let length = self.data.spec.interval_of(block.len());
        for start in (0..block.len()).step_by(length).skip_while(|&start| start < from) {
            if let Err(fault) = self.check_interval(&block[start..start + length], start, expected) {
                return Err(self.mismatch(block, start, length, &fault, expected));
            }
        }
        Ok(())
    }

    fn mismatch(
        &mut self,
        block: &[u8],
        start: usize,
        length: usize,
        fault: &Fault,
        expected: &Expected,
    ) -> Box<Mismatch> {
        Box::new(inquire(&mut self.data, block, start..start + length, fault, expected))
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
        if !has_room(&self.data.spec, interval.len(), header.format) {
            return Err(Fault::Length { found: header.length, wanted: interval.len() });
        }
        if kind == Kind::PatternHeader {
            let overhead = self.data.spec.overhead(header.format);
            let at = place_of(&self.data.spec, interval.len());
            let place = &mut self.pattern[start..start + interval.len()];
            place[..overhead].copy_from_slice(&interval[at..at + overhead]);
            swap(place, self.data.spec.offset, overhead);
            return match first_difference(interval, place) {
                None => Ok(()),
                Some(at) => Err(Fault::Pattern { found: interval[at], wanted: place[at] }),
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
        let mut faults = expected.writes.iter().map(|write| difference(&self.data.spec, header, write));
        // If no write matches, report the fault for the latest one.
        match faults.next().flatten() {
            Some(fault) if faults.all(|fault| fault.is_some()) => Err(fault),
            _ => Ok(()),
        }
    }
}

/// The header of an interval.
fn header_of(spec: &Spec, interval: &[u8]) -> Result<Header, Fault> {
    Header::load(&header_bytes(spec, interval)).map_err(|bad| match bad {
        Bad::Magic(found) => Fault::Magic { found },
        Bad::Checksum { stored, calculated } => Fault::HeaderChecksum { stored, calculated },
    })
}

fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    if one == other {
        return None;
    }
    one.iter().zip(other).position(|(one, other)| one != other).or(Some(one.len().min(other.len())))
}
