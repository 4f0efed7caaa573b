//! The page of a comparison: figures, changes and verdicts in tables, and the curves of the sides laid over each other.
//!
//! Tables need no script. The pictures are drawn by `assets/compare.js`.

mod curves;

pub use curves::Curves;

use crate::html::{frame, policy_of};
use crate::packed::packed;
use crate::text::{bandwidth, count, escaped, latency, percent, short, signed};
use iolite_compare::{Block, Comparison, Figure, Limit, Row, Side, Summary};
use std::fmt::Write;

const SCRIPT: &str =
    concat!("\"use strict\";\n", include_str!("../assets/draw.js"), include_str!("../assets/compare.js"));

/// The content policy of the page.
pub fn policy() -> String {
    policy_of(SCRIPT)
}

/// The page of a comparison. `above`: markup above the comparison, such as a link back.
pub fn of_comparison(
    above: &str,
    sides: &[Side],
    comparison: &Comparison,
    limits: &[Limit],
    curves: &Curves,
) -> String {
    let mut body = format!("{above}<ul>");
    for (position, side) in sides.iter().enumerate() {
        let role = if position == 0 { "base" } else { "new" };
        let told = if side.name == role { String::new() } else { format!("{}, ", short(&side.name)) };
        let runs = if side.runs.len() == 1 { "run" } else { "runs" };
        let names: Vec<String> = side.runs.iter().map(|run| short(&run.name)).collect();
        put!(body, "<li>{role}: {told}{} {runs}: {}</li>", side.runs.len(), names.join(", "));
    }
    body += "</ul>\n";
    add_limits(&mut body, comparison, limits);
    for block in &comparison.blocks {
        let of_side = (sides.len() > 2).then(|| short(&sides[block.new].name));
        add(&mut body, block, of_side.as_deref());
    }
    if comparison.tested > 0 {
        put!(
            body,
            "<p>Verdicts: {} figures, intervals of {} each, so that all hold together in 95 of 100 comparisons. Exploratory figures have \
             intervals of 95% each, and no verdict.</p>\n",
            comparison.tested,
            percent(comparison.confidence(true) * 100.0),
        );
    }
    body += "<p class=\"hint\">Means are geometric; behind ± is the coefficient of variation of the runs. cpu is CPU time per I/O, of all \
             directions.</p>\n";
    comparison.notes.iter().for_each(|note| put!(body, "<p>{}</p>\n", escaped(note)));
    let drawn = curves.drawn(sides, comparison);
    if drawn["parts"].as_array().is_some_and(|parts| !parts.is_empty()) {
        put!(
            body,
            "<h2>Curves</h2>\n<p class=\"hint\">Lines are medians of the runs of a side, and bands reach from the lowest run to the \
             highest.{}</p>\n<noscript><p class=\"notice\">Without scripts there are no pictures; the figures above are \
             complete.</p></noscript>\n<div id=\"pictures\"></div>\n",
            match sides.len() > curves::MOST_SIDES {
                true => format!(" Only the first {} sides are drawn.", curves::MOST_SIDES),
                false => String::new(),
            }
        );
    }
    frame("Comparison", SCRIPT, &body, &packed(&drawn))
}

/// The outcomes of limits, each with its intervals.
fn add_limits(body: &mut String, comparison: &Comparison, limits: &[Limit]) {
    if limits.is_empty() {
        return;
    }
    *body += "<h2>Limits</h2>\n<ul>\n";
    for (position, limit) in limits.iter().enumerate() {
        put!(body, "<li>{}: <strong>{}</strong><ul>", short(&limit.text), comparison.limits[position].word());
        let rows = comparison.blocks.iter().flat_map(|block| block.rows.iter().map(move |row| (block, row)));
        for (block, row) in rows {
            for (_, outcome) in row.limits.iter().filter(|(of, _)| *of == position) {
                let (job, direction, figure) = (short(&block.job), block.direction, row.figure.name());
                put!(body, "<li>{job}: {direction} {figure} {}: {}</li>", interval(row), outcome.word());
            }
        }
        *body += "</ul></li>\n";
    }
    *body += "</ul>\n";
}

fn interval(row: &Row) -> String {
    row.interval.map_or("–".to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high)))
}

fn add(body: &mut String, block: &Block, of_side: Option<&str>) {
    let new = of_side.map(|name| format!(", new = {name}")).unwrap_or_default();
    let title = format!("{}: {}{new}", short(&block.job), block.direction);
    put!(
        body,
        "<h2>{title}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table class=\"summary\"><thead><tr>\
         <th scope=\"col\" class=\"value\">figure</th><th scope=\"col\">base</th><th scope=\"col\">new</th><th scope=\"col\">change</th>\
         <th scope=\"col\" class=\"value\">verdict</th><th scope=\"col\">interval</th></tr></thead>\n<tbody>\n"
    );
    for row in &block.rows {
        let [base, new] = [row.base, row.new].map(|summary| shown(row.figure, summary));
        let change = row.change.map_or("–".to_owned(), signed);
        put!(
            body,
            "<tr><th class=\"value\" scope=\"row\">{}</th><td>{base}</td><td>{new}</td><td>{change}</td><td class=\"value\">{}</td>\
             <td>{}</td></tr>\n",
            row.figure.name(),
            row.verdict.words(),
            interval(row),
        );
    }
    *body += "</tbody></table></div>\n";
    let mut told: Vec<String> = block.obstacles.iter().map(|why| format!("Not comparable: {why}")).collect();
    told.extend(block.rows.iter().filter_map(|row| row.why.as_ref()).map(|why| format!("No verdict: {why}")));
    told.extend(block.notes.iter().cloned());
    told.dedup();
    told.iter().for_each(|words| put!(body, "<p>{}</p>\n", escaped(words)));
}

/// A figure, and the spread of the runs, as markup.
fn shown(figure: Figure, summary: Option<Summary>) -> String {
    let Some(summary) = summary else { return "–".to_owned() };
    let value = match figure {
        Figure::Iops => count(summary.mean),
        Figure::Bandwidth => bandwidth(summary.mean),
        _ => latency(summary.mean),
    };
    match summary.variation {
        Some(variation) => {
            let variation = percent((variation * 1000.0).round() / 10.0);
            format!("{value} <span class=\"spread\">±{variation}</span>")
        }
        None => value,
    }
}
