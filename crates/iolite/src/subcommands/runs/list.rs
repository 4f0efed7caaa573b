//! Shows runs as text and as JSON.

use crate::subcommands::report;
use crate::subcommands::runs::filter::UNKNOWN;
use crate::subcommands::stored_run::Opened;
use crate::terminal;
use iolite_options::ColorWhen;
use iolite_options::commands::Asked;
use iolite_page::text;
use iolite_report::clock;
use iolite_store::Run;
use iolite_summary::screen::Terminal;
use iolite_types::RunStatus;
use serde_json::json;
use std::fmt::Write;

/// The most characters of a name that are shown.
const NAME: usize = 40;

/// A line for each run.
pub fn table(runs: &[&Run]) -> String {
    let mut out = String::new();
    let mut rows =
        vec![["run", "began", "status", "IOPS", "bandwidth", "label", "host", "jobs"].map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        [
            run.number.to_string(),
            clock::minute(run.began_ms),
            run.status.map_or(UNKNOWN, RunStatus::name).to_owned(),
            // (The parts of a test follow each other; their sum means nothing.)
            run.test().map_or_else(|| text::count(run.iops), |_| "-".to_owned()),
            run.test().map_or_else(|| text::bandwidth(run.bandwidth), |_| "-".to_owned()),
            short(&run.label),
            short(&run.host),
            jobs(run),
        ]
    }));
    let widths: Vec<usize> =
        (0..8).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    for row in rows {
        let mut text = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers are right-aligned.
            let cell = if matches!(column, 0 | 3 | 4) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            };
            text += if column == 0 { "" } else { "  " };
            text += &cell;
        }
        line!(out, "{}", text.trim_end());
    }
    shown(&out)
}

fn jobs(run: &Run) -> String {
    let names: Vec<String> = run.jobs.iter().take(3).map(|name| short(name)).collect();
    let more = run.jobs.len().saturating_sub(3);
    let test = run.test().map(|test| format!("{test}: ")).unwrap_or_default();
    test + &names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn short(name: &str) -> String {
    iolite_page::text::one_line(name, NAME)
}

/// Replaces control characters, which would act on the terminal.
fn shown(text: &str) -> String {
    String::from_utf8_lossy(&crate::console::harmless(text.as_bytes())).into_owned()
}

/// The stored facts about each run, without its report.
pub fn json(runs: &[&Run]) -> String {
    let entries: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "run": run.number, "label": run.label, "status": run.status.map(RunStatus::name), "began_ms": run.began_ms, "kept_ms": run.kept_ms,
                "host": run.host, "program": run.program, "test": run.test(), "jobs": run.jobs, "iops": run.iops, "bw_bytes": run.bandwidth,
                "stored_bytes": run.size,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "runs": entries }))
}

/// Shows a run: as text, as JSON, or as a page in a file.
pub fn show(asked: &Asked, words: &[String]) -> Result<String, String> {
    let [word] = words else { return Err("show needs one run: runs show 12".to_owned()) };
    let opened = Opened::of(asked)?;
    // The newest if several have the label.
    let Some(run) = opened.named(word)?.into_iter().next_back() else { return Ok(String::new()) };
    let name = format!("run:{}", run.number);
    let report = opened.report(run)?;
    let page = || iolite_page::of_text(&report).map_err(|error| error.of(&name));
    let answer = match asked.value("output-format") {
        None if asked.has("output") => page()?,
        None | Some("table") => words_of(run, &report).map_err(|error| error.of(&name))?,
        Some("json") => report,
        Some(format @ ("md" | "csv")) => {
            let value = iolite_stored::last_report(&report);
            value
                .and_then(|value| report::in_short(&value, format, plain()))
                .map_err(|error| error.of(&name))?
        }
        Some(_) => page()?,
    };
    report::deliver(asked, answer, std::iter::empty())
}

/// What `shown` leaves as it is.
fn plain() -> Terminal {
    terminal::of_output(ColorWhen::Never, false)
}

fn words_of(run: &Run, report: &str) -> Result<String, iolite_stored::NoReport> {
    let report = iolite_stored::last_report(report)?;
    let mut out = String::new();
    line!(
        out,
        "run {}{}",
        run.number,
        if run.label.is_empty() { String::new() } else { format!(": {}", short(&run.label)) }
    );
    line!(out, "began {}, kept {}", clock::minute(run.began_ms), clock::minute(run.kept_ms));
    line!(
        out,
        "by {}{}",
        run.program,
        if run.host.is_empty() { String::new() } else { format!(" on {}", run.host) }
    );
    match iolite_stored::end(&report) {
        Some(end) => line!(out, "{}", end.in_words()),
        None => line!(out, "how it ended is {UNKNOWN}"),
    }
    for target in report["iolite"]["targets"].as_array().into_iter().flatten() {
        let facts: Vec<String> =
            iolite_stored::pairs(target).iter().map(|(name, value)| format!("{name} {value}")).collect();
        line!(out, "{}", facts.join(", "));
    }
    out.push('\n');
    let test = iolite_stored::test_of(&report);
    let said = test.and_then(|test| report["iolite"][test]["answer"].as_str());
    said.iter().for_each(|said| line!(out, "{said}"));
    // The jobs of these are the lines of the answer.
    if !matches!(test, Some("meta" | "pts")) {
        out += &report::in_short(&report, "summary", plain())?;
    }
    Ok(shown(&out))
}
