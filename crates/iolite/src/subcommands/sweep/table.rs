//! The result of a sweep as text.

use super::joined;
use super::outcome::{Curve, Measured, Outcome};
use iolite_page::text;
use iolite_sweep::StageModel;
use serde_json::Value;
use std::fmt::Write;

const FIGURES: [&str; 7] = ["IOPS", "bandwidth", "mean", "p50", "p99", "CPU", "in flight"];
/// The most characters of a value that are shown.
const VALUE: usize = 40;
/// The most characters of a point's name, and of a warning.
const NAME: usize = 80;
const SENTENCE: usize = 500;
/// The most points that are named with a warning.
const MOST_NAMES: usize = 4;

/// The table, the knees, and the warnings.
pub fn text(outcome: &Outcome<'_>) -> String {
    let mut out = format!("{}: {}\n\n", outcome.sweep.name, outcome.about);
    let shared = outcome.sweep.shared();
    if !shared.is_empty() {
        line!(out, "All points: {}\n", joined(&shared));
    }
    let shown = |value: Option<f64>, words: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), words);
    let names = outcome.sweep.runs.first().into_iter().flat_map(|run| outcome.sweep.varied(run));
    let mut rows =
        vec![names.map(|(name, _)| name.clone()).chain(FIGURES.map(str::to_owned)).collect::<Vec<_>>()];
    for (run, point) in outcome.sweep.runs.iter().zip(outcome.points) {
        let mut row: Vec<String> =
            outcome.sweep.varied(run).map(|(_, value)| value.chars().take(VALUE).collect()).collect();
        match point {
            Ok(Measured { figures, .. }) => row.extend([
                text::count(figures.iops),
                text::bandwidth(figures.bandwidth),
                shown(figures.latency_ns, text::latency),
                shown(figures.p50_ns, text::latency),
                shown(figures.p99_ns, text::latency),
                text::percent(figures.cpu_percent),
                shown(figures.in_flight, text::count),
            ]),
            Err(_) => row.push("failed".to_owned()),
        }
        rows.push(row);
    }
    add_rows(&mut out, &rows, rows[0].len() - FIGURES.len());
    for curve in &outcome.curves {
        let between = if curve.others.is_empty() { "" } else { ": " };
        line!(out, "\n{}{between}{}", joined(&curve.others), curve.words(outcome));
        add_stages(&mut out, curve, outcome);
    }
    add_relative(&mut out, &outcome.value["relative"]);
    add_warnings(&mut out, outcome);
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

/// The stages of a curve's points, and the rate that follows from them.
fn add_stages(out: &mut String, curve: &Curve, outcome: &Outcome<'_>) {
    let Some(model) = &curve.stages else { return };
    let heads = ["depth", "submit", "queue", "device", "reap", "move", "IOPS", "by the stages"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for (position, follows) in curve.points.iter().zip(&model.points) {
        let Ok(Measured { depth, figures, .. }) = &outcome.points[*position] else { continue };
        let Some(stages) = figures.stages else { continue };
        let mut row = vec![text::count(*depth)];
        row.extend([stages.submit, stages.queue, stages.device, stages.reap].map(text::latency));
        let moved = follows.move_ns.filter(|time| *time >= 0.0);
        row.push(moved.map_or_else(|| "-".to_owned(), text::latency));
        row.extend([text::count(figures.iops), text::count(follows.iops)]);
        rows.push(row);
    }
    line!(out, "\nWhere the time went (means):");
    add_rows(out, &rows, 0);
    if model.fit < StageModel::LEAST_FIT {
        line!(out, "The stages at depth 1 do not explain the rates at other depths (R² {:.3}).", model.fit);
        return;
    }
    let [issue, delay, moved] = [model.issue_ns, model.delay_ns, model.move_ns].map(text::latency);
    line!(
        out,
        "By the stages, n I/Os take n × {issue} (submit and queue) + {delay} (device and reap at depth 1) + \
         n(n-1)/2 × {moved} (move); R² {:.3}",
        model.fit
    );
}

/// Each warning once, with the points that had it.
fn add_warnings(out: &mut String, outcome: &Outcome<'_>) {
    if !outcome.warnings.is_empty() {
        out.push_str("\nWarnings\n");
    }
    for (words, points) in &outcome.warnings {
        let name = names(outcome, points);
        line!(out, "  {name}: {}", text::one_line(without_name(words, &name), SENTENCE));
    }
}

/// A message behind the name of its point, which may begin it already: `iodepth=4: it has no effect`.
pub(super) fn without_name<'a>(words: &'a str, name: &str) -> &'a str {
    words.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(words)
}

/// The names of points, as far as there is room.
fn names(outcome: &Outcome<'_>, points: &[usize]) -> String {
    if points.len() == outcome.points.len() && points.len() > 1 {
        return format!("all {} points", points.len());
    }
    let name =
        |position: &usize| text::one_line(&outcome.sweep.name_of(&outcome.sweep.runs[*position]), NAME);
    let named: Vec<String> = points.iter().take(MOST_NAMES).map(name).collect();
    let more = points.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// Adds rows with columns as wide as necessary. The first `names` columns are names, the others are figures.
fn add_rows(out: &mut String, rows: &[Vec<String>], names: usize) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let are_words = |column: usize| {
        column < names && cells(column).skip(1).any(|cell| !cell.starts_with(|c: char| c.is_ascii_digit()))
    };
    let layout: Vec<(usize, bool)> = (0..columns).map(|column| (width(column), are_words(column))).collect();
    for row in rows {
        let aligned = row.iter().zip(&layout).map(|(cell, (width, are_words))| match are_words {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        line!(out, "{}", aligned.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn add_relative(out: &mut String, relative: &Value) {
    let texts = |list: &Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| text.chars().take(VALUE).collect()).collect()
    };
    let columns = texts(&relative["columns"]);
    if columns.is_empty() {
        return;
    }
    let mut rows = vec![std::iter::once(String::new()).chain(columns).collect::<Vec<_>>()];
    for row in relative["rows"].as_array().into_iter().flatten() {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        rows.push(std::iter::once(name).chain(texts(&row["words"])).collect());
    }
    out.push('\n');
    add_rows(out, &rows, 1);
    line!(out, "In brackets: relative to the first.");
}
