//! Finds out whether a block consists of parts of several writes, all of them valid.
//!
//! A write that was cut short leaves some of its own sectors, and the earlier content in the others. So each sector
//! must match one write byte for byte: header, checksum and data are generated again for that write. Only the time of a
//! write is not known. It is taken from the header that was found, and the checksum of that header must match.
//!
//! A write that was still being copied when its process was killed may have left any piece of a sector. (A copy does
//! not always proceed from the beginning to the end: it may store both ends last.)
//!
//! The checksum of a header whose time belongs to another write cannot be known. That happens where a header lies
//! across two sectors of different writes, and where the copied piece begins or ends in a header. Then any time and
//! checksum are accepted.

use super::data::Data;
use super::header::{Header, HeaderFormat};
use super::interval::{HEADER, header_bytes, place_of};
use super::spec::Spec;
use std::ops::Range;

/// Bytes that storage writes at once.
const SECTOR: u64 = 512;
/// If a copied piece begins in a header, this many of its bytes must follow the header, as far as the block has them.
const EVIDENCE: usize = 16;

/// A write that may be there in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of its job.
    pub job: u16,
    /// Its number in its job.
    pub sequence: u64,
    /// The seed of its content.
    pub seed: u64,
    /// It may end at any byte, not only at a sector.
    pub is_copied: bool,
}

impl Part {
    fn is_same(&self, other: &Part) -> bool {
        (self.job, self.sequence) == (other.job, other.sequence)
    }
}

/// The writes that a header may name. The old layout stores only a part of their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The number of their job.
    pub job: u16,
    /// The bits that their numbers have in common.
    pub sequence: u64,
    /// The mask of these bits.
    pub mask: u64,
}

/// The writes that may explain a sector, out of many.
enum Clue {
    /// No write.
    Nothing,
    /// The writes that the sector's header names.
    Header(Named),
    /// The writes whose random data contains this word; `None` = any.
    Data(Option<Word>),
}

/// A word of data that was read.
struct Word {
    /// The offset of its interval in the file.
    offset: u64,
    /// Its index in the interval, in words.
    place: usize,
    found: u64,
}

/// Explains a block sector by sector.
#[derive(Debug)]
pub struct Mixture<'a> {
    data: Data,
    block: &'a [u8],
    offset: u64,
    /// The layout of all headers in the block: one run wrote them.
    format: HeaderFormat,
    /// The sectors that are not explained yet.
    sectors: Vec<Range<usize>>,
    /// The writes that may end at any byte, each with its version of the block.
    copied: Vec<(Part, Vec<u8>)>,
}

/// The place of a header, and of its parts that depend on more than the write.
struct HeaderParts {
    all: Range<usize>,
    time: Range<usize>,
    checksum: Range<usize>,
}

/// A write's version of the block.
struct Version<'a> {
    bytes: &'a [u8],
    /// The bytes of the current sector that are not known.
    unknown: Range<usize>,
    /// A header began in the previous sector, which ends like this write's version of it.
    goes_on: bool,
}

impl<'a> Mixture<'a> {
    /// Begins with a block that was read at this offset. None of its sectors is explained yet.
    pub fn new(spec: &Spec, block: &'a [u8], offset: u64) -> Mixture<'a> {
        let (first, end) = (offset / SECTOR, (offset + block.len() as u64).div_ceil(SECTOR));
        let within = |sector: u64| ((sector * SECTOR).max(offset) - offset) as usize;
        let sectors = (first..end).map(|sector| within(sector)..within(sector + 1).min(block.len()));
        let interval = spec.interval_of(block.len()).max(1);
        let mut headers = block.chunks(interval).filter(|_| spec.kind.has_header());
        let format = headers
            .find_map(|interval| Header::load(&header_bytes(spec, interval)).ok())
            .map_or(spec.format, |header| header.format);
        Mixture {
            data: Data::new(spec),
            block,
            offset,
            format,
            sectors: sectors.collect(),
            copied: Vec::new(),
        }
    }

    /// Removes the sectors that this write explains. Returns whether none is left. Writes that may end at any byte must
    /// come first.
    pub fn explain(&mut self, part: Part) -> bool {
        let Some(made) = self.made(part) else { return false };
        let mut sectors = std::mem::take(&mut self.sectors);
        sectors.retain(|sector| !self.is_of(sector, &part, &made));
        self.sectors = sectors;
        if part.is_copied {
            self.copied.push((part, made));
        }
        self.sectors.is_empty()
    }

    /// Looks for writes that explain the sectors that are left, among many candidates that end at sectors; returns
    /// whether none is left. `candidates` lists them: all, or those that a header may name. Known writes should have
    /// been [tried](Self::explain) before.
    pub fn search<I: Iterator<Item = Part>>(&mut self, candidates: impl Fn(Option<Named>) -> I) -> bool {
        if !self.copied.is_empty() {
            // The copied piece may hide a clue, so all are tried. Few blocks were in flight.
            return candidates(None).any(|part| self.explain(part));
        }
        while let Some(sector) = self.sectors.first().cloned() {
            let (named, word) = match self.clue(&sector) {
                Clue::Nothing => return false,
                Clue::Header(named) => (Some(named), None),
                Clue::Data(word) => (None, word),
            };
            let is_explained = candidates(named).any(|part| {
                let may_be = word.as_ref().is_none_or(|word| {
                    self.data.word(word.offset, part.seed, word.place) == Some(word.found)
                });
                may_be && (self.explain(part) || self.sectors[0] != sector)
            });
            if !is_explained {
                return false;
            }
        }
        true
    }

    /// A quick test for the write to which a sector belongs.
    fn clue(&self, sector: &Range<usize>) -> Clue {
        let is_whole =
            |header: &HeaderParts| header.all.start >= sector.start && header.all.end <= sector.end;
        if let Some(header) = self.headers(sector).find(is_whole) {
            let mut bytes = [0; HEADER];
            bytes[..header.all.len()].copy_from_slice(&self.block[header.all]);
            return match Header::load(&bytes) {
                Ok(Header { format, job, sequence, .. }) if format == self.format => {
                    Clue::Header(Named { job, sequence, mask: format.stored_sequence(u64::MAX) })
                }
                _ => Clue::Nothing,
            };
        }
        if !self.data.is_random() && self.headers(sector).next().is_none() {
            // All writes have the same data.
            return Clue::Nothing;
        }
        let word = self.word(sector).filter(|word| self.data.word(word.offset, 0, word.place).is_some());
        // Lost sectors read as zeros, which no write has produced.
        let is_zero = self.block[sector.clone()].iter().all(|&byte| byte == 0);
        let is_lost = word.is_some() && sector.len() as u64 == SECTOR && is_zero;
        if is_lost { Clue::Nothing } else { Clue::Data(word) }
    }

    /// The first word of data in a sector.
    fn word(&self, sector: &Range<usize>) -> Option<Word> {
        let (length, overhead) = (self.interval(), self.data.spec.overhead(self.format));
        let start = sector.start / length * length;
        let header = place_of(&self.data.spec, length);
        // The data that was swapped with the header is not in its usual place.
        let is_data = |at: &usize| *at >= overhead && (at + 8 <= header || *at >= header + overhead);
        let begin = (sector.start - start).next_multiple_of(8);
        let end = (sector.end - start).min(length);
        let place = (begin..end.saturating_sub(7)).step_by(8).find(is_data)?;
        let bytes = self.block[start + place..].first_chunk()?;
        Some(Word { offset: self.offset + start as u64, place: place / 8, found: u64::from_le_bytes(*bytes) })
    }

    /// This write's version of the block, with the times of the headers that were found. `None`: headers do not fit.
    fn made(&mut self, part: Part) -> Option<Vec<u8>> {
        let mut made = vec![0; self.block.len()];
        let seed = part.seed;
        self.data.fill(&mut made, self.offset, seed);
        let spec = &self.data.spec;
        if !spec.kind.has_header() {
            return Some(made);
        }
        let length = self.interval();
        if place_of(spec, length) + spec.overhead(self.format) > length {
            return None;
        }
        for (start, interval) in (0..).step_by(length).zip(made.chunks_mut(length)) {
            let found = Header::fields(&header_bytes(spec, &self.block[start..start + length]));
            let header = Header {
                format: self.format,
                kind: spec.kind.number(),
                length: length as u32,
                seed,
                offset: self.offset + start as u64,
                sequence: self.format.stored_sequence(part.sequence),
                job: part.job,
                ..found
            };
            self.data.seal(interval, &header);
        }
        Some(made)
    }

    fn interval(&self) -> usize {
        self.data.spec.interval_of(self.block.len()).max(1)
    }

    /// Whether a sector belongs to this write, whose version of the block is `made`.
    fn is_of(&self, sector: &Range<usize>, part: &Part, made: &[u8]) -> bool {
        if self.block[sector.clone()] == made[sector.clone()] {
            return true;
        }
        let version = |bytes| self.version(sector, bytes);
        let made = version(made);
        if self.is_patched(sector, &made, None, None) {
            return true;
        }
        let mut copied = self.copied.iter().filter(|(copied, _)| !copied.is_same(part));
        copied.any(|(_, copied)| {
            let copied = version(copied);
            self.is_patched(sector, &made, Some(&copied), None)
                || self.headers(sector).any(|header| self.is_cut_in(&header, sector, &made, &copied))
        })
    }

    /// Whether all known bytes of a sector belong to one write, except for one piece of the copied write. Time and
    /// checksum of a header that is `cut` are not known.
    fn is_patched(
        &self,
        sector: &Range<usize>,
        made: &Version,
        copied: Option<&Version>,
        cut: Option<&HeaderParts>,
    ) -> bool {
        let is_unknown =
            |at: &usize| cut.is_some_and(|cut| cut.time.contains(at) || cut.checksum.contains(at));
        let differs = |version: &Version, at: &usize| {
            self.block[*at] != version.bytes[*at] && !version.unknown.contains(at) && !is_unknown(at)
        };
        let first = sector.clone().find(|at| differs(made, at));
        let last = sector.clone().rfind(|at| differs(made, at));
        let (Some(first), Some(last)) = (first, last) else { return true };
        copied.is_some_and(|copied| {
            // It is one piece, together with the end of the previous sector.
            let first = if copied.goes_on { sector.start } else { first };
            // Unknown bytes are no evidence of a copy.
            let is_evident = [first, last].iter().any(|at| !copied.unknown.contains(at));
            is_evident && !(first..=last).any(|at| differs(copied, &at))
        })
    }

    /// Whether the copied piece ends or begins in this header, behind the first byte of its time.
    fn is_cut_in(
        &self,
        header: &HeaderParts,
        sector: &Range<usize>,
        made: &Version,
        copied: &Version,
    ) -> bool {
        if !self.is_patched(sector, made, Some(copied), Some(header)) {
            return false;
        }
        let is_all = |mut range: Range<usize>, of: &Version| range.all(|at| self.block[at] == of.bytes[at]);
        // The beginning of the header, which names the write, may be in the previous sector.
        let (front, end) = (header.all.start..header.time.start, header.all.end);
        let ends = is_all(front.clone(), copied) && is_all(end..sector.end, made);
        let begins = is_all(front, made) && is_all(end..self.block.len().min(end + EVIDENCE), copied);
        ends || begins
    }

    /// A write's version of a sector. If a header and its time began in the previous sector, which may belong to
    /// another write, its checksum is not known.
    fn version<'b>(&self, sector: &Range<usize>, bytes: &'b [u8]) -> Version<'b> {
        let across = self.headers(sector).find(|header| header.time.start < sector.start);
        let Some(HeaderParts { all, checksum, .. }) = across else {
            return Version { bytes, unknown: 0..0, goes_on: false };
        };
        let before = all.start..sector.start;
        let goes_on = self.block[before.clone()] == bytes[before];
        Version { bytes, unknown: if goes_on { 0..0 } else { checksum }, goes_on }
    }

    /// The headers in a sector, and those that reach into it.
    fn headers(&self, sector: &Range<usize>) -> impl Iterator<Item = HeaderParts> + use<> {
        let (length, place) = (self.interval(), place_of(&self.data.spec, self.interval()));
        let (size, checksum_at) = (self.format.size(), self.format.checksum_at());
        let (has_header, sector) = (self.data.spec.kind.has_header(), sector.clone());
        (sector.start / length..sector.end.div_ceil(length))
            .map(move |interval| interval * length + place)
            .filter(move |&at| has_header && at < sector.end && at + size > sector.start)
            .map(move |at| HeaderParts {
                all: at..at + size,
                time: at + Header::TIME.start..at + Header::TIME.end,
                checksum: at + checksum_at..at + size,
            })
    }
}

#[cfg(test)]
mod tests;
