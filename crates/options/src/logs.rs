//! The options of a job's logs.

use serde::{Deserialize, Serialize};

/// `log_window_value`: what an entry for a window contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogWindow {
    /// The mean.
    Mean,
    /// The maximum.
    Most,
    /// Both.
    Both,
}

/// The options of a job's logs. Field names are option names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the options' own")]
pub struct LogOptions {
    pub per_job_logs: bool,
    /// The prefix of the names of the files; empty = the job's name. `None` = no such log.
    pub write_bw_log: Option<String>,
    pub write_lat_log: Option<String>,
    pub write_iops_log: Option<String>,
    pub write_hist_log: Option<String>,
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
    /// Empty = any.
    pub log_compression_cpus: Vec<u32>,
    pub log_store_compressed: bool,
    pub log_alternate_epoch: bool,
    pub log_alternate_epoch_clock_id: i32,
}

impl LogOptions {
    /// No logs.
    pub(crate) fn none() -> LogOptions {
        LogOptions {
            per_job_logs: false,
            write_bw_log: None,
            write_lat_log: None,
            write_iops_log: None,
            write_hist_log: None,
            log_entries: 0,
            log_avg_msec: 0,
            log_hist_msec: 0,
            log_hist_coarseness: 0,
            log_window_value: LogWindow::Mean,
            log_offset: false,
            log_prio: false,
            log_issue_time: false,
            log_compression: 0,
            log_compression_cpus: Vec::new(),
            log_store_compressed: false,
            log_alternate_epoch: false,
            log_alternate_epoch_clock_id: 0,
        }
    }

    /// Whether there is any log.
    pub fn any(&self) -> bool {
        [&self.write_bw_log, &self.write_lat_log, &self.write_iops_log, &self.write_hist_log]
            .into_iter()
            .any(Option::is_some)
    }
}
