//! A worker's logs: from options to what the log writer understands, and what came of them.

use super::placement::keep_off;
use super::{Stop, Worker};
use crate::clock::Clock;
use crate::message::Message;
use crate::processors;
use crate::sys;
use iolite_logs::{Columns, Form, LogError, Recorder, Settings, WindowValue};
use iolite_options::{LogOptions, LogWindow};
use iolite_plan::logs;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of entries that are compressed together, if it is not said.
const STREAM: usize = 64 << 10;

impl Worker<'_> {
    /// Opens the logs and starts their writer. Before the worker goes to its place: the writer does not take CPUs and
    /// priorities that are meant for the job.
    pub(super) fn start_logs(&self) -> Result<Option<Recorder>, Stop> {
        let options = self.options();
        if !options.logs.any() || options.create_only {
            return Ok(None);
        }
        let clock = self.clock.chosen(options.clocksource);
        let settings = Settings {
            files: logs::files(options, self.plan.index),
            room: if options.is_set("log_entries") {
                options.logs.log_entries as usize
            } else {
                logs::room(self.all.0)
            },
            ..settings(&options.logs, clock)
        };
        let (cpus, reserved) = (options.logs.log_compression_cpus.clone(), self.reserved_cpu);
        let prepare = move || match (&cpus[..], reserved) {
            ([], None) => Ok(()),
            ([], Some(reserved)) => keep_off(reserved).map_err(|error| LogError::new("gtod_cpu", error)),
            (cpus, _) => {
                processors::run_on(cpus).map_err(|error| LogError::new("log_compression_cpus", error))
            }
        };
        let started = Recorder::start(&settings, prepare);
        started.map(Some).map_err(|error| Stop::new(format!("func=log({})", error.what), &error.error))
    }

    /// Writes what is left, and tells for how long the job has waited for its logs.
    pub(super) fn finish_logs(&self, recorder: Option<Recorder>) -> Result<(), Stop> {
        let Some(recorder) = recorder else { return Ok(()) };
        let ended = self.control().ended_ns.load(Relaxed);
        let waited = recorder
            .finish(ended)
            .map_err(|error| Stop::new(format!("func=log({})", error.what), &error.error))?;
        self.control().log_wait_ns.store(waited.as_nanos() as u64, Relaxed);
        if waited.as_millis() > 0 {
            let text = format!(
                "{}: waited {:.3}s for its logs, which were written slower than it went",
                self.options().name,
                waited.as_secs_f64()
            );
            Message::Note(self.number(), text).send(self.messages);
        }
        Ok(())
    }
}

/// What the options say, without files and room.
fn settings(logs: &LogOptions, clock: Clock) -> Settings {
    const MILLISECOND: u64 = 1_000_000;
    let stream = if logs.log_compression == 0 { STREAM } else { logs.log_compression as usize };
    // Where that clock showed zero, on the worker's. That there is one of this number has been seen before.
    let zero = logs
        .log_alternate_epoch
        .then(|| clock.now().wrapping_sub(sys::clock_ns(logs.log_alternate_epoch_clock_id)));
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
        zero,
    }
}
