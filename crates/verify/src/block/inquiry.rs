//! Finds out which of the known storage failures explains a wrong interval.
//!
//! The wrong interval is compared with its expected content. Random content can be generated again from a seed, so
//! there are several candidates: the expected writes whose seed is known, and the write that the interval's own header
//! names (a header with a single wrong bit is repaired first; its checksum shows which bit). The nearest candidate
//! counts as the intended content, unless none is near: data of another program cannot be generated again.
//!
//! The questions go from the outside to the inside: is there no data at all, a complete block that belongs elsewhere or
//! was written earlier, a block that has moved, parts of a write, wrong bits?

use super::data::Data;
use super::diagnosis::Diagnosis;
use super::expected::{Expected, Write};
use super::fault::{Fault, difference, hex};
use super::foreign::wrong_bit;
use super::header::{Header, HeaderFormat};
use super::interval::{has_room, header_bytes, is_intact, place_of, swap};
use super::mismatch::{Differences, Mismatch};
use super::moves::{moved_data, moved_header, offset_in_pattern};
use super::parts::{part, torn, zeroed};
use super::spec::Spec;
use super::subject::{Candidate, PROBE, Subject};
use std::ops::Range;

/// The longest repetition that is called a pattern.
const LONGEST_PATTERN: usize = 1024;

/// Diagnoses the interval in `range` of a block.
pub(super) fn inquire(
    data: &mut Data,
    block: &[u8],
    range: Range<usize>,
    fault: &Fault,
    expected: &Expected,
) -> Mismatch {
    let kind = data.spec.kind;
    let header = kind.has_header().then(|| Header::load(&header_bytes(&data.spec, &block[range.clone()])));
    let header = header.and_then(Result::ok);
    let subject = Subject { data, block, block_offset: expected.offset, range: range.clone() };
    let mut inquiry = Inquiry { subject, header, expected, fault };
    let finding = inquiry.finding();
    let (field, wanted, found) = fault.words(kind);
    Mismatch {
        kind,
        field,
        expected: wanted,
        found,
        offset: expected.offset + range.start as u64,
        length: range.len(),
        block_offset: expected.offset,
        block_length: block.len(),
        header,
        wanted: expected.writes.first().copied(),
        diagnosis: finding.diagnosis,
        differences: finding.differences,
        reconstructed: finding.reconstructed,
    }
}

/// A wrong interval, and the data that helps to explain it.
struct Inquiry<'a, 'b> {
    subject: Subject<'a>,
    /// The interval's header, if its checksum is right.
    header: Option<Header>,
    expected: &'a Expected<'b>,
    fault: &'a Fault,
}

/// The result.
struct Finding {
    diagnosis: Diagnosis,
    differences: Option<Differences>,
    reconstructed: Option<Vec<u8>>,
}

/// A header with one wrong bit.
#[derive(Clone, Copy)]
struct Repaired {
    /// The repaired header.
    header: Header,
    /// The byte in the interval, and the bit.
    flip: Flip,
}

/// A wrong bit: the byte in the interval, and the bit (0 is the lowest).
type Flip = (usize, u8);

impl Inquiry<'_, '_> {
    fn finding(&mut self) -> Finding {
        let repaired = if self.header.is_none() { self.repaired_header() } else { None };
        let best = self.nearest(repaired.map(|repaired| repaired.header));
        let diagnosis = self.diagnosis(best.as_ref(), repaired);
        let differences = best.as_ref().and_then(|best| best.differences(self.subject.offset()));
        Finding { diagnosis, differences, reconstructed: best.map(|best| best.bytes) }
    }

    fn spec(&self) -> &Spec {
        self.subject.spec()
    }

    fn diagnosis(&mut self, best: Option<&Candidate>, repaired: Option<Repaired>) -> Diagnosis {
        if self.subject.is_zero() {
            return Diagnosis::Zeros;
        }
        match (self.fault, self.header) {
            (Fault::Kind { found }, Some(_)) => Diagnosis::OtherKind(*found),
            (Fault::Length { .. }, Some(header)) => Diagnosis::WrongLength { written: header.length.into() },
            (Fault::Offset { found, .. }, Some(_)) => Diagnosis::Misdirected { belongs_to: *found },
            (Fault::Job { .. } | Fault::Sequence { .. } | Fault::Seed { .. }, Some(header)) => {
                let torn = if self.is_whole(&header) {
                    self.torn_between_intervals()
                } else {
                    best.and_then(|best| torn(&self.subject, best))
                };
                torn.unwrap_or_else(|| self.generation(&header))
            }
            _ => self.damage(best, repaired),
        }
    }

    /// This interval belongs entirely to another write. Checks whether the expected write and another one share the
    /// block: one has the intervals up to some place, the other one the rest.
    fn torn_between_intervals(&mut self) -> Option<Diagnosis> {
        let latest = *self.expected.writes.first()?;
        let (here, step) = (self.subject.range.start, self.subject.range.len());
        let starts = (0..self.subject.block.len()).step_by(step);
        let are_right: Vec<bool> = starts.map(|start| self.is_of(start..start + step, &latest)).collect();
        let mut changes = (1..are_right.len()).filter(|&at| are_right[at] != are_right[at - 1]);
        // The interval next to the correct ones may itself be cut. If none is correct, the cut one is the first or the
        // last.
        let (besides, at) = match (changes.next(), changes.next()) {
            (Some(at), None) if are_right[0] => (vec![at], Some(at)),
            (Some(at), None) => (vec![at - 1], Some(at)),
            (None, _) => (vec![0, are_right.len() - 1], None),
            _ => return None,
        };
        for beside in besides.into_iter().map(|number| number * step).filter(|&at| at != here) {
            if let Some(torn) = self.torn_interval(beside..beside + step, &latest) {
                return Some(torn);
            }
        }
        let offset = self.expected.offset;
        at.map(|at| Diagnosis::Torn { at: offset + (at * step) as u64, beginning: are_right[0] })
    }

    /// Whether an interval of the block belongs to this write, by its header and checksum.
    fn is_of(&self, range: Range<usize>, write: &Write) -> bool {
        let interval = &self.subject.block[range.clone()];
        let Ok(header) = Header::load(&header_bytes(self.spec(), interval)) else { return false };
        header.offset == self.expected.offset + range.start as u64
            && difference(self.spec(), &header, write).is_none()
            && is_intact(self.spec(), interval, &header)
    }

    /// The place of the cut in another interval of the block, if a part of that interval belongs to this write.
    fn torn_interval(&mut self, range: Range<usize>, write: &Write) -> Option<Diagnosis> {
        let header = Header::load(&header_bytes(self.spec(), &self.subject.block[range.clone()])).ok();
        let expected = Expected { writes: &[*write], ..*self.expected };
        let Subject { data, block, block_offset, .. } = &mut self.subject;
        let subject = Subject { data, block, block_offset: *block_offset, range };
        let mut beside = Inquiry { subject, header, expected: &expected, fault: self.fault };
        let best = beside.nearest(None)?;
        torn(&beside.subject, &best)
    }

    /// Diagnoses damaged data: the header belongs here, or is missing.
    fn damage(&mut self, best: Option<&Candidate>, repaired: Option<Repaired>) -> Diagnosis {
        let offset = self.subject.offset();
        let flip = |(byte, bit): Flip| Diagnosis::BitFlip { offset: offset + byte as u64, bit };
        if let Some(best) = best.filter(|best| best.bits == 1) {
            return part(&self.subject, best);
        }
        if let Some(Repaired { header, flip: place }) = repaired.filter(|it| self.is_intact(&it.header)) {
            let belongs_to = header.offset;
            return if belongs_to == offset { flip(place) } else { Diagnosis::Misdirected { belongs_to } };
        }
        if let Some(belongs_to) = offset_in_pattern(&mut self.subject) {
            return Diagnosis::Misdirected { belongs_to };
        }
        if let Some(by) = moved_header(&self.subject) {
            return Diagnosis::Shifted(by);
        }
        let part = match best.filter(|best| best.is_near) {
            Some(best) => part(&self.subject, best),
            None => zeroed(&self.subject, None).map_or(Diagnosis::Unknown, Diagnosis::ZeroedSectors),
        };
        // Data that moved may have left a few sectors correct. A moved pattern matches itself in places, and a torn
        // pattern looks as if it had moved: so for patterns, look at the parts first.
        let may_have_moved = match part {
            Diagnosis::Damaged | Diagnosis::Unknown => true,
            Diagnosis::Torn { .. } => self.subject.data.is_random(),
            _ => false,
        };
        if !may_have_moved {
            return part;
        }
        if self.header.is_none() && !matches!(part, Diagnosis::Torn { .. }) && self.has_intact_data() {
            return Diagnosis::DamagedHeader;
        }
        if let Some(by) = best.and_then(|best| moved_data(&self.subject, best)) {
            return Diagnosis::Shifted(by);
        }
        if matches!(part, Diagnosis::Torn { .. }) {
            return part;
        }
        if let Some(pattern) = self.other_pattern() {
            return Diagnosis::OtherPattern(pattern);
        }
        let has_room = |header: &Header| has_room(self.spec(), self.subject.range.len(), header.format);
        match self.header.filter(|header| part == Diagnosis::Unknown && has_room(header)) {
            Some(header) => wrong_bit(self.spec(), self.subject.interval(), header.format).map_or(part, flip),
            None => part,
        }
    }

    /// The data belongs to another write than the expected one.
    fn generation(&self, header: &Header) -> Diagnosis {
        let Some(Write { sequence: Some(expected), job, .. }) = self.expected.writes.first().copied() else {
            return Diagnosis::OtherWrite;
        };
        if job.is_some_and(|job| job != header.job) || !self.spec().check_sequence {
            return Diagnosis::OtherWrite;
        }
        let stored = header.format.stored_sequence(expected);
        let is_older = match header.format {
            HeaderFormat::V342 => header.sequence < stored,
            // Sixteen bits wrap around: the shorter distance is the right one.
            HeaderFormat::V333 => (1..1 << 15).contains(&(stored.wrapping_sub(header.sequence) & 0xffff)),
        };
        if is_older {
            Diagnosis::Older { found: header.sequence, expected: stored, passes: None, in_flight_above: None }
        } else {
            Diagnosis::OtherWrite
        }
    }

    /// Whether the interval's data matches its checksum, in the layout of this header.
    fn is_intact(&self, header: &Header) -> bool {
        is_intact(self.spec(), self.subject.interval(), header)
    }

    /// Whether the data matches its checksum, whatever the header is. A checksum of one byte matches too often by
    /// chance to count.
    fn has_intact_data(&self) -> bool {
        let header = Header::fields(&header_bytes(self.spec(), self.subject.interval()));
        let formats = [HeaderFormat::V342, HeaderFormat::V333];
        self.spec().kind.digest_size() > 1
            && formats.into_iter().any(|format| self.is_intact(&Header { format, ..header }))
    }

    /// Whether the complete interval is the write that its header names.
    fn is_whole(&mut self, header: &Header) -> bool {
        // The checksum may be short or missing: compare the data itself, if it can be generated again.
        let candidate = self.subject.candidate(header, false);
        if candidate.is_near { candidate.wrong.is_empty() } else { self.is_intact(header) }
    }

    /// The header with one bit flipped so that its checksum is right.
    fn repaired_header(&self) -> Option<Repaired> {
        if !self.spec().kind.has_header() {
            return None;
        }
        let mut bytes = header_bytes(self.spec(), self.subject.interval());
        let place = place_of(self.spec(), self.subject.range.len());
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                bytes[byte] ^= 1 << bit;
                if let Ok(header) = Header::load(&bytes) {
                    return Some(Repaired { header, flip: (place + byte, bit) });
                }
                bytes[byte] ^= 1 << bit;
            }
        }
        None
    }

    /// The intended content, as far as it can be known.
    fn nearest(&mut self, repaired: Option<Header>) -> Option<Candidate> {
        let (length, offset) = (self.subject.range.len(), self.subject.offset());
        let base = self.header.or(repaired).unwrap_or_else(|| {
            let fields = Header::fields(&header_bytes(self.spec(), self.subject.interval()));
            // Ignore the format of such a header: it is not reliable.
            Header { format: self.spec().format, ..fields }
        });
        let base = Header { kind: self.spec().kind.number(), length: length as u32, offset, ..base };
        let is_random = self.subject.data.is_random();
        let mut headers: Vec<(Header, bool)> = Vec::new();
        for write in self.expected.writes {
            let header = Header {
                seed: write.seed.unwrap_or(base.seed),
                sequence: write.sequence.map_or(base.sequence, |number| base.format.stored_sequence(number)),
                job: write.job.unwrap_or(base.job),
                ..base
            };
            headers.push((header, write.seed.is_some() || !is_random));
        }
        // The header of another write does not determine the expected content.
        let is_other = matches!(self.fault, Fault::Job { .. } | Fault::Sequence { .. } | Fault::Seed { .. });
        if !is_other || !headers.iter().any(|(_, is_certain)| *is_certain) {
            headers.push((base, !is_random));
        }
        let candidates =
            headers.into_iter().map(|(header, is_certain)| self.subject.candidate(&header, is_certain));
        candidates.filter(|one| one.is_certain || one.is_near).min_by_key(|one| one.wrong.len())
    }

    /// The first bytes of a pattern that replaces the expected one.
    fn other_pattern(&self) -> Option<String> {
        if !self.spec().kind.compares_pattern() {
            return None;
        }
        let mut interval = self.subject.interval().to_vec();
        let overhead = self.header.map_or(0, |header| self.spec().overhead(header.format));
        swap(&mut interval, self.spec().offset, overhead);
        let data = &interval[overhead.min(interval.len())..];
        let period = (1..=LONGEST_PATTERN.min(data.len() / 2))
            .find(|&period| data[period..] == data[..data.len() - period])?;
        Some(hex(&data[..period.clamp(1, PROBE)]))
    }
}
