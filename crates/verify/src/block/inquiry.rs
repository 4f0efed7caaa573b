//! Finds out which of the known ways in which storage fails would leave a wrong interval behind.
//!
//! The interval that was found is compared with what it should be. Random content can be made again from a seed,
//! so there are several candidates: the expected writes whose seed is known, and what the header that was found
//! says of itself (a header with a single wrong bit is mended first, its checksum tells which). The candidate that
//! is nearest is what the interval should be, if it is near at all: data of another program cannot be made again.
//!
//! The order of the questions is from the outside to the inside: nothing there at all, a whole block that belongs
//! elsewhere or was written earlier, a block that has moved, parts, bits.

use super::check::{difference, header_bytes, place_of, sums};
use super::foreign::wrong_bit;
use super::mismatch::{Differences, Fault, hex};
use super::stamp::{Data, swap};
use super::{Diagnosis, Expected, Header, HeaderFormat, Kind, Spec, Write};
use iolite_content::{Fill, PatternPiece};
use std::ops::Range;

/// What storage writes at once: a write that was cut off ends at a multiple of it.
const SECTOR: u64 = 512;
/// Data of the right kind is recognised, and data that moved is found, by pieces of this size.
const PROBE: usize = 16;
/// So many ways in which data may have moved are tried: a pattern is found in many places.
const MOST_MOVES: usize = 1024;
/// The longest repetition that is called a pattern.
const LONGEST_PATTERN: usize = 1024;

/// A wrong interval, and all that helps.
pub(super) struct Inquiry<'a, 'b> {
    pub(super) data: &'a mut Data,
    /// The whole block that was read.
    pub(super) block: &'a [u8],
    /// The interval in it.
    pub(super) range: Range<usize>,
    /// The interval's header, if it can be trusted.
    pub(super) header: Option<Header>,
    pub(super) expected: &'a Expected<'b>,
    pub(super) fault: &'a Fault,
}

/// What came out.
pub(super) struct Findings {
    pub(super) diagnosis: Diagnosis,
    pub(super) differences: Option<Differences>,
    pub(super) reconstructed: Option<Vec<u8>>,
}

/// What an interval may have been, beside what it is.
struct Candidate {
    bytes: Vec<u8>,
    /// Which bytes are other ones.
    wrong: Vec<usize>,
    bits: u64,
    /// It is known to be what should be there, however far it is from what is there.
    is_certain: bool,
    /// What is there is this, at least in part.
    is_near: bool,
}

/// A wrong bit of a header: the byte in the interval, and the bit.
type Flip = (usize, u8);

impl Inquiry<'_, '_> {
    /// Looks into it.
    pub(super) fn findings(mut self) -> Findings {
        let mended = if self.header.is_none() { self.mended_header() } else { None };
        let best = self.nearest(mended.map(|(header, _)| header));
        let diagnosis = self.diagnosis(best.as_ref(), mended);
        let differences = best.as_ref().and_then(|best| best.differences(self.offset()));
        Findings { diagnosis, differences, reconstructed: best.map(|best| best.bytes) }
    }

    fn interval(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }

    fn spec(&self) -> &Spec {
        &self.data.spec
    }

    /// Where the interval is in the file.
    fn offset(&self) -> u64 {
        self.expected.offset + self.range.start as u64
    }

    fn diagnosis(&mut self, best: Option<&Candidate>, mended: Option<(Header, Flip)>) -> Diagnosis {
        if self.interval().iter().all(|&byte| byte == 0) {
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
                    best.and_then(|best| self.torn(best))
                };
                torn.unwrap_or_else(|| self.generation(&header))
            }
            _ => self.damage(best, mended),
        }
    }

    /// The expected write and another one share the block: one has the intervals up to somewhere, and the other one
    /// those from there on. This interval is wholly the other one's.
    fn torn_between_intervals(&mut self) -> Option<Diagnosis> {
        let latest = *self.expected.writes.first()?;
        let (here, step) = (self.range.start, self.range.len());
        let starts = (0..self.block.len()).step_by(step);
        let are_right: Vec<bool> = starts.map(|start| self.is_of(start..start + step, &latest)).collect();
        let mut changes = (1..are_right.len()).filter(|&at| are_right[at] != are_right[at - 1]);
        // The interval beside those that are right may be cut itself; if none is right, it is one at an end.
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

    /// Whether an interval of the block is, by its header and checksum, this write's.
    fn is_of(&self, range: Range<usize>, write: &Write) -> bool {
        let interval = &self.block[range.clone()];
        let Ok(header) = Header::load(&header_bytes(self.spec(), interval)) else { return false };
        header.offset == self.expected.offset + range.start as u64
            && difference(self.data, &header, write).is_none()
            && is_intact(self.spec(), interval, &header)
    }

    /// Where another interval of the block is cut, of which a part is this write's.
    fn torn_interval(&mut self, range: Range<usize>, write: &Write) -> Option<Diagnosis> {
        let header = Header::load(&header_bytes(self.spec(), &self.block[range.clone()])).ok();
        let expected = Expected { writes: &[*write], ..*self.expected };
        let (data, block, fault) = (&mut *self.data, self.block, self.fault);
        let mut beside = Inquiry { data, block, range, header, expected: &expected, fault };
        let best = beside.nearest(None)?;
        beside.torn(&best)
    }

    /// A header that belongs here, or none: something happened to the data.
    fn damage(&mut self, best: Option<&Candidate>, mended: Option<(Header, Flip)>) -> Diagnosis {
        let offset = self.offset();
        let flip = |(byte, bit): Flip| Diagnosis::BitFlip { offset: offset + byte as u64, bit };
        if let Some(best) = best.filter(|best| best.bits == 1) {
            return self.part(best);
        }
        if let Some((header, place)) = mended.filter(|(header, _)| self.is_intact(header)) {
            return if header.offset == self.offset() { flip(place) } else { self.misdirected(&header) };
        }
        if let Some(belongs_to) = self.offset_in_pattern() {
            return Diagnosis::Misdirected { belongs_to };
        }
        if let Some(by) = self.moved_header() {
            return Diagnosis::Shifted(by);
        }
        let part = match best.filter(|best| best.is_near) {
            Some(best) => self.part(best),
            None => self.zeroed(None).map_or(Diagnosis::Unknown, Diagnosis::ZeroedSectors),
        };
        // A sector that is right may be all that has not moved. But a pattern that has moved is like itself in places, and
        // one that was torn as if it had moved: so there the parts come first.
        let may_have_moved = match part {
            Diagnosis::Damaged | Diagnosis::Unknown => true,
            Diagnosis::Torn { .. } => self.data.is_random(),
            _ => false,
        };
        if !may_have_moved {
            return part;
        }
        if self.header.is_none() && !matches!(part, Diagnosis::Torn { .. }) && self.has_intact_data() {
            return Diagnosis::DamagedHeader;
        }
        if let Some(by) = best.and_then(|best| self.moved_data(best)) {
            return Diagnosis::Shifted(by);
        }
        if matches!(part, Diagnosis::Torn { .. }) {
            return part;
        }
        if let Some(pattern) = self.other_pattern() {
            return Diagnosis::OtherPattern(pattern);
        }
        match self.header.filter(|header| part == Diagnosis::Unknown && self.has_room(header)) {
            Some(header) => wrong_bit(self.spec(), self.interval(), header.format).map_or(part, flip),
            None => part,
        }
    }

    fn misdirected(&self, header: &Header) -> Diagnosis {
        Diagnosis::Misdirected { belongs_to: header.offset }
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
            // Sixteen bits go round: the nearer way is the right one.
            HeaderFormat::V333 => (1..1 << 15).contains(&(stored.wrapping_sub(header.sequence) & 0xffff)),
        };
        if is_older {
            Diagnosis::Older { found: header.sequence, expected: stored }
        } else {
            Diagnosis::OtherWrite
        }
    }

    /// Which part of the candidate is wrong.
    fn part(&self, best: &Candidate) -> Diagnosis {
        let [first, ..] = best.wrong[..] else {
            return Diagnosis::Unknown;
        };
        if best.bits == 1 {
            let bit = (best.bytes[first] ^ self.interval()[first]).trailing_zeros() as u8;
            return Diagnosis::BitFlip { offset: self.offset() + first as u64, bit };
        }
        if let Some(zeroed) = self.zeroed(Some(best)) {
            return Diagnosis::ZeroedSectors(zeroed);
        }
        self.torn(best).unwrap_or(Diagnosis::Damaged)
    }

    /// The sectors of the interval, as ranges in it. The first and the last may be parts of one.
    fn sectors(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (offset, length) = (self.offset(), self.range.len() as u64);
        (offset / SECTOR..(offset + length).div_ceil(SECTOR)).map(move |sector| {
            let start = (sector * SECTOR).max(offset) - offset;
            let end = ((sector + 1) * SECTOR).min(offset + length) - offset;
            start as usize..end as usize
        })
    }

    /// The sectors that are zero and should not be, if these are all that is wrong and follow each other.
    fn zeroed(&self, best: Option<&Candidate>) -> Option<Range<u64>> {
        // Random data is not zero, nor is a header; all else may be.
        let spec = self.spec();
        let is_random = spec.fill == Fill::Random && spec.compress.is_none();
        let header = spec.kind.has_header().then(|| place_of(spec, self.range.len()));
        let cannot_be_zero =
            |sector: &Range<usize>| is_random || header.is_some_and(|at| sector.contains(&at));
        let mut zeroed: Option<Range<usize>> = None;
        for sector in self.sectors() {
            let is_zero = self.interval()[sector.clone()].iter().all(|&byte| byte == 0);
            let is_wrong = best.map_or(cannot_be_zero(&sector), |best| best.wrong_in(&sector) > 0);
            match &mut zeroed {
                _ if is_wrong && !is_zero && best.is_some() => return None,
                Some(range) if is_wrong && is_zero && range.end == sector.start => range.end = sector.end,
                Some(_) if is_wrong && is_zero => return None,
                None if is_wrong && is_zero => zeroed = Some(sector),
                _ => {}
            }
        }
        zeroed.map(|range| self.offset() + range.start as u64..self.offset() + range.end as u64)
    }

    /// Whole sectors from the beginning or to the end are other data.
    fn torn(&self, best: &Candidate) -> Option<Diagnosis> {
        // Of other random data nearly every byte differs.
        let is_random = self.data.is_random() && self.spec().compress.is_none();
        let enough = |sector: &Range<usize>| sector.len().div_ceil(if is_random { 2 } else { 8 });
        let replaced: Vec<_> = self
            .sectors()
            // Those that compress to nothing are the same in every write.
            .filter(|sector| best.bytes[sector.clone()].iter().any(|byte| *byte != best.bytes[sector.start]))
            .map(|sector| match best.wrong_in(&sector) {
                0 => Some((false, sector.start)),
                wrong if wrong >= enough(&sector) => Some((true, sector.start)),
                _ => None,
            })
            .collect::<Option<_>>()?;
        let mut cuts = replaced.windows(2).filter(|pair| pair[0].0 != pair[1].0);
        let (cut, more) = (cuts.next()?, cuts.next());
        more.is_none().then(|| Diagnosis::Torn { at: self.offset() + cut[1].1 as u64, beginning: !cut[0].0 })
    }

    /// Whether the interval's data is what its checksum says.
    fn is_intact(&self, header: &Header) -> bool {
        is_intact(self.spec(), self.interval(), header)
    }

    /// Whether the data is what the checksum beside it says, whatever the header is. A checksum of one byte says that of
    /// too much.
    fn has_intact_data(&self) -> bool {
        let header = Header::fields(&header_bytes(self.spec(), self.interval()));
        let formats = [HeaderFormat::V342, HeaderFormat::V333];
        self.spec().kind.digest_size() > 1
            && formats.into_iter().any(|format| self.is_intact(&Header { format, ..header }))
    }

    /// Whether all of the interval is the write that its header belongs to.
    fn is_whole(&mut self, header: &Header) -> bool {
        // A checksum may be short, or missing: the data itself tells, where it can be made again.
        let candidate = self.candidate(header, false);
        if candidate.is_near { candidate.wrong.is_empty() } else { self.is_intact(header) }
    }

    /// Whether header and checksum of this layout fit into the interval.
    fn has_room(&self, header: &Header) -> bool {
        has_room(self.spec(), self.range.len(), header)
    }

    /// The header with one bit turned so that its checksum is right.
    fn mended_header(&self) -> Option<(Header, Flip)> {
        if !self.spec().kind.has_header() {
            return None;
        }
        let mut bytes = header_bytes(self.spec(), self.interval());
        let place = place_of(self.spec(), self.interval().len());
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                bytes[byte] ^= 1 << bit;
                if let Ok(header) = Header::load(&bytes) {
                    return Some((header, (place + byte, bit)));
                }
                bytes[byte] ^= 1 << bit;
            }
        }
        None
    }

    /// What should be there, as far as one can know.
    fn nearest(&mut self, mended: Option<Header>) -> Option<Candidate> {
        let (length, offset) = (self.range.len(), self.offset());
        let base = self.header.or(mended).unwrap_or_else(|| {
            let fields = Header::fields(&header_bytes(self.spec(), self.interval()));
            // Rubbish: nothing of it means anything.
            Header { format: self.spec().format, ..fields }
        });
        let base = Header { kind: self.spec().kind.number(), length: length as u32, offset, ..base };
        let mut headers: Vec<(Header, bool)> = Vec::new();
        for write in self.expected.writes {
            let header = Header {
                seed: write.seed.map_or(base.seed, |seed| self.data.stored_seed(seed)),
                sequence: write.sequence.map_or(base.sequence, |number| base.format.stored_sequence(number)),
                job: write.job.unwrap_or(base.job),
                ..base
            };
            headers.push((header, write.seed.is_some() || !self.data.is_random()));
        }
        // What the header says is not what should be there when it is another write's.
        let is_other = matches!(self.fault, Fault::Job { .. } | Fault::Sequence { .. } | Fault::Seed { .. });
        if !is_other || !headers.iter().any(|(_, is_certain)| *is_certain) {
            headers.push((base, !self.data.is_random()));
        }
        let candidates = headers.into_iter().map(|(header, is_certain)| self.candidate(&header, is_certain));
        candidates.filter(|one| one.is_certain || one.is_near).min_by_key(|one| one.wrong.len())
    }

    fn candidate(&mut self, header: &Header, is_certain: bool) -> Candidate {
        let bytes = self.made_again(header);
        let found = &self.block[self.range.clone()];
        let wrong: Vec<usize> = (0..found.len()).filter(|&byte| bytes[byte] != found[byte]).collect();
        let bits = wrong.iter().map(|&byte| u64::from((bytes[byte] ^ found[byte]).count_ones())).sum();
        let overhead = self.data.spec.overhead(header.format);
        let place = place_of(&self.data.spec, found.len());
        let is_data = |at: usize| at + PROBE <= place || at >= place + overhead;
        let pieces = bytes.chunks_exact(PROBE).zip(found.chunks_exact(PROBE)).zip((0..).step_by(PROBE));
        let mut pieces =
            pieces.filter(|((piece, _), at)| is_data(*at) && piece.iter().any(|byte| *byte != piece[0]));
        let is_near = !self.data.is_random() || pieces.any(|((one, other), _)| one == other);
        Candidate { bytes, wrong, bits, is_certain, is_near }
    }

    /// The interval as the write with this header would have left it.
    fn made_again(&mut self, header: &Header) -> Vec<u8> {
        let mut interval = if self.data.is_random() {
            let mut interval = vec![0; self.range.len()];
            self.data.fill_interval(&mut interval, self.expected.offset, header.offset, header.seed);
            interval
        } else {
            let mut block = vec![0; self.block.len()];
            self.data.fill(&mut block, self.expected.offset, 0);
            block[self.range.clone()].to_vec()
        };
        if self.spec().kind.has_header() && interval.len() >= self.spec().overhead(header.format) {
            self.data.seal(&mut interval, header);
        }
        interval
    }

    /// How far a header that is not in its place has moved, anywhere in the block.
    fn moved_header(&self) -> Option<i64> {
        let spec = self.spec();
        if !spec.kind.has_header() {
            return None;
        }
        let step = self.range.len();
        let size = HeaderFormat::V342.size();
        let place = place_of(spec, step);
        (0..self.block.len().saturating_sub(size)).filter(|at| at % step != place).find_map(|at| {
            let header = Header::load(&self.block[at..at + size]).ok()?;
            let is_at = self.expected.offset as i128 + at as i128;
            let by = is_at - (i128::from(header.offset) + place as i128);
            (by != 0 && by.unsigned_abs() <= self.block.len() as u128).then_some(by as i64)
        })
    }

    /// How far the data that should be there has moved.
    fn moved_data(&self, candidate: &Candidate) -> Option<i64> {
        let (found, wanted) = (self.interval(), &candidate.bytes);
        let length = found.len();
        let overhead = self.spec().overhead(self.spec().format);
        let explains = |by: i64| {
            let (from, to) = if by > 0 { (0, by as usize) } else { (by.unsigned_abs() as usize, 0) };
            let common = length - from.max(to);
            let differ = |one: &[u8], other: &[u8], most: usize| {
                one.iter().zip(other).filter(|(one, other)| one != other).take(most).count()
            };
            // Headers do not move along with what can be made again: they are all that may differ.
            if common < PROBE.max(length / 8)
                || differ(&wanted[from..], &found[to..], overhead + 1) > overhead
            {
                return false;
            }
            let moved = to..to + common;
            // What is the same after a move as before it is no evidence for one.
            let changed = differ(&wanted[from..from + common], &wanted[moved.clone()], common);
            // Where a pattern is right it has not moved. (Of other data so much is not there twice by chance.)
            let rest = if by > 0 { 0..to } else { common..length };
            let stayed = !self.data.is_random() && rest.len() >= PROBE && candidate.wrong_in(&rest) == 0;
            changed > 2 * overhead && candidate.wrong_in(&moved) * 2 > changed && !stayed
        };
        let probes = [length / 4, length / 2, length / 4 * 3].into_iter().filter(|at| at + PROBE <= length);
        let moves = probes.flat_map(|at| {
            let probe = &wanted[at..at + PROBE];
            let places = found.windows(PROBE).enumerate().filter(move |(_, window)| *window == probe);
            places.map(move |(place, _)| place as i64 - at as i64)
        });
        let mut moves: Vec<i64> = moves.filter(|by| *by != 0).collect();
        moves.sort_by_key(|by| (by.unsigned_abs(), *by < 0));
        moves.dedup();
        if let Some(period) = self.pattern_period() {
            // By whole repetitions it is no move.
            moves.retain(|by| by % period != 0);
        }
        moves.into_iter().take(MOST_MOVES).find(|by| explains(*by))
    }

    /// After how many bytes a pattern is the same again, all over the block.
    fn pattern_period(&self) -> Option<i64> {
        let Fill::Pattern(pieces) = &self.spec().fill else { return None };
        let length = |piece: &PatternPiece| match piece {
            PatternPiece::Bytes(bytes) => bytes.len() as i64,
            PatternPiece::Offset => size_of::<u64>() as i64,
        };
        let period = pieces.iter().map(length).sum();
        (self.spec().pattern_interval == 0 && period > 0).then_some(period)
    }

    /// The offset that a pattern with `%o` says it was written to, if that explains all of it.
    fn offset_in_pattern(&mut self) -> Option<u64> {
        let Fill::Pattern(pieces) = &self.spec().fill else {
            return None;
        };
        if self.spec().kind != Kind::Pattern {
            return None;
        }
        let mut at = 0;
        for piece in pieces {
            match piece {
                PatternPiece::Bytes(bytes) => at += bytes.len(),
                PatternPiece::Offset => break,
            }
        }
        let says = u64::from_le_bytes(self.block.get(at..at + 8)?.try_into().ok()?);
        if !pieces.contains(&PatternPiece::Offset) || says == self.expected.offset {
            return None;
        }
        let mut block = vec![0; self.block.len()];
        self.data.fill(&mut block, says, 0);
        (block == self.block).then_some(says)
    }

    /// The first bytes of a pattern that is there instead of the expected one.
    fn other_pattern(&self) -> Option<String> {
        if !self.data.spec.kind.compares_pattern() {
            return None;
        }
        let mut interval = self.interval().to_vec();
        let overhead = self.header.map_or(0, |header| self.spec().overhead(header.format));
        swap(&mut interval, self.spec().offset, overhead);
        let data = &interval[overhead.min(interval.len())..];
        let period = (1..=LONGEST_PATTERN.min(data.len() / 2))
            .find(|&period| data[period..] == data[..data.len() - period])?;
        Some(hex(&data[..period.clamp(1, PROBE)]))
    }
}

/// Whether an interval's data is what its checksum says.
fn is_intact(spec: &Spec, interval: &[u8], header: &Header) -> bool {
    if !spec.kind.has_digest() {
        return true;
    }
    if !has_room(spec, interval.len(), header) {
        return false;
    }
    let (stored, calculated) = sums(spec, interval, header.format);
    stored == calculated.as_bytes()
}

/// Whether header and checksum of this layout fit into an interval.
fn has_room(spec: &Spec, length: usize, header: &Header) -> bool {
    place_of(spec, length) + spec.overhead(header.format) <= length
}

impl Candidate {
    fn wrong_in(&self, range: &Range<usize>) -> usize {
        let upto = |end: usize| self.wrong.partition_point(|&byte| byte < end);
        upto(range.end) - upto(range.start)
    }

    fn differences(&self, offset: u64) -> Option<Differences> {
        let (first, last) = (*self.wrong.first()?, *self.wrong.last()?);
        Some(Differences {
            first: offset + first as u64,
            last: offset + last as u64,
            bytes: self.wrong.len() as u64,
            bits: self.bits,
        })
    }
}
