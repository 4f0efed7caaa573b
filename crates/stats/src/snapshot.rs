//! Snapshots: the progress of a run, at intervals while it goes on.
//!
//! A snapshot has cumulative counters and no rates: a reader takes the difference of any two snapshots. A lost
//! snapshot costs nothing.

use crate::Latency;
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Nanoseconds from the start of the run to the moment at which the counters were read.
    pub elapsed_ns: u64,
    /// All workers, in the order of their numbers.
    pub workers: Vec<WorkerSnapshot>,
    /// Percent done, if known.
    pub percent: Option<f64>,
    /// Seconds left, if known.
    pub eta_s: Option<u64>,
    /// 1024 or 1000.
    pub kb_base: u32,
    /// 0, 8 or 1.
    pub unit_base: u32,
}

/// The progress of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// The letter of its state in the status line.
    pub state: char,
    /// It runs, or is about to start.
    pub running: bool,
    /// The number of files that it has open.
    pub open_files: u32,
    /// The directions that its job uses.
    pub uses: PerDirection<bool>,
    /// The limits of its rates, summed over the directions that it uses.
    pub limits: RateLimits,
    /// Its counters.
    pub counters: PerDirection<Counters>,
    /// How often its latencies were cleared (at the end of a ramp). The latencies of two snapshots can be subtracted
    /// if this is the same in both.
    pub resets: u64,
}

/// The counters of one direction since the worker began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Completion latencies since they were last cleared.
    pub latency: Latency,
}

/// Limits on rates; 0 = none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimits {
    /// Bytes per second; a slower worker gives up.
    pub min_bandwidth: u64,
    /// Bytes per second; a worker is not faster.
    pub max_bandwidth: u64,
    /// I/Os per second; a slower worker gives up.
    pub min_iops: u64,
    /// I/Os per second; a worker is not faster.
    pub max_iops: u64,
}
