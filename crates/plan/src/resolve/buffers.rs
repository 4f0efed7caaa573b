//! The memory of a worker's buffers.

use crate::JobPlan;
use iolite_options::engines::Facets;
use iolite_options::{JobOptions, MemoryKind};
use iolite_types::Direction;
use serde::{Deserialize, Serialize};

/// Up to this many bytes of buffers are faulted in before the first I/O. The rest is faulted in at its first use: with
/// so many I/Os in flight, a page fault matters little.
const READY_BYTES: u64 = 256 << 20;

/// The memory of a worker's buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferRules {
    /// How many there are.
    pub count: usize,
    /// The number of buffers that are filled, or touched, before the first I/O; the others are at their first use.
    /// Buffers of a depth that is never reached take no memory, nor do buffers through which no data moves.
    pub ready: usize,
    /// The largest I/O that fits into one, in bytes.
    pub largest: u64,
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The engine's storage may have memory of its own kind, because the job asks for none.
    pub of_storage: bool,
    /// The file that is mapped, for the kinds that map one.
    pub file: Option<String>,
    /// The buffers begin at multiples of this (`iomem_align`); 0 = anywhere.
    pub align: u64,
    /// They are used for direct I/O, and so begin at pages.
    pub direct: bool,
    /// The size of a huge page, in bytes, for the kinds that use them; `None` = the kernel's default.
    pub huge_page: Option<u64>,
}

pub(super) fn rules(job: &JobPlan, workload: &iolite_workload::Spec) -> BufferRules {
    let options = &*job.options;
    let largest = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max()).max();
    let largest = largest.unwrap_or(1);
    let most_ready = (READY_BYTES / largest.max(1)).max(1);
    BufferRules {
        count: options.depth.iodepth as usize,
        ready: in_use(options, job.engine.facets, workload).min(most_ready) as usize,
        largest,
        kind: options.buffers.mem,
        of_storage: !options.is_set("mem"),
        file: options.buffers.mem_file.clone(),
        align: options.buffers.iomem_align,
        direct: options.durability.direct,
        huge_page: options.is_set("hugepage-size").then_some(options.buffers.hugepage_size),
    }
}

/// The number of buffers that will certainly carry data: at most as many as the engine has I/Os in flight, and at most
/// as many as there are I/Os.
pub(crate) fn in_use(options: &JobOptions, facets: Facets, workload: &iolite_workload::Spec) -> u64 {
    if !facets.moves_data() || !(facets.reads_data() || options.pattern.rw.writes()) {
        return 0;
    }
    // Blocks that other threads check stay in their buffers meanwhile.
    let several = options.can_queue(facets) || options.verification.verify_async > 0;
    let depth = if several { options.depth.iodepth } else { 1 };
    let ios = if workload.endless {
        u64::MAX
    } else {
        let moved = [Direction::Read, Direction::Write].map(|direction| workload.block_size[direction].min());
        let regions = || workload.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.length));
        let bytes = workload.pass_bytes.unwrap_or_else(regions);
        bytes.div_ceil(moved[0].min(moved[1]).max(1)).min(workload.total_ios.unwrap_or(u64::MAX))
    };
    u64::from(depth).min(ios)
}
