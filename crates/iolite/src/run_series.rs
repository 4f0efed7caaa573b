//! Runs that belong together, each in a separate process: the points of a sweep, repeats.
//!
//! Complete points are kept in a directory, so that the same command resumes after any interruption.

pub mod directory;
pub mod foresight;
mod runner;

use directory::Directory;
use iolite_options::JobOptions;
use iolite_report::clock;
use iolite_sweep::Figures;
pub use runner::{End, Runner, Start, in_memory};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Runs that belong together, in their order.
pub trait Points {
    /// The name of the series in messages.
    fn whole(&self) -> &'static str;
    /// The plural of a point's name.
    fn several(&self) -> &'static str;
    /// Whether only errors are reported during the runs.
    fn is_quiet(&self) -> bool {
        false
    }
    /// The number of points.
    fn count(&self) -> usize;
    /// File name of a point's report.
    fn report(&self, position: usize) -> String;
    /// Describes a point.
    fn words(&self, position: usize) -> String;
    /// The shortest time that a point takes, in seconds, as far as its options say.
    fn seconds(&self, position: usize) -> u64;
    /// The command of a point.
    ///
    /// # Errors
    /// No more points can be run.
    fn start(&self, position: usize) -> Result<Start, String>;
    /// Called with the report of a point that has just run, before it is renamed.
    fn keep(&mut self, _position: usize, _text: &str) {}
    /// Takes the report of a point; returns a line about it.
    ///
    /// # Errors
    /// It is not a report of such a run.
    fn take(&mut self, position: usize, report: &Value) -> Result<String, String>;
    /// Called when a point has failed; returns the message.
    fn give_up(&mut self, _position: usize, why: &str) -> String {
        why.to_owned()
    }
}

/// How the series ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// All have been run. (Some may have failed.)
    Through,
    /// A signal has ended it.
    Interrupted,
}

/// Runs the points that have no report yet, and takes the reports of all.
///
/// # Errors
/// The directory cannot be read, or no more runs can be started.
pub fn perform(program: &str, points: &mut dyn Points, directory: &Directory) -> Result<Course, String> {
    let mut runner = Runner::new().map_err(|error| format!("signals cannot be received: {error}"))?;
    let begun = Instant::now();
    let mut done = 0;
    let count = points.count();
    for position in 0..count {
        let name = points.report(position);
        if let Some(report) = directory.report(&name)? {
            points.take(position, &report)?;
            continue;
        }
        let start = points.start(position)?;
        let (report, doubt) = match runner.perform(&start, &directory.growing(&name)?)? {
            End::Interrupted => {
                directory.give_up(&name);
                let left = (0..count).filter(|position| !directory.has(&points.report(*position))).count();
                let what = if left == count {
                    "interrupted before there was any result; nothing is kept".to_owned()
                } else {
                    format!(
                        "interrupted with {left} of {count} {} left; the same command continues in {}",
                        points.several(),
                        directory.path.display()
                    )
                };
                tell(program, points, &what);
                return Ok(Course::Interrupted);
            }
            End::Failed(why) | End::Killed(why) => (Err(why), None),
            End::Done => (directory.grown(&name), None),
            End::Doubtful(words) if !directory.has_moved(&name) => (Err(words), None),
            End::Doubtful(words) => (directory.grown(&name), Some(words)),
        };
        let report = report.and_then(|text| {
            points.keep(position, &text);
            let report = directory.complete(&name)?;
            points.take(position, &report)
        });
        done += 1;
        let rest = position + 1..count;
        let left = rest.filter(|position| !directory.has(&points.report(*position))).count();
        let progress = format!("[{}/{count}] {}", position + 1, points.words(position));
        match report {
            Ok(_) if points.is_quiet() => {}
            Ok(words) => {
                let what = format!("{progress}: {words}{}", time_left(begun.elapsed(), done, left));
                tell(program, points, &what);
            }
            Err(why) => {
                directory.give_up(&name);
                let why = points.give_up(position, why.trim());
                tell(program, points, &format!("{progress}: failed: {why}"));
            }
        }
        if let Some(doubt) = doubt {
            tell(program, points, &format!("{progress}: {}", doubt.trim()));
        }
    }
    Ok(Course::Through)
}

/// Removes the directory if no point has a report: there is nothing to continue, and nothing to keep. Returns whether it
/// did.
pub fn remove_without_results(points: &dyn Points, directory: &Directory) -> bool {
    let names = || (0..points.count()).map(|position| points.report(position));
    let is_empty = !names().any(|name| directory.has(&name));
    if is_empty {
        directory.remove(names());
    }
    is_empty
}

/// Prints a message about the series on standard error.
pub fn tell(program: &str, points: &dyn Points, what: &str) {
    crate::messages::complain(program, &format_args!("{}: {what}", points.whole()));
}

/// Announces the runs before they start.
pub fn announce(program: &str, points: &dyn Points, directory: &Directory, more: &str) {
    if points.is_quiet() {
        return;
    }
    let is_there = |position: &usize| directory.has(&points.report(*position));
    let there = (0..points.count()).filter(is_there).count();
    let missing = (0..points.count()).filter(|position| !is_there(position));
    let seconds: u64 = missing.map(|position| points.seconds(position)).sum();
    let time = if seconds > 0 {
        format!(", at least {}", iolite_page::text::seconds(seconds as f64))
    } else {
        String::new()
    };
    let since = directory.begun_before.map(|begun| format!(", since {}", clock::minute(begun)));
    let known = match there {
        0 => String::new(),
        1 => format!(" (1 of them exists already{})", since.unwrap_or_default()),
        there => format!(" ({there} of them exist already{})", since.unwrap_or_default()),
    };
    let (count, several, place) = (points.count(), points.several(), directory.path.display());
    let named = if count == 1 { several.trim_end_matches('s') } else { several };
    tell(program, points, &format!("{count} {named}{more}{known}{time}; results go to {place}"));
}

fn time_left(elapsed: Duration, done: u32, left: usize) -> String {
    if left == 0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / f64::from(done) * left as f64;
    format!("; {left} left, about {}", iolite_page::text::seconds(seconds.ceil()))
}

/// The results of a run, in a few words.
pub fn short(figures: &Figures) -> String {
    let latency =
        figures.p99_ns.map(|p99| format!(", p99 {}", iolite_page::text::latency(p99))).unwrap_or_default();
    format!(
        "{} IOPS, {}{latency}",
        iolite_page::text::count(figures.iops),
        iolite_page::text::bandwidth(figures.bandwidth)
    )
}

/// The shortest time that jobs take, in seconds, as far as their options say.
pub fn seconds(jobs: &[JobOptions]) -> u64 {
    let of = |job: &JobOptions| (job.schedule.ramp_time + job.schedule.runtime) / 1_000_000;
    jobs.iter().map(of).max().unwrap_or(0)
}

/// The devices of a report, with their models; of files on none, their file systems.
pub fn devices(report: &Value) -> String {
    let mut names: Vec<String> = Vec::new();
    for target in report["iolite"]["targets"].as_array().into_iter().flatten() {
        let told = |keys: &[&str]| {
            let words: Vec<&str> = keys.iter().filter_map(|key| target[*key].as_str()).collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        let name = told(&["device", "model"]).or_else(|| told(&["file_system"])).unwrap_or_default();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
