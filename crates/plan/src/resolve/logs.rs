//! The files that a worker writes in addition to its data: logs and the recording of its I/O.

use crate::{Plan, WorkerPlan, logs};
use iolite_logs::{Columns, Form, Settings, WindowValue};
use iolite_options::{LogOptions, LogWindow};
use serde::{Deserialize, Serialize};

/// Bytes of entries that are compressed together, by default.
const STREAM: usize = 64 << 10;

/// A worker's logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRules {
    /// The settings of its I/O logs. The worker computes `zero` from `epoch`.
    pub entries: Option<Settings>,
    /// The clock whose times are logged; `None` = times count from the beginning.
    pub epoch: Option<i32>,
    /// Where its I/O is recorded (`write_iolog`).
    pub trace: Option<String>,
    /// Entries for which the queue of the recording has room.
    pub room: usize,
    /// The CPUs on which logs are compressed and written; empty = any.
    pub writer_cpus: Vec<u32>,
}

impl LogRules {
    /// Whether anything is logged.
    pub fn any(&self) -> bool {
        self.entries.is_some()
    }
}

pub(super) fn rules(plan: &Plan, worker: &WorkerPlan) -> LogRules {
    let options = &*plan.job_of(worker).options;
    let trace = options.replay.write_iolog.clone();
    if !options.logs.any() && trace.is_none() {
        return LogRules::default();
    }
    let is_given = options.is_set("log_entries");
    let room = if is_given { options.logs.log_entries as usize } else { logs::room(plan) };
    let logs = &options.logs;
    let files = logs::files(options, worker.index);
    LogRules {
        entries: logs.any().then(|| Settings { files, room, ..settings(logs) }),
        epoch: logs.log_alternate_epoch.then_some(logs.log_alternate_epoch_clock_id),
        trace,
        room,
        writer_cpus: logs.log_compression_cpus.clone(),
    }
}

/// The settings according to the options, without files and sizes.
fn settings(logs: &LogOptions) -> Settings {
    const MILLISECOND: u64 = 1_000_000;
    let stream = if logs.log_compression == 0 { STREAM } else { logs.log_compression as usize };
    Settings {
        files: Vec::new(),
        room: 0,
        shared: !logs.per_job_logs,
        columns: Columns {
            offset: logs.log_offset,
            priority: logs.log_prio,
            issue: logs.log_issue_time,
            both: logs.log_window_value == LogWindow::Both,
        },
        average_ns: u64::from(logs.log_avg_msec) * MILLISECOND,
        shown: match logs.log_window_value {
            LogWindow::Mean => WindowValue::Mean,
            LogWindow::Most => WindowValue::Most,
            LogWindow::Both => WindowValue::Both,
        },
        histogram_ns: u64::from(logs.log_hist_msec) * MILLISECOND,
        coarseness: logs.log_hist_coarseness,
        form: match (logs.log_store_compressed, logs.log_compression) {
            (true, _) => Form::Compressed { stream },
            (false, 0) => Form::Text,
            (false, _) => Form::Held { stream },
        },
        zero: None,
    }
}
