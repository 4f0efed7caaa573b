//! `--repeat`: runs job files several times, in random order, and summarises the results.
//!
//! A single run cannot show how much runs differ, so comparisons need repeats (docs/comparing.md). Repeats are most
//! useful if the job files take turns. Each is a run of this program in a separate process, like a point of a sweep.

mod cases;
mod spread;

use crate::console;
use crate::exit_status::INTERRUPTED;
use crate::messages::{complain, told};
use crate::run_series::directory::{Directory, Place};
use crate::run_series::{self, Course, Points, Start};
use crate::subcommands::compare::Answer;
use cases::Case;
use iolite_compare::{Run, Side, order};
use iolite_options::{EtaWhen, Name, OutputFormat, Repeated, RunOptions};
use iolite_report::clock;
use iolite_sweep::Figures;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Runs all repeats and prints the summary; returns the exit status.
pub fn run(name: Name, repeated: &Repeated) -> u8 {
    match perform(name, repeated) {
        Ok(status) => status,
        Err(problems) => {
            problems.iter().for_each(|problem| complain(name, problem));
            1
        }
    }
}

fn perform(name: Name, repeated: &Repeated) -> Result<u8, Vec<String>> {
    let one = |why: String| vec![why];
    if !repeated.obstacles.is_empty() {
        return Err(repeated.obstacles.iter().map(ToString::to_string).collect());
    }
    let cases = cases::read(name, repeated)?;
    for case in &cases {
        console::print_error(&told(name, &case.warnings));
    }
    if repeated.run.parse_only {
        return Ok(cases.into_iter().map(|case| case.check(name)).max().unwrap_or(0));
    }
    let cases = cases::kept(name, repeated, cases)?;
    let place = match &repeated.run.output {
        Some(path) => Place::Named(path.clone()),
        None => Place::Usual(usual_place(&cases)),
    };
    let fill = |plan: &mut Value| {
        let seed =
            iolite_os::process::secret::<4>().map_err(|error| format!("no seed can be had: {error}"))?;
        if plan["seed"].is_null() {
            plan["seed"] = u32::from_ne_bytes(seed).into();
        }
        Ok(())
    };
    let mut directory =
        Directory::open(place, "series of repeats", described(repeated, &cases), &fill).map_err(one)?;
    let seed = directory.plan["seed"].as_u64().unwrap_or(0);
    let mut repeats = Repeats {
        name,
        order: order(cases.len(), repeated.repeat.times as usize, seed),
        runs: cases.iter().map(|_| Vec::new()).collect(),
        cases,
        repeated,
        warned: BTreeSet::new(),
        place: directory.path.clone(),
        has_failed: false,
        is_kept: true,
        about: About::default(),
    };
    let several = repeats.cases.len() > 1;
    let more = format!(" of {} job files, in random order (seed {seed})", repeats.cases.len());
    run_series::announce(name.word(), &repeats, &directory, if several { &more } else { "" });
    repeats.warn_of_other_names();
    let course = run_series::perform(name.word(), &mut repeats, &directory);
    run_series::remove_without_results(&repeats, &directory);
    let course = course.map_err(one)?;
    if course == Course::Interrupted {
        return Ok(INTERRUPTED);
    }
    let is_missing = repeats.runs.iter().any(|runs| runs.len() < repeated.repeat.times as usize);
    let status = u8::from(is_missing || repeats.has_failed || !repeats.is_kept);
    let (text, json) = repeats.answer().map_err(one)?;
    if repeats.is_for_the_store() && status == 0 {
        let names = (0..repeats.count()).map(|position| repeats.report(position));
        directory.remove(names);
    } else {
        directory.write("result.json", &json).map_err(one)?;
        if !is_missing {
            directory.finish().map_err(one)?;
        }
    }
    let is_readable = !repeats.has_format(OutputFormat::Json) && !repeats.has_format(OutputFormat::JsonPlus);
    let is_readable = is_readable || repeats.repeated.run.is_for_people();
    console::print(if is_readable { &text } else { &json })
        .map_err(|error| one(format!("standard output cannot be written: {error}")))?;
    Ok(status)
}

/// The default directory of repeats: named after the job files, in the current directory.
fn usual_place(cases: &[Case]) -> PathBuf {
    /// File systems take names of 255 bytes.
    const MOST: usize = 60;
    let stems: Vec<&str> = cases.iter().map(|case| case.stem.as_str()).collect();
    let name: String = stems.join("-").chars().take(MOST).collect();
    PathBuf::from(format!("{name}.repeat"))
}

/// The description by which resumed repeats are recognised as the same.
fn described(repeated: &Repeated, cases: &[Case]) -> Value {
    let files: Vec<Value> = cases
        .iter()
        .map(|case| json!({ "file": case.shown, "jobs": format!("{:032x}", case.fingerprint) }))
        .collect();
    json!({ "format": 2, "repeat": repeated.repeat.times, "files": files, "seed": repeated.repeat.seed })
}

/// All runs.
struct Repeats<'a> {
    name: Name,
    repeated: &'a Repeated,
    cases: Vec<Case>,
    /// The round and the case of each run.
    order: Vec<(usize, usize)>,
    /// The runs of each case.
    runs: Vec<Vec<Run>>,
    /// The warnings that were printed, by case.
    warned: BTreeSet<(usize, String)>,
    place: PathBuf,
    /// Some run had an error.
    has_failed: bool,
    /// All runs that must be kept have been kept.
    is_kept: bool,
    about: About,
}

/// When and where the runs were made.
#[derive(Default)]
struct About {
    /// When the first and the last ended, in milliseconds since 1970.
    ended: Option<(u64, u64)>,
    hosts: BTreeSet<String>,
    devices: BTreeSet<String>,
}

impl About {
    fn take(&mut self, report: &Value) {
        if let Some(time) = report["timestamp_ms"].as_u64() {
            let (first, last) = self.ended.unwrap_or((time, time));
            self.ended = Some((first.min(time), last.max(time)));
        }
        let host = report["iolite"]["host"]["name"].as_str().unwrap_or_default();
        for (known, word) in [(&mut self.hosts, host), (&mut self.devices, &run_series::devices(report))] {
            if !word.is_empty() {
                known.insert(word.to_owned());
            }
        }
    }

    /// A line for people: `2026-11-20 12:33 to 2026-11-20 12:41, host a, device vda`.
    fn line(&self) -> String {
        let mut words: Vec<String> = self
            .ended
            .map(|(first, last)| match [first, last].map(clock::minute) {
                [first, last] if first == last => first,
                [first, last] => format!("{first} to {last}"),
            })
            .into_iter()
            .collect();
        for (name, known) in [("host", &self.hosts), ("device", &self.devices)] {
            let all: Vec<&str> = known.iter().map(String::as_str).collect();
            if !all.is_empty() {
                words.push(format!("{name} {}", all.join("|")));
            }
        }
        String::from_utf8_lossy(&console::harmless(words.join(", ").as_bytes())).into_owned()
    }
}

impl Points for Repeats<'_> {
    fn whole(&self) -> &'static str {
        "repeat"
    }

    fn several(&self) -> &'static str {
        "runs"
    }

    fn is_quiet(&self) -> bool {
        self.repeated.run.eta == EtaWhen::Never
    }

    fn count(&self) -> usize {
        self.order.len()
    }

    fn report(&self, position: usize) -> String {
        let (round, case) = self.order[position];
        let digits = self.repeated.repeat.times.to_string().len();
        format!("{}/run-{:0digits$}.json", self.cases[case].stem, round + 1)
    }

    fn words(&self, position: usize) -> String {
        let (round, case) = self.order[position];
        format!("{}, run {}", self.cases[case].shown, round + 1)
    }

    fn seconds(&self, position: usize) -> u64 {
        self.cases[self.order[position].1].seconds
    }

    fn start(&self, position: usize) -> Result<Start, String> {
        self.cases[self.order[position].1].start(self.name, self.repeated)
    }

    fn keep(&mut self, position: usize, text: &str) {
        if let Some(saving) = &self.cases[self.order[position].1].saving {
            self.is_kept &= saving.keep_text(text);
        }
        if self.has_format(OutputFormat::Html) {
            let path = self.place.join(self.report(position)).with_extension("html");
            let page = iolite_page::of_text(text).map_err(|error| error.to_string());
            let written =
                page.and_then(|page| std::fs::write(&path, page).map_err(|error| error.to_string()));
            if let Err(why) = written {
                complain(self.name, &format_args!("--output-format=html: {}: {why}", path.display()));
                self.has_failed = true;
            }
        }
    }

    fn take(&mut self, position: usize, report: &Value) -> Result<String, String> {
        let name = self.place.join(self.report(position)).display().to_string();
        let run = Run::of(&name, report).map_err(|error| error.of(&name))?;
        let figures = Figures::of(report).map_err(|error| error.of(&name))?;
        self.has_failed |= figures.error != 0;
        self.tell_warnings(position, report);
        self.about.take(report);
        self.runs[self.order[position].1].push(run);
        Ok(run_series::short(&figures))
    }
}

impl Repeats<'_> {
    fn has_format(&self, format: OutputFormat) -> bool {
        self.repeated.run.output_format.contains(&format)
    }

    /// Whether the directory only holds temporary files until the results are in the store.
    fn is_for_the_store(&self) -> bool {
        let RunOptions { save, output, .. } = &self.repeated.run;
        save.is_some() && output.is_none() && !self.has_format(OutputFormat::Html)
    }

    /// Prints the warnings of a run, each once for all runs of its job file. (Those about the job file itself were
    /// printed before the first run.)
    fn tell_warnings(&mut self, position: usize, report: &Value) {
        let case = self.order[position].1;
        let warnings = report["iolite"]["warnings"].as_array().into_iter().flatten();
        for words in warnings.filter_map(Value::as_str) {
            let is_about_the_file = self.cases[case]
                .warnings
                .iter()
                .any(|warning| words.replacen("warning: ", "", 1).ends_with(&warning.message));
            if !is_about_the_file && self.warned.insert((case, words.to_owned())) {
                let what = format!("warning: {}: {words}", self.words(position));
                run_series::tell(self.name.word(), self, &what);
            }
        }
    }

    /// Jobs are compared by name.
    fn warn_of_other_names(&self) {
        let Some((base, others)) = self.cases.split_first() else { return };
        for new in others.iter().filter(|new| base.names.is_disjoint(&new.names)) {
            let what = format!(
                "warning: no job of {} is called like one of {}, so nothing of them will be compared",
                new.shown, base.shown
            );
            run_series::tell(self.name.word(), self, &what);
        }
    }

    /// The answer of all runs: for people, and for programs.
    fn answer(&mut self) -> Result<(String, String), String> {
        let mut sides = Vec::new();
        for (case, runs) in self.cases.iter().zip(&mut self.runs) {
            if runs.is_empty() {
                return Err(format!("{}: all of its runs have failed", case.shown));
            }
            runs.sort_by(|one, other| one.name.cmp(&other.name));
            sides.push(Side { name: case.shown.clone(), runs: std::mem::take(runs) });
        }
        let about = self.about.line();
        let [_, _, ..] = &sides[..] else {
            return Ok(sides
                .first()
                .map(|side| (spread::text(side, &about), spread::json(side, &about)))
                .unwrap_or_default());
        };
        // Two job files are compared by the options in which they differ.
        let different = iolite_compare::differing(&sides);
        let allowed: Vec<String> = different.iter().map(|name| (*name).to_owned()).collect();
        let answer = Answer::of(sides, &allowed)?;
        let mut text = answer.text();
        text += &format!("Measured {}.\n", about);
        if !different.is_empty() {
            text += &format!(
                "The job files differ in {}; these differences are compared.\n",
                different.join(", ")
            );
        }
        if let Some(sides) = self.sides() {
            let mut command = format!("iolite compare {}", sides.join(" "));
            if !different.is_empty() {
                command += &format!(" --allow={}", different.join(","));
            }
            text += &format!("The same once more: {command}\n");
        }
        Ok((text, answer.json()))
    }

    /// The sides for `iolite compare`; `None` = the runs in the store have no label.
    fn sides(&self) -> Option<Vec<String>> {
        let label = |case: &Case| {
            let label = case.saving.as_ref().map_or("", |saving| saving.label());
            (!label.is_empty()).then(|| format!("label:{label}"))
        };
        let side = |case: &Case| match self.is_for_the_store() {
            true => label(case),
            false => Some(self.place.join(&case.stem).display().to_string()),
        };
        self.cases.iter().map(side).collect()
    }
}
