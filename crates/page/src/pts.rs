//! The page of a result of `iolite pts`: the header of the specification, and for each test its steady state and its tables.
//!
//! Tables and sentences need no script. The pictures are drawn by `assets/pts.js`.

use crate::html::{frame, section};
use crate::packed::packed;
use crate::text::{bandwidth, bytes, count, escaped, latency, limited, short};
use serde_json::Value;
use std::fmt::Write;

const SCRIPT: &str =
    concat!("\"use strict\";\n", include_str!("../assets/draw.js"), include_str!("../assets/pts.js"));

/// The most rows of a list: a stored file may contain anything.
const MOST: usize = 200;
/// The most notices of a kind that are shown before they are unfolded.
const FEW: usize = 8;

/// The page of a result in JSON.
pub fn of_pts(result: &Value) -> String {
    let header = &result["header"];
    let device = &header["device"];
    let name = [text(&device["model"]), text(&device["name"])].into_iter().find(|name| !name.is_empty());
    let is_conforming = result["conforming"] == true;
    let mark = if is_conforming { "" } else { " (not conforming)" };
    let title = format!("PTS: {}{mark}", short(name.unwrap_or("a device")));
    let mut body = String::new();
    put!(
        body,
        "<p class=\"when\">{}, by {}</p>\n<p>{}. {}</p>\n",
        time(&result["begun_ms"]),
        escaped(text(&result["program"])),
        escaped(text(&result["specification"])),
        escaped(text(&result["disclaimer"]))
    );
    notices(&mut body, result);
    about(&mut body, header);
    for (place, test) in list(&result["tests"]).iter().take(MOST).enumerate() {
        of_test(&mut body, test, place, is_conforming);
    }
    if list(&result["tests"]).is_empty() {
        put!(body, "<p class=\"notice\">No test is complete yet.</p>\n");
    } else {
        put!(
            body,
            "<noscript><p class=\"notice\">Without scripts there are no pictures; the tables are complete.</p></noscript>\n"
        );
    }
    frame(&title, SCRIPT, &body, &packed(result))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| "at an unknown time".to_owned(), |ms| escaped(&iolite_report::clock::minute(ms)))
}

/// Why it does not conform, and what was interrupted.
fn notices(body: &mut String, result: &Value) {
    let mut notice = |class: &str, heading: &str, all: &Value| {
        let all = list(all);
        if !all.is_empty() {
            let (first, more) = all.split_at(all.len().min(FEW));
            let items = |all: &[Value]| -> String {
                all.iter().take(MOST).map(|words| format!("<li>{}</li>", limited(text(words)))).collect()
            };
            put!(body, "<div class=\"{class}\"><strong>{heading}</strong><ul>{}</ul>", items(first));
            if !more.is_empty() {
                let count = more.len();
                put!(body, "<details><summary>{count} more</summary><ul>{}</ul></details>", items(more));
            }
            put!(body, "</div>\n");
        }
    };
    notice("notice error", "This result does not conform to the specification", &result["deviations"]);
    notice("notice", "Interruptions", &result["interruptions"]);
    if result["complete"] == false {
        put!(body, "<p class=\"notice\">The procedure is not complete.</p>\n");
    }
}

/// The header that the specification asks for.
fn about(body: &mut String, header: &Value) {
    put!(body, "<h2>What was tested, and how</h2>\n<div class=\"facts\">\n");
    let facts = |value: &Value| -> Vec<(String, String)> {
        let words = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => "the usual one of each test".to_owned(),
            Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        };
        value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), words(value))).collect()
    };
    let mut add = |heading: &str, facts: Vec<(String, String)>| {
        let facts: Vec<(&str, String)> =
            facts.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        section(body, heading, &facts);
    };
    add("Device", facts(&header["device"]));
    add("Machine", facts(&header["machine"]));
    let mut parameters = facts(&header["parameters"]);
    parameters.push(("write_cache".to_owned(), text(&header["write_cache"]).to_owned()));
    add("Parameters", parameters);
    let purges = header["purges"].as_object().into_iter().flatten();
    let mut state: Vec<(String, String)> =
        purges.map(|(unit, words)| (format!("purge before {unit}"), text(words).to_owned())).collect();
    state.push(("preconditioning".to_owned(), text(&header["preconditioning"]).to_owned()));
    add("Purge and preconditioning", state);
    put!(body, "</div>\n");
}

fn of_test(body: &mut String, test: &Value, place: usize, is_conforming: bool) {
    let mark = if is_conforming { "" } else { " <small>(not conforming)</small>" };
    let size = test["block_bytes"].as_f64().map(|block| format!(", {}", bytes(block))).unwrap_or_default();
    put!(
        body,
        "<h2 id=\"{}\">{}{size}{mark}</h2>\n",
        short(text(&test["name"])),
        escaped(text(&test["title"]))
    );
    if let Some(words) = steady_in_words(test) {
        let class = if test["steady"]["reached"] == true { "" } else { " class=\"notice error\"" };
        put!(body, "<p{class}>{}</p>\n", escaped(&words));
    }
    let written = &test["preconditioning"];
    if let (Some(amount), Some(rate)) = (written["written_bytes"].as_f64(), written["bw_bytes"].as_f64()) {
        put!(body, "<p class=\"hint\">Preconditioning wrote {} at {}.</p>\n", bytes(amount), bandwidth(rate));
    }
    match text(&test["test"]) {
        "tp" => matrix(body, "Mean bandwidth", test, "bw_bytes", bandwidth),
        "lat" => {
            matrix(body, "Mean response time", test, "mean_ns", latency);
            matrix(body, "Longest response time", test, "max_ns", latency);
        }
        "dirth" | "ecw" => {
            demands(body, "Mean IOPS; the brighter, the more", test, "iops", count);
            demands(body, "Mean response time", test, "mean_ns", latency);
        }
        _ => matrix(body, "Mean IOPS; the brighter, the more", test, "iops", count),
    }
    response_times(body, test);
    totals(body, test);
    put!(body, "<div class=\"pictures\" data-test=\"{place}\"></div>\n");
}

/// What a test says about its steady state; `None` = it has none.
pub fn steady_in_words(test: &Value) -> Option<String> {
    let steady = &test["steady"];
    let window = &steady["window"];
    let percent = |value: &Value, limit: &Value| {
        Some(format!("{:.1}% ({:.0}% are allowed)", 100.0 * value.as_f64()?, 100.0 * limit.as_f64()?))
    };
    let is_saturation = test["test"] == "wsat";
    let unit = if is_saturation { "cell" } else { "round" };
    if test["on_its_way"] == true {
        let count = test["rounds"].as_u64().unwrap_or(0);
        return Some(format!(
            "It is on its way: {count} {unit}s are complete, and there is no steady state yet."
        ));
    }
    let Some((first, last)) = window["first"].as_u64().zip(window["last"].as_u64()) else {
        return steady.is_object().then(|| format!("No steady state: there are fewer than five {unit}s."));
    };
    let figures = format!(
        "{} differ by {}, and the line that fits them changes by {}",
        text(&steady["tracked"]),
        percent(&window["excursion"], &steady["excursion_limit"])?,
        percent(&window["slope"], &steady["slope_limit"])?
    );
    Some(match steady["reached"] == true {
        true => format!("Steady state in {unit}s {first} to {last}: the values of {figures}."),
        // Write saturation has no means.
        false if is_saturation => {
            format!("No steady state in {last} {unit}s: in the last five, the values of {figures}.")
        }
        false => format!(
            "No steady state in {last} {unit}s: in the last five, the values of {figures}. The means are of these {unit}s, and \
             not those of a steady state."
        ),
    })
}

/// The distinct values of a key, in their order.
fn distinct<'a>(cells: &'a [Value], key: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    for cell in cells {
        if !found.contains(&&cell[key]) && found.len() < MOST {
            found.push(&cell[key]);
        }
    }
    found
}

/// A table with a row for each block size and a column for each mix.
fn matrix(body: &mut String, title: &str, test: &Value, key: &str, words: fn(f64) -> String) {
    let cells = list(&test["matrix"]);
    let mix = |value: &Value| {
        let read = value.as_u64().unwrap_or(0).min(100);
        format!("{read}/{}", 100 - read)
    };
    grid(
        body,
        title,
        cells,
        ("block", &|value| text(value).to_owned()),
        ("read_percent", &mix),
        key,
        words,
        "block \\ reads/writes",
    );
}

/// A table with a row for each number of threads and a column for each depth.
fn demands(body: &mut String, title: &str, test: &Value, key: &str, words: fn(f64) -> String) {
    let cells = list(&test["matrix"]);
    let number = |value: &Value| value.to_string();
    grid(
        body,
        title,
        cells,
        ("threads", &number),
        ("depth", &number),
        key,
        words,
        "threads \\ depth of each",
    );
}

/// The key of the rows or columns of a table, and the words for its values.
type Axis<'a> = (&'a str, &'a dyn Fn(&Value) -> String);

#[expect(clippy::too_many_arguments, reason = "a table has rows, columns, values and their words")]
fn grid(
    body: &mut String,
    title: &str,
    cells: &[Value],
    rows: Axis<'_>,
    columns: Axis<'_>,
    key: &str,
    words: fn(f64) -> String,
    corner: &str,
) {
    // One cell is told by its steady state and its parts.
    if cells.len() < 2 {
        return;
    }
    let across = distinct(cells, columns.0);
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table class=\"heat\"><caption>{title}</caption>\
         <thead><tr><th class=\"name\" scope=\"col\">{corner}</th>"
    );
    across.iter().for_each(|value| put!(body, "<th scope=\"col\">{}</th>", short(&(columns.1)(value))));
    put!(body, "</tr></thead><tbody>\n");
    for row in distinct(cells, rows.0) {
        put!(body, "<tr><th class=\"name\" scope=\"row\">{}</th>", short(&(rows.1)(row)));
        for column in &across {
            let found = cells.iter().find(|cell| cell[rows.0] == *row && cell[columns.0] == **column);
            let value = found.and_then(|cell| cell[key].as_f64());
            match value {
                Some(value) => put!(body, "<td data-value=\"{value}\">{}</td>", words(value)),
                None => put!(body, "<td>–</td>"),
            }
        }
        put!(body, "</tr>\n");
    }
    put!(body, "</tbody></table></div>\n");
}

/// The response times with their nines, of the cells that have them.
fn response_times(body: &mut String, test: &Value) {
    const KEYS: [&str; 6] = ["50", "90", "99", "99.9", "99.99", "99.999"];
    let is_shown = |test: &str| ["lat", "dirth", "ecw"].contains(&test);
    if !is_shown(text(&test["test"])) {
        return;
    }
    let of_rounds = if test["test"] == "lat" { list(&test["matrix"]) } else { &[] };
    let rows = of_rounds.iter().map(|cell| (text(&cell["what"]).to_owned(), cell));
    let singles = list(&test["cells"]).iter().map(|cell| {
        let demand = format!("{} × {}", cell["threads"], cell["depth"]);
        (format!("{}: {}, {demand}", text(&cell["group"]), text(&cell["what"])), cell)
    });
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Response times\"><table><caption>Response times</caption>\
         <thead><tr><th class=\"name\" scope=\"col\">cell</th><th scope=\"col\">mean</th>"
    );
    KEYS.iter().for_each(|key| put!(body, "<th scope=\"col\">p{key}</th>"));
    put!(body, "<th scope=\"col\">longest</th></tr></thead><tbody>\n");
    for (name, cell) in rows.chain(singles).take(MOST) {
        let shown = |value: &Value| value.as_f64().map_or_else(|| "–".to_owned(), latency);
        put!(
            body,
            "<tr><th class=\"name\" scope=\"row\">{}</th><td>{}</td>",
            short(&name),
            shown(&cell["mean_ns"])
        );
        KEYS.iter().for_each(|key| put!(body, "<td>{}</td>", shown(&cell["percentiles_ns"][*key])));
        put!(body, "<td>{}</td></tr>\n", shown(&cell["max_ns"]));
    }
    put!(
        body,
        "</tbody></table></div>\n<p class=\"hint\">A percentile is told if there were enough I/Os for it: five nines need a hundred \
         thousand.</p>\n"
    );
}

/// The groups of cells that come once: the rate in words (IOPS, or the bandwidth where blocks are large) and the mean response
/// time of each.
pub fn groups(test: &Value) -> Vec<(String, String, f64)> {
    let cells = list(&test["cells"]);
    let is_bandwidth = test["test"] == "xsr";
    let key = if is_bandwidth { "bw_bytes" } else { "iops" };
    let figures = |cell: &Value| Some((cell[key].as_f64()?, cell["mean_ns"].as_f64()?));
    let told = |(name, rate, mean): (String, f64, f64)| {
        let rate = if is_bandwidth { bandwidth(rate) } else { format!("{} IOPS", count(rate)) };
        (name, rate, mean)
    };
    if test["test"] == "wsat" {
        let ends = [("first cell", cells.first()), ("last cell", cells.last())];
        return ends
            .into_iter()
            .filter_map(|(name, cell)| figures(cell?).map(|(rate, mean)| (name.to_owned(), rate, mean)))
            .map(told)
            .collect();
    }
    let of_group = |group: &Value| {
        let found: Vec<(f64, f64)> =
            cells.iter().filter(|cell| cell["group"] == *group).filter_map(figures).collect();
        let count = found.len().max(1) as f64;
        let sum = found.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (text(group).to_owned(), sum.0 / count, sum.1 / count)
    };
    distinct(cells, "group").into_iter().map(of_group).map(told).collect()
}

/// A row for each group of cells that come once.
fn totals(body: &mut String, test: &Value) {
    let groups = groups(test);
    if groups.is_empty() || ["lat", "dirth", "ecw"].contains(&text(&test["test"])) {
        return;
    }
    put!(
        body,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parts\"><table><caption>Parts of the test</caption><thead><tr>\
         <th class=\"name\" scope=\"col\">part</th><th scope=\"col\">mean rate</th><th scope=\"col\">mean response time</th></tr></thead><tbody>\n"
    );
    for (name, rate, mean) in groups {
        put!(
            body,
            "<tr><th class=\"name\" scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n",
            short(&name),
            escaped(&rate),
            latency(mean)
        );
    }
    put!(body, "</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_of_a_result_is_markup() {
        let evil = "<script>alert(1)</script>\u{1b}";
        let cell = json!({"what": evil, "block": evil, "read_percent": 65, "threads": evil, "depth": evil, "group": evil,
            "iops": 5.0, "mean_ns": 7.0, "percentiles_ns": {"50": 1}});
        let tests: Vec<Value> = ["iops", "tp", "lat", "wsat", "dirth", evil]
            .iter()
            .map(|test| {
                json!({"name": evil, "test": test, "title": evil, "matrix": [cell], "cells": [cell],
                "steady": {"tracked": evil, "window": {"first": 1, "last": 5, "excursion": 0.1, "slope": 0.1},
                    "excursion_limit": 0.2, "slope_limit": 0.1}})
            })
            .collect();
        let result = json!({"program": evil, "specification": evil, "disclaimer": evil, "deviations": [evil], "tests": tests,
            "header": {"device": {"model": evil, evil: evil}, "machine": {evil: evil}, "parameters": {evil: [evil]},
                "write_cache": evil, "purges": {evil: evil}}});
        let page = of_pts(&result);
        assert!(page.starts_with(crate::BEGINNING));
        assert_eq!((page.matches("<script").count(), page.contains('\u{1b}')), (2, false));
        assert!(page.contains("<title>PTS: &lt;script") && page.contains("(not conforming)"));
        assert!(of_pts(&json!({})).contains("No test is complete"));
    }

    #[test]
    fn a_steady_state_is_told_and_its_absence_never_rounded_up() {
        let test = |is_reached: bool| {
            json!({"test": "iops", "steady": {"reached": is_reached, "tracked": "0/100 4 KiB", "excursion_limit": 0.2, "slope_limit": 0.1,
                "window": {"first": 21, "last": 25, "excursion": 0.201, "slope": 0.04}}})
        };
        let mut saturation = test(false);
        saturation["test"] = "wsat".into();
        let words = steady_in_words(&saturation).unwrap();
        assert!(words.starts_with("No steady state in 25 cells") && !words.contains("means"), "{words}");
        let steady = steady_in_words(&test(true)).unwrap();
        assert!(
            steady.starts_with("Steady state in rounds 21 to 25: the values of 0/100 4 KiB differ by 20.1%"),
            "{steady}"
        );
        let none = steady_in_words(&test(false)).unwrap();
        assert!(
            none.starts_with("No steady state in 25 rounds") && none.contains("not those of a steady state"),
            "{none}"
        );
        assert_eq!(steady_in_words(&json!({"test": "xsr"})), None);
        let so_far = json!({"test": "lat", "on_its_way": true, "rounds": 2, "steady": {"reached": false}});
        assert!(steady_in_words(&so_far).unwrap().contains("2 rounds are complete"));
    }
}
