//! When and how often a job runs, and which jobs run at the same time.

use crate::typed::{ExitWhat, Range};

options! {
    /// When and how often a job runs, and which jobs run at the same time.
    pub struct ScheduleOptions at schedule {
        pub wait_for: Option<String>,
        /// Its start, ramp and steady state are coordinated with the same job on the other hosts of a client.
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
