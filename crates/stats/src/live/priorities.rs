//! Latency by I/O priority, in shared memory: a small table whose keys are known before the first I/O.

use super::{LiveLatency, Word};
use crate::PriorityLatency;
use iolite_types::Direction;

/// Priorities that are told apart in each direction of a worker.
pub const MOST_PRIORITIES: usize = 16;

/// One latency per priority.
#[derive(Debug)]
#[repr(C)]
pub struct LivePriorities {
    /// The priority plus one; 0 = this place is not used, and neither are those behind it.
    keys: [Word; MOST_PRIORITIES],
    latencies: [LiveLatency; MOST_PRIORITIES],
}

impl LivePriorities {
    /// Says which priorities there are. What does not find a place is not recorded.
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

    /// Those of which I/Os were seen. They are the ones of this worker in this direction.
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

    /// Forgets the latencies, and keeps the priorities.
    pub(super) fn reset(&self) {
        let used = self.keys.iter().zip(&self.latencies).take_while(|(key, _)| key.get() != 0);
        used.for_each(|(_, latency)| latency.reset());
    }
}
