//! Rates, think time, latency targets, and flows.

use crate::typed::{RateProcess, RateSchedule, RateScope, ThinktimeBlocks};
use iolite_types::PerDirection;

options! {
    /// Rates, think time, latency targets, and flows.
    pub struct RateOptions at rates {
        pub thinktime: u64,
        pub thinktime_spin: u64,
        pub thinkcycles: u64,
        pub thinktime_blocks: u64,
        pub thinktime_blocks_type: ThinktimeBlocks,
        /// 0 = pauses depend on the number of I/Os, not on time.
        pub thinktime_iotime: u64,
        /// Bytes per second; 0 = no limit.
        pub rate: PerDirection<u64>,
        /// Bytes per second; 0 = no minimum.
        pub rate_min: PerDirection<u64>,
        pub rate_process: RateProcess,
        /// Rates that change over time; `None` = rates are constant.
        pub rate_schedule: Option<RateSchedule>,
        /// How many times faster the time of the schedule goes.
        pub rate_schedule_speed: u64,
        /// Whether rates apply to each host, or to all hosts of a client together.
        pub rate_scope: RateScope,
        /// Milliseconds.
        pub rate_cycle: u64,
        pub rate_ignore_thinktime: bool,
        /// I/Os per second; 0 = no limit.
        pub rate_iops: PerDirection<u64>,
        /// I/Os per second; 0 = no minimum.
        pub rate_iops_min: PerDirection<u64>,
        /// 0 = no limit.
        pub max_latency: PerDirection<u64>,
        /// 0 = none.
        pub latency_target: u64,
        pub latency_window: u64,
        /// Percent of the I/Os that must keep to the target.
        pub latency_percentile: f64,
        pub latency_run: bool,
        pub flow_id: u32,
        /// The job's weight in its flow; 0 = it is in no flow.
        pub flow: u32,
        pub flow_sleep: u64,
    }
}
