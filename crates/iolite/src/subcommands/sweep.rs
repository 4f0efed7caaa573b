//! `iolite sweep`: runs one workload with many values of some options, each in a separate run.

mod load;
mod outcome;
mod presets;
mod table;
mod targets;

use crate::INTERRUPTED;
use crate::points::directory::Directory;
use crate::points::{self, Course, Points, Start};
use iolite_options::commands::Asked;
use iolite_options::{Name, registry};
use iolite_sweep::{Axis, MOST_POINTS, Point, points};
use load::{Case, Load};
use outcome::{Measured, Outcome, PointOutcome};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The plan of a sweep.
pub struct Sweep {
    /// Its name: the job file, or the preset.
    pub name: String,
    pub cases: Vec<Case>,
    pub axes: Vec<Axis>,
    pub one_at_a_time: bool,
    /// All runs, in order.
    pub runs: Vec<Run>,
}

/// One point.
pub struct Run {
    /// From 1.
    pub number: usize,
    /// The index of its case.
    pub case: usize,
    pub values: Vec<(String, String)>,
    pub load: Load,
    /// The sweep makes its file, and removes it.
    pub owns_file: bool,
}

impl Run {
    /// Its values as text: `iodepth=4 bs=4k`.
    fn words(&self) -> String {
        if self.values.is_empty() { "as it is".to_owned() } else { joined(&self.values) }
    }
}

/// Options and their values as text: `iodepth=4 bs=4k`.
fn joined(values: &[(String, String)]) -> String {
    let words: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.join(" ")
}

/// The name of the value that distinguishes the cases of a preset.
const CASE: &str = "case";

impl Sweep {
    /// Whether points differ in the value of this name.
    pub fn is_varied(&self, name: &str) -> bool {
        name == CASE || self.axes.iter().any(|axis| axis.name == name && axis.values.len() > 1)
    }

    /// The values that distinguish a point from the others.
    pub fn varied<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = &'a (String, String)> {
        run.values.iter().filter(|(name, _)| self.is_varied(name))
    }

    /// The values that all points share.
    pub fn shared(&self) -> Point {
        let values = self.runs.first().map_or(&[][..], |run| &run.values).iter();
        values.filter(|(name, _)| !self.is_varied(name)).cloned().collect()
    }

    /// The name of a point: the values that distinguish it from the others.
    pub fn name_of(&self, run: &Run) -> String {
        let varied: Point = self.varied(run).cloned().collect();
        if varied.is_empty() { run.words() } else { joined(&varied) }
    }
}

/// A sweep and its measurements.
struct Measuring {
    sweep: Sweep,
    measured: Vec<PointOutcome>,
}

impl Points for Measuring {
    fn whole(&self) -> &'static str {
        "sweep"
    }

    fn several(&self) -> &'static str {
        "points"
    }

    fn count(&self) -> usize {
        self.sweep.runs.len()
    }

    fn report(&self, position: usize) -> String {
        format!("point-{:04}.json", self.sweep.runs[position].number)
    }

    fn words(&self, position: usize) -> String {
        self.sweep.name_of(&self.sweep.runs[position])
    }

    fn seconds(&self, position: usize) -> u64 {
        self.sweep.runs[position].load.seconds
    }

    fn start(&self, position: usize) -> Result<Start, String> {
        Ok(Start {
            options: Vec::new(),
            file: Some("-".into()),
            input: self.sweep.runs[position].load.text.clone().into_bytes(),
            may_be_kept: true,
        })
    }

    fn take(&mut self, position: usize, report: &Value) -> Result<String, String> {
        let run = &self.sweep.runs[position];
        let point = Measured::of(run, &self.sweep.cases[run.case], report)?;
        let words = points::short(&point.figures);
        self.measured[position] = Ok(point);
        Ok(words)
    }

    fn give_up(&mut self, position: usize, why: &str) -> String {
        let case = &self.sweep.cases[self.sweep.runs[position].case];
        let prefix = format!("{}: ", NAME.word());
        let line = |line: &str| {
            self.sweep.runs[position].load.placed(line.strip_prefix(&prefix).unwrap_or(line), case)
        };
        let why = why.lines().map(line).collect::<Vec<_>>().join("; ");
        self.measured[position] = Err(format!("the run failed: {why}"));
        why
    }
}

/// The answer as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    let print = match asked.value('f') {
        None | Some("table") => table::text,
        Some("json") => outcome::json,
        Some("csv") => outcome::csv,
        Some(other) => return Err(format!("--output-format={other}: not one of table, json, csv")),
    };
    let sweep = Sweep::of(asked)?;
    let place = asked.value('o').map_or_else(|| usual_place(&sweep), PathBuf::from);
    let mut directory = Directory::open(&place, "sweep", described(&sweep), |plan| own_files(&sweep, plan))?;
    let measured = sweep.runs.iter().map(|_| Err("it has not been run".to_owned())).collect();
    let mut measuring = Measuring { sweep, measured };
    let is_missing = (0..measuring.count()).any(|position| !directory.has(&measuring.report(position)));
    // It was complete once, but a report has disappeared since.
    if is_missing && directory.plan["files"].is_null() {
        own_files(&measuring.sweep, &mut directory.plan)?;
        directory.keep_plan()?;
    }
    announce(program, &measuring, &directory);
    let course = points::perform(program, &mut measuring, &directory);
    if !matches!(course, Ok(Course::Through)) {
        tell_what_stays(program, &measuring, &directory);
    }
    if course? == Course::Interrupted {
        return Ok((String::new(), INTERRUPTED));
    }
    let Measuring { sweep, measured } = &measuring;
    let has_failed =
        measured.iter().any(|point| point.as_ref().map_or(true, |point| point.figures.error != 0));
    let outcome = Outcome::new(sweep, measured);
    directory.write("result.json", &outcome::json(&outcome))?;
    directory.write("result.csv", &outcome::csv(&outcome))?;
    directory.write("result.html", &iolite_page::of_sweep(&outcome.value))?;
    let answer = print(&outcome);
    if measured.iter().any(Result::is_err) {
        tell_what_stays(program, &measuring, &directory);
    } else {
        files_of(&directory).for_each(|file| drop(std::fs::remove_file(file)));
        // A later file with this name is not the sweep's.
        directory.plan["files"] = Value::Null;
        directory.keep_plan()?;
    }
    points::tell(program, &measuring, &format!("the page is {}", place.join("result.html").display()));
    Ok((answer, u8::from(has_failed)))
}

/// Reports the files that the sweep has made and leaves for its continuation.
fn tell_what_stays(program: &str, measuring: &Measuring, directory: &Directory) {
    for file in files_of(directory).filter(|file| file.exists()) {
        let what = format!(
            "{}: this file stays, for the same command to continue with it; remove it if you do not",
            file.display()
        );
        points::tell(program, measuring, &what);
    }
}

/// Announces the sweep before it begins.
fn announce(program: &str, measuring: &Measuring, directory: &Directory) {
    points::announce(program, measuring, directory, "");
    for file in files_of(directory) {
        let size = measuring.sweep.runs.iter().map(|run| run.load.bytes).max().unwrap_or(0);
        let size = iolite_page::text::bytes(size as f64);
        let what = format!("{}: a file of {size} is written, and removed in the end", file.display());
        points::tell(program, measuring, &what);
    }
}

/// The description by which a resumed sweep is recognised as the same. (Job files may have secrets, so only their fingerprint is kept.)
fn described(sweep: &Sweep) -> Value {
    let runs: Vec<Value> = sweep
        .runs
        .iter()
        .map(|run| json!({ "values": run.words(), "jobs": format!("{:032x}", xxhash_rust::xxh3::xxh3_128(run.load.text.as_bytes())) }))
        .collect();
    json!({ "format": 1, "sweep": sweep.name, "points": runs, "files": null })
}

/// Files that the sweep makes for its jobs and removes at the end.
fn files_of(directory: &Directory) -> impl Iterator<Item = PathBuf> {
    directory.plan["files"].as_array().into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from)
}

/// Adds the files that a preset makes to the plan. None of them may exist: it would be overwritten.
fn own_files(sweep: &Sweep, plan: &mut Value) -> Result<(), String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for run in &sweep.runs {
        for file in run.load.files.iter().filter(|_| run.owns_file) {
            let file = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
            if std::fs::symlink_metadata(&file).is_ok() {
                return Err(format!(
                    "{}: this file exists, and would be overwritten; remove it, or name one with --filename",
                    file.display()
                ));
            }
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    plan["files"] = files.iter().map(|file| Value::from(file.display().to_string())).collect();
    Ok(())
}

/// The default directory of a sweep: named after its job file, in the current directory.
fn usual_place(sweep: &Sweep) -> PathBuf {
    let name = Path::new(&sweep.name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    PathBuf::from(format!("{}.sweep", if name.is_empty() || name == "-" { "iolite" } else { &name }))
}

impl Sweep {
    /// Parses the options. Nothing is written yet.
    fn of(asked: &Asked) -> Result<Sweep, String> {
        let mut axes = axes(asked)?;
        let targets = targets::read(asked)?;
        let its_axis = targets::axis(&targets, &axes)?;
        axes.extend(its_axis);
        let (name, cases) = match (&asked.operands[..], asked.value('p')) {
            ([], Some(preset)) => {
                let of_targets = targets.iter().flat_map(|target| &target.settings).map(|(name, _)| name);
                let set: Vec<&String> = axes.iter().map(|axis| &axis.name).chain(of_targets).collect();
                (preset.to_owned(), presets::cases(preset, &set)?)
            }
            ([file], None) => {
                let path = Path::new(file);
                (path.display().to_string(), vec![Case::of_file(path)?])
            }
            (_, Some(_)) => {
                return Err("a preset brings its own jobs; give a job file or --preset".to_owned());
            }
            _ => return Err("needs one job file, or --preset=NAME".to_owned()),
        };
        let one_at_a_time = asked.value('1').is_some();
        let combinations = points(&axes, one_at_a_time)?;
        if combinations.len().saturating_mul(cases.len()) > MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} points; take fewer values"));
        }
        let mut runs = Vec::new();
        for values in combinations {
            for (case, text) in cases.iter().enumerate() {
                // Results have placeholders for secrets, like all output.
                let mut named: Vec<(String, String)> =
                    values.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect();
                if cases.len() > 1 {
                    named.insert(0, (CASE.to_owned(), text.name.clone()));
                }
                let settings = targets::settings(&values, &targets);
                let load = text.with(&settings)?;
                let owns_file = text.owns_file(&settings);
                runs.push(Run { number: runs.len() + 1, case, values: named, load, owns_file });
            }
        }
        let axes = axes.into_iter().map(|Axis { name, values }| Axis {
            values: values.iter().map(|value| shown(&name, value)).collect(),
            name,
        });
        Ok(Sweep { name, cases, axes: axes.collect(), one_at_a_time, runs })
    }
}

/// The options and their values.
fn axes(asked: &Asked) -> Result<Vec<Axis>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    for (name, values) in &asked.job_options {
        let known = checked(name)?;
        if axes.iter().any(|axis| axis.name == known) {
            return Err(format!("--{name} is given twice; give all values at once: --{name}=1,4"));
        }
        axes.push(Axis::parse(known, values).map_err(|why| format!("--{name}={values}: {why}"))?);
    }
    Ok(axes)
}

/// The canonical name of an option that may be swept.
fn checked(name: &str) -> Result<&'static str, String> {
    let definition =
        registry::find_job(name).or_else(|| registry::find_any_engine(name).first().map(|(_, found)| *found));
    let Some(definition) = definition else {
        let meant =
            registry::suggest(name, "").map(|meant| format!("; did you mean --{meant}?")).unwrap_or_default();
        return Err(format!("unknown option --{name}{meant}"));
    };
    if matches!(definition.name, "name" | "stonewall" | "wait_for" | "group_reporting" | "new_group") {
        return Err(format!("--{name}: this option has no values to sweep over"));
    }
    Ok(definition.name)
}

/// A value for output, without secrets.
fn shown(name: &str, value: &str) -> String {
    registry::shown(name, value).into_owned()
}

/// The name under which points run.
const NAME: Name = Name::Iolite;
