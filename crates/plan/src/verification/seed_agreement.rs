//! How far an earlier run and a job agree if their seeds differ.

use crate::ReplayPlan;
use iolite_options::JobOptions;
use iolite_types::BlockSize;
use iolite_verify::Alike;
use iolite_workload::FileOrder;
use iolite_workload::history::can_repeat;

/// How far an earlier run with another seed agrees with this job.
pub(super) fn alike(
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    replay: Option<&ReplayPlan>,
) -> Alike {
    // The order of a trace is always the same, and a job that only reads expects no particular writes.
    if replay.is_some() || !options.pattern.rw.writes() {
        return Alike::Writes;
    }
    let is_one_file = workload.files.len() == 1;
    let mut used = options.pattern.rw.directions();
    let sizes_are_fixed = used.all(|direction| matches!(workload.sizes(direction), BlockSize::Fixed(_)));
    let files_take_turns = match workload.file_order {
        FileOrder::RoundRobin | FileOrder::Sequential => true,
        FileOrder::Random | FileOrder::Skewed(_) => is_one_file,
    };
    // The seed picks the size of each file from a range, and the blocks that are trimmed after they were written.
    let files_are_fixed = options.extent.filesize.is_none_or(|range| range.low == range.high);
    let trims_are_fixed = matches!(options.verification.trim_percentage, 0 | 100..);
    if !files_are_fixed || !trims_are_fixed {
        return Alike::Nothing;
    }
    let is_random = options.pattern.rw.is_random();
    // In a mix the seed decides which I/Os are writes, and so how many of them each file gets in a pass.
    if options.has_choice() {
        let is_one_pass = options.schedule.loops <= 1 && !can_repeat(workload);
        let is_one_row = is_one_file && is_one_pass && sizes_are_fixed && !is_random;
        return if is_one_row { Alike::Beginning } else { Alike::Nothing };
    }
    if sizes_are_fixed && files_take_turns && !is_random {
        return Alike::Writes;
    }
    if sizes_fit(options, workload) && is_whole(workload) && is_even(workload, is_random, sizes_are_fixed) {
        Alike::Places
    } else {
        Alike::Nothing
    }
}

/// Whether each block is a multiple of the smallest, so that no bytes are left over at the end of a file.
fn sizes_fit(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    let fit = |sizes: &BlockSize| sizes.common() == sizes.min();
    !workload.unaligned
        && options.pattern.rw.directions().all(|direction| fit(&workload.block_size[direction]))
}

/// Whether a pass covers all files to their ends.
fn is_whole(workload: &iolite_workload::Spec) -> bool {
    let bytes: u64 = workload.files.iter().fold(0, |sum, region| sum.saturating_add(region.length));
    workload.total_ios.is_none() && workload.pass_bytes.is_none_or(|limit| limit >= bytes)
}

/// Whether a pass covers each byte once.
fn is_even(workload: &iolite_workload::Spec, is_random: bool, sizes_are_fixed: bool) -> bool {
    (!is_random || sizes_are_fixed) && !can_repeat(workload)
}
