//! The complete description of each worker's work: everything is decided here, once.
//!
//! [`Plan::resolve`] makes a [`ResolvedWorker`] from a worker's options and the layout of its files. It is a pure
//! function; its result is a plain value that can be printed, stored and sent. The code that performs the plan uses
//! this value and never interprets an option. The size of files is part of the layout, so a worker is resolved when it
//! is about to start: an earlier job of the run may have changed sizes until then.

mod buffers;
mod course;
mod errors;
mod files;
mod issue;
mod logs;
mod pace;
mod peers;
mod placement;
mod priorities;
#[cfg(test)]
mod tests;

pub use buffers::BufferRules;
pub(crate) use buffers::in_use as buffers_in_use;
pub use course::{Course, CourseStep, Demand};
pub use errors::{ErrorRules, Tolerance};
pub use files::{Creation, CreationTime, FileRules, LiveFileRules};
pub use issue::{IssueRules, PassKind, PassRules, SyncRules, TargetRules};
pub use logs::LogRules;
pub use pace::{Amount, Limit, Minimum, PaceRules, Think, rules as pace_rules};
pub(crate) use peers::address_there;
pub use peers::{BatchRules, FlowRules, SizedRampRules};
pub use placement::PlacementRules;
pub use priorities::{PriorityRules, PriorityShare, rules as priority_rules};
// Types of options that a worker uses unchanged.
pub use iolite_options::engines::{Data, NameAct, NameKind};
pub use iolite_options::{
    ClockSource, FadviseHint, Fallocate, LockFile, MemoryKind, NumaPolicyMode, RateProcess, Sample,
};
pub use iolite_workload::FileSizes;

pub use crate::ZoneRules;
use crate::workload::workload_spec;
use crate::{JobPlan, Layout, Plan, StageRules, WorkerPlan, content, verification};
use iolite_engine::{AccessPattern, EngineConfig};
use iolite_options::engines::{Completion, NetOptions, port_of_clone};
use iolite_options::{JobOptions, SubmitMode};
use iolite_verify::Rivals;
use serde::{Deserialize, Serialize};

/// Everything that one worker does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedWorker {
    /// The name of its job.
    pub name: String,
    /// The index of the worker in the run, from 0.
    pub index: usize,
    /// The name of its engine.
    pub engine_name: String,
    /// The configuration of the engine.
    pub engine: EngineConfig,
    /// All CPU time of its process counts as its own: the worker is a process, and its engine's library has threads
    /// there.
    pub counts_process: bool,
    /// Threads of a pool submit its I/Os (`io_submit_mode=offload`).
    pub offload: bool,
    /// Its files and the parts of them that it may touch.
    pub layout: Layout,
    /// How files are made before the job.
    pub creation: Creation,
    /// The job is done when its files are made (`create_only`).
    pub create_only: bool,
    /// How files are opened, advised and locked.
    pub files: FileRules,
    /// Read all files before the job (`pre_read`).
    pub pre_read: bool,
    /// The I/Os that it issues.
    pub workload: iolite_workload::Spec,
    /// How it uses the zones of its files; `None` = it knows no zones.
    pub zones: Option<ZoneRules>,
    /// Only the general generator supports the workload's options.
    pub general_workload: bool,
    /// The content of the buffers of its writes; `None` = it does not write.
    pub content: Option<iolite_content::Spec>,
    /// It only writes, so no I/O changes its buffers.
    pub writes_only: bool,
    /// How I/Os are issued, completed and measured.
    pub issue: IssueRules,
    /// Syncs between I/Os and at the end.
    pub syncs: SyncRules,
    /// How often it repeats the workload.
    pub passes: PassRules,
    /// When I/Os may be issued; `None` = at once.
    pub pace: Option<PaceRules>,
    /// How the depth is searched; `None` = it is fixed.
    pub target: Option<TargetRules>,
    /// Block size for `block_error_percentiles`, in bytes; `None` = not requested.
    pub block_lives: Option<u64>,
    /// Priorities for some of its I/Os; `None` = all have the worker's.
    pub priorities: Option<PriorityRules>,
    /// The other workers to keep in step with; `None` = none.
    pub flow: Option<FlowRules>,
    /// The accelerator that it reads for; `None` = none.
    pub batches: Option<BatchRules>,
    /// The bytes to move before counting begins; `None` = only time counts.
    pub sized_ramp: Option<SizedRampRules>,
    /// The workers at the other end of its connection, as far as they belong to the run.
    pub other_ends: Vec<usize>,
    /// How its data is verified; `None` = not at all.
    pub verify: Option<iolite_verify::Rules>,
    /// How failed I/Os are handled.
    pub errors: ErrorRules,
    /// The memory of the buffers.
    pub buffers: BufferRules,
    /// Where and with which rights it runs.
    pub placement: PlacementRules,
    /// The I/O scheduler to be set on the disks below its files (`ioscheduler`).
    pub io_scheduler: Option<String>,
    /// A command to run before its I/O (`exec_prerun`).
    pub command_before: Option<String>,
    /// A command to run after everything else (`exec_postrun`).
    pub command_after: Option<String>,
    /// The logs.
    pub logs: LogRules,
    /// Nanoseconds between I/Os of a trace are divided by this over 100; `None` = the trace's times do not count.
    pub replay_speed: Option<u64>,
    /// Which stages of its I/Os are measured; `None` = none.
    pub stages: Option<StageRules>,
    /// The clock for its measurements; `None` = the best.
    pub clock: Option<ClockSource>,
    /// The clock whose time at the start is reported (`job_start_clock_id`); `None` = the wall clock.
    pub start_clock: Option<u32>,
}

impl Plan {
    /// How a worker's files are created. That happens before the worker is resolved.
    pub fn creation(&self, worker: &WorkerPlan, layout: &Layout) -> Creation {
        files::creation(self, worker, layout)
    }

    /// Decides everything about a worker, once the layout of its files and its rivals (see
    /// [`Rivalries`](crate::verification::Rivalries)) are known.
    pub fn resolve(&self, worker: &WorkerPlan, layout: &Layout, rivals: &Rivals) -> ResolvedWorker {
        let job = self.job_of(worker);
        let options = &*job.options;
        let workload = workload_spec(job, worker, layout);
        ResolvedWorker {
            name: options.name.clone(),
            index: worker.index,
            engine_name: job.engine.name.to_owned(),
            engine: engine(job, worker, layout),
            counts_process: !options.schedule.thread
                && job.engine.facets.completion == Completion::LibraryThreads,
            offload: options.depth.io_submit_mode == SubmitMode::Offload,
            creation: files::creation(self, worker, layout),
            create_only: options.files.create_only,
            files: files::rules(job, worker, layout),
            zones: crate::zones::rules(job, layout),
            pre_read: options.files.pre_read,
            // I/Os of a ramp do not count towards number_ios, and only the general generator knows that.
            general_workload: options.counts_after_ramp(),
            content: (options.pattern.rw.writes() && job.engine.facets.moves_data())
                .then(|| content::spec(options, layout, worker)),
            writes_only: !options.pattern.rw.reads(),
            issue: issue::rules(options, job.engine.facets, &workload),
            syncs: issue::syncs(options),
            passes: issue::passes(options, job.engine.facets, layout),
            pace: pace::rules(options, worker.seed),
            target: issue::target(options),
            block_lives: options
                .measurement
                .block_error_percentiles
                .then(|| options.block_size(iolite_types::Direction::Trim).min().max(1)),
            priorities: priorities::rules(options, worker.seed),
            flow: peers::flow(self, worker),
            batches: peers::batches(self, worker),
            sized_ramp: peers::sized_ramp(self, worker),
            other_ends: self.other_ends(worker),
            verify: verification::rules(self, worker, layout, &workload, rivals),
            errors: errors::rules(options),
            buffers: buffers::rules(job, &workload),
            placement: placement::rules(self, worker),
            io_scheduler: options.placement.ioscheduler.clone(),
            command_before: options.schedule.exec_prerun.clone(),
            command_after: options.schedule.exec_postrun.clone(),
            logs: logs::rules(self, worker),
            replay_speed: (!options.replay.replay_no_stall)
                .then_some(options.replay.replay_time_scale.max(1)),
            // The stamps have to be those of the kernel's clock.
            clock: match options.measures_stages() {
                true => Some(ClockSource::ClockGetTime),
                false => options.measurement.clocksource,
            },
            stages: job.stages,
            start_clock: options.measurement.start_clock(),
            layout: layout.clone(),
            workload,
        }
    }
}

/// The configurations of a job's engine.
impl JobPlan {
    /// The configuration of its workers' engine, as far as it decides whether the engine can be used here.
    pub fn probe_config(&self) -> EngineConfig {
        probe_config(&self.options)
    }

    /// The configuration of an engine that only answers questions about its storage.
    pub fn storage_config(&self) -> EngineConfig {
        storage_config(&self.options)
    }
}

/// The configuration of a job's engine if it only answers questions about its storage.
pub fn storage_config(options: &JobOptions) -> EngineConfig {
    EngineConfig {
        direct: options.durability.direct,
        block: options.only_block().unwrap_or(0),
        changes_data: options.changes_data(),
        ..EngineConfig::new(options.engine.clone(), 1)
    }
}

fn probe_config(options: &JobOptions) -> EngineConfig {
    let mut own = options.engine.clone();
    own.place(&options.data_placement);
    EngineConfig {
        direct: options.durability.direct,
        changes_data: options.changes_data(),
        block: options.only_block().unwrap_or(0),
        ..EngineConfig::new(own, options.depth.iodepth as usize)
    }
}

fn engine(job: &JobPlan, worker: &WorkerPlan, layout: &Layout) -> EngineConfig {
    let options = &*job.options;
    // Traces do not contain the flags of sync_file_range(2); without flags it would do nothing.
    let unsaid = if worker.replay.is_some() { libc::SYNC_FILE_RANGE_WRITE } else { 0 };
    let mut own = options.engine.clone();
    if let Some(far) = own.far_end() {
        *far.port = port_of_clone(*far.port, worker.clone);
    }
    if let Some(net) = own.of_mut::<NetOptions>()
        && let (true, Some(name)) = (net.hostname.is_empty(), net.connects_to(options))
    {
        net.hostname = name.to_owned();
    }
    own.place(&options.data_placement);
    EngineConfig {
        options: own,
        keeps_writes: options.sync_asked_for().is_some() || options.verification.is_on(),
        verifies: options.verification.is_on(),
        worker: worker.index as u32,
        pauses: pace::rules(options, worker.seed).is_some() || options.batches.batch_size > 0,
        atomic: options.durability.atomic,
        files: layout.count(),
        sync_file_range_flags: options.durability.sync_file_range.map_or(unsaid, |range| range.flags),
        access: if options.pattern.rw.is_random() {
            AccessPattern::Random
        } else {
            AccessPattern::Sequential
        },
        defer_submission: options.measurement.disable_slat
            && options.measurement.disable_clat
            && !options.writes_logs()
            && !options.measures_stages(),
        seed: worker.seed,
        job: options.name.clone(),
        runtime_us: options.schedule.runtime,
        auxiliary: job.auxiliary.clone(),
        ..probe_config(options)
    }
}
