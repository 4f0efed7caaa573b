//! A comparison for people.

use super::Answer;
use iolite_compare::{Block, Figure, Row, Summary};
use iolite_page::text::{self, signed};
use std::fmt::Write;

/// The most characters that are shown of a name, and of a sentence.
const NAME: usize = 60;
const SENTENCE: usize = 300;

pub fn text(answer: &Answer) -> String {
    let mut out = String::new();
    for (position, side) in answer.sides.iter().enumerate() {
        let word = if position == 0 { "BASE" } else { "NEW" };
        let runs =
            if side.runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", side.runs.len()) };
        line!(out, "{word:<5} {}: {runs}", short(&side.name));
    }
    let mut last = 0;
    for block in &answer.comparison.blocks {
        if answer.sides.len() > 2 && block.new != last {
            line!(out, "\nNEW = {}", short(&answer.sides[block.new].name));
            last = block.new;
        }
        add_block(&mut out, block);
    }
    add_limits(&mut out, answer);
    out.push('\n');
    if answer.comparison.tested > 0 {
        let confidence = text::percent(answer.comparison.confidence(true) * 100.0);
        let figures = answer.comparison.tested;
        line!(
            out,
            "Verdicts: {figures} figures, intervals of {confidence} each, so that all hold together in 95 of 100 \
             comparisons.\nExploratory figures have intervals of 95% each, and no verdict."
        );
    }
    line!(
        out,
        "Means are geometric; behind ± is the coefficient of variation of the runs. cpu is CPU time per I/O."
    );
    for note in &answer.comparison.notes {
        line!(out, "{note}");
    }
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

fn add_block(out: &mut String, block: &Block) {
    let title = format!("{}: {}", short(&block.job), block.direction);
    line!(out, "\n{title:<24} {:>18} {:>18}  {:>8}  {:<20}  verdict", "BASE", "NEW", "change", "interval");
    for row in &block.rows {
        let [base, new] = [row.base, row.new].map(|summary| shown(row.figure, summary));
        let change = row.change.map_or("-".to_owned(), signed);
        let interval =
            row.interval.map_or("-".to_owned(), |(low, high)| format!("{} to {}", signed(low), signed(high)));
        let name = row.figure.name();
        let verdict = row.verdict.words();
        line!(out, "  {name:<22} {base:>18} {new:>18}  {change:>8}  {interval:<20}  {verdict}");
    }
    for obstacle in &block.obstacles {
        line!(out, "  not comparable: {}", text::one_line(obstacle, SENTENCE));
    }
    let mut whys: Vec<&String> = block.rows.iter().filter_map(|row| row.why.as_ref()).collect();
    whys.dedup();
    for why in whys {
        line!(out, "  no verdict: {why}");
    }
    for note in &block.notes {
        line!(out, "  note: {}", text::one_line(note, SENTENCE));
    }
}

fn add_limits(out: &mut String, answer: &Answer) {
    if !answer.limits.is_empty() {
        line!(out, "\nLimits");
    }
    for (position, limit) in answer.limits.iter().enumerate() {
        line!(out, "  {}: {}", short(&limit.text), answer.comparison.limits[position].word());
        for block in &answer.comparison.blocks {
            let of = |row: &&Row| row.limits.iter().any(|(of, _)| *of == position);
            for row in block.rows.iter().filter(of) {
                let found = row.limits.iter().find(|(of, _)| *of == position);
                let word = found.map_or("", |(_, outcome)| outcome.word());
                let interval = row.interval.map_or("no interval".to_owned(), |(low, high)| {
                    format!("{} to {}", signed(low), signed(high))
                });
                let (job, direction, figure) = (short(&block.job), block.direction, row.figure.name());
                line!(out, "    {job}: {direction} {figure} {interval}: {word}");
            }
        }
    }
}

/// A figure, and the spread of the runs.
fn shown(figure: Figure, summary: Option<Summary>) -> String {
    let Some(summary) = summary else { return "-".to_owned() };
    let value = match figure {
        Figure::Iops => text::count(summary.mean),
        Figure::Bandwidth => text::bandwidth(summary.mean),
        _ => text::latency(summary.mean),
    };
    match summary.variation {
        Some(variation) => format!("{value} ±{}", text::percent((variation * 1000.0).round() / 10.0)),
        None => value,
    }
}

/// A name, shortened to fit on a line.
fn short(name: &str) -> String {
    text::one_line(name, NAME)
}
