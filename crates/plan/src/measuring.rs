//! What a job measures: checks that it measures what it watches, and how the stages of its I/Os are found.

use iolite_options::engines::{Capability, Completion, EngineInfo, Facets, Obstacle, Target};
use iolite_options::{ClockSource, JobOptions, SteadyStateCriterion, SubmitMode};
use serde::{Deserialize, Serialize};

/// How the stages of I/Os are found (`stages`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRules {
    /// I/Os begin before they are submitted, because their issue stamp comes after it (`StageTimes::from_start`).
    pub from_start: bool,
    /// Threads of a library submit them.
    pub by_other_threads: bool,
    /// The engine passes commands to devices, past the block layer.
    pub passes_commands: bool,
    /// Who tells them.
    pub told_by: StagesBy,
}

/// Who tells the stages of I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StagesBy {
    /// The kernel's trace records.
    Kernel,
    /// The engine: I/Os are requests over HTTP.
    Requests,
    /// The engine: it knows when the answer of a server arrived.
    Answers,
}

impl StagesBy {
    fn of(options: &JobOptions, facets: Facets) -> StagesBy {
        match () {
            () if options.has_first_bytes() => StagesBy::Requests,
            () if facets.can(Capability::TimeAnswers) => StagesBy::Answers,
            () => StagesBy::Kernel,
        }
    }
}

/// What engines pass commands to whose records the kernel has.
const COMMANDS: [Target; 3] = [Target::Nvme, Target::Scsi, Target::Bsg];

impl StageRules {
    pub(crate) fn of(options: &JobOptions, facets: Facets) -> Option<StageRules> {
        options.measures_stages().then(|| StageRules {
            // The completion latency of a request begins before it is sent.
            from_start: !facets.is_synchronous() && !facets.can(Capability::TimeSending),
            by_other_threads: facets.completion == Completion::LibraryThreads,
            passes_commands: COMMANDS.contains(&facets.target),
            told_by: StagesBy::of(options, facets),
        })
    }
}

/// Why the stages of the job's I/Os cannot be measured.
pub(crate) fn obstacle_to_stages(options: &JobOptions, engine: &EngineInfo) -> Option<Obstacle> {
    if !options.measures_stages() {
        return None;
    }
    let name = engine.name;
    let facets = engine.facets;
    let on_block_devices = facets.has_local_files()
        && facets.moves_data()
        && (facets.target == Target::Any || COMMANDS.contains(&facets.target));
    let told_by = StagesBy::of(options, facets);
    if !on_block_devices && told_by == StagesBy::Kernel {
        let message = format!(
            "stages: ioengine={name} does not go through the kernel's block layer, where stages are observed; use psync, \
             libaio, io_uring or another engine for files and block devices, http, or an engine whose server answers each \
             I/O (nfs, nbd, libiscsi, rados, rbd, gfapi_async, libhdfs, net with pingpong)"
        );
        return Some(("stages", message));
    }
    if options.measurement.clocksource.is_some_and(|clock| clock != ClockSource::ClockGetTime) {
        let message =
            "clocksource: stages need the clock of the kernel's stamps, clock_gettime; leave clocksource out";
        return Some(("clocksource", message.to_owned()));
    }
    if let Some(cpu) = options.measurement.gtod_cpu {
        let message = format!("gtod_cpu={cpu}: stages need exact stamps of each I/O; leave gtod_cpu out");
        return Some(("gtod_cpu", message));
    }
    (options.depth.io_submit_mode == SubmitMode::Offload).then(|| {
        let message = "io_submit_mode=offload: stages are observed in the thread that issues I/Os; leave \
                       io_submit_mode out";
        ("io_submit_mode", message.to_owned())
    })
}

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let latency = [SteadyStateCriterion::Lat, SteadyStateCriterion::LatSlope];
    if options.measurement.steadystate_duration > 0
        && latency.contains(&options.measurement.steadystate.criterion)
        && !options.measurement.measures_completions()
    {
        let message = "steadystate: completion latencies are not measured; leave out disable_clat, gtod_reduce and \
                       stats=0, or look at iops or bw";
        found.push(("steadystate", message.to_owned()));
    }
    found
}
