//! The values of a report that lists and filters need.

use crate::error::{Result, StoreError};
use iolite_stored::{DIRECTIONS, bandwidth, number};
use iolite_types::RunStatus;
use serde_json::Value;

/// The most names of jobs.
const MOST_NAMES: usize = 1000;
/// The most characters of a name.
const LONGEST_NAME: usize = 200;

/// The values of a run that a list shows.
pub struct Summary {
    pub began_ms: u64,
    pub host: String,
    pub program: String,
    pub jobs: Vec<String>,
    pub iops: f64,
    pub bandwidth: f64,
    pub status: Option<RunStatus>,
}

impl Summary {
    /// Reads a report.
    pub fn of(report: &str, now_ms: u64) -> Result<Summary> {
        let no_report = |error: iolite_stored::NoReport| StoreError::NoReport(error.to_string());
        let report = iolite_stored::last_report(report).map_err(no_report)?;
        let jobs = iolite_stored::jobs(&report).map_err(no_report)?;
        let mut names: Vec<String> = Vec::new();
        for job in &jobs {
            let name: String =
                job["jobname"].as_str().unwrap_or_default().chars().take(LONGEST_NAME).collect();
            if names.len() < MOST_NAMES && !names.contains(&name) {
                names.push(name);
            }
        }
        let began = jobs.iter().filter_map(|job| job["job_start"].as_u64()).filter(|&start| start > 0).min();
        let reported = report["timestamp_ms"].as_u64();
        let in_seconds = report["timestamp"].as_u64().and_then(|seconds| seconds.checked_mul(1000));
        Ok(Summary {
            began_ms: began.or(reported).or(in_seconds).unwrap_or(now_ms),
            host: report["iolite"]["host"]["name"]
                .as_str()
                .unwrap_or_default()
                .chars()
                .take(LONGEST_NAME)
                .collect(),
            program: iolite_stored::program(&report).chars().take(LONGEST_NAME).collect(),
            iops: finite(jobs.iter().map(|job| sum(job, &|part| number(part, "iops"))).sum()),
            bandwidth: finite(jobs.iter().map(|job| sum(job, &bandwidth)).sum()),
            jobs: names,
            status: iolite_stored::end(&report).map(|end| end.status),
        })
    }
}

/// The sum of all directions. The mixed direction counts only if there is no other.
fn sum(job: &Value, figure: &dyn Fn(&Value) -> f64) -> f64 {
    let [apart @ .., mixed] = &DIRECTIONS;
    let apart: f64 = apart.iter().map(|direction| figure(&job[direction])).sum();
    if apart > 0.0 { apart } else { figure(&job[mixed]) }
}

/// A forged result may have rates whose sum is infinite; it counts as 0.
fn finite(sum: f64) -> f64 {
    if sum.is_finite() { sum } else { 0.0 }
}
