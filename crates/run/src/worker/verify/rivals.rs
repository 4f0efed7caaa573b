//! Who else writes to the places that a worker verifies.

use super::loads_state;
use iolite_plan::{Layout, Plan};
use std::sync::Arc;

/// The numbers (from 1) of the workers of the same wave that write where this one does, or did in the run that is only
/// verified now.
pub fn rivals(plan: &Plan, layouts: &[Layout], worker: usize) -> Arc<[u16]> {
    let this = &plan.workers[worker];
    if !plan.job_of(this).options.verification.is_on() {
        return Arc::default();
    }
    let others = plan.workers.iter().filter(|other| {
        let options = &plan.job_of(other).options;
        other.index != worker
            && other.wave == this.wave
            && (options.rw.writes() || loads_state(options))
            && !plan.job_of(other).engine.diskless
            && overlap(&layouts[worker], &layouts[other.index])
    });
    others.map(|other| (other.index + 1) as u16).collect()
}

fn overlap(one: &Layout, other: &Layout) -> bool {
    one.files.iter().any(|one| {
        other.files.iter().any(|other| {
            one.path == other.path
                && one.offset < other.offset.saturating_add(other.length)
                && other.offset < one.offset.saturating_add(one.length)
        })
    })
}
