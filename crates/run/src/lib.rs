//! Performs a plan: processes, threads, the I/O loop, live snapshots.
//!
//! The controller (the process that was started) runs no worker. Before anything else it forks a *spawner*, a small
//! single-threaded process; the spawner forks workers on demand and tells how they ended. Workers that are threads
//! live in one process of their own, which the spawner also forks. So one run can mix both, and nothing with threads
//! ever forks. What they share is one mapping ([`shared`]); what they say in words goes through one socket
//! ([`message`]).

mod cgroup;
mod collect;
mod controller;
mod debug;
mod disk;
mod eta;
mod idle;
mod prepared;
mod scheduler;
mod signals;
mod spawner;
mod ticker;
mod worker;

pub use controller::Trigger;
pub use idle::calibrate_cpus;
pub use iolite_os::Clock;
use iolite_os::processors::run_when_idle;
pub use iolite_os::processors::{processors, run_on};
use iolite_os::{clock, message, processors, shared, sys};
pub use prepared::Prepared;
pub use signals::HeldSignals;

use iolite_plan::Problem;
use iolite_stats::{Event, Report};
use iolite_types::describe_error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What the run is to tell on its way.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Between two snapshots for the status line; `None` = no status line.
    pub eta_interval: Option<Duration>,
    /// Between two status dumps; `None` = only when asked by SIGUSR1.
    pub status_interval: Option<Duration>,
    /// Between two slices of the run that are told on their own.
    pub slice_interval: Option<Duration>,
    /// Each of these files, when it appears, asks for a status dump.
    pub status_files: Vec<PathBuf>,
    /// What ends the run early.
    pub trigger: Trigger,
    /// Log the bandwidth of all jobs together.
    pub bandwidth_log: bool,
    /// Measure how idle the CPUs are; true = each of them is to be shown.
    pub idleness: Option<bool>,
}

/// Whoever is told what happens: each event once, in order.
pub type Events<'a> = dyn FnMut(Event) + 'a;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// Some job ended with an error, or was killed.
    pub failed: bool,
    /// The signal that ended the run, if one did.
    pub signal: Option<i32>,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The files or the engines are not as the jobs need them.
    #[error("the jobs cannot run as they are")]
    Problems(Vec<Problem>),
    /// The operating system refused something that every run needs.
    #[error("{0}: {words}", words = describe_error(.1))]
    System(&'static str, #[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_refusals_are_words() {
        let error = RunError::System("lockmem", io::Error::from_raw_os_error(libc::ENOMEM));
        assert_eq!(error.to_string(), "lockmem: Cannot allocate memory");
    }
}
