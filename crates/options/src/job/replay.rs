//! Recording I/O and replaying recordings.

use crate::typed::ReplaySkip;

options! {
    /// Recording I/O and replaying recordings.
    pub struct ReplayOptions at replay {
        /// Where the job's I/O is recorded.
        pub write_iolog: Option<String>,
        /// The traces to replay, one per clone; empty = no replay.
        pub read_iolog: Vec<String>,
        pub read_iolog_chunked: bool,
        pub replay_no_stall: bool,
        pub replay_redirect: Option<String>,
        /// Offsets are divided by this; 0 means 1.
        pub replay_scale: u64,
        /// A power of two; 0 = not aligned.
        pub replay_align: u64,
        /// Percent of the recorded speed.
        pub replay_time_scale: u64,
        pub replay_skip: ReplaySkip,
        pub merge_blktrace_file: Option<String>,
        /// Speed of each of the merged traces, in percent of its recorded time; empty = 100 for all.
        pub merge_blktrace_scalars: Vec<f64>,
        /// How often each of the merged traces runs; empty = once.
        pub merge_blktrace_iters: Vec<u64>,
    }
}
