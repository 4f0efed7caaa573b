//! Whether a block is made of parts of several writes, all of them good answers.
//!
//! A write that was cut short leaves sectors of itself and of what was there before. Each sector has to be that of one
//! write, and a header in it has to be the header of that write. Only one that was still being copied when its
//! process was killed may end anywhere.

use super::check::{header_bytes, place_of};
use super::stamp::Data;
use super::{Header, Spec};
use std::ops::Range;

/// What storage writes at once.
const SECTOR: u64 = 512;

/// A write of which a part may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number in its job.
    pub sequence: u64,
    /// The seed of its content.
    pub seed: u64,
    /// It may be there up to any byte.
    pub is_copied: bool,
}

/// Explains a block sector by sector.
#[derive(Debug)]
pub struct Mixture<'a> {
    data: Data,
    block: &'a [u8],
    offset: u64,
    job: u16,
    /// What is not explained yet.
    sectors: Vec<Range<usize>>,
    /// The content of the write that may end anywhere.
    copied: Option<(u64, Vec<u8>)>,
}

impl<'a> Mixture<'a> {
    /// A block that was read at this offset, of writes of this job.
    pub fn new(spec: &Spec, block: &'a [u8], offset: u64, job: u16) -> Mixture<'a> {
        let (first, end) = (offset / SECTOR, (offset + block.len() as u64).div_ceil(SECTOR));
        let within = |sector: u64| ((sector * SECTOR).max(offset) - offset) as usize;
        let sectors = (first..end).map(|sector| within(sector)..within(sector + 1).min(block.len()));
        Mixture { data: Data::new(spec), block, offset, job, sectors: sectors.collect(), copied: None }
    }

    /// Takes away what this write explains. One that may end anywhere comes first. Whether all is explained now.
    pub fn explain(&mut self, part: Part) -> bool {
        let mut made = vec![0; self.block.len()];
        self.data.fill(&mut made, self.offset, self.data.stored_seed(part.seed));
        if part.is_copied {
            self.copied = Some((part.sequence, made.clone()));
        }
        let mut sectors = std::mem::take(&mut self.sectors);
        sectors.retain(|sector| !self.is_of(sector, part.sequence, &made));
        self.sectors = sectors;
        self.sectors.is_empty()
    }

    /// Whether a sector is of the write with this number and content.
    fn is_of(&self, sector: &Range<usize>, sequence: u64, made: &[u8]) -> bool {
        let interval = self.data.spec.interval_of(self.block.len()).max(1);
        let mut at = sector.start;
        while at < sector.end {
            let start = at / interval * interval;
            let end = (start + interval).min(sector.end);
            if !self.is_piece_of(at..end, start..start + interval, sequence, made) {
                return false;
            }
            at = end;
        }
        true
    }

    /// The same, for a piece of a sector within one interval.
    fn is_piece_of(&self, piece: Range<usize>, interval: Range<usize>, sequence: u64, made: &[u8]) -> bool {
        let spec = &self.data.spec;
        let headers = if spec.kind.has_header() { self.headers(&interval) } else { [0..0, 0..0] };
        let copied = self.copied.as_ref();
        let is_right = |at: usize| {
            self.block[at] == made[at]
                || copied.is_some_and(|(_, copied)| self.block[at] == copied[at])
                || headers.iter().any(|header| header.contains(&at))
        };
        if !piece.clone().all(is_right) {
            return false;
        }
        let place = interval.start + place_of(spec, interval.len());
        if !spec.kind.has_header() || !piece.contains(&place) {
            return true;
        }
        match Header::load(&header_bytes(spec, &self.block[interval.clone()])) {
            Ok(header) => {
                let stored = |sequence| header.format.stored_sequence(sequence) == header.sequence;
                header.offset == self.offset + interval.start as u64
                    && header.job == self.job
                    && (stored(sequence) || copied.is_some_and(|(sequence, _)| stored(*sequence)))
            }
            // Cut in the header.
            Err(_) => copied.is_some(),
        }
    }

    /// Where header and checksum are, and what they have changed places with. There is no data to compare in either: which
    /// layout it is depends on the header, so it is the room of the larger one.
    fn headers(&self, interval: &Range<usize>) -> [Range<usize>; 2] {
        let overhead = self.data.spec.overhead(super::HeaderFormat::V342);
        let place = interval.start + place_of(&self.data.spec, interval.len());
        [interval.start..interval.start + overhead, place..place + overhead]
    }
}
