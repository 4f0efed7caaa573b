//! Reads one run: the comparable figures of its stored result.
//!
//! Jobs with the same name in one run (`numjobs`) are treated as one job with the sum of their rates. They are not
//! repeats of each other, because they ran at the same time, on the same machine in the same state.

use crate::figure::Figure;
use crate::limit::WHOLE_JOB;
use iolite_stored::{DIRECTIONS, NoReport, number, pairs};
use iolite_types::RunEnd;
use serde_json::Value;
use std::collections::BTreeMap;

/// The resolution of latencies: the width of the widest histogram bin, as a fraction of the latency.
const CLASS: f64 = 1.0 / 64.0;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of the result.
    pub name: String,
    /// The program and its version.
    pub program: String,
    /// When the result was written, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// How the run ended; `None` = unknown.
    pub end: Option<RunEnd>,
    /// The devices of the run's files, as reported by Iolite.
    pub targets: Option<String>,
    /// The disks that the run used, as reported by fio.
    pub disks: Option<String>,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// A text that identifies the run: the start times of its jobs, or else the time of the result and the amounts of
    /// I/O.
    identity: String,
}

/// All jobs with the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The name, followed by the name of the machine if the run used several.
    pub name: String,
    /// The number of jobs.
    pub count: usize,
    /// The errno of an error, or 0.
    pub error: i64,
    /// Their options, including global options.
    pub options: BTreeMap<String, String>,
    /// Their results.
    pub parts: Vec<Part>,
}

/// The results of the jobs in one direction, or in all directions together ([`WHOLE_JOB`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The direction.
    pub direction: &'static str,
    /// The kind of latency in the report.
    pub latency: Option<Latency>,
    /// The resolution of rates, as a fraction: run times are known in milliseconds only.
    pub rate_step: f64,
    figures: [Option<f64>; Figure::ALL.len()],
}

/// The latencies that percentiles and means describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The key in reports.
    pub key: &'static str,
    /// The percentiles are means of the percentiles of several jobs, because there are no histograms.
    pub is_averaged: bool,
}

impl Run {
    /// Reads a report.
    ///
    /// # Errors
    /// The value is not a report.
    pub fn of(name: &str, report: &Value) -> Result<Run, NoReport> {
        let values = iolite_stored::jobs(report)?;
        let mut names: Vec<(String, Vec<&Value>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        // The positions in the report of the jobs of each name.
        let mut positions: Vec<Vec<usize>> = Vec::new();
        for (position, value) in values.into_iter().enumerate() {
            let name = job_name(value);
            let place = *places.entry(name.clone()).or_insert(names.len());
            if place == names.len() {
                names.push((name, Vec::new()));
                positions.push(Vec::new());
            }
            names[place].1.push(value);
            positions[place].push(position);
        }
        let targets = report["iolite"]["targets"].as_array().into_iter().flatten();
        let device = |target: &Value| {
            let told = ["device", "model"].into_iter().filter_map(|key| target[key].as_str());
            told.collect::<Vec<_>>().join(" ")
        };
        let disks = report["disk_util"].as_array().into_iter().flatten();
        let disk = |disk: &Value| disk["name"].as_str().unwrap_or_default().to_owned();
        let time_ms = report["timestamp_ms"].as_u64();
        Ok(Run {
            name: name.to_owned(),
            program: iolite_stored::program(report),
            time_ms,
            end: iolite_stored::end(report),
            targets: listed(targets.map(device).collect()),
            disks: listed(disks.map(disk).collect()),
            identity: identity(time_ms, &names),
            jobs: names
                .into_iter()
                .zip(positions)
                .map(|((name, of), positions)| Job::of(name, &of, report).with_stages(report, &positions))
                .collect(),
        })
    }

    /// Whether both are results of the same run.
    pub fn is_same_run(&self, other: &Run) -> bool {
        !self.identity.is_empty() && self.identity == other.identity
    }
}

/// The name of a job in a report, followed by the name of its machine if the run used several.
pub fn job_name(value: &Value) -> String {
    let name = value["jobname"].as_str().unwrap_or("(without a name)");
    match value["hostname"].as_str() {
        Some(host) => format!("{name} on {host}"),
        None => name.to_owned(),
    }
}

/// Sorts names and removes repetitions; `None` = there are no names.
fn listed(mut names: Vec<String>) -> Option<String> {
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The start times of all jobs identify a run, even in intermediate results. Without them, the time of the result and
/// the numbers of I/Os until then identify the run.
fn identity(time_ms: Option<u64>, names: &[(String, Vec<&Value>)]) -> String {
    let jobs = || names.iter().flat_map(|(name, of)| of.iter().map(move |job| (name, job)));
    // A job that never started has no start time.
    let start = |job: &Value| job["job_start"].as_u64().filter(|&start| start > 0);
    let starts: Option<Vec<String>> =
        jobs().map(|(name, job)| Some(format!("{name}={}", start(job)?))).collect();
    if let Some(starts) = starts.filter(|starts| !starts.is_empty()) {
        return starts.join("\n");
    }
    let Some(time) = time_ms else { return String::new() };
    let done = jobs().map(|(name, job)| {
        let ios = DIRECTIONS.map(|direction| job[direction]["total_ios"].to_string()).join(" ");
        format!("{name}={ios}")
    });
    std::iter::once(time.to_string()).chain(done).collect::<Vec<_>>().join("\n")
}

impl Job {
    fn of(name: String, of: &[&Value], report: &Value) -> Job {
        let mut options: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in pairs(&report["global options"]).into_iter().chain(pairs(&of[0]["job options"]))
        {
            options.insert(name.to_owned(), value);
        }
        let mut parts: Vec<Part> = DIRECTIONS.into_iter().filter_map(|name| Part::of(name, of)).collect();
        parts.extend((!parts.is_empty()).then(|| Part::of_whole_job(of)));
        let error = of.iter().filter_map(|job| job["error"].as_i64()).find(|&error| error != 0);
        Job { name, count: of.len(), error: error.unwrap_or(0), options, parts }
    }
}

impl Job {
    /// With the stages of the jobs at these positions of the report.
    fn with_stages(mut self, report: &Value, positions: &[usize]) -> Job {
        let all = report["iolite"]["stages"].as_array();
        let is_one = |job: &&Value| {
            job["job"].as_u64().is_some_and(|position| positions.contains(&(position as usize)))
        };
        let jobs: Vec<&Value> = all.into_iter().flatten().filter(is_one).collect();
        for part in &mut self.parts {
            let told = || jobs.iter().map(|job| &job[part.direction]);
            let ios: f64 = told().map(|told| number(told, "ios")).sum();
            let mean = |keys: &[&str]| {
                let of = |told: &Value| keys.iter().map(|key| number(&told[*key], "mean")).sum::<f64>();
                (ios > 0.0).then(|| told().map(|told| of(told) * number(told, "ios")).sum::<f64>() / ios)
            };
            // The network holds up what is sent.
            const OF_SERVERS: [&str; 6] =
                ["connect_ns", "tls_ns", "send_ns", "first_byte_ns", "last_byte_ns", "server_ns"];
            let figures = [
                (Figure::Device, mean(&["device_ns"])),
                (Figure::Server, mean(&OF_SERVERS)),
                (Figure::Software, mean(&["submit_ns", "reap_ns"])),
                (Figure::Queue, mean(&["queue_ns"])),
            ];
            figures.into_iter().for_each(|(figure, value)| part.set(figure, value));
        }
        self
    }
}

impl Part {
    /// The value of a figure; `None` = it is not known, or it is 0.
    pub fn figure(&self, figure: Figure) -> Option<f64> {
        self.figures[figure as usize]
    }

    /// The resolution of a figure, as a fraction of its value.
    pub fn step(&self, figure: Figure) -> f64 {
        match figure {
            Figure::Iops | Figure::Bandwidth => self.rate_step,
            Figure::Mean
            | Figure::Device
            | Figure::Server
            | Figure::Software
            | Figure::Queue
            | Figure::Cpu => 0.0,
            _ => CLASS,
        }
    }

    fn empty(direction: &'static str) -> Part {
        Part { direction, latency: None, rate_step: 0.0, figures: [None; Figure::ALL.len()] }
    }

    /// Sets a figure, but only to a positive value: other values have no logarithm and no change in percent.
    pub(crate) fn set(&mut self, figure: Figure, value: Option<f64>) {
        self.figures[figure as usize] = value.filter(|value| value.is_finite() && *value > 0.0);
    }

    /// The results in one direction; `None` = there was no I/O in it.
    fn of(direction: &'static str, jobs: &[&Value]) -> Option<Part> {
        let of: Vec<&Value> = jobs.iter().map(|job| &job[direction]).collect();
        let of: Vec<&Value> = of.into_iter().filter(|measured| iolite_stored::has_moved(measured)).collect();
        let mut part = Part::empty(direction);
        let milliseconds = of.iter().map(|measured| number(measured, "runtime")).fold(0.0, f64::max);
        part.rate_step = if milliseconds > 0.0 { (1.0 + 1.0 / milliseconds).ln() } else { 0.0 };
        let rate = |told: f64, key: &str| match &of[..] {
            [_] => Some(told),
            several if milliseconds > 0.0 => Some(
                several.iter().map(|measured| number(measured, key)).sum::<f64>() * 1000.0 / milliseconds,
            ),
            _ => None,
        };
        let first = of.first()?;
        part.set(Figure::Iops, rate(number(first, "iops"), "total_ios"));
        part.set(Figure::Bandwidth, rate(iolite_stored::bandwidth(first), "io_bytes"));
        part.set_latencies(&of);
        Some(part)
    }

    fn set_latencies(&mut self, of: &[&Value]) {
        let with_mean = |measured: &Value| {
            ["clat_ns", "lat_ns"].into_iter().find(|key| number(&measured[key], "mean") > 0.0)
        };
        let found = iolite_stored::latency_with_percentiles(of[0]).map(|(key, _)| key);
        let Some(key) = found.or_else(|| with_mean(of[0])) else { return };
        let latencies: Vec<&Value> = of.iter().map(|measured| &measured[key]).collect();
        let weights: Vec<f64> = latencies.iter().map(|latency| number(latency, "N")).collect();
        let weighted = |values: Option<Vec<f64>>| {
            let sum = values?.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>();
            Some(sum / weights.iter().sum::<f64>())
        };
        let mean = weighted(Some(latencies.iter().map(|latency| number(latency, "mean")).collect()));
        self.set(Figure::Mean, mean);
        let together = (latencies.len() > 1).then(|| added(&latencies)).flatten();
        for figure in Figure::ALL {
            let Some(percentile) = figure.percentile() else { continue };
            let each = || {
                let told = |latency: &&Value| iolite_stored::percentile(latency, percentile);
                latencies.iter().map(told).collect()
            };
            let value = match (&latencies[..], &together) {
                ([one], _) => iolite_stored::percentile(one, percentile),
                (_, Some(bins)) => iolite_stored::percentile_of_bins(bins, percentile),
                _ => weighted(each()),
            };
            self.set(figure, value);
        }
        self.latency = Some(Latency { key, is_averaged: latencies.len() > 1 && together.is_none() });
    }

    fn of_whole_job(jobs: &[&Value]) -> Part {
        let mut part = Part::empty(WHOLE_JOB);
        let ios = |job: &&Value| {
            let of = |direction: &str| number(&job[direction], "total_ios");
            let apart = of("read") + of("write") + of("trim");
            if apart > 0.0 { apart } else { of("mixed") }
        };
        let cpu = jobs.iter().map(|job| iolite_stored::cpu_ns(job)).sum::<f64>()
            / jobs.iter().map(ios).sum::<f64>();
        part.set(Figure::Cpu, Some(cpu));
        part
    }
}

/// The sum of the histograms; `None` = at least one latency has no histogram.
fn added(latencies: &[&Value]) -> Option<BTreeMap<u64, u64>> {
    let mut all: BTreeMap<u64, u64> = BTreeMap::new();
    for latency in latencies {
        for (latency, count) in iolite_stored::bins(latency)? {
            let sum = all.entry(latency).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Some(all)
}
