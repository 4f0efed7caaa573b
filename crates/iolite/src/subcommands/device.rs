//! `iolite device`: shows the facts and features of a device, and jobs that try them.

mod jobs;
mod show;

pub(super) use jobs::can_be_named;

use iolite_host::{Device, Found};
use iolite_options::commands::Asked;
use iolite_types::units::exact_bytes;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The format of the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Jobs,
}

pub fn run(asked: &Asked) -> Result<String, String> {
    let [operand] = &asked.operands[..] else {
        return Err("needs the name of one device or file".to_owned());
    };
    let format = match (asked.value("output-format"), asked.has("json")) {
        (None | Some("json"), true) | (Some("json"), false) => Format::Json,
        (Some(other), true) => return Err(format!("--json and --output-format={other}: only one of them")),
        (Some("jobs"), false) => Format::Jobs,
        (_, false) => Format::Table,
    };
    let path = Path::new(operand);
    let found = Device::at(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let jobs = jobs::of(path, &found);
    Ok(match format {
        Format::Table => table(path, &found, &jobs),
        Format::Json => json(path, &found, &jobs),
        Format::Jobs if !jobs::can_be_named(path) => {
            return Err(format!(
                "{}: a job file would take this name for something else; give the device a plain name (a link)",
                path.display()
            ));
        }
        Format::Jobs => jobs::file(&jobs),
    })
}

fn table(path: &Path, found: &Found, jobs: &[jobs::Job]) -> String {
    let mut text = String::new();
    let Found { what, file_system, partition, device, .. } = found;
    let on = file_system.as_ref().map_or(String::new(), |kind| format!(" on {kind}"));
    let part = partition
        .as_ref()
        .map_or(String::new(), |(name, bytes)| format!(", partition {name} of {}", exact_bytes(*bytes)));
    let first = format!("{}: {what}{on}{part}", path.display()).replace('\n', "\\n");
    line!(text, "{}", String::from_utf8_lossy(&crate::console::harmless(first.as_bytes())));
    show::table(&mut text, device);
    if !jobs.is_empty() {
        line!(text, "\nJobs to try (those that change data are commented out):\n");
        text.push_str(&jobs::file(jobs));
    }
    text
}

fn json(path: &Path, found: &Found, jobs: &[jobs::Job]) -> String {
    let partition = found.partition.as_ref().map(|(name, bytes)| json!({"name": name, "size_bytes": bytes}));
    let jobs = jobs
        .iter()
        .map(|job| json!({"ability": job.ability, "changes_data": job.changes_data, "job": job.text()}));
    let mut told = json!({
        "path": path.display().to_string(),
        "what": found.what,
        "device": show::json(&found.device),
        "jobs": jobs.collect::<Vec<_>>(),
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            told[name] = value;
        }
    };
    add("file_system", found.file_system.clone().map(Value::from));
    add("partition", partition);
    let mut text = serde_json::to_string_pretty(&told).expect("values can be written");
    text.push('\n');
    text
}
