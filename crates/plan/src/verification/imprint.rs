//! Everything that determines the content of a byte that several jobs may have written.
//!
//! A block is checked as a whole, and a rival may have overwritten a part of it since. That part can be checked as well
//! if its writer does not matter: if all jobs cut their blocks into the same intervals at the same offsets, with the
//! same method. A pattern must depend only on the place in the file, byte for byte.

use super::spec::spec_of;
use crate::workload::workload_spec;
use crate::{JobPlan, Layout, WorkerPlan};
use iolite_content::{Fill, PatternPiece};
use iolite_types::{BlockSize, Direction};
use iolite_verify::block::{Kind, Spec};
use iolite_workload::history::step;

/// How a worker writes to one of its files. Workers with equal imprints can check each other's blocks, and parts of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Imprint {
    kind: Kind,
    header_at: usize,
    /// Bytes of an interval, and the remainder of the first one's offset.
    intervals: Option<(u64, u64)>,
    /// The pattern, after how many bytes it restarts, after how many it repeats, and the remainder of its offset.
    pattern: Option<(Fill, usize, u64, u64)>,
}

impl Imprint {
    /// How this worker writes to the file of this index; `None` = the content of a byte depends on the write it came with.
    pub(super) fn of(job: &JobPlan, worker: &WorkerPlan, layout: &Layout, file: usize) -> Option<Imprint> {
        let workload = workload_spec(job, worker, layout);
        let spec = spec_of(&job.options, &workload)?;
        let (step, sizes) = (step(&workload), &workload.block_size[Direction::Write]);
        let start = layout.files[file].offset;
        // If a required value is missing, there is no imprint.
        let from_start = |needed: bool, bytes: Option<u64>| match bytes {
            _ if !needed => Some(None),
            bytes => bytes.map(|bytes| Some((bytes, start % bytes))),
        };
        let intervals = from_start(spec.kind.has_header(), interval(&spec, sizes, step))?;
        let pattern = from_start(spec.kind.compares_pattern(), period(&spec, sizes, step))?;
        Some(Imprint {
            kind: spec.kind,
            header_at: spec.offset,
            intervals,
            pattern: pattern.map(|(bytes, at)| (spec.fill.clone(), spec.pattern_interval, bytes, at)),
        })
    }
}

/// Bytes of each interval, if every block begins with a whole one.
fn interval(spec: &Spec, sizes: &BlockSize, step: u64) -> Option<u64> {
    let wanted = spec.interval as u64;
    let is_cut = wanted > 0 && sizes.common().is_multiple_of(wanted);
    let interval = if is_cut { Some(wanted) } else { only(sizes) };
    interval.filter(|&interval| step.is_multiple_of(interval))
}

/// After how many bytes of the file a pattern repeats, apart from the offset in it.
fn period(spec: &Spec, sizes: &BlockSize, step: u64) -> Option<u64> {
    let length: usize = match &spec.fill {
        Fill::Pattern(pieces) if spec.pattern_interval == 0 => pieces
            .iter()
            .map(|piece| match piece {
                PatternPiece::Bytes(bytes) => Some(bytes.len()),
                PatternPiece::Offset => None,
            })
            .sum::<Option<usize>>()
            .unwrap_or(0),
        _ => spec.pattern_interval,
    };
    let repeats = |&length: &u64| length > 0 && step.is_multiple_of(length);
    Some(length as u64).filter(repeats).or_else(|| only(sizes).filter(repeats))
}

fn only(sizes: &BlockSize) -> Option<u64> {
    match sizes {
        BlockSize::Fixed(size) => Some(*size),
        _ => None,
    }
}
