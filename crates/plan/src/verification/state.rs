//! The state file of a worker, and its use.

use super::spec::{kind, spec_of};
use crate::workload::workload_spec;
use crate::{JobPlan, Layout, Plan, ReplayPlan, WorkerPlan};
use iolite_options::engines::Capability;
use iolite_options::{JobOptions, SyncMode, VerifyPolicy};
use iolite_types::{BlockSize, Direction};
use iolite_verify::block::{Kind, Spec};
use iolite_verify::state::{Policy, StateFile, StateImprint, StateNames};
use iolite_verify::{Keep, Load, StateRules};
use iolite_workload::Mix;
use iolite_workload::history::{Need, is_uniform};
use std::ops::Range;
use std::path::PathBuf;

/// Why some workloads cannot keep a state.
pub(super) const NO_TABLE: &str = "writes of any size at any place, or to a file without an end, cannot be kept track of; \
                                   use block sizes with a common factor, and give a size";

/// How a job uses a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateUse {
    /// It keeps a state.
    Kept,
    /// It is loaded, to check data against it.
    Loaded,
}

/// The state file of a worker, if any.
pub fn state_of(plan: &Plan, worker: &WorkerPlan) -> Option<(PathBuf, StateUse)> {
    let job = plan.job_of(worker);
    let used = match (job.options.loads_state(), keeps_state(job)) {
        _ if job.options.files.create_only => return None,
        (true, _) => StateUse::Loaded,
        (false, true) => StateUse::Kept,
        (false, false) => return None,
    };
    Some((path(job, worker), used))
}

/// The state files that the workers of a plan keep.
pub fn kept_states(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    let state = |worker| state_of(plan, worker).filter(|(_, used)| *used == StateUse::Kept);
    plan.workers.iter().filter_map(state).map(|(path, _)| path)
}

/// The state that a worker of a job with `verify_state_load` loads.
pub(super) fn loads(plan: &Plan, worker: &WorkerPlan, layout: &Layout) -> Option<Load> {
    let job = plan.job_of(worker);
    let workload = workload_spec(job, worker, layout);
    let spec = spec_of(&job.options, &workload)?;
    Some(load(plan, worker, layout, &workload, &spec))
}

/// The name of a worker's state file.
pub(super) fn path(job: &JobPlan, worker: &WorkerPlan) -> PathBuf {
    names(job, worker.place..worker.place + 1).at(worker.place)
}

fn names(job: &JobPlan, places: Range<u64>) -> StateNames {
    StateNames { directory: job.auxiliary.clone(), job: job.options.name.clone(), places }
}

/// The states that the workers of a plan load.
fn loaded_states(plan: &Plan) -> Vec<StateNames> {
    let of_job = |job: &JobPlan| {
        let clones = &plan.workers[plan.clones(job)];
        let places = clones.first()?.place..clones.last()?.place + 1;
        Some(names(job, places))
    };
    let loads = |job: &&JobPlan| job.options.loads_state() && !job.options.files.create_only;
    plan.jobs.iter().filter(loads).filter_map(of_job).collect()
}

/// Whether the job keeps a state, if it can be kept.
pub(super) fn keeps_state(job: &JobPlan) -> bool {
    let options = &job.options;
    options.issues_writes()
        && options.verification.verify_state_save
        && job.engine.facets.keeps_data()
        && kind(options).is_some_and(|kind| kind != Kind::Null)
}

/// Whether a job that cannot keep a state must not run.
pub(super) fn requires_state(options: &JobOptions) -> bool {
    options.is_set("verify_state_save") && options.verification.verify_state_save
}

/// The writes that a state requires.
pub(super) fn policy(options: &JobOptions) -> Policy {
    match options.verification.verify_policy {
        VerifyPolicy::Completed => Policy::Completed,
        VerifyPolicy::Fsynced => Policy::Fsynced,
    }
}

/// The block size of a state's table, in bytes; `None` = the writes cannot be kept in a table of blocks.
pub(super) fn table_block(workload: &iolite_workload::Spec) -> Option<u64> {
    match Need::of(workload, false) {
        Need::Map(block) => Some(block),
        Need::Replay | Need::Extents => None,
    }
}

/// How many writes a pass of a workload has that only writes, in blocks of one size; 0 = that is not known.
fn writes_per_pass(workload: &iolite_workload::Spec, layout: &Layout, block: u64) -> u64 {
    let is_known = workload.mix == Mix::Single(Direction::Write)
        && is_uniform(workload)
        && workload.block_size[Direction::Write] == BlockSize::Fixed(block)
        && workload.sequential_skip == 0
        && workload.total_ios.is_none()
        && workload.zones.is_none()
        && workload.device_zones.is_none()
        && workload.precondition.is_none();
    let length = layout.files.iter().map(|file| file.length / block).sum::<u64>();
    // More bytes than that are several laps.
    let asked = workload.pass_bytes.map_or(length, |bytes| bytes.div_ceil(block));
    if is_known { length.min(asked) } else { 0 }
}

/// How a worker uses a state.
pub(super) fn rules(
    plan: &Plan,
    worker: &WorkerPlan,
    layout: &Layout,
    workload: &iolite_workload::Spec,
    spec: &Spec,
) -> StateRules {
    let job = plan.job_of(worker);
    let options = &*job.options;
    if options.loads_state() {
        return StateRules::Load(load(plan, worker, layout, workload, spec));
    }
    if !keeps_state(job) {
        return StateRules::None;
    }
    let (name, path) = (&options.name, path(job, worker));
    let replay = worker.replay.as_deref();
    let is_required = requires_state(options);
    if !is_required && replay.is_some_and(|replay| has_few_writes(replay, workload)) {
        let message = format!(
            "{name}: there is no verify state: the few writes of the trace are so far apart that it would be large; \
             verify_state_save=1 insists on it"
        );
        return StateRules::Impossible { message, is_required };
    }
    let Some(block) = table_block(workload) else {
        let message = if is_required {
            format!("verify_state_save: {}: {NO_TABLE}", path.display())
        } else {
            format!("{name}: there is no verify state: {NO_TABLE} (verify_state_save=0 does without)")
        };
        return StateRules::Impossible { message, is_required };
    };
    let flushes =
        options.durability.fsync > 0 || options.durability.fdatasync > 0 || options.durability.end_fsync;
    StateRules::Keep(Keep {
        path,
        is_asked_for: is_required,
        method: options.verification.verify.keyword().to_owned(),
        block,
        is_uniform: is_uniform(workload),
        is_durable: options.durability.sync != SyncMode::None,
        // An external engine may copy into mapped memory.
        is_copied: job.engine.facets.can(Capability::CopyIntoFile) || job.engine.is_external(),
        per_pass: if replay.is_some() { 0 } else { writes_per_pass(workload, layout, block) },
        has_flushes: flushes || replay.is_some_and(|replay| replay.flushes),
        imprint: StateImprint::of(spec),
        files: layout
            .files
            .iter()
            .map(|file| StateFile {
                name: file.path.display().to_string(),
                offset: file.offset,
                length: file.length,
                identity: None,
                place: None,
            })
            .collect(),
        are_local: job.engine.facets.has_local_files(),
        are_made_again: options.files.unlink_each_loop,
    })
}

fn load(
    plan: &Plan,
    worker: &WorkerPlan,
    layout: &Layout,
    workload: &iolite_workload::Spec,
    spec: &Spec,
) -> Load {
    let job = plan.job_of(worker);
    let options = &*job.options;
    let sizes = Direction::ALL.iter().map(|&direction| workload.block_size[direction].max());
    Load {
        path: path(job, worker),
        policy: policy(options),
        method: options.verification.verify.keyword().to_owned(),
        imprint: StateImprint::of(spec),
        files: layout.files.iter().map(|file| file.path.display().to_string()).collect(),
        are_local: job.engine.facets.has_local_files(),
        largest: sizes.max().unwrap_or(0),
        comes_later: options.schedule.exec_prerun.is_some(),
        company: loaded_states(plan),
    }
}

/// Whether a table of all blocks is too large for the few writes of a trace.
fn has_few_writes(replay: &ReplayPlan, workload: &iolite_workload::Spec) -> bool {
    /// Bytes of the largest state that is kept by default.
    const USUAL: u64 = 64 << 20;
    let need = Need::of(workload, false);
    need.map_bytes(&workload.files) > USUAL
        && need.is_more_than_list(&workload.files, replay.ios[Direction::Write])
}
