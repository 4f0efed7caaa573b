//! Jobs for which the writes of an earlier run cannot be known, or a state cannot provide them.

use super::rivalries::Rivalries;
use super::seed_agreement::alike;
use super::state::{self, NO_TABLE, keeps_state, policy, requires_state, table_block};
use crate::layout::start_share;
use crate::workload::workload_spec;
use crate::{FileKind, FileLayout, JobPlan, Layout, Plan, Problem, WorkerPlan};
use iolite_host::Machine;
use iolite_options::JobOptions;
use iolite_verify::state::Policy;
use iolite_verify::{Alike, Load};
use std::collections::HashSet;
use std::path::Path;

/// Obstacles to verification when the files are known, for each job. `load_error`: the mistake in a state that a worker
/// loads.
pub fn unverifiable(
    plan: &Plan,
    layouts: &[Layout],
    machine: &dyn Machine,
    load_error: &dyn Fn(&Load) -> Option<String>,
) -> Vec<Problem> {
    let of_worker = |worker: &WorkerPlan| of_worker(plan, worker, layouts, machine, load_error);
    let of_job = |job: &JobPlan| {
        // A problem of one clone usually affects all clones.
        let (option, message) = plan.workers[plan.clones(job)].iter().find_map(of_worker)?;
        Some(Problem::of(&job.options, option, message))
    };
    plan.jobs.iter().filter(|job| job.options.verifies()).filter_map(of_job).collect()
}

/// The states of rivals that cannot be used, for each job that loads one itself. `error`: the mistake in the state at a
/// path, for the file that has this name in it, under this policy.
pub fn damaged_states(
    plan: &Plan,
    rivalries: &Rivalries,
    error: &dyn Fn(&Path, &str, Policy) -> Option<String>,
) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for worker in &plan.workers {
        let options = &*plan.job_of(worker).options;
        if !options.loads_state() || !options.verifies() || options.schedule.exec_prerun.is_some() {
            continue;
        }
        let policy = policy(options);
        for (path, name) in rivalries.of_worker(worker.index).states() {
            if seen.insert((path.clone(), name.clone(), policy)) {
                let problem =
                    |error| Problem::of(options, "verify_state_load", format!("verify_state_load: {error}"));
                found.extend(error(path, name, policy).map(problem));
            }
        }
    }
    found
}

fn of_worker(
    plan: &Plan,
    worker: &WorkerPlan,
    layouts: &[Layout],
    machine: &dyn Machine,
    load_error: &dyn Fn(&Load) -> Option<String>,
) -> Option<(&'static str, String)> {
    let (job, layout) = (plan.job_of(worker), &layouts[worker.index]);
    let options = &job.options;
    if worker.replay.as_ref().is_some_and(|replay| replay.is_live) {
        return None;
    }
    if relies_on_options(options) {
        let message = end(options, layout)
            .or_else(|| start(plan, worker, layouts, machine))
            .or_else(|| places(plan, worker, layout))?;
        return Some(("verify_only", message));
    }
    if options.loads_state() {
        // A command that runs before the job may provide the state.
        let load = state::loads(plan, worker, layout).filter(|load| !load.comes_later)?;
        return Some(("verify_state_load", format!("verify_state_load: {}", load_error(&load)?)));
    }
    let has_no_table = || table_block(&workload_spec(job, worker, layout)).is_none();
    (requires_state(options) && keeps_state(job) && has_no_table())
        .then(|| ("verify_state_save", format!("verify_state_save=1: {NO_TABLE}")))
}

/// Whether the writes of an earlier run must be known from the options alone. (A state records them in any case.)
pub(super) fn relies_on_options(options: &JobOptions) -> bool {
    options.skips_writes() && options.verification.is_on() && !options.loads_state()
}

/// Why the writes of an earlier run cannot be known from its options.
pub(super) fn by_options(options: &JobOptions) -> Option<String> {
    let cannot_know = |what: &str| Some(format!("verify_only cannot know {what}"));
    // A job that only checks has no writes that may fail, so an option for writes describes the run that wrote. But
    // continue_on_error=all may be there for the reads of the check.
    let (goes_on, ignored) = (&options.errors.continue_on_error, &options.errors.ignore_error.write);
    let is_for_reads = ignored.is_empty() && (goes_on.read || goes_on.verify);
    let may_fail = options.errors.tolerates_failed_writes() && !is_for_reads;
    if options.schedule.time_based && !options.checks_any_pass() {
        cannot_know(
            "which blocks a time_based job with trim_percentage has trimmed; verify_state_load=1 does",
        )
    } else if options.counts_after_ramp() {
        cannot_know(
            "how many I/Os number_ios was in a job with a ramp; leave the ramp out of the job that writes, or load its \
             state (verify_state_load=1)",
        )
    } else if options.rates.latency_target > 0 && !options.rates.latency_run {
        cannot_know(
            "how many I/Os the search for latency_target took; leave it out and give the size that was written, or load the \
             job's state (verify_state_load=1)",
        )
    } else if options.is_read_write_mix() && options.is_steered() {
        cannot_know(
            "which I/Os of a mix with rates were writes: when they were due depends on the time; leave rate and rate_iops \
             out of the job that writes, or load its state (verify_state_load=1)",
        )
    } else if may_fail {
        let option = if ignored.is_empty() { "continue_on_error=write" } else { "ignore_error" };
        cannot_know(&format!(
            "which writes have failed in a job with {option} for writes; leave it out if none has, or load its state \
             (verify_state_load=1)"
        ))
    } else {
        None
    }
}

/// Why it is unknown where an earlier run ended, or where it began to append.
fn end(options: &JobOptions, layout: &Layout) -> Option<String> {
    let is_regular = |file: &FileLayout| file.kind == FileKind::Regular;
    let path = layout.files.iter().find(|file| is_regular(file))?.path.display();
    if options.extent.fill_device {
        return Some(format!(
            "verify_only cannot know for how much of {path} there was room with fill_device=1; leave it out and give the \
             size that was written, or load the job's state (verify_state_load=1)"
        ));
    }
    options.extent.file_append.then(|| {
        format!(
            "verify_only cannot know where {path} ended before the job with file_append=1 wrote to it; give that as offset \
             instead, or load the job's state (verify_state_load=1)"
        )
    })
}

/// Why the places of an earlier run's writes are unknown: it had another seed.
fn places(plan: &Plan, worker: &WorkerPlan, layout: &Layout) -> Option<String> {
    let job = plan.job_of(worker);
    let alike = alike(&job.options, &workload_spec(job, worker, layout), worker.replay.as_deref());
    (!job.options.pattern.randrepeat && alike != Alike::Writes).then(|| {
        "verify_only cannot know what was written where with randrepeat=0: that depends on the seed here, which was another \
         one; leave randrepeat=0 out of the job that writes, or load its state (verify_state_load=1)"
            .to_owned()
    })
}

/// Why the start of an earlier run's region is not known: it was a share of a file that this job, or another one of the
/// run, may have extended.
fn start(plan: &Plan, worker: &WorkerPlan, layouts: &[Layout], machine: &dyn Machine) -> Option<String> {
    let job = plan.job_of(worker);
    let (option, percent) = start_share(&job.options, worker.clone)?;
    let has_grown = |file: &&FileLayout| {
        file.kind == FileKind::Regular
            && job.engine.facets.keeps_data()
            && plan.workers.iter().any(|other| may_extend(plan, other, layouts, &file.path, machine))
    };
    let path = layouts[worker.index].files.iter().find(has_grown)?.path.display();
    Some(format!(
        "verify_only cannot know how long {path} was when the run that wrote took {option}={percent}% of it, and may have \
         made it longer; give {option} in bytes, or load the job's state (verify_state_load=1)"
    ))
}

/// Whether this worker may have extended the file to its present size.
fn may_extend(
    plan: &Plan,
    worker: &WorkerPlan,
    layouts: &[Layout],
    path: &Path,
    machine: &dyn Machine,
) -> bool {
    let options = &plan.job_of(worker).options;
    let keeps_size = !options.extent.gives_size() && !options.extent.fill_device && worker.replay.is_none();
    let size = || machine.file(path).ok().flatten().map_or(0, |found| found.bytes);
    let reaches_end =
        |file: &FileLayout| file.path == path && file.offset.saturating_add(file.length) >= size();
    !keeps_size && layouts[worker.index].files.iter().any(reaches_end)
}
