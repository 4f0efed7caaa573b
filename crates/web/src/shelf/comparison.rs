//! A comparison as a page: the tables of `iolite compare`.

use super::{Library, put};
use iolite_compare::{Block, Figure, Run, Side, Summary};
use iolite_page::text::{bandwidth, count, escaped, latency, percent, short, signed};
use std::fmt::Write;

/// The page of results against each other, without its frame.
pub fn page(library: &impl Library, base: &[String], new: &[String]) -> Result<String, String> {
    let sides = [side("base", library, base)?, side("new", library, new)?];
    let comparison = iolite_compare::compare(&sides, &[], &[])?;
    let mut body = String::from("<p><a href=\"./\">All results</a></p>\n<ul>");
    for (side, keys) in sides.iter().zip([base, new]) {
        let names: Vec<String> = keys.iter().map(|key| short(key)).collect();
        let runs = if keys.len() == 1 { "run" } else { "runs" };
        put!(body, "<li>{}: {} {runs}: {}</li>", side.name, keys.len(), names.join(", "));
    }
    body += "</ul>\n";
    comparison.blocks.iter().for_each(|block| add(&mut body, block));
    if comparison.tested > 0 {
        put!(
            body,
            "<p>Verdicts: {} figures, intervals of {} each, so that all hold together in 95 of 100 comparisons. Exploratory figures have \
             intervals of 95% each, and no verdict.</p>\n",
            comparison.tested,
            percent(comparison.confidence(true) * 100.0),
        );
    }
    comparison.notes.iter().for_each(|note| put!(body, "<p>{}</p>\n", escaped(note)));
    Ok(body)
}

fn side(name: &str, library: &impl Library, keys: &[String]) -> Result<Side, String> {
    let mut runs: Vec<Run> = Vec::new();
    for key in keys {
        let run = Run::of(key, &library.report(key)?).map_err(|error| error.of(key))?;
        if let Some(other) = runs.iter().find(|other| other.is_same_run(&run)) {
            return Err(format!(
                "{} and {key} are results of the same run, and no repeats; leave one out.",
                other.name
            ));
        }
        runs.push(run);
    }
    Ok(Side { name: name.to_owned(), runs })
}

fn add(body: &mut String, block: &Block) {
    let title = format!("{}: {}", short(&block.job), block.direction);
    put!(
        body,
        "<h2>{title}</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table class=\"summary\"><thead><tr>\
         <th scope=\"col\" class=\"name\">figure</th><th scope=\"col\">base</th><th scope=\"col\">new</th><th scope=\"col\">change</th>\
         <th scope=\"col\">interval</th><th scope=\"col\" class=\"name\">verdict</th></tr></thead>\n<tbody>\n"
    );
    for row in &block.rows {
        let [base, new] = [row.base, row.new].map(|summary| shown(row.figure, summary));
        let change = row.change.map_or("–".to_owned(), signed);
        let interval = row
            .interval
            .map_or("–".to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high)));
        put!(
            body,
            "<tr><th class=\"name\" scope=\"row\">{}</th><td>{base}</td><td>{new}</td><td>{change}</td><td>{interval}</td>\
             <td class=\"name\">{}</td></tr>\n",
            row.figure.name(),
            row.verdict.words(),
        );
    }
    *body += "</tbody></table></div>\n";
    let mut told: Vec<String> = block.obstacles.iter().map(|why| format!("Not comparable: {why}")).collect();
    told.extend(block.rows.iter().filter_map(|row| row.why.as_ref()).map(|why| format!("No verdict: {why}")));
    told.extend(block.notes.iter().cloned());
    told.dedup();
    told.iter().for_each(|words| put!(body, "<p>{}</p>\n", escaped(words)));
}

/// A figure, and by how much the runs differ.
fn shown(figure: Figure, summary: Option<Summary>) -> String {
    let Some(summary) = summary else { return "–".to_owned() };
    let value = match figure {
        Figure::Iops => count(summary.mean),
        Figure::Bandwidth => bandwidth(summary.mean),
        _ => latency(summary.mean),
    };
    match summary.variation {
        Some(variation) => format!("{value} ±{}", percent((variation * 1000.0).round() / 10.0)),
        None => value,
    }
}
