//! The facets that engines in shared objects declare, read before planning.
//!
//! Reading them means running the engine's code. So this is done only for jobs from users who may run their own code
//! here: jobs of the command line and of local job files. In a plan for other jobs, such engines are refused.

use iolite_engine::in_child_process;
use iolite_options::JobOptions;
use iolite_options::engines::{ExternalOptions, Facets};
use iolite_plan::Problem;
use std::collections::HashMap;
use std::path::PathBuf;

/// Fills in the facets of the engines in shared objects that jobs name. Each is loaded in a separate process, so this
/// process has to be single-threaded.
///
/// # Errors
/// Engines that cannot be used, with the reasons, for all jobs.
pub fn describe(jobs: &mut [JobOptions]) -> Result<(), Vec<Problem>> {
    let mut known: HashMap<PathBuf, Result<Facets, String>> = HashMap::new();
    let mut problems = Vec::new();
    for job in jobs {
        let Some(own) = job.engine.of_mut::<ExternalOptions>() else { continue };
        let library = own.library.clone();
        let ask = || {
            let asked = in_child_process("external", || iolite_engines::describe_external(&library));
            asked.map_err(|error| error.to_string())
        };
        match known.entry(library.clone()).or_insert_with(ask) {
            Ok(facets) => own.described = Some(*facets),
            Err(message) => {
                let message = message.clone();
                problems.push(Problem::of(job, "ioengine", message));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
