//! Finds the damaged part of an interval: a bit, sectors of zeros, or everything before or after some sector.

use super::diagnosis::Diagnosis;
use super::interval::place_of;
use super::subject::{Candidate, Subject};
use iolite_content::Fill;
use std::ops::Range;

/// Describes the difference between the interval and this candidate.
pub(super) fn part(subject: &Subject, best: &Candidate) -> Diagnosis {
    let [first, ..] = best.wrong[..] else {
        return Diagnosis::Unknown;
    };
    if best.bits == 1 {
        let bit = (best.bytes[first] ^ subject.interval()[first]).trailing_zeros() as u8;
        return Diagnosis::BitFlip { offset: subject.offset() + first as u64, bit };
    }
    if let Some(zeroed) = zeroed(subject, Some(best)) {
        return Diagnosis::ZeroedSectors(zeroed);
    }
    torn(subject, best).unwrap_or(Diagnosis::Damaged)
}

/// The sectors (as offsets in the file) that are zero and should not be, if the rest is right and they are contiguous.
/// Without a candidate: the sectors that are zero and cannot be.
pub(super) fn zeroed(subject: &Subject, best: Option<&Candidate>) -> Option<Range<u64>> {
    // Neither random data nor a header is zero; anything else may be.
    let spec = subject.spec();
    let is_random = spec.fill == Fill::Random && spec.compress.is_none();
    let header = spec.kind.has_header().then(|| place_of(spec, subject.range.len()));
    let cannot_be_zero = |sector: &Range<usize>| is_random || header.is_some_and(|at| sector.contains(&at));
    let mut zeroed: Option<Range<usize>> = None;
    for sector in subject.sectors() {
        let is_zero = subject.interval()[sector.clone()].iter().all(|&byte| byte == 0);
        let is_wrong = best.map_or(cannot_be_zero(&sector), |best| best.wrong_in(&sector) > 0);
        match &mut zeroed {
            _ if is_wrong && !is_zero && best.is_some() => return None,
            Some(range) if is_wrong && is_zero && range.end == sector.start => range.end = sector.end,
            Some(_) if is_wrong && is_zero => return None,
            None if is_wrong && is_zero => zeroed = Some(sector),
            _ => {}
        }
    }
    zeroed.map(|range| subject.offset() + range.start as u64..subject.offset() + range.end as u64)
}

/// Whether sectors at the beginning, or at the end, have other data than the candidate.
pub(super) fn torn(subject: &Subject, best: &Candidate) -> Option<Diagnosis> {
    // Nearly every byte of other random data differs.
    let is_random = subject.data.is_random() && subject.spec().compress.is_none();
    let enough = |sector: &Range<usize>| sector.len().div_ceil(if is_random { 2 } else { 8 });
    let replaced: Vec<_> = subject
        .sectors()
        // Sectors of a single repeated byte (compressed data) are the same in every write.
        .filter(|sector| best.bytes[sector.clone()].iter().any(|byte| *byte != best.bytes[sector.start]))
        .map(|sector| match best.wrong_in(&sector) {
            0 => Some((false, sector.start)),
            wrong if wrong >= enough(&sector) => Some((true, sector.start)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let mut cuts = replaced.windows(2).filter(|pair| pair[0].0 != pair[1].0);
    let (cut, more) = (cuts.next()?, cuts.next());
    more.is_none().then(|| Diagnosis::Torn { at: subject.offset() + cut[1].1 as u64, beginning: !cut[0].0 })
}
