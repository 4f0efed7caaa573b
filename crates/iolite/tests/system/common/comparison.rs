//! Compares the results and the output of two programs for one job.

use crate::common::Json;
use crate::common::skeleton::{mask, skeleton_of};
use iolite_testing::Release;
use std::fmt::Display;

/// Which counts a job determines.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Counts {
    /// The I/Os and bytes in each direction.
    Exact,
    /// The bytes in all directions together, because directions are random.
    Sum,
    /// None, because the job ends with its time, or its sizes are random.
    Open,
}

/// The aspects in which two runs of one job can differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Aspect {
    /// The exit status.
    Status,
    /// The resulting files with their sizes.
    Files,
    /// Whether standard error is empty.
    Stderr,
    /// Lines of the `normal` format.
    Normal,
    /// Names, groups, errors and options of jobs in JSON, and its tree of keys and types.
    Json,
    /// I/Os, bytes and syncs.
    Counts,
    /// Fields of the `terse` format.
    Terse,
}

/// A difference between two runs.
#[derive(Debug)]
pub struct Difference {
    pub aspect: Aspect,
    /// The description.
    pub text: String,
}

impl Difference {
    pub fn new(aspect: Aspect, text: impl Display) -> Difference {
        Difference { aspect, text: text.to_string() }
    }
}

/// The output of a program, split by format.
#[derive(Debug, Default)]
pub struct Report {
    pub normal: String,
    pub json: Option<Json>,
    pub terse: Vec<String>,
}

impl Report {
    /// JSON begins and ends with a brace on a separate line; terse lines begin with their version.
    pub fn new(text: &str) -> Report {
        let mut report = Report::default();
        let mut json: Option<String> = None;
        for line in text.lines() {
            match &mut json {
                None if line == "{" => json = Some("{".to_owned()),
                None if is_terse(line) => report.terse.push(line.to_owned()),
                None => report.normal.extend([line, "\n"]),
                Some(text) => {
                    text.extend(["\n", line]);
                    if line == "}" {
                        report.json = Some(Json::parse(text));
                        json = None;
                    }
                }
            }
        }
        report
    }
}

fn is_terse(line: &str) -> bool {
    line.split_once(';').is_some_and(|(version, _)| ["2", "3", "4", "5"].contains(&version))
}

/// The differences of our report from that of a release.
pub fn compare_reports(ours: &Report, theirs: &Report, release: &Release, counts: Counts) -> Vec<Difference> {
    let mut differences = Vec::new();
    let lines = |report: &Report, release: &Release| comparable(&report.normal, release, counts);
    differences.extend(compare_lines(Aspect::Normal, &lines(ours, Release::ours()), &lines(theirs, release)));
    let fields =
        |report: &Report| -> Vec<String> { report.terse.iter().map(|line| terse_fields(line)).collect() };
    differences.extend(compare_lines(Aspect::Terse, &fields(ours), &fields(theirs)));
    match (&ours.json, &theirs.json) {
        (Some(ours), Some(theirs)) => differences.extend(compare_json(ours, theirs, release, counts)),
        (None, None) => {}
        (ours, theirs) => {
            let text = format!("JSON: ours {}, theirs {}", ours.is_some(), theirs.is_some());
            differences.push(Difference::new(Aspect::Json, text));
        }
    }
    differences
}

/// The skeleton of a report in the `normal` format, without random counts.
pub fn comparable(normal: &str, release: &Release, counts: Counts) -> Vec<String> {
    let mut lines = skeleton_of(normal, release);
    for line in &mut lines {
        if counts != Counts::Exact && line.starts_with("     issued rwts: ") {
            *line = mask(line);
        }
    }
    lines
}

/// The fields of a terse line with masked numbers, except for its version and the labels of percentiles.
fn terse_fields(line: &str) -> String {
    let masked = |field: &str| {
        let (label, value) =
            field.split_once('=').map_or((None, field), |(label, value)| (Some(label), value));
        let is_number = value.trim_end_matches('%').parse::<f64>().is_ok();
        let value = if value.starts_with("fio-3.") { "fio-3.N" } else { value };
        let value = if is_number { "N" } else { value };
        label.map_or(value.to_owned(), |label| format!("{label}={value}"))
    };
    let (version, rest) = line.split_once(';').unwrap_or((line, ""));
    let fields: Vec<String> = rest.split(';').map(masked).collect();
    format!("{version};{}", fields.join(";"))
}

/// The differences of our JSON from that of a release.
pub fn compare_json(ours: &Json, theirs: &Json, release: &Release, counts: Counts) -> Vec<Difference> {
    let (ours, theirs) = (ours.clone().told_like(release), theirs.clone().told_like(release));
    let mut differences = Vec::new();
    // Only Iolite's JSON has the program, the machine, the storage, a time series, and the exact time of jobs.
    let mut our_tree = ours.tree();
    our_tree.retain(|entry| !entry.starts_with("iolite") && entry != "jobs[].job_runtime_ns integer");
    differences.extend(compare_lines(Aspect::Json, &our_tree, &theirs.tree()));
    let mut differ = |aspect: Aspect, what: &str, ours: String, theirs: String| {
        if ours != theirs {
            differences.push(Difference::new(aspect, format!("{what}: ours {ours}, theirs {theirs}")));
        }
    };
    let shown = |json: &Json| json.0["global options"].to_string();
    differ(Aspect::Json, "global options", shown(&ours), shown(&theirs));
    let (our_jobs, their_jobs) = (ours.jobs(), theirs.jobs());
    differ(Aspect::Json, "jobs", our_jobs.len().to_string(), their_jobs.len().to_string());
    for (our_job, their_job) in our_jobs.iter().zip(&their_jobs) {
        let name = our_job.name();
        differ(Aspect::Json, "jobname", name.to_owned(), their_job.name().to_owned());
        for key in ["groupid", "error", "job options"] {
            let what = format!("{name}: {key}");
            differ(Aspect::Json, &what, our_job.0[key].to_string(), their_job.0[key].to_string());
        }
        // A busy spell and a check of a running program count as reads of 0 bytes.
        let engine = &our_job.0["job options"]["ioengine"];
        let only_works = engine == "cpuio" || engine == "exec";
        if our_job.int("error") == 0 && !only_works {
            our_job.check_consistency();
        }
        let mut same = |what: &str, ours: String, theirs: String| {
            differ(Aspect::Counts, &format!("{name}: {what}"), ours, theirs);
        };
        match counts {
            Counts::Exact => {
                same("I/Os", format!("{:?}", our_job.ios()), format!("{:?}", their_job.ios()));
                same("bytes", format!("{:?}", our_job.bytes()), format!("{:?}", their_job.bytes()));
                // If directions are reported as one, syncs are not shown.
                let syncs = |job: &serde_json::Value| job["sync"]["total_ios"].to_string();
                same("syncs", syncs(our_job.0), syncs(their_job.0));
            }
            Counts::Sum => {
                let sum = |counts: [u64; 3]| counts.iter().sum::<u64>().to_string();
                same("bytes together", sum(our_job.bytes()), sum(their_job.bytes()));
            }
            Counts::Open => {
                let directions = |counts: [u64; 3]| format!("{:?}", counts.map(|count| count > 0));
                same("directions", directions(our_job.bytes()), directions(their_job.bytes()));
            }
        }
    }
    differences
}

/// The first difference between two lists.
pub fn compare_lines(aspect: Aspect, ours: &[String], theirs: &[String]) -> Option<Difference> {
    if ours == theirs {
        return None;
    }
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|line| !those.contains(line)).cloned().collect()
    };
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let text = format!(
        "line {} is\n      {:?}\n    and not\n      {:?}\n    only ours: {:#?}\n    only theirs: {:#?}",
        at + 1,
        ours.get(at),
        theirs.get(at),
        only(ours, theirs),
        only(theirs, ours)
    );
    Some(Difference::new(aspect, text))
}
