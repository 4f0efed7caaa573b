//! Finds data that has moved to the wrong place.

use super::header::{Header, HeaderFormat};
use super::interval::place_of;
use super::kind::Kind;
use super::subject::{Candidate, PROBE, Subject};
use iolite_content::{Fill, PatternPiece};

/// At most this many distances are tried: a pattern is found in many places.
const MOST_MOVES: usize = 1024;

/// How far a header has moved, in bytes, if it is elsewhere in the block.
pub(super) fn moved_header(subject: &Subject) -> Option<i64> {
    let spec = subject.spec();
    if !spec.kind.has_header() {
        return None;
    }
    let (step, block) = (subject.range.len(), subject.block);
    let size = HeaderFormat::V342.size();
    let place = place_of(spec, step);
    (0..block.len().saturating_sub(size)).filter(|at| at % step != place).find_map(|at| {
        let header = Header::load(&block[at..at + size]).ok()?;
        let is_at = subject.block_offset as i128 + at as i128;
        let by = is_at - (i128::from(header.offset) + place as i128);
        (by != 0 && by.unsigned_abs() <= block.len() as u128).then_some(by as i64)
    })
}

/// How many bytes the candidate's data has moved within the interval.
pub(super) fn moved_data(subject: &Subject, candidate: &Candidate) -> Option<i64> {
    let (found, wanted) = (subject.interval(), &candidate.bytes);
    let length = found.len();
    let probes = [length / 4, length / 2, length / 4 * 3].into_iter().filter(|at| at + PROBE <= length);
    let moves = probes.flat_map(|at| {
        let probe = &wanted[at..at + PROBE];
        let places = found.windows(PROBE).enumerate().filter(move |(_, window)| *window == probe);
        places.map(move |(place, _)| place as i64 - at as i64)
    });
    let mut moves: Vec<i64> = moves.filter(|by| *by != 0).collect();
    moves.sort_by_key(|by| (by.unsigned_abs(), *by < 0));
    moves.dedup();
    if let Some(period) = pattern_period(subject) {
        // A pattern that moved by a multiple of its period looks as if it had not moved.
        moves.retain(|by| by % period != 0);
    }
    moves.into_iter().take(MOST_MOVES).find(|by| explains(subject, candidate, *by))
}

/// Whether a move by this many bytes explains the damage of the interval.
fn explains(subject: &Subject, candidate: &Candidate, by: i64) -> bool {
    let (found, wanted) = (subject.interval(), &candidate.bytes);
    let length = found.len();
    let overhead = subject.spec().overhead(subject.spec().format);
    let (from, to) = if by > 0 { (0, by as usize) } else { (by.unsigned_abs() as usize, 0) };
    let common = length - from.max(to);
    let differ = |one: &[u8], other: &[u8], most: usize| {
        one.iter().zip(other).filter(|(one, other)| one != other).take(most).count()
    };
    // Only the header may differ: the candidate has it in its original place.
    if common < PROBE.max(length / 8) || differ(&wanted[from..], &found[to..], overhead + 1) > overhead {
        return false;
    }
    let moved = to..to + common;
    // Bytes that are the same before and after the move are not evidence for it.
    let changed = differ(&wanted[from..from + common], &wanted[moved.clone()], common);
    // A pattern whose rest is still right has not moved. (Other data does not occur twice by chance.)
    let rest = if by > 0 { 0..to } else { common..length };
    let stayed = !subject.data.is_random() && rest.len() >= PROBE && candidate.wrong_in(&rest) == 0;
    changed > 2 * overhead && candidate.wrong_in(&moved) * 2 > changed && !stayed
}

/// After how many bytes a pattern repeats, throughout the block.
fn pattern_period(subject: &Subject) -> Option<i64> {
    let Fill::Pattern(pieces) = &subject.spec().fill else { return None };
    let length = |piece: &PatternPiece| match piece {
        PatternPiece::Bytes(bytes) => bytes.len() as i64,
        PatternPiece::Offset => size_of::<u64>() as i64,
    };
    let period = pieces.iter().map(length).sum();
    (subject.spec().pattern_interval == 0 && period > 0).then_some(period)
}

/// The offset that a pattern with `%o` contains, if it is a different one and explains the complete block.
pub(super) fn offset_in_pattern(subject: &mut Subject) -> Option<u64> {
    let Fill::Pattern(pieces) = &subject.spec().fill else {
        return None;
    };
    if subject.spec().kind != Kind::Pattern {
        return None;
    }
    let mut at = 0;
    for piece in pieces {
        match piece {
            PatternPiece::Bytes(bytes) => at += bytes.len(),
            PatternPiece::Offset => break,
        }
    }
    let says = u64::from_le_bytes(subject.block.get(at..at + 8)?.try_into().ok()?);
    if !pieces.contains(&PatternPiece::Offset) || says == subject.block_offset {
        return None;
    }
    let mut block = vec![0; subject.block.len()];
    subject.data.fill(&mut block, says, 0);
    (block == subject.block).then_some(says)
}
