//! Latency by I/O priority, in shared memory: a small table whose keys are known before the first I/O.

use super::{LiveLatency, Word};
use crate::latency::PriorityLatency;
use iolite_types::Direction;

/// The most priorities that are distinguished per worker and direction.
pub const MOST_PRIORITIES: usize = 16;

/// A latency per priority.
#[derive(Debug)]
#[repr(C)]
pub struct LivePriorities {
    /// The priority plus one; 0 = this entry and those after it are unused.
    keys: [Word; MOST_PRIORITIES],
    latencies: [LiveLatency; MOST_PRIORITIES],
}

impl LivePriorities {
    /// Sets the priorities. Those beyond the table's size are not recorded.
    pub fn prepare(&self, priorities: impl Iterator<Item = u16>) {
        for (key, priority) in self.keys.iter().zip(priorities) {
            key.set(u64::from(priority) + 1);
        }
    }

    /// Adds the latency of an I/O of this priority.
    pub fn record(&self, priority: u16, latency: u64) {
        let wanted = u64::from(priority) + 1;
        if let Some(place) = self.keys.iter().position(|key| key.get() == wanted) {
            self.latencies[place].record(latency);
            self.latencies[place].record_bucket(latency);
        }
    }

    /// The priorities that occurred. They belong to this worker in this direction.
    pub fn read(&self, direction: Direction, worker: u32) -> Vec<PriorityLatency> {
        let used = self.keys.iter().zip(&self.latencies).take_while(|(key, _)| key.get() != 0);
        let seen = (0..).zip(used).filter(|(_, (_, latency))| latency.count() > 0);
        seen.map(|(place, (key, latency))| PriorityLatency {
            order: [direction as u32, worker, place],
            priority: u16::try_from(key.get() - 1).unwrap_or(u16::MAX),
            latency: latency.read(),
        })
        .collect()
    }

    /// Clears the latencies, and keeps the priorities.
    pub(super) fn reset(&self) {
        let used = self.keys.iter().zip(&self.latencies).take_while(|(key, _)| key.get() != 0);
        used.for_each(|(_, latency)| latency.reset());
    }
}
