//! The time and the ramp of a job: when the loop has to decide something.

/// When the loop has to look up from issuing I/O. Times are nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// When something has to be decided: the end of the ramp, or of the job. `u64::MAX` = never.
    pub next_event: u64,
    /// The next event, while the end of the time does not count: a pass that reads back goes on to its end.
    pub put_off: Option<u64>,
    /// When the ramp is over as far as time goes.
    pub ramp_until: u64,
    /// What completes is not counted yet.
    pub ramping: bool,
    /// I/Os until the clock is read, where no time stamps are taken.
    pub until_clock: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { next_event: u64::MAX, put_off: None, ramp_until: 0, ramping: false, until_clock: 0 }
    }
}
