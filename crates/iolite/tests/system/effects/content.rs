//! Options for the content of buffers.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

macro_rules! writes {
    ($more:literal) => {
        concat!("@ --rw=write --bs=4k ", $more)
    };
}

pub const TABLE: &[Effect] = &[
    row("zero_buffers", writes!(""), ABSENT, "", Content),
    row("refill_buffers", writes!("--scramble_buffers=0"), ABSENT, "", Content),
    row("scramble_buffers", writes!(""), "1", "0", Content),
    row("buffer_pattern", writes!(""), "0xab", "0xcd", Content),
    row("buffer_compress_percentage", writes!("--refill_buffers"), ABSENT, "50", Content),
    row("buffer_compress_chunk", writes!("--buffer_compress_percentage=50"), "512", "1k", Content),
    row("dedupe_percentage", writes!(""), "10", "90", Content),
    row("dedupe_mode", writes!("--dedupe_percentage=50"), "repeat", "working_set", Content),
    row(
        "dedupe_working_set_percentage",
        writes!("--dedupe_percentage=50 --dedupe_mode=working_set --size=1m"),
        "5",
        "50",
        Content,
    ),
    test!("dedupe_global", content::workers_share_a_working_set),
];
