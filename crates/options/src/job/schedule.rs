//! When a job runs, how often, and beside which jobs.

use crate::typed::{ExitWhat, Range};

options! {
    /// When a job runs, how often, and beside which jobs.
    pub struct ScheduleOptions at schedule {
        pub wait_for: Option<String>,
        /// It keeps in step with the same job on the other hosts of a client.
        pub client_barrier: bool,
        pub loops: u64,
        pub numjobs: u32,
        pub thread: bool,
        pub stonewall: bool,
        pub new_group: bool,
        pub exitall: bool,
        pub exitall_on_error: bool,
        pub exit_what: ExitWhat,
        pub startdelay: Option<Range>,
        /// 0 = no limit.
        pub runtime: u64,
        pub time_based: bool,
        pub ramp_time: u64,
        /// Bytes; 0 = none.
        pub ramp_size: u64,
        pub exec_prerun: Option<String>,
        pub exec_postrun: Option<String>,
    }
}
