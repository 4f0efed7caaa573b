//! The result as one screen of at most 100 columns, and as Markdown.

use super::Outcome;
use super::course::Measured;
use super::rows::Row;
use iolite_compare::{Figure, Verdict};
use iolite_findings::Role;
use iolite_page::text::{bandwidth, bytes, count, latency, seconds};
use iolite_summary::sparkline;
use std::fmt::Write;

/// The most columns of the screen.
const WIDTH: usize = 100;
/// The columns of a rate over time.
const SPARK: usize = 12;

/// The screen.
pub fn text(outcome: &Outcome, is_ascii: bool) -> String {
    let mut text = String::new();
    for result in &outcome.results {
        table(&mut text, result, is_ascii);
        curve(&mut text, result);
        meaning(&mut text, result);
        text.push('\n');
    }
    compared(&mut text, outcome);
    for failure in &outcome.failures {
        paragraph(&mut text, "failed: ", failure);
    }
    for kept in &outcome.kept {
        paragraph(&mut text, "as expected: ", kept);
    }
    for broken in &outcome.broken {
        paragraph(&mut text, "NOT as expected: ", broken);
    }
    line!(text, "{}", footer(outcome));
    if is_ascii { plain(&text) } else { text }
}

/// The same in ASCII, as far as it is ours. (Names of files stay.)
fn plain(text: &str) -> String {
    text.replace('µ', "u").replace('–', "-")
}

fn footer(outcome: &Outcome) -> String {
    format!(
        "The test took {}. docs/testing-storage.md explains the cases and the sentences.",
        seconds(outcome.seconds.round())
    )
}

/// What a target is, and how much of it was used.
fn headline(result: &Measured) -> String {
    let around = match (&result.place.remote, result.place.is_direct) {
        (Some(_), _) => String::new(),
        (None, true) => "; direct I/O".to_owned(),
        (None, false) => "; through the page cache (no direct I/O here)".to_owned(),
    };
    let data = if result.place.has_objects() {
        String::new()
    } else {
        format!(", {} of data", bytes(result.place.bytes as f64))
    };
    format!("{}: {}{around}{data}", result.target.name, result.target.words())
}

/// The cells of a row, without its rate over time.
fn cells(row: &Row) -> [String; 8] {
    [
        row.name.clone(),
        row.what.clone(),
        count(row.iops),
        row.bandwidth.map_or_else(|| "–".to_owned(), bandwidth),
        latency(row.latency.p50),
        latency(row.latency.p99),
        latency(row.latency.p999),
        latency(row.latency.max),
    ]
}

const HEADS: [&str; 8] = ["case", "what", "IOPS", "bandwidth", "p50", "p99", "p99.9", "max"];

fn table(text: &mut String, result: &Measured, is_ascii: bool) {
    paragraph(text, "", &headline(result));
    // The curve and the sentences show these.
    let elsewhere = result.subject.of(Role::Step).chain(result.subject.of(Role::Stages));
    let elsewhere: Vec<&str> = elsewhere.map(|case| case.name.as_str()).collect();
    line!(
        text,
        "\n{:<11} {:<16} {:>7} {:>11} {:>8} {:>8} {:>8} {:>8}  IOPS over time",
        HEADS[0],
        HEADS[1],
        HEADS[2],
        HEADS[3],
        HEADS[4],
        HEADS[5],
        HEADS[6],
        HEADS[7]
    );
    for row in result.rows().filter(|row| !elsewhere.contains(&row.name.as_str())) {
        let [name, what, iops, moved, p50, p99, p999, max] = cells(&row);
        let spark = sparkline::of(&row.rates, SPARK, is_ascii);
        let made = format!(
            "{name:<11} {what:<16} {iops:>7} {moved:>11} {p50:>8} {p99:>8} {p999:>8} {max:>8}  {spark}"
        );
        line!(text, "{}", made.trim_end());
    }
}

/// The curve of random reads over the depth.
fn curve(text: &mut String, result: &Measured) {
    let curve = result.subject.curve();
    if curve.is_empty() {
        return;
    }
    text.push('\n');
    let mut row = |head: &str, of: &dyn Fn(&iolite_findings::Case) -> String| {
        let cells: String = curve.iter().map(|case| format!(" {:>8}", of(case))).collect();
        line!(text, "{head:<27}{cells}");
    };
    let flow = |case: &iolite_findings::Case| case.only_reads().cloned().unwrap_or_default();
    row("random reads of 4k, depth", &|case| case.depth.to_string());
    row("  IOPS", &|case| count(flow(case).iops));
    row("  p50", &|case| latency(flow(case).latency.p50));
    row("  p99", &|case| latency(flow(case).latency.p99));
}

/// What the figures mean: first what must be known of them.
fn meaning(text: &mut String, result: &Measured) {
    if result.findings.is_empty() && result.meaning.is_empty() {
        return;
    }
    line!(text, "\nWhat this means");
    for finding in &result.findings {
        paragraph(text, "! ", &finding.words);
        paragraph(text, "    ", &format!("Evidence: {}.", finding.evidence));
    }
    if result.findings.is_empty() {
        paragraph(text, "- ", "Nothing about these figures is suspicious.");
    }
    for words in &result.meaning {
        paragraph(text, "- ", words);
    }
}

/// Targets beside the first one.
fn compared(text: &mut String, outcome: &Outcome) {
    let Some(comparison) = &outcome.comparison else { return };
    let Some(first) = outcome.results.first() else { return };
    for (position, other) in outcome.results.iter().enumerate().skip(1) {
        paragraph(
            text,
            "",
            &format!(
                "{} beside {} (ratios: {} / {})",
                other.target.name, first.target.name, other.target.name, first.target.name
            ),
        );
        line!(
            text,
            "\n{:<17} {:>11} {:>11} {:>7} {:<13}  {:>9} {:>9} {:>7} {:<11}",
            "case",
            "first",
            "other",
            "ratio",
            "",
            "first p99",
            "other p99",
            "ratio",
            ""
        );
        for block in comparison.blocks.iter().filter(|block| block.new == position) {
            // The whole job repeats its directions.
            if block.direction == iolite_compare::WHOLE_JOB {
                continue;
            }
            let row = |figure| block.rows.iter().find(|row| row.figure == figure);
            let mean = |row: Option<&iolite_compare::Row>, is_base: bool| {
                row.and_then(|row| if is_base { row.base } else { row.new }).map(|summary| summary.mean)
            };
            let (rate, slow) = (row(Figure::Iops), row(Figure::P99));
            let cell =
                |value: Option<f64>, words: fn(f64) -> String| value.map_or_else(|| "–".to_owned(), words);
            let ratio = |row: Option<&iolite_compare::Row>| {
                let change = row.and_then(|row| row.change);
                change.map_or_else(|| "–".to_owned(), |change| format!("{:.2}", 1.0 + change))
            };
            let verdict = |row: Option<&iolite_compare::Row>| match row.map(|row| row.verdict) {
                Some(Verdict::CannotTell) => "within noise",
                Some(verdict @ (Verdict::Better | Verdict::Worse)) => verdict.words(),
                _ => "",
            };
            let is_mix = block.job == "mix";
            let name = if is_mix { format!("mix-{}", block.direction) } else { block.job.clone() };
            let made = format!(
                "{name:<17} {:>11} {:>11} {:>7} {:<13}  {:>9} {:>9} {:>7} {:<11}",
                cell(mean(rate, true), count),
                cell(mean(rate, false), count),
                ratio(rate),
                verdict(rate),
                cell(mean(slow, true), latency),
                cell(mean(slow, false), latency),
                ratio(slow),
                verdict(slow),
            );
            line!(text, "{}", made.trim_end());
        }
        paragraph(
            text,
            "",
            &format!(
                "IOPS, and latencies of completion, in the mean of {} rounds in turns. \"better\" and \"worse\" are said of the \
                 second one, and only if chance makes any such words in at most 5% of comparisons (docs/comparing.md).",
                iolite_compare::FEWEST
            ),
        );
        text.push('\n');
    }
}

/// A paragraph that is indented behind its beginning.
fn paragraph(text: &mut String, begin: &str, words: &str) {
    let indent = begin.chars().count();
    let mut line = begin.to_owned();
    let mut length = indent;
    let mut is_first = true;
    for word in words.split_whitespace() {
        let word_length = word.chars().count();
        if !is_first && length + 1 + word_length > WIDTH {
            line!(text, "{line}");
            line = " ".repeat(indent);
            length = indent;
        } else if !is_first {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
        is_first = false;
    }
    line!(text, "{line}");
}

/// The result as Markdown, for issues and chats.
pub fn markdown(outcome: &Outcome) -> String {
    let mut text = String::new();
    // A bar would begin another cell, and other signs markup.
    let escaped = |words: &str| words.replace('\\', "\\\\").replace(['|', '<', '*', '_', '`', '['], " ");
    for result in &outcome.results {
        line!(text, "### {}\n", escaped(&headline(result)));
        line!(text, "| {} |", HEADS.join(" | "));
        line!(text, "|---|---|--:|--:|--:|--:|--:|--:|");
        for row in result.rows() {
            line!(text, "| {} |", cells(&row).map(|cell| escaped(&cell)).join(" | "));
        }
        line!(text, "\n**What this means**\n");
        for finding in &result.findings {
            line!(text, "- **{}** Evidence: {}.", escaped(&finding.words), escaped(&finding.evidence));
        }
        for words in &result.meaning {
            line!(text, "- {}", escaped(words));
        }
        text.push('\n');
    }
    if outcome.comparison.is_some() {
        let mut table = String::new();
        compared(&mut table, outcome);
        line!(text, "```\n{}\n```\n", table.trim_end().replace("```", "'''"));
    }
    for (words, all) in [
        ("failed", &outcome.failures),
        ("as expected", &outcome.kept),
        ("**not as expected**", &outcome.broken),
    ] {
        for one in all {
            line!(text, "- {words}: {}", escaped(one));
        }
    }
    line!(text, "\n{}", footer(outcome));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_fit() {
        let mut text = String::new();
        paragraph(&mut text, "! ", &"word ".repeat(60));
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() == 4 && lines[0].starts_with("! word") && lines[1].starts_with("  word"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        let mut long = String::new();
        paragraph(&mut long, "", &"x".repeat(150));
        assert_eq!(long.lines().count(), 1, "a name is not cut");
        assert_eq!(plain("82.4 µs – x"), "82.4 us - x");
    }
}
