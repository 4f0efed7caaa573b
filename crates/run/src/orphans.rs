//! Processes that the user's programs have started, and that outlive those programs and the spawner.
//!
//! A program that a worker has started dies with it. Its child processes are inherited by the spawner, which ends them.
//! If the spawner itself is killed, this process inherits them, and ends them after the run.

use iolite_os::process;
use iolite_plan::Plan;
use std::time::Duration;

/// How long killed processes are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends the inherited processes when it is dropped.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The children that existed before the run; `None` = no worker starts programs, so there are no orphans.
    others: Option<Vec<i32>>,
}

impl Orphans {
    /// From now on, orphans of this plan's workers become children of this process.
    pub(crate) fn of(plan: &Plan) -> Orphans {
        if !plan.jobs.iter().any(|job| job.starts_programs) {
            return Orphans { others: None };
        }
        let others = process::children_of(process::process_id());
        process::adopt_orphans();
        Orphans { others: Some(others) }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        if let Some(others) = &self.others {
            process::end_children(others, PATIENCE);
        }
    }
}
