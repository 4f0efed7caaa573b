//! Whether a block is made of parts of several writes, all of them good answers.
//!
//! A write that was cut short leaves sectors of itself and of what was there before. So each sector has to be that of one
//! write, byte for byte: header, checksum and data are made again as that write had them. The only thing that is not known of
//! it is when it was: that is taken from the header that was found, and the checksum of the header has to be the one of it.
//!
//! A write that was still being copied when its process was killed may be there in a piece of a sector, anywhere. (A copy
//! does not always go from the beginning to the end: both may be stored last.)
//!
//! What nobody can know is the checksum of a header whose time is another write's: where a header lies across two sectors
//! of different writes, or the copied piece begins or ends in it. Then time and checksum may be any. (With a pattern there is
//! no seed before the time that would tell two writes apart, so over a header the copied piece may always end like that.)

use super::check::{HEADER, header_bytes, place_of};
use super::stamp::Data;
use super::{Header, HeaderFormat, Spec};
use std::ops::Range;

/// What storage writes at once.
const SECTOR: u64 = 512;
/// So much of a copied piece that begins in a header has to be behind it, where there is as much.
const EVIDENCE: usize = 16;

/// A write of which a part may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose it is.
    pub job: u16,
    /// Its number in its job.
    pub sequence: u64,
    /// The seed of its content.
    pub seed: u64,
    /// It may be there up to any byte.
    pub is_copied: bool,
}

impl Part {
    fn is_same(&self, other: &Part) -> bool {
        (self.job, self.sequence) == (other.job, other.sequence)
    }
}

/// The writes that a header may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Whose.
    pub job: u16,
    /// What their numbers have in common
    pub sequence: u64,
    /// in these bits.
    pub mask: u64,
}

/// Which of many writes may explain a sector.
enum Clue {
    /// None.
    Nothing,
    /// Those that its header names.
    Header(Named),
    /// Those that made this word of its random data; `None`: any.
    Data(Option<Word>),
}

/// A word of data that was read.
struct Word {
    /// Where its interval is.
    offset: u64,
    /// Which word of the interval.
    place: usize,
    found: u64,
}

/// Explains a block sector by sector.
#[derive(Debug)]
pub struct Mixture<'a> {
    data: Data,
    block: &'a [u8],
    offset: u64,
    /// That of all headers in the block: one run wrote them.
    format: HeaderFormat,
    /// What is not explained yet.
    sectors: Vec<Range<usize>>,
    /// The writes that may end anywhere, and the block as they had it.
    copied: Vec<(Part, Vec<u8>)>,
}

/// Where a header is, and the parts of it that do not say whose it is.
struct HeaderParts {
    all: Range<usize>,
    time: Range<usize>,
    checksum: Range<usize>,
}

/// The block as a write had it.
struct Version<'a> {
    bytes: &'a [u8],
    /// What is not known of it in the sector that is looked at.
    unknown: Range<usize>,
    /// It is what the sector before ends with, in a header that goes on here.
    goes_on: bool,
}

impl<'a> Mixture<'a> {
    /// A block that was read at this offset.
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

    /// Takes away what this write explains. One that may end anywhere comes first. Whether all is explained now.
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

    /// Looks for a write that explains what is left, sector by sector, among many that end where sectors do. They may be
    /// those that a header names. To be called when others have been [tried](Self::explain). Whether all is explained now.
    pub fn search<I: Iterator<Item = Part>>(&mut self, candidates: impl Fn(Option<Named>) -> I) -> bool {
        if !self.copied.is_empty() {
            // What a piece of another write covers tells nothing. Few blocks were in flight.
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

    /// What is seen of a sector that is one write's at a glance.
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
            // It is the same in all writes.
            return Clue::Nothing;
        }
        let word = self.word(sector).filter(|word| self.data.word(word.offset, 0, word.place).is_some());
        // What was lost reads as zeros, and that is no random data.
        let is_zero = self.block[sector.clone()].iter().all(|&byte| byte == 0);
        let is_lost = word.is_some() && sector.len() as u64 == SECTOR && is_zero;
        if is_lost { Clue::Nothing } else { Clue::Data(word) }
    }

    /// A word of data in a sector.
    fn word(&self, sector: &Range<usize>) -> Option<Word> {
        let (length, overhead) = (self.interval(), self.data.spec.overhead(self.format));
        let start = sector.start / length * length;
        let header = place_of(&self.data.spec, length);
        // Data that made room for a header is where it would have been.
        let is_data = |at: &usize| *at >= overhead && (at + 8 <= header || *at >= header + overhead);
        let begin = (sector.start - start).next_multiple_of(8);
        let end = (sector.end - start).min(length);
        let place = (begin..end.saturating_sub(7)).step_by(8).find(is_data)?;
        let bytes = self.block[start + place..].first_chunk()?;
        Some(Word { offset: self.offset + start as u64, place: place / 8, found: u64::from_le_bytes(*bytes) })
    }

    /// The block as this write had it, if its headers have the times that were found. `None`: they find no room.
    fn made(&mut self, part: Part) -> Option<Vec<u8>> {
        let mut made = vec![0; self.block.len()];
        let seed = self.data.stored_seed(part.seed);
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

    /// Whether a sector is of this write, which had it so.
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

    /// Whether all that is known of a sector is one write's, but for one piece of the copied one. Of a header that is `cut`,
    /// time and checksum are not.
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
            // It is one piece, also with what is before the sector.
            let first = if copied.goes_on { sector.start } else { first };
            // What may be anything is no evidence for a copy.
            let is_evident = [first, last].iter().any(|at| !copied.unknown.contains(at));
            is_evident && !(first..=last).any(|at| differs(copied, &at))
        })
    }

    /// Whether the copied piece ends or begins in this header, behind the beginning of its time.
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
        // What tells whose the header begins as may be in the sector before.
        let (front, end) = (header.all.start..header.time.start, header.all.end);
        let ends = is_all(front.clone(), copied) && is_all(end..sector.end, made);
        let begins = is_all(front, made) && is_all(end..self.block.len().min(end + EVIDENCE), copied);
        ends || begins
    }

    /// A write's version of a sector. Where a header began in the sector before, with its time, and that sector may be
    /// another write's, its checksum is not known.
    fn version<'b>(&self, sector: &Range<usize>, bytes: &'b [u8]) -> Version<'b> {
        let across = self.headers(sector).find(|header| header.time.start < sector.start);
        let Some(HeaderParts { all, checksum, .. }) = across else {
            return Version { bytes, unknown: 0..0, goes_on: false };
        };
        let before = all.start..sector.start;
        // Without a seed it is the number that tells writes apart.
        let tells = self.data.is_random() || checksum.start <= sector.start;
        let goes_on = tells && self.block[before.clone()] == bytes[before];
        Version { bytes, unknown: if goes_on { 0..0 } else { checksum }, goes_on }
    }

    /// The headers that are in a sector, or reach into it.
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
mod tests {
    use super::super::tests::{block, identity, pattern, spec};
    use super::super::{Identity, Kind};
    use super::*;
    use iolite_content::Fill;

    const SIZE: usize = 1536;
    const OFFSET: u64 = 12_288;

    /// The write that was there before, and the one after it.
    fn writes(offset: u64) -> [Identity; 2] {
        let old = identity(offset, 5);
        // Seeds differ in every byte, nearly.
        let new = Identity {
            seconds: 1_700_000_077,
            nanoseconds: 5_000,
            seed: !old.seed,
            ..identity(offset, 70_007)
        };
        [old, new]
    }

    fn blocks(spec: &Spec, offset: u64) -> [Vec<u8>; 2] {
        writes(offset).map(|identity| block(spec, SIZE, &identity))
    }

    fn is_mixture(spec: &Spec, block: &[u8], offset: u64, new_is_copied: bool) -> bool {
        let [old, new] = writes(offset);
        let mut mixture = Mixture::new(spec, block, offset);
        let part =
            |of: Identity, is_copied| Part { job: of.job, sequence: of.sequence, seed: of.seed, is_copied };
        [part(new, new_is_copied), part(old, false), part(new, false)]
            .into_iter()
            .any(|part| mixture.explain(part))
    }

    /// The beginning of one block and the end of another.
    fn cut(one: &[u8], other: &[u8], at: usize) -> Vec<u8> {
        [&one[..at], &other[at..]].concat()
    }

    /// Kinds with headers, both layouts, intervals and places of the header.
    fn variants(shapes: &[(usize, usize)]) -> Vec<Spec> {
        let kinds = Kind::all().filter(|kind| kind.has_header());
        let formats = [HeaderFormat::V342, HeaderFormat::V333];
        let shapes = shapes.iter().flat_map(|shape| formats.map(|format| (*shape, format)));
        let shapes: Vec<_> = shapes.collect();
        let specs = kinds.flat_map(|kind| {
            let of = move |((interval, offset), format)| Spec { interval, offset, format, ..spec(kind) };
            shapes.clone().into_iter().map(of)
        });
        specs.filter(|spec| spec.validate(SIZE).is_ok()).collect()
    }

    const SHAPES: [(usize, usize); 5] = [(0, 0), (512, 0), (768, 200), (0, 1000), (192, 0)];
    /// Headers that lie across sectors: cut in every part of them.
    const ACROSS: [(usize, usize); 7] =
        [(0, 470), (0, 480), (0, 484), (0, 490), (0, 500), (300, 0), (0, 1000)];

    #[test]
    fn sectors_of_several_writes_are_a_mixture() {
        let shapes = [&SHAPES[..], &ACROSS[..]].concat();
        for spec in variants(&shapes) {
            for fill in [spec.fill.clone(), pattern()] {
                let spec = Spec { fill, ..spec.clone() };
                for offset in [OFFSET, OFFSET + 300] {
                    let [old, new] = blocks(&spec, offset);
                    let sector = |at: &usize| (offset as usize + at).is_multiple_of(SECTOR as usize);
                    for at in (0..=SIZE).filter(sector) {
                        assert!(is_mixture(&spec, &cut(&new, &old, at), offset, false), "{at} {spec:?}");
                        assert!(is_mixture(&spec, &cut(&old, &new, at), offset, false), "{at} {spec:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_byte_of_a_mixture_may_be_another() {
        for (number, spec) in variants(&SHAPES).into_iter().enumerate() {
            let [old, new] = blocks(&spec, OFFSET);
            let step = if spec.kind == Kind::Crc32c { 1 } else { 13 };
            for at in [0, 512, 1024, SIZE] {
                let mut block = cut(&new, &old, at);
                for byte in (number % step..SIZE).step_by(step) {
                    block[byte] ^= 1 << (byte % 8);
                    assert!(!is_mixture(&spec, &block, OFFSET, false), "{at} {byte} {spec:?}");
                    block[byte] ^= 1 << (byte % 8);
                }
            }
        }
    }

    /// Unless the time that it is of is another write's.
    #[test]
    fn the_checksum_of_a_header_across_sectors_is_checked() {
        for spec in variants(&ACROSS) {
            for fill in [Fill::Random, pattern()] {
                let spec = Spec { fill, ..spec.clone() };
                let is_random = spec.fill == Fill::Random;
                let [old, new] = blocks(&spec, OFFSET);
                let whole = Mixture::new(&spec, &new, OFFSET);
                let headers: Vec<HeaderParts> = whole.headers(&(0..SIZE)).collect();
                for at in [512, 1024, SIZE] {
                    let mut block = cut(&new, &old, at);
                    for HeaderParts { all, time, checksum } in &headers {
                        let is_torn = |cut: &usize| (time.start + 1..all.end).contains(cut);
                        let known = if is_random { !is_torn(&at) } else { ![512, 1024].iter().any(is_torn) };
                        for byte in time.clone().chain(checksum.clone()).filter(|_| known) {
                            block[byte] ^= 0x10;
                            assert!(!is_mixture(&spec, &block, OFFSET, false), "{at} {byte} {spec:?}");
                            block[byte] ^= 0x10;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_copy_may_begin_and_end_anywhere() {
        for spec in variants(&[(0, 0), (512, 0), (0, 480), (0, 484)]) {
            for fill in [spec.fill.clone(), pattern()] {
                let spec = Spec { fill, ..spec.clone() };
                let step = if spec.kind == Kind::Crc32c { 1 } else { 11 };
                let [old, new] = blocks(&spec, OFFSET);
                for at in (0..=SIZE).step_by(step) {
                    assert!(is_mixture(&spec, &cut(&new, &old, at), OFFSET, true), "{at} {spec:?}");
                    assert!(is_mixture(&spec, &cut(&old, &new, at), OFFSET, true), "{at} {spec:?}");
                    let inner = cut(&cut(&old, &new, at.min(64)), &old, at.max(64));
                    assert!(is_mixture(&spec, &inner, OFFSET, true), "{at} {spec:?}");
                }
            }
        }
    }

    #[test]
    fn no_byte_of_a_copy_may_be_another() {
        for spec in variants(&[(0, 0), (512, 0), (0, 480), (0, 484)]) {
            let [old, new] = blocks(&spec, OFFSET);
            let headers: Vec<HeaderParts> = Mixture::new(&spec, &new, OFFSET).headers(&(0..SIZE)).collect();
            let step = if spec.kind == Kind::Crc32c { 1 } else { 17 };
            for at in [0, 5, 13, 27, 35, 41, 46, 60, 512, 777, SIZE] {
                let mut block = cut(&new, &old, at);
                let unknown = |byte: &usize| {
                    headers.iter().any(|HeaderParts { all, time, checksum }| {
                        let is_across = all.start / 512 != (all.end - 1) / 512;
                        let from = if is_across { all.start } else { time.start };
                        let is_torn = (from + 1..all.end).contains(&at) || spec.fill != Fill::Random;
                        is_torn && (time.contains(byte) || checksum.contains(byte))
                    })
                };
                for byte in (at % step..SIZE).step_by(step).filter(|byte| !unknown(byte)) {
                    let is = block[byte];
                    block[byte] =
                        (0..=255).rfind(|value| ![is, old[byte], new[byte]].contains(value)).unwrap();
                    assert!(!is_mixture(&spec, &block, OFFSET, true), "{at} {byte} {spec:?}");
                    block[byte] = is;
                }
            }
        }
    }

    /// Of many writes those are found that an exhaustive search would find, and no others are made again.
    #[test]
    fn a_search_finds_what_trying_all_does() {
        let part = |number: u64| Part {
            job: 3,
            sequence: number,
            seed: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            is_copied: false,
        };
        let shapes = [&SHAPES[..], &ACROSS[..]].concat();
        for (number, spec) in variants(&shapes).into_iter().enumerate() {
            for fill in [Fill::Random, pattern()] {
                let spec = Spec { fill, ..spec.clone() };
                let offset = OFFSET + [0, 300][number % 2];
                let written = |number| {
                    let Part { job, sequence, seed, .. } = part(number);
                    block(&spec, SIZE, &Identity { sequence, seed, job, ..identity(offset, 0) })
                };
                let first = (SECTOR - offset % SECTOR) as usize;
                let front = cut(&written(70_009), &written(70_001), first);
                let mixed = cut(&front, &written(70_003), first + SECTOR as usize);
                let mut cases = vec![mixed.clone(), vec![0; SIZE], written(70_050), vec![0xee; SIZE]];
                for at in (0..SIZE).step_by(61) {
                    let mut damaged = mixed.clone();
                    damaged[at] ^= 0x20;
                    cases.push(damaged);
                }
                for lost_at in [0, first, SIZE - 512] {
                    let mut lost = mixed.clone();
                    lost[lost_at..lost_at + 512].fill(0);
                    cases.push(lost);
                }
                let candidates = |named: Option<Named>| {
                    let is_named = move |part: &Part| {
                        named.is_none_or(|named| {
                            (part.job, part.sequence & named.mask) == (named.job, named.sequence)
                        })
                    };
                    (70_000..70_020).rev().map(part).filter(is_named)
                };
                for (case, block) in cases.iter().enumerate() {
                    let mixture = || {
                        let mut mixture = Mixture::new(&spec, block, offset);
                        assert!(!mixture.explain(part(70_030)), "{case} {spec:?}");
                        mixture
                    };
                    let mut all = mixture();
                    let is_mixture = candidates(None).any(|part| all.explain(part));
                    assert_eq!(mixture().search(candidates), is_mixture, "{case} {spec:?}");
                    assert!(is_mixture || case > 0, "{spec:?}");
                }
            }
        }
    }

    /// However many writes there are: what a header names is asked for alone, and what no write has left for none.
    #[test]
    fn a_search_asks_for_few_writes() {
        let spec = spec(Kind::Crc32c);
        let [old, new] = writes(OFFSET);
        let whole = block(&spec, SIZE, &old);
        let mut lost = whole.clone();
        lost[512..1024].fill(0);
        for (block, wanted) in [
            (vec![0; SIZE], None),
            (lost, None),
            (whole, Some(Named { job: old.job, sequence: old.sequence, mask: u64::MAX })),
        ] {
            let mut mixture = Mixture::new(&spec, &block, OFFSET);
            let part =
                |of: Identity| Part { job: of.job, sequence: of.sequence, seed: of.seed, is_copied: false };
            let is_lost = wanted.is_none();
            assert!(!mixture.explain(part(if is_lost { old } else { new })));
            let asked = std::cell::RefCell::new(Vec::new());
            assert!(!mixture.search(|named| {
                asked.borrow_mut().push(named);
                std::iter::empty()
            }));
            assert_eq!(asked.into_inner(), Vec::from_iter(wanted.map(Some)));
        }
    }

    /// A bit of the number of a write in flight is wrong, and another write has the number that it makes.
    #[test]
    fn a_copy_has_no_hole() {
        let spec = Spec { offset: 480, ..spec(Kind::Xxhash) };
        let [_, new] = writes(OFFSET);
        let other = Identity { sequence: new.sequence ^ 0x40, seed: new.seed ^ 0x5555, ..new };
        let mut block = block(&spec, SIZE, &new);
        let is_mixture = |block: &[u8]| {
            let mut mixture = Mixture::new(&spec, block, OFFSET);
            let part = |of: Identity, is_copied| Part {
                job: of.job,
                sequence: of.sequence,
                seed: of.seed,
                is_copied,
            };
            mixture.explain(part(new, true)) || mixture.explain(part(other, false))
        };
        assert!(is_mixture(&block));
        block[480 + 32] ^= 0x40;
        assert!(!is_mixture(&block));
    }
}
