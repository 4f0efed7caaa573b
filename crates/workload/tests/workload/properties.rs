//! Properties that hold for every workload.

use crate::common::*;
use iolite_types::{Direction, PerDirection};
use iolite_workload::*;
use proptest::prelude::*;

fn law() -> impl Strategy<Value = Skew> {
    let law = prop_oneof![
        (0.0..3.0f64).prop_map(Law::Zipf),
        (0.01..0.99f64).prop_map(Law::Pareto),
        (0.0..100.0f64).prop_map(Law::Normal),
    ];
    (law, prop::option::of(0.0..=1.0f64)).prop_map(|(law, centre)| Skew { law, centre })
}

fn zone() -> impl Strategy<Value = Zone> {
    let size =
        prop_oneof![(0.0..60.0f64).prop_map(ZoneSize::Percent), (0u64..100_000).prop_map(ZoneSize::Bytes)];
    (0u32..=100, size).prop_map(|(share, size)| Zone { share, size })
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        4 => Just(Distribution::Even),
        1 => law().prop_map(Distribution::Skewed),
        1 => per_direction(prop::collection::vec(zone(), 0..5).boxed()).prop_map(Distribution::Zones),
        1 => (prop::collection::vec(0u64..100, 1..6), any::<bool>())
            .prop_map(|(blocks, stride)| Distribution::Sequence { blocks, stride }),
    ]
}

fn strides() -> impl Strategy<Value = StridedZones> {
    (1u64..30_000, 1u64..60_000, 0u64..30_000).prop_map(|(size, range, skip)| StridedZones {
        size,
        range,
        skip,
    })
}

fn block_size() -> impl Strategy<Value = BlockSize> {
    let unit = 1u64..9;
    prop_oneof![
        3 => unit.clone().prop_map(|n| BlockSize::Fixed(n * 512)),
        1 => (unit.clone(), 0u64..9).prop_map(|(n, more)| BlockSize::Range(n * 512, (n + more) * 512)),
        1 => (unit.clone(), unit, 0u32..=100)
            .prop_map(|(a, b, share)| BlockSize::Split(vec![(a * 512, share), (b * 512, 100 - share)])),
    ]
}

fn per_direction<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = PerDirection<T>> {
    let all = value.clone().prop_map(PerDirection::all);
    let each = (value.clone(), value.clone(), value).prop_map(|(r, w, t)| PerDirection::new(r, w, t));
    prop_oneof![2 => all, 1 => each]
}

fn mix() -> impl Strategy<Value = Mix> {
    prop_oneof![
        prop::sample::select(&Direction::ALL[..]).prop_map(Mix::Single),
        (0u32..=100).prop_map(Mix::ReadWrite),
        (0u32..=100, 0u32..=100)
            .prop_map(|(one, other)| { Mix::ReadWriteTrim(one.min(other), one.max(other) - one.min(other)) }),
        Just(Mix::TrimWrite),
    ]
}

prop_compose! {
    fn regions()(
        regions in prop_oneof![
            2 => prop::collection::vec((0u64..100_000, 0u64..200_000), 1..2),
            1 => prop::collection::vec((0u64..100_000, 0u64..60_000), 1..6),
        ],
    ) -> Vec<Region> {
        regions.into_iter().map(|(offset, length)| Region { offset, length }).collect()
    }
}

prop_compose! {
    fn any_spec()(
        files in regions(),
        file_order in prop_oneof![
            prop::sample::select(&[FileOrder::Random, FileOrder::RoundRobin, FileOrder::Sequential][..]),
            law().prop_map(FileOrder::Skewed),
        ],
        (distribution, zones) in (distribution(), prop::option::weighted(0.2, strides())),
        (ios_per_file, open) in (1u64..4, 1usize..6),
        mix in mix(),
        random_percent in per_direction(prop::sample::select(&[0u32, 0, 100, 100, 30][..])),
        sizes in per_direction(block_size().boxed()),
        (align, own_align) in (prop::sample::select(&[1u64, 512, 4096][..]), prop::bool::weighted(0.2)),
        (unaligned, by_randomness, cover, lfsr, identical) in (
            any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.7),
            prop::bool::weighted(0.2), any::<bool>(),
        ),
        skip in prop_oneof![4 => Just(0i64), 1 => -20_000i64..20_000],
        ios_per_random in prop_oneof![4 => Just(1u64), 1 => 2u64..9],
        (pass_bytes, total_ios) in (prop::option::of(0u64..500_000), prop::option::weighted(0.2, 0u64..200)),
        endless in prop::bool::weighted(0.2),
        seed: u64,
    ) -> Spec {
        let align = if own_align { PerDirection::all(align) } else { sizes.clone().map(|size| size.min()) };
        Spec {
            wholes: None,
            open_files: open.min(files.len()),
            files,
            file_order,
            ios_per_file,
            mix,
            random_percent,
            block_size: sizes,
            align,
            unaligned,
            size_by_randomness: by_randomness,
            cover,
            cover_softly: false,
            lfsr,
            distribution,
            zones,
            amounts: Vec::new(),
            device_zones: None,
            precondition: None,
            sequential_skip: skip,
            skip_wraps: true,
            announce_laps: false,
            ios_per_random,
            identical,
            pass_bytes,
            total_ios,
            endless,
            seed,
        }
    }
}

/// Specs for which there is a fast generator.
fn simple_spec() -> impl Strategy<Value = Spec> {
    let percent = prop::option::of(0u32..=100);
    let parts = (any_spec(), 1u64..9, any::<bool>(), percent, any::<bool>(), any::<bool>(), any::<bool>());
    parts.prop_map(|(spec, unit, random, percent, cover, own_align, lfsr)| {
        let size = unit * 512;
        let mut files = spec.files.clone();
        files.truncate(1);
        files[0].length += size;
        Spec {
            files,
            open_files: 1,
            mix: percent.map_or(Mix::Single(Direction::Write), Mix::ReadWrite),
            random_percent: PerDirection::all(if random { 100 } else { 0 }),
            block_size: PerDirection::all(BlockSize::Fixed(size)),
            align: PerDirection::all(if own_align { 512 } else { size }),
            cover,
            lfsr,
            zones: None,
            device_zones: None,
            sequential_skip: 0,
            skip_wraps: true,
            announce_laps: false,
            ios_per_random: 1,
            ..spec
        }
    })
}

/// Several sizes for all I/Os, with the smallest and the largest of them.
fn several_sizes() -> impl Strategy<Value = (BlockSize, u64, u64)> {
    let range = (1u64..5, 1u64..9).prop_map(|(low, more)| {
        let (low, high) = (low * 512, (low + more) * 512);
        (BlockSize::Range(low, high), low, high)
    });
    let split = prop::collection::vec((1u64..9, 0u32..60), 2..5).prop_map(|entries| {
        let entries: Vec<_> = entries.into_iter().map(|(size, share)| (size * 512, share)).collect();
        let size = |entry: &(u64, u32)| entry.0;
        let (low, high) = (entries.iter().map(size).min(), entries.iter().map(size).max());
        (BlockSize::Split(entries), low.unwrap_or(1), high.unwrap_or(1))
    });
    prop_oneof![range, split]
}

/// Specs with one random direction over a map of visited blocks, for which there is a fast generator as well.
fn mapped_spec() -> impl Strategy<Value = Spec> {
    (simple_spec(), several_sizes()).prop_map(|(mut spec, (sizes, smallest, largest))| {
        spec.files[0].length += largest;
        Spec {
            lfsr: false,
            mix: Mix::Single(Direction::Read),
            random_percent: PerDirection::all(100),
            block_size: PerDirection::all(sizes),
            align: PerDirection::all(smallest),
            size_by_randomness: false,
            cover: true,
            distribution: Distribution::Even,
            total_ios: None,
            ..spec
        }
    })
}

const MANY: usize = 3000;

/// All answers of a generator until it is done, at most `limit`.
fn answers(generator: &mut impl Generator, limit: usize) -> Vec<Next> {
    let mut result = Vec::new();
    while result.len() < limit {
        result.push(generator.next());
        if result.last() == Some(&Next::Done) {
            break;
        }
    }
    result
}

fn issued(answers: &[Next]) -> impl Iterator<Item = Io> {
    answers.iter().filter_map(|next| if let Next::Io(io) = next { Some(*io) } else { None })
}

fn sizes_of(spec: &Spec, direction: Direction) -> Vec<BlockSize> {
    let direction = if spec.mix == Mix::TrimWrite { Direction::Trim } else { direction };
    if spec.size_by_randomness {
        vec![spec.block_size[Direction::Read].clone(), spec.block_size[Direction::Write].clone()]
    } else {
        vec![spec.block_size[direction].clone()]
    }
}

fn allowed(spec: &Spec, io: &Io) -> bool {
    // If each byte is visited once, sizes are cut to the gaps.
    let is_cut = |size: &BlockSize| {
        let covers = matches!(coverage::Strategy::of(spec), coverage::Strategy::Bitmap(_));
        covers && io.length < size.max() && io.length.is_multiple_of(size.min().max(1))
    };
    sizes_of(spec, io.direction).iter().any(|size| {
        is_cut(size)
            || match size {
                BlockSize::Fixed(size) => io.length == *size,
                BlockSize::Range(low, high) if spec.unaligned => (*low..=*high).contains(&io.length),
                BlockSize::Range(low, high) => {
                    io.length == *high || (io.length.is_multiple_of(*low) && io.length <= *high)
                }
                BlockSize::Split(entries) => entries.iter().any(|entry| entry.0 == io.length),
            }
    })
}

proptest! {
    #![proptest_config(iolite_testing::properties(600))]

    #[test]
    fn ios_stay_inside_and_have_a_size_that_was_asked_for(spec in any_spec()) {
        let mut generator = iolite_workload::new(&spec).unwrap();
        for io in issued(&answers(&mut generator, MANY)) {
            let region = spec.files[io.file as usize];
            prop_assert!(io.offset >= region.offset, "{io:?}");
            prop_assert!(io.offset + io.length <= region.offset + region.length, "{io:?}");
            prop_assert!(allowed(&spec, &io), "{io:?}");
        }
    }

    #[test]
    fn the_same_spec_gives_the_same_ios_also_when_rewound(spec in any_spec(), before in 0..MANY) {
        let mut generator = iolite_workload::new(&spec).unwrap();
        let first = answers(&mut generator, MANY);
        prop_assert_eq!(&answers(&mut iolite_workload::new(&spec).unwrap(), MANY), &first);
        generator.rewind();
        prop_assert_eq!(&answers(&mut generator, MANY), &first);
        // The same after a restart in the middle.
        generator.restart();
        answers(&mut generator, before);
        generator.rewind();
        prop_assert_eq!(&answers(&mut generator, MANY), &first);
    }

    #[test]
    fn the_choice_of_generator_is_invisible(spec in prop_oneof![simple_spec(), mapped_spec()], before in 0..MANY) {
        // A direction without zones needs the general generator.
        let Some(fast) = fast(&spec) else {
            prop_assert!(matches!(spec.distribution, Distribution::Zones(_)));
            return Ok(());
        };
        let mut fast = AnyGenerator::Fast(fast);
        let mut general = General::new(&spec).unwrap();
        prop_assert_eq!(answers(&mut fast, MANY), answers(&mut general, MANY));
        for _ in 0..2 {
            fast.restart();
            general.restart();
            prop_assert_eq!(answers(&mut fast, before), answers(&mut general, before));
        }
        fast.rewind();
        general.rewind();
        prop_assert_eq!(answers(&mut fast, MANY), answers(&mut general, MANY));
    }

    #[test]
    fn passes_end_when_they_should(spec in any_spec()) {
        let spec = Spec { endless: false, ..spec };
        let mut generator = iolite_workload::new(&spec).unwrap();
        let all = answers(&mut generator, 100_000);
        prop_assert_eq!(all.last(), Some(&Next::Done));
        prop_assert_eq!(generator.next(), Next::Done);
        let counted: Vec<Io> = issued(&all)
            .filter(|io| spec.mix != Mix::TrimWrite || io.direction == Direction::Trim)
            .collect();
        let bytes: u64 = counted.iter().map(|io| io.length).sum();
        let regions = spec.files.iter().map(|region| region.length).sum();
        let limit = spec.pass_bytes.unwrap_or(regions);
        let last = counted.last().map_or(0, |io| io.length);
        prop_assert!(bytes < limit + last.max(1), "not more than one I/O over the limit");
        prop_assert!(spec.total_ios.is_none_or(|total| counted.len() as u64 <= total));
        if spec.mix == Mix::TrimWrite {
            prop_assert_eq!(issued(&all).count(), 2 * counted.len());
        }
    }

    /// With one direction, one size, and coverage or sequential offsets, a pass visits exactly the blocks of all files.
    #[test]
    fn simple_passes_are_complete(
        spec in simple_spec(),
        files in regions(),
        open in 1usize..6,
        lfsr: bool,
    ) {
        let BlockSize::Fixed(size) = spec.block_size[Direction::Read] else { unreachable!() };
        let spec = Spec {
            open_files: open.min(files.len()),
            files,
            mix: Mix::Single(Direction::Read),
            align: PerDirection::all(size),
            cover: true,
            lfsr,
            distribution: Distribution::Even,
            pass_bytes: None,
            total_ios: None,
            endless: false,
            ..spec
        };
        let all = answers(&mut iolite_workload::new(&spec).unwrap(), 100_000);
        let mut visited: Vec<(u32, u64)> = issued(&all).map(|io| (io.file, io.offset)).collect();
        visited.sort_unstable();
        let expected: Vec<(u32, u64)> = (0..)
            .zip(&spec.files)
            .flat_map(|(file, region)| {
                (0..region.length / size).map(move |block| (file, region.offset + block * size))
            })
            .collect();
        prop_assert_eq!(visited, expected);
    }

    /// There are never more files in use than may be open.
    #[test]
    fn closes_make_room(spec in any_spec()) {
        let mut open = std::collections::HashSet::new();
        for next in answers(&mut General::new(&spec).unwrap(), MANY) {
            match next {
                Next::Io(io) => {
                    open.insert(io.file);
                }
                Next::Close(file) => {
                    open.remove(&file);
                }
                Next::Lap | Next::Done | Next::Script(_) => {}
            }
            prop_assert!(open.len() <= spec.open_files);
        }
    }

    #[test]
    fn endless_passes_do_not_end(spec in any_spec()) {
        let spec = Spec { endless: true, ..spec };
        let mut generator = iolite_workload::new(&spec).unwrap();
        let all = answers(&mut generator, MANY);
        // It may be done only if no file has room for the smallest I/O of some direction.
        let largest = spec.block_size.values.iter().map(BlockSize::min).max().unwrap();
        let smallest_region = spec.files.iter().map(|region| region.length).min().unwrap();
        prop_assert!(smallest_region < largest || !all.contains(&Next::Done));
    }
}

#[test]
fn common_workloads_are_fast() {
    let mixed = Spec { mix: Mix::ReadWrite(70), ..random(K * K) };
    let sizes = PerDirection::all(BlockSize::Range(4 * K, 64 * K));
    let ranged = Spec { block_size: sizes, ..random(K * K) };
    let uniform = Spec { cover: false, ..random(K * K) };
    let shifted = Spec { lfsr: true, ..random(K * K) };
    for spec in [spec(K * K), random(K * K), mixed, ranged, uniform, shifted] {
        assert!(fast(&spec).is_some());
    }
    assert!(fast(&files(random(0), 2, K * K)).is_none());
}
