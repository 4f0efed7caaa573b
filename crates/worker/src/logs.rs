//! A worker's logs and its recording: starting their writers, and finishing them.

use super::files::FileTable;
use super::placement::keep_off;
use super::record::TraceRecorder;
use super::{Stop, Worker};
use iolite_logs::{Demand, Job, JobSigns, LogError, Outlet, Recorder, Settings};
use iolite_os::message::Message;
use iolite_os::processors;
use iolite_os::shared::{Arena, Control};
use iolite_os::time;
use iolite_types::Direction;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::Duration;

/// The files that are written while a job runs.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// The job's logs.
    pub entries: Option<Recorder>,
    /// The recording of the job's I/O.
    pub trace: Option<TraceRecorder>,
}

impl Worker<'_> {
    /// Opens the logs and starts their writers. This happens before the job's placement is applied, so that the writers
    /// do not inherit the job's CPUs and priorities.
    pub(super) fn start_logs(&self) -> Result<Logs, Stop> {
        let rules = &self.resolved.logs;
        let mut started = Logs::default();
        if let Some(settings) = &rules.entries {
            // The worker's time at which the other clock showed zero. The plan has checked that the other clock exists.
            let zero = rules.epoch.map(|clock| self.own_clock().now().wrapping_sub(time::clock_ns(clock)));
            let settings = Settings { zero, ..settings.clone() };
            let entries = Recorder::start(&settings, &self.job_of_logs(), self.place_of_writers())
                .map_err(|error| self.not_opened("log", &error))?;
            started.entries = Some(match self.demand() {
                Some(demand) => entries.with_demand(&settings, demand),
                None => entries,
            });
        }
        if let Some(path) = &rules.trace {
            let outlet = Outlet::open(path.as_ref(), true, &self.job_of_logs())
                .map_err(|error| self.not_opened("write_iolog", &LogError::new(path, error)))?;
            let trace = TraceRecorder::start(path, outlet, self.clock, rules.room, self.place_of_writers());
            started.trace = Some(trace.map_err(|error| failed("write_iolog", &error))?);
        }
        Ok(started)
    }

    /// What its schedule of rates asks for.
    fn demand(&self) -> Option<Demand> {
        let pace = self.resolved.pace.as_ref()?;
        let course = pace.schedule.clone()?;
        let directions = Direction::ALL.into_iter().filter(|direction| pace.limits[*direction].is_some());
        Some(Demand { until: Box::new(move |ns| course.until(ns)), directions: directions.collect() })
    }

    /// This worker, as seen by the threads that write its logs.
    fn job_of_logs(&self) -> Job {
        Job::new(Signs { arena: Arc::clone(self.arena), worker: self.resolved.index })
    }

    /// A log cannot be opened. If the job was asked to stop, the cause may be a pipe without a reader.
    fn not_opened(&self, function: &str, error: &LogError) -> Stop {
        if error.error.raw_os_error() == Some(libc::EINTR) {
            let name = &self.resolved.name;
            let text = format!("{name}: did not begin, because nothing reads from the pipe {}", error.what);
            Message::Note(self.number(), text).send(self.messages);
        }
        failed(function, error)
    }

    /// A function that a writer's thread calls first: it moves the thread to the CPUs for log writers.
    fn place_of_writers(&self) -> impl FnOnce() -> Result<(), LogError> + Send + 'static {
        let cpus = self.resolved.logs.writer_cpus.clone();
        let reserved = self.resolved.placement.reserved_cpu;
        move || match (&cpus[..], reserved) {
            ([], None) => Ok(()),
            ([], Some(reserved)) => keep_off(reserved).map_err(|error| LogError::new("gtod_cpu", error)),
            (cpus, _) => {
                processors::run_on(cpus).map_err(|error| LogError::new("log_compression_cpus", error))
            }
        }
    }

    /// Finishes the logs and notes how long the job has waited for them.
    pub(super) fn finish_logs(&self, recorder: Option<Recorder>) -> Result<(), Stop> {
        let Some(recorder) = recorder else { return Ok(()) };
        let ended = self.control().ended_ns.load(Relaxed);
        let waited = recorder.finish(ended).map_err(|error| failed("log", &error))?;
        self.note_wait(waited, "logs, which were");
        Ok(())
    }

    /// Finishes the recording.
    pub(super) fn finish_recording(&self, files: &mut FileTable) -> Result<(), Stop> {
        let waited = files.finish_recording().map_err(|error| failed("write_iolog", &error))?;
        self.note_wait(waited, "recording (write_iolog), which was");
        Ok(())
    }

    /// Adds up how long the job has waited for its logs.
    fn note_wait(&self, waited: Duration, what: &str) {
        let total = &self.control().log_wait_ns;
        total.store(total.load(Relaxed) + waited.as_nanos() as u64, Relaxed);
        if waited.as_millis() > 0 {
            let (name, seconds) = (&self.resolved.name, waited.as_secs_f64());
            let text = format!("{name}: waited {seconds:.3}s for its {what} written more slowly than it ran");
            Message::Note(self.number(), text).send(self.messages);
        }
    }
}

/// The signs between a worker's controller and the threads that write its logs.
struct Signs {
    arena: Arc<Arena>,
    worker: usize,
}

impl Signs {
    fn control(&self) -> &Control {
        &self.arena.slot(self.worker).control
    }
}

impl JobSigns for Signs {
    fn is_stopping(&self) -> bool {
        self.control().terminating()
    }

    fn must_save(&self) -> bool {
        self.control().must_save()
    }

    fn holds(&self) {
        self.control().unsaved.fetch_add(1, AcqRel);
    }

    fn saved(&self) {
        self.control().unsaved.fetch_sub(1, AcqRel);
    }

    fn wrote(&self) {
        self.control().log_writes.fetch_add(1, Relaxed);
    }
}

/// The job has to stop, because this file cannot be written.
fn failed(function: &str, error: &LogError) -> Stop {
    Stop::new(format!("func={function}({})", error.what), &error.error)
}
