//! `iolite trace`: describes a trace as text, in JSON, or as a job file that imitates it.

mod convert;
mod imitate;
mod json;
mod text;

use super::input;
use crate::console::harmless;
use iolite_options::commands::Asked;
use iolite_trace::summary::{Summary, summarise};
use iolite_trace::{Format, TextVersion, TraceError, TraceReader};
use iolite_types::is_standard_stream;
use std::path::Path;

/// The number of listed ranges.
const HOT_RANGES: usize = 10;

/// Returns the answer.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let [file] = &asked.operands[..] else {
        return Err("needs the name of one trace (- is standard input)".to_owned());
    };
    let path = Path::new(file);
    let words = |error: TraceError| error.to_string();
    let version = match asked.value("to-log") {
        None => None,
        Some("2") => Some(TextVersion::V2),
        Some(_) => Some(TextVersion::V3),
    };
    let wanted = [asked.has("json"), asked.has("to-job"), version.is_some()];
    if wanted.into_iter().filter(|&wanted| wanted).count() > 1 {
        return Err("--json, --to-job and --to-log exclude each other".to_owned());
    }
    let name =
        if is_standard_stream(path) { "standard input".to_owned() } else { path.display().to_string() };
    let source = input::open(program, path).map_err(|error| format!("{name}: {error}"))?;
    let reader = TraceReader::new(source, &name).map_err(words)?;
    if let Some(version) = version {
        return convert::to_standard_output(reader, version).map(|()| String::new());
    }
    let name = path.display().to_string();
    let summary = summarise(reader).map_err(words)?;
    if asked.has("json") {
        return Ok(json::summary(&name, &summary));
    }
    if asked.has("to-job") {
        return imitate::job_file(&name, &summary);
    }
    Ok(String::from_utf8_lossy(&harmless(text::summary(&name, &summary).as_bytes())).into_owned())
}

/// The percentiles of times.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// The name of a trace format.
fn format_name(summary: &Summary) -> &'static str {
    match summary.format {
        Format::Text(TextVersion::V2) => "text log, version 2",
        Format::Text(TextVersion::V3) => "text log, version 3",
        Format::Blktrace => "blktrace",
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
