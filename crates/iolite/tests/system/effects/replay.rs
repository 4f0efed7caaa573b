//! Options of recording and replaying.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

/// A trace of 600 ms that exists before each run (see [`super::see::Stage`]).
const REPLAYED: &str = "--read_iolog=trace";
const IOS: super::See = Calls("pread64,pwrite64");
const LONG: super::See = Sleeps(200);

pub const TABLE: &[Effect] = &[
    row("write_iolog", "@", ABSENT, "x", Names),
    row("read_iolog", "@", ABSENT, "trace", IOS),
    test!("read_iolog_chunked", traces::traces_come_from_anywhere),
    row("replay_no_stall", REPLAYED, "0", "1", LONG),
    row("replay_time_scale", REPLAYED, "100", "1000", LONG),
    row("replay_redirect", REPLAYED, ABSENT, "in/x", IOS),
    row("replay_scale", REPLAYED, "1", "3", IOS),
    row("replay_align", REPLAYED, "0", "4096", IOS),
    row("replay_skip", REPLAYED, ABSENT, "read", IOS),
    test!("merge_blktrace_file", traces::traces_are_merged_by_time),
    test!("merge_blktrace_scalars", traces::traces_are_merged_by_time),
    test!("merge_blktrace_iters", traces::traces_are_merged_by_time),
    test!("merge-blktrace-only", traces::traces_are_merged_by_time),
];
