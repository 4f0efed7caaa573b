//! Obstacles to verification that follow from the options alone.

use super::spec::spec;
use super::state::requires_state;
use super::unforeseeable::{by_options, relies_on_options};
use crate::workload::replayed_sizes;
use crate::{Plan, Problem, ReplayPlan};
use iolite_options::JobOptions;
use iolite_trace::{Blocks, Place, TraceError};
use iolite_types::common_multiple;
use iolite_verify::block::{Spec, SpecError};

/// The most threads that check for one worker.
const MOST_THREADS: u32 = 1024;

/// Obstacles to verification, for all jobs.
pub fn obstacles(plan: &Plan) -> Vec<Problem> {
    let of_job = |job| {
        let replays: Vec<&ReplayPlan> =
            plan.workers[plan.clones(job)].iter().filter_map(|worker| worker.replay.as_deref()).collect();
        let options = &*job.options;
        let problem = move |(option, message)| Problem::of(options, option, message);
        of_options(options, &replays).into_iter().map(problem)
    };
    plan.jobs.iter().flat_map(of_job).collect()
}

/// The obstacles of a job, each with the option to blame. `replays`: those of the job's clones.
fn of_options(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let writes = options.pattern.rw.writes();
    if relies_on_options(options) {
        found.extend(by_options(options).map(|message| ("verify_only", message)));
    }
    if options.loads_state() && options.issues_writes() {
        let message = "verify_state_load=1 checks what an interrupted run has written: it needs rw=read, rw=randread or \
                       verify_only";
        found.push(("verify_state_load", message.to_owned()));
    }
    let threads = options.verification.verify_async;
    if threads > MOST_THREADS {
        found.push((
            "verify_async",
            format!(
                "verify_async={threads}: a worker has at most {MOST_THREADS} threads that check; more than there are CPUs help \
                 nobody"
            ),
        ));
    }
    found.extend(replays.iter().filter_map(|replay| unknown_files(options, replay)));
    if writes || options.pattern.rw.reads() {
        found.extend(unfit_blocks(options, replays));
    }
    found.dedup();
    found
}

/// The problem of a replay whose files are not known beforehand, if a state is kept or loaded.
fn unknown_files(options: &JobOptions, replay: &ReplayPlan) -> Option<(&'static str, String)> {
    let saves = requires_state(options) && options.verification.is_on();
    let option = match (options.loads_state(), saves) {
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

/// Blocks or intervals that are too small for their headers.
fn unfit_blocks(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let direction = options.verified_direction();
    if !options.is_replay() {
        let (sizes, unaligned) = (options.block_size(direction), options.pattern.bs_unaligned);
        let Some(spec) = spec(options, &sizes, unaligned) else { return Vec::new() };
        let cut = sizes.multiple_of(spec.interval as u64, unaligned);
        let mut blocks = [Some(sizes.min()), cut].into_iter().flatten();
        return blocks.find_map(|block| unfit(options, &spec, block)).into_iter().collect();
    }
    let of_replay = |replay: &&ReplayPlan| {
        let sizes = replayed_sizes(replay, direction);
        let spec = spec(options, &sizes, replay.is_live)?;
        let Blocks { smallest, smallest_at, largest, common, .. } = replay.blocks[direction];
        let smallest_at = smallest_at.unwrap_or(Place::Whole);
        let blocks = if replay.is_live {
            // Other sizes are checked when they occur.
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

/// Why a block of this size cannot be written, with the option to blame.
fn unfit(options: &JobOptions, spec: &Spec, block: u64) -> Option<(&'static str, String)> {
    let error = spec.validate(block as usize).err()?;
    let option = match error {
        SpecError::Offset { .. } => "verify_offset",
        SpecError::Interval { .. } if options.verification.verify_interval > 0 => "verify_interval",
        SpecError::Interval { .. } | SpecError::NoPattern(_) => "verify",
    };
    Some((option, error.to_string()))
}
