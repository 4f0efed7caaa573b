//! The result as one HTML file without scripts.

use super::perform::{Done, Outcome};
use super::rows::{COLUMNS, cells, headline, remarks};
use iolite_page::text::{count, escaped};
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{padding:.3em .6em;text-align:right;border-bottom:1px solid #d8dee4;white-space:nowrap}\
th:first-child,td:first-child,th:last-child,td:last-child{text-align:left}\
.scroll{overflow-x:auto}.bar{fill:#4878a8}.failed{color:#a4262c}svg{display:block}figure{margin:1em 0}\
figcaption{font-weight:600}text{font:12px system-ui,sans-serif;fill:currentColor}\
@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#14181d}th,td{border-color:#333b44}}";

/// The most workers that are drawn one by one.
const MOST_DRAWN: usize = 64;
/// Height of a bar with its distance to the next, and the widths of names and bars, in pixels.
const ROW: usize = 18;
const NAMES: usize = 220;
const BARS: f64 = 560.0;

/// The page.
pub fn page(outcome: &Outcome) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>iolite meta</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>Operations on names</h1>\n<p>{}</p>\n",
        escaped(&headline(outcome))
    );
    for remark in remarks(outcome) {
        let class = if remark.starts_with("failed") { " class=\"failed\"" } else { "" };
        line!(page, "<p{class}>{}</p>", escaped(&remark));
    }
    page += "<div class=\"scroll\"><table>\n<thead><tr>";
    COLUMNS.iter().for_each(|column| page += &format!("<th>{column}</th>"));
    page += "</tr></thead>\n<tbody>\n";
    for done in &outcome.done {
        let row = cells(done).map(|cell| format!("<td>{}</td>", escaped(&cell)));
        line!(page, "<tr>{}</tr>", row.concat());
    }
    page += "</tbody></table></div>\n<h2>Workers</h2>\n";
    outcome.done.iter().for_each(|done| workers(&mut page, done));
    page + "</body>\n</html>\n"
}

/// The rate of each worker in a phase, as bars.
fn workers(page: &mut String, done: &Done) {
    let all = &done.figures.workers;
    let most = all.iter().map(|worker| worker.rate()).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let drawn = &all[..all.len().min(MOST_DRAWN)];
    let more = match all.len() - drawn.len() {
        0 => String::new(),
        more => format!(" (and {more} more workers)"),
    };
    line!(page, "<figure><figcaption>{}: {}{more}</figcaption>", done.phase.name(), done.phase.about());
    let (height, width) = (drawn.len() * ROW, NAMES + BARS as usize + 120);
    line!(page, "<svg role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">");
    for (row, worker) in drawn.iter().enumerate() {
        let (top, length) = (row * ROW, worker.rate() / most * BARS);
        line!(
            page,
            "<text x=\"0\" y=\"{}\">{}</text><rect class=\"bar\" x=\"{NAMES}\" y=\"{}\" width=\"{length:.1}\" \
             height=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{}/s</text>",
            top + 13,
            escaped(&worker.name),
            top + 2,
            ROW - 4,
            NAMES as f64 + length + 6.0,
            top + 13,
            count(worker.rate())
        );
    }
    page.push_str("</svg></figure>\n");
}
