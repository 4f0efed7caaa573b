//! What a reader wants to know first of a report in JSON.

use crate::{Stages, one_line};
use iolite_findings::numbers::latency;
use iolite_findings::series::{of_job, pieces, pieces_of_sum, rates, sample_seconds};
use iolite_findings::{Point, Steadiness};
use iolite_stored::{DIRECTIONS, NoReport, number, pairs};
use iolite_types::RunEnd;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The percentiles in a line of results.
pub const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// A report.
pub struct Outcome<'a> {
    /// The program and its version.
    pub program: String,
    /// When it was made, as the program's text.
    pub time: Option<&'a str>,
    /// How it ended; `None` = unknown.
    pub end: Option<RunEnd>,
    /// The options for all jobs: name and value.
    pub options: Vec<(&'a str, String)>,
    /// The machine.
    pub host: Vec<(&'a str, String)>,
    /// The places of the data.
    pub targets: Vec<Vec<(&'a str, String)>>,
    /// The warnings of the run.
    pub warnings: Vec<&'a str>,
    /// Notes about its logs.
    pub notes: Vec<&'a str>,
    /// The jobs.
    pub jobs: Vec<Job<'a>>,
    /// The same with clones (`numjobs`) as one.
    pub blocks: Vec<Job<'a>>,
    /// Sums, with their names: of all machines, and of each machine with several jobs; or of each group with several
    /// jobs.
    pub sums: Vec<(String, Vec<Row>)>,
    /// The run was sampled.
    pub has_series: bool,
    /// The disks below the files: their names, and for what share of the time they were busy, in percent.
    pub disks: Vec<(&'a str, f64)>,
    /// The idleness of the CPUs in percent, if it was measured.
    pub idle: Option<f64>,
    /// That of each CPU, if it was asked for.
    pub idle_cpus: Vec<f64>,
    /// What `iolite test` says about its targets.
    pub tested: Vec<Tested<'a>>,
    /// The answer of `iolite ai`, as text.
    pub said: Option<&'a str>,
}

/// What `iolite test` says about a target.
pub struct Tested<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub what: &'a str,
    /// Findings with their evidence.
    pub findings: Vec<(&'a str, &'a str)>,
    /// Sentences about the figures.
    pub meaning: Vec<&'a str>,
}

impl<'a> Tested<'a> {
    fn of(target: &'a Value) -> Tested<'a> {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let findings = target["findings"].as_array().into_iter().flatten();
        Tested {
            name: text(&target["name"]),
            what: text(&target["what"]),
            findings: findings.map(|finding| (text(&finding["words"]), text(&finding["evidence"]))).collect(),
            meaning: strings(&target["meaning"]),
        }
    }
}

/// A job.
pub struct Job<'a> {
    /// Its name.
    pub name: &'a str,
    /// The errno of its error; 0 = none.
    pub error: i32,
    /// Errors despite which it continued.
    pub went_on: u64,
    /// Its own options.
    pub options: Vec<(&'a str, String)>,
    /// How many jobs it is, and how many of them had errors.
    pub members: usize,
    /// How many of them had errors.
    pub failed: usize,
    /// Its results in each direction.
    pub rows: Vec<Row>,
    /// Its syncs (fsync and similar calls), if it had any.
    pub syncs: Option<Row>,
    /// User and system CPU time, in percent of one CPU.
    pub cpu: (f64, f64),
    /// CPU time for each I/O, in nanoseconds; `None` = no I/O.
    pub cpu_per_io: Option<f64>,
    /// What was searched for: a steady state, or a depth that keeps a latency; how busy its accelerator was.
    pub searched: Vec<String>,
}

impl Job<'_> {
    /// How many errors it had.
    pub fn errors(&self) -> u64 {
        // An error that ended a job is the only one that is counted nowhere.
        self.went_on.max(self.failed as u64)
    }

    /// The value of an option, from those of its own section or else of all jobs.
    pub fn option(&self, names: &[&str], global: &[(&str, String)]) -> Option<String> {
        let find = |pairs: &[(&str, String)]| {
            pairs.iter().rfind(|(name, _)| names.contains(name)).map(|(_, value)| value.clone())
        };
        find(&self.options).or_else(|| find(global))
    }
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
    /// Latencies at [`PERCENTILES`], in nanoseconds; `None` = not known.
    pub percentiles: [Option<f64>; PERCENTILES.len()],
    /// They are total latencies, because completion latencies have no percentiles.
    pub is_total: bool,
    /// The largest latency, in nanoseconds; `None` = not known.
    pub max: Option<f64>,
    /// How steady it was; `None` = too short to tell.
    pub steadiness: Option<Steadiness>,
    /// IOPS over time; empty = the run was not sampled.
    pub rates: Vec<f64>,
    /// Latencies in nanoseconds, and how many there were of each; empty = not known.
    pub latencies: BTreeMap<u64, u64>,
    /// Where the time went, if that was measured.
    pub stages: Option<Stages>,
}

impl<'a> Outcome<'a> {
    /// Reads a report.
    ///
    /// # Errors
    /// It is not a report.
    pub fn of(report: &'a Value) -> Result<Outcome<'a>, NoReport> {
        let values = iolite_stored::jobs(report)?;
        let series = &report["iolite"]["series"];
        let values: Vec<Member<'_>> =
            values.into_iter().enumerate().map(|(position, job)| (job, of_job(series, position))).collect();
        Ok(Outcome {
            program: iolite_stored::program(report),
            time: report["time"].as_str().map(str::trim),
            end: iolite_stored::end(report),
            options: pairs(&report["global options"]),
            host: pairs(&report["iolite"]["host"]),
            targets: report["iolite"]["targets"].as_array().into_iter().flatten().map(pairs).collect(),
            warnings: strings(&report["iolite"]["warnings"]),
            notes: strings(&report["iolite"]["logs"]["notes"]),
            jobs: with_stages(
                values.iter().map(|(job, over_time)| (1, Job::of(job, over_time, series))),
                report,
            ),
            blocks: with_stages(
                values.chunk_by(are_clones).map(|clones| (clones.len(), Job::of_clones(clones, series))),
                report,
            ),
            sums: sums(report, &values),
            has_series: series.is_object(),
            disks: report["disk_util"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|disk| Some((disk["name"].as_str()?, disk["util"].as_f64()?)))
                .collect(),
            idle: report["cpu_idleness"]["system"].as_f64(),
            idle_cpus: pairs(&report["cpu_idleness"])
                .into_iter()
                .filter(|(name, _)| name.starts_with("cpu-"))
                .filter_map(|(_, share)| share.parse().ok())
                .collect(),
            said: iolite_stored::test_of(report).and_then(|test| report["iolite"][test]["answer"].as_str()),
            tested: report["iolite"]["test"]["targets"]
                .as_array()
                .into_iter()
                .flatten()
                .map(Tested::of)
                .collect(),
        })
    }
}

/// Jobs with their stages. Each is so many jobs of the report; the stages of several are not added up.
fn with_stages<'a>(jobs: impl Iterator<Item = (usize, Job<'a>)>, report: &Value) -> Vec<Job<'a>> {
    let mut position = 0;
    let mut add = |(members, mut job): (usize, Job<'a>)| {
        if members == 1 {
            for row in &mut job.rows {
                row.stages = Stages::of(report, position, row.direction);
            }
        }
        position += members;
        job
    };
    jobs.map(&mut add).collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

impl<'a> Job<'a> {
    fn of(job: &'a Value, over_time: &Value, series: &Value) -> Job<'a> {
        let rows = DIRECTIONS.into_iter().filter_map(|direction| {
            let measured = &job[direction];
            iolite_stored::has_moved(measured)
                .then(|| Row::of(direction, measured, pieces_of(over_time, direction, series), series))
        });
        Job {
            name: job["jobname"].as_str().unwrap_or("(without a name)"),
            error: job["error"].as_i64().and_then(|errno| i32::try_from(errno).ok()).unwrap_or(0),
            went_on: job["total_err"].as_u64().unwrap_or(0),
            options: pairs(&job["job options"]),
            members: 1,
            failed: usize::from(job["error"].as_i64().is_some_and(|errno| errno != 0)),
            rows: rows.collect(),
            syncs: syncs(job),
            cpu: (number(job, "usr_cpu"), number(job, "sys_cpu")),
            cpu_per_io: cpu_per_io(job),
            searched: searched(job),
        }
    }
}

/// The windows of a direction of a job. `mixed` has those of all directions.
fn pieces_of(over_time: &Value, direction: &str, series: &Value) -> Option<Vec<Vec<Point>>> {
    if direction != "mixed" || over_time["mixed"].is_object() {
        return pieces(&over_time[direction], series);
    }
    let all: Vec<&Value> = apart(over_time).collect();
    if all.is_empty() { None } else { pieces_of_sum(&all, series) }
}

/// The directions of a job in its series.
fn apart(over_time: &Value) -> impl Iterator<Item = &Value> {
    DIRECTIONS.into_iter().map(|direction| &over_time[direction]).filter(|one| one.is_object())
}

/// Whether two consecutive jobs are clones.
fn are_clones((one, _): &Member<'_>, (other, _): &Member<'_>) -> bool {
    ["jobname", "groupid", "hostname", "job options"].iter().all(|key| one[key] == other[key])
}

impl<'a> Job<'a> {
    /// Clones as one job.
    fn of_clones(clones: &[(&'a Value, &Value)], series: &Value) -> Job<'a> {
        let mut each: Vec<Job<'_>> =
            clones.iter().map(|(job, over_time)| Job::of(job, over_time, series)).collect();
        if each.len() == 1 {
            return each.remove(0);
        }
        let all = |of: fn(&Job<'_>) -> f64| each.iter().map(of).sum::<f64>();
        let cpu = (all(|job| job.cpu.0), all(|job| job.cpu.1));
        let cpu_ns: f64 = clones.iter().map(|(job, _)| iolite_stored::cpu_ns(job)).sum();
        let ios: f64 = clones.iter().map(|(job, _)| ios(job)).sum();
        let syncs: f64 = each.iter().flat_map(|job| &job.syncs).map(|row| row.iops).sum();
        let mut latencies = BTreeMap::new();
        for (latency, count) in each.iter().flat_map(|job| &job.syncs).flat_map(|row| &row.latencies) {
            *latencies.entry(*latency).or_default() += count;
        }
        let max = each.iter().flat_map(|job| &job.syncs).filter_map(|row| row.max).reduce(f64::max);
        let (members, failed) = (each.len(), each.iter().map(|job| job.failed).sum());
        let error = each.iter().map(|job| job.error).find(|error| *error != 0).unwrap_or(0);
        let went_on = each.iter().map(|job| job.went_on).sum();
        let first = each.swap_remove(0);
        Job {
            members,
            failed,
            error,
            went_on,
            rows: rows(clones, series),
            syncs: first.syncs.clone().map(|row| Row {
                iops: syncs,
                percentiles: PERCENTILES.map(|asked| percentile_at_most(&latencies, asked, max)),
                max,
                latencies,
                ..row
            }),
            cpu,
            cpu_per_io: (ios > 0.0).then(|| cpu_ns / ios),
            ..first
        }
    }
}

/// A percentile of bins, which are their middles: at most the largest value.
fn percentile_at_most(bins: &BTreeMap<u64, u64>, asked: f64, max: Option<f64>) -> Option<f64> {
    Some(iolite_stored::percentile_of_bins(bins, asked)?.min(max.unwrap_or(f64::MAX)))
}

/// The I/Os of a job.
fn ios(job: &Value) -> f64 {
    let ios: f64 = DIRECTIONS.into_iter().map(|direction| number(&job[direction], "total_ios")).sum();
    let both = number(&job["mixed"], "total_ios");
    // `mixed` repeats the directions, if both are reported.
    if both > 0.0 && ios > both { both } else { ios }
}

/// The syncs of a job, as if they were a direction. Their rate is that over the time of its writes.
fn syncs(job: &Value) -> Option<Row> {
    let sync = &job["sync"];
    let count = number(sync, "total_ios");
    let longest =
        DIRECTIONS.into_iter().map(|direction| number(&job[direction], "runtime")).fold(0.0, f64::max);
    (count > 0.0 && longest > 0.0).then(|| Row {
        direction: "sync",
        iops: count * 1000.0 / longest,
        is_total: false,
        ..Row::with_latency(Some(("lat_ns", &sync["lat_ns"])))
    })
}

fn cpu_per_io(job: &Value) -> Option<f64> {
    let ios = ios(job);
    (ios > 0.0).then(|| iolite_stored::cpu_ns(job) / ios)
}

fn searched(job: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let steady = &job["steadystate"];
    if let Some(limit) = steady["ss"].as_str() {
        let reached = if number(steady, "attained") > 0.0 { "attained" } else { "not attained" };
        found.push(format!("steady state ({limit}): {reached}"));
    }
    let accelerator = &job["accelerator"];
    if accelerator.is_object() {
        let busy =
            accelerator["utilization"].as_f64().map_or("unknown".to_owned(), |share| format!("{share:.2}%"));
        let samples = number(accelerator, "samples_per_sec");
        found.push(format!("accelerator utilization: {busy}, {samples:.2} samples/s"));
    }
    if number(job, "latency_target_ns") > 0.0 {
        found.push(format!(
            "{}% within {}: depth {}",
            number(job, "latency_percentile"),
            latency(number(job, "latency_target_ns")),
            number(job, "latency_depth")
        ));
    }
    found
}

impl Row {
    fn of(direction: &'static str, measured: &Value, pieces: Option<Vec<Vec<Point>>>, series: &Value) -> Row {
        let sampled = || {
            let count = measured["iops_samples"].as_u64()?;
            Steadiness::of_samples(count, measured["iops_mean"].as_f64()?, measured["iops_stddev"].as_f64()?)
        };
        let steadiness = match &pieces {
            Some(pieces) => Steadiness::of_series(pieces, sample_seconds(series)),
            // Samples of fio are longer, and another rule.
            None if series.is_object() => None,
            None => sampled(),
        };
        Row {
            direction,
            iops: number(measured, "iops"),
            bandwidth: iolite_stored::bandwidth(measured),
            steadiness,
            rates: pieces.map(|pieces| rates(&pieces)).unwrap_or_default(),
            ..Row::with_latency(iolite_stored::latency_with_percentiles(measured))
        }
    }

    /// Adds the rates of these jobs over time, and how steady they were, if all of them have series.
    fn sum_over_time(&mut self, members: &[Member<'_>], series: &Value) {
        let moved = members.iter().filter(|(job, _)| iolite_stored::has_moved(&job[self.direction]));
        let over_time: Vec<&Value> = match self.direction {
            "mixed" => moved.flat_map(|(_, over_time)| apart(over_time)).collect(),
            direction => moved.map(|(_, over_time)| &over_time[direction]).collect(),
        };
        if over_time.is_empty() {
            return;
        }
        if let Some(pieces) = pieces_of_sum(&over_time, series) {
            self.steadiness = Steadiness::of_series(&pieces, sample_seconds(series));
            self.rates = rates(&pieces);
        }
    }

    /// A row with only latencies, which have this key.
    fn with_latency(latency: Option<(&str, &Value)>) -> Row {
        let max = latency.and_then(|(_, latency)| latency["max"].as_f64());
        // A percentile is the middle of a bin of the histogram, which may be above the largest value.
        let at = |asked| Some(iolite_stored::percentile(latency?.1, asked)?.min(max.unwrap_or(f64::MAX)));
        Row {
            direction: "",
            iops: 0.0,
            bandwidth: 0.0,
            percentiles: PERCENTILES.map(at),
            is_total: latency.is_some_and(|(key, _)| key != "clat_ns"),
            max,
            steadiness: None,
            rates: Vec::new(),
            latencies: latency.and_then(|(_, latency)| iolite_stored::bins(latency)).unwrap_or_default(),
            stages: None,
        }
    }
}

/// A job of a report, and its entry in the series.
type Member<'a> = (&'a Value, &'a Value);

fn sums(report: &Value, jobs: &[Member<'_>]) -> Vec<(String, Vec<Row>)> {
    let series = &report["iolite"]["series"];
    let group = |job: &Value| job["groupid"].as_u64().unwrap_or(0);
    let mut groups: BTreeMap<u64, Vec<Member<'_>>> = BTreeMap::new();
    let mut hosts: Vec<(&str, Vec<Member<'_>>)> = Vec::new();
    for member in jobs {
        groups.entry(group(member.0)).or_default().push(*member);
        let Some(name) = member.0["hostname"].as_str() else { continue };
        // The jobs of a machine are consecutive.
        match hosts.last_mut().filter(|(last, _)| *last == name) {
            Some((_, own)) => own.push(*member),
            None => hosts.push((name, vec![*member])),
        }
    }
    if hosts.len() > 1 {
        // The program has merged their latencies exactly.
        let merged = report["client_stats"].as_array().into_iter().flatten();
        let merged = merged.rev().find(|value| value["jobname"] == ALL);
        let mut all =
            merged.map_or_else(|| rows(jobs, series), |all| Job::of(all, &Value::Null, &Value::Null).rows);
        all.iter_mut().for_each(|row| row.sum_over_time(jobs, series));
        let several = hosts.into_iter().filter(|(_, own)| own.len() > 1);
        let each = several
            .map(|(name, own)| (format!("all jobs on {}", one_line(name, MOST_IN_NAME)), rows(&own, series)));
        return std::iter::once((ALL.to_owned(), all)).chain(each).collect();
    }
    let is_one = groups.len() == 1;
    let several = groups.into_iter().filter(|(_, members)| members.len() > 1);
    let name = |group: u64| if is_one { "all jobs".to_owned() } else { format!("all jobs of group {group}") };
    several.map(|(group, members)| (name(group), rows(&members, series))).collect()
}

/// The most characters of a machine's name.
const MOST_IN_NAME: usize = 80;
/// All machines together.
const ALL: &str = "All clients";

fn rows(members: &[Member<'_>], series: &Value) -> Vec<Row> {
    let mut rows: Vec<Row> = DIRECTIONS.into_iter().filter_map(|direction| sum(direction, members)).collect();
    rows.iter_mut().for_each(|row| row.sum_over_time(members, series));
    rows
}

/// The total of several jobs: amounts over the longest run time, like those of groups; percentiles if all jobs have
/// histograms.
fn sum(direction: &'static str, members: &[Member<'_>]) -> Option<Row> {
    let members: Vec<&Value> = members.iter().map(|(job, _)| *job).collect();
    let of_all = |key: &str| members.iter().map(|job| number(&job[direction], key)).sum::<f64>();
    let longest = members.iter().map(|job| number(&job[direction], "runtime")).fold(0.0, f64::max) / 1000.0;
    let moved =
        members.iter().map(|job| &job[direction]).filter(|measured| iolite_stored::has_moved(measured));
    let latencies: Option<Vec<_>> = moved.map(iolite_stored::latency_with_percentiles).collect();
    let key = latencies.as_ref().and_then(|all| all.first()).map(|(key, _)| *key);
    let same = latencies.filter(|all| all.iter().all(|(other, _)| Some(*other) == key));
    let bins: Option<Vec<_>> =
        same.and_then(|all| all.iter().map(|(_, latency)| iolite_stored::bins(latency)).collect());
    let mut merged: BTreeMap<u64, u64> = BTreeMap::new();
    for (latency, count) in bins.into_iter().flatten().flatten() {
        let sum = merged.entry(latency).or_default();
        *sum = sum.saturating_add(count);
    }
    let max = members.iter().filter_map(|job| job[direction][key?]["max"].as_f64()).reduce(f64::max);
    (longest > 0.0).then(|| Row {
        direction,
        iops: of_all("total_ios") / longest,
        bandwidth: of_all("io_bytes") / longest,
        percentiles: PERCENTILES.map(|asked| percentile_at_most(&merged, asked, max)),
        is_total: key.is_some_and(|key| key != "clat_ns"),
        max,
        steadiness: None,
        rates: Vec::new(),
        latencies: merged,
        stages: None,
    })
}

/// A report of several machines, with the machine added to the names of jobs, as the program shows them.
pub fn with_hosts(report: &Value) -> Cow<'_, Value> {
    if report["jobs"].is_array() || !report["client_stats"].is_array() {
        return Cow::Borrowed(report);
    }
    let mut named = report.clone();
    let hosts = report["hosts"].as_array().map_or(&[][..], Vec::as_slice);
    for job in named["client_stats"].as_array_mut().into_iter().flatten().filter(|job| job["jobname"] != ALL)
    {
        let is_its = |host: &&Value| host["hostname"] == job["hostname"] && host["port"] == job["port"];
        let label = hosts.iter().find(is_its).map_or(&job["hostname"], |host| &host["name"]);
        if let (Some(label), Some(name)) = (label.as_str().map(str::to_owned), job["jobname"].as_str()) {
            job["jobname"] = Value::from(format!("{name} on {label}"));
            job["hostname"] = Value::from(label);
        }
    }
    Cow::Owned(named)
}
