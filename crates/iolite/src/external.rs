//! The properties that engines in shared objects declare, read before there is a plan.
//!
//! To ask one is to run its code. So only jobs from somebody who may have code of their own run here are told: those of
//! the command line and of job files on this machine. In a plan for other jobs, such engines are refused.

use iolite_engine::apart;
use iolite_options::JobOptions;
use iolite_options::engines::{ExternalOptions, Facets};
use iolite_plan::Problem;
use std::collections::HashMap;
use std::path::PathBuf;

/// Tells jobs that name an engine in a shared object what it is. Each is asked in a process of its own, and this one has
/// to be single-threaded.
///
/// # Errors
/// Why engines cannot be used, for all jobs.
pub fn describe(jobs: &mut [JobOptions]) -> Result<(), Vec<Problem>> {
    let mut known: HashMap<PathBuf, Result<Facets, String>> = HashMap::new();
    let mut problems = Vec::new();
    for job in jobs {
        let Some(own) = job.engine.of_mut::<ExternalOptions>() else { continue };
        let library = own.library.clone();
        let ask = || {
            let asked = apart("external", || iolite_engine::describe_external(&library));
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
