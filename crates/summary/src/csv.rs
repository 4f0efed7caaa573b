//! The jobs of a result as one flat table (RFC 4180), for spreadsheets: a line for each direction of each job.
//!
//! Amounts are in the units of the JSON: bytes, nanoseconds, I/Os per second. Fields without a value are empty. The columns
//! end with the options of the jobs, so that a pivot table can be made of `bs` and `iodepth`.

use crate::harmless;
use crate::with_hosts;
use iolite_options::registry;
use iolite_stored::{DIRECTIONS, NoReport, has_moved, number, pairs, percentile};
use serde_json::Value;

/// The percentiles in columns.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// A text as a field: quoted where it has to be, with control characters made visible. Spreadsheets compute texts that begin
/// like formulas, so these begin with an apostrophe (<https://owasp.org/www-community/attacks/CSV_Injection>), unless they are
/// numbers.
pub fn field(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(harmless).collect();
    let mut shown = lines.join("\n");
    if shown.starts_with(['=', '+', '-', '@']) && shown.parse::<f64>().is_err() {
        shown.insert(0, '\'');
    }
    match shown.contains([',', '"', '\n']) {
        true => format!("\"{}\"", shown.replace('"', "\"\"")),
        false => shown,
    }
}

/// The table of a report. Secrets are placeholders.
///
/// # Errors
/// It is not a report.
pub fn of(report: &Value) -> Result<String, NoReport> {
    let report = &*with_hosts(report);
    let jobs = iolite_stored::jobs(report)?;
    let common = pairs(&report["global options"]);
    let own: Vec<Vec<(&str, String)>> = jobs.iter().map(|job| pairs(&job["job options"])).collect();
    let mut options: Vec<&str> = Vec::new();
    for (name, _) in common.iter().chain(own.iter().flatten()) {
        if *name != "name" && !options.contains(name) {
            options.push(name);
        }
    }
    let mut out =
        String::from("job,host,group,direction,iops,bw_bytes,total_ios,io_bytes,runtime_ms,mean_ns");
    PERCENTILES.iter().for_each(|percentile| out += &format!(",p{percentile}_ns"));
    out += ",max_ns,latency,usr_cpu,sys_cpu,errors";
    options.iter().for_each(|name| out += &format!(",{}", field(name)));
    out.push('\n');
    for (job, own) in jobs.iter().zip(&own) {
        for direction in DIRECTIONS.into_iter().filter(|direction| has_moved(&job[direction])) {
            let mut fields = figures(job, direction, &report["iolite"]["host"]["name"]);
            for name in &options {
                let value = own.iter().chain(&common).find(|(known, _)| known == name);
                // An option without a value is switched on.
                let shown = value.map(|(_, value)| if value.is_empty() { "1" } else { value });
                fields.push(shown.map_or_else(String::new, |value| field(&registry::shown(name, value))));
            }
            line!(out, "{}", fields.join(","));
        }
    }
    Ok(out)
}

fn figures(job: &Value, direction: &str, here: &Value) -> Vec<String> {
    let measured = &job[direction];
    let text = |value: &Value| value.as_str().map_or_else(String::new, field);
    let told = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let (kind, latency) = iolite_stored::latency_with_percentiles(measured)
        .or_else(|| {
            ["clat_ns", "lat_ns"]
                .map(|key| (key, &measured[key]))
                .into_iter()
                .find(|(_, one)| number(one, "N") > 0.0)
        })
        .unwrap_or(("", &Value::Null));
    let went_on = number(job, "total_err");
    let errors = if number(job, "error") > 0.0 { went_on.max(1.0) } else { went_on };
    let mut fields = vec![
        text(&job["jobname"]),
        text(if job["hostname"].is_string() { &job["hostname"] } else { here }),
        told(job["groupid"].as_f64()),
        direction.to_owned(),
    ];
    fields.push(number(measured, "iops").to_string());
    fields.push(iolite_stored::bandwidth(measured).to_string());
    fields.extend(["total_ios", "io_bytes", "runtime"].map(|key| number(measured, key).to_string()));
    fields.push(told(latency["mean"].as_f64()));
    fields.extend(PERCENTILES.map(|asked| told(percentile(latency, asked))));
    fields.push(told(latency["max"].as_f64()));
    fields.push(kind.trim_end_matches("_ns").to_owned());
    fields.extend(["usr_cpu", "sys_cpu"].map(|key| number(job, key).to_string()));
    fields.push(errors.to_string());
    fields
}
