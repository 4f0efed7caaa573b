//! Jobs of different engines side by side: the cost of the same work with each.

use crate::rates;
use iolite_stats::{DirectionReport, JobReport, Report};
use iolite_types::Direction;
use std::collections::BTreeSet;

/// The results of one job in one direction.
pub struct Row<'a> {
    /// The job.
    pub job: &'a JobReport,
    /// The direction.
    pub direction: Direction,
    /// The measurements.
    pub measured: &'a DirectionReport,
    /// Microseconds of CPU time for each MiB that the job has moved, in all directions; `None` = no data moved.
    pub cpu_us_per_mib: Option<f64>,
}

impl Row<'_> {
    /// I/Os per second.
    pub fn iops(&self) -> u64 {
        rates::iops(self.measured)
    }

    /// Bytes per second.
    pub fn bandwidth(&self) -> u64 {
        rates::bandwidth(self.measured)
    }

    /// The mean of completion latencies and the value that 99 % of them do not exceed, in nanoseconds; `None` = they were not
    /// measured.
    pub fn latency(&self) -> Option<(u64, u64)> {
        let clat = &self.measured.clat;
        let limit = clat.histogram.percentiles(&[99.0]).into_iter().next();
        (clat.moments.count > 0)
            .then(|| (clat.moments.mean() as u64, limit.unwrap_or(0).min(clat.moments.max)))
    }
}

/// The rows of a report, in its order: none, unless jobs of several engines did I/O.
pub fn rows(report: &Report) -> Vec<Row<'_>> {
    let rows: Vec<Row<'_>> = report.jobs.iter().flat_map(of_job).collect();
    let engines: BTreeSet<&str> = rows.iter().map(|row| row.job.engine.as_str()).collect();
    if engines.len() < 2 || engines.contains("") { Vec::new() } else { rows }
}

fn of_job(job: &JobReport) -> impl Iterator<Item = Row<'_>> {
    let bytes: u64 =
        job.directions.values.iter().map(|direction| direction.bytes).fold(0, u64::saturating_add);
    let cpu_us = job.usage.user_ms.saturating_add(job.usage.system_ms) as f64 * 1000.0;
    let cpu_us_per_mib = (bytes > 0).then(|| cpu_us / (bytes as f64 / f64::from(1 << 20)));
    let moved = job.directions.iter().filter(|(_, measured)| measured.bytes > 0);
    moved.map(move |(direction, measured)| Row { job, direction, measured, cpu_us_per_mib })
}
