//! From the options of a job to what the loop understands.

use super::io_loop::Rules;
use super::pace::Pace;
use super::priority::Priorities;
use super::syncs::SyncSchedule;
use iolite_options::JobOptions;

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
