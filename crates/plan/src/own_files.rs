//! Files that the run would destroy although it needs them: traces that it replays, and states; and data that a log would
//! destroy.

use crate::verification::{StateUse, state_of};
use crate::{FileKind, FileLayout, JobPlan, Layout, Plan, Problem, ReplayPlan, WorkerPlan};
use iolite_host::{FileKey, Machine};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file that the run needs as it is.
enum Own<'a> {
    Trace(&'a ReplayPlan),
    State { path: PathBuf, job: &'a str, used: StateUse },
}

impl Own<'_> {
    /// Whether it has to be another file than this one of a job.
    fn minds(&self, is_changed: bool) -> bool {
        match self {
            // A state that is kept takes the place of what was there.
            Own::State { used: StateUse::Kept, .. } => true,
            Own::Trace(_) | Own::State { used: StateUse::Loaded, .. } => is_changed,
        }
    }

    fn what(&self) -> String {
        match self {
            Own::Trace(replay) => {
                format!("the trace that is replayed (read_iolog={})", replay.name.display())
            }
            Own::State { path, job, .. } => format!("the verify state of job {job} ({})", path.display()),
        }
    }
}

/// The jobs that would change a file which the run needs as it is. (The files that a live replay names are looked at when
/// they come.)
pub fn overwritten(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Vec<Problem> {
    let own = own_files(plan, machine);
    let mut found = logs(plan, layouts, &own, machine);
    if own.is_empty() {
        return found;
    }
    for worker in plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files()) {
        for (file, is_changed) in files(plan, worker, &layouts[worker.index]) {
            let own = own.get(&machine.key(&file.path));
            found.extend(
                own.filter(|own| own.minds(is_changed)).map(|own| problem(plan, worker, &file.path, own)),
            );
        }
    }
    // Mostly all clones do the same.
    found.dedup();
    found
}

fn own_files<'a>(plan: &'a Plan, machine: &dyn Machine) -> HashMap<FileKey, Own<'a>> {
    let replays = plan.workers.iter().filter_map(|worker| worker.replay.as_deref());
    let traces = replays
        .filter(|replay| !iolite_trace::is_stream(&replay.name))
        .map(|replay| (machine.key(&replay.name), Own::Trace(replay)));
    let states = plan.workers.iter().filter_map(|worker| {
        let (path, used) = state_of(plan, worker)?;
        let job = &plan.job_of(worker).options.name;
        Some((machine.key(&path), Own::State { path, job, used }))
    });
    states.chain(traces).collect()
}

/// The files of a worker, and whether it writes to them, trims them, removes them, or makes them longer.
fn files<'a>(
    plan: &Plan,
    worker: &'a WorkerPlan,
    layout: &'a Layout,
) -> impl Iterator<Item = (&'a FileLayout, bool)> {
    let job = plan.job_of(worker);
    let changes_all = job.options.pattern.rw.changes() || job.engine.facets.removes();
    let is_changed = move |index: usize| match worker.replay.as_deref() {
        Some(replay) => replay.needs.get(index).is_some_and(|needs| needs.changes()),
        None => changes_all,
    };
    let files = layout.files.iter().enumerate();
    files.map(move |(index, file)| (file, file.extend_to.is_some() || is_changed(index)))
}

/// Logs that would go into files that the run needs, or into the data of a job.
fn logs(plan: &Plan, layouts: &[Layout], own: &HashMap<FileKey, Own>, machine: &dyn Machine) -> Vec<Problem> {
    let logs: Vec<_> = plan.workers.iter().flat_map(|worker| written_by(plan, worker)).collect();
    if logs.is_empty() {
        return Vec::new();
    }
    let data = data(plan, layouts, machine);
    let of_log = |(job, option, path): (&JobPlan, &str, PathBuf)| {
        let options = &job.options;
        let key = machine.key(&path);
        let what = match (own.get(&key), data.get(&key)) {
            (Some(Own::Trace(_)), None) if is_made_before(plan, job, &key, machine) => return None,
            (Some(own), _) => own.what(),
            (None, Some(name)) => format!("the data of job {name}"),
            (None, None) => return None,
        };
        let message = format!("{option}={}: the log would go into {what}; give another name", path.display());
        Some(Problem::of(options, option, message))
    };
    let mut found: Vec<Problem> = logs.into_iter().filter_map(of_log).collect();
    found.dedup();
    found
}

/// The logs that a worker writes, with the options that say so.
fn written_by<'a>(
    plan: &'a Plan,
    worker: &WorkerPlan,
) -> impl Iterator<Item = (&'a JobPlan, &'static str, PathBuf)> {
    let job = plan.job_of(worker);
    let recorded = job.options.replay.write_iolog.as_ref().map(|path| ("write_iolog", PathBuf::from(path)));
    let measured = crate::logs::asked(&job.options, worker.index);
    recorded.into_iter().chain(measured).map(move |(option, path)| (job, option, path))
}

/// The names of the jobs whose data is in these files.
fn data<'a>(plan: &'a Plan, layouts: &[Layout], machine: &dyn Machine) -> HashMap<FileKey, &'a str> {
    let mut data = HashMap::new();
    for worker in plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files()) {
        let name = plan.job_of(worker).options.name.as_str();
        let files = layouts[worker.index].files.iter();
        // A device that keeps nothing may take both.
        let kept = files.filter(|file| matches!(file.kind, FileKind::Regular | FileKind::Block));
        data.extend(kept.map(|file| (machine.key(&file.path), name)));
    }
    data
}

/// What would be destroyed by a report at this path, in words: what the run needs, or a block device; `None` = nothing. (A
/// run that is refused may have no layouts.)
pub fn at(plan: &Plan, path: &Path, machine: &dyn Machine) -> Option<String> {
    let key = machine.key(path);
    if let Some(own) = own_files(plan, machine).get(&key) {
        return Some(own.what());
    }
    // A device that keeps nothing may take both.
    if machine.usable_file(path).is_ok_and(|(kind, _)| matches!(kind, FileKind::Char | FileKind::Pipe)) {
        return None;
    }
    let is_here = |worker: &&WorkerPlan| worker.files.iter().any(|file| machine.key(&file) == key);
    let local = plan.workers.iter().filter(|worker| plan.job_of(worker).engine.facets.has_local_files());
    if let Some(owner) = local.clone().find(is_here) {
        return Some(format!("the data of job {}", plan.job_of(owner).options.name));
    }
    let is_block = machine.file(path).ok().flatten().is_some_and(|found| found.is_block_device());
    is_block.then(|| "a block device".to_owned())
}

/// Whether the trace that a job records is replayed by others only when that is done.
fn is_made_before(plan: &Plan, job: &JobPlan, trace: &FileKey, machine: &dyn Machine) -> bool {
    plan.workers.iter().all(|worker| match worker.replay.as_deref() {
        Some(replay) if machine.key(&replay.name) == *trace => {
            replay.is_live && plan.has_ended_before(job, worker)
        }
        _ => true,
    })
}

fn problem(plan: &Plan, worker: &WorkerPlan, path: &Path, own: &Own) -> Problem {
    let options = &plan.job_of(worker).options;
    let blamed = match (&worker.replay, &options.replay.replay_redirect) {
        (Some(_), Some(_)) => "replay_redirect",
        (Some(_), None) => "read_iolog",
        (None, _) => "filename",
    };
    let remedy = match (&worker.replay, &options.replay.replay_redirect, own) {
        (_, _, Own::State { .. }) => "give another name, or keep states elsewhere (--aux-path)",
        (Some(_), None, _) => "send it elsewhere with replay_redirect or directory",
        _ => "give another name",
    };
    let (path, what) = (path.display(), own.what());
    let message = match own {
        Own::State { used: StateUse::Kept, .. } => format!("{path}: the run writes {what} there; {remedy}"),
        Own::Trace(_) | Own::State { .. } => format!("{path} would be changed, and it is {what}; {remedy}"),
    };
    Problem::of(options, blamed, message)
}
