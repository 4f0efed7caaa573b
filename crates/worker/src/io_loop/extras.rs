//! What only a full loop uses, each thing there only where the job asks for it.

use super::{BlockLives, IntendedStarts};
use crate::flow::Flow;
use crate::pace::Pace;
use crate::priority::Priorities;
use crate::ramp::SizedRamp;
use crate::syncs::SyncSchedule;
use crate::target::LatencyTarget;
use iolite_logs::Recorder;
use iolite_verify::Verification;

/// Everything beyond issuing and counting. A plain loop looks at none of it.
pub struct Extras<'a> {
    /// Syncs between I/Os.
    pub syncs: SyncSchedule,
    /// When I/Os may be issued; `None` = at once.
    pub pace: Option<Pace>,
    /// Looks for the depth; `None` = it is given.
    pub target: Option<LatencyTarget>,
    /// When units were meant to begin; `None` = nobody asks.
    pub intended: Option<IntendedStarts>,
    /// What becomes of each block; `None` = nobody asks.
    pub blocks: Option<BlockLives<'a>>,
    /// Draws the priority of each I/O; `None` = all have the worker's.
    pub priorities: Option<Priorities>,
    /// The workers to keep in step with; `None` = there are none.
    pub flow: Option<Flow<'a>>,
    /// What has to be moved before counting begins; `None` = only time counts.
    pub sized_ramp: Option<SizedRamp<'a>>,
    /// The logs.
    pub log: Option<Recorder>,
    /// Checks what was written; `None` = nothing is checked.
    pub verification: Option<Box<Verification>>,
}

impl Extras<'_> {
    /// Whether there is any of it.
    pub fn any(&self) -> bool {
        // Every field is named, so that a new one cannot be forgotten.
        let Extras { syncs, pace, target, intended, blocks, priorities, flow, sized_ramp, log, verification } =
            self;
        !syncs.is_empty()
            || pace.is_some()
            || target.is_some()
            || intended.is_some()
            || blocks.is_some()
            || priorities.is_some()
            || flow.is_some()
            || sized_ramp.is_some()
            || log.is_some()
            || verification.is_some()
    }
}
