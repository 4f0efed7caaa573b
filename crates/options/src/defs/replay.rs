//! Recording I/O and replaying what was recorded.

use crate::definition::{Category, Definition, Kind};

const fn replay(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Replay, kind, help)
}

/// All of it.
pub static REPLAY: &[Definition] = &[
    replay("write_iolog", Kind::Str, "Record the I/O in this file"),
    replay("read_iolog", Kind::Str, "Do the I/O that this file records"),
    replay("read_iolog_chunked", Kind::Bool, "Read the file in pieces as the replay goes on")
        .under("read_iolog")
        .default("0"),
    replay("replay_no_stall", Kind::Bool, "Ignore the recorded times").under("read_iolog").default("0"),
    replay("replay_redirect", Kind::Str, "Send everything to this device").under("read_iolog"),
    replay("replay_scale", Kind::Int, "Divide offsets by this").under("read_iolog").default("1").min(0),
    replay("replay_align", Kind::Int, "Round offsets to a multiple of this").under("read_iolog").min(0),
    replay("replay_time_scale", Kind::Int, "Percent of the recorded speed")
        .under("read_iolog")
        .default("100")
        .min(1),
    replay("replay_skip", Kind::Str, "Kinds of I/O to leave out: read,write,trim,sync").under("read_iolog"),
    replay("merge_blktrace_file", Kind::Str, "Merge several block traces into this file first"),
    replay("merge_blktrace_scalars", Kind::FloatList, "Percent of its speed for each of the merged traces"),
    replay("merge_blktrace_iters", Kind::FloatList, "How often each of the merged traces is repeated"),
];
