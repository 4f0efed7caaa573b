//! The number of I/Os in flight, and the thread that submits them.

use crate::typed::SubmitMode;

options! {
    /// The number of I/Os in flight, and the thread that submits them.
    pub struct DepthOptions at depth {
        pub iodepth: u32,
        /// Units submitted at once.
        pub iodepth_batch: u32,
        /// Fewest completions to wait for; 0 = poll.
        pub iodepth_batch_complete_min: u32,
        /// Most completions to fetch at once; 0 = same as the minimum.
        pub iodepth_batch_complete_max: u32,
        /// The depth to drain to before the queue is filled again; 0 = same as `iodepth`.
        pub iodepth_low: u32,
        pub serialize_overlap: bool,
        pub io_submit_mode: SubmitMode,
    }
}
