//! Resolves the verification of a worker.

use super::seed_agreement::alike;
use super::spec::spec_of;
use super::state;
use crate::{Layout, Plan, ReplayPlan, WorkerPlan};
use iolite_options::JobOptions;
use iolite_types::{BlockSize, Direction};
use iolite_verify::{Alike, EarlierRun, ReadBackRules, Rivals, Rules, TrimRules};
use iolite_workload::history::{Need, can_repeat};

/// During a replay the trace decides when files are open. When they are read back, this many are open at once.
const MOST_OPEN: usize = 64;

/// The verification of a worker with this workload; `None` = its data is not verified.
pub fn rules(
    plan: &Plan,
    worker: &WorkerPlan,
    layout: &Layout,
    workload: &iolite_workload::Spec,
    rivals: &Rivals,
) -> Option<Rules> {
    let job = plan.job_of(worker);
    let options = &*job.options;
    let wanted = &options.verification;
    let spec = spec_of(options, workload)?;
    let replay = worker.replay.as_deref();
    let writes = options.issues_writes();
    let trims = wanted.trim_percentage > 0 && options.pattern.rw.writes();
    Some(Rules {
        job: options.name.clone(),
        number: worker.number(),
        worker: worker.index,
        seed: worker.seed,
        depth: options.depth.iodepth,
        writes,
        reads_back: options.reads_back(),
        read_back: read_back(options, workload, replay),
        earlier: earlier(options, workload, replay),
        state: state::rules(plan, worker, layout, workload, &spec),
        trims: trims.then_some(TrimRules {
            percentage: wanted.trim_percentage,
            every: wanted.trim_backlog,
            batch: wanted.trim_backlog_batch,
            are_zeros: wanted.trim_verify_zero,
        }),
        rivals: rivals.clone(),
        threads: wanted.verify_async,
        thread_cpus: wanted.verify_async_cpus.clone(),
        reads_data: job.engine.facets.reads_data(),
        atomic_writes: options.durability.atomic,
        is_replay: replay.is_some(),
        has_unforeseen_blocks: writes && replay.is_some_and(|replay| replay.is_live),
        compares: options.compares_by_device(),
        fatal: wanted.verify_fatal,
        dump: wanted.verify_dump.then(|| job.auxiliary.clone()),
        outlasts_time: options.schedule.time_based || options.loads_state(),
        open_files: if replay.is_some() { MOST_OPEN } else { workload.open_files },
        wants_no_history: wanted.experimental_verify,
        spec,
    })
}

/// The blocks to read back, and how they are remembered.
fn read_back(
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    replay: Option<&ReplayPlan>,
) -> ReadBackRules {
    let wanted = &options.verification;
    if !options.pattern.rw.writes() {
        return ReadBackRules::AllReads;
    }
    if !options.reads_back() {
        return ReadBackRules::Nothing;
    }
    if wanted.verify_backlog > 0 && !options.verification.verify_only {
        let (every, batch) = (wanted.verify_backlog, wanted.verify_backlog_batch);
        return ReadBackRules::Backlog { every, batch, repeats: can_repeat(workload) };
    }
    let need = Need::of(workload, is_predictable(options, workload));
    let is_sparse =
        |replay: &ReplayPlan| need.is_more_than_list(&workload.files, replay.ios[Direction::Write]);
    ReadBackRules::AtEnd(if replay.is_some_and(is_sparse) { Need::Extents } else { need })
}

/// Whether the job does exactly the I/Os of its generator: rates do not affect its mix, no write may fail, and their
/// number does not depend on a ramp.
fn is_predictable(options: &JobOptions, workload: &iolite_workload::Spec) -> bool {
    let is_steered = workload.mix.is_drawn() && options.is_steered();
    let may_fail = options.extent.fill_device || options.errors.tolerates_failed_writes();
    !is_steered && !may_fail && !options.counts_after_ramp()
}

/// The known facts about the earlier run whose writes are checked; `None` = no earlier run's writes, or a state lists
/// them.
fn earlier(
    options: &JobOptions,
    workload: &iolite_workload::Spec,
    replay: Option<&ReplayPlan>,
) -> Option<EarlierRun> {
    if !options.verification.verify_only || options.loads_state() {
        return None;
    }
    let asks_for_seeds = options.is_set("verify_header_seed") && options.verification.verify_header_seed;
    let has_own_seeds = options.pattern.randrepeat && asks_for_seeds;
    Some(EarlierRun {
        has_own_seeds,
        alike: if has_own_seeds { Alike::Writes } else { alike(options, workload, replay) },
        may_have_failed: options.errors.tolerates_failed_writes(),
        is_mix: options.is_read_write_mix(),
        any_pass: options.checks_any_pass(),
        mixes_sizes: !matches!(workload.sizes(Direction::Write), BlockSize::Fixed(_)),
    })
}
