//! How much the repeats of one job file differ.

use iolite_compare::{Figure, SPREAD_CONFIDENCE, Side, SpreadBlock, SpreadRow, spread};
use iolite_page::text;
use serde_json::{Value, json};

/// A ratio in percent; further digits are meaningless.
fn percent(parts: f64) -> f64 {
    (parts * 1e8).round() / 1e6
}

/// For people. `about`: when and where they were made.
pub fn text(side: &Side, about: &str) -> String {
    let count = side.runs.len();
    let mut out = format!("{}: {count} run{}, {about}\n", side.name, if count == 1 { "" } else { "s" });
    for block in spread(side) {
        add_block(&mut out, &block);
    }
    let confidence = text::percent(SPREAD_CONFIDENCE * 100.0);
    out += &match count {
        1 => "\nOne run cannot show how runs differ; --repeat=5 makes five.\n".to_owned(),
        _ => format!(
            "\nThe mean is the geometric one, its interval of {confidence} is for each figure alone, and CV is the coefficient of \
             variation of the runs.\n"
        ),
    };
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

fn add_block(out: &mut String, block: &SpreadBlock) {
    let title = format!("{}: {}", text::short(&block.job), block.direction);
    *out += &format!(
        "\n{title:<24} {:>12}  {:>26}  {:>7} {:>12} {:>12}\n",
        "mean", "interval", "CV", "lowest", "highest"
    );
    for row in &block.rows {
        let shown = |value: f64| shown(row.figure, value);
        let interval =
            row.interval.map_or("-".to_owned(), |(low, high)| format!("{} to {}", shown(low), shown(high)));
        let variation = row
            .summary
            .variation
            .map_or("-".to_owned(), |variation| text::percent((variation * 1000.0).round() / 10.0));
        let (name, mean) = (row.figure.name(), shown(row.summary.mean));
        *out += &format!(
            "  {name:<22} {mean:>12}  {interval:>26}  {variation:>7} {:>12} {:>12}\n",
            shown(row.lowest),
            shown(row.highest)
        );
    }
    for note in &block.notes {
        *out += &format!("  {note}\n");
    }
}

fn shown(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Iops => text::count(value),
        Figure::Bandwidth => text::bandwidth(value),
        _ => text::latency(value),
    }
}

/// For programs.
pub fn json(side: &Side, about: &str) -> String {
    let runs = side.runs.iter().map(|run| json!({ "result": run.name, "program": run.program }));
    let jobs = spread(side)
        .iter()
        .map(|block| {
            json!({
                "job": block.job,
                "direction": block.direction,
                "notes": block.notes,
                "figures": block.rows.iter().map(figure).collect::<Vec<_>>(),
            })
        })
        .collect::<Vec<_>>();
    let value = json!({
        "iolite repeat": 1,
        "name": side.name,
        "about": about,
        "runs": runs.collect::<Vec<_>>(),
        "confidence_percent": percent(SPREAD_CONFIDENCE),
        "jobs": jobs,
    });
    format!("{value:#}\n")
}

fn figure(row: &SpreadRow) -> Value {
    json!({
        "figure": row.figure.name(),
        "unit": row.figure.unit(),
        "runs": row.summary.runs,
        "mean": row.summary.mean,
        "interval": row.interval.map(|(low, high)| [low, high]),
        "variation_percent": row.summary.variation.map(percent),
        "lowest": row.lowest,
        "highest": row.highest,
    })
}
