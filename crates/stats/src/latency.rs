//! A set of latencies of the same kind.

use crate::histogram::Histogram;
use crate::moments::Moments;
use serde::{Deserialize, Serialize};

/// A latency: moments, and a histogram if one was kept. All in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The count is 0 if it was not measured.
    pub moments: Moments,
    /// Empty if none was kept.
    pub histogram: Histogram,
}

/// The latency of the I/Os of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityLatency {
    /// Priorities are listed in this order: by direction, worker, and position in that worker's list. Merged entries
    /// have the lowest.
    pub order: [u32; 3],
    /// Encoded as in the kernel.
    pub priority: u16,
    /// Completion latency, or total latency if its percentiles were requested.
    pub latency: Latency,
}
