//! The checks before a run begins. They change nothing.

use crate::controller::Controller;
use crate::storages::Connected;
use crate::{Events, Outcome, RunError, Settings, collect};
use iolite_host::Machine;
use iolite_os::time;
use iolite_plan::verification::{self, Rivalries};
use iolite_plan::{Layout, Plan, Problem, own_files};
use iolite_stats::Report;
use iolite_verify::{Demands, Owners, check_rival_state};
use iolite_worker::{ZoneMaps, creation};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::debug;

/// A plan that has passed all checks and can be performed.
pub struct Prepared<'a> {
    plan: &'a Plan,
    machine: &'a dyn Machine,
    layouts: Vec<Layout>,
    rivalries: Rivalries,
    owners: Arc<Owners>,
    zones: Arc<ZoneMaps>,
}

impl<'a> Prepared<'a> {
    /// Checks the files and engines of the plan, and its demands on the machine. Changes nothing.
    ///
    /// # Errors
    /// The problems of all jobs.
    pub fn new(plan: &'a Plan, machine: &'a dyn Machine) -> Result<Self, RunError> {
        let storages = Connected::default();
        let mut problems = probe(plan, &storages);
        problems.extend(iolite_plan::impossible(plan, machine));
        problems.extend(verification::obstacles(plan));
        let found = plan.layouts(machine, &storages).and_then(|layouts| {
            if let Some(problem) = iolite_plan::too_large_buffers(plan, &layouts, machine) {
                return Err(vec![problem]);
            }
            let rivalries = rivalries(plan, &layouts, machine)?;
            let owners = owners(plan, &rivalries)?;
            let zones = zones(plan, &layouts, machine)?;
            Ok((layouts, rivalries, owners, zones))
        });
        match found {
            Ok((layouts, rivalries, owners, zones)) if problems.is_empty() => {
                Ok(Prepared { plan, machine, layouts, rivalries, owners, zones })
            }
            Ok(_) => Err(RunError::Problems(problems)),
            Err(more) => {
                // An unusable engine reports the same problem when it is asked about its storage.
                let is_new = |problem: &Problem| {
                    !problems
                        .iter()
                        .any(|known| (&known.job, &known.message) == (&problem.job, &problem.message))
                };
                let more: Vec<Problem> = more.into_iter().filter(is_new).collect();
                problems.extend(more);
                Err(RunError::Problems(problems))
            }
        }
    }

    /// The report before the first measurement: a description of the jobs.
    pub fn outline(&self) -> Report {
        collect::refused(self.plan, time::wall_ns() / 1_000_000, |_| None)
    }

    /// The files and devices whose data would be destroyed or changed, with their sizes if known.
    pub fn holding(&self) -> Vec<(PathBuf, Option<u64>)> {
        own_files::holding(self.plan, &self.layouts, self.machine)
    }

    /// The first files and block devices of the run, at most so many: their places, without links, and whether the run
    /// makes or changes them.
    pub fn used(&self, most: usize) -> BTreeMap<PathBuf, bool> {
        own_files::used(self.plan, &self.layouts, self.machine, most)
    }

    /// The directories that the run makes above its files.
    pub fn missing_directories(&self) -> impl Iterator<Item = PathBuf> {
        let workers = self.plan.workers.iter().zip(&self.layouts);
        let local = workers.filter(|(worker, _)| self.plan.job_of(worker).engine.facets.has_local_files());
        local.flat_map(|(_, layout)| creation::missing_directories(layout))
    }

    /// Performs the plan. This process must be single-threaded: it forks.
    ///
    /// # Errors
    /// The operating system refuses a resource that every run needs. Failures of jobs are part of the outcome.
    pub fn perform(self, settings: Settings, events: &mut Events<'_>) -> Result<Outcome, RunError> {
        let Prepared { plan, machine, layouts, rivalries, owners, zones } = self;
        let controller = Controller::start(plan, machine, layouts, (rivalries, owners), zones, settings)?;
        Ok(controller.run(events))
    }
}

/// Finds the writers to the places that others verify. Fails if the run would destroy a file that it needs, or could
/// not be verified.
fn rivalries(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Result<Rivalries, Vec<Problem>> {
    let mut problems = own_files::overwritten(plan, layouts, machine);
    problems.extend(verification::unverifiable(plan, layouts, machine, &|load| {
        Demands::load(load).err().map(|error| error.to_string())
    }));
    let rivalries = Rivalries::of(plan, layouts, machine);
    let rivalries = match rivalries {
        Ok(rivalries) if problems.is_empty() => rivalries,
        Ok(_) => return Err(problems),
        Err(more) => return Err([problems, more].concat()),
    };
    let damaged = verification::damaged_states(plan, &rivalries, &|path, name, policy| {
        check_rival_state(path, name, policy).err().map(|error| error.to_string())
    });
    if damaged.is_empty() { Ok(rivalries) } else { Err(damaged) }
}

/// The map of the last writers of places that workers share.
fn owners(plan: &Plan, rivalries: &Rivalries) -> Result<Arc<Owners>, Vec<Problem>> {
    let owners = Owners::of(rivalries.shared.clone()).map_err(|error| {
        let message = format!("verify: no memory for the owners of shared places: {error}");
        vec![Problem { errno: libc::ENOMEM, ..Problem::of_job(&plan.jobs[0].name, message) }]
    })?;
    debug!(target: "verify", "owners of shared places: at most {} bytes", owners.bytes());
    Ok(Arc::new(owners))
}

/// The zones of devices, which the workers share.
fn zones(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Result<Arc<ZoneMaps>, Vec<Problem>> {
    let devices = plan.zoned_devices(layouts, machine)?;
    let maps = ZoneMaps::new(&devices).map_err(|error| {
        let message = format!("zonemode=zbd: no memory for the zones: {error}");
        vec![Problem { errno: libc::ENOMEM, ..Problem::of_job(&plan.jobs[0].name, message) }]
    })?;
    Ok(Arc::new(maps))
}

/// Checks that the engines can be used on this machine.
fn probe(plan: &Plan, storages: &Connected) -> Vec<Problem> {
    plan.jobs
        .iter()
        .filter_map(|job| {
            let error = storages.probe(job.engine.name, &job.probe_config()).err()?;
            Some(job.problem("ioengine", error))
        })
        .collect()
}
