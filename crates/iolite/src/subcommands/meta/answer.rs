//! The answer: a table for people, Markdown, JSON.

use super::page;
use super::perform::{Circumstances, Done, Outcome};
use super::rows::{COLUMNS, NO_SUBMISSION, cells, headline, limits, remarks};
use crate::messages::{complain, program};
use crate::output_file::Destination;
use crate::subcommands::kept_result;
use crate::subcommands::performer::NAME;
use iolite_procedures::meta::figures::Latency;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The format of a file, by the end of its name.
pub struct Format {
    path: PathBuf,
    make: fn(&Outcome) -> String,
}

/// A file that the result will be written to.
pub struct Opened {
    format: Format,
    destination: Destination,
}

impl Format {
    pub fn of(name: &str) -> Result<Format, String> {
        let path = PathBuf::from(name);
        let make: fn(&Outcome) -> String = match path.extension().and_then(|end| end.to_str()) {
            Some("json") => json,
            Some("md") => markdown,
            Some("html") => page::page,
            _ => {
                return Err(format!(
                    "--output={name}: the end of the name chooses the format, and this one does not: .json, .md or .html"
                ));
            }
        };
        Ok(Format { path, make })
    }

    /// Opens the file, before anything is measured.
    pub fn open(self) -> Result<Opened, String> {
        let destination = Destination::open(&self.path)
            .map_err(|error| format!("--output={}: {error}", self.path.display()))?;
        Ok(Opened { format: self, destination })
    }
}

impl Opened {
    /// Writes the result; returns whether that worked.
    pub fn write(mut self, program: &str, outcome: &Outcome) -> bool {
        let text = (self.format.make)(outcome);
        let written = self.destination.write(text.as_bytes(), |file, part| file.write_all(part));
        match written.and_then(|()| self.destination.complete()) {
            Ok(()) => true,
            Err(why) => {
                complain(program, &format_args!("meta: --output={}: {why}", self.format.path.display()));
                false
            }
        }
    }
}

/// The table for a terminal.
pub fn text(outcome: &Outcome) -> String {
    let rows: Vec<[String; 9]> =
        std::iter::once(COLUMNS.map(str::to_owned)).chain(outcome.done.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = format!("{}\n\n", headline(outcome));
    for row in rows.iter().filter(|_| !outcome.done.is_empty()) {
        let mut words = String::new();
        for (column, cell) in row.iter().enumerate() {
            match column {
                0 => write!(words, "{cell:<width$}", width = widths[column]),
                8 => write!(words, "   {cell}"),
                _ => write!(words, "   {cell:>width$}", width = widths[column]),
            }
            .expect("strings take everything");
        }
        line!(text, "{}", words.trim_end());
    }
    let remarks = remarks(outcome);
    if !remarks.is_empty() {
        line!(text, "\n{}", remarks.join("\n"));
    }
    text
}

/// A table for issue trackers.
fn markdown(outcome: &Outcome) -> String {
    let escaped = |text: &str| text.replace('|', "\\|");
    let mut text =
        format!("{}\n\n| {} |\n|{}\n", escaped(&headline(outcome)), COLUMNS.join(" | "), "---|".repeat(9));
    for done in &outcome.done {
        line!(text, "| {} |", cells(done).map(|cell| escaped(&cell)).join(" | "));
    }
    for remark in remarks(outcome) {
        line!(text, "\n{}", escaped(&remark));
    }
    let Circumstances { begun_ms, host, device, .. } = &outcome.circumstances;
    let mut told = vec![program(NAME).own_version, iolite_report::clock::local(*begun_ms)];
    let chosen = |facts: &[(String, String)], names: &[&str]| -> Vec<String> {
        facts
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(_, value)| value.clone())
            .collect()
    };
    told.extend(chosen(host, &["kernel", "cpu"]));
    told.extend(chosen(device, &["model", "firmware"]));
    line!(text, "\n{}", escaped(&told.join(", ")));
    text
}

/// The result in JSON.
fn json(outcome: &Outcome) -> String {
    let version = concat!("iolite-", env!("CARGO_PKG_VERSION"));
    let Circumstances { begun_ms, role, host, device } = &outcome.circumstances;
    let facts = |facts: &[(String, String)]| -> Map<String, Value> {
        facts.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect()
    };
    let mut whole = json!({
        "iolite version": version,
        "begun_ms": begun_ms,
        "time": iolite_report::clock::local(*begun_ms),
        "meta": result(outcome),
    });
    whole[*role] = facts(host).into();
    if !device.is_empty() {
        whole["device"] = facts(device).into();
    }
    format!("{whole:#}\n")
}

/// The result as a report, whose jobs are the phases.
pub fn report(outcome: &Outcome, begun_ms: u64) -> String {
    let jobs = outcome.done.iter().map(as_job).collect();
    let failure = outcome.failures.first().map(String::as_str);
    kept_result::report("meta", result(outcome), &text(outcome), begun_ms, jobs, failure).to_string()
}

fn as_job(done: &Done) -> Value {
    let figures = &done.figures;
    let Latency { mean, p50, p99, p999, max } = figures.latency;
    let milliseconds = (figures.seconds * 1e3).ceil() as u64;
    let direction = if done.phase.changes() { "write" } else { "read" };
    json!({
        "jobname": done.phase.name(),
        "job_runtime": milliseconds,
        direction: {
            "total_ios": done.entries.unwrap_or(figures.ops()),
            "io_bytes": figures.bytes(),
            "iops": done.rate(),
            "bw_bytes": figures.bandwidth(),
            "runtime": milliseconds,
            "clat_ns": {"mean": mean, "max": max, "N": figures.ops(),
                "percentile": {"50.000000": p50, "99.000000": p99, "99.900000": p999}},
        },
    })
}

fn result(outcome: &Outcome) -> Value {
    let setup = &outcome.setup;
    let phases: Vec<Value> = outcome.done.iter().map(of_phase).collect();
    let score = outcome.score.map(|score| {
        json!({
            "total": score.total,
            "bandwidth_gib_per_s": score.bandwidth,
            "metadata_kiops": score.metadata,
            "note": NO_SUBMISSION,
            "limits": limits(outcome),
        })
    });
    json!({
        "directory": outcome.target.display().to_string(),
        "file_system": outcome.file_system,
        "machines": setup.machines,
        "where": outcome.machines.words(),
        "tasks": setup.tasks,
        "files": setup.files,
        "size": setup.size,
        "shared": setup.is_shared,
        "depth": setup.depth,
        "breadth": setup.breadth,
        "shift": setup.shift,
        "time_s": setup.seconds,
        "verified": outcome.is_verified,
        "preset": if outcome.is_io500 { Some("io500") } else { None },
        "phases": phases,
        "score": score,
        "failures": outcome.failures,
    })
}

fn of_phase(done: &Done) -> Value {
    let figures = &done.figures;
    let workers = figures.workers.iter().map(|worker| {
        json!({"name": worker.name, "ops": worker.ops, "bytes": worker.bytes, "seconds": worker.seconds,
            "ops_per_second": worker.rate()})
    });
    json!({
        "name": done.phase.name(),
        "what": done.phase.about(),
        "ops": figures.ops(),
        "entries": done.entries,
        "bytes": figures.bytes(),
        "seconds": figures.seconds,
        "rate_per_second": done.rate(),
        "bw_bytes": figures.bandwidth(),
        "caught_up": done.had_to_catch_up,
        "stonewall": {
            "seconds": figures.stonewall.seconds,
            "ops": figures.stonewall.ops,
            "bytes": figures.stonewall.bytes,
            "ops_per_second": figures.stonewall.rate(),
        },
        "latency_ns": {
            "mean": figures.latency.mean,
            "p50": figures.latency.p50,
            "p99": figures.latency.p99,
            "p99.9": figures.latency.p999,
            "max": figures.latency.max,
        },
        "slowest": figures.slowest().map(|worker| &worker.name),
        "workers": workers.collect::<Vec<_>>(),
    })
}
