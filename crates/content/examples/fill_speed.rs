//! Prints how fast buffers of 4 KiB are prepared.
//!
//! `cargo run --release -p iolite-content --example fill_speed`

use iolite_content::*;
use std::{hint::black_box, time::Instant};

/// Short rounds, of which the best counts: on a busy machine some of them run undisturbed.
const WRITES: u64 = 2_000;
const ROUNDS: usize = 500;
const SIZE: usize = 4096;

fn main() {
    let hex = || Fill::Pattern(vec![PatternPiece::Bytes(vec![0xde, 0xad, 0xbe, 0xef])]);
    for (name, fill, refill, scramble) in [
        ("refill random", Fill::Random, true, false),
        ("scramble", Fill::Random, false, true),
        ("refill pattern", hex(), true, false),
        ("pattern %o", Fill::Pattern(vec![PatternPiece::Offset]), false, false),
    ] {
        let mut content = Content::new(&Spec { fill, refill, scramble, seed: 1 });
        let mut buffer = vec![0; SIZE];
        content.fill(&mut buffer);
        let mut round = || {
            let start = Instant::now();
            for write in 0..WRITES {
                content.prepare_write(black_box(&mut buffer), write * SIZE as u64);
            }
            start.elapsed().as_nanos() as f64 / WRITES as f64
        };
        let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
        println!("{name:<16} {best:>8.1} ns per write {:>8.1} GB/s", SIZE as f64 / best);
    }
}
