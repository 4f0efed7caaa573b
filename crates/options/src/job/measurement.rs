//! Measurements, and how they are reported.

use crate::typed::{ClockSource, SteadyState, UnifiedReporting};

options! {
    /// Measurements, and how they are reported.
    pub struct MeasurementOptions at measurement {
        pub stats: bool,
        pub group_reporting: bool,
        pub clocksource: Option<ClockSource>,
        /// The CPU of the thread that keeps the time for all workers.
        pub gtod_cpu: Option<u32>,
        /// The number of the system clock from which the report takes the start of the job; 0 = the wall clock.
        pub job_start_clock_id: u32,
        pub gtod_reduce: bool,
        pub disable_lat: bool,
        pub disable_clat: bool,
        pub disable_slat: bool,
        pub disable_bw: bool,
        pub clat_percentiles: bool,
        pub lat_percentiles: bool,
        pub slat_percentiles: bool,
        /// In the order in which they were given, at most 100.
        pub percentile_list: Vec<f64>,
        pub unified_rw_reporting: UnifiedReporting,
        pub lat_from_intended_start: bool,
        pub stages: bool,
        pub block_error_percentiles: bool,
        pub steadystate: SteadyState,
        /// 0 = do not wait for a steady state.
        pub steadystate_duration: u64,
        pub steadystate_ramp_time: u64,
        pub steadystate_check_interval: u64,
        pub significant_figures: u32,
        /// 1024 or 1000.
        pub kb_base: u32,
        /// 0 = automatic, 8 = bytes, 1 = bits.
        pub unit_base: u32,
        pub disk_util: bool,
        /// Milliseconds.
        pub bwavgtime: u32,
        /// Milliseconds.
        pub iopsavgtime: u32,
    }
}

impl MeasurementOptions {
    /// The number of the clock from which the start time of the job is taken; `None` = the wall clock.
    pub fn start_clock(&self) -> Option<u32> {
        (self.job_start_clock_id > 0).then_some(self.job_start_clock_id)
    }

    /// Whether submission latencies are measured for the report. (Logs contain them even with `stats=0`.)
    pub fn measures_submissions(&self) -> bool {
        self.stats && !self.disable_slat
    }

    /// Whether completion latencies are measured for the report.
    pub fn measures_completions(&self) -> bool {
        self.stats && !self.disable_clat
    }

    /// Whether total latencies are measured for the report.
    pub fn measures_totals(&self) -> bool {
        self.stats && !self.disable_lat
    }
}
