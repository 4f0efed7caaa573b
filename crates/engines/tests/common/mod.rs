//! Shared parts of the engines' tests: option defaults, a slab of units, and a small worker loop.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use iolite_engine::{
    BufferLayout, Completion, Engine, EngineConfig, FileSpec, OpenMode, Outcome, Queued, Unit,
};
use iolite_engines::{Visitor, build};
use iolite_host::{Machine, ThisMachine};
use iolite_options::EngineOptions;
use iolite_types::Operation;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::path::Path;

pub const BLOCK: usize = 4096;

pub const READ: OpenMode = OpenMode {
    read: true,
    write: false,
    direct: false,
    sync: false,
    dsync: false,
    create: false,
    trims_reset_zones: false,
};
pub const WRITE: OpenMode = OpenMode {
    read: false,
    write: true,
    direct: false,
    sync: false,
    dsync: false,
    create: true,
    trims_reset_zones: false,
};
pub const BOTH: OpenMode = OpenMode {
    read: true,
    write: true,
    direct: false,
    sync: false,
    dsync: false,
    create: true,
    trims_reset_zones: false,
};

/// The own options of an engine, changed as these words of the option language say.
pub fn options(name: &str, words: &str) -> EngineOptions {
    let mut job = iolite_options::JobOptions::default();
    job.choose_engine(iolite_options::engines::engine(name).unwrap());
    for word in words.split_whitespace() {
        let (option, value) =
            word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        let definition = iolite_options::registry::find(option, name).unwrap();
        let origin = iolite_options::Origin::CommandLine(1);
        let name = iolite_options::Name::Iolite;
        iolite_options::registry::apply(&mut job, definition, value, origin, &mut Vec::new(), name).unwrap();
    }
    job.engine
}

/// The configuration of an engine at this depth, with the defaults of its options.
pub fn config(name: &str, depth: usize) -> EngineConfig {
    EngineConfig::new(options(name, ""), depth)
}

/// An engine, and options to try it with.
pub type Variant = (&'static str, &'static str);

/// Every engine that moves data, with the options that affect its transfers.
pub const VARIANTS: &[Variant] = &[
    ("sync", ""),
    ("psync", ""),
    ("vsync", ""),
    ("pvsync", ""),
    ("pvsync2", ""),
    ("pvsync2", "uncached=1"),
    ("mmap", ""),
    ("mmap", "thp=1"),
    ("libaio", ""),
    ("libaio", "userspace_reap"),
    ("libaio", "libaio_vectored=1"),
    ("io_uring", ""),
    ("io_uring", "nonvectored=0"),
    ("io_uring", "nonvectored=1"),
    ("io_uring", "fixedbufs"),
    ("io_uring", "registerfiles"),
    ("io_uring", "sqthread_poll"),
    ("io_uring", "sqthread_poll sqthread_poll_cpu=0 fixedbufs"),
    ("io_uring", "force_async=3"),
    ("io_uring", "uncached=1"),
    ("posixaio", ""),
];

/// The options of a variant.
pub fn options_of(variant: &Variant) -> EngineOptions {
    options(variant.0, variant.1)
}

/// Whether a variant bypasses the page cache.
pub fn is_uncached(variant: &Variant) -> bool {
    variant.1.contains("uncached")
}

/// Buffers of one worker, aligned for O_DIRECT.
pub struct Buffers {
    pub layout: BufferLayout,
}

impl Buffers {
    pub fn new(stride: usize, count: usize) -> Self {
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(Self::memory(stride, count)) };
        assert!(!start.is_null());
        Buffers { layout: BufferLayout { start, stride, count, depth: count, files: 1 } }
    }

    fn memory(stride: usize, count: usize) -> Layout {
        Layout::from_size_align(stride * count, 4096).unwrap()
    }

    pub fn of(&mut self, index: u32) -> &mut [u8] {
        let stride = self.layout.stride;
        assert!((index as usize) < self.layout.count);
        // SAFETY: the buffer lies inside the allocation, and no unit that uses it is in flight.
        unsafe { std::slice::from_raw_parts_mut(self.layout.start.add(index as usize * stride), stride) }
    }

    pub fn unit(&self, index: u32, operation: Operation, offset: u64, length: u64) -> Unit {
        assert!((index as usize) < self.layout.count && length <= self.layout.stride as u64);
        Unit {
            buffer: self.layout.start.wrapping_add(index as usize * self.layout.stride),
            length,
            offset,
            index,
            file: 0,
            operation,
            priority: 0,
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(self.layout.start, Self::memory(self.layout.stride, self.layout.count)) };
    }
}

/// The content of the block at an offset: no two blocks are alike.
pub fn content(offset: u64, length: usize) -> Vec<u8> {
    let seed = (offset / 512 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..length as u64).map(|position| ((seed.rotate_left((position % 61) as u32)) ^ position) as u8).collect()
}

/// Offsets of `count` blocks in a scattered order (the stride is coprime to the powers of two used).
pub fn scattered(count: u64, block: u64) -> Vec<u64> {
    (0..count).map(|step| (step * 37 % count) * block).collect()
}

/// Runs a closure-like visitor with the engine of that name.
pub fn with_engine<V: Visitor>(name: &str, config: &EngineConfig, visitor: V) -> V::Out {
    build(name, config, visitor).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn spec(path: &Path, size: u64) -> FileSpec {
    let (kind, _) = ThisMachine::new().usable_file(path).unwrap();
    FileSpec { path: path.to_path_buf(), kind, size }
}

/// Queues one unit, retrying while the engine is busy, and waits for its outcome. Nothing else is in flight.
pub fn perform<E: Engine>(engine: &mut E, unit: &Unit) -> Outcome {
    // SAFETY: the tests' buffers live longer than their engines' units.
    match unsafe { engine.queue(unit) } {
        Queued::Completed(outcome) => outcome,
        Queued::Busy | Queued::Over => panic!("busy with nothing in flight"),
        Queued::Queued => {
            engine.commit().unwrap();
            let mut done = Vec::new();
            engine.reap(1, 1, None, &mut done).unwrap();
            assert_eq!(done.len(), 1);
            assert_eq!(done[0].unit, unit.index);
            done[0].outcome
        }
    }
}

/// Keeps `depth` units in flight until every offset was done, committing every `batch` units; `finished` gets each
/// outcome with its offset and the unit's buffer.
pub fn run_all<E: Engine>(
    engine: &mut E,
    buffers: &mut Buffers,
    operation: Operation,
    offsets: &[u64],
    batch: usize,
    mut finished: impl FnMut(u64, Outcome, &[u8]),
) {
    let stride = buffers.layout.stride;
    let mut free: Vec<u32> = (0..buffers.layout.count as u32).collect();
    let mut offset_of = vec![0u64; buffers.layout.count];
    let mut done: Vec<Completion> = Vec::new();
    let mut next = 0;
    let mut in_flight = 0;
    let mut uncommitted = 0;
    while next < offsets.len() || in_flight > 0 {
        let mut must_commit = next == offsets.len() || free.is_empty();
        if let (Some(&offset), Some(&index)) = (offsets.get(next), free.last()) {
            if operation == Operation::Write {
                buffers.of(index).copy_from_slice(&content(offset, stride));
            } else {
                buffers.of(index).fill(0);
            }
            // SAFETY: a free unit's buffer, which is not touched again before the unit is reaped.
            match unsafe { engine.queue(&buffers.unit(index, operation, offset, stride as u64)) } {
                Queued::Completed(outcome) => {
                    finished(offset, outcome, buffers.of(index));
                    next += 1;
                }
                Queued::Queued => {
                    offset_of[index as usize] = offset;
                    free.pop();
                    next += 1;
                    in_flight += 1;
                    uncommitted += 1;
                }
                Queued::Busy => must_commit = true,
                Queued::Over => panic!("files have no other end"),
            }
        }
        if must_commit || uncommitted >= batch {
            engine.commit().unwrap();
            uncommitted = 0;
        }
        let min = usize::from(must_commit && in_flight > 0);
        engine.reap(min, usize::MAX, None, &mut done).unwrap();
        for completion in done.drain(..) {
            let index = completion.unit;
            assert!(!free.contains(&index), "unit {index} completed twice");
            finished(offset_of[index as usize], completion.outcome, buffers.of(index));
            free.push(index);
            in_flight -= 1;
        }
    }
    assert_eq!(free.len(), buffers.layout.count);
}
