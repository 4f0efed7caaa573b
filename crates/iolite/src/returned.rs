//! What a run for a client leaves for him: its logs, which are kept nowhere else, and its verify states.
//!
//! Logs are in a directory of their own until they are sent: a run writes any amount of them in the memory that it has.

use iolite_options::JobOptions;
use iolite_plan::{Plan, Problem};
use iolite_remote::child::Channel;
use iolite_remote::message::FromAgent;
use iolite_remote::returned::parts;
use iolite_stats::{EVENT_VERSION, Event, EventKind};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
        made.map_err(|error| {
            let place = directory.display();
            vec![format!("logs: {place}: {error}; set TMPDIR for the server to a directory that takes files")]
        })?;
        if directory.to_str().is_none() {
            return Err(vec![format!(
                "logs: {}: this is no text; set TMPDIR for the server",
                directory.display()
            )]);
        }
        let logs = Logs { directory: Some(directory.to_owned()) };
        let mut taken = HashMap::new();
        let problems: Vec<String> =
            logged.iter_mut().flat_map(|job| redirect(job, directory, &mut taken)).collect();
        if problems.is_empty() { Ok(logs) } else { Err(problems) }
    }

    /// Sends the logs, and the states that the run has left: how many files could not be sent. States stay here as well: a later
    /// run loads them here.
    pub fn send(&self, plan: &Plan, earlier: &States, channel: &mut Channel) -> u64 {
        let mut files = BTreeSet::new();
        let mut missing = Vec::new();
        if let Some(directory) = &self.directory {
            let found = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            match found {
                Ok(entries) => files.extend(entries.iter().map(fs::DirEntry::path)),
                Err(error) => {
                    missing.push(format!("the logs do not come back: {}: {error}", directory.display()))
                }
            }
        }
        files.extend(earlier.changed(plan));
        for file in files {
            let sent = parts(&file, |part| channel.tell(&FromAgent::File(Box::new(part))));
            if let Err(error) = sent {
                let shown = file.file_name().unwrap_or_default().display();
                missing.push(format!("{shown} does not come back: {error}"));
            }
        }
        for why in &missing {
            channel.tell(&FromAgent::Event(Box::new(trouble(why.clone()))));
        }
        missing.len() as u64
    }
}

fn trouble(why: String) -> Event {
    Event { version: EVENT_VERSION, host: None, at_ns: 0, source: None, kind: EventKind::Trouble(why) }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // If that fails, the agent tries it again.
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// The verify states that are there before a run: those of earlier ones.
pub struct States(HashMap<PathBuf, Identity>);

/// What is different when a file has been written again.
type Identity = (u64, u64, i64, i64);

impl States {
    /// Those that this plan would leave as well.
    pub fn of(plan: &Plan) -> States {
        let kept = iolite_plan::verification::kept_states(plan);
        States(kept.filter_map(|path| Some((identity(&path)?, path))).map(|(is, path)| (path, is)).collect())
    }

    /// Those that have been written since.
    fn changed(&self, plan: &Plan) -> impl Iterator<Item = PathBuf> {
        let kept = iolite_plan::verification::kept_states(plan);
        kept.filter(|path| identity(path).is_some_and(|now| self.0.get(path) != Some(&now)))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

/// Has a job write its logs into this directory: what is in the way. Of their names, the last part comes back.
fn redirect(
    job: &mut JobOptions,
    directory: &Path,
    taken: &mut HashMap<(&'static str, String), (String, String)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let name = job.name.clone();
    let logs = &mut job.logs;
    let logs_are_numbered = logs.per_job_logs;
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
        // The number of a worker is in the name otherwise, and so no other job has the same.
        if logs_are_numbered {
            continue;
        }
        let (before, job) = taken.entry((option, last)).or_insert_with(|| (whole.clone(), name.clone()));
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
