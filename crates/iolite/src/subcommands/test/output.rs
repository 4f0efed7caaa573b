//! The result as a file: a report in JSON, as any other run has it, with what the test found; a page of that; Markdown.

use super::cases::Case;
use super::course::Measured;
use super::target::Target;
use super::{Outcome, screen};
use crate::messages::complain;
use crate::output_file::Destination;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The format of a file, by the end of its name.
pub struct Format {
    path: PathBuf,
    make: fn(&Outcome) -> Result<String, String>,
}

impl Format {
    pub fn of(name: &str) -> Result<Format, String> {
        let path = PathBuf::from(name);
        let make: fn(&Outcome) -> Result<String, String> = match path.extension().and_then(|end| end.to_str())
        {
            Some("json") => |outcome| Ok(json(outcome)),
            Some("md") => |outcome| Ok(screen::markdown(outcome)),
            Some("html") => page,
            _ => {
                return Err(format!(
                    "--output={name}: the end of the name chooses the format, and this one does not: .json, .md or .html"
                ));
            }
        };
        Ok(Format { path, make })
    }

    /// Opens the file, before anything is measured.
    pub fn open(self, targets: &[Target]) -> Result<Opened, String> {
        let told = |why: &dyn std::fmt::Display| format!("--output={}: {why}", self.path.display());
        if targets.iter().any(|target| target.is(&self.path)) {
            return Err(told(&"that is a target; give another name"));
        }
        let destination = Destination::open(&self.path).map_err(|error| told(&error))?;
        Ok(Opened { path: self.path, make: self.make, destination })
    }
}

/// A file that the result will be written to.
pub struct Opened {
    path: PathBuf,
    make: fn(&Outcome) -> Result<String, String>,
    destination: Destination,
}

impl Opened {
    /// Writes the result; returns whether that worked.
    pub fn write(mut self, program: &str, outcome: &Outcome) -> bool {
        let written = (self.make)(outcome).and_then(|text| {
            self.destination
                .write(text.as_bytes(), |file, part| file.write_all(part))
                .and_then(|()| self.destination.complete())
                .map_err(|error| error.to_string())
        });
        match written {
            Ok(()) => true,
            Err(why) => {
                complain(program, &format_args!("test: --output={}: {why}", self.path.display()));
                false
            }
        }
    }
}

fn page(outcome: &Outcome) -> Result<String, String> {
    iolite_page::of_value(&value(outcome)).map_err(|error| error.to_string())
}

/// The result as a report in JSON.
pub fn json(outcome: &Outcome) -> String {
    format!("{:#}\n", value(outcome))
}

fn value(outcome: &Outcome) -> Value {
    let is_one = outcome.results.len() == 1;
    let parts: Vec<Value> = outcome
        .results
        .iter()
        .map(|result| {
            let on = if is_one { String::new() } else { format!(" on {}", result.target.name) };
            let cases: Vec<(&Case, &Value)> =
                result.reports.iter().map(|(case, report)| (case, report)).collect();
            combined(&on, &cases)
        })
        .collect();
    let mut whole = joined(parts.iter().collect());
    whole["iolite"]["test"] = json!({
        "seconds": outcome.seconds,
        "targets": outcome.results.iter().map(of_target).collect::<Vec<_>>(),
        "failures": outcome.failures,
        "expected": outcome.kept,
        "not_as_expected": outcome.broken,
    });
    whole
}

fn of_target(result: &Measured) -> Value {
    let findings = result.findings.iter().map(
        |finding| json!({"kind": finding.kind.name(), "words": finding.words, "evidence": finding.evidence}),
    );
    let rows = result.rows().map(|row| {
        json!({
            "case": row.name,
            "iops": row.iops,
            "bw_bytes": row.bandwidth,
            "mean_ns": row.latency.mean,
            "p50_ns": row.latency.p50,
            "p99_ns": row.latency.p99,
            "p99.9_ns": row.latency.p999,
            "max_ns": row.latency.max,
        })
    });
    json!({
        "name": result.target.name,
        "what": result.target.words(),
        "bytes": result.place.bytes,
        "direct": result.place.is_direct,
        "cases": rows.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "meaning": result.meaning,
    })
}

/// The reports of cases as one: each case is a job of its own group, and their series follow each other.
pub fn combined(on: &str, cases: &[(&Case, &Value)]) -> Value {
    let named: Vec<Value> = cases
        .iter()
        .map(|(case, report)| {
            let mut report = (*report).clone();
            for job in report["jobs"].as_array_mut().into_iter().flatten() {
                job["jobname"] = format!("{}{on}", case.name).into();
            }
            report
        })
        .collect();
    joined(named.iter().collect())
}

/// Several reports as one.
fn joined(reports: Vec<&Value>) -> Value {
    let Some(last) = reports.last() else { return json!({"jobs": []}) };
    let mut whole = Map::new();
    for key in ["fio version", "iolite version", "timestamp", "timestamp_ms", "time"] {
        if let Some(value) = last.get(key) {
            whole.insert(key.to_owned(), value.clone());
        }
    }
    let mut jobs: Vec<Value> = Vec::new();
    let mut targets: Vec<Value> = Vec::new();
    let mut warnings: Vec<Value> = Vec::new();
    let mut host = Value::Null;
    let (mut ends, mut entries) = (Vec::new(), Vec::new());
    let (mut now, mut sample) = (0_u64, 0_u64);
    for report in reports {
        let first_job = jobs.len();
        for job in report["jobs"].as_array().into_iter().flatten() {
            let mut job = job.clone();
            job["groupid"] = jobs.len().into();
            jobs.push(job);
        }
        let told = &report["iolite"];
        if host.is_null() {
            host = told["host"].clone();
        }
        for (all, key) in [(&mut targets, "targets"), (&mut warnings, "warnings")] {
            for value in told[key].as_array().into_iter().flatten() {
                if !all.contains(value) {
                    all.push(value.clone());
                }
            }
        }
        let series = &told["series"];
        let Some(own_ends) = series["end_us"].as_array() else { continue };
        let (first_window, begin) = (ends.len() as u64, series["begin_us"].as_u64().unwrap_or(0));
        for entry in series["jobs"].as_array().into_iter().flatten() {
            let mut entry = entry.clone();
            entry["job"] = (first_job as u64 + entry["job"].as_u64().unwrap_or(0)).into();
            for (_, direction) in entry.as_object_mut().into_iter().flatten() {
                if let Some(first) = direction.get("first_window").and_then(Value::as_u64) {
                    direction["first_window"] = (first_window + first).into();
                }
            }
            entries.push(entry);
        }
        sample = sample.max(series["sample_us"].as_u64().unwrap_or(0));
        let base = now;
        for end in own_ends.iter().filter_map(Value::as_u64) {
            now = base + end.saturating_sub(begin);
            ends.push(now);
        }
    }
    whole.insert("global options".to_owned(), json!({}));
    whole.insert("jobs".to_owned(), jobs.into());
    let mut told = json!({"status": "ended", "host": host, "targets": targets});
    if !warnings.is_empty() {
        told["warnings"] = warnings.into();
    }
    if !entries.is_empty() {
        told["series"] = json!({"sample_us": sample, "begin_us": 0, "end_us": ends, "jobs": entries});
    }
    whole.insert("iolite".to_owned(), told);
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_follow_each_other() {
        let report = |name: &str, first: u64| {
            json!({"fio version": "f", "jobs": [{"jobname": name}], "iolite": {"host": {"name": "h"}, "targets": [{"files": "f"}],
                "series": {"sample_us": 100, "begin_us": 50, "end_us": [150, 250],
                    "jobs": [{"job": 0, "depth": 1, "read": {"first_window": first, "ios": [1]}}]}}})
        };
        let (one, two) = (report("a", 0), report("b", 1));
        let whole = joined(vec![&one, &two]);
        let series = &whole["iolite"]["series"];
        assert_eq!(series["end_us"], json!([100, 200, 300, 400]));
        assert_eq!(
            (&series["jobs"][1]["job"], &series["jobs"][1]["read"]["first_window"]),
            (&json!(1), &json!(3))
        );
        assert_eq!(whole["jobs"][1]["groupid"], 1);
        assert_eq!(whole["iolite"]["targets"], json!([{"files": "f"}]));
        // Joining what was joined changes nothing.
        assert_eq!(joined(vec![&whole])["iolite"]["series"], *series);
    }
}
