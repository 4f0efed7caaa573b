//! Prints how fast buffers of 4 and 128 KiB are prepared.
//!
//! `cargo run --release -p iolite-content --example fill_speed`

use iolite_content::*;
use std::{hint::black_box, time::Instant};

/// Short rounds, of which the best counts: on a busy machine some of them run undisturbed.
const WRITES: u64 = 2_000;
const ROUNDS: usize = 500;

fn main() {
    let half = Some(Compress { percentage: 50, chunk: 512 });
    let random = || Spec::random(1);
    let offset = || Fill::Pattern(vec![PatternPiece::Offset]);
    let working_set = Some(WorkingSet { blocks: 1000, share: None });
    let repeat = Some(Dedupe { percentage: 50, block: 131_072, working_set: None });
    let set = Some(Dedupe { percentage: 50, block: 131_072, working_set });
    for (name, spec) in [
        ("refill random", random()),
        ("scramble", Spec { refill: false, scramble: true, ..random() }),
        ("pattern %o", Spec { fill: offset(), ..random() }),
        ("compress 50", Spec { compress: half, ..random() }),
        ("dedupe 50", Spec { dedupe: repeat, ..random() }),
        ("dedupe 50 of a set", Spec { dedupe: set, ..random() }),
        ("compress 50, dedupe 50", Spec { compress: half, dedupe: repeat, ..random() }),
    ] {
        for size in [4096, 131_072] {
            let mut content = Content::new(&spec).for_writes_only();
            let mut buffer = vec![0; size];
            content.fill(&mut buffer);
            let writes = WRITES * 4096 / size as u64;
            let mut round = || {
                let start = Instant::now();
                for write in 0..writes {
                    content.prepare_write(black_box(&mut buffer), write * size as u64);
                }
                start.elapsed().as_nanos() as f64 / writes as f64
            };
            let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
            println!("{name:<24} {size:>7} {best:>8.1} ns per write {:>8.1} GB/s", size as f64 / best);
        }
    }
}
