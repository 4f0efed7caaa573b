//! What a run for a client leaves for him: its logs, which have no other place than his, and its verify states.
//!
//! Logs are in a directory of their own until they are sent: a run writes any amount of them in the memory that it has.

use iolite_options::JobOptions;
use iolite_plan::{Plan, Problem};
use iolite_remote::child::Channel;
use iolite_remote::message::FromAgent;
use iolite_remote::returned::parts;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where the logs of a run are until they are sent. Removed with its value.
pub struct Logs {
    /// `None` = there are none.
    directory: Option<PathBuf>,
}

impl Logs {
    /// Has jobs write their logs into this directory, which is made if there are any.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn redirect(batches: &mut [Vec<JobOptions>], directory: &Path) -> Result<Logs, Vec<String>> {
        let mut logged: Vec<&mut JobOptions> =
            batches.iter_mut().flatten().filter(|job| job.logs.any()).collect();
        if logged.is_empty() {
            return Ok(Logs { directory: None });
        }
        let made = fs::DirBuilder::new().mode(0o700).create(directory);
        made.map_err(|error| vec![format!("logs: {}: {error}", directory.display())])?;
        let logs = Logs { directory: Some(directory.to_owned()) };
        let mut taken = HashMap::new();
        let problems: Vec<String> =
            logged.iter_mut().flat_map(|job| redirect(job, directory, &mut taken)).collect();
        if problems.is_empty() { Ok(logs) } else { Err(problems) }
    }

    /// Sends the logs, and the states that the run has left. States stay here as well: a later run loads them here.
    pub fn send(&self, plan: &Plan, channel: &mut Channel) {
        let mut files = BTreeSet::new();
        if let Some(directory) = &self.directory {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| entry.path()));
        }
        files.extend(iolite_plan::verification::kept_states(plan).filter(|path| path.exists()));
        for file in files {
            let sent = parts(&file, |part| channel.tell(&FromAgent::File(Box::new(part))));
            if let Err(error) = sent {
                let shown = file.file_name().unwrap_or_default().display();
                channel.tell(&FromAgent::Warning(format!("{shown} does not come back: {error}")));
            }
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // If that fails, the agent tries it again.
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// Has a job write its logs into this directory: what is in the way. Of their names, the last part comes back.
fn redirect(
    job: &mut JobOptions,
    directory: &Path,
    taken: &mut HashMap<String, (String, String)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let name = job.name.clone();
    let logs = &mut job.logs;
    let asked = [
        ("write_bw_log", &mut logs.write_bw_log),
        ("write_lat_log", &mut logs.write_lat_log),
        ("write_iops_log", &mut logs.write_iops_log),
        ("write_hist_log", &mut logs.write_hist_log),
    ];
    let mut blamed = Vec::new();
    for (option, prefix) in asked.into_iter().filter_map(|(option, prefix)| Some((option, prefix.as_mut()?)))
    {
        let whole = if prefix.is_empty() { name.clone() } else { prefix.clone() };
        let last = whole.rsplit('/').next().unwrap_or_default().to_owned();
        *prefix = directory.join(&last).display().to_string();
        let (before, job) = taken.entry(last).or_insert_with(|| (whole.clone(), name.clone()));
        if *before != whole {
            blamed.push((
                option,
                format!(
                    "{option}={whole}: logs come back by the last part of their names, and {before} of job {job} has the \
                     same; give another name"
                ),
            ));
        }
    }
    problems.extend(blamed.into_iter().map(|(option, why)| Problem::of(job, option, why).to_string()));
    problems
}
