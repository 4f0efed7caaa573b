//! The joint meaning of the options: groups, workers, files, sizes, seeds.
//!
//! [`Plan::build`] turns typed options and facts about the machine into jobs and workers, and checks them.
//! [`impossible`] checks the demands of the whole plan on the machine, [`Plan::layouts`] decides sizes and regions of
//! files, and [`Plan::resolve`] decides everything about a worker. All are functions of options and facts, and can be
//! tested with a machine that does not exist ([`iolite_host::MadeUp`]).
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | names of files, also by the million; sizes and regions | `files.rs`, `names.rs`; `layout.rs`, `layouts.rs` (objects that must be there: `is_there`, `fits`) |
//! | the parts of a resolved worker | `resolve.rs`, a file for each part; `resolve/peers.rs`: other workers that it depends on, the other ends of connections |
//! | what a job does as a whole: what ends it, its report, samples, watching, estimates | `job.rs` and its parts |
//! | a job's seed, its number on disk, the name of its state | `builder.rs` (`place`) |
//! | jobs that are refused | of one job: `check.rs`, `amounts.rs`, `measuring.rs`; what engines cannot do: `engines.rs` (facets), own options of an engine: `obstacles` in `options/src/engines/own.rs`; devices in use, wrong kinds of files: `safety.rs`; `--readonly`: `readonly.rs`; a file with data as buffers: `buffer_file.rs`; files that a run would destroy: `own_files.rs`; unverifiable data: `verification/obstacles.rs`, `unforeseeable.rs`, `rivalries.rs` |
//! | demands that the machine cannot meet | `memory_need.rs` (memory), `limits.rs`, `system_support.rs` (clocks, atomic writes), `affinity.rs` |
//! | zones | `zones.rs`: refusals and regions of whole zones; `zone_conflicts.rs`: options that do not go with zones or preconditioning; `zones/devices.rs`: devices that workers share |
//! | several workers that write to one place, and verify | `verification/rivalries.rs`, `imprint.rs` |
//! | replays | `replay.rs` scans a trace once; `workload.rs` (`replayed`): a trace in the terms of a workload, for verification |
//! | control groups, rates of several machines, jobs reported together | `control_groups.rs`; `rates.rs`; `reporting.rs` |

mod affinity;
mod amounts;
mod batches;
mod block_devices;
mod buffer_file;
mod builder;
mod check;
pub mod commands;
mod content;
mod control_groups;
mod dedupe;
mod engines;
mod files;
mod job;
mod layout;
mod layouts;
mod limits;
mod logs;
mod measuring;
mod memory_need;
mod names;
mod namespaces;
pub mod own_files;
mod placement;
mod priorities;
mod rates;
mod readonly;
mod remarks;
mod replay;
mod reporting;
pub mod resolve;
mod safety;
mod storages;
mod system_support;
pub mod verification;
mod workers;
mod workload;
mod zone_conflicts;
mod zones;

pub use buffer_file::holds_data;
pub use check::impossible;
pub use control_groups::ControlGroup;
pub use iolite_options::{ExitWhat, NumaPolicy, ReadWrite};
pub use iolite_types::FileKind;
pub use job::{EndRules, EstimateRules, JobPlan, ReportRules, SamplingRules, SteadyRules};
pub(crate) use layout::{FileFacts, LayoutContext, is_endless, layout, layout_of_names};
pub use layout::{FileLayout, Layout, LeftOut, NamedFiles, ZonedFile};
pub use logs::{logs_asked, logs_of_workers, stages_log};
pub use measuring::{StageRules, StagesBy};
pub use memory_need::buffers as too_large_buffers;
pub use names::Names;
pub use priorities::MOST_PRIORITIES;
pub use rates::Share;
pub(crate) use replay::replay_layout;
pub use replay::{FileNeeds, ReplayPlan, Target};
pub use safety::is_missing_device;
pub use storages::{NoStorages, Storages};
pub use workers::{Barrier, Plan, SharedContent, WorkerPlan};
pub use zones::{ZoneRules, ZonedDevice};

use iolite_options::{JobOptions, Origin};
use std::fmt;

/// Why a plan cannot be carried out: the job, the place of the cause, a description and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The job's name.
    pub job: String,
    /// The option to blame, where there is one.
    pub origin: Option<Origin>,
    /// The problem and its remedy.
    pub message: String,
    /// The error number for reports. It is that of the system where the system refuses something, otherwise `EINVAL`.
    pub errno: i32,
}

impl Problem {
    /// A problem of the job with these options, for which an option is to blame.
    pub fn of(options: &JobOptions, option: &str, message: String) -> Problem {
        let origin = options.origins.get(option).cloned();
        Problem { origin, ..Problem::of_job(&options.name, message) }
    }

    /// A problem of the job of this name.
    pub fn of_job(name: &str, message: String) -> Problem {
        Problem { job: name.to_owned(), origin: None, message, errno: libc::EINVAL }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}: {}", self.job, self.message)
    }
}

impl std::error::Error for Problem {}
