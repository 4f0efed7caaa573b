//! A result as Markdown, for issue trackers and chats: what was measured, where, and with which options.

use crate::{Outcome, Row, cut_short, data_units, error, harmless, sparkline, with_hosts};
use iolite_findings::numbers::{DataUnits, bytes, count, latency};
use iolite_options::registry;
use iolite_stored::NoReport;
use serde_json::Value;

/// The columns of rates over time: a table in an issue is narrow.
const PICTURE: usize = 20;
/// The most jobs in the table.
const MOST_LISTED: usize = 200;

/// A report as Markdown. Secrets are placeholders.
///
/// # Errors
/// It is not a report.
pub fn of(report: &Value) -> Result<String, NoReport> {
    let report = &*with_hosts(report);
    let outcome = Outcome::of(report)?;
    let mut text = String::new();
    line!(text, "| job | direction | IOPS | bandwidth | p50 | p99 | p99.9 | max | errors | IOPS over time |");
    line!(text, "|---|---|--:|--:|--:|--:|--:|--:|--:|---|");
    // As with fio, the first job decides about the units of sums.
    let units = outcome.jobs.first().map(|job| data_units(job, &outcome)).unwrap_or_default();
    for (name, rows) in &outcome.sums {
        rows.iter().for_each(|row| of_row(&mut text, &format!("**{}**", escaped(name)), row, "", units));
    }
    for job in outcome.jobs.iter().take(MOST_LISTED) {
        let (name, errors) = (escaped(job.name), job.errors().to_string());
        job.rows
            .iter()
            .chain(&job.syncs)
            .for_each(|row| of_row(&mut text, &name, row, &errors, data_units(job, &outcome)));
        if job.rows.is_empty() {
            line!(text, "| {name} | – | no I/O | – | – | – | – | – | {errors} | |");
        }
    }
    text.push('\n');
    stages(&mut text, &outcome);
    if let Some(more) = outcome.jobs.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        line!(text, "- and {more} more jobs");
    }
    if outcome.jobs.iter().flat_map(|job| &job.rows).any(|row| row.is_total) {
        line!(text, "- \\* total latencies: those of completion have no percentiles");
    }
    for job in outcome.jobs.iter().take(MOST_LISTED) {
        let told =
            job.searched.iter().map(|words| escaped(words)).chain(error(job).map(|words| escaped(&words)));
        told.for_each(|words| line!(text, "- {}: {words}", escaped(job.name)));
    }
    cut_short(&outcome).iter().for_each(|words| line!(text, "- **{}**", escaped(words)));
    outcome.warnings.iter().for_each(|words| line!(text, "- warning: {}", escaped(words)));
    let time = outcome.time.map_or_else(String::new, |time| format!(", {}", escaped(time)));
    line!(text, "- {}{time}", escaped(&outcome.program));
    for facts in std::iter::once(&outcome.host).chain(&outcome.targets).filter(|facts| !facts.is_empty()) {
        let words: Vec<String> = facts.iter().filter_map(|(name, value)| fact(name, value)).collect();
        line!(text, "- {}", words.join(", "));
    }
    options(&mut text, &outcome);
    Ok(text)
}

/// Where the time went.
fn stages(text: &mut String, outcome: &Outcome<'_>) {
    let rows =
        outcome.jobs.iter().take(MOST_LISTED).flat_map(|job| job.rows.iter().map(move |row| (job, row)));
    let mut rows = rows.filter_map(|(job, row)| Some((job, row, row.stages.as_ref()?))).peekable();
    if rows.peek().is_none() {
        return;
    }
    line!(text, "| job | direction | stage | mean | p50 | p99 | p99.9 | of the slowest 0.1% |");
    line!(text, "|---|---|---|--:|--:|--:|--:|--:|");
    for (job, row, stages) in rows.filter(|(.., stages)| stages.ios > 0.0) {
        for (number, (name, figures)) in stages.names.iter().zip(&stages.each).enumerate() {
            let [p50, p99, p999] = figures.percentiles.map(latency);
            let share = stages.shares.get(number);
            let share = share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
            let (job, name, mean) = (escaped(job.name), escaped(name), latency(figures.mean));
            line!(text, "| {job} | {} | {name} | {mean} | {p50} | {p99} | {p999} | {share} |", row.direction);
        }
    }
    text.push('\n');
}

/// A fact for people; `None` = it says which device it is, which strangers need not know.
fn fact(name: &str, value: &str) -> Option<String> {
    if ["serial", "eui", "nguid", "wwid"].contains(&name) {
        return None;
    }
    let (name, value) = match (name.strip_suffix("_bytes"), value.parse::<f64>()) {
        (Some(name), Ok(size)) => (name, bytes(size)),
        _ => (name, value.to_owned()),
    };
    Some(format!("{} {}", escaped(&name.replace('_', " ")), escaped(&value)))
}

/// The jobs as a job file.
fn options(text: &mut String, outcome: &Outcome<'_>) {
    let mut file = String::new();
    let mut section = |name: &str, options: &[(&str, String)]| {
        line!(file, "[{}]", harmless(name));
        for (name, value) in options.iter().filter(|(name, _)| *name != "name") {
            match value.is_empty() {
                true => line!(file, "{}", harmless(name)),
                false => line!(file, "{}={}", harmless(name), harmless(&registry::shown(name, value))),
            }
        }
    };
    if !outcome.options.is_empty() {
        section("global", &outcome.options);
    }
    let mut before = None;
    for job in outcome.jobs.iter().take(MOST_LISTED) {
        // Clones of a job have the same options.
        let same = Some((job.name, &job.options));
        if before != same {
            section(job.name, &job.options);
        }
        before = same;
    }
    if !file.is_empty() {
        line!(text, "\n```ini\n{}\n```", file.trim_end().replace("```", "'''"));
    }
}

fn of_row(text: &mut String, name: &str, row: &Row, errors: &str, units: DataUnits) {
    let mark = if row.is_total { "\\*" } else { "" };
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ns| latency(ns) + mark);
    let [p50, p99, p999] = row.percentiles.map(time);
    let moved = if row.direction == "sync" { "–".to_owned() } else { units.rate(row.bandwidth) };
    let max = row.max.map_or_else(|| "–".to_owned(), latency);
    let picture = sparkline::of(&row.rates, PICTURE, false);
    let words = row.steadiness.map_or_else(String::new, |steadiness| steadiness.in_short());
    line!(
        text,
        "| {name} | {} | {} | {moved} | {p50} | {p99} | {p999} | {max} | {errors} | {} |",
        row.direction,
        count(row.iops),
        [picture, words].join(" ").trim()
    );
}

/// A text without markup: on one line, and no sign of it begins a cell, emphasis, code, a link or a mention.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in harmless(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            // A mention would send mail to a stranger.
            '@' => out.push_str("@\u{200b}"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' | '#' | '!' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}
