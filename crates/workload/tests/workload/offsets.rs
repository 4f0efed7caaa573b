//! Tests of skewed offsets and files, zones, sequences and preconditioning, with whole generators.

use crate::common::*;
use iolite_types::{Direction, PerDirection};
use iolite_workload::{offset::Curve, *};
use std::collections::{BTreeMap, HashSet};

fn skewed(law: Law, centre: Option<f64>) -> Distribution {
    Distribution::Skewed(Skew { law, centre })
}

fn chosen(spec: &Spec, limit: usize) -> Vec<Io> {
    ios(&mut iolite_workload::new(spec).unwrap(), limit)
}

/// The blocks with their numbers of hits, the most popular first.
fn ranked(ios: &[Io]) -> Vec<(u64, usize)> {
    let mut counts = BTreeMap::new();
    ios.iter().for_each(|io| *counts.entry(io.offset / (4 * K)).or_insert(0usize) += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
}

#[test]
fn frequencies_of_blocks_follow_the_law() {
    let blocks = 1000;
    for law in [Law::Zipf(1.2), Law::Zipf(0.8), Law::Pareto(0.2)] {
        let spec = Spec { endless: true, distribution: skewed(law, Some(0.5)), ..random(blocks * 4 * K) };
        let count = 200_000;
        let ranked = ranked(&chosen(&spec, count));
        assert_eq!(ranked[0].0, blocks / 2, "the centre is the most popular block");
        let curve = Curve::new(law, blocks);
        for (rank, &(block, hits)) in (0..20).zip(&ranked) {
            let expected = curve.share(rank, rank + 1) * count as f64;
            // Neighbours in rank may change places; six standard deviations allow for that.
            let tolerance = 6.0 * expected.sqrt();
            assert!(
                (hits as f64 - expected).abs() < tolerance,
                "{law:?}: {rank} is {block}, {hits}, {expected}"
            );
        }
    }
}

#[test]
fn reads_and_writes_share_the_hot_blocks() {
    let mix = Mix::ReadWrite(50);
    let spec = Spec { mix, endless: true, distribution: skewed(Law::Zipf(1.5), None), ..random(K * K) };
    let ios = chosen(&spec, 20_000);
    let hottest = |direction| {
        let of: Vec<Io> = ios.iter().filter(|io| io.direction == direction).copied().collect();
        ranked(&of)[0].0
    };
    assert_eq!(hottest(Direction::Read), hottest(Direction::Write));
}

#[test]
fn the_seed_decides_where_it_is_hot() {
    let hottest = |seed| {
        let spec = Spec { seed, endless: true, distribution: skewed(Law::Zipf(2.0), None), ..random(K * K) };
        ranked(&chosen(&spec, 2000))[0].0
    };
    let places: HashSet<u64> = (0..20).map(hottest).collect();
    assert!(places.len() > 15, "{places:?}");
}

/// Sizes are drawn as without a distribution, and I/Os at the end of the region have a size that fits.
#[test]
fn several_sizes_keep_their_shares() {
    let sizes = BlockSize::Split(vec![(4 * K, 50), (16 * K, 50)]);
    let spec = Spec { endless: true, distribution: skewed(Law::Zipf(0.5), None), ..random(K * K) };
    let ios = chosen(&sized(spec, sizes), 20_000);
    let large = ios.iter().filter(|io| io.length == 16 * K).count();
    // 3 of 256 places have no room for 16 KiB; five standard deviations are 354.
    assert!((9400..10_300).contains(&large), "{large}");
}

#[test]
fn half_at_random() {
    let spec = Spec {
        random_percent: PerDirection::all(50),
        distribution: skewed(Law::Zipf(3.0), Some(0.25)),
        ..random(K * K)
    };
    let ios = chosen(&spec, 1000);
    let hot = ios.iter().filter(|io| io.offset == 256 * K).count();
    let sequential = ios.windows(2).filter(|pair| pair[0].offset + pair[0].length == pair[1].offset).count();
    // ζ(3) = 1.202: 83% of the random half hits the hottest block.
    assert!((70..150).contains(&hot), "{hot} of {}", ios.len());
    assert!((90..170).contains(&sequential), "{sequential} of {}", ios.len());
}

const STRIDES: StridedZones = StridedZones { size: 8 * K, range: 16 * K, skip: 16 * K };

/// The visits of zones, each with the number of the zone and its I/Os.
fn visits(ios: &[Io], strides: StridedZones) -> Vec<(u64, Vec<Io>)> {
    let step = strides.range + strides.skip;
    let mut visits: Vec<(u64, Vec<Io>)> = Vec::new();
    for io in ios {
        let zone = io.offset / step;
        assert!(io.offset - zone * step < strides.range, "{io:?} is between zones");
        match visits.last_mut() {
            Some((last, ios))
                if *last == zone && ios.iter().map(|io| io.length).sum::<u64>() < strides.size =>
            {
                ios.push(*io);
            }
            _ => visits.push((zone, vec![*io])),
        }
    }
    visits
}

/// All directions together do the bytes of a zone and then move on together, as in fio's logs of `rw=rw`.
#[test]
fn directions_share_zones() {
    let spec = Spec { mix: Mix::ReadWrite(50), zones: Some(STRIDES), ..spec(256 * K) };
    let ios = chosen(&spec, 99);
    assert_eq!(ios.len(), 64);
    for (index, (zone, ios)) in visits(&ios, STRIDES).iter().enumerate() {
        assert_eq!(*zone, index as u64 % 8);
        assert_eq!(ios.len(), 2, "8 KiB");
        let start = zone * 32 * K;
        assert_eq!(ios[0].offset, start);
        let second = if ios[0].direction == ios[1].direction { start + 4 * K } else { start };
        assert_eq!(ios[1].offset, second, "each direction has its own position");
    }
}

#[test]
fn distributions_sizes_and_runs_stay_in_their_zone() {
    let strides = StridedZones { size: 40 * K, range: 32 * K, skip: 96 * K };
    let zoned = |spec: Spec| Spec { zones: Some(strides), pass_bytes: Some(4 * K * K), ..spec };
    let range = BlockSize::Range(4 * K, 16 * K);
    for spec in [
        zoned(random(K * K)),
        zoned(Spec { distribution: skewed(Law::Zipf(1.2), Some(0.0)), ..random(K * K) }),
        zoned(Spec { lfsr: true, ..random(K * K) }),
        zoned(Spec { cover: false, ..random(K * K) }),
        zoned(Spec { ios_per_random: 3, ..random(K * K) }),
        zoned(Spec { ios_per_random: 3, identical: true, ..random(K * K) }),
        zoned(Spec { random_percent: PerDirection::all(50), ..random(K * K) }),
        zoned(sized(random(K * K), range.clone())),
        zoned(sized(spec(K * K), range)),
    ] {
        let ios = chosen(&spec, 5000);
        assert!(ios.iter().map(|io| io.length).sum::<u64>() >= 4 * K * K);
        let visits = visits(&ios, strides);
        for (index, (zone, ios)) in visits.iter().enumerate() {
            assert_eq!(*zone, index as u64 % 8, "{spec:?}");
            let end = zone * 128 * K + 32 * K;
            assert!(ios.iter().all(|io| io.offset + io.length <= end), "{ios:?}");
        }
        // A zone of 32 KiB is hot at its start in every visit.
        if spec.distribution != Distribution::Even {
            let first = ios.iter().filter(|io| io.offset.is_multiple_of(128 * K)).count();
            assert!(first * 3 > ios.len(), "{first} of {}", ios.len());
        }
    }
}

/// With several sizes, a bitmap covers each visit of a zone: no byte comes twice before all have come once.
#[test]
fn several_sizes_cover_a_zone() {
    let strides = StridedZones { size: 64 * K, range: 64 * K, skip: 0 };
    let sizes = BlockSize::Range(4 * K, 16 * K);
    let spec = Spec { zones: Some(strides), ..sized(random(512 * K), sizes) };
    for (zone, ios) in visits(&chosen(&spec, 999), strides) {
        let mut bytes: Vec<(u64, u64)> = ios.iter().map(|io| (io.offset, io.offset + io.length)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes[0].0, zone * 64 * K);
        assert!(bytes.windows(2).all(|pair| pair[0].1 == pair[1].0), "{bytes:?}");
    }
}

/// The bytes of all files count, and each step is one in the current file, as in fio's logs.
#[test]
fn files_have_zones_of_their_own_and_count_together() {
    let zones = Some(StridedZones { size: 12 * K, range: 12 * K, skip: 12 * K });
    let spec = files(Spec { zones, ..spec(0) }, 2, 64 * K);
    let places: Vec<(u32, u64)> = chosen(&spec, 10).iter().map(|io| (io.file, io.offset / (4 * K))).collect();
    let expected = [(0, 0), (1, 0), (0, 1), (1, 6), (0, 2), (1, 7), (0, 6), (1, 8), (0, 7), (1, 12)];
    assert_eq!(places, expected);
}

/// A file of 17 blocks whose first 5 count as its size: the passes go on through the file, as in fio's logs.
#[test]
fn zones_go_on_behind_the_size_and_from_pass_to_pass() {
    let zones = Some(StridedZones { size: 8 * K, range: 8 * K, skip: 8 * K });
    let spec = Spec { zones, amounts: vec![20 * K], ..spec(68 * K) };
    let blocks = |ios: Vec<Io>| -> Vec<u64> { ios.iter().map(|io| io.offset / (4 * K)).collect() };
    let mut generator = iolite_workload::new(&spec).unwrap();
    let passes = [[0, 1, 4, 5, 8], [9, 12, 13, 16, 0], [1, 4, 5, 8, 9]];
    for pass in passes {
        assert_eq!(blocks(ios(&mut generator, 99)), pass);
        generator.restart();
    }
    generator.rewind();
    assert_eq!(blocks(ios(&mut generator, 99)), passes[0]);
    let short = Spec { amounts: vec![36 * K], ..spec.clone() };
    let mut generator = iolite_workload::new(&short).unwrap();
    let all = [0, 1, 4, 5, 8, 9, 12, 13, 16];
    for _ in 0..2 {
        assert_eq!(blocks(ios(&mut generator, 99)), all, "also behind a pass that ended with the last block");
        generator.restart();
    }
    // The last zone is cut short, and ends a pass that began with the first one.
    let long = Spec { amounts: vec![60 * K], ..spec.clone() };
    assert_eq!(blocks(chosen(&long, 99)), all);
    let again = Spec { pass_bytes: Some(40 * K), ..spec.clone() };
    assert_eq!(blocks(chosen(&again, 99)), [&all[..], &[0]].concat());
    // In an endless workload, I/O behind the size starts over in its zone.
    let endless = Spec { endless: true, ..spec };
    assert_eq!(blocks(chosen(&endless, 11)), [0, 1, 4, 4, 8, 8, 12, 12, 16, 16, 0]);
}

#[test]
fn trims_and_their_writes_stay_together_in_zones() {
    let zones = Some(StridedZones { size: 8 * K, range: 16 * K, skip: 0 });
    let ios = chosen(&Spec { mix: Mix::TrimWrite, zones, ..random(64 * K) }, 99);
    assert_eq!(ios.len(), 32);
    for (pair, zone) in ios.chunks(2).zip((0..4).cycle().flat_map(|zone| [zone, zone])) {
        assert_eq!((pair[0].direction, pair[1].direction), (Direction::Trim, Direction::Write));
        assert_eq!(pair[0].offset, pair[1].offset);
        assert_eq!(pair[0].offset / (16 * K), zone);
    }
}

#[test]
fn preconditioning_ends_by_itself_and_passes_differ() {
    let device = Precondition { over_provisioning: 0.25, regions: 20 };
    let writes = Mix::Single(Direction::Write);
    let spec = Spec { mix: writes, precondition: Some(device), ..random(4096 * K) };
    let mut generator = iolite_workload::new(&spec).unwrap();
    let first = ios(&mut generator, 9999);
    assert!(first.len().abs_diff(1280) < 40, "{}", first.len());
    let blocks: HashSet<u64> = first.iter().map(|io| io.offset).collect();
    assert_eq!(blocks.len(), 1024);
    generator.restart();
    let second = ios(&mut generator, 9999);
    assert_ne!(first, second);
    generator.rewind();
    assert_eq!(ios(&mut generator, 9999), first);
    let short = Spec { pass_bytes: Some(40 * K), ..spec };
    assert_eq!(chosen(&short, 9999), first[..10]);
}

/// Files follow the law with 1024 consecutive ranks each, starting at the centre.
#[test]
fn popular_files() {
    let order = |law, centre| FileOrder::Skewed(Skew { law, centre });
    let law = Law::Zipf(1.2);
    let spec = Spec {
        file_order: order(law, Some(0.25)),
        cover: false,
        endless: true,
        ..files(random(0), 16, K * K)
    };
    let ios = chosen(&spec, 100_000);
    let curve = Curve::new(law, 16 * 1024);
    for file in 0..16u64 {
        let hits = ios.iter().filter(|io| u64::from(io.file) == (file + 4) % 16).count() as f64;
        let expected = curve.share(file * 1024, (file + 1) * 1024) * 100_000.0;
        assert!((hits - expected).abs() < 5.0 * expected.sqrt(), "{file}: {hits} instead of {expected}");
    }
    // With coverage, files are finished one after the other. The next file in use takes over until all are done.
    let spec = files(Spec { file_order: order(Law::Pareto(0.1), None), ..random(0) }, 5, 64 * K);
    let mut blocks: Vec<(u32, u64)> = chosen(&spec, 999).iter().map(|io| (io.file, io.offset)).collect();
    assert!(blocks.len() == 80, "16 blocks on each of 5 files");
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), 80);
}
