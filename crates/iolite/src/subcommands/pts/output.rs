//! The result: its header, JSON, page, and text.

use super::cache::Set;
use super::choices::Choices;
use super::purge::Purge;
use super::state::State;
use super::target::Target;
use crate::messages::program;
use crate::run_series::directory::Directory;
use crate::saving::now_ms;
use crate::subcommands::kept_result;
use crate::subcommands::performer::NAME;
use iolite_host::about;
use iolite_page::text::{bandwidth, count, latency};
use iolite_procedures::pts::result::{DISCLAIMER, MARK, SPECIFICATION, VERSION};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The files of the result.
pub const PAGE: &str = "result.html";
const JSON: &str = "result.json";

/// The most reasons that are listed in the text.
const MOST_TOLD: usize = 8;

/// What is told about the procedure as a whole.
pub struct Header {
    device: Value,
    machine: Value,
    parameters: Value,
    /// What the purges of units did.
    purges: Map<String, Value>,
    cache: Value,
    begun_ms: u64,
    /// Why the result does not conform, apart from interruptions.
    deviations: Vec<String>,
}

impl Header {
    pub fn of(target: &Target, choices: &Choices, directory: &Directory) -> Header {
        let mut deviations = choices.settings.deviations();
        if choices.purge == Purge::None {
            deviations.push("the device is not purged".to_owned());
        }
        let machine: Map<String, Value> =
            about::this_host().into_iter().map(|(name, value)| (name, value.into())).collect();
        deviations.extend(choices.left_out.clone());
        Header {
            device: target.facts(),
            machine: machine.into(),
            parameters: choices.told(),
            purges: Map::new(),
            cache: Value::Null,
            begun_ms: directory.plan["begun_ms"].as_u64().unwrap_or_else(now_ms),
            deviations,
        }
    }

    /// What the purge of a unit did.
    pub fn take_purge(&mut self, name: &str, words: &str) {
        self.purges.insert(name.trim_end_matches("-purge").to_owned(), words.into());
    }

    /// What was done about the write cache.
    pub fn take_cache(&mut self, wanted: bool, set: &Set) {
        let wanted = if wanted { "on" } else { "off" };
        self.cache = match set {
            Set::Wanted => wanted.into(),
            Set::Absent => "the device has none".into(),
            Set::Not(why) => {
                self.deviations.push(format!("the write cache could not be switched {wanted}: {why}"));
                format!("not settable, and as it was found ({why})").into()
            }
        };
    }

    /// Why the result does not conform, with the units that went on after an interruption.
    pub fn deviations(&self, state: &State) -> Vec<String> {
        let interrupted = state.interrupted.iter().map(|unit| format!("{unit} was interrupted, and went on"));
        let others = state.written_by_others.iter().cloned();
        self.deviations.iter().cloned().chain(interrupted).chain(others).collect()
    }

    /// The result.
    pub fn result(&self, tests: &[Value], state: &State, is_complete: bool) -> Value {
        let program = program(NAME);
        let deviations = self.deviations(state);
        json!({
            MARK: VERSION,
            "specification": SPECIFICATION,
            "disclaimer": DISCLAIMER,
            "complete": is_complete,
            "conforming": is_complete && deviations.is_empty(),
            "deviations": deviations,
            "interruptions": state.interruptions,
            "program": program.own_version,
            "begun_ms": self.begun_ms,
            "ended_ms": now_ms(),
            "header": {
                "device": self.device,
                "machine": self.machine,
                "parameters": self.parameters,
                "write_cache": self.cache,
                "purges": self.purges,
                "preconditioning": "twice the capacity in order, 128 KiB, one worker, 32 in flight; then rounds of the test itself",
            },
            "tests": tests,
        })
    }
}

/// Writes the result.
pub fn write(directory: &Directory, result: &Value) -> Result<(), String> {
    directory.write(JSON, &format!("{result:#}\n"))?;
    directory.write(PAGE, &iolite_page::of_pts(result))
}

/// The result as a report, whose jobs are the tests.
pub fn report(result: &Value) -> String {
    let jobs = list(&result["tests"]).iter().map(|test| json!({"jobname": test["name"]})).collect();
    let begun_ms = result["begun_ms"].as_u64().unwrap_or_else(now_ms);
    let failure = (!is_good(result)).then_some("a steady state was not reached");
    kept_result::report("pts", result.clone(), &text(result), begun_ms, jobs, failure).to_string()
}

/// Whether all tests reached their steady state.
pub fn is_good(result: &Value) -> bool {
    // Write saturation ends when it is told to.
    let tests = list(&result["tests"]).iter().filter(|test| test["test"] != "wsat");
    tests.into_iter().all(|test| test["steady"]["reached"] != false)
}

/// The result for a terminal.
pub fn text(result: &Value) -> String {
    let mut out = String::new();
    let told = ["name", "model", "serial"].map(|key| text_of(&result["header"]["device"][key]));
    line!(out, "{}", told.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    line!(out, "{SPECIFICATION}\n{DISCLAIMER}");
    let deviations = list(&result["deviations"]);
    for why in deviations.iter().take(MOST_TOLD) {
        line!(out, "NOT CONFORMING: {}", text_of(why));
    }
    if let more @ 1.. = deviations.len().saturating_sub(MOST_TOLD) {
        line!(out, "NOT CONFORMING: {more} more reasons, which {PAGE} and {JSON} list");
    }
    for words in list(&result["interruptions"]) {
        line!(out, "Interrupted: {}", text_of(words));
    }
    for test in list(&result["tests"]) {
        of_test(&mut out, test);
    }
    String::from_utf8_lossy(&crate::console::harmless(out.as_bytes())).into_owned()
}

fn of_test(out: &mut String, test: &Value) {
    line!(out, "\n{} ({})", text_of(&test["title"]), text_of(&test["name"]));
    if let Some(words) = iolite_page::steady_in_words(test) {
        line!(out, "  {words}");
    }
    match text_of(&test["test"]) {
        "iops" => matrix(out, test, "iops", count),
        "tp" => matrix(out, test, "bw_bytes", bandwidth),
        "lat" => {
            line!(out, "  mean");
            matrix(out, test, "mean_ns", latency);
            line!(out, "  longest");
            matrix(out, test, "max_ns", latency);
        }
        "dirth" | "ecw" => demands(out, test),
        _ => {}
    }
    for (group, rate, mean) in iolite_page::groups(test) {
        line!(out, "  {group}: {rate}, {} on average", latency(mean));
    }
}

/// A row for each block size, a column for each mix.
fn matrix(out: &mut String, test: &Value, key: &str, words: fn(f64) -> String) {
    let cells = list(&test["matrix"]);
    let mut mixes: Vec<u64> = Vec::new();
    let mut blocks: Vec<&str> = Vec::new();
    for cell in cells {
        let (mix, block) = (cell["read_percent"].as_u64().unwrap_or(0), text_of(&cell["block"]));
        if !mixes.contains(&mix) {
            mixes.push(mix);
        }
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    let heads: String = mixes.iter().map(|mix| format!("{:>11}", format!("{mix}/{}", 100 - mix))).collect();
    line!(out, "  {:>10}{heads}", "read/write");
    for block in blocks {
        let of_mix = |mix: &u64| {
            let found = cells.iter().find(|cell| cell["block"] == block && cell["read_percent"] == *mix);
            let value = found.and_then(|cell| cell[key].as_f64());
            format!("{:>11}", value.map_or_else(|| "-".to_owned(), words))
        };
        line!(out, "  {block:>10}{}", mixes.iter().map(of_mix).collect::<String>());
    }
}

/// A row for each number of threads, a column for each depth.
fn demands(out: &mut String, test: &Value) {
    let cells = list(&test["matrix"]);
    let mut numbers: Vec<u64> = cells.iter().filter_map(|cell| cell["threads"].as_u64()).collect();
    numbers.dedup();
    let heads: String = numbers.iter().map(|depth| format!("{:>9}", format!("q{depth}"))).collect();
    line!(out, "  {:>10}{heads}", "IOPS");
    for threads in &numbers {
        let of_depth = |depth: &u64| {
            let found = cells.iter().find(|cell| cell["threads"] == *threads && cell["depth"] == *depth);
            let value = found.and_then(|cell| cell["iops"].as_f64());
            format!("{:>9}", value.map_or_else(|| "-".to_owned(), count))
        };
        line!(
            out,
            "  {:>10}{}",
            format!("{threads} threads"),
            numbers.iter().map(of_depth).collect::<String>()
        );
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
