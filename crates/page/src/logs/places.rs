//! Assigns logs to the jobs of a stored result.

use super::LogFile;
use iolite_logs::LogKind;
use iolite_logs::reading::LogName;
use serde_json::Value;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The value of a job's option, set in the job or globally.
pub fn option(report: &Value, job: usize, name: &str) -> Option<String> {
    let jobs = iolite_stored::jobs(report).ok()?;
    let found = [&jobs.get(job)?["job options"], &report["global options"]].map(|options| &options[name]);
    let value = found.into_iter().find(|value| !value.is_null())?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Whether a boolean option is on.
pub fn is_set(report: &Value, job: usize, name: &str) -> bool {
    option(report, job, name).is_some_and(|value| value != "0")
}

/// Finds the jobs that wrote these logs.
///
/// # Errors
/// No job of the report wrote one of them.
pub fn places(report: &Value, found: Vec<(PathBuf, LogName)>) -> Result<Vec<LogFile>, String> {
    let jobs = jobs(report);
    found
        .into_iter()
        .map(|(path, name)| {
            let job = place(&jobs, &name).map_err(|why| format!("{}: {why}", path.display()))?;
            Ok(LogFile { path, kind: name.kind, job, skip: 0 })
        })
        .collect()
}

/// The log prefixes of a report's jobs, without duplicates.
pub fn prefixes(report: &Value) -> Vec<String> {
    let mut all: Vec<String> =
        jobs(report).into_iter().flat_map(|job| job.prefixes.into_iter().map(|(_, prefix)| prefix)).collect();
    all.sort();
    all.dedup();
    all
}

/// The properties of a reported job by which its logs are found.
struct Job {
    position: usize,
    /// For each kind of logs the option that asks for it, and the prefix without a directory.
    prefixes: Vec<(&'static str, String)>,
    /// The numbers of its workers.
    workers: RangeInclusive<usize>,
    host: Option<String>,
    /// It stands for several jobs, whose own options are not in the report.
    is_grouped: bool,
    has_options: bool,
}

/// The option that asks for this kind of logs.
const fn asking(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Bandwidth => "write_bw_log",
        LogKind::Iops => "write_iops_log",
        LogKind::Submission | LogKind::Completion | LogKind::Total | LogKind::FirstByte => "write_lat_log",
        LogKind::AskedIops | LogKind::AskedBandwidth => "write_asked_log",
        LogKind::Histogram => "write_hist_log",
    }
}

fn jobs(report: &Value) -> Vec<Job> {
    let values = iolite_stored::jobs(report).unwrap_or_default();
    let mut next = 1;
    let mut made = Vec::new();
    for (position, value) in values.iter().enumerate() {
        let name = value["jobname"].as_str().unwrap_or_default();
        let kinds =
            [LogKind::Bandwidth, LogKind::Iops, LogKind::Total, LogKind::AskedIops, LogKind::Histogram];
        let prefixes = kinds.into_iter().filter_map(|kind| {
            let prefix = option(report, position, asking(kind))?;
            let last = prefix.rsplit('/').next().unwrap_or_default();
            Some((asking(kind), if last.is_empty() { name.to_owned() } else { last.to_owned() }))
        });
        let is_grouped = is_set(report, position, "group_reporting");
        let clones = option(report, position, "numjobs").and_then(|count| count.parse().ok()).unwrap_or(1);
        let count: usize = if is_grouped { clones } else { 1 };
        // If a report lacks host names, the job name may contain one.
        let host = value["hostname"].as_str().or_else(|| Some(name.rsplit_once(" on ")?.1));
        made.push(Job {
            position,
            prefixes: prefixes.collect(),
            workers: next..=next.saturating_add(count.max(1) - 1),
            host: host.map(str::to_owned),
            is_grouped,
            has_options: value["job options"].is_object() || report["global options"].is_object(),
        });
        next = next.saturating_add(count.max(1));
    }
    made
}

/// The position of the job that wrote a log; `None` = several jobs share it, or it is unknown.
fn place(jobs: &[Job], name: &LogName) -> Result<Option<usize>, String> {
    if jobs.iter().all(|job| !job.has_options) {
        return Ok(match jobs {
            [only] => Some(only.position),
            _ => None,
        });
    }
    let has_prefix = |job: &&Job| {
        job.prefixes.iter().any(|(asked, prefix)| *asked == asking(name.kind) && *prefix == name.prefix)
    };
    let mut writers: Vec<&Job> = jobs.iter().filter(has_prefix).collect();
    if let Some(host) = &name.host
        && writers.iter().any(|job| job.host.as_ref() == Some(host))
    {
        writers.retain(|job| job.host.as_ref() == Some(host));
    }
    match (&writers[..], name.worker) {
        ([], _) if jobs.iter().any(|job| job.is_grouped) => Ok(None),
        ([], _) => Err(stranger(jobs, name)),
        ([only], _) => Ok(Some(only.position)),
        (several, Some(worker)) if name.host.is_none() => {
            let found = several.iter().find(|job| job.workers.contains(&worker));
            Ok(found.map(|job| job.position))
        }
        _ => Ok(None),
    }
}

fn stranger(jobs: &[Job], name: &LogName) -> String {
    let asked = asking(name.kind);
    let mut known: Vec<&str> = jobs
        .iter()
        .flat_map(|job| &job.prefixes)
        .filter(|(option, _)| *option == asked)
        .map(|(_, prefix)| prefix.as_str())
        .collect();
    known.dedup();
    let written = match &known[..] {
        [] => format!("none of its jobs has {asked}"),
        [only] => format!("its jobs have {asked}={only}"),
        [first, .., last] => format!("its jobs have {asked}={first} to {last}"),
    };
    format!("this is not a log of that result: {written}; give the logs of the run that the result is of")
}
