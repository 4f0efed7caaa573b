//! The data that the first part of a page needs, from a report in JSON.

use crate::steadiness::{Point, Steadiness};
use iolite_stored::{DIRECTIONS, NoReport, number, pairs};
use iolite_types::RunEnd;
use serde_json::Value;
use std::collections::BTreeMap;

/// The percentiles in the first table.
pub const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// A report.
pub struct Outcome<'a> {
    /// The program and its version.
    pub program: String,
    /// When it was made, in the words of the program.
    pub time: Option<&'a str>,
    /// How it ended; `None` = unknown.
    pub end: Option<RunEnd>,
    /// The options for all jobs: name and value.
    pub options: Vec<(&'a str, String)>,
    /// The machine.
    pub host: Vec<(&'a str, String)>,
    /// Where the data is.
    pub targets: Vec<Vec<(&'a str, String)>>,
    /// The warnings of the run.
    pub warnings: Vec<&'a str>,
    /// Notes about its logs.
    pub notes: Vec<&'a str>,
    /// The jobs.
    pub jobs: Vec<Job<'a>>,
    /// All jobs of a group together, of each group that has several.
    pub sums: Vec<(u64, Vec<Row>)>,
    /// The run was sampled.
    pub has_series: bool,
}

/// A job.
pub struct Job<'a> {
    /// Its name.
    pub name: &'a str,
    /// The errno of its error; 0 = none.
    pub error: i32,
    /// Errors after which it went on.
    pub went_on: u64,
    /// Its own options.
    pub options: Vec<(&'a str, String)>,
    /// Its results in each direction.
    pub rows: Vec<Row>,
}

/// One direction of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub direction: &'static str,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Latencies of [`PERCENTILES`], in nanoseconds; `None` = not known.
    pub percentiles: [Option<f64>; PERCENTILES.len()],
    /// They are total latencies, because those of completion have no percentiles.
    pub is_total: bool,
    /// How steady it was; `None` = too short to tell.
    pub steadiness: Option<Steadiness>,
}

impl<'a> Outcome<'a> {
    /// Reads a report.
    pub fn of(report: &'a Value) -> Result<Outcome<'a>, NoReport> {
        let values = iolite_stored::jobs(report)?;
        let series = &report["iolite"]["series"];
        Ok(Outcome {
            program: iolite_stored::program(report),
            time: report["time"].as_str().map(str::trim),
            end: iolite_stored::end(report),
            options: pairs(&report["global options"]),
            host: pairs(&report["iolite"]["host"]),
            targets: report["iolite"]["targets"].as_array().into_iter().flatten().map(pairs).collect(),
            warnings: strings(&report["iolite"]["warnings"]),
            notes: strings(&report["iolite"]["logs"]["notes"]),
            jobs: values
                .iter()
                .enumerate()
                .map(|(position, value)| Job::of(value, of_job(series, position), series))
                .collect(),
            sums: sums(&values),
            has_series: series.is_object(),
        })
    }
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The entry of a job in the series.
fn of_job(series: &Value, position: usize) -> &Value {
    let mut entries = series["jobs"].as_array().into_iter().flatten();
    entries.find(|entry| entry["job"].as_u64() == Some(position as u64)).unwrap_or(&Value::Null)
}

impl<'a> Job<'a> {
    fn of(job: &'a Value, over_time: &Value, series: &Value) -> Job<'a> {
        let rows = DIRECTIONS.into_iter().filter_map(|direction| {
            let measured = &job[direction];
            iolite_stored::has_moved(measured)
                .then(|| Row::of(direction, measured, &over_time[direction], series))
        });
        Job {
            name: job["jobname"].as_str().unwrap_or("(without a name)"),
            error: job["error"].as_i64().and_then(|errno| i32::try_from(errno).ok()).unwrap_or(0),
            went_on: job["total_err"].as_u64().unwrap_or(0),
            options: pairs(&job["job options"]),
            rows: rows.collect(),
        }
    }
}

impl Row {
    fn of(direction: &'static str, measured: &Value, over_time: &Value, series: &Value) -> Row {
        let sampled = || {
            let count = measured["iops_samples"].as_u64()?;
            Steadiness::of_samples(count, measured["iops_mean"].as_f64()?, measured["iops_stddev"].as_f64()?)
        };
        let steadiness = match points(over_time, series) {
            Some(pieces) => Steadiness::of_series(&pieces, number(series, "sample_us") / 1e6),
            None => sampled(),
        };
        let latency = iolite_stored::latency_with_percentiles(measured);
        let percentiles = PERCENTILES.map(|asked| iolite_stored::percentile(latency?.1, asked));
        Row {
            direction,
            iops: number(measured, "iops"),
            bandwidth: iolite_stored::bandwidth(measured),
            percentiles,
            is_total: latency.is_some_and(|(key, _)| key != "clat_ns"),
            steadiness,
        }
    }
}

/// The windows of a direction, in pieces: between them, nothing was expected of it. `None` = it has no series.
fn points(over_time: &Value, series: &Value) -> Option<Vec<Vec<Point>>> {
    let first = usize::try_from(over_time["first_window"].as_u64()?).ok()?;
    let ramp = over_time["ramp_windows"].as_u64().and_then(|ramp| usize::try_from(ramp).ok()).unwrap_or(0);
    let ends = series["end_us"].as_array()?;
    let (ios, lowest) = (over_time["ios"].as_array()?, over_time["iops_min"].as_array()?);
    let end = |window: usize| ends.get(window)?.as_f64();
    let mut pieces = vec![Vec::new()];
    for (position, (ios, lowest)) in ios.iter().zip(lowest).enumerate().skip(ramp) {
        let window = first.checked_add(position)?;
        let begin = match window.checked_sub(1) {
            Some(before) => end(before)?,
            None => series["begin_us"].as_f64()?,
        };
        let seconds = ((end(window)? - begin) / 1e6).max(1e-6);
        if ios.is_null() {
            pieces.push(Vec::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(Point { seconds, ios: ios.as_f64()?, lowest: lowest.as_f64()? });
        }
    }
    Some(pieces)
}

/// The totals of a group's jobs: amounts over the longest run time, as groups are reported.
fn sums(jobs: &[&Value]) -> Vec<(u64, Vec<Row>)> {
    let mut groups: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for job in jobs {
        groups.entry(job["groupid"].as_u64().unwrap_or(0)).or_default().push(job);
    }
    let several = groups.into_iter().filter(|(_, members)| members.len() > 1);
    several
        .map(|(group, members)| {
            (group, DIRECTIONS.into_iter().filter_map(|direction| sum(direction, &members)).collect())
        })
        .collect()
}

fn sum(direction: &'static str, members: &[&Value]) -> Option<Row> {
    let of_all = |key: &str| members.iter().map(|job| number(&job[direction], key)).sum::<f64>();
    let longest = members.iter().map(|job| number(&job[direction], "runtime")).fold(0.0, f64::max) / 1000.0;
    (longest > 0.0).then(|| Row {
        direction,
        iops: of_all("total_ios") / longest,
        bandwidth: of_all("io_bytes") / longest,
        percentiles: [None; PERCENTILES.len()],
        is_total: false,
        steadiness: None,
    })
}
