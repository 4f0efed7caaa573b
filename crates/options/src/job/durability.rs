//! How data gets to the storage: caches, synchronous I/O, flushes.

use crate::typed::{SyncFileRange, SyncMode, WriteHint};

options! {
    /// How data gets to the storage: caches, synchronous I/O, flushes.
    pub struct DurabilityOptions at durability {
        pub direct: bool,
        /// Writes are stored completely or not at all, even if the power fails.
        pub atomic: bool,
        /// How long written data is expected to live; `None` = not set.
        pub write_hint: Option<WriteHint>,
        pub sync: SyncMode,
        pub fsync: u32,
        pub fdatasync: u32,
        pub sync_file_range: Option<SyncFileRange>,
        pub write_barrier: u32,
        pub end_fsync: bool,
        pub end_syncfs: bool,
        pub fsync_on_close: bool,
    }
}
