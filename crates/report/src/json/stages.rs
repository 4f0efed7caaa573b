//! Where the time went: the key `stages`.

use super::writer::{Writer, list};
use crate::rates;
use iolite_stats::{Latency, Report, SLOWEST_PART, StageTimes};
use std::io;

/// The percentiles of each stage.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Whether the stages of any job were measured.
pub fn has_any(report: &Report) -> bool {
    report.jobs.iter().any(|job| job.directions.iter().any(|(_, measured)| measured.stages.is_some()))
}

/// Writes the stages of the jobs that have them. The numbers of jobs are their positions in the report.
pub fn write(json: &mut Writer, report: &Report) -> io::Result<()> {
    json.open_array("stages")?;
    for (position, job) in report.jobs.iter().enumerate() {
        let blocks = rates::blocks(report, job);
        if blocks.iter().all(|block| block.measured.stages.is_none()) {
            continue;
        }
        json.open_element()?;
        json.integer("job", position as u64)?;
        json.text("jobname", &job.name)?;
        for block in &blocks {
            if let Some(times) = &block.measured.stages {
                json.open(block.name())?;
                write_direction(json, times)?;
                json.close()?;
            }
        }
        json.close()?;
    }
    json.close_array()
}

fn write_direction(json: &mut Writer, times: &StageTimes) -> io::Result<()> {
    json.text("whole", if times.from_start { "lat" } else { "clat" })?;
    json.integer("ios", times.whole.moments.count)?;
    json.integer("no_device", times.without_device)?;
    json.integer("several_requests", times.split)?;
    json.integer("shared_requests", times.merged)?;
    json.integer("lost_records", times.lost_records)?;
    json.integer("left_out", times.left_out)?;
    json.open("unmatched")?;
    for (why, count) in &times.unmatched {
        json.integer(why.key(), *count)?;
    }
    json.close()?;
    let names: Vec<String> = times.stages.iter().map(|stage| stage.stage.name().to_owned()).collect();
    json.texts("stages", &names)?;
    latency(json, "whole_ns", &times.whole)?;
    for (stage, name) in times.stages.iter().zip(&names) {
        latency(json, &key(name, "_ns"), &stage.latency)?;
    }
    json.open("made_of_ns")?;
    for percentile in PERCENTILES {
        let parts = times.made_of(percentile).into_iter().map(|part| part.round() as u64);
        json.line(&format!("{percentile:.6}"), &list(parts))?;
    }
    json.close()?;
    if let Some(shares) = times.shares_of_slowest(SLOWEST_PART) {
        json.open("slowest_part")?;
        json.float("part", SLOWEST_PART)?;
        for (name, share) in names.iter().zip(shares) {
            json.float(&key(name, "_share"), share)?;
        }
        json.close()?;
    }
    json.open("windows")?;
    json.integer("length_us", times.window_ns / 1000)?;
    json.line("ios", &list(times.windows.iter().map(|window| window.ios)))?;
    for (number, name) in names.iter().enumerate() {
        let sums = times.windows.iter().map(|window| window.sums_ns[number]);
        json.line(&key(name, "_sum_ns"), &list(sums))?;
    }
    json.close()?;
    json.open_array("slowest")?;
    for io in &times.slowest {
        json.open_element()?;
        json.integer("whole_ns", io.whole_ns)?;
        json.line("stages_ns", &list(io.stages_ns.iter().copied()))?;
        json.integer("at_us", io.at_ns / 1000)?;
        json.integer("offset", io.offset)?;
        json.integer("length", io.length)?;
        json.text("file", &io.file)?;
        if let Some(direction) = io.direction {
            json.text("direction", direction.name())?;
        }
        json.close()?;
    }
    json.close_array()
}

/// The key of a stage: `first_byte_ns`.
fn key(name: &str, suffix: &str) -> String {
    name.replace(' ', "_") + suffix
}

fn latency(json: &mut Writer, key: &str, latency: &Latency) -> io::Result<()> {
    json.open(key)?;
    super::moments(json, &latency.moments)?;
    super::percentiles_of(json, "percentile", &latency.histogram, &PERCENTILES)?;
    let buckets =
        latency.histogram.occupied().flat_map(|(bucket, count)| [iolite_stats::midpoint(bucket), count]);
    json.line("bins", &list(buckets))?;
    json.close()
}
