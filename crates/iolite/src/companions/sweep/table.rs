//! A sweep for people.

use super::outcome::{Measured, Outcome};
use iolite_page::text;
use serde_json::Value;
use std::fmt::Write;

/// Characters of a value that are shown.
const VALUE: usize = 40;

/// The table, the knees, and the warnings.
pub fn text(outcome: &Outcome<'_>) -> String {
    let mut out = String::new();
    let shown = |value: Option<f64>, words: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), words);
    let names = outcome.sweep.runs.first().map_or(&[][..], |run| &run.values);
    let figures = ["IOPS", "bandwidth", "mean", "p50", "p99", "CPU", "in flight"];
    let mut rows = vec![
        names.iter().map(|(name, _)| name.clone()).chain(figures.map(str::to_owned)).collect::<Vec<_>>(),
    ];
    for (run, point) in outcome.sweep.runs.iter().zip(outcome.points) {
        let mut row: Vec<String> =
            run.values.iter().map(|(_, value)| value.chars().take(VALUE).collect()).collect();
        match point {
            Some(Measured { figures, .. }) => row.extend([
                text::count(figures.iops),
                text::bandwidth(figures.bandwidth),
                shown(figures.latency_ns, text::latency),
                shown(figures.p50_ns, text::latency),
                shown(figures.p99_ns, text::latency),
                text::percent(figures.cpu_percent),
                shown(figures.in_flight, text::count),
            ]),
            None => row.push("failed".to_owned()),
        }
        rows.push(row);
    }
    add_rows(&mut out, &rows);
    for curve in &outcome.curves {
        let others: Vec<String> =
            curve.others.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let between = if others.is_empty() { "" } else { ": " };
        line!(out, "\n{}{between}{}", others.join(" "), curve.words(outcome));
    }
    add_relative(&mut out, &outcome.value["relative"]);
    let warned = outcome.sweep.runs.iter().zip(outcome.points);
    let warned: Vec<String> = warned
        .flat_map(|(run, point)| {
            let warnings = point.as_ref().map_or(&[][..], |point| &point.warnings);
            warnings.iter().map(|words| format!("{}: {words}", run.words()))
        })
        .collect();
    if !warned.is_empty() {
        out.push('\n');
        warned.iter().for_each(|words| line!(out, "{words}"));
    }
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

/// Columns as wide as they need to be.
fn add_rows(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        line!(out, "{}", cells.join("  "));
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
    add_rows(out, &rows);
}
