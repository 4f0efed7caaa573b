//! A worker's workload: which I/Os it issues, in which order.

use crate::{JobPlan, Layout, ReplayPlan, WorkerPlan};
use iolite_options::engines::Facets;
use iolite_options::{
    FileServiceKind, JobOptions, RandomDistribution, RandomGenerator, ReadWrite, Sequencer, SizeValue,
    SkewLaw,
};
use iolite_trace::Blocks;
use iolite_types::{Direction, PerDirection};
use iolite_workload::{BlockSize, Distribution, FileOrder, Mix, Region, StridedZones, Zone, ZoneSize};

/// The worker's workload, from its options and files, or from its trace.
pub(crate) fn workload_spec(job: &JobPlan, worker: &WorkerPlan, layout: &Layout) -> iolite_workload::Spec {
    let workload = generated(&job.options, job.engine.facets, layout, worker.seed);
    match &worker.replay {
        Some(replay) => replayed(replay, workload),
        None => workload,
    }
}

/// A trace described as a workload: it may write anywhere, repeatedly, in blocks of these sizes.
fn replayed(replay: &ReplayPlan, workload: iolite_workload::Spec) -> iolite_workload::Spec {
    iolite_workload::Spec {
        // The trace decides when files are opened.
        open_files: 0,
        mix: Mix::Single(Direction::Write),
        block_size: per_direction(|direction| replayed_sizes(replay, direction)),
        align: per_direction(|direction| replay.blocks[direction].step.max(1)),
        unaligned: replay.is_live,
        size_by_randomness: false,
        cover: false,
        distribution: Distribution::Even,
        zones: None,
        device_zones: None,
        precondition: None,
        sequential_skip: 0,
        identical: false,
        total_ios: None,
        endless: true,
        ..workload
    }
}

/// The I/O sizes of a trace in one direction: the smallest, the largest, and a third one, so that their greatest common
/// divisor is that of all sizes.
pub(crate) fn replayed_sizes(replay: &ReplayPlan, direction: Direction) -> BlockSize {
    let Blocks { smallest, largest, common, .. } = replay.blocks[direction];
    match direction {
        // They need no buffers.
        Direction::Trim => BlockSize::Fixed(1),
        _ if replay.is_live => BlockSize::Range(1, replay.largest),
        _ if largest == 0 => BlockSize::Fixed(replay.largest),
        _ if smallest == largest => BlockSize::Fixed(largest),
        _ => BlockSize::Split(vec![(smallest, 0), (smallest + common, 0), (largest, 0)]),
    }
}

fn generated(options: &JobOptions, facets: Facets, layout: &Layout, seed: u64) -> iolite_workload::Spec {
    let rw = options.pattern.rw;
    let mix = match rw {
        ReadWrite::Read | ReadWrite::RandRead => Mix::Single(Direction::Read),
        ReadWrite::Write | ReadWrite::RandWrite => Mix::Single(Direction::Write),
        ReadWrite::Trim | ReadWrite::RandTrim => Mix::Single(Direction::Trim),
        ReadWrite::Rw | ReadWrite::RandRw => Mix::ReadWrite(options.pattern.rwmixread),
        ReadWrite::RwTrim | ReadWrite::RandRwTrim => {
            let shares = options.mix().unwrap_or_default();
            Mix::ReadWriteTrim(shares[Direction::Read], shares[Direction::Write])
        }
        ReadWrite::TrimWrite | ReadWrite::RandTrimWrite => Mix::TrimWrite,
    };
    let random = rw.is_random();
    let size_by_randomness = options.mixes_sizes_by_randomness();
    let block_size = per_direction(|direction| match size_by_randomness {
        true => options.block_size_as_given(direction),
        false => options.block_size(direction),
    });
    let modifier = options.pattern.rw_modifier.0;
    let count = layout.count();
    let is_appended = layout.is_appended(options, facets);
    iolite_workload::Spec {
        files: layout.files.iter().map(|file| Region { offset: file.offset, length: file.length }).collect(),
        wholes: layout.named.as_ref().map(|named| iolite_workload::Wholes {
            count: named.names.len() as u32,
            sizes: named.counted,
            repeat: named.name_use.is_repeatable(),
        }),
        file_order: match options.files.file_service_type.kind {
            FileServiceKind::Random => FileOrder::Random,
            FileServiceKind::RoundRobin => FileOrder::RoundRobin,
            FileServiceKind::Sequential => FileOrder::Sequential,
            FileServiceKind::Skewed(law) => FileOrder::Skewed(skew(law)),
        },
        ios_per_file: options.files.file_service_type.ios.max(1),
        open_files: if options.files.openfiles == 0 {
            count
        } else {
            (options.files.openfiles as usize).min(count)
        },
        mix,
        random_percent: if random { options.pattern.percentage_random } else { PerDirection::all(0) },
        align: per_direction(|direction| match options.pattern.ba[direction] {
            // Without a map, the block size given for the direction is the alignment, even with `bs_is_seq_rand` (as
            // with fio).
            0 if options.pattern.norandommap => options.block_size_as_given(direction).min(),
            0 => block_size[direction].min(),
            align => align,
        }),
        block_size,
        unaligned: options.pattern.bs_unaligned,
        size_by_randomness,
        cover: !options.pattern.norandommap,
        cover_softly: options.pattern.softrandommap,
        lfsr: options.pattern.random_generator == RandomGenerator::Lfsr,
        distribution: distribution(options),
        zones: strided_zones(options),
        amounts: match options.walks_through_zones() {
            true => layout.files.iter().map(|file| file.amount).collect(),
            false => Vec::new(),
        },
        device_zones: layout.files.iter().find_map(|file| Some(file.zoned?.size)),
        precondition: options.pattern.sprandom.then(|| iolite_workload::Precondition {
            over_provisioning: options.pattern.spr_op,
            regions: u64::from(options.pattern.spr_num_regions),
        }),
        sequential_skip: if random { 0 } else { modifier },
        skip_wraps: layout.files.iter().all(|file| file.is_whole),
        // The page cache is dropped before each lap, or later laps would measure the cache.
        announce_laps: options.files.invalidate && !options.durability.direct && facets.has_local_files(),
        ios_per_random: if random { modifier.max(1) as u64 } else { 1 },
        identical: options.pattern.rw_sequencer == Sequencer::Identical,
        pass_bytes: layout.pass_bytes,
        total_ios: match options.extent.number_ios {
            0 => None,
            // All passes are one.
            _ if is_appended && options.schedule.time_based => None,
            ios if is_appended => Some(ios.saturating_mul(options.schedule.loops)),
            ios => Some(ios),
        },
        // One long pass, so actions between passes (`end_fsync`, `unlink_each_loop`) happen once or not at all (as with
        // fio).
        endless: options.schedule.time_based && !options.checks_any_pass() && !is_appended,
        seed,
    }
}

fn skew(skew: iolite_options::Skew) -> iolite_workload::Skew {
    use iolite_workload::Law;
    let law = match skew.law {
        SkewLaw::Zipf => Law::Zipf(skew.value),
        SkewLaw::Pareto => Law::Pareto(skew.value),
        SkewLaw::Normal => Law::Normal(skew.value),
    };
    iolite_workload::Skew { law, centre: skew.centre }
}

fn distribution(options: &JobOptions) -> Distribution {
    match &options.pattern.random_distribution {
        RandomDistribution::Random => Distribution::Even,
        RandomDistribution::Skewed(law) => Distribution::Skewed(skew(*law)),
        RandomDistribution::Zoned(zones) => Distribution::Zones(per_direction(|direction| {
            let zone = |zone: &iolite_options::ZoneShare| Zone {
                share: zone.share,
                size: match zone.size {
                    SizeValue::Bytes(bytes) => ZoneSize::Bytes(bytes),
                    SizeValue::Percent(percent) => ZoneSize::Percent(f64::from(percent)),
                    // (Only sizes of files are in zones.)
                    SizeValue::Zones(zones) => ZoneSize::Bytes(zones.into()),
                },
            };
            zones[direction].iter().map(zone).collect()
        })),
        RandomDistribution::Sequence(blocks) => {
            Distribution::Sequence { blocks: blocks.clone(), stride: options.pattern.random_sequence_stride }
        }
    }
}

fn strided_zones(options: &JobOptions) -> Option<StridedZones> {
    options.walks_through_zones().then(|| StridedZones {
        size: options.zones.zonesize,
        range: options.zones.zonerange,
        skip: options.zones.skipped(options.zones.zonesize),
    })
}

fn per_direction<T>(mut value: impl FnMut(Direction) -> T) -> PerDirection<T> {
    PerDirection::new(value(Direction::Read), value(Direction::Write), value(Direction::Trim))
}
