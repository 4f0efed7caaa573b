//! How I/Os are issued, completed and measured; syncs, passes, and the search for a depth.

use crate::Layout;
use iolite_options::engines::{Capability, Data, Facets, UnitKind};
use iolite_options::{DepthOptions, JobOptions, SubmitMode};
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// The fixed parameters of the I/O loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueRules {
    /// Units are pieces of work that are not I/Os ([`UnitKind::Works`]).
    pub works: bool,
    /// Most units in flight.
    pub depth: u32,
    /// Units that are committed together.
    pub batch: u32,
    /// The fewest completions to wait for when the depth is reached; 0 = poll, and look for completions before each
    /// I/O.
    pub complete_min: u32,
    /// Most completions to fetch at once.
    pub complete_max: u32,
    /// The depth to drain to when the depth is reached.
    pub low: u32,
    /// Measure submission latency.
    pub slat: bool,
    /// Units are issued when they are handed to the engine, not when it has sent them ([`Capability::TimeSending`]).
    pub times_sending: bool,
    /// Measure completion latency.
    pub clat: bool,
    /// Measure total latency.
    pub lat: bool,
    /// Keep a histogram of submission latency.
    pub slat_buckets: bool,
    /// Keep a histogram of completion latency.
    pub clat_buckets: bool,
    /// Keep a histogram of total latency.
    pub lat_buckets: bool,
    /// Measure latency from the moment at which an I/O was meant to begin (`lat_from_intended_start`).
    pub intended_starts: bool,
    /// Measure the time to the first byte of an answer: I/Os are requests to a server.
    pub first_bytes: bool,
    /// The directions of the workload, in the order of `Direction::ALL`.
    pub moves: [bool; 3],
    /// Nanoseconds before counting begins.
    pub ramp_ns: u64,
    /// Nanoseconds of counting after which the job ends; `u64::MAX` = no limit.
    pub runtime_ns: u64,
    /// `ENOSPC` ends the job normally.
    pub fill_device: bool,
    /// Do not issue an I/O that overlaps one in flight.
    pub serialize_overlap: bool,
    /// Writes from one write barrier to the next (a write issued with nothing else in flight); 0 = no barriers.
    pub write_barrier: u32,
    /// Ranges of a trim.
    pub ranges: u32,
    /// Latencies affect decisions or are logged, so time is read even when none is reported.
    pub time_decides: bool,
    /// The longest time that an I/O may take, per direction; `u64::MAX` = no limit.
    pub max_latency_ns: [u64; 3],
    /// The longest time that an I/O may be in flight; `u64::MAX` = no limit.
    pub io_timeout_ns: u64,
}

impl IssueRules {
    /// Whether time stamps are taken at all.
    pub fn timed(&self) -> bool {
        self.slat || self.clat || self.lat || self.time_decides
    }

    /// Whether a rule needs the full loop. All fields are named, so that a new rule cannot be forgotten here.
    pub fn need_full_loop(&self) -> bool {
        let IssueRules {
            works,
            serialize_overlap,
            write_barrier,
            max_latency_ns: _,
            io_timeout_ns: _,
            depth: _,
            batch: _,
            complete_min: _,
            complete_max: _,
            low: _,
            slat: _,
            times_sending: _,
            clat: _,
            lat: _,
            slat_buckets: _,
            clat_buckets: _,
            lat_buckets: _,
            intended_starts: _,
            first_bytes: _,
            moves: _,
            ramp_ns: _,
            runtime_ns: _,
            fill_device: _,
            ranges: _,
            time_decides: _,
        } = *self;
        works || serialize_overlap || write_barrier > 0 || self.limits_latency() || self.limits_time()
    }

    /// Whether `io_timeout` is set.
    #[inline(always)]
    pub fn limits_time(&self) -> bool {
        self.io_timeout_ns < u64::MAX
    }

    /// Whether `max_latency` is set for any direction.
    pub fn limits_latency(&self) -> bool {
        self.max_latency_ns.iter().any(|&limit| limit < u64::MAX)
    }
}

/// How many units are submitted and fetched together. No number exceeds the depth.
#[derive(Debug, PartialEq)]
struct Batches {
    batch: u32,
    complete_min: u32,
    complete_max: u32,
    low: u32,
}

impl Batches {
    fn of(options: &DepthOptions) -> Batches {
        let depth = options.iodepth;
        let or_all = |units: u32| if units == 0 { depth } else { units.min(depth) };
        let complete_min = options.iodepth_batch_complete_min.min(depth);
        Batches {
            batch: or_all(options.iodepth_batch),
            complete_min,
            complete_max: options.iodepth_batch_complete_max.clamp(complete_min.max(1), depth),
            low: or_all(options.iodepth_low),
        }
    }
}

pub(super) fn rules(options: &JobOptions, facets: Facets, workload: &iolite_workload::Spec) -> IssueRules {
    let unit = facets.unit;
    let works = unit == UnitKind::Works;
    let acts_in_the_call = facets.name_use().is_some() && facets.is_synchronous();
    let depth = options.depth.iodepth;
    let Batches { batch, complete_min, complete_max, low } = Batches::of(&options.depth);
    // With submitting threads, submission ends when one of them takes the I/O.
    let is_offloaded = options.depth.io_submit_mode == SubmitMode::Offload;
    let has_submission = !facets.can(Capability::Coalesce) && !facets.can(Capability::TimeSending);
    let measurement = &options.measurement;
    let max_latency_ns = options.rates.max_latency.values.map(|limit| match limit {
        0 => u64::MAX,
        limit => limit.saturating_mul(1000),
    });
    IssueRules {
        works,
        depth,
        batch,
        complete_min,
        complete_max,
        low,
        slat: measurement.measures_submissions() && (has_submission || is_offloaded),
        times_sending: facets.can(Capability::TimeSending),
        clat: measurement.measures_completions(),
        // fio reports only the time of the call for operations on names. Through a ring, which fio does not offer for
        // names, submission is a separate step.
        lat: measurement.measures_totals() && !acts_in_the_call,
        slat_buckets: measurement.slat_percentiles,
        // The latency classes of the report come from this histogram, so it is kept in any case.
        clat_buckets: true,
        lat_buckets: measurement.lat_percentiles,
        intended_starts: measurement.lat_from_intended_start,
        first_bytes: measurement.stats && options.has_first_bytes(),
        // The directions of a trace are known only when it is replayed.
        moves: iolite_types::Direction::ALL
            .map(|direction| !works && (options.pattern.rw.uses(direction) || options.is_replay())),
        ramp_ns: options.schedule.ramp_time.saturating_mul(1000),
        runtime_ns: if options.schedule.runtime == 0 {
            u64::MAX
        } else {
            options.schedule.runtime.saturating_mul(1000)
        },
        fill_device: options.extent.fill_device,
        // If two overlapping writes are in flight, it is unknown which one comes last.
        serialize_overlap: depth > 1 && (options.depth.serialize_overlap || needs_order(options, workload)),
        write_barrier: options.durability.write_barrier,
        ranges: options.extent.num_range.max(1),
        time_decides: options.measurement.lat_from_intended_start
            || options.measures_stages()
            || options.schedule.ramp_size > 0
            || options.rates.latency_target > 0
            || max_latency_ns != [u64::MAX; 3]
            || options.errors.io_timeout > 0
            || options.writes_logs(),
        max_latency_ns,
        io_timeout_ns: match options.errors.io_timeout {
            0 => u64::MAX,
            limit => limit.saturating_mul(1000),
        },
    }
}

/// Whether a later write could overtake an earlier one to the same place, or a check of it: then they must not be in
/// flight together.
fn needs_order(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    options.verifies_writes()
        // The write of a block follows its trim.
        && (options.pattern.rw.trims()
            || options.verification.verify_backlog > 0
            || iolite_workload::history::can_repeat(workload))
}

/// Syncs between I/Os and at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRules {
    /// Writes from one fsync to the next; 0 = none.
    pub fsync: u64,
    /// Writes from one fdatasync to the next; 0 = none.
    pub fdatasync: u64,
    /// Writes from one `sync_file_range` to the next; 0 = none.
    pub range: u64,
    /// Sync all files after each pass.
    pub end_fsync: bool,
    /// Sync the file systems below all files at the end.
    pub end_syncfs: bool,
}

pub(super) fn syncs(options: &JobOptions) -> SyncRules {
    SyncRules {
        fsync: u64::from(options.durability.fsync),
        fdatasync: u64::from(options.durability.fdatasync),
        range: options.durability.sync_file_range.map_or(0, |range| range.interval),
        end_fsync: options.durability.end_fsync && options.pattern.rw.changes(),
        end_syncfs: options.durability.end_syncfs,
    }
}

/// The kind of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PassKind {
    /// It performs its workload.
    Perform,
    /// It goes through its workload without I/O, to compute the writes of an earlier run (`verify_only`).
    Assume,
    /// Nothing: a saved state lists the writes of an earlier run (`verify_state_load`).
    Skip,
}

/// The number of passes over the workload, and the actions between two passes and at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassRules {
    /// The kind of its passes.
    pub kind: PassKind,
    /// How many passes, at least 1.
    pub loops: u64,
    /// Passes are repeated until the time is over, whatever `loops` is.
    pub time_based: bool,
    /// There is one pass, whatever `loops` and `time_based` are: it ends when its files have their whole size
    /// (`file_append`).
    pub is_only_one: bool,
    /// Files stay open between passes.
    pub keep_open: bool,
    /// Files are removed and created again between two passes.
    pub unlink_each_loop: bool,
    /// Each pass makes the same random choices.
    pub repeat_choices: bool,
    /// Files are removed at the end.
    pub unlink: bool,
}

pub(super) fn passes(options: &JobOptions, facets: Facets, layout: &Layout) -> PassRules {
    // A saved state is checked once: loops and time belong to the run that left it.
    let repeats = !options.loads_state();
    // A check goes through the workload as often as `loops` says, however long it was written.
    let time_based = options.schedule.time_based && repeats && !options.checks_any_pass();
    let is_only_one = layout.is_appended(options, facets);
    PassRules {
        is_only_one,
        kind: match (options.loads_state(), options.skips_writes()) {
            (true, _) => PassKind::Skip,
            (false, true) => PassKind::Assume,
            (false, false) => PassKind::Perform,
        },
        loops: if repeats && !is_only_one { options.schedule.loops } else { 1 },
        time_based,
        // A connection serves for all passes.
        keep_open: options.schedule.time_based || facets.data == Data::OtherEnd,
        // What an earlier run has written stays there.
        unlink_each_loop: options.files.unlink_each_loop && !options.relies_on_earlier_run(),
        // Strided zones go on, unless their blocks are checked.
        repeat_choices: options.pattern.randrepeat
            && !time_based
            && (!options.walks_through_zones() || options.verification.is_on()),
        unlink: options.files.unlink,
    }
}

/// The search for the depth at which I/Os keep to a latency (`latency_target`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRules {
    /// Nanoseconds that an I/O may take.
    pub target_ns: u64,
    /// Nanoseconds for which a depth is tried, at least 1000.
    pub window_ns: u64,
    /// The share of I/Os that must keep to the target, 0..=1.
    pub share: f64,
    /// The depth follows the storage until the job ends (`latency_run`).
    pub follows: bool,
    /// The largest depth.
    pub most: u32,
}

pub(super) fn target(options: &JobOptions) -> Option<TargetRules> {
    (options.rates.latency_target > 0).then(|| TargetRules {
        target_ns: options.rates.latency_target.saturating_mul(1000),
        // A window of length 0 would end before its first I/O.
        window_ns: options.rates.latency_window.max(1).saturating_mul(1000),
        share: options.rates.latency_percentile / 100.0,
        follows: options.rates.latency_run,
        most: options.depth.iodepth,
    })
}

/// A value for each direction.
pub(super) fn each<T>(mut value: impl FnMut(iolite_types::Direction) -> T) -> PerDirection<T> {
    use iolite_types::Direction::{Read, Trim, Write};
    PerDirection::new(value(Read), value(Write), value(Trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_the_depth() {
        let of = |iodepth, [batch, low, complete_min, complete_max]: [u32; 4]| {
            let options = DepthOptions {
                iodepth,
                iodepth_batch: batch,
                iodepth_low: low,
                iodepth_batch_complete_min: complete_min,
                iodepth_batch_complete_max: complete_max,
                ..DepthOptions::default()
            };
            let Batches { batch, complete_min, complete_max, low } = Batches::of(&options);
            [batch, low, complete_min, complete_max]
        };
        assert_eq!(of(8, [16, 0, 4, 0]), [8, 8, 4, 4]);
        assert_eq!(of(8, [0, 2, 1, 6]), [8, 2, 1, 6]);
        assert_eq!(of(8, [1, 9, 0, 0]), [1, 8, 0, 1]);
        assert_eq!(of(8, [3, 8, 9, 99]), [3, 8, 8, 8]);
    }
}
