//! Stored results: reports in JSON, ours and fio's, from files.
//!
//! They come from many versions of several programs. So whatever is missing, or is not what it should be, is left out;
//! only a text without any jobs is an error ([`NoReport`]).

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a job can have figures of, in order.
pub const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Why a text is no report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NoReport {
    /// It is no JSON at this place.
    #[error("{line}:{column}: {why}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// It is JSON, and no report.
    #[error("{0}")]
    Content(&'static str),
}

impl NoReport {
    /// The same in words, with the name of the text.
    pub fn of(&self, name: &str) -> String {
        match self {
            NoReport::Syntax { .. } => format!("{name}:{self}"),
            NoReport::Content(_) => format!("{name}: {self}"),
        }
    }
}

/// The report in a text, with or without notes above it and other formats below it; of several reports, the last
/// (those before were made on the way).
///
/// # Errors
/// There is none.
pub fn last_report(text: &str) -> Result<Value, NoReport> {
    let above = text.lines().take_while(|line| !line.starts_with('{')).count();
    let start: usize = text.split_inclusive('\n').take(above).map(str::len).sum();
    if start >= text.len() {
        return Err(NoReport::Content("there is no report in JSON in it (--output-format=json makes one)"));
    }
    let mut last = None;
    for value in serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>() {
        match value {
            Ok(value) if value.is_object() => last = Some(value),
            // Something else follows, such as the normal report.
            _ if last.is_some() => break,
            Ok(_) => return Err(NoReport::Content("it is JSON, but no report")),
            Err(error) => {
                let why = error.to_string();
                let why = why.split(" at line").next().unwrap_or_default().to_owned();
                return Err(NoReport::Syntax { line: error.line() + above, column: error.column(), why });
            }
        }
    }
    Ok(last.unwrap_or_default())
}

/// The jobs of a report.
///
/// # Errors
/// It has none.
pub fn jobs(report: &Value) -> Result<Vec<&Value>, NoReport> {
    // Where fio ran on other machines, their jobs have a key of their own.
    let values = report["jobs"].as_array().or_else(|| report["client_stats"].as_array());
    let values = values.ok_or(NoReport::Content(
        "it has no \"jobs\", so it is no report (--output-format=json makes one)",
    ))?;
    let is_job = |value: &&Value| value.is_object() && value["jobname"] != "All clients";
    Ok(values.iter().filter(is_job).collect())
}

/// The program that made a report, and its version.
pub fn program(report: &Value) -> String {
    let version = report["iolite version"].as_str().filter(|own| report["fio version"] != *own);
    let called = report["fio version"].as_str().unwrap_or("an unknown program");
    let ours = version.map(|own| format!(" ({own})")).unwrap_or_default();
    format!("{called}{ours}")
}

/// Whether a job did anything in the direction that this is of.
pub fn has_moved(measured: &Value) -> bool {
    number(measured, "total_ios") > 0.0 || number(measured, "io_bytes") > 0.0
}

/// Bytes per second of a direction.
pub fn bandwidth(measured: &Value) -> f64 {
    measured["bw_bytes"].as_f64().unwrap_or_else(|| number(measured, "bw") * 1024.0)
}

/// The latencies of a direction that have percentiles: of completion, or total ones where only those have them. The name
/// of their key, and what is behind it.
pub fn latency_with_percentiles(measured: &Value) -> Option<(&'static str, &Value)> {
    let found = ["clat_ns", "lat_ns"].into_iter().find(|key| measured[key]["percentile"].is_object());
    found.map(|key| (key, &measured[key]))
}

/// A percentile of latencies in nanoseconds, as it is told, or else from the histogram.
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
    // What a damaged file says of counts may be too much for a sum.
    let total = bins.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let mut seen = 0_u64;
    let mut reached = bins.iter().filter_map(|(latency, count)| {
        seen = seen.saturating_add(*count);
        (seen as f64 >= percentile / 100.0 * total as f64).then_some(*latency as f64)
    });
    reached.next()
}

/// The number behind a key; 0 if there is none.
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
    fn percentiles_are_told_or_counted() {
        let latency = json!({"percentile": {"50.000000": 7}, "bins": {"5": 98, "900": 2, "x": 1}});
        assert_eq!((percentile(&latency, 50.0), percentile(&latency, 99.0)), (Some(7.0), Some(900.0)));
        let huge = json!({"bins": {"5": u64::MAX, "900": u64::MAX}});
        assert_eq!(percentile(&huge, 50.0), Some(5.0));
        assert_eq!(percentile(&json!({"bins": {}}), 50.0), None);
    }
}
