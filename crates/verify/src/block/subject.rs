//! A wrong interval, and candidates for its intended content.

use super::data::Data;
use super::header::Header;
use super::interval::place_of;
use super::mismatch::Differences;
use super::spec::Spec;
use std::ops::Range;

/// Storage writes this many bytes at once: a write that was cut off ends at a multiple of it.
const SECTOR: u64 = 512;
/// Data of the right kind is recognised, and data that moved is found, by pieces of this size.
pub(super) const PROBE: usize = 16;

/// An interval in its block, and the means to generate its content again.
pub(super) struct Subject<'a> {
    pub(super) data: &'a mut Data,
    /// The whole block that was read.
    pub(super) block: &'a [u8],
    /// The offset of the block in the file.
    pub(super) block_offset: u64,
    /// Where the interval is in the block.
    pub(super) range: Range<usize>,
}

/// A candidate for the intended content of an interval, with its differences.
pub(super) struct Candidate {
    pub(super) bytes: Vec<u8>,
    /// The places of the bytes that differ, in ascending order.
    pub(super) wrong: Vec<usize>,
    /// How many bits differ.
    pub(super) bits: u64,
    /// This is certainly the expected content, even if the data differs a lot.
    pub(super) is_certain: bool,
    /// The interval matches this, at least in part.
    pub(super) is_near: bool,
}

impl Subject<'_> {
    pub(super) fn interval(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.data.spec
    }

    /// The offset of the interval in the file.
    pub(super) fn offset(&self) -> u64 {
        self.block_offset + self.range.start as u64
    }

    pub(super) fn is_zero(&self) -> bool {
        self.interval().iter().all(|&byte| byte == 0)
    }

    /// The sectors of the interval, as ranges in it. The first and the last may be incomplete.
    pub(super) fn sectors(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (offset, length) = (self.offset(), self.range.len() as u64);
        (offset / SECTOR..(offset + length).div_ceil(SECTOR)).map(move |sector| {
            let start = (sector * SECTOR).max(offset) - offset;
            let end = ((sector + 1) * SECTOR).min(offset + length) - offset;
            start as usize..end as usize
        })
    }

    /// Compares the interval with the bytes that the write with this header would have left.
    pub(super) fn candidate(&mut self, header: &Header, is_certain: bool) -> Candidate {
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
            self.data.fill_interval(&mut interval, self.block_offset, header.offset, header.seed);
            interval
        } else {
            let mut block = vec![0; self.block.len()];
            self.data.fill(&mut block, self.block_offset, 0);
            block[self.range.clone()].to_vec()
        };
        if self.spec().kind.has_header() && interval.len() >= self.spec().overhead(header.format) {
            self.data.seal(&mut interval, header);
        }
        interval
    }
}

impl Candidate {
    /// How many bytes of this range differ.
    pub(super) fn wrong_in(&self, range: &Range<usize>) -> usize {
        let upto = |end: usize| self.wrong.partition_point(|&byte| byte < end);
        upto(range.end) - upto(range.start)
    }

    /// The differences of an interval at this offset. `None`: no differences.
    pub(super) fn differences(&self, offset: u64) -> Option<Differences> {
        let (first, last) = (*self.wrong.first()?, *self.wrong.last()?);
        Some(Differences {
            first: offset + first as u64,
            last: offset + last as u64,
            bytes: self.wrong.len() as u64,
            bits: self.bits,
        })
    }
}
