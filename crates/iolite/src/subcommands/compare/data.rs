//! A comparison for programs.

use super::Answer;
use iolite_compare::{Block, Row, Summary};
use iolite_summary::csv::field;
use serde_json::{Value, json};
use std::fmt::Write;

/// A ratio in percent; further digits are meaningless.
fn percent(parts: f64) -> f64 {
    (parts * 1e8).round() / 1e6
}

pub fn json(answer: &Answer) -> String {
    let comparison = &answer.comparison;
    let sides = answer.sides.iter().map(|side| {
        let runs = side.runs.iter().map(|run| json!({"result": run.name, "program": run.program}));
        json!({"name": side.name, "runs": runs.collect::<Vec<_>>()})
    });
    let blocks = comparison.blocks.iter().map(|block| {
        json!({
            "job": block.job,
            "direction": block.direction,
            "base": answer.sides[0].name,
            "new": answer.sides[block.new].name,
            "not_comparable": block.obstacles,
            "notes": block.notes,
            "figures": block.rows.iter().map(|row| figure(answer, row)).collect::<Vec<_>>(),
        })
    });
    let limits = answer.limits.iter().zip(&comparison.limits);
    let limits = limits.map(|(limit, outcome)| json!({"limit": limit.text, "outcome": outcome.word()}));
    let value = json!({
        "iolite compare": 1,
        "sides": sides.collect::<Vec<_>>(),
        "verdict_figures": comparison.tested,
        "comparisons": blocks.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
        "notes": comparison.notes,
    });
    format!("{value:#}\n")
}

fn figure(answer: &Answer, row: &Row) -> Value {
    let side = |summary: Option<Summary>| {
        summary.map(|summary| {
            json!({"runs": summary.runs, "mean": summary.mean, "variation_percent": summary.variation.map(percent)})
        })
    };
    let limits = row.limits.iter().map(
        |(position, outcome)| json!({"limit": answer.limits[*position].text, "outcome": outcome.word()}),
    );
    json!({
        "figure": row.figure.name(),
        "unit": row.figure.unit(),
        "base": side(row.base),
        "new": side(row.new),
        "change_percent": row.change.map(percent),
        "interval_percent": row.interval.map(|(low, high)| [percent(low), percent(high)]),
        "confidence_percent": row.interval.map(|_| percent(answer.comparison.confidence(row.is_primary))),
        "verdict": row.verdict.words(),
        "why": row.why,
        "limits": limits.collect::<Vec<_>>(),
    })
}

const COLUMNS: &str = "base,new,job,direction,figure,unit,base_runs,base_mean,base_variation_percent,new_runs,new_mean,\
                       new_variation_percent,change_percent,low_percent,high_percent,confidence_percent,verdict,why,limits";

pub fn csv(answer: &Answer) -> String {
    let mut out = format!("{COLUMNS}\n");
    for block in &answer.comparison.blocks {
        for row in &block.rows {
            line!(out, "{}", fields(answer, block, row).join(","));
        }
    }
    out
}

fn fields(answer: &Answer, block: &Block, row: &Row) -> Vec<String> {
    let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let side = |summary: Option<Summary>| {
        let runs = summary.map_or(0, |summary| summary.runs).to_string();
        let variation = summary.and_then(|summary| summary.variation);
        [runs, number(summary.map(|summary| summary.mean)), number(variation.map(percent))]
    };
    let why: Vec<String> = block.obstacles.iter().chain(&row.why).cloned().collect();
    let confidence = row.interval.map(|_| percent(answer.comparison.confidence(row.is_primary)));
    let limits = row
        .limits
        .iter()
        .map(|(position, outcome)| format!("{}: {}", answer.limits[*position].text, outcome.word()));
    let names = [&answer.sides[0].name, &answer.sides[block.new].name, &block.job].map(|name| field(name));
    let mut fields = names.to_vec();
    fields.extend([block.direction, row.figure.name(), row.figure.unit()].map(str::to_owned));
    fields.extend(side(row.base).into_iter().chain(side(row.new)));
    fields.push(number(row.change.map(percent)));
    fields.push(number(row.interval.map(|(low, _)| percent(low))));
    fields.push(number(row.interval.map(|(_, high)| percent(high))));
    fields.push(number(confidence));
    fields.push(row.verdict.words().to_owned());
    fields.push(field(&why.join("; ")));
    fields.push(field(&limits.collect::<Vec<_>>().join("; ")));
    fields
}
