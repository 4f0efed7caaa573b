//! The result of a standard test as a report, which the store of runs keeps: the result itself, and its parts as jobs.

use crate::messages::program;
use crate::saving::now_ms;
use crate::subcommands::performer::NAME;
use iolite_host::about;
use serde_json::{Map, Value, json};

/// The report. `test` is the key of the result, one of [`iolite_stored::TESTS`]. `jobs`: each part, with its figures.
/// `failure`: why it is not all that it should be.
pub fn report(
    test: &str,
    mut result: Value,
    answer: &str,
    begun_ms: u64,
    jobs: Vec<Value>,
    failure: Option<&str>,
) -> Value {
    let program = program(NAME);
    let now = now_ms();
    let with_place = |(number, mut job): (usize, Value)| {
        job["groupid"] = number.into();
        job["error"] = 0.into();
        job["job_start"] = begun_ms.into();
        job
    };
    let host: Map<String, Value> =
        about::this_host().into_iter().map(|(name, value)| (name, value.into())).collect();
    result["answer"] = answer.trim_end().into();
    let status = if failure.is_some() { "failed" } else { "ended" };
    json!({
        "fio version": program.version,
        "iolite version": program.own_version,
        "timestamp": now / 1000,
        "timestamp_ms": now,
        "time": iolite_report::clock::local(now),
        "global options": {},
        "jobs": jobs.into_iter().enumerate().map(with_place).collect::<Vec<_>>(),
        "iolite": {"status": status, "status_reason": failure.unwrap_or_default(), "host": host, test: result},
    })
}
