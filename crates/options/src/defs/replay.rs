//! Recording I/O and replaying recordings.

use crate::definition::{Category, Definition, Kind};
use crate::values::{names, repetitions, replay_skip};

const fn replay(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Replay, kind, help)
}

/// The most traces that can be merged.
const MOST_MERGED: usize = 1024;

/// All options of traces.
pub static REPLAY: &[Definition] = &[
    replay("write_iolog", Kind::Str, "Append a record of the I/O to this file")
        .names_files(|job| job.replay.write_iolog.iter().cloned().collect())
        .lands(|job, given| {
            job.replay.write_iolog = Some(given.string()?);
            Ok(())
        }),
    replay(
        "read_iolog",
        Kind::Str,
        "Do the I/O that these traces record, one per clone, separated by colons; - is standard input",
    )
    .names_files(|job| job.replay.read_iolog.clone())
    .lands(|job, given| {
        job.replay.read_iolog = names(given.required()?)?;
        Ok(())
    }),
    replay("read_iolog_chunked", Kind::Bool, "Begin before the whole trace has been read")
        .under("read_iolog")
        .default("0")
        .lands(put!(replay.read_iolog_chunked, boolean())),
    replay("replay_no_stall", Kind::Bool, "Ignore the recorded times")
        .under("read_iolog")
        .default("0")
        .lands(put!(replay.replay_no_stall, boolean())),
    replay("replay_redirect", Kind::Str, "Send everything to this file or device")
        .under("read_iolog")
        .names_files(|job| job.replay.replay_redirect.iter().cloned().collect())
        .lands(|job, given| {
            job.replay.replay_redirect = Some(given.string()?);
            Ok(())
        }),
    replay("replay_scale", Kind::Int, "Divide offsets by this")
        .under("read_iolog")
        .default("1")
        .min(0)
        .lands(put!(replay.replay_scale, number())),
    replay(
        "replay_align",
        Kind::Int,
        "Round offsets down to a multiple of this power of two, and lengths of block traces up",
    )
    .under("read_iolog")
    .min(0)
    .lands(|job, given| {
        let align: u64 = given.number()?;
        if align != 0 && !align.is_power_of_two() {
            return Err("must be a power of two".to_owned());
        }
        job.replay.replay_align = align;
        Ok(())
    }),
    replay("replay_time_scale", Kind::Int, "Percent of the recorded speed")
        .under("read_iolog")
        .default("100")
        .min(1)
        .lands(put!(replay.replay_time_scale, number())),
    replay("replay_skip", Kind::Str, "Kinds of I/O to skip: read,write,trim,sync").under("read_iolog").lands(
        |job, given| {
            job.replay.replay_skip = replay_skip(given.required()?)?;
            Ok(())
        },
    ),
    replay("merge_blktrace_file", Kind::Str, "Merge the block traces into this file, and replay that")
        .names_files(|job| job.replay.merge_blktrace_file.iter().cloned().collect())
        .lands(|job, given| {
            job.replay.merge_blktrace_file = Some(given.string()?);
            Ok(())
        }),
    replay(
        "merge_blktrace_scalars",
        Kind::FloatList,
        "Scale the times of each merged trace to this many percent",
    )
    .lands(|job, given| {
        let scalars = given.floats(MOST_MERGED)?;
        if scalars.iter().any(|&scalar| scalar <= 0.0) {
            return Err("a percentage of time is more than 0".to_owned());
        }
        job.replay.merge_blktrace_scalars = scalars;
        Ok(())
    }),
    replay("merge_blktrace_iters", Kind::FloatList, "Number of times that each merged trace runs").lands(
        |job, given| {
            job.replay.merge_blktrace_iters = repetitions(&given.floats(MOST_MERGED)?)?;
            Ok(())
        },
    ),
];
