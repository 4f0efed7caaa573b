//! Two results of `iolite pts`, cell by cell, or of `iolite ai` and `iolite meta`, figure by figure.

use iolite_options::commands::Asked;
use iolite_page::text::{bandwidth, count, latency, seconds, signed};
use iolite_procedures::compare::{self as figures, Comparison, Row};
use iolite_procedures::pts::compare::compare;
use iolite_procedures::pts::result::{MARK, is_one};
use iolite_summary::csv::field;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes at the beginning of a file in which the mark of a result is found.
const BEGINNING: u64 = 256;
/// The file of a result in its directory.
const RESULT: &str = "result.json";

/// The comparison, if the words name results of `iolite pts`; `None` = they do not.
pub fn answer(asked: &Asked) -> Result<Option<String>, String> {
    let places: Vec<Option<PathBuf>> = asked.operands.iter().map(place).collect();
    let options = ["fail-if", "fail-inconclusive", "allow"];
    if places.iter().all(Option::is_none) {
        let Some([base, new]) = of_figures(&asked.operands) else { return Ok(None) };
        // A result of `iolite ai` is a report as well, for which there are verdicts and pages.
        let is_for_reports =
            asked.value("output-format") == Some("html") || options.iter().any(|option| asked.has(option));
        if is_for_reports {
            return Ok(None);
        }
        let names = [0, 1].map(|side| asked.operands[side].to_string_lossy().into_owned());
        return Ok(Some(printed(asked, &figures::compare(&base, &new)?, "iolite", &names)));
    }
    let [Some(base), Some(new)] = &places[..] else {
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
    let comparison = compare(&read(base)?, &read(new)?)?;
    let names = [base, new].map(|path| path.display().to_string());
    if asked.value("output-format") == Some("html") {
        return Err(
            "--output-format=html: two results of iolite pts have no page; table, json or csv".to_owned()
        );
    }
    Ok(Some(printed(asked, &comparison, MARK, &names)))
}

fn printed(asked: &Asked, comparison: &Comparison, of: &str, names: &[String; 2]) -> String {
    match asked.value("output-format") {
        Some("json") => as_json(comparison, of, names),
        Some("csv") => as_csv(comparison),
        _ => table(comparison, names),
    }
}

/// The two results of other tests that the words name; `None` = they do not.
fn of_figures(words: &[OsString]) -> Option<[Value; 2]> {
    let [base, new] = words else { return None };
    let of = |word: &OsString| {
        // A pipe can be read only once.
        let text = std::fs::read_to_string(Some(Path::new(word)).filter(|path| path.is_file())?).ok()?;
        let is_likely = ["\"ai\"", "\"meta\""].into_iter().any(|key| text.contains(key));
        let value = is_likely.then(|| serde_json::from_str(&text).ok()).flatten()?;
        figures::is_one(&value).then_some(value)
    };
    Some([of(base)?, of(new)?])
}

/// The file of a result.
fn place(word: &OsString) -> Option<PathBuf> {
    let path = Path::new(word);
    let path = if path.is_dir() { path.join(RESULT) } else { path.to_owned() };
    // A pipe can be read only once.
    if !path.is_file() {
        return None;
    }
    let mut beginning = Vec::new();
    File::open(&path).ok()?.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    String::from_utf8_lossy(&beginning).contains(&format!("\"{MARK}\"")).then_some(path)
}

fn read(path: &Path) -> Result<Value, String> {
    let told = |why: String| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| told(error.to_string()))?;
    if is_one(&value) { Ok(value) } else { Err(told("it is no result of iolite pts".to_owned())) }
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

fn table(comparison: &Comparison, names: &[String; 2]) -> String {
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

fn as_json(comparison: &Comparison, of: &str, names: &[String; 2]) -> String {
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
