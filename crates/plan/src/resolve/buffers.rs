//! The memory of a worker's buffers.

use iolite_options::{JobOptions, MemoryKind};
use iolite_types::Direction;
use serde::{Deserialize, Serialize};

/// Which memory a worker's buffers are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferRules {
    /// How many there are.
    pub count: usize,
    /// The largest I/O that fits into one, in bytes.
    pub largest: u64,
    /// What kind of memory.
    pub kind: MemoryKind,
    /// The file that is mapped, for the kinds that map one.
    pub file: Option<String>,
    /// The buffers begin at multiples of this (`iomem_align`); 0 = nothing is demanded.
    pub align: u64,
    /// They are used for direct I/O, and so begin at pages.
    pub direct: bool,
    /// The size of a huge page, in bytes, for the kinds that use them.
    pub huge_page: u64,
}

pub(super) fn rules(options: &JobOptions, workload: &iolite_workload::Spec) -> BufferRules {
    let largest = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max()).max();
    BufferRules {
        count: options.depth.iodepth as usize,
        largest: largest.unwrap_or(1),
        kind: options.buffers.mem,
        file: options.buffers.mem_file.clone(),
        align: options.buffers.iomem_align,
        direct: options.durability.direct,
        huge_page: options.buffers.hugepage_size,
    }
}
