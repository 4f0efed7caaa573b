//! The parts that only the full loop uses, and those that are used rarely. Each part is present only if the job needs
//! it.

use super::blocks::BlockLives;
use super::intended::IntendedStarts;
use super::ranges::Ranges;
use super::stages::StageStamps;
use crate::accelerator::Reader;
use crate::depth_search::LatencyTarget;
use crate::flow::Flow;
use crate::pace::Pace;
use crate::priority::Priorities;
use crate::ramp::SizedRamp;
use crate::syncs::SyncSchedule;
use iolite_content::Content;
use iolite_logs::Recorder;
use iolite_verify::Verification;

/// Everything besides issuing and counting. The plain loop never looks at it.
pub struct Extras<'a> {
    /// Syncs between I/Os.
    pub syncs: SyncSchedule,
    /// Rates and think time; `None` = I/Os are issued at once.
    pub pace: Option<Pace>,
    /// The search for a depth; `None` = the depth is fixed.
    pub target: Option<LatencyTarget>,
    /// The intended start of each unit; `None` = not measured.
    pub intended: Option<IntendedStarts>,
    /// The states of blocks; `None` = not measured.
    pub blocks: Option<BlockLives<'a>>,
    /// Draws the priority of each I/O; `None` = all I/Os have the worker's.
    pub priorities: Option<Priorities>,
    /// The ranges of trims; `None` = each has one.
    pub ranges: Option<Ranges>,
    /// The flow that the worker belongs to.
    pub flow: Option<Flow<'a>>,
    /// The accelerator that its reads are samples for.
    pub accelerator: Option<Reader<'a>>,
    /// The ramp in bytes; `None` = the ramp is measured in time, or there is no ramp.
    pub sized_ramp: Option<SizedRamp<'a>>,
    /// The stamps for the stages of each I/O; `None` = they are not measured.
    pub stages: Option<StageStamps<'a>>,
    /// The logs.
    pub log: Option<Recorder>,
    /// The verification; `None` = no data is verified.
    pub verification: Option<Box<Verification>>,
    /// Fills the buffers of units that are used for the first time; `None` = all are filled, or need not be.
    pub later_units: Option<Content>,
}

impl Extras<'_> {
    /// Whether any part is present.
    pub fn any(&self) -> bool {
        // The pattern names every field, so that a new one cannot be forgotten.
        let Extras {
            syncs,
            pace,
            target,
            intended,
            blocks,
            priorities,
            ranges,
            flow,
            accelerator,
            sized_ramp,
            stages,
            log,
            verification,
            // Both loops use it.
            later_units: _,
        } = self;
        !syncs.is_empty()
            || pace.is_some()
            || target.is_some()
            || intended.is_some()
            || blocks.is_some()
            || priorities.is_some()
            || ranges.is_some()
            || flow.is_some()
            || accelerator.is_some()
            || sized_ramp.is_some()
            || stages.is_some()
            || log.is_some()
            || verification.is_some()
    }
}
