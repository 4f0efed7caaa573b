//! Prints the cost of one call of `next()` for the main shapes of workloads.
//!
//! `cargo run --release -p iolite-workload --example next_cost [PART OF A NAME]`

use iolite_types::PerDirection;
use iolite_workload::*;
use std::{hint::black_box, time::Instant};

/// Calls per round. Rounds are short and the best one counts, because on a busy machine only some of them run
/// undisturbed.
const CALLS: u64 = 200_000;
const ROUNDS: usize = 300;

/// Measures nanoseconds per call. It uses every I/O as an engine would.
struct Cost;

impl Visitor for Cost {
    type Output = f64;

    fn visit<G: Generator>(self, mut generator: G) -> f64 {
        let round = |generator: &mut G| {
            let start = Instant::now();
            let mut sum = 0u64;
            for _ in 0..CALLS {
                match generator.next() {
                    Next::Io(io) => sum = sum.wrapping_add(io.offset ^ io.length),
                    Next::Close(_) | Next::Lap | Next::Script(_) => {}
                    Next::Done => generator.restart(),
                }
            }
            black_box(sum);
            start.elapsed().as_nanos() as f64 / CALLS as f64
        };
        (0..ROUNDS).map(|_| round(&mut generator)).fold(f64::INFINITY, f64::min)
    }
}

fn main() {
    let size = 4096;
    let sequential = Spec { endless: true, ..Spec::plain(16 << 30, size) };
    let random = Spec { random_percent: PerDirection::all(100), ..sequential.clone() };
    let mixed = Spec { mix: Mix::ReadWrite(70), ..random.clone() };
    let sixteen = vec![Region { offset: 0, length: 1 << 30 }; 16];
    let law = |law| Distribution::Skewed(Skew { law, centre: None });
    let zone = |share, percent| Zone { share, size: ZoneSize::Percent(percent) };
    let zoned = vec![zone(60, 10.0), zone(30, 20.0), zone(8, 30.0), zone(2, 40.0)];
    let zoned = Distribution::Zones(PerDirection::all(zoned));
    let sequence = Distribution::Sequence { blocks: vec![3, 1, 0, 2], stride: true };
    let device = Precondition { over_provisioning: 0.15, regions: 100 };
    let zones = StridedZones { size: 1 << 20, range: 1 << 20, skip: 1 << 20 };
    let terabyte = vec![Region { offset: 0, length: 1 << 40 }];
    let shapes = [
        ("read", sequential.clone()),
        ("randread", random.clone()),
        ("randread norandommap", Spec { cover: false, ..random.clone() }),
        ("randrw 70/30", mixed.clone()),
        ("rw 70/30", Spec { mix: Mix::ReadWrite(70), ..sequential.clone() }),
        ("randread lfsr", Spec { lfsr: true, ..random.clone() }),
        ("randread 16 files", Spec { files: sixteen.clone(), open_files: 16, ..random.clone() }),
        ("read 16 files", Spec { files: sixteen, open_files: 16, ..sequential.clone() }),
        (
            "randread bsrange 4k-64k",
            Spec { block_size: PerDirection::all(BlockSize::Range(size, 16 * size)), ..random.clone() },
        ),
        (
            "randread bssplit of 4",
            Spec {
                block_size: PerDirection::all(BlockSize::Split(
                    [1, 2, 4, 8].map(|times| (times * size, 25)).to_vec(),
                )),
                ..random.clone()
            },
        ),
        ("randread:8", Spec { ios_per_random: 8, ..random.clone() }),
        ("zipf:1.2", Spec { distribution: law(Law::Zipf(1.2)), ..random.clone() }),
        ("zipf:0.9", Spec { distribution: law(Law::Zipf(0.9)), ..random.clone() }),
        ("zipf:1.2, 1 TiB", Spec { distribution: law(Law::Zipf(1.2)), files: terabyte, ..random.clone() }),
        ("pareto:0.2", Spec { distribution: law(Law::Pareto(0.2)), ..random.clone() }),
        ("normal:20", Spec { distribution: law(Law::Normal(20.0)), ..random.clone() }),
        ("zipf:1.2 70/30", Spec { distribution: law(Law::Zipf(1.2)), ..mixed.clone() }),
        ("zoned, 4 zones", Spec { distribution: zoned, ..random.clone() }),
        ("sequence, strided", Spec { distribution: sequence, ..random.clone() }),
        ("sprandom", Spec { precondition: Some(device), endless: false, ..random.clone() }),
        ("read strided", Spec { zones: Some(zones), ..sequential.clone() }),
        ("randread strided", Spec { zones: Some(zones), ..random.clone() }),
        ("randread 50 %", Spec { random_percent: PerDirection::all(50), ..random }),
    ];
    println!("{:<26} {:>8} {:>8}  ns per next()", "workload", "chosen", "general");
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (name, spec) in shapes.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let chosen = new(&spec).expect("memory for a map").visit(Cost);
        let general = Cost.visit(General::new(&spec).expect("memory for a map"));
        println!("{name:<26} {chosen:>8.2} {general:>8.2}");
    }
}
