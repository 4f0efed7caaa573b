//! `opendir` with an engine that has its own storage: the names are listed before planning, because listing needs a
//! connection.

use iolite_engine::in_child_process_with_progress;
use iolite_engines::storage_of;
use iolite_options::JobOptions;
use iolite_options::engines::Data;
use iolite_plan::Problem;
use std::path::{Path, PathBuf};

/// Sets `filename` to the names that a storage has in the directory of `opendir`. Separate processes query the storage,
/// so this process must be single-threaded.
///
/// # Errors
/// Why names cannot be listed, for all jobs.
pub fn look_up(jobs: &mut [JobOptions]) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for job in jobs {
        let is_stored = job.chosen_engine().is_some_and(|engine| engine.facets.data == Data::OwnStorage);
        let Some(directory) = job.files.opendir.clone().filter(|_| is_stored && !job.is_replay()) else {
            continue;
        };
        match list(job, &directory) {
            Ok(names) if names.is_empty() => {
                let message = format!("opendir={directory}: no name begins with this");
                problems.push(Problem::of(job, "opendir", message));
            }
            Ok(mut names) => {
                names.truncate(job.files.most_names());
                // (`opendir` stays set: found files are treated specially.)
                job.files.filename = names;
            }
            Err(message) => {
                problems.push(Problem::of(job, "opendir", format!("opendir={directory}: {message}")));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn list(job: &JobOptions, directory: &str) -> Result<Vec<String>, String> {
    let config = iolite_plan::resolve::storage_config(job);
    let listed = in_child_process_with_progress(&job.ioengine, job.engine.patience_us(), |progress| {
        let names = storage_of(&job.ioengine, &config)?.list(Path::new(directory), progress);
        Ok(names.map_err(|error| iolite_types::describe_error(&error)))
    });
    let names: Vec<PathBuf> = listed.map_err(|error| error.to_string())??;
    Ok(names.into_iter().map(|name| name.display().to_string()).collect())
}
