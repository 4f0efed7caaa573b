//! `iolite sweep`: runs one workload with many values of some options, each in a separate run.

mod jobs;
mod load;
mod outcome;
mod presets;
mod table;
mod targets;

use crate::exit_status::INTERRUPTED;
use crate::run_series::directory::{Directory, Place};
use crate::run_series::foresight::Foresight;
use crate::run_series::{self, Course, Points, Start};
use crate::saving;
use iolite_host::Mounts;
use iolite_options::commands::Asked;
use iolite_options::spelling::did_you_mean;
use iolite_options::{Name, RunOptions, registry};
use iolite_sweep::{Axis, MOST_POINTS, Point, points};
use load::{Case, Load};
use outcome::{Measured, Outcome, PointOutcome, Times};
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
            environment: Vec::new(),
            input: self.sweep.runs[position].load.text.clone().into_bytes(),
            may_be_kept: true,
            shows_progress: false,
        })
    }

    fn take(&mut self, position: usize, report: &Value) -> Result<String, String> {
        let run = &self.sweep.runs[position];
        let point = Measured::of(run, &self.sweep.cases[run.case], report)?;
        let words = run_series::short(&point.figures);
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
    let print = match asked.value("output-format") {
        Some("json") => outcome::json,
        Some("csv") => outcome::csv,
        _ => table::text,
    };
    if asked.value("preset") == Some(presets::LIST) {
        if !asked.operands.is_empty() || !asked.job_options.is_empty() {
            return Err("--preset=list describes the presets and runs none; give it alone".to_owned());
        }
        return Ok((presets::list(), 0));
    }
    let (sweep, foresight) = Sweep::of(asked)?;
    let place = asked
        .value("output")
        .map_or_else(|| Place::Usual(usual_place(&sweep)), |path| Place::Named(path.into()));
    let fill = |plan: &mut Value| own_files(&sweep, plan);
    let mut directory = Directory::open(place, "sweep", described(&sweep), &fill)?;
    let began = saving::now_ms();
    let measured = sweep.runs.iter().map(|_| Err("it has not been run".to_owned())).collect();
    let mut measuring = Measuring { sweep, measured };
    announce(program, &measuring, &directory, &foresight);
    let course = run_series::perform(program, &mut measuring, &directory);
    let has_results = !run_series::remove_without_results(&measuring, &directory);
    if !has_results {
        remove_files(&directory);
    } else if !matches!(course, Ok(Course::Through)) {
        tell_what_stays(program, &measuring, &directory);
    }
    if course? == Course::Interrupted {
        return Ok((String::new(), INTERRUPTED));
    }
    let Measuring { sweep, measured } = &measuring;
    let has_failed =
        measured.iter().any(|point| point.as_ref().map_or(true, |point| point.figures.error != 0));
    let times = Times {
        begun: directory.begun_before.unwrap_or(began),
        continued: directory.begun_before.map(|_| began),
    };
    let outcome = Outcome::new(sweep, measured, &times);
    let answer = print(&outcome);
    if !has_results {
        run_series::tell(program, &measuring, "no point has a result, so nothing is kept");
        return Ok((answer, 1));
    }
    directory.write("result.json", &outcome::json(&outcome))?;
    directory.write("result.csv", &outcome::csv(&outcome))?;
    directory.write("result.html", &iolite_page::of_sweep(&outcome.value))?;
    if measured.iter().any(Result::is_err) {
        tell_what_stays(program, &measuring, &directory);
    } else {
        remove_files(&directory);
        directory.finish()?;
    }
    let page = directory.path.join("result.html");
    run_series::tell(program, &measuring, &format!("the page is {}", page.display()));
    Ok((answer, u8::from(has_failed)))
}

/// Removes the files that the sweep has made for its jobs.
fn remove_files(directory: &Directory) {
    files_of(directory).for_each(|file| drop(std::fs::remove_file(file)));
}

/// Reports the files that the sweep has made and leaves for its continuation.
fn tell_what_stays(program: &str, measuring: &Measuring, directory: &Directory) {
    for file in files_of(directory).filter(|file| file.exists()) {
        let what = format!(
            "{}: this file stays, for the same command to continue with it; remove it if you do not",
            file.display()
        );
        run_series::tell(program, measuring, &what);
    }
}

/// Announces the sweep before it begins.
fn announce(program: &str, measuring: &Measuring, directory: &Directory, foresight: &Foresight) {
    run_series::announce(program, measuring, directory, "");
    let own: Vec<PathBuf> = files_of(directory).collect();
    let is_own = |path: &Path| std::path::absolute(path).is_ok_and(|path| own.contains(&path));
    for made in &foresight.made {
        let what = format!("making the directory {}{}", made.display(), Mounts::place_of(made));
        run_series::tell(program, measuring, &what);
    }
    for (path, kind) in foresight.held.iter().filter(|(path, _)| !is_own(path)) {
        let what =
            format!("{}: this {} is written to, and what is there is lost", path.display(), kind.name());
        run_series::tell(program, measuring, &what);
    }
    for file in &own {
        let size = measuring.sweep.runs.iter().map(|run| run.load.bytes).max().unwrap_or(0);
        let size = iolite_page::text::bytes(size as f64);
        let what = format!("{}: a file of {size} is written, and removed in the end", file.display());
        run_series::tell(program, measuring, &what);
    }
}

/// The description by which a resumed sweep is recognised as the same. (Job files may have secrets, so only their fingerprint is kept.)
fn described(sweep: &Sweep) -> Value {
    let runs: Vec<Value> = sweep
        .runs
        .iter()
        .map(|run| json!({ "values": run.words(), "jobs": format!("{:032x}", xxhash_rust::xxh3::xxh3_128(run.load.text.as_bytes())) }))
        .collect();
    json!({ "format": 2, "sweep": sweep.name, "points": runs, "files": null })
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
                    "{}: this file exists, and would be overwritten; remove it (an interrupted sweep may have left it), or \
                     name one with --filename",
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
    /// Parses the options and checks all points; also returns what is known of them. Nothing is written yet.
    fn of(asked: &Asked) -> Result<(Sweep, Foresight), String> {
        let given = &asked.job_options[..];
        let has_jobs = given.iter().any(|(name, _)| name == "name");
        let (mut axes, jobs) = match &asked.operands[..] {
            [] if has_jobs => jobs::split(given)?,
            [_, ..] if has_jobs => {
                return Err("--name begins a job; give either a job file, or jobs in options".to_owned());
            }
            _ => (axes(given)?, None),
        };
        let targets = targets::read(asked)?;
        let its_axis = targets::axis(&targets, &axes)?;
        axes.extend(its_axis);
        let (name, cases) = match (&asked.operands[..], asked.value("preset"), jobs) {
            ([], None, Some(case)) => (case.0, vec![case.1]),
            ([], Some(preset), None) => {
                let of_targets = targets.iter().flat_map(|target| &target.settings).map(|(name, _)| name);
                let set: Vec<&String> = axes.iter().map(|axis| &axis.name).chain(of_targets).collect();
                (preset.to_owned(), presets::cases(preset, &set)?)
            }
            ([file], None, None) => {
                let path = Path::new(file);
                (path.display().to_string(), vec![Case::of_file(path)?])
            }
            (_, Some(_), _) => {
                return Err(
                    "a preset brings its own jobs; give a job file, jobs in options, or --preset".to_owned()
                );
            }
            _ => {
                return Err(
                    "needs one job file, a job in options (--name=a ...), or --preset=NAME".to_owned()
                );
            }
        };
        let one_at_a_time = asked.has("one-at-a-time");
        let combinations = points(&axes, one_at_a_time)?;
        if combinations.len().saturating_mul(cases.len()) > MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} points; take fewer values"));
        }
        let mut runs = Vec::new();
        let mut foresight = Foresight::new(NAME);
        let mut mistakes = Mistakes::default();
        for values in combinations {
            for (case, text) in cases.iter().enumerate() {
                // Results have placeholders for secrets, like all output.
                let mut named: Vec<(String, String)> =
                    values.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect();
                if cases.len() > 1 {
                    named.insert(0, (CASE.to_owned(), text.name.clone()));
                }
                let settings = targets::settings(&values, &targets);
                let (load, jobs) = text.with(&settings)?;
                let owns_file = text.owns_file(&settings);
                let why = foresight.check(vec![jobs], &RunOptions::default()).err().unwrap_or_default();
                mistakes.add(why.iter().map(|why| load.placed(why, text)), &named);
                runs.push(Run { number: runs.len() + 1, case, values: named, load, owns_file });
            }
        }
        mistakes.none_of(runs.len())?;
        let axes = axes.into_iter().map(|Axis { name, values }| Axis {
            values: values.iter().map(|value| shown(&name, value)).collect(),
            name,
        });
        let sweep = Sweep { name, cases, axes: axes.collect(), one_at_a_time, runs };
        Ok((sweep, foresight))
    }
}

/// The mistakes of all points, each once, with the first point that has it and the number of those that do.
#[derive(Default)]
struct Mistakes(Vec<(String, String, usize)>);

impl Mistakes {
    fn add(&mut self, why: impl Iterator<Item = String>, values: &[(String, String)]) {
        for why in why {
            match self.0.iter_mut().find(|(known, ..)| *known == why) {
                Some((.., count)) => *count += 1,
                None => self.0.push((why, joined(values), 1)),
            }
        }
    }

    /// # Errors
    /// There are mistakes.
    fn none_of(self, points: usize) -> Result<(), String> {
        /// The most that are reported.
        const MOST: usize = 10;
        let more = self.0.len().saturating_sub(MOST);
        let mut words: Vec<String> = self
            .0
            .into_iter()
            .take(MOST)
            .map(|(why, first, count)| match count {
                _ if count == points => why,
                1 => format!("{first}: {}", table::without_name(&why, &first)),
                _ => format!("{first} and {} more: {why}", count - 1),
            })
            .collect();
        words.extend((more > 0).then(|| format!("and {more} more mistakes")));
        if words.is_empty() { Ok(()) } else { Err(words.join("; ")) }
    }
}

/// The options and their values.
fn axes(given: &[(String, String)]) -> Result<Vec<Axis>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    for (name, values) in given {
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
    let known = known(name)?;
    if matches!(known, "name" | "stonewall" | "wait_for" | "group_reporting" | "new_group") {
        return Err(format!("--{name}: this option has no values to sweep over"));
    }
    Ok(known)
}

/// The canonical name of an option of jobs.
fn known(name: &str) -> Result<&'static str, String> {
    let definition =
        registry::find_job(name).or_else(|| registry::find_any_engine(name).first().map(|(_, found)| *found));
    definition.map(|definition| definition.name).ok_or_else(|| {
        let meant = registry::suggest(name, "").map(|meant| format!("--{meant}"));
        format!("unknown option --{name}{}", did_you_mean(meant))
    })
}

/// A value for output, without secrets.
fn shown(name: &str, value: &str) -> String {
    registry::shown(name, value).into_owned()
}

/// The name under which points run.
const NAME: Name = Name::Iolite;
