//! What engines share whose units a server or a library completes later.
//!
//! | an engine whose … | uses |
//! |---|---|
//! | library completes units on its own threads | `tickets`, over `completions` |
//! | library starts threads | `library_threads`: their CPU time is the job's |
//! | connections make progress only while the worker drives them | `engine-servers/src/driven_by_worker.rs` |
//! | server may fall silent | `engine-servers/src/server_timeout.rs` |

pub mod completions;
pub mod library_threads;
pub mod tickets;

pub use self::completions::{Completer, Completions};
pub use self::library_threads::threads_started_by;
pub use self::tickets::{has_lent_memory, lend_memory};

use crate::StageEnds;
use iolite_os::time::monotonic_ns;
use std::time::Instant;

/// The stages of a unit whose answer arrived at this time (`CLOCK_MONOTONIC`); `None` = none did (0).
pub fn answered_at(ns: u64) -> Option<StageEnds> {
    (ns > 0).then_some([0, ns, 0, 0])
}

/// Turns times of the standard library into `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    instant: Instant,
    ns: u64,
}

impl MonotonicClock {
    /// Reads both clocks.
    pub fn now() -> Self {
        // The two are read one after the other, and anything may come between.
        const TRIES: usize = 8;
        let tries = (0..TRIES).map(|_| {
            let (before, instant, after) = (monotonic_ns(), Instant::now(), monotonic_ns());
            (after - before, MonotonicClock { instant, ns: before.midpoint(after) })
        });
        tries.min_by_key(|(between, _)| *between).expect("there are some").1
    }

    /// A time after this value was made, in nanoseconds.
    pub fn ns(&self, time: Instant) -> u64 {
        self.ns + time.saturating_duration_since(self.instant).as_nanos() as u64
    }
}
