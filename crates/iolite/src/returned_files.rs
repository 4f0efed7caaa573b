//! The files that a run leaves for its client: logs, which exist nowhere else, and verify states.
//!
//! Logs are in a separate directory until they are sent: they may be larger than memory.

use iolite_options::JobOptions;
use iolite_plan::{Plan, Problem};
use iolite_remote::child::Channel;
use iolite_remote::message::FromAgent;
use iolite_remote::returned::{LONGEST, parts};
use iolite_remote::spool;
use iolite_stats::{EVENT_VERSION, Event, EventKind};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The logs of a run on a server until they are sent. The agent removes logs that were sent, and keeps the others.
pub struct Logs {
    /// `None` = no logs.
    directory: Option<PathBuf>,
}

impl Logs {
    /// Makes jobs write their logs into this directory, which is created if there are any logs.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn redirect(batches: &mut [Vec<JobOptions>], directory: &Path) -> Result<Logs, Vec<String>> {
        let mut logged: Vec<&mut JobOptions> =
            batches.iter_mut().flatten().filter(|job| job.logs.any()).collect();
        if logged.is_empty() {
            return Ok(Logs { directory: None });
        }
        spool::make(directory).map_err(|error| {
            let place = directory.display();
            vec![format!("logs: {place}: {error}; set TMPDIR for the server to a directory that takes files")]
        })?;
        if directory.to_str().is_none() {
            return Err(vec![format!(
                "logs: {}: this is not text; set TMPDIR for the server",
                directory.display()
            )]);
        }
        let logs = Logs { directory: Some(directory.to_owned()) };
        let mut taken = HashMap::new();
        let problems: Vec<String> =
            logged.iter_mut().flat_map(|job| redirect(job, directory, &mut taken)).collect();
        if problems.is_empty() { Ok(logs) } else { Err(problems) }
    }

    /// The files that the run has left: its logs, and the states that it has written. A run that was not interrupted
    /// has all its logs.
    pub fn left(mut self, plan: &Plan, is_whole: bool, earlier: &States) -> Left {
        let mut left = Left { directory: self.directory.take(), ..Left::default() };
        if let Some(directory) = &left.directory {
            let found = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            match found {
                Ok(entries) => left.files.extend(entries.iter().map(fs::DirEntry::path)),
                Err(error) => {
                    left.missing.push(format!("the logs do not come back: {}: {error}", directory.display()))
                }
            }
            // If a job ends others, some of them may never have begun.
            let ends_others = plan.jobs.iter().any(|job| job.end.ends_others || job.end.ends_others_on_error);
            if is_whole && !ends_others && left.missing.is_empty() {
                let expected: BTreeSet<PathBuf> =
                    iolite_plan::logs_asked(plan).map(|(_, _, path)| path).collect();
                let gone = expected.difference(&left.files).filter_map(|path| path.file_name());
                let words =
                    gone.map(|name| format!("{} does not come back: it no longer exists", name.display()));
                left.missing.extend(words);
            }
        }
        left.files.extend(earlier.changed(plan));
        left
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // Nothing has run. If removing fails, the agent tries again.
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// The files of a run, kept until the client fetches them. States stay here as well, for later runs to load.
#[derive(Default)]
pub struct Left {
    /// The directory of its logs.
    directory: Option<PathBuf>,
    files: BTreeSet<PathBuf>,
    /// Why files are missing.
    missing: Vec<String>,
}

impl Left {
    /// Whether there is nothing to send or to report.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.missing.is_empty()
    }

    /// Sends the files and removes logs that were sent. Returns how many could not be sent.
    pub fn send(mut self, channel: &mut Channel) -> u64 {
        let mut is_there = true;
        for file in &self.files {
            match parts(file, |part| channel.tell(&FromAgent::File(Box::new(part)))) {
                Ok(true) => {}
                // The client is gone.
                Ok(false) => {
                    is_there = false;
                    break;
                }
                Err(error) => {
                    let shown = file.file_name().unwrap_or_default().display();
                    self.missing.push(format!("{shown} does not come back: {error}"));
                }
            }
        }
        for why in &self.missing {
            channel.tell(&FromAgent::Event(Box::new(trouble(why.clone()))));
        }
        if let (Some(directory), true) = (&self.directory, is_there) {
            // Before the client knows that the run is over. If removing fails, the agent tries again.
            let _ = fs::remove_dir_all(directory);
        }
        self.missing.len() as u64
    }
}

fn trouble(why: String) -> Event {
    Event { version: EVENT_VERSION, host: None, at_ns: 0, source: None, kind: EventKind::Trouble(why) }
}

/// Logs that cannot be returned, because their names have no room for the machine's name.
pub fn too_long(plan: &Plan) -> Vec<String> {
    let long = iolite_plan::logs_asked(plan).filter_map(|(job, option, path)| {
        let name = path.file_name()?;
        let is_long = name.len() > LONGEST;
        let why =
            format!("{option}: {} is too long a name to come back (at most {LONGEST} bytes)", name.display());
        is_long.then(|| job.problem(option, why).to_string())
    });
    long.collect()
}

/// The verify states that exist before a run.
pub struct States(HashMap<PathBuf, Identity>);

/// Changes when a file is written again: device, inode, and times of modification.
type Identity = (u64, u64, i64, i64);

impl States {
    /// The existing states that this plan would overwrite.
    pub fn of(plan: &Plan) -> States {
        let kept = iolite_plan::verification::kept_states(plan);
        States(kept.filter_map(|path| Some((identity(&path)?, path))).map(|(is, path)| (path, is)).collect())
    }

    /// The states written since then.
    fn changed(&self, plan: &Plan) -> impl Iterator<Item = PathBuf> {
        let kept = iolite_plan::verification::kept_states(plan);
        kept.filter(|path| identity(path).is_some_and(|now| self.0.get(path) != Some(&now)))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

/// Makes a job write its logs into this directory. Returns problems. Only the last component of a log's name is sent
/// back.
fn redirect(
    job: &mut JobOptions,
    directory: &Path,
    taken: &mut HashMap<(&'static str, String), (String, String)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let name = job.name.clone();
    let logs_are_numbered = job.logs.per_job_logs;
    let asked = job.logs.prefixes_mut().into_iter();
    let mut blamed = Vec::new();
    for (option, prefix) in asked.filter_map(|(option, prefix)| Some((option, prefix.as_mut()?))) {
        let whole = if prefix.is_empty() { name.clone() } else { prefix.clone() };
        let last = whole.rsplit('/').next().unwrap_or_default().to_owned();
        *prefix = directory.join(&last).display().to_string();
        // Otherwise the name contains the number of the worker, so no other job has the same name.
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
