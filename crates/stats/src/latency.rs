//! A latency: what was measured of the same kind of time.

use crate::{Histogram, Moments};
use serde::{Deserialize, Serialize};

/// A latency: moments, and a histogram where one was kept. All in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Count 0 when it was not measured.
    pub moments: Moments,
    /// Empty when none was kept.
    pub histogram: Histogram,
}

/// The latency of the I/Os of one priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityLatency {
    /// Priorities are listed in ascending order of this: the direction, the worker, and its place in that worker's list; of
    /// merged ones the lowest.
    pub order: [u32; 3],
    /// As the kernel writes it.
    pub priority: u16,
    /// Completion latency, or total latency where percentiles of that are asked for.
    pub latency: Latency,
}
