//! Performs a plan: processes, threads, the I/O loop, live snapshots.
//!
//! The controller (the process that was started) runs no worker. Before anything else it forks a *spawner*, a small
//! single-threaded process. The spawner forks workers on demand and reports how they end. Workers that are threads run
//! in one more process, which the spawner also forks. So one run can have both kinds, and a process with threads never
//! forks. The processes share one mapping ([`shared`]) and send messages through one socket ([`message`]).
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | checks before a run begins; sizes in storages of engines | `prepared.rs`; `storages.rs` |
//! | processes and threads | `spawner.rs`; what its children do: `controller/child_work.rs` |
//! | the order of starts; barriers between machines | `controller/waves.rs`; `controller/gate.rs` |
//! | signals, and time limits for what hangs | `signals.rs`; `controller/stopping.rs` |
//! | how workers end, and their errors; how the run ended | `controller/ends.rs`; the end of `Controller::run` |
//! | programs that a job started, and what they leave behind | `orphans.rs` |
//! | what is in flight; workers that hang with an I/O that takes too long | `controller/in_flight.rs`; `controller/overdue.rs` |
//! | steady states; triggers and status files | `controller/steady.rs`; `controller/watch.rs` |
//! | the results of one worker | `collect.rs` (merging them: `stats/src/merge.rs`) |
//! | time left; idle CPUs; the clock of `gtod_cpu`; stages of I/Os | `eta.rs`; `idle.rs`; `ticker.rs`; `stages.rs` |
//!
//! Data in memory when a run is given up: measurements are in the shared mapping. Log entries are in the worker's memory. The
//! threads that write them see that they must save them (`attention::SAVE`), report when they have, and count their writes, so
//! that the controller does not kill a worker whose logs are still being written.

mod cgroup;
mod collect;
mod controller;
mod debug;
mod disk;
mod eta;
mod idle;
mod locked_memory;
mod orphans;
mod prepared;
mod signals;
mod spawner;
mod stages;
mod storages;
mod ticker;

pub use controller::{BANDWIDTH_LOGS, StartGate, Trigger, Watch};
pub use idle::calibrate_cpus;
pub use iolite_os::Clock;
pub use iolite_os::clock::begin_calibration;
use iolite_os::processors::run_when_idle;
pub use iolite_os::processors::{processors, run_on};
pub use iolite_os::signals::survive_size_limit;
use iolite_os::{clock, message, processors, shared};
pub use prepared::Prepared;
pub use signals::{HeldSignals, Request, Requests};

use iolite_os::time;
use iolite_plan::{Plan, Problem};
use iolite_stats::{Event, JobError, Report};
use iolite_types::describe_error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The reports during a run, and the conditions that end it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The time between two snapshots for the status line; `None` = no status line.
    pub eta_interval: Option<Duration>,
    /// The time between two snapshots for the run's series; `None` = no series.
    pub sample_interval: Option<Duration>,
    /// The snapshots for the series contain the latencies of each worker.
    pub sample_latencies: bool,
    /// They contain the counters of the disks.
    pub sample_disks: bool,
    /// The time between two interim reports; `None` = only when SIGUSR1 asks for one.
    pub status_interval: Option<Duration>,
    /// The length of the slices of the run that are reported separately; `None` = no slices.
    pub slice_interval: Option<Duration>,
    /// Snapshots say what is stuck, and a report that SIGUSR1 asks for comes with a table of the I/Os in flight.
    pub tells_flights: bool,
    /// A file that appears under one of these names asks for an interim report.
    pub status_files: Vec<PathBuf>,
    /// The trigger that ends the run early.
    pub trigger: Trigger,
    /// Log the bandwidth of all jobs together.
    pub bandwidth_log: bool,
    /// Measure how idle the CPUs are; true = report each CPU.
    pub idleness: Option<bool>,
    /// The I/O waits for a start signal from outside.
    pub gate: Option<StartGate>,
}

/// Receives the events of a run, each once, in order.
pub type Events<'a> = dyn FnMut(Event) + 'a;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// A job ended with an error, or was killed; or a part of the run itself has failed.
    pub failed: bool,
    /// How many workers ended with an error, or were killed.
    pub failures: usize,
    /// The signal that ended the run, if one did.
    pub signal: Option<i32>,
    /// The requests made by signals so far.
    pub requests: Requests,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The jobs cannot run with these files, engines or this machine. At least one.
    #[error("the jobs cannot run as they are")]
    Problems(Vec<Problem>),
    /// The operating system refused a resource that every run needs.
    #[error("{0}: {words}", words = describe_error(.1))]
    System(&'static str, #[source] io::Error),
}

impl RunError {
    /// The report of a run that did not begin: its jobs without measurements, each with the error that prevents it.
    /// If a resource for every run is missing, all jobs have that error.
    pub fn report(&self, plan: &Plan) -> Report {
        let timestamp_ms = time::wall_ns() / 1_000_000;
        collect::refused(plan, timestamp_ms, |job| {
            let (errno, what) = match self {
                RunError::Problems(problems) => {
                    let problem = problems.iter().find(|problem| problem.job == job.name)?;
                    (problem.errno, problem.message.clone())
                }
                RunError::System(what, error) => {
                    (error.raw_os_error().unwrap_or(libc::EIO), (*what).to_owned())
                }
            };
            Some(JobError { errno, what: format!("func=setup: {what}") })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_are_described_in_words() {
        let error = RunError::System("lockmem", io::Error::from_raw_os_error(libc::ENOMEM));
        assert_eq!(error.to_string(), "lockmem: Cannot allocate memory");
    }
}
