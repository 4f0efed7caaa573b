//! The options of a job's logs.

use serde::{Deserialize, Serialize};

/// `log_window_value`: the value in an entry for a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogWindow {
    /// The mean.
    #[default]
    Mean,
    /// The maximum.
    Most,
    /// Both.
    Both,
}

options! {
    /// The options of a job's logs. Field names are option names.
    pub struct LogOptions at logs {
        pub per_job_logs: bool,
        /// The prefix of the names of the files; empty = the job's name. `None` = no such log.
        pub write_bw_log: Option<String>,
        pub write_lat_log: Option<String>,
        pub write_iops_log: Option<String>,
        pub write_hist_log: Option<String>,
        pub write_asked_log: Option<String>,
        pub write_stages_log: Option<String>,
        pub log_entries: u32,
        /// Milliseconds; 0 = one entry for each I/O.
        pub log_avg_msec: u32,
        /// Milliseconds; 0 = none.
        pub log_hist_msec: u32,
        pub log_hist_coarseness: u32,
        pub log_window_value: LogWindow,
        pub log_offset: bool,
        pub log_prio: bool,
        pub log_issue_time: bool,
        /// Bytes; 0 = not compressed in memory.
        pub log_compression: u32,
        /// Empty = any CPU.
        pub log_compression_cpus: Vec<u32>,
        pub log_store_compressed: bool,
        pub log_alternate_epoch: bool,
        pub log_alternate_epoch_clock_id: i32,
    }
}

impl LogOptions {
    /// Whether the job has any log that its workers write. (Stages are logged by the process that finds them.)
    pub fn any(&self) -> bool {
        let logs = [
            &self.write_bw_log,
            &self.write_lat_log,
            &self.write_iops_log,
            &self.write_hist_log,
            &self.write_asked_log,
        ];
        logs.into_iter().any(Option::is_some)
    }

    /// The options that ask for logs, with their values.
    pub fn prefixes_mut(&mut self) -> [(&'static str, &mut Option<String>); 6] {
        [
            ("write_bw_log", &mut self.write_bw_log),
            ("write_lat_log", &mut self.write_lat_log),
            ("write_iops_log", &mut self.write_iops_log),
            ("write_hist_log", &mut self.write_hist_log),
            ("write_asked_log", &mut self.write_asked_log),
            ("write_stages_log", &mut self.write_stages_log),
        ]
    }
}
