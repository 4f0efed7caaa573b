//! The content of buffers and of new files, according to the options.

use crate::{Layout, SharedContent, WorkerPlan};
use iolite_content::{Compress, Dedupe, Fill, PatternPiece, Share, Spec, WorkingSet};
use iolite_options::{DedupeMode, JobOptions};
use iolite_types::Direction;

/// No storage deduplicates smaller blocks.
const SMALLEST_BLOCK: u64 = 512;

/// The content that a worker writes.
pub fn spec(options: &JobOptions, layout: &Layout, plan: &WorkerPlan) -> Spec {
    let fill = if !options.buffers.buffer_pattern.is_empty() {
        Fill::Pattern(options.buffers.buffer_pattern.iter().map(piece).collect())
    } else if options.buffers.zero_buffers {
        Fill::Zeros
    } else {
        Fill::Random
    };
    let dedupe = options.is_set("dedupe_percentage").then(|| {
        let block = block(options);
        let working_set = || working_set(options, layout, block, plan.shared_content);
        Dedupe {
            percentage: options.buffers.dedupe_percentage,
            block,
            working_set: (options.buffers.dedupe_mode == DedupeMode::WorkingSet).then(working_set),
        }
    });
    Spec {
        fill,
        refill: options.buffers.refill_buffers,
        scramble: options.buffers.scramble_buffers,
        compress: compress(options),
        dedupe,
        seed: plan.seed,
    }
}

/// The content of files before the job runs: data of the same kind, but different from the data that the job will
/// write.
pub fn layout_spec(options: &JobOptions, layout: &Layout, plan: &WorkerPlan) -> Spec {
    let mut spec = spec(options, layout, plan);
    if let Some(Dedupe { working_set: Some(set), .. }) = &mut spec.dedupe {
        set.share = None;
    }
    Spec { refill: true, scramble: false, seed: !plan.seed, ..spec }
}

/// The smallest write.
pub fn block(options: &JobOptions) -> usize {
    options.block_size(Direction::Write).min().max(SMALLEST_BLOCK) as usize
}

/// How buffers are made compressible; `None` = not at all.
pub fn compress(options: &JobOptions) -> Option<Compress> {
    options.is_set("buffer_compress_percentage").then_some(Compress {
        percentage: options.buffers.buffer_compress_percentage,
        chunk: options.buffers.buffer_compress_chunk as usize,
    })
}

/// A piece of a pattern.
pub fn piece(piece: &iolite_options::PatternPiece) -> PatternPiece {
    match piece {
        iolite_options::PatternPiece::Bytes(bytes) => PatternPiece::Bytes(bytes.clone()),
        iolite_options::PatternPiece::Offset => PatternPiece::Offset,
    }
}

/// The working set is a part of the file, in blocks.
fn working_set(
    options: &JobOptions,
    layout: &Layout,
    block: usize,
    shared: Option<SharedContent>,
) -> WorkingSet {
    let bytes: u64 = layout.files.iter().map(|file| file.length).sum();
    let percentage = u64::from(options.buffers.dedupe_working_set_percentage);
    WorkingSet {
        blocks: (bytes / block as u64 * percentage / 100).max(1),
        share: shared.map(|SharedContent { seed, position, workers }| Share { seed, position, workers }),
    }
}
