//! Snapshots: where a run stands, told again and again while it goes on.
//!
//! A snapshot has counters that only grow, and no rates: whoever reads snapshots takes the differences of two of them, over
//! whatever time suits. A snapshot that got lost makes nothing wrong.

use crate::Latency;
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Nanoseconds from the start of the run to the moment at which the counters were read.
    pub elapsed_ns: u64,
    /// All workers, in the order of their numbers.
    pub workers: Vec<WorkerSnapshot>,
    /// Share done in percent, where it can be told.
    pub percent: Option<f64>,
    /// Seconds left, where it can be told.
    pub eta_s: Option<u64>,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0, 8 or 1.
    pub unit_base: u32,
}

/// Where a worker stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// The letter of its state, as the status line has it.
    pub state: char,
    /// It runs or is about to.
    pub running: bool,
    /// Files that it has open.
    pub open_files: u32,
    /// The directions that its job uses.
    pub uses: PerDirection<bool>,
    /// The limits of its rates, in all directions that it uses.
    pub limits: RateLimits,
    /// What it has counted.
    pub counters: PerDirection<Counters>,
    /// How often its latencies were forgotten (a ramp was over). Those of two snapshots may be subtracted when this is the
    /// same in both.
    pub resets: u64,
}

/// What a worker has counted in one direction since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Completion latencies, of what was not forgotten.
    pub latency: Latency,
}

/// Limits on rates, summed over directions. 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// Bytes per second below which a worker gives up.
    pub min_bandwidth: u64,
    /// Bytes per second that are not exceeded.
    pub max_bandwidth: u64,
    /// I/Os per second below which a worker gives up.
    pub min_iops: u64,
    /// I/Os per second that are not exceeded.
    pub max_iops: u64,
}
