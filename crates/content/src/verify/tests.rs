//! What is written is found again, and nothing that was not written.

use super::*;
use crate::PatternPiece;

pub(super) fn pattern() -> Fill {
    Fill::Pattern(vec![PatternPiece::Bytes(b"\xabxy".to_vec()), PatternPiece::Offset])
}

/// A kind with the content it needs.
pub(super) fn spec(kind: Kind) -> Spec {
    let fill = if kind.compares_pattern() { pattern() } else { Fill::Random };
    Spec { fill, ..Spec::new(kind) }
}

pub(super) fn identity(offset: u64, sequence: u64) -> Identity {
    let seed = 0x1234_5678_9abc_def0 ^ sequence << 17;
    Identity { offset, sequence, seed, seconds: 1_700_000_000, nanoseconds: 123_456_789, job: 3 }
}

pub(super) fn block(spec: &Spec, size: usize, identity: &Identity) -> Vec<u8> {
    let mut block = vec![0xee; size];
    Stamper::new(spec).stamp(&mut block, identity);
    block
}

/// All that can be known of a write.
pub(super) fn write(identity: &Identity) -> Write {
    Write { sequence: Some(identity.sequence), seed: Some(identity.seed), job: Some(identity.job) }
}

/// Kinds, layouts, intervals, and places of the header.
fn variants() -> impl Iterator<Item = Spec> {
    let shapes = [(0, 0), (1024, 0), (0, 1000), (512, 200), (3000, 0)];
    let fills = [None, Some(Fill::Zeros), Some(pattern())];
    Kind::all().flat_map(move |kind| {
        let fills = fills.clone();
        shapes.into_iter().flat_map(move |(interval, offset)| {
            fills.clone().into_iter().flat_map(move |fill| {
                [HeaderFormat::V342, HeaderFormat::V333].into_iter().map(move |format| {
                    let base = spec(kind);
                    let fill = if kind.compares_pattern() { None } else { fill.clone() };
                    Spec { interval, offset, format, fill: fill.unwrap_or(base.fill.clone()), ..base }
                })
            })
        })
    })
}

#[test]
fn what_was_written_is_found_again() {
    for spec in variants() {
        let written = identity(12_288, 70_000);
        let block = block(&spec, 4096, &written);
        let writes = [write(&identity(0, 1)), write(&written)];
        let mut verifier = Verifier::new(&spec);
        for writes in [&[][..], &writes[1..], &writes] {
            assert_eq!(verifier.check(&block, &Expected { offset: 12_288, writes }), Ok(()), "{spec:?}");
        }
    }
}

/// A reader may have smaller blocks, as long as they are whole intervals.
#[test]
fn intervals_can_be_read_one_by_one() {
    let spec = Spec { interval: 512, ..spec(Kind::Crc32c) };
    let block = block(&spec, 8192, &identity(8192, 1));
    let mut verifier = Verifier::new(&spec);
    for (part, offset) in block.chunks(512).zip((8192..).step_by(512)) {
        assert_eq!(verifier.check(part, &Expected { offset, writes: &[] }), Ok(()));
    }
}
