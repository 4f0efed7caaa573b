//! The report at the end of a run (or, as a status dump, during it), as plain values.

use crate::accelerator::AcceleratorReport;
use crate::distribution::{Depths, LatencyClasses};
use crate::facts::Facts;
use crate::histogram::Histogram;
use crate::idle::IdleReport;
use crate::latency::{Latency, PriorityLatency};
use crate::samples::Samples;
use crate::series::Series;
use crate::stages::StageTimes;
use crate::steady::SteadyReport;
use iolite_types::{PerDirection, RunEnd, WRONG_DATA, describe_errno, describe_job_error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The whole report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Milliseconds since the epoch at which the report was made.
    pub timestamp_ms: u64,
    /// Options of the `[global]` sections: name and text.
    pub global_options: Vec<(String, String)>,
    /// One entry for each block to print: a worker, or several that are reported as one.
    pub jobs: Vec<JobReport>,
    /// One entry for each run status group.
    pub groups: Vec<GroupReport>,
    /// The disks under the files; empty if nothing was measured, or with `disk_util=0`.
    pub disks: Vec<DiskReport>,
    /// The idleness of the CPUs, if it was measured.
    pub idleness: Option<IdleReport>,
    /// The run over time, if it was recorded.
    #[serde(default)]
    pub series: Option<Series>,
    /// The machine and the storage of the run, if requested.
    #[serde(default)]
    pub facts: Option<Facts>,
    /// How the run ended; `None` = an interim report.
    #[serde(default)]
    pub end: Option<RunEnd>,
}

/// The error that ended a job, or the first error after which it continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The errno.
    pub errno: i32,
    /// The failed operation, as in the report: `write on file /dev/full at offset 0, length 4096`.
    pub what: String,
}

impl JobError {
    /// The error in words. `as_fio`: in those of fio, which are the operating system's.
    pub fn words(&self, blocks: CheckedBlocks, as_fio: bool) -> String {
        match self.errno {
            errno if as_fio => describe_errno(errno),
            WRONG_DATA if blocks.wrong > 0 => {
                let CheckedBlocks { checked, wrong } = blocks;
                format!(
                    "verification failed: {wrong} of {checked} block{}",
                    if checked == 1 { "" } else { "s" }
                )
            }
            errno => describe_job_error(errno),
        }
    }
}

/// The blocks that were compared with the data written to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedBlocks {
    /// All of them.
    pub checked: u64,
    /// Those that were wrong.
    pub wrong: u64,
}

/// The value of one of several merged workers: of the lowest-numbered that has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct First<T> {
    /// The number of that worker.
    pub worker: u32,
    /// Its value.
    pub value: T,
}

/// Errors after which a job continued (`continue_on_error`, `ignore_error`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuedErrors {
    /// Their number.
    pub count: u64,
    /// The errno of the first of them.
    pub first: Option<First<i32>>,
}

impl ContinuedErrors {
    /// The errno of the first error, 0 if there was none.
    pub fn first_errno(&self) -> i32 {
        self.first.map_or(0, |first| first.value)
    }
}

/// The worker that these results belong to, and the others with which they are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The number of the block that reports them. Workers with the same block are reported as one.
    pub block: u32,
    /// The worker's number, unique within the report; of merged workers, the lowest.
    pub worker: u32,
    /// The same number; of merged workers, the highest.
    pub last: u32,
}

impl Identity {
    /// The identity of a single worker.
    pub fn of(block: u32, worker: u32) -> Identity {
        Identity { block, worker, last: worker }
    }
}

/// The measurements of a worker, or of several that are reported as one, and how they are printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The identity of the job. Values that are not sums come from the lowest-numbered worker, except for `options`.
    pub identity: Identity,
    /// The job's name.
    pub name: String,
    /// The machine that ran it, in a report of several machines.
    #[serde(default)]
    pub host: Option<String>,
    /// Its engine.
    #[serde(default)]
    pub engine: String,
    /// Its description.
    pub description: Option<String>,
    /// Its run status group.
    pub group: u32,
    /// The number of workers merged here.
    pub members: u32,
    /// The process or thread id (of the first worker, if merged).
    pub pid: i32,
    /// The error that ended it, or the first error after which it continued.
    pub error: Option<First<JobError>>,
    /// Milliseconds since the epoch at which it started its I/O.
    pub start_ms: u64,
    /// Whole seconds from the start of the run (not the job) until now, at least 1.
    pub elapsed_s: u64,
    /// Seconds left of the run; `None` if unknown.
    pub eta_s: Option<u64>,
    /// The options of the job's own section: name and text, in order. Of merged workers, those of the highest-numbered,
    /// as with fio.
    pub options: Vec<(String, String)>,
    /// Per direction.
    pub directions: PerDirection<DirectionReport>,
    /// All directions together, if requested. Derived when reports are merged.
    pub mixed: Option<DirectionReport>,
    /// fsync, fdatasync, sync_file_range and syncfs.
    pub sync: SyncReport,
    /// Wall time of the job, summed over its members, in milliseconds.
    pub job_runtime_ms: u64,
    /// The same in nanoseconds.
    #[serde(default)]
    pub job_runtime_ns: u64,
    /// Milliseconds that its I/O spent waiting for its logs, summed over its members.
    pub log_wait_ms: u64,
    /// CPU and memory.
    pub usage: Usage,
    /// Depth distributions.
    pub depths: Depths,
    /// Latency classes (of completion latency, all directions). Derived when reports are merged.
    pub latency_classes: LatencyClasses,
    /// Errors after which it continued; `None` = the job ends at any error.
    pub continued_errors: Option<ContinuedErrors>,
    /// The blocks that were verified.
    pub blocks_checked: CheckedBlocks,
    /// The configured depth or, with a latency target, the depth found.
    pub depth: u32,
    /// The most I/Os that it can have in flight, summed over its members.
    #[serde(default)]
    pub most_in_flight: u64,
    /// latency_target in ns, 0 = none.
    pub latency_target_ns: u64,
    /// latency_window in ns, 0 = none.
    pub latency_window_ns: u64,
    /// latency_percentile
    pub latency_percentile: f64,
    /// The state of the blocks of its files, if it was tracked.
    pub blocks: Option<BlockReport>,
    /// What its accelerator did, if it reads for one (`batch_size`). The first of several workers has it.
    #[serde(default)]
    pub accelerator: Option<AcceleratorReport>,
    /// The steady state, if one was waited for.
    pub steady_state: Option<SteadyReport>,
    /// The blocks of the jobs at the other ends of its connections (`ioengine=net`), if they are a part of the report.
    pub connected: BTreeSet<u32>,
    /// The number of zones reset, if zones are used.
    pub zone_resets: Option<u64>,
    /// How much later than in the trace the I/Os were issued, in nanoseconds; empty if no trace gives times.
    pub lateness: Latency,
    /// The outcome of its requests, if I/Os are requests to a server.
    pub requests: RequestReport,
    /// How it is displayed.
    pub display: Display,
}

/// Requests to a server that were not granted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReport {
    /// Requests that were repeated.
    pub repeated: u64,
    /// Answers that asked for fewer requests (429 and 503).
    pub throttled: u64,
}

/// Whether directions are reported separately (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unified {
    /// Separately.
    #[default]
    Apart,
    /// Together.
    Mixed,
    /// Separately, then together.
    Both,
}

/// How a job's numbers are displayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Display {
    /// 1024 or 1000: the base of the units that come first.
    pub kb_base: u32,
    /// 0 = automatic, 8 = bytes, 1 = bits.
    pub unit_base: u32,
    /// Significant figures of scaled numbers.
    pub significant_figures: u32,
    /// The requested percentiles, ascending.
    pub percentiles: Vec<f64>,
    /// Show percentiles of submission latency.
    pub slat_percentiles: bool,
    /// Show percentiles of completion latency.
    pub clat_percentiles: bool,
    /// Show percentiles of total latency.
    pub lat_percentiles: bool,
    /// The engine completes in `queue`: no submission latency is shown. Derived when reports are merged.
    pub synchronous: bool,
    /// Whether directions are displayed separately.
    pub unified: Unified,
    /// Latency from the intended start was measured.
    pub intended: bool,
    /// I/Os are requests to a server: the time to the first byte of an answer and repetitions are shown.
    pub requests: bool,
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
            requests: false,
        }
    }
}

/// The measurements of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Bytes transferred.
    pub bytes: u64,
    /// I/Os completed (the base of IOPS and of the percentages of latency classes).
    pub ios: u64,
    /// I/Os issued, as counted on the `issued rwts` line.
    pub issued: u64,
    /// I/Os that transferred less than requested.
    pub short: u64,
    /// I/Os that were dropped.
    pub dropped: u64,
    /// Milliseconds during which this direction ran (the longest of the members); 0 = it did not.
    pub runtime_ms: u64,
    /// Submission latency.
    pub slat: Latency,
    /// Completion latency.
    pub clat: Latency,
    /// Total latency.
    pub lat: Latency,
    /// Latency from the time at which a rate intended the I/Os to start, if measured.
    pub intended: Latency,
    /// Time to the first byte of the answers, if I/Os are requests to a server.
    pub first_byte: Latency,
    /// Time from the acknowledgement of writes until requests saw what was written, if that was looked for.
    #[serde(default)]
    pub visible: Latency,
    /// Latency by priority, if I/Os have different ones.
    pub priorities: Vec<PriorityLatency>,
    /// Where the time went, if that was measured.
    #[serde(default)]
    pub stages: Option<Box<StageTimes>>,
    /// Bandwidth samples in KiB/s.
    pub bw: Samples,
    /// IOPS samples.
    pub iops: Samples,
}

/// Syncs: fsync and similar calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReport {
    /// The number of syncs completed.
    pub ios: u64,
    /// Their latency.
    pub lat: Latency,
}

/// The last operation on a block.
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

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            BlockState::Unwritten => "unwritten",
            BlockState::Trimmed => "trimmed",
            BlockState::Written => "written",
            BlockState::TrimFailed => "trim failure",
            BlockState::WriteFailed => "write failure",
        }
    }

    /// Whether the operation failed.
    pub fn is_dead(self) -> bool {
        matches!(self, BlockState::TrimFailed | BlockState::WriteFailed)
    }
}

/// The state of the blocks of a job's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReport {
    /// The number of blocks in each state, in the order of [`BlockState::ALL`].
    pub states: [u64; 5],
    /// The number of trims that blocks survived before they failed.
    pub lifetimes: Histogram,
}

/// The resources that a job used.
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

/// A run status group: jobs that ran side by side. Its amounts and rates are derived when reports are merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// Its number.
    pub id: u32,
    /// Per direction, of the jobs that report directions separately.
    pub directions: PerDirection<GroupDirection>,
    /// All directions together, of the jobs that report them so.
    pub mixed: GroupDirection,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0, 8 or 1.
    pub unit_base: u32,
    /// Significant digits.
    pub significant_figures: u32,
}

/// One direction of a run status group. All zero if no job ran in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDirection {
    /// Bytes of all workers.
    pub bytes: u64,
    /// Bytes per second of all workers: bytes over the longest run time.
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

/// The activity of a disk while the jobs ran (differences of /sys/block/*/stat).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskReport {
    /// The kernel's name for the disk.
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
