//! The report: everything that is told at the end of a run (or, as a status dump, on the way), as plain values.

use crate::{Depths, Histogram, IdleReport, Latency, LatencyClasses, PriorityLatency, Samples, SteadyReport};
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// The whole report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Milliseconds since the epoch at which the report was made.
    pub timestamp_ms: u64,
    /// Options that the `[global]` sections gave: name and text.
    pub global_options: Vec<(String, String)>,
    /// One entry for each block that is printed: a worker, or a reporting group's workers merged.
    pub jobs: Vec<JobReport>,
    /// One entry per run status group.
    pub groups: Vec<GroupReport>,
    /// The disks under the files; empty when nothing was measured or `disk_util=0`.
    pub disks: Vec<DiskReport>,
    /// How idle the CPUs were, where that is measured.
    pub idleness: Option<IdleReport>,
}

/// The error that ended a job, or the first of those it went on after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The errno.
    pub errno: i32,
    /// What failed, in the words of the report: `write on file /dev/full at offset 0, length 4096`.
    pub what: String,
}

/// What one of the merged workers tells: the lowest-numbered of those that have something to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct First<T> {
    /// The number of that worker.
    pub worker: u32,
    /// What it tells.
    pub value: T,
}

/// Errors that a job went on after (`continue_on_error`, `ignore_error`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuedErrors {
    /// How many there were.
    pub count: u64,
    /// The errno of the first of them.
    pub first: Option<First<i32>>,
}

impl ContinuedErrors {
    /// The errno of the first error, 0 where there was none.
    pub fn first_errno(&self) -> i32 {
        self.first.map_or(0, |first| first.value)
    }
}

/// Which worker's results these are, and with whose they are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The number of the block in which they are reported. Workers of the same block are reported as one.
    pub block: u32,
    /// The worker's number, which no other worker in the report has; of merged ones the lowest.
    pub worker: u32,
}

/// The measurements of a worker, or of several that are reported as one, and what decides how they are printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// Where it belongs. What is not a sum comes from the lowest-numbered worker.
    pub identity: Identity,
    /// The job's name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The run status group it belongs to.
    pub group: u32,
    /// How many workers are merged here.
    pub members: u32,
    /// The process or thread id (of the first, when merged).
    pub pid: i32,
    /// The error that ended it, of the first of the members that had one.
    pub error: Option<First<JobError>>,
    /// Milliseconds since the epoch at which it started its I/O.
    pub start_ms: u64,
    /// Whole seconds from the start of the run (not the job) to now, at least 1.
    pub elapsed_s: u64,
    /// Seconds left of the run; `None` when it is unknown.
    pub eta_s: Option<u64>,
    /// The options that the job's own section gave: name and text, in order.
    pub options: Vec<(String, String)>,
    /// Per direction.
    pub directions: PerDirection<DirectionReport>,
    /// All directions together, where that is asked for. Derived when reports are merged.
    pub mixed: Option<DirectionReport>,
    /// fsync, fdatasync, sync_file_range and syncfs.
    pub sync: SyncReport,
    /// Wall time of the job, summed over its members, in milliseconds.
    pub job_runtime_ms: u64,
    /// Milliseconds in which its I/O waited for its logs to be written, summed over its members.
    pub log_wait_ms: u64,
    /// CPU and memory.
    pub usage: Usage,
    /// Depth distributions.
    pub depths: Depths,
    /// Latency classes (of completion latency, all directions). Derived when reports are merged.
    pub latency_classes: LatencyClasses,
    /// Errors that it went on after; `None` = it goes on after none.
    pub continued_errors: Option<ContinuedErrors>,
    /// The configured (or, for a latency target, found) depth.
    pub depth: u32,
    /// latency_target in ns, 0 = none.
    pub latency_target_ns: u64,
    /// latency_window in ns, 0 = none.
    pub latency_window_ns: u64,
    /// latency_percentile
    pub latency_percentile: f64,
    /// What became of the blocks of its files, where that was looked at.
    pub blocks: Option<BlockReport>,
    /// What was found of the steady state that was looked for.
    pub steady_state: Option<SteadyReport>,
    /// How much later than their trace says I/Os were issued, in nanoseconds; empty where no trace says when.
    pub lateness: Latency,
    /// How it is to be shown.
    pub display: Display,
}

/// Whether directions are shown apart (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unified {
    /// Each on its own.
    #[default]
    Apart,
    /// All as one.
    Mixed,
    /// Each on its own, then all as one.
    Both,
}

/// How a job's numbers are to be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Display {
    /// 1024 or 1000: which unit comes first.
    pub kb_base: u32,
    /// 0 = automatic, 8 = bytes, 1 = bits.
    pub unit_base: u32,
    /// Significant digits of scaled numbers.
    pub significant_figures: u32,
    /// The percentiles asked for, ascending.
    pub percentiles: Vec<f64>,
    /// Show percentiles of submission latency.
    pub slat_percentiles: bool,
    /// Show percentiles of completion latency.
    pub clat_percentiles: bool,
    /// Show percentiles of total latency.
    pub lat_percentiles: bool,
    /// The engine completes in `queue`: no submission latency is shown. Derived when reports are merged.
    pub synchronous: bool,
    /// Whether directions are shown apart.
    pub unified: Unified,
    /// Latency from the intended start was measured.
    pub intended: bool,
}

impl Default for Display {
    fn default() -> Self {
        Display {
            kb_base: 1024,
            unit_base: 0,
            significant_figures: 4,
            percentiles: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
                99.95, 99.99,
            ],
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            synchronous: true,
            unified: Unified::Apart,
            intended: false,
        }
    }
}

/// What was measured in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Bytes transferred.
    pub bytes: u64,
    /// I/Os completed (the base of IOPS and of the percentages of latency classes).
    pub ios: u64,
    /// I/Os issued, as counted on the `issued rwts` line.
    pub issued: u64,
    /// I/Os that transferred less than asked.
    pub short: u64,
    /// I/Os that were given up.
    pub dropped: u64,
    /// Milliseconds in which this direction ran (the longest of the members); 0 = it did not.
    pub runtime_ms: u64,
    /// Submission latency.
    pub slat: Latency,
    /// Completion latency.
    pub clat: Latency,
    /// Total latency.
    pub lat: Latency,
    /// Latency from when a rate wanted the I/Os to begin, where that was measured.
    pub intended: Latency,
    /// Latency by priority, where I/Os were given different ones.
    pub priorities: Vec<PriorityLatency>,
    /// Bandwidth samples in KiB/s.
    pub bw: Samples,
    /// IOPS samples.
    pub iops: Samples,
}

/// fsync and its relatives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// How many syncs completed.
    pub ios: u64,
    /// Their latency.
    pub lat: Latency,
}

/// What was last done to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BlockState {
    Unwritten = 0,
    Trimmed = 1,
    Written = 2,
    TrimFailed = 3,
    WriteFailed = 4,
}

impl BlockState {
    /// All states, in the order of reports.
    pub const ALL: [BlockState; 5] = {
        use BlockState::{TrimFailed, Trimmed, Unwritten, WriteFailed, Written};
        [Unwritten, Trimmed, Written, TrimFailed, WriteFailed]
    };

    /// The words of reports.
    pub fn name(self) -> &'static str {
        match self {
            BlockState::Unwritten => "unwritten",
            BlockState::Trimmed => "trimmed",
            BlockState::Written => "written",
            BlockState::TrimFailed => "trim failure",
            BlockState::WriteFailed => "write failure",
        }
    }

    /// It failed.
    pub fn is_dead(self) -> bool {
        matches!(self, BlockState::TrimFailed | BlockState::WriteFailed)
    }
}

/// What became of the blocks of a job's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReport {
    /// How many are in each state, in the order of [`BlockState::ALL`].
    pub states: [u64; 5],
    /// How many trims those had lived through that failed.
    pub lifetimes: Histogram,
}

/// What a job cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// User CPU time in milliseconds, summed over members.
    pub user_ms: u64,
    /// System CPU time in milliseconds, summed over members.
    pub system_ms: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// A run status group: the jobs that ran side by side. What they moved is derived when reports are merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Its number.
    pub id: u32,
    /// Per direction, of the jobs that show directions apart.
    pub directions: PerDirection<GroupDirection>,
    /// All directions together, of the jobs that show them so.
    pub mixed: GroupDirection,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0, 8 or 1.
    pub unit_base: u32,
    /// Significant digits.
    pub significant_figures: u32,
}

/// One direction of a run status group. All zero when no job ran in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDirection {
    /// Bytes of all workers.
    pub bytes: u64,
    /// Bytes per second of all together: bytes over the longest run time.
    pub bandwidth: u64,
    /// The slowest worker's bytes per second.
    pub min_bandwidth: u64,
    /// The fastest worker's bytes per second.
    pub max_bandwidth: u64,
    /// The shortest run time in milliseconds.
    pub min_runtime_ms: u64,
    /// The longest run time in milliseconds.
    pub max_runtime_ms: u64,
}

/// What a disk did while the jobs ran (differences of /sys/block/*/stat).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskReport {
    /// The kernel's name of the disk.
    pub name: String,
    /// Its own counters.
    pub counters: DiskCounters,
    /// Utilisation in percent.
    pub utilisation: f64,
    /// For md and dm devices: the disks they are made of.
    pub slaves: Vec<DiskReport>,
}

/// Counters of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the kernel's own names (Documentation/block/stat.rst)")]
pub struct DiskCounters {
    pub read_ios: u64,
    pub write_ios: u64,
    pub read_sectors: u64,
    pub write_sectors: u64,
    pub read_merges: u64,
    pub write_merges: u64,
    pub read_ticks: u64,
    pub write_ticks: u64,
    pub in_queue: u64,
}
