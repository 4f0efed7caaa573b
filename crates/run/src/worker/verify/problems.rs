//! What is in the way of verifying, as far as it is known before the run.

use super::setup::{checked_direction, keeps_state, spec};
use super::state::{self, Demands, State};
use super::{Alike, Rivals, loads_state, others, setup};
use iolite_options::{JobOptions, SizeValue};
use iolite_plan::resolve;
use iolite_plan::{FileKind, FileLayout, JobPlan, Layout, Plan, Problem, ReplayPlan, WorkerPlan};
use iolite_trace::{Blocks, Place, TraceError};
use iolite_types::common_multiple;
use iolite_verify::block::{Spec, SpecError};
use std::collections::HashSet;
use std::path::Path;

/// Most threads that check for one worker.
const MOST_THREADS: u32 = 1024;

/// What is in the way of verifying, for the option that is to blame. `replays`: those of the job's clones.
pub fn problems(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let writes = options.rw.writes();
    if assumes_writes(options) {
        found.extend(unforeseeable(options).map(|message| ("verify_only", message)));
    }
    if loads_state(options) && writes && !options.verify_only {
        let message = "verify_state_load=1 checks what an interrupted run has written: it needs rw=read, rw=randread or \
                       verify_only";
        found.push(("verify_state_load", message.to_owned()));
    }
    let threads = options.verification.verify_async;
    if threads > MOST_THREADS {
        found.push((
            "verify_async",
            format!("verify_async={threads}: a worker has at most {MOST_THREADS} threads that check; more than there are CPUs help nobody"),
        ));
    }
    found.extend(replays.iter().filter_map(|replay| unknown_files(options, replay)));
    if writes || options.rw.reads() {
        found.extend(unfit_blocks(options, replays));
    }
    found.dedup();
    found
}

/// Whether the job does the writes of an earlier run in its mind. (A state knows them, however they came about.)
fn assumes_writes(options: &JobOptions) -> bool {
    options.verify_only && options.rw.writes() && options.verification.is_on() && !loads_state(options)
}

/// Why the writes of an earlier run cannot be known from its options.
fn unforeseeable(options: &JobOptions) -> Option<String> {
    let cannot_know = |what: &str| Some(format!("verify_only cannot know {what}"));
    let is_mix = options.rw.reads() && options.rw.writes() && options.read_iolog.is_empty();
    // Those who only check need not be told about writes: it says what the run was that wrote.
    let (goes_on, ignored) = (&options.continue_on_error, &options.ignore_error.write);
    let may_fail = !ignored.is_empty() || (goes_on.write && !goes_on.read && !goes_on.verify);
    if options.time_based {
        cannot_know("what a time_based job has written; verify_state_load=1 does")
    } else if options.counts_after_ramp() {
        cannot_know(
            "how many I/Os number_ios was in a job with a ramp; leave the ramp out of the job that writes, or load its \
             state (verify_state_load=1)",
        )
    } else if options.latency_target > 0 && !options.latency_run {
        cannot_know(
            "how many I/Os the search for latency_target took; leave it out and give the size that was written, or load the \
             job's state (verify_state_load=1)",
        )
    } else if is_mix && options.is_steered() {
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

/// Whether a state is to be kept, or loaded, of a replay whose files nobody knows.
fn unknown_files(options: &JobOptions, replay: &ReplayPlan) -> Option<(&'static str, String)> {
    let saves = options.is_set("verify_state_save") && options.verification.verify_state_save;
    let option = match (loads_state(options), saves && options.verification.is_on()) {
        (true, _) => "verify_state_load",
        (false, true) => "verify_state_save",
        (false, false) => return None,
    };
    let message = format!(
        "{option}=1: a state is one of files that are known beforehand, and those of {} are not; leave \
         read_iolog_chunked out",
        replay.name.display()
    );
    replay.is_live.then_some((option, message))
}

/// Blocks, or their intervals, that are too small for what is to be written into them.
fn unfit_blocks(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let direction = checked_direction(options);
    if options.read_iolog.is_empty() {
        let (sizes, unaligned) = (options.block_size(direction), options.bs_unaligned);
        let Some(spec) = spec(options, &sizes, unaligned) else { return Vec::new() };
        let cut = sizes.multiple_of(spec.interval as u64, unaligned);
        let mut blocks = [Some(sizes.min()), cut].into_iter().flatten();
        return blocks.find_map(|block| unfit(options, &spec, block)).into_iter().collect();
    }
    let of_replay = |replay: &&ReplayPlan| {
        let sizes = resolve::replayed_sizes(replay, direction);
        let spec = spec(options, &sizes, replay.is_live)?;
        let Blocks { smallest, smallest_at, largest, common, .. } = replay.blocks[direction];
        let smallest_at = smallest_at.unwrap_or(Place::Whole);
        let blocks = if replay.is_live {
            // What is not known is looked at when it comes.
            [Some((sizes.max(), smallest_at)), None]
        } else {
            let cut = common_multiple(common, spec.interval as u64, smallest, largest);
            [Some((sizes.min(), smallest_at)), cut.map(|block| (block, Place::Whole))]
        };
        let of_block = |(block, place)| Some((unfit(options, &spec, block)?, place));
        let ((option, message), place) = blocks.into_iter().flatten().find_map(of_block)?;
        Some((option, TraceError::new(&replay.name.display().to_string(), place, message).to_string()))
    };
    replays.iter().filter_map(of_replay).collect()
}

/// Why a block of this size cannot be written, for the option that is to blame.
fn unfit(options: &JobOptions, spec: &Spec, block: u64) -> Option<(&'static str, String)> {
    let error = spec.validate(block as usize).err()?;
    let option = match error {
        SpecError::Offset { .. } => "verify_offset",
        SpecError::Interval { .. } if options.verification.verify_interval > 0 => "verify_interval",
        SpecError::Interval { .. } | SpecError::NoPattern(_) => "verify",
    };
    Some((option, error.to_string()))
}

/// What is in the way once the files are known, for each job.
pub fn problems_of_files(plan: &Plan, layouts: &[Layout]) -> Vec<Problem> {
    let of_worker = |worker: &WorkerPlan| of_worker(plan, worker, layouts);
    let of_job = |job: &JobPlan| {
        // What is wrong with one clone is mostly wrong with all.
        let (option, message) = plan.workers[plan.clones(job)].iter().find_map(of_worker)?;
        let options = &job.options;
        Some(Problem { job: options.name.clone(), origin: options.origins.get(option).cloned(), message })
    };
    plan.jobs.iter().filter(|job| verifies(&job.options)).filter_map(of_job).collect()
}

/// States of those who wrote to the same places that cannot be used, for each job that loads them.
pub fn problems_of_states(plan: &Plan, rivals: &Rivals) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for worker in &plan.workers {
        let options = &plan.job_of(worker).options;
        if !loads_state(options) || !verifies(options) || options.exec_prerun.is_some() {
            continue;
        }
        let (rivalry, policy) = (rivals.of_worker(worker.index), state::policy(options));
        for (path, name) in rivalry.states() {
            if !seen.insert((path.clone(), name.clone(), policy)) {
                continue;
            }
            found.extend(others::check(path, name, policy).err().map(|error| Problem {
                job: options.name.clone(),
                origin: options.origins.get("verify_state_load").cloned(),
                message: format!("verify_state_load: {error}"),
            }));
        }
    }
    found
}

fn verifies(options: &JobOptions) -> bool {
    options.verification.is_on() && !options.create_only
}

fn of_worker(plan: &Plan, worker: &WorkerPlan, layouts: &[Layout]) -> Option<(&'static str, String)> {
    let (job, layout) = (plan.job_of(worker), &layouts[worker.index]);
    let options = &job.options;
    if worker.replay.as_ref().is_some_and(|replay| replay.is_live) {
        return None;
    }
    let workload = resolve::workload_spec(job, worker, layout);
    if assumes_writes(options) {
        let message = unforeseeable_end(options, layout)
            .or_else(|| unforeseeable_start(plan, worker, layouts))
            .or_else(|| {
                unforeseeable_places(options, setup::alike(options, &workload, worker.replay.as_deref()))
            });
        return message.map(|message| ("verify_only", message));
    }
    if loads_state(options) {
        // What is run before the job may bring it.
        let comes_later = options.exec_prerun.is_some();
        let path = state::path(&job.auxiliary, &options.name, worker.place);
        let error = Demands::load(&path, options, &workload, layout).err().filter(|_| !comes_later)?;
        return Some(("verify_state_load", format!("verify_state_load: {error}")));
    }
    let insists = setup::insists_on_state(options) && keeps_state(options, job.engine.facets.keeps_data());
    (insists && !State::has_table(&workload))
        .then(|| ("verify_state_save", format!("verify_state_save=1: {}", state::NO_TABLE)))
}

/// Why nobody can know where an earlier run ended, or began.
fn unforeseeable_end(options: &JobOptions, layout: &Layout) -> Option<String> {
    let is_regular = |file: &FileLayout| file.kind == FileKind::Regular;
    let path = layout.files.iter().find(|file| is_regular(file))?.path.display();
    if options.fill_device {
        return Some(format!(
            "verify_only cannot know for how much of {path} there was room with fill_device=1; leave it out and give the \
             size that was written, or load the job's state (verify_state_load=1)"
        ));
    }
    options.file_append.then(|| {
        format!(
            "verify_only cannot know where {path} ended before the job with file_append=1 wrote to it; give that as offset \
             instead, or load the job's state (verify_state_load=1)"
        )
    })
}

/// Why nobody can know what an earlier run has written where: its seed was its own.
fn unforeseeable_places(options: &JobOptions, alike: Alike) -> Option<String> {
    (!options.randrepeat && alike != Alike::Writes).then(|| {
        "verify_only cannot know what was written where with randrepeat=0: that depends on the seed here, which was another \
         one; leave randrepeat=0 out of the job that writes, or load its state (verify_state_load=1)"
            .to_owned()
    })
}

/// Why nobody can know where an earlier run began: a share of a file that it, or another job of it, may have made longer.
fn unforeseeable_start(plan: &Plan, worker: &WorkerPlan, layouts: &[Layout]) -> Option<String> {
    let job = plan.job_of(worker);
    let options = &job.options;
    let share = |value: SizeValue| match value {
        SizeValue::Percent(percent) if percent > 0 => Some(percent),
        SizeValue::Percent(_) | SizeValue::Bytes(_) => None,
    };
    let increment = options.offset_increment;
    let (option, percent) = match (share(options.offset), share(increment)) {
        (Some(percent), _) => ("offset", percent),
        (None, Some(percent)) if worker.clone > 0 => ("offset_increment", percent),
        _ => return None,
    };
    let has_grown = |file: &&FileLayout| {
        file.kind == FileKind::Regular
            && job.engine.facets.keeps_data()
            && plan.workers.iter().any(|other| may_extend(plan, other, layouts, &file.path))
    };
    let path = layouts[worker.index].files.iter().find(has_grown)?.path.display();
    Some(format!(
        "verify_only cannot know how long {path} was when the run that wrote took {option}={percent}% of it, and may have \
         made it longer; give {option} in bytes, or load the job's state (verify_state_load=1)"
    ))
}

/// Whether it may be this worker that has made a file as long as it is.
fn may_extend(plan: &Plan, worker: &WorkerPlan, layouts: &[Layout], path: &Path) -> bool {
    let options = &plan.job_of(worker).options;
    let is_share = !matches!(options.size, Some(SizeValue::Bytes(_))) && options.filesize.is_none();
    let keeps_size = is_share && !options.fill_device && worker.replay.is_none();
    let size = || std::fs::metadata(path).map_or(0, |found| found.len());
    let reaches_end =
        |file: &FileLayout| file.path == path && file.offset.saturating_add(file.length) >= size();
    !keeps_size && layouts[worker.index].files.iter().any(reaches_end)
}
