//! The time and the ramp of a job: when the loop has to decide something.

use super::waiting::Oversleep;
use iolite_engine::Requests;

/// When the loop has to decide something besides issuing I/O. Times are nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// The end of the ramp, or of the job; `u64::MAX` = never.
    pub next_event: u64,
    /// When to look for I/Os that take too long.
    pub next_overdue: u64,
    /// The next event, postponed while a pass reads back to its end even if the job's time is over.
    pub put_off: Option<u64>,
    /// The earliest end of the ramp.
    pub ramp_until: u64,
    /// The ramp is not over, so completions are not counted.
    pub ramping: bool,
    /// Number of I/Os until the next read of the clock, if there are no time stamps.
    pub until_clock: u32,
    /// Requests to a server that had been made when counting began.
    pub requests_before: Requests,
    /// How long sleeps take.
    pub oversleep: Oversleep,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            next_event: u64::MAX,
            next_overdue: 0,
            put_off: None,
            ramp_until: 0,
            ramping: false,
            until_clock: 0,
            requests_before: Requests::default(),
            oversleep: Oversleep::new(),
        }
    }
}
