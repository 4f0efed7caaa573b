//! The part of a page that needs no script: the jobs, the machine and storage, the results, and the frame of the rest.

use crate::packed::fingerprint;
use crate::text::{bandwidth, bytes, count, escaped, latency, limited, short};
use iolite_options::registry;
use iolite_summary::{Job, Outcome, PERCENTILES, Row};
use iolite_types::RunStatus;
use std::borrow::Cow;
use std::fmt::Write;

const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("../assets/draw.js"),
    include_str!("../assets/page.js"),
    include_str!("../assets/logs.js"),
    include_str!("../assets/report.js")
);

/// The most sentences: for a thousand jobs, the table is better.
const MOST_SENTENCES: usize = 20;
/// The most entries of a kind (facts, options of a job), more than any run has: a stored file may contain anything.
const MOST_ENTRIES: usize = 500;

/// The beginning of every page.
pub const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ";

/// The content policy: a page may use only its own style and script.
pub fn policy() -> String {
    policy_of(SCRIPT)
}

/// The content policy of a page with another script.
pub fn policy_of(script: &str) -> String {
    format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        fingerprint(STYLE),
        fingerprint(script)
    )
}

/// The page; `data`: the report, packed.
pub fn page(result: &Outcome<'_>, data: &str) -> String {
    let mut page = String::new();
    let time = result.time.map(|time| format!("{}, by ", escaped(time))).unwrap_or_default();
    put!(page, "<p class=\"when\">{time}{}</p>\n", escaped(&result.program));
    end(&mut page, result);
    errors(&mut page, result);
    meaning(&mut page, result);
    if let Some(words) = result.said {
        page += "<h2>What the test found</h2>\n";
        // Lines of tables are not broken.
        for part in limited(words).split("\n\n") {
            let class = if part.contains("  ") { " class=\"table\" tabindex=\"0\"" } else { "" };
            put!(page, "<pre{class}>{part}</pre>\n");
        }
    }
    answer(&mut page, result);
    // A test has said it in its own words.
    if result.tested.is_empty() {
        doubts(&mut page, result);
    }
    crate::stages::write(&mut page, result);
    warnings(&mut page, result);
    surroundings(&mut page, result);
    options(&mut page, result);
    put!(
        page,
        "<h2>Pictures and figures</h2>\n<noscript><p class=\"notice\">Without scripts there are no pictures and no further \
         figures; the answer above is complete.</p></noscript>\n<div id=\"pictures\"></div>\n"
    );
    frame(&title(result), SCRIPT, &page, data)
}

/// A complete page: its title and body, as markup, its data, and the script that draws the data.
pub fn frame(title: &str, script: &str, body: &str, data: &str) -> String {
    let mut page = String::with_capacity(data.len() + body.len() + (128 << 10));
    page.push_str(BEGINNING);
    put!(
        page,
        "{}; script-src {}; \
         img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
         <script type=\"application/octet-stream\" id=\"data\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n",
        fingerprint(STYLE),
        fingerprint(script)
    );
    page
}

/// The title of a page, as markup.
pub fn title(result: &Outcome<'_>) -> String {
    if let [first, rest @ ..] = &result.tested[..] {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        return format!("Test of {}{more}", short(first.name));
    }
    // A standard test: its words begin with the target.
    let words = result.said.and_then(|words| words.lines().next()?.split_once(": "));
    if let Some((target, _)) = words {
        let test = result.program.split(" (").next().unwrap_or_default();
        return format!("{}: {}", escaped(test), short(target));
    }
    match &result.jobs[..] {
        [] => "A run without jobs".to_owned(),
        [job] => short(job.name),
        [job, rest @ ..] if rest.iter().all(|other| other.name == job.name) => {
            format!("{}, {} times", short(job.name), rest.len() + 1)
        }
        [job, rest @ ..] => {
            format!(
                "{} and {} more job{}",
                short(job.name),
                rest.len(),
                if rest.len() == 1 { "" } else { "s" }
            )
        }
    }
}

/// The notice about a run that did not reach its planned end. Jobs with errors have a separate notice.
fn end(page: &mut String, result: &Outcome<'_>) {
    let Some(end) = &result.end else { return };
    let (class, words) = match end.status {
        RunStatus::Interrupted => ("notice", "The run was interrupted"),
        RunStatus::Failed if result.jobs.iter().all(|job| job.error == 0) => {
            ("notice error", "The run failed")
        }
        RunStatus::Ended | RunStatus::Failed => return,
    };
    let why = if end.why.is_empty() { String::new() } else { format!(": {}", limited(&end.why)) };
    put!(
        page,
        "<div class=\"{class}\" id=\"end\"><strong>{words}{why}</strong><p>The figures are of what was measured until \
         then.</p></div>\n"
    );
}

fn errors(page: &mut String, result: &Outcome<'_>) {
    let failed: Vec<&Job<'_>> = result.jobs.iter().filter(|job| job.error != 0).collect();
    if failed.is_empty() {
        return;
    }
    put!(
        page,
        "<div class=\"notice error\"><strong>{} of {} jobs had errors</strong><ul>",
        failed.len(),
        result.jobs.len()
    );
    for job in failed.iter().take(MOST_SENTENCES) {
        let words = escaped(&iolite_types::describe_job_error(job.error));
        let more = if job.went_on > 0 {
            format!("; it went on after {} errors", job.went_on)
        } else {
            String::new()
        };
        put!(page, "<li>{}: error {} ({words}){more}</li>", short(job.name), job.error);
    }
    put!(page, "</ul></div>\n");
}

/// What `iolite test` says about its targets.
fn meaning(page: &mut String, result: &Outcome<'_>) {
    if result.tested.is_empty() {
        return;
    }
    put!(page, "<h2>What this means</h2>\n");
    for target in result.tested.iter().take(MOST_ENTRIES) {
        put!(page, "<p><strong>{}</strong>: {}</p>\n<ul>", short(target.name), limited(target.what));
        for (words, evidence) in target.findings.iter().take(MOST_ENTRIES) {
            put!(page, "<li><strong>{}</strong> Evidence: {}.</li>", limited(words), limited(evidence));
        }
        for words in target.meaning.iter().take(MOST_ENTRIES) {
            put!(page, "<li>{}</li>", limited(words));
        }
        put!(page, "</ul>\n");
    }
}

/// The answer in one line per job and direction; the sums first.
fn answer(page: &mut String, result: &Outcome<'_>) {
    put!(
        page,
        "<h2>The answer</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The answer\"><table class=\"summary answer\">\
         <thead><tr><th class=\"name\" scope=\"col\">job</th><th class=\"short\" scope=\"col\">direction</th><th scope=\"col\">IOPS</th>\
         <th scope=\"col\">bandwidth</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">p99.9</th>\
         <th scope=\"col\">errors</th><th class=\"name\" scope=\"col\">over time</th></tr></thead>\n<tbody>\n"
    );
    for (name, rows) in &result.sums {
        for row in rows {
            line(page, &short(name), row, "", "class=\"sum\"");
        }
    }
    for (position, job) in result.jobs.iter().enumerate() {
        let errors = job.errors().to_string();
        for row in &job.rows {
            line(page, &short(job.name), row, &errors, &format!("data-job=\"{position}\""));
        }
        if job.rows.is_empty() {
            put!(
                page,
                "<tr data-job=\"{position}\"><th class=\"name\" scope=\"row\">{}</th><td class=\"short\">–</td><td>no I/O</td><td>–</td>\
                 <td>–</td><td>–</td><td>–</td><td>{errors}</td><td class=\"words\">–</td></tr>\n",
                short(job.name)
            );
        }
    }
    put!(page, "</tbody></table></div>\n");
    for job in result.jobs.iter().filter(|job| !job.searched.is_empty()).take(MOST_ENTRIES) {
        put!(page, "<p><strong>{}</strong>: {}</p>\n", short(job.name), limited(&job.searched.join("; ")));
    }
    put!(
        page,
        "<p class=\"hint\">Latencies are those of completion; with *, total ones. CV is the coefficient of variation: the deviation \
         of the rates of the windows in percent of their mean.</p>\n"
    );
}

fn line(page: &mut String, name: &str, row: &Row, errors: &str, attributes: &str) {
    let direction = row.direction;
    put!(
        page,
        "<tr {attributes} data-direction=\"{direction}\"><th class=\"name\" scope=\"row\">{name}</th>\
         <td class=\"short\"><span class=\"mark {direction}\"></span>{direction}</td>\
         <td data-iops=\"{}\">{}</td><td data-bandwidth=\"{}\">{}</td>",
        row.iops,
        count(row.iops),
        row.bandwidth,
        bandwidth(row.bandwidth),
    );
    let mark = if row.is_total { "*" } else { "" };
    for (value, percentile) in row.percentiles.into_iter().zip(PERCENTILES) {
        match value {
            Some(value) => {
                put!(page, "<td data-p=\"{percentile}\" data-ns=\"{value}\">{}{mark}</td>", latency(value))
            }
            None => put!(page, "<td>–</td>"),
        }
    }
    let words = row.steadiness.map_or_else(|| "–".to_owned(), |steadiness| steadiness.in_short());
    put!(page, "<td>{errors}</td><td class=\"words\">{words}</td></tr>\n");
}

/// Sentences about jobs that one number does not describe.
fn doubts(page: &mut String, result: &Outcome<'_>) {
    let mut sentences = Vec::new();
    let (mut looked_at, mut steady, mut all) = (0, 0, 0);
    for job in &result.jobs {
        for row in &job.rows {
            all += 1;
            let Some(steadiness) = row.steadiness else { continue };
            looked_at += 1;
            steady += usize::from(steadiness.is_one_number());
            sentences.extend(
                steadiness
                    .sentences()
                    .into_iter()
                    .map(|words| format!("{}, {}: {words}", short(job.name), row.direction)),
            );
        }
    }
    if sentences.is_empty() {
        let words = match (looked_at, result.has_series) {
            (0, _) => {
                "The run was too short, or was not sampled, so nothing can be said about how steady it was."
            }
            (_, true) => "Over the run, rates changed little: the figures above describe it.",
            (_, false) => {
                "The samples changed little. (This report has no series, so trends and stalls cannot be seen.)"
            }
        };
        let short = match looked_at {
            some if some > 0 && some < all => {
                format!(" (That is said of {some} of {all} rates; the others ran too short to tell.)")
            }
            _ => String::new(),
        };
        put!(page, "<p>{words}{short}</p>\n");
        return;
    }
    put!(
        page,
        "<div class=\"notice\"><strong>One number does not describe {}</strong><ul>",
        if steady == 0 { "this run" } else { "all of this run" }
    );
    let more = sentences.len().saturating_sub(MOST_SENTENCES);
    for sentence in sentences.iter().take(MOST_SENTENCES) {
        put!(page, "<li>{sentence}</li>");
    }
    if more > 0 {
        put!(page, "<li>and {more} more: see the last column of the table</li>");
    }
    put!(page, "</ul></div>\n");
}

fn warnings(page: &mut String, result: &Outcome<'_>) {
    notices(page, "Warnings of the run", &result.warnings);
    notices(page, "Logs that are not drawn as they are", &result.notes);
}

fn notices(page: &mut String, heading: &str, all: &[&str]) {
    if all.is_empty() {
        return;
    }
    put!(page, "<div class=\"notice\"><strong>{heading}</strong><ul>");
    for one in all.iter().take(MOST_ENTRIES) {
        put!(page, "<li>{}</li>", limited(one));
    }
    put!(page, "</ul></div>\n");
}

/// The names of facts.
const NAMES: [(&str, &str); 46] = [
    ("name", "name"),
    ("kernel", "kernel"),
    ("cpu", "processor"),
    ("cpus", "processors"),
    ("memory_bytes", "memory"),
    ("files", "files"),
    ("file_system", "file system"),
    ("device", "device"),
    ("model", "model"),
    ("firmware", "firmware"),
    ("size_bytes", "size"),
    ("rotational", "rotates"),
    ("scheduler", "scheduler"),
    ("queue", "requests queued"),
    ("logical_block", "logical block"),
    ("physical_block", "physical block"),
    ("kind", "kind"),
    ("serial", "serial number"),
    ("used_bytes", "used"),
    ("largest_request_bytes", "largest request"),
    ("largest_transfer_bytes", "largest command"),
    ("data_per_block_bytes", "data per block"),
    ("metadata", "metadata per block"),
    ("metadata_is", "metadata is"),
    ("protection_information", "protection information"),
    ("protection_information_type", "protection information, type"),
    ("cache", "write cache"),
    ("fua", "forced unit access"),
    ("volatile_write_cache", "volatile cache in the device"),
    ("zone_bytes", "zone"),
    ("zone_capacity_bytes", "of a zone can be used"),
    ("conventional_zones", "conventional zones"),
    ("most_open_zones", "open zones at most"),
    ("most_active_zones", "active zones at most"),
    ("atomic_write_bytes", "largest atomic write"),
    ("write_streams", "write streams"),
    ("fdp_enabled", "data placement (FDP) enabled"),
    ("placement_handles", "placement handles"),
    ("reclaim_unit_bytes", "reclaim unit"),
    ("streams", "streams available"),
    ("power_state", "power state"),
    ("temperature_celsius", "temperature (°C)"),
    ("wear_percent", "wear (%)"),
    ("spare_percent", "spare (%)"),
    ("media_errors", "media errors"),
    ("built_on", "built on"),
];

/// If there are more sections of facts, they are closed at first.
const MOST_OPEN: usize = 12;

/// The machine and the storage of the run.
pub fn surroundings(page: &mut String, result: &Outcome<'_>) {
    if result.host.is_empty() && result.targets.is_empty() {
        return;
    }
    put!(page, "<h2>What it ran on</h2>\n");
    let machines = by_machine(&result.host);
    let targets = result.targets.len().min(MOST_ENTRIES);
    let is_long = machines.len() + targets > MOST_OPEN;
    if is_long {
        put!(page, "<details><summary>Machines and storage</summary>\n");
    }
    machine_table(page, &machines);
    put!(page, "<div class=\"facts\">\n");
    if machines.is_empty() && !result.host.is_empty() {
        section(page, "Machine", &result.host);
    }
    result.targets.iter().take(targets).for_each(|target| section(page, "Storage", target));
    put!(page, "</div>\n{}", if is_long { "</details>\n" } else { "" });
}

/// The facts about one subject. A section with many unnamed facts is closed at first.
pub fn section(page: &mut String, heading: &str, facts: &[(&str, String)]) {
    let is_known = |key: &str| NAMES.iter().any(|(known, _)| *known == key);
    let (known, others): (Vec<_>, Vec<_>) =
        facts.iter().take(MOST_ENTRIES).partition(|(key, _)| is_known(key));
    let list = |page: &mut String, facts: &[&(&str, String)]| {
        put!(page, "<dl>");
        for (key, value) in facts {
            let (name, value) = fact(key, value);
            put!(page, "<dt>{}</dt><dd>{}</dd>", short(&name), limited(&value));
        }
        put!(page, "</dl>");
    };
    put!(page, "<section><h3>{heading}</h3>");
    if others.len() > MOST_OPEN {
        list(page, &known);
        put!(page, "<details><summary>{} more facts</summary>", others.len());
        list(page, &others);
        put!(page, "</details>");
    } else {
        list(page, &facts.iter().take(MOST_ENTRIES).collect::<Vec<_>>());
    }
    put!(page, "</section>\n");
}

/// The name of a fact, and its value, for a person.
fn fact(key: &str, value: &str) -> (Cow<'static, str>, String) {
    let known = NAMES.iter().find(|(known, _)| *known == key);
    let plain = || Cow::from(key.trim_end_matches("_bytes").replace('_', " "));
    let name = known.map_or_else(plain, |(_, name)| Cow::from(*name));
    let amount = value.parse::<f64>().ok().filter(|_| key.ends_with("_bytes") || key.ends_with("_block"));
    (name, amount.map_or_else(|| value.to_owned(), bytes))
}

/// The facts of each machine, for a run on several machines: there, a fact's name is `MACHINE: fact`.
fn by_machine<'a>(facts: &'a [(&'a str, String)]) -> Vec<(&'a str, Vec<(&'a str, &'a str)>)> {
    let mut machines: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
    for (key, value) in facts.iter().take(MOST_ENTRIES * 10) {
        let Some((machine, key)) = key.rsplit_once(": ") else { continue };
        if machines.last().is_none_or(|(last, _)| *last != machine) {
            machines.push((machine, Vec::new()));
        }
        machines.iter_mut().next_back().into_iter().for_each(|(_, facts)| facts.push((key, value)));
    }
    machines
}

/// A row for each machine of several.
fn machine_table(page: &mut String, machines: &[(&str, Vec<(&str, &str)>)]) {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in machines.iter().flat_map(|(_, facts)| facts) {
        if !keys.contains(key) && keys.len() < MOST_OPEN {
            keys.push(key);
        }
    }
    if keys.is_empty() {
        return;
    }
    put!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Machines\"><table><thead><tr>\
         <th class=\"name\" scope=\"col\">machine</th>"
    );
    keys.iter()
        .for_each(|key| put!(page, "<th class=\"name\" scope=\"col\">{}</th>", short(&fact(key, "").0)));
    put!(page, "</tr></thead><tbody>\n");
    for (machine, facts) in machines {
        put!(page, "<tr><th class=\"name\" scope=\"row\">{}</th>", short(machine));
        for key in &keys {
            let found = facts.iter().find(|(known, _)| known == key);
            let value = found.map_or_else(|| "–".to_owned(), |(key, value)| fact(key, value).1);
            put!(page, "<td class=\"name\">{}</td>", limited(&value));
        }
        put!(page, "</tr>\n");
    }
    put!(page, "</tbody></table></div>\n");
}

/// The jobs as a job file, with placeholders for secrets: fio writes options as given.
pub fn options(page: &mut String, result: &Outcome<'_>) {
    /// The most jobs. (The data has all of them, and each job's options are shown next to its pictures.)
    const MOST_JOBS: usize = 100;
    let mut text = String::new();
    let mut section = |name: &str, options: &[(&str, String)]| {
        put!(text, "[{}]\n", short(name));
        for (option, value) in options.iter().filter(|(option, _)| *option != "name").take(MOST_ENTRIES) {
            let between = if value.is_empty() { "" } else { "=" };
            put!(text, "{}{between}{}\n", limited(option), limited(&registry::shown(option, value)));
        }
    };
    if !result.options.is_empty() {
        section("global", &result.options);
    }
    result.jobs.iter().take(MOST_JOBS).for_each(|job| section(job.name, &job.options));
    if result.jobs.len() > MOST_JOBS {
        put!(text, "… and {} more jobs\n", result.jobs.len() - MOST_JOBS);
    }
    put!(page, "<details><summary>The jobs as a job file</summary><pre>{text}</pre></details>\n");
}
