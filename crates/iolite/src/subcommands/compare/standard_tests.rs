//! Two results of `iolite pts`, cell by cell, or of `iolite ai` and `iolite meta`, figure by figure.

use crate::subcommands::stored_run::{self, Opened};
use iolite_options::commands::Asked;
use iolite_page::text::{bandwidth, count, latency, seconds, signed};
use iolite_procedures::compare::{self as figures, Comparison, Row};
use iolite_procedures::pts::compare::compare;
use iolite_procedures::pts::result::{MARK, is_one};
use iolite_summary::csv::field;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

/// The file of a result in its directory.
const RESULT: &str = "result.json";

/// The comparison, if the words name results of such tests; `None` = they do not.
pub fn answer(asked: &Asked) -> Result<Option<String>, String> {
    let is_kept = |word: &OsString| stored_run::is_kept(word);
    let opened = asked.operands.iter().any(is_kept).then(|| Opened::of(asked)).transpose()?;
    let mut found = Vec::new();
    for word in &asked.operands {
        found.push(match &opened {
            Some(opened) if is_kept(word) => of_kept(opened, &word.to_string_lossy())?,
            _ => of_file(word),
        });
    }
    let names: Vec<String> = asked.operands.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_pts = |value: &Option<Value>| value.as_ref().is_some_and(is_one);
    let options = ["fail-if", "fail-inconclusive", "allow"];
    if !found.iter().any(is_pts) {
        let [Some(base), Some(new)] = &found[..] else { return Ok(None) };
        // A result of `iolite ai` is a report as well, for which there are verdicts and pages.
        let is_for_reports =
            asked.value("output-format") == Some("html") || options.iter().any(|option| asked.has(option));
        if is_for_reports {
            return Ok(None);
        }
        return Ok(Some(printed(asked, &figures::compare(base, new)?, "iolite", &names)));
    }
    let [Some(base), Some(new)] = &found[..] else {
        return Err(
            "results of iolite pts are compared in pairs, and only with each other: compare BASE NEW"
                .to_owned(),
        );
    };
    for option in options {
        if asked.has(option) {
            return Err(format!(
                "--{option}: this is for reports of runs; results of iolite pts have no verdicts"
            ));
        }
    }
    let comparison = compare(base, new)?;
    if asked.value("output-format") == Some("html") {
        return Err(
            "--output-format=html: two results of iolite pts have no page; table, json or csv".to_owned()
        );
    }
    Ok(Some(printed(asked, &comparison, MARK, &names)))
}

fn printed(asked: &Asked, comparison: &Comparison, of: &str, names: &[String]) -> String {
    match asked.value("output-format") {
        Some("json") => as_json(comparison, of, names),
        Some("csv") => as_csv(comparison),
        _ => table(comparison, names),
    }
}

/// The result in a file, or in the directory of `iolite pts`; `None` = there is none.
fn of_file(word: &OsString) -> Option<Value> {
    let path = Path::new(word);
    let path = if path.is_dir() { path.join(RESULT) } else { path.to_owned() };
    // A pipe can be read only once.
    of_text(&std::fs::read_to_string(Some(path).filter(|path| path.is_file())?).ok()?)
}

/// The result of the run of the store that a word names; `None` = it names several, or another run.
fn of_kept(opened: &Opened, word: &str) -> Result<Option<Value>, String> {
    let runs = opened.named(word)?;
    match runs[..] {
        [run] if run.test().is_some() => Ok(of_text(&opened.report(run)?)),
        [_] => Ok(None),
        _ if runs.iter().any(|run| run.test() == Some("pts")) => Err(format!(
            "{word}: these are {} runs, and results of iolite pts are compared in pairs: run:NUMBER",
            runs.len()
        )),
        _ => Ok(None),
    }
}

fn of_text(text: &str) -> Option<Value> {
    let is_likely = ["\"ai\"", "\"meta\"", "\"iolite pts\""].into_iter().any(|key| text.contains(key));
    let mut value: Value = is_likely.then(|| serde_json::from_str(text).ok()).flatten()?;
    let kept = value.pointer_mut("/iolite/pts").map(Value::take);
    let value = kept.unwrap_or(value);
    (is_one(&value) || figures::is_one(&value)).then_some(value)
}

fn shown(row: &Row, value: f64) -> String {
    match row.figure {
        "iops" => format!("{} IOPS", count(value)),
        "bw_bytes" => bandwidth(value),
        "per_second" => format!("{}/s", count(value)),
        "percent" => format!("{value:.1}%"),
        "number" => count(value),
        "s" => seconds(value),
        "max_ns" => format!("{} longest", latency(value)),
        _ => latency(value),
    }
}

fn table(comparison: &Comparison, names: &[String]) -> String {
    let mut out = format!("BASE  {}\nNEW   {}\n", names[0], names[1]);
    let mut test = "";
    for row in &comparison.rows {
        if row.test != test {
            line!(out, "\n{:<34} {:>18} {:>18} {:>9}", row.test, "base", "new", "change");
            test = &row.test;
        }
        let change = row.change().map_or_else(|| "-".to_owned(), signed);
        let mark = if row.is_apart == Some(true) { " *" } else { "" };
        line!(
            out,
            "  {:<32} {:>18} {:>18} {change:>9}{mark}",
            row.cell,
            shown(row, row.base),
            shown(row, row.new)
        );
    }
    let has_rounds = comparison.rows.iter().any(|row| row.is_apart.is_some());
    let mark = if has_rounds { "* = the rounds of the windows do not overlap. " } else { "" };
    line!(out, "\n{mark}Each side is one run, which does not show how much runs vary: no verdict.");
    comparison.notes.iter().for_each(|note| line!(out, "Note: {note}"));
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

fn as_json(comparison: &Comparison, of: &str, names: &[String]) -> String {
    let cells = comparison.rows.iter().map(|row| {
        json!({"test": row.test, "cell": row.cell, "figure": row.figure, "base": row.base, "new": row.new,
            "change_percent": row.change().map(|change| 100.0 * change), "windows_apart": row.is_apart})
    });
    let value = json!({"iolite compare": 1, "of": of, "base": names[0], "new": names[1],
        "cells": cells.collect::<Vec<_>>(), "notes": comparison.notes});
    format!("{value:#}\n")
}

fn as_csv(comparison: &Comparison) -> String {
    let mut out = "test,cell,figure,base,new,change_percent,windows_apart\n".to_owned();
    for row in &comparison.rows {
        let change = row.change().map_or_else(String::new, |change| (100.0 * change).to_string());
        let apart = row.is_apart.map_or_else(String::new, |apart| apart.to_string());
        line!(
            out,
            "{},{},{},{},{},{change},{apart}",
            field(&row.test),
            field(&row.cell),
            row.figure,
            row.base,
            row.new
        );
    }
    out
}
