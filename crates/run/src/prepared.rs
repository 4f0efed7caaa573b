//! What is found out before a run begins, and changes nothing.

use crate::controller::Controller;
use crate::worker::verify::{Rivals, problems_of_files, problems_of_states};
use crate::{Events, Outcome, RunError, Settings, own_files};
use iolite_host::Machine;
use iolite_plan::{Layout, Plan, Problem};
use std::path::Path;

/// A plan whose files and engines have been looked at: it can be performed.
pub struct Prepared<'a> {
    plan: &'a Plan,
    machine: &'a dyn Machine,
    layouts: Vec<Layout>,
    rivals: Rivals,
}

impl<'a> Prepared<'a> {
    /// Looks at the files and engines that the plan needs, and at what the machine is like. Changes nothing.
    ///
    /// # Errors
    /// Everything that is in the way, for all jobs.
    pub fn new(plan: &'a Plan, machine: &'a dyn Machine) -> Result<Self, RunError> {
        let mut problems = probe(plan);
        problems.extend(iolite_plan::impossible(plan, machine));
        problems.extend(plan.jobs.iter().flat_map(|job| {
            let options = &job.options;
            let replays = plan.workers[plan.clones(job)].iter().filter_map(|worker| worker.replay.as_deref());
            let replays: Vec<_> = replays.collect();
            crate::worker::verify::problems(options, &replays).into_iter().map(|(option, message)| Problem {
                job: options.name.clone(),
                origin: options.origins.get(option).cloned(),
                message,
            })
        }));
        let found = plan.layouts(machine).and_then(|layouts| {
            let unknowable =
                [own_files::overwritten(plan, &layouts), problems_of_files(plan, &layouts)].concat();
            match Rivals::of(plan, &layouts) {
                Ok(_) if !unknowable.is_empty() => Err(unknowable),
                Ok(rivals) => match problems_of_states(plan, &rivals) {
                    damaged if damaged.is_empty() => Ok((layouts, rivals)),
                    damaged => Err(damaged),
                },
                Err(more) => Err([unknowable, more].concat()),
            }
        });
        match found {
            Ok((layouts, rivals)) if problems.is_empty() => Ok(Prepared { plan, machine, layouts, rivals }),
            Ok(_) => Err(RunError::Problems(problems)),
            Err(more) => {
                problems.extend(more);
                Err(RunError::Problems(problems))
            }
        }
    }

    /// What of the run lies at this path and must not be written over, in words: data of a job, a trace, a state.
    pub fn at(&self, path: &Path) -> Option<String> {
        own_files::at(self.plan, &self.layouts, path)
    }

    /// Performs the plan. This process must be single-threaded: it forks.
    ///
    /// # Errors
    /// What the operating system refuses that every run needs. Failures of jobs are part of the outcome.
    pub fn perform(self, settings: Settings, events: &mut Events<'_>) -> Result<Outcome, RunError> {
        Controller::start(self.plan, self.machine, self.layouts, self.rivals, settings)?.run(events)
    }
}

/// Finds out, before anything is touched, whether the engines can be used here.
fn probe(plan: &Plan) -> Vec<Problem> {
    plan.jobs
        .iter()
        .filter_map(|job| {
            let error = iolite_engine::probe(job.engine.name, &job.probe_config()).err()?;
            Some(job.problem("ioengine", error.to_string()))
        })
        .collect()
}
