//! `iolite sweep`: one workload with many values of some options, each as a run of its own.

mod directory;
mod load;
mod outcome;
mod presets;
mod runner;
mod table;

use directory::Directory;
use iolite_options::commands::Asked;
use iolite_options::{Name, engines, registry};
use iolite_sweep::{Axis, MOST_POINTS, points};
use load::{Case, Load};
use outcome::{Measured, Outcome};
use runner::{End, Runner};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The exit status when a signal ended it, as of a run.
const INTERRUPTED: u8 = 128;

/// What is to be done.
pub struct Sweep {
    /// What it is called: the job file, or the preset.
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
    /// Which of the cases.
    pub case: usize,
    pub values: Vec<(String, String)>,
    pub load: Load,
}

impl Run {
    /// Its values in words: `iodepth=4 bs=4k`.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if words.is_empty() { "as it is".to_owned() } else { words.join(" ") }
    }
}

/// The answer in words, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    let print = match asked.value('f') {
        None | Some("table") => table::text,
        Some("json") => outcome::json,
        Some("csv") => outcome::csv,
        Some(other) => return Err(format!("--output-format={other}: not one of table, json, csv")),
    };
    let sweep = Sweep::of(asked)?;
    let place = asked.value('o').map_or_else(|| usual_place(&sweep), PathBuf::from);
    let mut directory = Directory::open(&place, &sweep)?;
    announce(program, &sweep, &directory);
    let mut runner = Runner::new().map_err(|error| format!("signals cannot be received: {error}"))?;
    let mut measured: Vec<Option<Measured>> = Vec::new();
    let begun = Instant::now();
    let mut done = 0;
    for (position, run) in sweep.runs.iter().enumerate() {
        if let Some(report) = directory.report(run.number)? {
            measured.push(Some(Measured::of(run, &report)?));
            continue;
        }
        let end = runner.perform(&run.load.text, &directory.growing(run.number))?;
        let report = match end {
            End::Interrupted => {
                directory.give_up(run.number);
                let left = sweep.runs.len() - position;
                tell(
                    program,
                    &format!(
                        "interrupted with {left} of {} points left; the same command goes on in {}",
                        sweep.runs.len(),
                        place.display()
                    ),
                );
                return Ok((String::new(), INTERRUPTED));
            }
            End::Failed(why) => Err(why),
            End::Done => directory.complete(run.number),
            End::Doubtful(words) if !directory.has_moved(run.number) => Err(words),
            End::Doubtful(_) => directory.complete(run.number),
        };
        done += 1;
        let left = sweep.runs[position + 1..].iter().filter(|run| !directory.has(run.number)).count();
        let progress = format!("[{}/{}] {}", position + 1, sweep.runs.len(), run.words());
        match report.and_then(|report| Measured::of(run, &report)) {
            Ok(point) => {
                tell(
                    program,
                    &format!(
                        "{progress}: {}{}",
                        table::short(&point.figures),
                        time_left(begun.elapsed(), done, left)
                    ),
                );
                measured.push(Some(point));
            }
            Err(why) => {
                directory.give_up(run.number);
                tell(program, &format!("{progress}: failed: {}", why.trim()));
                measured.push(None);
            }
        }
    }
    drop(runner);
    let has_failed = measured.iter().any(|point| point.as_ref().is_none_or(|point| point.figures.error != 0));
    let outcome = Outcome::new(&sweep, &measured);
    directory.write("result.json", &outcome::json(&outcome))?;
    directory.write("result.csv", &outcome::csv(&outcome))?;
    directory.write("result.html", &iolite_page::of_sweep(&outcome.value))?;
    if !has_failed {
        directory.clean_up();
    }
    tell(program, &format!("the page is {}", place.join("result.html").display()));
    Ok((print(&outcome), u8::from(has_failed)))
}

fn tell(program: &str, what: &str) {
    crate::complain(program, &format_args!("sweep: {what}"));
}

/// What is about to happen, before it does.
fn announce(program: &str, sweep: &Sweep, directory: &Directory) {
    let there = sweep.runs.iter().filter(|run| directory.has(run.number)).count();
    let seconds: u64 =
        sweep.runs.iter().filter(|run| !directory.has(run.number)).map(|run| run.load.seconds).sum();
    let time = if seconds > 0 {
        format!(", at least {}", iolite_page::text::seconds(seconds as f64))
    } else {
        String::new()
    };
    let known = if there > 0 { format!(" ({there} of them are there already)") } else { String::new() };
    tell(
        program,
        &format!("{} points{known}{time}; results go to {}", sweep.runs.len(), directory.path.display()),
    );
    for file in &directory.files {
        let size = sweep.runs.iter().map(|run| run.load.bytes).max().unwrap_or(0);
        let size = iolite_page::text::bytes(size as f64);
        tell(program, &format!("{}: a file of {size} is written, and removed in the end", file.display()));
    }
}

fn time_left(elapsed: Duration, done: u32, left: usize) -> String {
    if left == 0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / f64::from(done) * left as f64;
    format!("; {left} left, about {}", iolite_page::text::seconds(seconds.ceil()))
}

/// The directory of a sweep that names none: beside its job file's name, where it was started.
fn usual_place(sweep: &Sweep) -> PathBuf {
    let name = Path::new(&sweep.name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    PathBuf::from(format!("{}.sweep", if name.is_empty() || name == "-" { "iolite" } else { &name }))
}

impl Sweep {
    /// Reads what was asked for. Nothing is changed yet.
    fn of(asked: &Asked) -> Result<Sweep, String> {
        let axes = axes(asked)?;
        let (name, cases) = match (&asked.operands[..], asked.value('p')) {
            ([], Some(preset)) => (preset.to_owned(), presets::cases(preset, &axes)?),
            ([file], None) => {
                let path = Path::new(file);
                (path.display().to_string(), vec![Case::of_file(path)?])
            }
            (_, Some(_)) => {
                return Err("a preset brings the jobs of its own; give a job file or --preset".to_owned());
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
                // Results have placeholders for secrets, as all output.
                let mut named: Vec<(String, String)> =
                    values.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect();
                if cases.len() > 1 {
                    named.insert(0, ("case".to_owned(), text.name.clone()));
                }
                let load = text.with(&values)?;
                runs.push(Run { number: runs.len() + 1, case, values: named, load });
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
        let definition = registry::find_job(name)
            .or_else(|| registry::find_any_engine(name).first().map(|(_, found)| *found));
        let Some(definition) = definition else {
            let meant = registry::suggest(name, "")
                .map(|meant| format!("; did you mean --{meant}?"))
                .unwrap_or_default();
            return Err(format!("unknown option --{name}{meant}"));
        };
        if matches!(definition.name, "name" | "stonewall" | "wait_for" | "group_reporting" | "new_group") {
            return Err(format!("--{name}: this option has no values to sweep over"));
        }
        if axes.iter().any(|axis| axis.name == definition.name) {
            return Err(format!("--{name} is there twice; give all values at once: --{name}=1,4"));
        }
        axes.push(Axis::parse(definition.name, values).map_err(|why| format!("--{name}={values}: {why}"))?);
    }
    Ok(axes)
}

/// A value as it may be shown.
fn shown(name: &str, value: &str) -> String {
    registry::shown(name, value).into_owned()
}

/// Whether an engine has several I/Os of one worker in flight.
fn is_deep(engine: &str) -> bool {
    let found = engines::engine(engine);
    found.is_none_or(|engine| engine.facets.completion != engines::Completion::Call)
}

/// The name under which points run.
const NAME: Name = Name::Iolite;
