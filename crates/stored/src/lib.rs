//! Stored results: reports in JSON, ours and fio's, from files.
//!
//! They come from many versions of several programs. So missing or unexpected values are left out; only a text without
//! any jobs is an error ([`NoReport`]).

use iolite_types::{RunEnd, RunStatus};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The directions that a job can have figures for, in order.
pub const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Why a text is not a report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoReport {
    /// It is not JSON at this place.
    #[error("{line}:{column}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The reason.
        why: String,
    },
    /// It is JSON, but not a report.
    #[error("{0}")]
    Content(&'static str),
}

impl NoReport {
    /// The error message, with the name of the text.
    pub fn of(&self, name: &str) -> String {
        match self {
            NoReport::Syntax { .. } => format!("{name}:{self}"),
            NoReport::Content(_) => format!("{name}: {self}"),
        }
    }
}

/// More values than these would take gigabytes, and no report has them.
const MOST_VALUES: usize = if cfg!(test) { 1000 } else { 16 << 20 };

/// The report in a text, with or without notes above it and other formats below it; of several reports, the last
/// (earlier ones were made during the run). Text behind it without jobs is ignored.
///
/// # Errors
/// There is no report; or the last one is truncated, so that earlier ones are not the result.
pub fn last_report(text: &str) -> Result<Value, NoReport> {
    // Only the keys: of a file with a report for each minute of a day, one is needed.
    type Keys = BTreeMap<String, IgnoredAny>;
    let text = text.trim_start_matches('\u{feff}');
    let above = text.lines().take_while(|line| !line.trim_start().starts_with('{')).count();
    let start: usize = text.split_inclusive('\n').take(above).map(str::len).sum();
    let rest = &text[start.min(text.len())..];
    let mut last: Option<(&str, bool)> = None;
    let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Keys>();
    loop {
        let begin = objects.byte_offset();
        let is_object = rest[begin..].trim_start().starts_with('{');
        let Some(found) = objects.next() else { break };
        match found {
            Ok(keys) => {
                let has_jobs = keys.contains_key("jobs") || keys.contains_key("client_stats");
                if has_jobs || last.is_none_or(|(_, had_jobs)| !had_jobs) {
                    last = Some((&rest[begin..objects.byte_offset()], has_jobs));
                }
            }
            // Something else follows, such as the normal report.
            Err(error) if last.is_some() && !(is_object && error.is_eof()) => break,
            Err(error) => {
                let told = error.to_string();
                let told = told.split(" at line").next().unwrap_or_default();
                let why = match last {
                    Some(_) => format!(
                        "{told}: the last report is cut off, and those before it are interim reports; without it, they \
                         can be read"
                    ),
                    None => told.to_owned(),
                };
                return Err(NoReport::Syntax { line: error.line() + above, column: error.column(), why });
            }
        }
    }
    let Some((found, _)) = last else {
        return Err(NoReport::Content("there is no report in JSON in it (--output-format=json makes one)"));
    };
    if found.bytes().filter(|byte| *byte == b',').count() > MOST_VALUES {
        return Err(NoReport::Content("it has more values than any report"));
    }
    // Its syntax has been checked before.
    serde_json::from_str(found).map_err(|error| NoReport::Syntax {
        line: error.line(),
        column: error.column(),
        why: error.to_string(),
    })
}

/// The jobs of a report, in its order: their positions are those of its series.
///
/// # Errors
/// It has no jobs.
pub fn jobs(report: &Value) -> Result<Vec<&Value>, NoReport> {
    // If fio ran on other machines, their jobs are under a separate key, together with a sum.
    let of_machines = || {
        let values = report["client_stats"].as_array()?.iter();
        Some(values.filter(|value| value["jobname"] != "All clients").collect())
    };
    let values = report["jobs"].as_array().map(|jobs| jobs.iter().collect()).or_else(of_machines);
    values.ok_or(NoReport::Content(
        "it has no \"jobs\", so it is not a report (--output-format=json makes one)",
    ))
}

/// The standard tests, by the keys that reports have for their results, below `iolite`.
pub const TESTS: [&str; 4] = ["ai", "meta", "pts", "test"];

/// The standard test whose report this is.
pub fn test_of(report: &Value) -> Option<&'static str> {
    TESTS.into_iter().find(|test| report["iolite"][test].is_object())
}

/// The standard test of a program's name, as [`program`] tells it.
pub fn test_of_program(program: &str) -> Option<&str> {
    program.strip_prefix("iolite ")?.split(" (").next().filter(|test| TESTS.contains(test))
}

/// The program that made a report, and its version; of a standard test its command: `iolite meta (iolite-1.0)`.
pub fn program(report: &Value) -> String {
    let own = report["iolite version"].as_str();
    if let Some(test) = test_of(report) {
        return format!("iolite {test} ({})", own.unwrap_or("of an unknown version"));
    }
    let version = own.filter(|own| report["fio version"] != *own);
    let called = report["fio version"].as_str().unwrap_or("an unknown program");
    let ours = version.map(|own| format!(" ({own})")).unwrap_or_default();
    format!("{called}{ours}")
}

/// How the run ended; `None` = unknown. Only Iolite's reports contain it; of other reports, it is known only if a job
/// has an error.
pub fn end(report: &Value) -> Option<RunEnd> {
    let told = &report["iolite"];
    if let Some(status) = told["status"].as_str().and_then(RunStatus::of_name) {
        return Some(RunEnd { status, why: told["status_reason"].as_str().unwrap_or_default().to_owned() });
    }
    let jobs = jobs(report).ok()?;
    let failed = jobs.iter().filter(|job| number(job, "error") != 0.0).count();
    (failed > 0).then(|| RunEnd::failed(format!("{failed} of {} jobs had errors", jobs.len())))
}

/// Whether a job did any I/O in the direction of these measurements.
pub fn has_moved(measured: &Value) -> bool {
    number(measured, "total_ios") > 0.0 || number(measured, "io_bytes") > 0.0
}

/// Bytes per second of a direction.
pub fn bandwidth(measured: &Value) -> f64 {
    measured["bw_bytes"].as_f64().unwrap_or_else(|| number(measured, "bw") * 1024.0)
}

/// The seconds that a job took: exactly, if the report tells, or else in milliseconds. Those of several workers are added up.
pub fn runtime(job: &Value) -> f64 {
    job["job_runtime_ns"].as_f64().map_or_else(|| number(job, "job_runtime") / 1e3, |exact| exact / 1e9)
}

/// The time that the workers of a job were on a processor, user and system, in nanoseconds. The percentages of a report are of
/// `job_runtime`, which is the sum over the workers of a group (`group_reporting`), so they cannot be added.
pub fn cpu_ns(job: &Value) -> f64 {
    (number(job, "usr_cpu") + number(job, "sys_cpu")) / 100.0 * number(job, "job_runtime") * 1e6
}

/// The latencies of a direction that have percentiles: completion latency, or total latency if only that has them.
/// Returns their key and their value.
pub fn latency_with_percentiles(measured: &Value) -> Option<(&'static str, &Value)> {
    let found = ["clat_ns", "lat_ns"].into_iter().find(|key| measured[key]["percentile"].is_object());
    found.map(|key| (key, &measured[key]))
}

/// A percentile of latencies in nanoseconds: as reported, or else from the histogram.
pub fn percentile(latency: &Value, percentile: f64) -> Option<f64> {
    let told = latency["percentile"][&format!("{percentile:.6}")].as_f64();
    told.or_else(|| percentile_of_bins(&bins(latency)?, percentile))
}

/// The histogram of latencies: nanoseconds, and how many there were.
pub fn bins(latency: &Value) -> Option<BTreeMap<u64, u64>> {
    let counts = latency["bins"].as_object()?;
    Some(
        counts.iter().filter_map(|(latency, count)| Some((latency.parse().ok()?, count.as_u64()?))).collect(),
    )
}

/// The percentile of a histogram.
pub fn percentile_of_bins(bins: &BTreeMap<u64, u64>, percentile: f64) -> Option<f64> {
    // The counts in a damaged file may overflow a sum.
    let total = bins.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    // 99.9 percent of 1000 are 999, and not a little more.
    let wanted = percentile / 100.0 * total as f64 * (1.0 - 1e-12);
    let mut seen = 0_u64;
    let mut reached = bins.iter().filter_map(|(latency, count)| {
        seen = seen.saturating_add(*count);
        (seen as f64 >= wanted).then_some(*latency as f64)
    });
    reached.next()
}

/// The number of a key; 0 if there is no number.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

/// Names and values of an object.
pub fn pairs(object: &Value) -> Vec<(&str, String)> {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let members = object.as_object().into_iter().flat_map(Map::iter);
    members.map(|(name, value)| (name.as_str(), words(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_of_several_reports_counts() {
        let text = "note: x\n{\"jobs\": []}\n{\"jobs\": [{}]}\n\nall: (groupid=0)\n";
        assert_eq!(jobs(&last_report(text).unwrap()).map(|jobs| jobs.len()), Ok(1));
        assert_eq!(last_report("a\n{\n \"x\": }").unwrap_err().of("f"), "f:3:7: expected value");
        assert!(last_report("words").unwrap_err().of("f").starts_with("f: there is no report in JSON"));
        assert!(jobs(&json!({"jobs": 3})).is_err());
    }

    #[test]
    fn a_report_is_found_wherever_it_begins() {
        for text in ["\u{feff}{\"jobs\": [1]}", "  {\"jobs\": [1]}", "x\n\t{\n\"jobs\": [1]}\nnormal"] {
            assert_eq!(last_report(text), Ok(json!({"jobs": [1]})), "{text}");
        }
        let other = "{\"a\": 1}\n{\"jobs\": [2]}\n{\"b\": 3}\n{this is none}";
        assert_eq!(last_report(other), Ok(json!({"jobs": [2]})), "what has no jobs is not a report");
        let cut = last_report("{\"jobs\": [1]}\n{\"jobs\": [1,\n").unwrap_err().of("f");
        assert!(cut.starts_with("f:") && cut.contains("the last report is cut off"), "{cut}");
        let huge = format!("{{\"jobs\": [0{}]}}", ",0".repeat(MOST_VALUES + 1));
        assert_eq!(last_report(&huge).unwrap_err().to_string(), "it has more values than any report");
    }

    #[test]
    fn a_standard_test_is_its_command() {
        let of = |key: &str| {
            program(&json!({"fio version": "fio-3.42", "iolite version": "iolite-1.0", "iolite": {key: {}}}))
        };
        assert_eq!(
            (of("meta").as_str(), test_of_program(&of("meta"))),
            ("iolite meta (iolite-1.0)", Some("meta"))
        );
        assert_eq!((of("host").as_str(), test_of_program(&of("host"))), ("fio-3.42 (iolite-1.0)", None));
        let as_itself =
            json!({"fio version": "iolite-1.0", "iolite version": "iolite-1.0", "iolite": {"ai": {}}});
        assert_eq!(program(&as_itself), "iolite ai (iolite-1.0)");
    }

    #[test]
    fn the_end_of_a_run_is_stated_or_follows_from_errors() {
        let told =
            json!({"jobs": [], "iolite": {"status": "interrupted", "status_reason": "ended by SIGINT"}});
        assert_eq!(end(&told), Some(RunEnd::interrupted("ended by SIGINT")));
        // Reports of fio, of an older version, and of a newer one with unknown words.
        for report in [json!({"jobs": [{"error": 0}]}), json!({"jobs": [], "iolite": {"status": "x"}})] {
            assert_eq!(end(&report), None);
        }
        let failed = Some(RunEnd::failed("1 of 2 jobs had errors"));
        assert_eq!(end(&json!({"jobs": [{"error": 5}, {}]})), failed);
        assert_eq!(end(&json!({"client_stats": [{"error": 5}, {"error": 0}]})), failed);
    }

    /// A job may have the name of the sum of several machines.
    #[test]
    fn all_jobs_are_there() {
        let named = json!([{"jobname": "a"}, {"jobname": "All clients"}, {"jobname": "b"}]);
        assert_eq!(jobs(&json!({"jobs": named})).map(|jobs| jobs.len()), Ok(3));
        assert_eq!(jobs(&json!({"client_stats": named})).map(|jobs| jobs.len()), Ok(2));
    }

    /// Four workers, each half of 10 s on a processor: fio and we report the same with and without `group_reporting`.
    #[test]
    fn processor_time_is_that_of_all_workers() {
        let worker = json!({"usr_cpu": 40.0, "sys_cpu": 10.0, "job_runtime": 10_000});
        let group = json!({"usr_cpu": 40.0, "sys_cpu": 10.0, "job_runtime": 40_000});
        assert_eq!(4.0 * cpu_ns(&worker), cpu_ns(&group));
        assert_eq!((cpu_ns(&group), cpu_ns(&json!({}))), (20e9, 0.0));
    }

    #[test]
    fn percentiles_are_read_or_counted_from_bins() {
        let latency = json!({"percentile": {"50.000000": 7}, "bins": {"5": 98, "900": 2, "x": 1}});
        assert_eq!((percentile(&latency, 50.0), percentile(&latency, 99.0)), (Some(7.0), Some(900.0)));
        let huge = json!({"bins": {"5": u64::MAX, "900": u64::MAX}});
        assert_eq!(percentile(&huge, 50.0), Some(5.0));
        assert_eq!(percentile(&json!({"bins": {}}), 50.0), None);
    }
}
