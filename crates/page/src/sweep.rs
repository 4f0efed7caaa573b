//! The page of a sweep: the measurements of its points, and the knee.
//!
//! Sentences and the table of all points need no script. The pictures are drawn by `assets/sweep.js`.

use crate::html::frame;
use crate::packed::packed;
use crate::text::{bandwidth, count, escaped, latency, limited, percent, short};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

const SCRIPT: &str =
    concat!("\"use strict\";\n", include_str!("../assets/draw.js"), include_str!("../assets/sweep.js"));

/// The page of a sweep's result, given in the JSON form of `iolite sweep`.
pub fn of_sweep(result: &Value) -> String {
    let sweep = &result["sweep"];
    let title = format!("Sweep: {}", short(text(&sweep["name"])));
    let mut body = String::new();
    put!(
        body,
        "<p class=\"when\">{} points, by {}</p>\n<p id=\"measured\">{}</p>\n",
        list(&result["points"]).len(),
        escaped(text(&sweep["program"])),
        limited(text(&sweep["about"]))
    );
    let options: Vec<String> = list(&sweep["options"])
        .iter()
        .map(|option| {
            let values: Vec<String> =
                list(&option["values"]).iter().map(|value| escaped(text(value))).collect();
            format!("{} = {}", escaped(text(&option["name"])), values.join(", "))
        })
        .collect();
    put!(body, "<p>{}</p>\n", options.join("; "));
    let varied = varied(result);
    warnings(&mut body, result, &varied);
    saturation(&mut body, result, &varied);
    relative(&mut body, result);
    all_points(&mut body, result, &varied);
    if has_pictures(result, &varied) {
        put!(
            body,
            "<h2>Pictures</h2>\n<noscript><p class=\"notice\">Without scripts there are no pictures; the figures above are \
             complete.</p></noscript>\n<div id=\"pictures\"></div>\n"
        );
    }
    frame(&title, SCRIPT, &body, &packed(result))
}

/// Whether the script has anything to draw: a curve of two points, or a map of two options.
fn has_pictures(result: &Value, varied: &[&str]) -> bool {
    let sweep = &result["sweep"];
    let is_measured = |point: &&Value| point["figures"].is_object();
    let measured: BTreeSet<Option<u64>> =
        list(&result["points"]).iter().filter(is_measured).map(|point| point["number"].as_u64()).collect();
    let has_curve = list(&result["curves"]).iter().any(|curve| {
        list(&curve["points"]).iter().filter(|number| measured.contains(&number.as_u64())).count() > 1
    });
    let is_map = varied.len() == 2 && sweep["one_at_a_time"] != true && sweep["cases"] != true;
    has_curve || (is_map && !measured.is_empty())
}

/// The names of the values in which points differ.
fn varied(result: &Value) -> Vec<&str> {
    let options = list(&result["sweep"]["options"]).iter();
    let several =
        options.filter(|option| list(&option["values"]).len() > 1).map(|option| text(&option["name"]));
    (result["sweep"]["cases"] == true).then_some("case").into_iter().chain(several).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn shown(value: &Value, words: fn(f64) -> String) -> String {
    value.as_f64().map_or_else(|| "–".to_owned(), words)
}

/// The values of a point or curve as markup, without those that all points share.
fn values(of: &Value, varied: &[&str]) -> String {
    let pairs = iolite_stored::pairs(&of["values"]);
    let words: Vec<String> = pairs
        .iter()
        .filter(|(name, _)| varied.contains(name))
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    words.join(" ")
}

/// Each warning once, with the points that had it.
fn warnings(body: &mut String, result: &Value, varied: &[&str]) {
    /// The most warnings, and the most points that are named with one.
    const MOST: usize = 100;
    const MOST_NAMES: usize = 4;
    let all = list(&result["warnings"]);
    if all.is_empty() {
        return;
    }
    let points = list(&result["points"]);
    let name = |number: &Value| {
        let point = points.iter().find(|point| point["number"] == *number);
        match point.map(|point| values(point, varied)) {
            Some(name) if !name.is_empty() => name,
            _ => "the point".to_owned(),
        }
    };
    put!(body, "<div class=\"notice\"><strong>To be looked at</strong><ul>");
    for warning in all.iter().take(MOST) {
        let of = list(&warning["points"]);
        let names = if of.len() == points.len() && of.len() > 1 {
            format!("all {} points", of.len())
        } else {
            let more = of.len().saturating_sub(MOST_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            of.iter().take(MOST_NAMES).map(name).collect::<Vec<_>>().join(", ") + &more
        };
        // The words may begin with the name of their point.
        let words = text(&warning["words"]);
        let words = words.strip_prefix(&names).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(words);
        put!(body, "<li>{names}: {}</li>", limited(words));
    }
    if all.len() > MOST {
        put!(body, "<li>and {} more, which result.json has</li>", all.len() - MOST);
    }
    put!(body, "</ul></div>\n");
}

/// The knee of each curve.
fn saturation(body: &mut String, result: &Value, varied: &[&str]) {
    let curves = list(&result["curves"]);
    if curves.is_empty() {
        return;
    }
    put!(body, "<h2>Where it saturates</h2>\n<ul>\n");
    for curve in curves {
        let name = values(curve, varied);
        let between = if name.is_empty() { "" } else { ": " };
        put!(body, "<li>{name}{between}{}</li>\n", escaped(text(&curve["words"])));
    }
    put!(
        body,
        "</ul>\n<p class=\"hint\">The knee is where IOPS divided by mean latency, submission included, is largest. The law is the Universal Scalability Law, fitted to \
         the rates over the depth.</p>\n"
    );
}

/// The targets, each relative to the first.
fn relative(body: &mut String, result: &Value) {
    let table = &result["relative"];
    let columns = list(&table["columns"]);
    if columns.is_empty() {
        return;
    }
    put!(
        body,
        "<h2>Targets</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Targets\"><table><thead><tr><th class=\"name\" scope=\"col\">{}</th>",
        escaped(text(&table["option"]))
    );
    columns.iter().for_each(|column| put!(body, "<th scope=\"col\">{}</th>", short(text(column))));
    put!(body, "</tr></thead><tbody>\n");
    for row in list(&table["rows"]) {
        put!(body, "<tr><th class=\"name\" scope=\"row\">{}</th>", escaped(text(&row["name"])));
        list(&row["words"]).iter().for_each(|cell| put!(body, "<td>{}</td>", escaped(text(cell))));
        put!(body, "</tr>\n");
    }
    put!(body, "</tbody></table></div>\n<p class=\"hint\">In brackets: relative to the first.</p>\n");
}

/// A row for each point, with a column for each value in which points differ.
fn all_points(body: &mut String, result: &Value, varied: &[&str]) {
    put!(
        body,
        "<h2>All points</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\"><table class=\"summary\"><thead><tr>"
    );
    let columns = if varied.is_empty() { &["point"] } else { varied };
    columns.iter().for_each(|name| put!(body, "<th class=\"value\" scope=\"col\">{}</th>", short(name)));
    put!(
        body,
        "<th scope=\"col\">IOPS</th><th scope=\"col\">bandwidth</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th>\
         <th scope=\"col\">mean latency</th><th scope=\"col\">CPU</th><th scope=\"col\">in flight</th></tr></thead>\n<tbody>\n"
    );
    for point in list(&result["points"]) {
        put!(body, "<tr data-point=\"{}\">", point["number"]);
        let values = varied.iter().map(|name| short(text(&point["values"][name])));
        let number = varied.is_empty().then(|| point["number"].to_string());
        values.chain(number).for_each(|value| put!(body, "<th class=\"value\" scope=\"row\">{value}</th>"));
        let figures = &point["figures"];
        let iops = if figures.is_object() { shown(&figures["iops"], count) } else { "failed".to_owned() };
        put!(
            body,
            "<td data-iops=\"{}\">{iops}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            figures["iops"],
            shown(&figures["bw_bytes"], bandwidth),
            shown(&figures["p50_ns"], latency),
            shown(&figures["p99_ns"], latency),
            shown(&figures["mean_ns"], latency),
            shown(&figures["cpu_percent"], percent),
            shown(&figures["in_flight"], count),
        );
    }
    put!(
        body,
        "</tbody></table></div>\n<p class=\"hint\">Latencies are those from submission to completion. CPU is in percent of one processor. In flight: \
         the mean number of I/Os and syncs, by Little's law.</p>\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_of_a_sweep_is_markup() {
        let evil = "<script>alert(1)</script>\u{1b}";
        let result = json!({"sweep": {"name": evil, "program": evil, "options": [{"name": evil, "values": [evil, "x"]}]},
            "points": [{"number": 1, "values": {evil: evil}, "figures": {"iops": 5.0}, "warnings": [evil]}],
            "warnings": [{"words": evil, "points": [1]}],
            "curves": [{"values": {evil: evil}, "points": [1], "words": evil}],
            "relative": {"option": evil, "columns": [evil], "rows": [{"name": evil, "words": [evil]}]}});
        let page = of_sweep(&result);
        assert!(page.starts_with(crate::BEGINNING));
        assert_eq!((page.matches("<script").count(), page.contains('\u{1b}')), (2, false));
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("data-iops=\"5.0\""));
        // An empty result gives a page without figures.
        assert!(of_sweep(&json!({})).contains("0 points"));
    }

    fn point(number: u64, depth: &str) -> Value {
        json!({"number": number, "values": {"bs": "4k", "iodepth": depth}, "depth": 1, "figures": {"iops": 5.0}, "warnings": []})
    }

    #[test]
    fn values_shared_by_all_points_are_stated_once() {
        let options = json!([{"name": "bs", "values": ["4k"]}, {"name": "iodepth", "values": ["1", "2", "4", "8", "16", "32"]}]);
        let points: Vec<Value> =
            (1..=6).map(|number| point(number, &(1 << (number - 1)).to_string())).collect();
        let page = of_sweep(&json!({"sweep": {"name": "s", "options": options}, "points": points,
            "warnings": [{"words": "slow", "points": [1, 2, 3, 4, 5, 6]}, {"words": "odd", "points": [2, 3, 4, 5, 6]}]}));
        assert!(
            page.contains("<p>bs = 4k; iodepth = 1, 2, 4, 8, 16, 32</p>") && !page.contains("bs=4k"),
            "{page}"
        );
        assert!(
            page.contains("<tr data-point=\"6\"><th class=\"value\" scope=\"row\">32</th><td data-iops"),
            "{page}"
        );
        assert!(page.contains("<li>all 6 points: slow</li>"), "{page}");
        assert!(
            page.contains("<li>iodepth=2, iodepth=4, iodepth=8, iodepth=16 and 1 more: odd</li>"),
            "{page}"
        );
    }

    #[test]
    fn there_is_no_heading_over_nothing() {
        let page = |options: Value, curves: Value| {
            of_sweep(
                &json!({"sweep": {"name": "s", "options": options}, "points": [point(1, "1"), point(2, "2")], "curves": curves}),
            )
        };
        let depths = || json!({"name": "iodepth", "values": ["1", "2"]});
        let sizes = || json!({"name": "bs", "values": ["4k", "8k"]});
        let curve = |points: Value| json!([{"values": {}, "points": points, "words": ""}]);
        for (page, expected) in [
            (page(json!([sizes()]), json!([])), false),
            (page(json!([depths()]), curve(json!([1]))), false),
            (page(json!([depths()]), curve(json!([1, 2]))), true),
            (page(json!([depths(), sizes()]), json!([])), true),
        ] {
            assert_eq!(page.contains("id=\"pictures\""), expected, "{page}");
        }
    }
}
