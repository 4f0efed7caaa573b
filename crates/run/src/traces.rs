//! Traces that a run would destroy: they are read while it writes.

use crate::worker::verify::FileIdentity;
use iolite_options::JobOptions;
use iolite_plan::{FileLayout, Layout, Plan, Problem, ReplayPlan, WorkerPlan};
use std::collections::HashMap;

/// The jobs that would change a trace which is replayed. (What the trace of a live replay names is looked at when it
/// comes.)
pub fn overwritten(plan: &Plan, layouts: &[Layout]) -> Vec<Problem> {
    let replays = plan.workers.iter().filter_map(|worker| worker.replay.as_deref());
    let traces: HashMap<FileIdentity, &ReplayPlan> = replays
        .filter(|replay| !iolite_trace::is_stream(&replay.name))
        .map(|replay| (FileIdentity::of(&replay.name), replay))
        .collect();
    if traces.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for worker in &plan.workers {
        let options = &plan.job_of(worker).options;
        if let Some(path) = &options.write_iolog
            && let Some(trace) = traces.get(&FileIdentity::of(path.as_ref()))
        {
            found.push(recorded(options, path, trace));
        }
        if plan.job_of(worker).engine.diskless {
            continue;
        }
        for file in changed(plan, worker, &layouts[worker.index]) {
            if let Some(trace) = traces.get(&FileIdentity::of(&file.path)) {
                found.push(problem(plan, worker, file, trace));
            }
        }
    }
    // What one clone does mostly all do.
    found.dedup();
    found
}

/// The files that a worker writes to, trims, or makes longer.
fn changed<'a>(
    plan: &Plan,
    worker: &'a WorkerPlan,
    layout: &'a Layout,
) -> impl Iterator<Item = &'a FileLayout> {
    let rw = plan.job_of(worker).options.rw;
    let is_changed = move |index: usize| match worker.replay.as_deref() {
        Some(replay) => replay.needs.get(index).is_some_and(|needs| needs.changes()),
        None => rw.writes() || rw.trims(),
    };
    let files = layout.files.iter().enumerate();
    files.filter(move |&(index, file)| file.extend_to.is_some() || is_changed(index)).map(|(_, file)| file)
}

fn recorded(options: &JobOptions, path: &str, trace: &ReplayPlan) -> Problem {
    Problem {
        job: options.name.clone(),
        origin: options.origins.get("write_iolog").cloned(),
        message: format!(
            "write_iolog={path}: the log would go into the trace that is replayed (read_iolog={}); give another name",
            trace.name.display()
        ),
    }
}

fn problem(plan: &Plan, worker: &WorkerPlan, file: &FileLayout, trace: &ReplayPlan) -> Problem {
    let options = &plan.job_of(worker).options;
    let (path, trace) = (file.path.display(), trace.name.display());
    let blamed = match (&worker.replay, &options.replay_redirect) {
        (Some(_), Some(_)) => "replay_redirect",
        (Some(_), None) => "read_iolog",
        (None, _) => "filename",
    };
    let remedy = match (&worker.replay, &options.replay_redirect) {
        (Some(_), None) => "send it elsewhere with replay_redirect or directory",
        _ => "give another name",
    };
    Problem {
        job: options.name.clone(),
        origin: options.origins.get(blamed).cloned(),
        message: format!(
            "{path} would be changed, and it is the trace that is replayed (read_iolog={trace}); {remedy}"
        ),
    }
}
