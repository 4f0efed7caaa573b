//! What is in the way of verifying, as far as it is known before the run.

use super::loads_state;
use super::setup::{checked_direction, spec};
use crate::worker::translate::{self, counts_after_ramp};
use iolite_content::verify::SpecError;
use iolite_options::JobOptions;
use iolite_plan::ReplayPlan;
use iolite_trace::{Place, TraceError};
use iolite_workload::BlockSize;

/// Most threads that check for one worker.
const MOST_THREADS: u32 = 1024;

/// What is in the way of verifying, for the option that is to blame. `replays`: those of the job's clones.
pub fn problems(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let writes = options.rw.writes();
    // A state knows it, however the writes came about.
    if options.verify_only && writes && !loads_state(options) {
        if options.time_based {
            found.push((
                "verify_only",
                "verify_only cannot know what a time_based job has written".to_owned(),
            ));
        } else if options.file_append {
            let message = "verify_only cannot know where a job with file_append=1 began: where its file ended then; leave \
                           file_append out and give offset and size of what it wrote";
            found.push(("verify_only", message.to_owned()));
        } else if counts_after_ramp(options) {
            let message = "verify_only cannot know how many I/Os number_ios was in a job with a ramp; leave the ramp out of the job \
                 that writes";
            found.push(("verify_only", message.to_owned()));
        } else if !options.randrepeat && options.rw.is_random() {
            let message = "verify_only cannot know what was written where with randrepeat=0".to_owned();
            found.push(("verify_only", message));
        }
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

/// Blocks that are too small for what is to be written into them.
fn unfit_blocks(options: &JobOptions, replays: &[&ReplayPlan]) -> Vec<(&'static str, String)> {
    let direction = checked_direction(options);
    let unfit = |sizes: &BlockSize, unaligned: bool, smallest: u64| {
        let error = spec(options, sizes, unaligned)?.validate(smallest as usize).err()?;
        let option = match error {
            SpecError::Offset { .. } => "verify_offset",
            SpecError::Interval { .. } if options.verification.verify_interval > 0 => "verify_interval",
            SpecError::Interval { .. } | SpecError::NoPattern(_) => "verify",
        };
        Some((option, error.to_string()))
    };
    if options.read_iolog.is_empty() {
        let sizes = translate::block_size(options, direction);
        return unfit(&sizes, options.bs_unaligned, sizes.min()).into_iter().collect();
    }
    let of_replay = |replay: &&ReplayPlan| {
        let sizes = translate::replayed_sizes(replay, direction);
        // What is not known is looked at when it comes.
        let smallest = if replay.is_live { sizes.max() } else { sizes.min() };
        let (option, message) = unfit(&sizes, replay.is_live, smallest)?;
        let place = replay.blocks[direction].smallest_at.unwrap_or(Place::Whole);
        Some((option, TraceError::new(&replay.name.display().to_string(), place, message).to_string()))
    };
    replays.iter().filter_map(of_replay).collect()
}
