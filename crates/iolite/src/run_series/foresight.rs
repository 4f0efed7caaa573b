//! Checks runs before the first one of them begins, so that a mistake in the last one does not cost the others.

use crate::local_run::{Drafted, draft};
use iolite_host::{Machine, ThisMachine};
use iolite_options::{JobOptions, Name, RunOptions};
use iolite_plan::{Plan, Problem};
use iolite_run::{Prepared, RunError};
use iolite_types::FileKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is known before the first run. Nothing is changed for it.
pub struct Foresight {
    name: Name,
    machine: ThisMachine,
    /// The files of the runs so far. Later runs may rely on them.
    files: BTreeSet<PathBuf>,
    /// Files and devices with data that runs will change.
    pub held: BTreeMap<PathBuf, FileKind>,
    /// Directories that runs will make above their files.
    pub made: BTreeSet<PathBuf>,
}

impl Foresight {
    pub fn new(name: Name) -> Foresight {
        Foresight {
            name,
            machine: ThisMachine::new(),
            files: BTreeSet::new(),
            held: BTreeMap::new(),
            made: BTreeSet::new(),
        }
    }

    /// Checks the next run.
    ///
    /// # Errors
    /// The reasons why it would be refused.
    pub fn check(&mut self, batches: Vec<Vec<JobOptions>>, run: &RunOptions) -> Result<(), Vec<String>> {
        // Merged traces are files that the run makes.
        let merges = batches.iter().flatten().any(|job| job.replay.merge_blktrace_file.is_some());
        let run = RunOptions { parse_only: merges, ..run.clone() };
        let drafted = draft(self.name, batches, &run, &self.machine, &mut String::new());
        let drafted = drafted.map_err(|problem| vec![problem.to_string()])?;
        let Some(Drafted { plan, problems }) = drafted else { return Ok(()) };
        if !problems.is_empty() {
            return Err(problems.iter().map(ToString::to_string).collect());
        }
        if merges {
            return Ok(());
        }
        let looked = self.look(&plan);
        self.files.extend(files_of(&plan));
        looked
    }

    fn look(&mut self, plan: &Plan) -> Result<(), Vec<String>> {
        let problems = match Prepared::new(plan, &self.machine) {
            Ok(prepared) => {
                for (path, _) in prepared.holding() {
                    if let Ok((kind, _)) = self.machine.usable_file(&path) {
                        self.held.insert(path, kind);
                    }
                }
                self.made.extend(prepared.missing_directories());
                return Ok(());
            }
            Err(RunError::Problems(problems)) => problems,
            Err(error) => return Err(vec![error.to_string()]),
        };
        // An earlier run may make what is missing.
        let is_made = |problem: &Problem| {
            problem.errno == libc::ENOENT && files_of(plan).all(|file| self.files.contains(&file))
        };
        let left: Vec<String> =
            problems.iter().filter(|problem| !is_made(problem)).map(ToString::to_string).collect();
        if left.is_empty() { Ok(()) } else { Err(left) }
    }
}

/// The files of the workers, as far as they have names before the run.
fn files_of(plan: &Plan) -> impl Iterator<Item = PathBuf> {
    /// The most files of a worker that are considered.
    const MOST: usize = 16;
    plan.workers.iter().flat_map(|worker| worker.files.places().take(MOST).map(|path| path.into_owned()))
}
