//! What programs of the user have started, when those programs and the spawner are gone.
//!
//! A program that a worker has started dies with it. What that program has started in turn comes to the spawner, which ends
//! it. If the spawner itself is killed, it comes to this process, which ends it when the run is over.

use iolite_os::process;
use iolite_plan::Plan;
use std::time::Duration;

/// How long killed processes are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Ends what has come to this process, when it is dropped.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// The children that were there before the run; `None` = no worker starts programs, and nobody comes.
    others: Option<Vec<i32>>,
}

impl Orphans {
    /// From now on, what workers of this plan leave behind comes here.
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
