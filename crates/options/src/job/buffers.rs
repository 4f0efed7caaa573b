//! I/O buffers: their memory and their content.

use crate::typed::{DedupeMode, MemoryKind, PatternPiece};

options! {
    /// I/O buffers: their memory and their content.
    pub struct BufferOptions at buffers {
        pub zero_buffers: bool,
        pub refill_buffers: bool,
        pub scramble_buffers: bool,
        /// Empty = none.
        pub buffer_pattern: Vec<PatternPiece>,
        pub buffer_compress_percentage: u32,
        /// 0 = the block size.
        pub buffer_compress_chunk: u32,
        pub dedupe_percentage: u32,
        pub dedupe_mode: DedupeMode,
        /// Percent of the file's blocks.
        pub dedupe_working_set_percentage: u32,
        pub dedupe_global: bool,
        pub mem: MemoryKind,
        /// The file behind `mem=mmap:FILE`, `mmapshared:FILE` or `mmaphuge:FILE`.
        pub mem_file: Option<String>,
        pub iomem_align: u64,
        pub lockmem: u64,
        pub hugepage_size: u64,
    }
}
