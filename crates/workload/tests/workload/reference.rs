//! Sequential orders, file orders and counts, as observed in the logs of fio 3.33 (`--write_iolog`).

use crate::common::*;
use iolite_types::{Direction, PerDirection};
use iolite_workload::*;

/// The I/Os as text: `R0@4/4` is a read of file 0 at offset 4 KiB of length 4 KiB. Offsets and lengths that are no
/// multiples of 1 KiB are in bytes.
fn show(spec: &Spec) -> String {
    let mut generator = iolite_workload::new(spec).unwrap();
    let mut words = Vec::new();
    while words.len() < 64 {
        match generator.next() {
            Next::Io(Io { offset, length, file, direction }) => {
                let letter = ["R", "W", "T"][direction.index()];
                let unit = |bytes: u64| match bytes % K {
                    0 => format!("{}", bytes / K),
                    _ => format!("{bytes}b"),
                };
                words.push(format!("{letter}{file}@{}/{}", unit(offset), unit(length)));
            }
            Next::Close(file) => words.push(format!("close{file}")),
            Next::Lap => words.push("lap".to_owned()),
            Next::Script(step) => panic!("{step:?} is for replays"),
            Next::Done => break,
        }
    }
    words.join(" ")
}

fn offsets(spec: &Spec, limit: usize) -> Vec<u64> {
    let mut generator = iolite_workload::new(spec).unwrap();
    ios(&mut generator, limit).iter().map(|io| io.offset).collect()
}

fn in_k(values: &[u64]) -> Vec<u64> {
    values.iter().map(|value| value * K).collect()
}

#[test]
fn a_plain_pass() {
    assert_eq!(offsets(&spec(32 * K), 99), in_k(&[0, 4, 8, 12, 16, 20, 24, 28]));
    assert_eq!(offsets(&spec(30 * K), 99), in_k(&[0, 4, 8, 12, 16, 20, 24]));
}

#[test]
fn io_size_below_and_above_size() {
    let with = |length, bytes| offsets(&Spec { pass_bytes: Some(bytes * K), ..spec(length * K) }, 99);
    let lap = in_k(&[0, 4, 8, 12, 16, 20, 24]);
    assert_eq!(with(32, 10), in_k(&[0, 4, 8]));
    assert_eq!(with(30, 30), lap);
    assert_eq!(with(30, 40), [lap.clone(), in_k(&[0, 4, 8])].concat());
    assert_eq!(with(30, 57), [lap.clone(), lap.clone()].concat());
    assert_eq!(with(30, 60), [lap.clone(), lap.clone(), in_k(&[0])].concat());
    assert_eq!(with(30, 100), [lap.clone(), lap.clone(), lap.clone(), in_k(&[0, 4, 8, 12])].concat());
}

#[test]
fn skips() {
    let with = |skip: i64| offsets(&Spec { sequential_skip: skip, ..spec(32 * K) }, 99);
    let k = K as i64;
    assert_eq!(with(4 * k), in_k(&[0, 8, 16, 24, 0, 8, 16, 24]));
    assert_eq!(with(8 * k), in_k(&[0, 12, 24, 0, 12, 24, 0, 12]));
    assert_eq!(with(3000), [0, 7096, 14192, 21288, 28384, 0, 7096, 14192]);
    assert_eq!(with(-4 * k), in_k(&[0; 8]));
    assert_eq!(with(-6 * k), in_k(&[0, 26, 24, 22, 20, 18, 16, 14]));
    assert_eq!(with(-8 * k), in_k(&[0, 24, 20, 16, 12, 8, 4, 0]));
    assert_eq!(with(-12 * k), in_k(&[0, 20, 12, 4, 20, 12, 4, 20]));
    // When an I/O reaches the end, the file is finished.
    let in_40k = Spec { sequential_skip: 8 * k, ..spec(40 * K) };
    assert_eq!(offsets(&in_40k, 99), in_k(&[0, 12, 24, 36]));
    // The eighth would straddle the end.
    assert_eq!(with(4), [0, 4100, 8200, 12300, 16400, 20500, 24600]);
}

#[test]
fn skips_are_relative_to_the_region() {
    let region = Region { offset: 16 * K, length: 32 * K };
    let skipping = Spec { files: vec![region], sequential_skip: 8 * K as i64, ..spec(0) };
    assert_eq!(offsets(&skipping, 99), in_k(&[16, 28, 40, 16, 28, 40, 16, 28]));
}

#[test]
fn time_based_passes_wrap() {
    let endless = Spec { endless: true, total_ios: Some(3), ..spec(30 * K) };
    assert_eq!(offsets(&endless, 9), in_k(&[0, 4, 8, 12, 16, 20, 24, 0, 4]));
    let skipping = Spec { endless: true, sequential_skip: 8 * K as i64, ..spec(32 * K) };
    assert_eq!(offsets(&skipping, 9), in_k(&[0, 12, 24, 0, 12, 24, 0, 12, 24]));
}

#[test]
fn sizes_in_sequence_fit_the_rest() {
    for seed in 0..50 {
        let ranged = sized(Spec { seed, ..spec(31 * K) }, BlockSize::Range(4 * K, 8 * K));
        let ios = pass(&ranged);
        assert_eq!(ios.iter().map(|io| io.length).sum::<u64>(), 28 * K);
        assert!(ios.windows(2).all(|pair| pair[0].offset + pair[0].length == pair[1].offset));
    }
}

#[test]
fn files_one_after_the_other_or_in_turns() {
    let three = |order, open, per_file| {
        show(&Spec {
            file_order: order,
            open_files: open,
            ios_per_file: per_file,
            ..files(spec(0), 3, 8 * K)
        })
    };
    let turns = "R0@0/4 R1@0/4 R2@0/4 R0@4/4 R1@4/4 R2@4/4";
    let one_by_one = "R0@0/4 R0@4/4 R1@0/4 R1@4/4 R2@0/4 R2@4/4";
    assert_eq!(three(FileOrder::RoundRobin, 3, 1), turns);
    assert_eq!(three(FileOrder::RoundRobin, 3, 2), one_by_one);
    assert_eq!(three(FileOrder::Sequential, 3, 1), one_by_one);
    assert_eq!(three(FileOrder::RoundRobin, 1, 1), "R0@0/4 R0@4/4 close0 R1@0/4 R1@4/4 close1 R2@0/4 R2@4/4");
    assert_eq!(three(FileOrder::RoundRobin, 2, 1), "R0@0/4 R1@0/4 R0@4/4 R1@4/4 close0 close1 R2@0/4 R2@4/4");
}

#[test]
fn several_files_start_over_together() {
    let six = Spec { pass_bytes: Some(24 * K), ..files(spec(0), 2, 8 * K) };
    assert_eq!(show(&six), "R0@0/4 R1@0/4 R0@4/4 R1@4/4 R0@0/4 R1@0/4");
    let short = Spec { total_ios: Some(3), ..files(spec(0), 2, 8 * K) };
    assert_eq!(show(&short), "R0@0/4 R1@0/4 R0@4/4");
}

/// After the I/Os of a ramp, as many I/Os follow as were asked for, whether the last one of the ramp is in hand or not.
#[test]
fn ios_of_a_ramp_do_not_count() {
    let limit = |spec| Spec { total_ios: Some(5), ..spec };
    let shapes = [
        limit(spec(1024 * K)),
        limit(random(1024 * K)),
        limit(Spec { mix: Mix::ReadWrite(50), ..random(1024 * K) }),
        limit(files(spec(0), 3, 400 * K)),
        limit(Spec { ios_per_random: 3, ..random(1024 * K) }),
    ];
    for spec in &shapes {
        for (before, in_hand) in [(0, false), (1, true), (3, false), (3, true), (5, true)] {
            let mut generator = General::new(spec).unwrap();
            assert_eq!(ios(&mut generator, before).len(), before);
            generator.count_anew(in_hand);
            let counted = ios(&mut generator, 99).len() + usize::from(in_hand);
            assert_eq!(counted, 5, "{before} before, {in_hand}: {spec:?}");
            // Only this pass had a ramp.
            generator.restart();
            assert_eq!(ios(&mut generator, 99).len(), 5);
        }
    }
}

#[test]
fn a_file_that_never_finishes_is_not_left() {
    let skipping = Spec { sequential_skip: 4 * K as i64, open_files: 1, ..files(spec(0), 3, 16 * K) };
    assert_eq!(offsets(&skipping, 99), in_k(&[0, 8]).repeat(6));
    let uncovered = Spec { cover: false, file_order: FileOrder::Sequential, ..files(random(0), 3, 16 * K) };
    assert!(pass(&uncovered).iter().all(|io| io.file == 0));
}

#[test]
fn reads_and_writes_have_positions_of_their_own() {
    let mixed = Spec { mix: Mix::ReadWrite(50), sequential_skip: 4 * K as i64, ..spec(64 * K) };
    let ios = pass(&mixed);
    assert_eq!(ios.len(), 16);
    for direction in [Direction::Read, Direction::Write] {
        let own: Vec<u64> = ios.iter().filter(|io| io.direction == direction).map(|io| io.offset).collect();
        let expected: Vec<u64> = (0..own.len() as u64).map(|n| n * 8 * K % (64 * K)).collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn a_mix_ends_or_starts_over_where_one_direction_has_no_room() {
    let mixed = Spec { mix: Mix::ReadWrite(80), pass_bytes: Some(160 * K), ..spec(32 * K) };
    let ios = pass(&mixed);
    assert_eq!(ios.len(), 40);
    // A lap ends with the read at 28k and the next one starts at 0 in both directions.
    let laps: Vec<&[Io]> =
        ios.split_inclusive(|io| io.direction == Direction::Read && io.offset == 28 * K).collect();
    assert!(laps.len() > 3);
    for lap in laps {
        let first_write = lap.iter().find(|io| io.direction == Direction::Write);
        assert!(lap[0].offset == 0 && first_write.is_none_or(|io| io.offset == 0), "{lap:?}");
    }
    // In a time based pass, each direction wraps by itself.
    let ios = crate::common::ios(&mut General::new(&Spec { endless: true, ..mixed }).unwrap(), 1000);
    for direction in [Direction::Read, Direction::Write] {
        let own = ios.iter().filter(|io| io.direction == direction).map(|io| io.offset);
        assert!(own.zip((0..8).cycle()).all(|(offset, block)| offset == block * 4 * K));
    }
}

#[test]
fn mixes_have_the_share_they_are_given() {
    for percent in [0, 10, 50, 70, 99, 100] {
        let mixed = Spec { mix: Mix::ReadWrite(percent), ..random(400_000 * K) };
        let ios = pass(&mixed);
        let reads = ios.iter().filter(|io| io.direction == Direction::Read).count() as f64;
        // Five standard deviations of a binomial law with 100,000 trials.
        let expected = 1000.0 * f64::from(percent);
        let deviation = (expected * f64::from(100 - percent) / 100.0).sqrt();
        assert!((reads - expected).abs() <= 5.0 * deviation, "{percent}: {reads}");
    }
}

#[test]
fn shares_of_three_directions_are_those_they_are_given() {
    for shares in [[60, 30, 10], [0, 50, 50], [1, 98, 1], [100, 0, 0], [0, 0, 100]] {
        let ios = pass(&Spec { mix: Mix::ReadWriteTrim(shares[0], shares[1]), ..random(400_000 * K) });
        assert_eq!(ios.len(), 100_000);
        for (direction, share) in Direction::ALL.into_iter().zip(shares) {
            let found = ios.iter().filter(|io| io.direction == direction).count() as f64;
            let expected = 1000.0 * f64::from(share);
            let deviation = (expected * f64::from(100 - share) / 100.0).sqrt();
            assert!((found - expected).abs() <= 5.0 * deviation, "{shares:?}, {direction:?}: {found}");
        }
    }
    // Each direction has its own position.
    let ios = pass(&Spec { mix: Mix::ReadWriteTrim(40, 30), ..spec(400 * K) });
    for direction in Direction::ALL {
        let own: Vec<u64> = ios.iter().filter(|io| io.direction == direction).map(|io| io.offset).collect();
        assert!(!own.is_empty() && own.iter().zip(0..).all(|(offset, block)| *offset == block * 4 * K));
    }
    // What a pass writes may be trimmed behind it, unless all directions share one map of blocks.
    let can_repeat = |spec| history::can_repeat(&Spec { mix: Mix::ReadWriteTrim(40, 30), ..spec });
    assert!(can_repeat(spec(400 * K)) && !can_repeat(random(400 * K)));
}

#[test]
fn every_trim_is_followed_by_its_write() {
    let trims = Spec { mix: Mix::TrimWrite, ..spec(16 * K) };
    assert_eq!(show(&trims), "T0@0/4 W0@0/4 T0@4/4 W0@4/4 T0@8/4 W0@8/4 T0@12/4 W0@12/4");
    assert_eq!(show(&Spec { total_ios: Some(1), ..trims.clone() }), "T0@0/4 W0@0/4");
    assert_eq!(show(&Spec { pass_bytes: Some(5 * K), ..trims.clone() }), "T0@0/4 W0@0/4 T0@4/4 W0@4/4");
    assert_eq!(
        show(&files(trims.clone(), 2, 8 * K)),
        "T0@0/4 T1@0/4 W0@0/4 W1@0/4 T0@4/4 T1@4/4 W0@4/4 W1@4/4"
    );
    let sizes = sized(random(1000 * K), BlockSize::Range(4 * K, 64 * K));
    let ios = pass(&Spec { mix: Mix::TrimWrite, ..sizes });
    assert_eq!(ios.iter().map(|io| io.length).sum::<u64>(), 2 * 1000 * K);
    for pair in ios.chunks(2) {
        assert_eq!(pair[1], Io { direction: Direction::Write, ..pair[0] });
        assert_eq!(pair[0].direction, Direction::Trim);
    }
}

#[test]
fn runs_follow_random_offsets() {
    let runs = Spec { ios_per_random: 4, pass_bytes: Some(3000 * 4 * K), ..random(4000 * K) };
    let ios = pass(&runs);
    assert_eq!(ios.len(), 3000);
    let mut starts = std::collections::HashSet::new();
    for run in ios.chunks(4) {
        // 750 of the 1000 blocks, each once.
        assert!(starts.insert(run[0].offset));
        for pair in run.windows(2) {
            assert!(pair[1].offset == pair[0].offset + 4 * K || pair[0].offset == 3996 * K);
        }
    }
    let same = Spec { identical: true, ..runs };
    assert!(pass(&same).chunks(4).all(|run| run.iter().all(|io| io == &run[0])));
}

#[test]
fn directions_can_differ_in_randomness() {
    let mixed =
        Spec { mix: Mix::ReadWrite(50), random_percent: PerDirection::new(0, 100, 0), ..spec(4000 * K) };
    let ios = pass(&mixed);
    let own = |direction| ios.iter().filter(move |io| io.direction == direction).map(|io| io.offset);
    assert!(own(Direction::Read).zip(0u64..).all(|(offset, block)| offset == block * 4 * K));
    let mut writes: Vec<u64> = own(Direction::Write).collect();
    let count = writes.len();
    assert!(writes.windows(2).filter(|pair| pair[1] == pair[0] + 4 * K).count() < 10);
    writes.sort_unstable();
    writes.dedup();
    assert_eq!(writes.len(), count);
}

#[test]
fn percentage_random_is_the_share_of_jumps() {
    let part = Spec { random_percent: PerDirection::all(30), ..spec(400_000 * K) };
    let ios = pass(&part);
    let jumps = ios.windows(2).filter(|pair| pair[1].offset != pair[0].offset + 4 * K).count();
    assert!((29_000..31_000).contains(&jumps), "{jumps}");
}

#[test]
fn sizes_can_depend_on_randomness() {
    let by_randomness = Spec {
        size_by_randomness: true,
        random_percent: PerDirection::all(50),
        block_size: PerDirection::new(
            BlockSize::Fixed(4 * K),
            BlockSize::Fixed(8 * K),
            BlockSize::Fixed(4 * K),
        ),
        ..spec(4000 * K)
    };
    let ios = pass(&by_randomness);
    for pair in ios.windows(2) {
        let follows = pair[1].offset == pair[0].offset + pair[0].length;
        assert!(follows || pair[1].length == 8 * K);
        assert!(pair[1].length == 8 * K || follows);
    }
    assert!(ios.iter().any(|io| io.length == 4 * K));
}

#[test]
fn random_offsets_are_aligned() {
    for align in [1, 512, 8 * K] {
        let aligned = Spec { align: PerDirection::all(align), ..random(64 * K) };
        let mut generator = iolite_workload::new(&Spec { endless: true, ..aligned }).unwrap();
        let offsets: Vec<u64> = ios(&mut generator, 5000).iter().map(|io| io.offset).collect();
        assert!(offsets.iter().all(|offset| offset % align == 0 && offset + 4 * K <= 64 * K));
        // With few aligned offsets, the last one at which a block fits does occur.
        assert!(align == 1 || *offsets.iter().max().unwrap() == 60 * K / align * align);
    }
}

#[test]
fn regions_smaller_than_a_block_give_no_ios() {
    for endless in [false, true] {
        for base in [spec(3 * K), random(3 * K), sized(random(3 * K), BlockSize::Range(4 * K, 8 * K))] {
            assert_eq!(show(&Spec { endless, ..base }), "");
        }
        let regions = vec![Region { offset: 0, length: 3 * K }, Region { offset: 0, length: 8 * K }];
        let some = Spec { files: regions, open_files: 2, endless: false, ..spec(0) };
        assert_eq!(show(&some), "R1@0/4 R1@4/4");
    }
    assert_eq!(show(&Spec { files: vec![], ..spec(0) }), "");
}

/// Laps are announced only if the spec asks for it; the I/Os are the same.
#[test]
fn laps_are_announced() {
    let two_laps = Spec { pass_bytes: Some(16 * K), ..spec(8 * K) };
    assert_eq!(show(&two_laps), "R0@0/4 R0@4/4 R0@0/4 R0@4/4");
    let announced = Spec { announce_laps: true, ..two_laps };
    assert_eq!(show(&announced), "R0@0/4 R0@4/4 lap R0@0/4 R0@4/4");
    let endless = Spec { endless: true, announce_laps: true, pass_bytes: None, ..spec(8 * K) };
    assert!(show(&endless).starts_with("R0@0/4 R0@4/4 lap R0@0/4 R0@4/4 lap "));
}
