//! `iolite version`: what this program is, and what it uses of this machine: what a report of a defect needs.

use iolite_options::Name;
use iolite_options::commands::Asked;
use iolite_run::Clock;
use iolite_types::describe_error;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The features of cargo, and whether this program has them.
const FEATURES: [(&str, bool); 5] = [
    ("agents", cfg!(feature = "agents")),
    ("hdfs", cfg!(feature = "hdfs")),
    ("history", cfg!(feature = "history")),
    ("servers", cfg!(feature = "servers")),
    ("web", cfg!(feature = "web")),
];

/// Answers as text or in JSON.
pub fn run(asked: &Asked) -> Result<String, String> {
    if !asked.operands.is_empty() {
        return Err("takes no words, only options".to_owned());
    }
    let facts = facts();
    if asked.has("json") {
        return Ok(format!("{facts:#}\n"));
    }
    let mut text = String::new();
    for (key, value) in facts.as_object().into_iter().flatten() {
        line!(text, "{:10} {}", format!("{key}:"), in_words(value));
    }
    Ok(text)
}

fn facts() -> Value {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
    let mut processor = Map::new();
    processor.insert("clock".to_owned(), Clock::calibrate().description().into());
    processor.insert("random data".to_owned(), iolite_content::random_implementation().into());
    for (what, by) in iolite_verify::block::implementations() {
        processor.insert(what.to_owned(), by.into());
    }
    json!({
        "program": Name::Iolite.own_version(),
        "language": Name::Fio.version(),
        "commit": option_env!("IOLITE_COMMIT").unwrap_or("unknown (built without IOLITE_COMMIT)"),
        "compiler": env!("IOLITE_BUILD_COMPILER"),
        "target": env!("IOLITE_BUILD_TARGET"),
        "profile": env!("IOLITE_BUILD_PROFILE"),
        "features": features,
        "processor": processor,
        "kernel": kernel(),
    })
}

/// The kernel, and the interfaces of it that are used if it has them.
fn kernel() -> Value {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    let io_uring = match iolite_engines::io_uring_features() {
        Ok(features) => json!(features),
        Err(error) => json!(format!("no: {}", describe_error(&error))),
    };
    let mut kernel = Map::new();
    kernel.insert(
        "release".to_owned(),
        release.map_or_else(|error| describe_error(&error), |text| text.trim().to_owned()).into(),
    );
    kernel.insert("io_uring".to_owned(), io_uring);
    #[cfg(feature = "agents")]
    kernel.insert(
        "landlock".to_owned(),
        iolite_remote::confine::version().map_or_else(|_| "no".into(), |version| version.into()),
    );
    kernel.into()
}

/// A value on one line.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| format!("{key}: {}", in_words(value)))
            .collect::<Vec<_>>()
            .join("; "),
        other => other.to_string(),
    }
}
