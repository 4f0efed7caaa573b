//! From the options of a job to what the loop and the workload understand.

use super::io_loop::Rules;
use super::pace::Pace;
use super::priority::Priorities;
use super::syncs::SyncSchedule;
use iolite_options::{
    FileServiceKind, JobOptions, RandomDistribution, RandomGenerator, ReadWrite, Sequencer, SizeValue,
    SkewLaw, ZoneMode, ZoneSkip,
};
use iolite_plan::{JobPlan, Layout, ReplayPlan, WorkerPlan};
use iolite_trace::Blocks;
use iolite_types::{Direction, PerDirection};
use iolite_workload::{BlockSize, Distribution, FileOrder, Mix, Region, StridedZones, Zone, ZoneSize};

/// Whether the job needs anything that the plain loop leaves out.
pub(super) fn needs_full_loop(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    !sync_schedule(options).is_empty()
        || options.write_iolog.is_some()
        || options.write_barrier > 0
        || (options.serialize_overlap && options.iodepth > 1)
        || options.lockfile != iolite_options::LockFile::None
        || workload.open_files < workload.files.len()
        || options.max_latency.values.iter().any(|&limit| limit > 0)
        || Pace::new(options, 1).is_some()
        || options.latency_target > 0
        // Only a full loop tells about single I/Os.
        || tracing::enabled!(target: "io", tracing::Level::TRACE)
        || tracing::enabled!(target: "random", tracing::Level::TRACE)
        || Priorities::new(options, 1).is_some()
        || options.flow > 0
        || options.block_error_percentiles
        || options.ramp_size > 0
        || options.logs.any()
        || options.verification.is_on()
        || options.verify_only
}

/// Whether the job ends after a number of I/Os, of which those of its ramp are none.
pub fn counts_after_ramp(options: &JobOptions) -> bool {
    options.number_ios > 0 && (options.ramp_time > 0 || options.ramp_size > 0)
}

pub(super) fn sync_schedule(options: &JobOptions) -> SyncSchedule {
    let range = options.sync_file_range.map_or(0, |range| range.interval);
    SyncSchedule::new(u64::from(options.fsync), u64::from(options.fdatasync), range)
}

pub(super) fn rules(options: &JobOptions, workload: &iolite_workload::Spec) -> Rules {
    let depth = options.iodepth.max(1);
    let complete_min = options.iodepth_batch_complete_min.min(depth);
    let complete_max = match options.iodepth_batch_complete_max {
        0 => complete_min.max(1),
        max => max.clamp(complete_min.max(1), depth.max(complete_min)),
    };
    let measured = |disabled: bool| !disabled && options.stats;
    Rules {
        depth,
        batch: options.iodepth_batch.clamp(1, depth),
        complete_min,
        complete_max,
        low: if options.iodepth_low == 0 { depth } else { options.iodepth_low.min(depth) },
        slat: measured(options.disable_slat),
        clat: measured(options.disable_clat),
        lat: measured(options.disable_lat),
        slat_buckets: options.slat_percentiles,
        // The latency classes of the report come from this histogram, so it is kept in any case.
        clat_buckets: true,
        lat_buckets: options.lat_percentiles,
        // What a trace does is not known before it is done.
        moves: [options.rw.reads(), options.rw.writes(), options.rw.trims()]
            .map(|moves| moves || !options.read_iolog.is_empty()),
        ramp_ns: options.ramp_time.saturating_mul(1000),
        runtime_ns: if options.runtime == 0 { u64::MAX } else { options.runtime.saturating_mul(1000) },
        fill_device: options.fill_device,
        // Of two overlapping writes in flight nobody knows which one is the last.
        serialize_overlap: depth > 1
            && (options.serialize_overlap || super::verify::needs_order(options, workload)),
        write_barrier: options.write_barrier,
        time_decides: options.lat_from_intended_start
            || options.ramp_size > 0
            || options.latency_target > 0
            || options.max_latency.values.iter().any(|&limit| limit > 0)
            || options.logs.any(),
        max_latency_ns: options.max_latency.values.map(|limit| match limit {
            0 => u64::MAX,
            limit => limit.saturating_mul(1000),
        }),
    }
}

/// The worker's workload, from its options and files, or from its trace.
pub(super) fn workload_spec(job: &JobPlan, worker: &WorkerPlan, layout: &Layout) -> iolite_workload::Spec {
    let workload = generated(&job.options, job.engine.diskless, layout, worker.seed);
    match &worker.replay {
        Some(replay) => replayed(replay, workload),
        None => workload,
    }
}

/// What can be said of a trace in the terms of a workload: it may write anywhere again, in blocks of these sizes.
fn replayed(replay: &ReplayPlan, workload: iolite_workload::Spec) -> iolite_workload::Spec {
    iolite_workload::Spec {
        // The trace says when files are opened.
        open_files: 0,
        mix: Mix::Single(Direction::Write),
        block_size: per_direction(|direction| replayed_sizes(replay, direction)),
        align: per_direction(|direction| replay.blocks[direction].step.max(1)),
        unaligned: replay.is_live,
        size_by_randomness: false,
        cover: false,
        distribution: Distribution::Even,
        zones: None,
        precondition: None,
        sequential_skip: 0,
        identical: false,
        total_ios: None,
        endless: true,
        ..workload
    }
}

/// The sizes of the I/Os of a direction of a trace: the smallest, the largest, and one so that what divides them all
/// divides these.
pub(super) fn replayed_sizes(replay: &ReplayPlan, direction: Direction) -> BlockSize {
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

fn generated(options: &JobOptions, diskless: bool, layout: &Layout, seed: u64) -> iolite_workload::Spec {
    let rw = options.rw;
    let mix = match rw {
        ReadWrite::Read | ReadWrite::RandRead => Mix::Single(Direction::Read),
        ReadWrite::Write | ReadWrite::RandWrite => Mix::Single(Direction::Write),
        ReadWrite::Trim | ReadWrite::RandTrim => Mix::Single(Direction::Trim),
        ReadWrite::Rw | ReadWrite::RandRw => Mix::ReadWrite(options.rwmixread),
        ReadWrite::TrimWrite | ReadWrite::RandTrimWrite => Mix::TrimWrite,
    };
    let random = rw.is_random();
    let block_size = per_direction(|direction| block_size(options, direction));
    let modifier = options.rw_modifier.0;
    let count = layout.files.len();
    iolite_workload::Spec {
        files: layout.files.iter().map(|file| Region { offset: file.offset, length: file.length }).collect(),
        file_order: match options.file_service_type.kind {
            FileServiceKind::Random => FileOrder::Random,
            FileServiceKind::RoundRobin => FileOrder::RoundRobin,
            FileServiceKind::Sequential => FileOrder::Sequential,
            FileServiceKind::Skewed(law) => FileOrder::Skewed(skew(law)),
        },
        ios_per_file: options.file_service_type.ios.max(1),
        open_files: if options.openfiles == 0 { count } else { (options.openfiles as usize).min(count) },
        mix,
        random_percent: if random { options.percentage_random } else { PerDirection::all(0) },
        align: per_direction(|direction| match options.ba[direction] {
            0 => block_size[direction].min(),
            align => align,
        }),
        block_size,
        unaligned: options.bs_unaligned,
        size_by_randomness: options.bs_is_seq_rand,
        cover: !options.norandommap,
        cover_softly: options.softrandommap,
        lfsr: options.random_generator == RandomGenerator::Lfsr,
        distribution: distribution(options),
        zones: strided_zones(options),
        precondition: options.sprandom.then(|| iolite_workload::Precondition {
            over_provisioning: options.spr_op,
            cache: options.spr_cs,
            regions: u64::from(options.spr_num_regions),
        }),
        sequential_skip: if random { 0 } else { modifier },
        skip_wraps: layout.files.iter().all(|file| file.is_whole),
        // What the page cache holds is dropped before each lap, or later laps would measure the cache.
        announce_laps: options.invalidate && !options.direct && !diskless,
        ios_per_random: if random { modifier.max(1) as u64 } else { 1 },
        identical: options.rw_sequencer == Sequencer::Identical,
        pass_bytes: layout.pass_bytes,
        total_ios: (options.number_ios > 0).then_some(options.number_ios),
        // One long pass, so what happens between passes (`end_fsync`, `unlink_each_loop`) happens once or not at all
        // (as with fio).
        endless: options.time_based,
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
    match &options.random_distribution {
        RandomDistribution::Random => Distribution::Even,
        RandomDistribution::Skewed(law) => Distribution::Skewed(skew(*law)),
        RandomDistribution::Zoned(zones) => Distribution::Zones(per_direction(|direction| {
            let zone = |zone: &iolite_options::ZoneShare| Zone {
                share: zone.share,
                size: match zone.size {
                    SizeValue::Bytes(bytes) => ZoneSize::Bytes(bytes),
                    SizeValue::Percent(percent) => ZoneSize::Percent(f64::from(percent)),
                },
            };
            zones[direction].iter().map(zone).collect()
        })),
        RandomDistribution::Sequence(blocks) => {
            Distribution::Sequence { blocks: blocks.clone(), stride: options.random_sequence_stride }
        }
    }
}

fn strided_zones(options: &JobOptions) -> Option<StridedZones> {
    (options.zonemode == ZoneMode::Strided).then(|| StridedZones {
        size: options.zonesize,
        range: options.zonerange,
        skip: match options.zoneskip {
            ZoneSkip::Bytes(bytes) => bytes,
            ZoneSkip::Zones(zones) => options.zonesize.saturating_mul(u64::from(zones)),
        },
    })
}

fn per_direction<T>(mut value: impl FnMut(Direction) -> T) -> PerDirection<T> {
    PerDirection::new(value(Direction::Read), value(Direction::Write), value(Direction::Trim))
}

/// The sizes of the I/Os of a direction.
pub fn block_size(options: &JobOptions, direction: Direction) -> BlockSize {
    if let Some(split) = &options.bssplit
        && !split[direction].is_empty()
    {
        return BlockSize::Split(split[direction].iter().map(|entry| (entry.size, entry.percent)).collect());
    }
    match &options.bsrange {
        Some(range) if range[direction].low != range[direction].high => {
            BlockSize::Range(range[direction].low, range[direction].high)
        }
        Some(range) => BlockSize::Fixed(range[direction].low),
        None => BlockSize::Fixed(options.bs[direction]),
    }
}
