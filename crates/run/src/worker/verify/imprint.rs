//! What is in a byte that several jobs may have written.
//!
//! A block is checked as a whole, and a rival may have overwritten a part of it since. That part can be checked as well
//! where it does not matter who wrote it: when all cut their blocks into the same intervals at the same offsets, with
//! the same method. For patterns it takes that each byte of them depends on its place in the file alone.

use super::setup;
use iolite_content::{Fill, PatternPiece};
use iolite_plan::resolve::workload_spec;
use iolite_plan::{JobPlan, Layout, WorkerPlan};
use iolite_types::Direction;
use iolite_verify::block::{Kind, Spec};
use iolite_workload::BlockSize;
use iolite_workload::history::step;

/// How a worker writes to one of its files. Workers with the same imprint can check each other's blocks, and parts of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imprint {
    kind: Kind,
    header_at: usize,
    /// Bytes of an interval, and where the first one begins.
    intervals: Option<(u64, u64)>,
    /// The pattern, after how many bytes it begins anew, after how many it is the same, and from where on.
    pattern: Option<(Fill, usize, u64, u64)>,
}

impl Imprint {
    /// How this worker writes to the file of this index; `None` = what is in a byte depends on the write it came with.
    pub fn of(job: &JobPlan, worker: &WorkerPlan, layout: &Layout, file: usize) -> Option<Imprint> {
        let workload = workload_spec(job, worker, layout);
        let spec = setup::spec_of(&job.options, &workload)?;
        let (step, sizes) = (step(&workload), &workload.block_size[Direction::Write]);
        let start = layout.files[file].offset;
        // What is needed and not there makes the whole impossible.
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

/// The size of all intervals, where each block begins with a whole one.
fn interval(spec: &Spec, sizes: &BlockSize, step: u64) -> Option<u64> {
    let wanted = spec.interval as u64;
    let is_cut = wanted > 0 && sizes.common().is_multiple_of(wanted);
    let interval = if is_cut { Some(wanted) } else { only(sizes) };
    interval.filter(|&interval| step.is_multiple_of(interval))
}

/// After how many bytes from the beginning of the file a pattern is the same again (but for the offset in it).
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
