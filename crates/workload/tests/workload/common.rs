//! Helpers for specs and the I/Os they give.

use iolite_types::PerDirection;
use iolite_workload::*;

/// 1 KiB.
pub const K: u64 = 1024;

/// One file of `length` bytes, I/Os of 4 KiB, sequential reads.
pub fn spec(length: u64) -> Spec {
    Spec { seed: 42, ..Spec::plain(length, 4 * K) }
}

/// The same with random offsets.
pub fn random(length: u64) -> Spec {
    Spec { random_percent: PerDirection::all(100), ..spec(length) }
}

/// The spec with these block sizes, and offsets aligned to the smallest.
pub fn sized(spec: Spec, size: BlockSize) -> Spec {
    Spec { align: PerDirection::all(size.min()), block_size: PerDirection::all(size), ..spec }
}

/// The spec with `count` files of `length` bytes each.
pub fn files(spec: Spec, count: usize, length: u64) -> Spec {
    Spec { files: vec![Region { offset: 0, length }; count], open_files: count, ..spec }
}

/// The remaining I/Os of a pass, at most `limit`.
pub fn ios(generator: &mut impl Generator, limit: usize) -> Vec<Io> {
    let mut result = Vec::new();
    while result.len() < limit {
        match generator.next() {
            Next::Io(io) => result.push(io),
            Next::Close(_) | Next::Lap | Next::Script(_) => {}
            Next::Done => break,
        }
    }
    result
}

/// The I/Os of a pass of `spec`, at most 100,000.
pub fn pass(spec: &Spec) -> Vec<Io> {
    ios(&mut General::new(spec).unwrap(), 100_000)
}
