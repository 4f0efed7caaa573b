//! The page of a sweep: the measurements of its points, and the knee.
//!
//! Sentences and the table of all points need no script. The pictures are drawn by `assets/sweep.js`.

use crate::html::frame;
use crate::packed::packed;
use crate::text::{bandwidth, count, escaped, latency, percent, short};
use serde_json::Value;
use std::fmt::Write;

const SCRIPT: &str =
    concat!("\"use strict\";\n", include_str!("../assets/draw.js"), include_str!("../assets/sweep.js"));

/// The page of a sweep's result, as `iolite sweep` writes it in JSON.
pub fn of_sweep(result: &Value) -> String {
    let sweep = &result["sweep"];
    let title = format!("Sweep: {}", short(text(&sweep["name"])));
    let mut body = String::new();
    put!(
        body,
        "<p class=\"when\">{} points, by {}</p>\n",
        list(&result["points"]).len(),
        escaped(text(&sweep["program"]))
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
    warnings(&mut body, result);
    saturation(&mut body, result);
    relative(&mut body, result);
    all_points(&mut body, result);
    put!(
        body,
        "<h2>Pictures</h2>\n<noscript><p class=\"notice\">Without scripts there are no pictures; the figures above are \
         complete.</p></noscript>\n<div id=\"pictures\"></div>\n"
    );
    frame(&title, SCRIPT, &body, &packed(result))
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

/// The values of a point or curve, as text.
fn values(of: &Value) -> String {
    let pairs = iolite_stored::pairs(&of["values"]);
    let words: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
    words.join(" ")
}

fn warnings(body: &mut String, result: &Value) {
    let mut lines = Vec::new();
    for point in list(&result["points"]) {
        lines.extend(
            list(&point["warnings"])
                .iter()
                .map(|words| format!("{}: {}", values(point), escaped(text(words)))),
        );
    }
    if lines.is_empty() {
        return;
    }
    const MOST: usize = 20;
    put!(body, "<div class=\"notice\"><strong>To be looked at</strong><ul>");
    lines.iter().take(MOST).for_each(|line| put!(body, "<li>{line}</li>"));
    if lines.len() > MOST {
        put!(body, "<li>and {} more: see the last column of the table</li>", lines.len() - MOST);
    }
    put!(body, "</ul></div>\n");
}

/// Where each curve has its knee.
fn saturation(body: &mut String, result: &Value) {
    let curves = list(&result["curves"]);
    if curves.is_empty() {
        return;
    }
    put!(body, "<h2>Where it saturates</h2>\n<ul>\n");
    for curve in curves {
        let name = values(curve);
        let between = if name.is_empty() { "" } else { ": " };
        put!(body, "<li>{name}{between}{}</li>\n", escaped(text(&curve["words"])));
    }
    put!(
        body,
        "</ul>\n<p class=\"hint\">The knee is where IOPS divided by latency is largest. The law is the Universal Scalability Law, fitted to \
         the rates over the depth.</p>\n"
    );
}

/// Targets beside each other, each relative to the first.
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

fn all_points(body: &mut String, result: &Value) {
    put!(
        body,
        "<h2>All points</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All points\"><table class=\"summary\"><thead><tr>\
         <th class=\"name\" scope=\"col\">point</th><th scope=\"col\">IOPS</th><th scope=\"col\">bandwidth</th><th scope=\"col\">mean latency</th>\
         <th scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">CPU</th><th scope=\"col\">in flight</th>\
         <th class=\"name\" scope=\"col\">notes</th></tr></thead>\n<tbody>\n"
    );
    for point in list(&result["points"]) {
        let figures = &point["figures"];
        let notes: Vec<String> = list(&point["warnings"]).iter().map(|words| escaped(text(words))).collect();
        put!(
            body,
            "<tr data-point=\"{}\"><th class=\"name\" scope=\"row\">{}</th><td data-iops=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
            point["number"],
            values(point),
            figures["iops"],
            shown(&figures["iops"], count),
            shown(&figures["bw_bytes"], bandwidth),
            shown(&figures["mean_ns"], latency),
            shown(&figures["p50_ns"], latency),
            shown(&figures["p99_ns"], latency),
            shown(&figures["cpu_percent"], percent),
            shown(&figures["in_flight"], count),
            notes.join("; "),
        );
    }
    put!(body, "</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_of_a_sweep_is_markup() {
        let evil = "<script>alert(1)</script>\u{1b}";
        let result = json!({"sweep": {"name": evil, "program": evil, "options": [{"name": evil, "values": [evil]}]},
            "points": [{"number": 1, "values": {evil: evil}, "figures": {"iops": 5.0}, "warnings": [evil]}],
            "curves": [{"values": {evil: evil}, "points": [1], "words": evil}],
            "relative": {"option": evil, "columns": [evil], "rows": [{"name": evil, "words": [evil]}]}});
        let page = of_sweep(&result);
        assert!(page.starts_with(crate::BEGINNING));
        assert_eq!((page.matches("<script").count(), page.contains('\u{1b}')), (2, false));
        assert!(page.contains("&lt;script&gt;alert(1)") && page.contains("data-iops=\"5.0\""));
        // A result that lacks everything is a page without figures.
        assert!(of_sweep(&json!({})).contains("0 points"));
    }
}
