//! How blocks are written and checked.

use crate::content;
use iolite_content::Fill;
use iolite_options::{JobOptions, VerifyHeaderFormat};
use iolite_types::BlockSize;
use iolite_verify::block::{HeaderFormat, Kind, Spec};

/// How blocks of these sizes are written and checked; `None` = the data of the job is not verified. `unaligned`: blocks may
/// have any size between the smallest and the largest.
pub(super) fn spec(options: &JobOptions, sizes: &BlockSize, unaligned: bool) -> Option<Spec> {
    let wanted = &options.verification;
    let fill = if wanted.verify_pattern.is_empty() {
        Fill::Random
    } else {
        Fill::Pattern(wanted.verify_pattern.iter().map(content::piece).collect())
    };
    let mut spec = Spec {
        interval: wanted.verify_interval as usize,
        offset: wanted.verify_offset as usize,
        fill,
        pattern_interval: wanted.verify_pattern_interval as usize,
        compress: content::compress(options),
        format: match wanted.verify_header_format {
            VerifyHeaderFormat::V342 => HeaderFormat::V342,
            VerifyHeaderFormat::V333 => HeaderFormat::V333,
        },
        check_seed: wanted.verify_header_seed,
        check_sequence: wanted.verify_write_sequence,
        ..Spec::new(kind(options)?)
    };
    let common = if options.is_replay() {
        // The common divisor of a trace's blocks may be known only at its end. So its blocks are divided like those of
        // the job, as a later job will read them.
        options.block_size(options.verified_direction()).common() as usize
    } else if unaligned {
        0
    } else {
        // Blocks of several sizes are divided into intervals of their greatest common divisor, if a header fits into an
        // interval.
        sizes.common() as usize
    };
    if spec.interval == 0 && common > 0 && spec.validate(common).is_ok() {
        spec.interval = common;
    }
    Some(spec)
}

/// How the blocks of a workload are written and checked; `None` = they are not verified.
pub(super) fn spec_of(options: &JobOptions, workload: &iolite_workload::Spec) -> Option<Spec> {
    spec(options, &workload.sizes(options.verified_direction()), workload.unaligned)
}

/// The method; `None` = the data of the job is not verified.
pub(super) fn kind(options: &JobOptions) -> Option<Kind> {
    Kind::from_name(options.verification.verify.keyword())
}
