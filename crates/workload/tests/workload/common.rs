//! A small language for specs and the I/Os they give.

use iolite_types::{Direction, PerDirection};
use iolite_workload::*;

/// 1 KiB.
pub const K: u64 = 1024;

/// One file of `length` bytes, I/Os of 4 KiB, sequential reads.
pub fn spec(length: u64) -> Spec {
    Spec {
        files: vec![Region { offset: 0, length }],
        file_order: FileOrder::RoundRobin,
        ios_per_file: 1,
        open_files: 1,
        mix: Mix::Single(Direction::Read),
        random_percent: PerDirection::all(0),
        block_size: PerDirection::all(BlockSize::Fixed(4 * K)),
        align: PerDirection::all(4 * K),
        unaligned: false,
        size_by_randomness: false,
        cover: true,
        cover_softly: false,
        lfsr: false,
        distribution: Distribution::Even,
        zones: None,
        precondition: None,
        sequential_skip: 0,
        skip_wraps: true,
        announce_laps: false,
        ios_per_random: 1,
        identical: false,
        pass_bytes: None,
        total_ios: None,
        endless: false,
        seed: 42,
    }
}

/// The same at random.
pub fn random(length: u64) -> Spec {
    Spec { random_percent: PerDirection::all(100), ..spec(length) }
}

/// With these block sizes, and offsets aligned to the smallest.
pub fn sized(spec: Spec, size: BlockSize) -> Spec {
    Spec { align: PerDirection::all(size.min()), block_size: PerDirection::all(size), ..spec }
}

/// Spread over `count` files of `length` bytes each.
pub fn files(spec: Spec, count: usize, length: u64) -> Spec {
    Spec { files: vec![Region { offset: 0, length }; count], open_files: count, ..spec }
}

/// The I/Os of the rest of a pass, at most `limit`.
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
