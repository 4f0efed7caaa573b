//! I/O buffers: their memory and their content.

use crate::definition::{Category, Definition, Kind};
use crate::values::{files_in_patterns, memory, pattern};

const fn buffers(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Buffers, kind, help)
}

/// The memory of buffers.
pub static MEMORY: &[Definition] = &[
    buffers("mem", Kind::Str, "Where I/O buffers come from; mmap kinds may name a file behind a colon")
        .aliases(&["iomem"])
        .default("malloc")
        .keywords(&[
            ("malloc", "The heap"),
            ("shm", "Shared memory"),
            ("shmhuge", "Shared memory in huge pages"),
            ("mmap", "Anonymous memory, or a file mapped privately"),
            ("mmapshared", "Memory or a file mapped shared"),
            ("mmaphuge", "Memory or a file mapped in huge pages"),
        ])
        .names_files(|job| job.buffers.mem_file.iter().cloned().collect())
        .lands(|job, given| {
            (job.buffers.mem, job.buffers.mem_file) =
                memory(given.required()?, given.definition.keywords, &mut given.notes)?;
            Ok(())
        }),
    buffers("iomem_align", Kind::Int, "Align buffer addresses to a multiple of this")
        .aliases(&["mem_align"])
        .default("0")
        .min(0)
        .lands(put!(buffers.iomem_align, number())),
];

/// Memory that is locked so that no other process can use it.
pub static LOCKED: &[Definition] =
    &[buffers("lockmem", Kind::Str, "Lock this much memory per worker, as if the machine had less")
        .default("0")
        .lands(put!(buffers.lockmem, number()))];

/// The content of buffers.
pub static CONTENT: &[Definition] = &[
    buffers("zero_buffers", Kind::Flag, "Write zeroes").lands(put!(buffers.zero_buffers, boolean())),
    buffers("refill_buffers", Kind::Flag, "Fill buffers with new random data before each write")
        .lands(put!(buffers.refill_buffers, boolean())),
    buffers(
        "scramble_buffers",
        Kind::Bool,
        "Change each buffer slightly before each write, so that no two are the same",
    )
    .default("1")
    .lands(put!(buffers.scramble_buffers, boolean())),
    buffers(
        "buffer_pattern",
        Kind::Str,
        "Bytes to fill buffers with: 0xdead, \"text\", 12, 'file', in any order",
    )
    .names_files(|job| files_in_patterns(job, "buffer_pattern"))
    .lands(|job, given| {
        job.buffers.buffer_pattern = pattern(given.required()?)?;
        Ok(())
    }),
    buffers("buffer_compress_percentage", Kind::Int, "By how many percent buffers can be compressed")
        .range(0, 100)
        .lands(put!(buffers.buffer_compress_percentage, number())),
    buffers(
        "buffer_compress_chunk",
        Kind::Int,
        "Size of the chunks in which compressible and random data alternate",
    )
    .under("buffer_compress_percentage")
    .default("512")
    .min(0)
    .lands(put!(buffers.buffer_compress_chunk, number())),
    buffers("dedupe_percentage", Kind::Int, "Percent of buffers that repeat an earlier one")
        .range(0, 100)
        .lands(put!(buffers.dedupe_percentage, number())),
    buffers("dedupe_mode", Kind::Str, "Which earlier buffer is repeated")
        .under("dedupe_percentage")
        .default(crate::DedupeMode::DEFAULT)
        .keywords(&[("repeat", "The one before"), ("working_set", "Any one of a fixed set")])
        .lands(put_keyword!(buffers.dedupe_mode, DedupeMode)),
    buffers("dedupe_working_set_percentage", Kind::Int, "Size of that set in percent of the file")
        .under("dedupe_percentage")
        .default("5")
        .range(0, 100)
        .lands(put!(buffers.dedupe_working_set_percentage, number())),
    buffers("dedupe_global", Kind::Bool, "Share that set among all jobs with this option")
        .default("0")
        .lands(put!(buffers.dedupe_global, boolean())),
];

/// The size of huge pages.
pub static HUGE_PAGES: &[Definition] =
    &[buffers("hugepage-size", Kind::Int, "Size of a huge page; if it is left out, the kernel's own")
        .default("2097152")
        .min(0)
        .lands(put!(buffers.hugepage_size, number()))];
