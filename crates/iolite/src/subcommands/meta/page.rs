//! The result as one HTML file without scripts.

use super::perform::{Circumstances, Done, Outcome, show};
use super::rows::{COLUMNS, cells, headline, of_worker, remarks};
use crate::messages::program;
use crate::subcommands::performer::NAME;
use iolite_page::text::escaped;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{padding:.3em .6em;text-align:right;border-bottom:1px solid #d8dee4;white-space:nowrap}\
th:first-child,td:first-child,th:last-child,td:last-child{text-align:left}\
.scroll,pre{overflow-x:auto}dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.2em 1em;margin:0}\
dt{color:#59636e}dd{margin:0;overflow-wrap:anywhere}.failed{color:#a4262c}figure{margin:1em 0}figcaption{font-weight:600}\
.worker{display:grid;grid-template-columns:clamp(4em,20%,16em) minmax(0,1fr) 9em;gap:.5em;font-size:12px;line-height:1.5}\
.worker *{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.worker i{background:#4878a8;margin:2px 0}\
@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#14181d}th,td{border-color:#333b44}}";

/// The most workers that are drawn one by one.
const MOST_DRAWN: usize = 64;

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
    page += "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>";
    COLUMNS.iter().for_each(|column| page += &format!("<th>{column}</th>"));
    page += "</tr></thead>\n<tbody>\n";
    for done in &outcome.done {
        let row = cells(done).map(|cell| format!("<td>{}</td>", escaped(&cell)));
        line!(page, "<tr>{}</tr>", row.concat());
    }
    page += "</tbody></table></div>\n<h2>Workers</h2>\n";
    outcome.done.iter().for_each(|done| workers(&mut page, done));
    circumstances(&mut page, outcome);
    page + "</body>\n</html>\n"
}

/// Where and when it ran, and the jobs.
fn circumstances(page: &mut String, outcome: &Outcome) {
    let Circumstances { begun_ms, role, host, device } = &outcome.circumstances;
    let mut facts = vec![
        ("begun".to_owned(), iolite_report::clock::local(*begun_ms)),
        ("program".to_owned(), program(NAME).own_version),
    ];
    for (of, all) in [(*role, host), ("device", device)] {
        let named =
            |name: &str| if name == of { of.to_owned() } else { format!("{of} {name}").replace('_', " ") };
        facts.extend(all.iter().map(|(name, value)| (named(name), value.clone())));
    }
    page.push_str("<h2>Where and when</h2>\n<dl>\n");
    for (name, value) in facts {
        line!(page, "<dt>{}</dt><dd>{}</dd>", escaped(&name), escaped(&value));
    }
    page.push_str("</dl>\n");
    if outcome.setup.workers() as usize > MOST_DRAWN {
        page.push_str("<p>The command with --show-job prints the jobs of all phases.</p>\n");
        return;
    }
    let mut setup = outcome.setup.clone();
    if setup.bucket.is_none() {
        setup.directory = outcome.target.display().to_string();
    }
    let jobs = show(setup, &outcome.machines);
    line!(page, "<details><summary>The jobs of all phases</summary><pre>{}</pre></details>", escaped(&jobs));
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
    for worker in drawn {
        line!(
            page,
            "<div class=\"worker\"><span>{}</span><i style=\"width:{:.1}%\"></i><span>{}</span></div>",
            escaped(&worker.name),
            worker.rate() / most * 100.0,
            of_worker(done, worker)
        );
    }
    page.push_str("</figure>\n");
}
