//! The course of a test: one phase after the other.

use super::machines::{self, Machines};
use super::tree;
use crate::messages::complain;
use crate::run_series::{End as RunEnd, Runner};
use crate::saving::now_ms;
use iolite_host::{Machine, Mounts, ThisMachine, about};
use iolite_page::text::{bandwidth, count, seconds};
use iolite_procedures::meta::figures::{Figures, Worker};
use iolite_procedures::meta::{Course, Phase, STAMP, Score, Setup, score};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How a test ended.
pub enum End {
    /// With results.
    Through(Box<Outcome>),
    /// A signal has ended it.
    Interrupted,
}

/// A phase that has been run.
pub struct Done {
    pub phase: Phase,
    pub figures: Figures,
    /// The entries of the directories that it listed.
    pub entries: Option<u64>,
    /// It was ended by the limit of time, before all workers had done the same.
    pub had_to_catch_up: bool,
}

impl Done {
    /// Operations, or entries, per second.
    pub fn rate(&self) -> f64 {
        match self.entries {
            Some(entries) if self.figures.seconds > 0.0 => entries as f64 / self.figures.seconds,
            _ => self.figures.rate(),
        }
    }
}

/// The results.
pub struct Outcome {
    pub target: PathBuf,
    pub setup: Setup,
    pub machines: Machines,
    /// The file system, as far as this machine knows.
    pub file_system: Option<String>,
    pub done: Vec<Done>,
    pub score: Option<Score>,
    pub is_io500: bool,
    /// Whether the tree was checked after each phase.
    pub is_verified: bool,
    /// What went wrong.
    pub failures: Vec<String>,
    pub circumstances: Circumstances,
}

/// Where and when it ran: what somebody needs who reads the result later.
pub struct Circumstances {
    pub begun_ms: u64,
    /// What this machine is in the test.
    pub role: &'static str,
    pub host: Vec<(String, String)>,
    /// The device below the directory, where only this machine works.
    pub device: Vec<(String, String)>,
}

impl Circumstances {
    fn now(own: Option<&Path>, machines: &Machines) -> Circumstances {
        let (role, own) = match machines {
            Machines::Here => ("host", own),
            Machines::Clients(_) => ("called_on", None),
            Machines::Ranks { .. } => ("host_of_rank_0", None),
        };
        let device = own.map(|own| about::device(own, ThisMachine::new().disk(own).as_ref()));
        Circumstances {
            begun_ms: now_ms(),
            role,
            host: about::this_host(),
            device: device.unwrap_or_default(),
        }
    }
}

/// Runs all phases in this directory (`None` = on the objects of the setup).
pub fn perform(
    program: &str,
    setup: Setup,
    machines: &Machines,
    runner: &mut Runner,
    own: Option<&Path>,
    verifies: bool,
) -> Result<End, String> {
    let file_system = own.and_then(|own| Mounts::now().file_system(own).map(str::to_owned));
    let circumstances = Circumstances::now(own, machines);
    let is_io500 = setup.phases.contains(&Phase::Find);
    let mut setup = setup;
    if let Some(own) = own {
        setup.directory = own.display().to_string();
        let stamp = own.join(STAMP);
        std::fs::write(&stamp, "").map_err(|error| format!("{}: {error}", stamp.display()))?;
    }
    let mut course = Course::new(setup.clone());
    let mut outcome = Outcome {
        target: PathBuf::new(),
        setup,
        machines: machines.clone(),
        file_system,
        done: Vec::new(),
        score: None,
        is_io500,
        is_verified: verifies,
        failures: Vec::new(),
        circumstances,
    };
    let mut runs = Runs { machines, runner, own: own.unwrap_or(Path::new("")), count: 0 };
    let all = course.setup.phases.len();
    while let Some(phase) = course.next() {
        let head = format!("[{}/{all}] {}", course.done.len() + 1, phase.name());
        let tell = |words: &str| complain(program, &format_args!("meta: {head}: {words}"));
        let done = match runs.phase(&mut course, phase) {
            Ok(Some(done)) => done,
            Ok(None) => {
                // This may take a while, and a person who sees nothing interrupts again.
                complain(program, &"meta: interrupted; removing what the test has made");
                return Ok(End::Interrupted);
            }
            Err(why) => {
                let why = why.trim().to_owned();
                tell(&format!("failed: {why}"));
                outcome.failures.push(format!("{}: {why}", phase.name()));
                // What is there now is unknown, so later phases would only fail, too.
                break;
            }
        };
        tell(&in_short(&done));
        outcome.done.push(done);
        if let (true, Some(own)) = (verifies, own)
            && let Err(why) = tree::check(&course, own)
        {
            tell(&format!("the tree is not as it should be: {why}"));
            outcome.failures.push(format!("--verify: after {}: {why}", phase.name()));
            break;
        }
    }
    let rates: Vec<(Phase, f64)> = outcome
        .done
        .iter()
        .map(|done| {
            (done.phase, if done.phase.is_bandwidth() { done.figures.bandwidth() } else { done.rate() })
        })
        .collect();
    outcome.score = score(&rates);
    Ok(End::Through(Box::new(outcome)))
}

/// A phase in a few words.
fn in_short(done: &Done) -> String {
    let rate = if done.phase.is_bandwidth() {
        bandwidth(done.figures.bandwidth())
    } else {
        format!("{}/s", count(done.rate()))
    };
    let more = if done.had_to_catch_up { ", ended by the limit of time" } else { "" };
    format!("{rate}, {}{more}", seconds(done.figures.seconds))
}

/// The runs of a test.
struct Runs<'a> {
    machines: &'a Machines,
    runner: &'a mut Runner,
    own: &'a Path,
    count: u32,
}

impl Runs<'_> {
    /// Runs a phase; `None` = a signal has ended it.
    fn phase(&mut self, course: &mut Course, phase: Phase) -> Result<Option<Done>, String> {
        let most = course.most(phase);
        let Some(mut figures) = self.run(self.machines, course, phase, &[], most)? else { return Ok(None) };
        let mut each = figures.workers.iter().map(|worker| worker.ops).max().unwrap_or(0);
        let caught_up = course.catch_up(phase, &figures);
        if let Some(to) = caught_up {
            check_workers(course, &figures)?;
            let from = by_machine(course, &figures.workers);
            // All ranks have the same job file, so that they cannot begin at different places. The first one does it for all,
            // which is not measured.
            let is_measured = !matches!(self.machines, Machines::Ranks { .. });
            let machines = if is_measured { self.machines } else { &Machines::Here };
            let Some(later) = self.run(machines, course, phase, &from, to)? else { return Ok(None) };
            check_sum(course, &figures, &later, to)?;
            if is_measured {
                figures.add(later);
            }
            each = to;
        }
        if phase.creates() && each == 0 {
            return Err("nothing was done in the time; --time= has to be longer".to_owned());
        }
        if caught_up.is_none() {
            check_counts(course, phase, &figures, each)?;
        }
        let entries = course.entries(phase);
        course.finish(phase, each);
        Ok(Some(Done { phase, figures, entries, had_to_catch_up: caught_up.is_some() }))
    }

    /// Runs jobs of a phase; `None` = a signal has ended them.
    fn run(
        &mut self,
        machines: &Machines,
        course: &Course,
        phase: Phase,
        from: &[Vec<u64>],
        to: u64,
    ) -> Result<Option<Figures>, String> {
        let meeting = machines::meeting(self.own, self.count);
        self.count += u32::from(machines == self.machines);
        let jobs = machines.jobs(course, phase, from, to);
        let ready = machines.ready(&course.setup, jobs, &meeting)?;
        let (end, text) = ready.perform(self.runner)?;
        match end {
            RunEnd::Interrupted => return Ok(None),
            RunEnd::Done => {}
            RunEnd::Doubtful(words) | RunEnd::Failed(words) | RunEnd::Killed(words) => {
                return Err(without_names(&words));
            }
        }
        let report = iolite_stored::last_report(&text).map_err(|why| why.to_string())?;
        Figures::of(&report).map(Some)
    }
}

/// The messages of a run, in one line.
fn without_names(words: &str) -> String {
    let prefix = "iolite: ";
    let lines = words.lines().map(|line| line.strip_prefix(prefix).unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty()).take(3).collect::<Vec<_>>().join("; ")
}

/// What the workers of each machine have done.
fn by_machine(course: &Course, workers: &[Worker]) -> Vec<Vec<u64>> {
    let tasks = course.setup.tasks as usize;
    let mut done = vec![vec![0; tasks]; course.setup.machines as usize];
    for worker in workers {
        // The section `w1.0`; or, of a rank, `rank-1 w0`.
        let mut words = worker.name.rsplit(' ');
        let Some(section) = words.next().and_then(|name| name.strip_prefix('w')) else { continue };
        let rank = |host: &str| host.strip_prefix("rank-").unwrap_or_default().to_owned();
        let (machine, task) = match section.split_once('.') {
            Some((machine, task)) => (machine.to_owned(), task),
            None => (rank(words.next().unwrap_or_default()), section),
        };
        let (Ok(machine), Ok(task)) = (machine.parse::<usize>(), task.parse::<usize>()) else { continue };
        if let Some(place) = done.get_mut(machine).and_then(|of| of.get_mut(task)) {
            *place = worker.ops;
        }
    }
    done
}

/// Whether every worker has results.
fn check_workers(course: &Course, figures: &Figures) -> Result<(), String> {
    let workers = course.setup.workers() as usize;
    match figures.workers.len() {
        found if found == workers => Ok(()),
        found => Err(format!("{found} of {workers} workers have results")),
    }
}

/// Whether all workers together have done what they should when they have caught up.
fn check_sum(course: &Course, before: &Figures, later: &Figures, each: u64) -> Result<(), String> {
    let expected = each * u64::from(course.setup.workers());
    match before.ops() + later.ops() {
        found if found == expected => Ok(()),
        found => Err(format!("all workers did {found} operations instead of {expected}")),
    }
}

/// Whether every worker has done what it should.
fn check_counts(course: &Course, phase: Phase, figures: &Figures, each: u64) -> Result<(), String> {
    // (Not every worker has directories of its own in a find.)
    if phase != Phase::Find {
        check_workers(course, figures)?;
    }
    let expected = if phase.creates() { Some(each) } else { course.exactly(phase) };
    let Some(expected) = expected else { return Ok(()) };
    match figures.workers.iter().find(|worker| worker.ops != expected) {
        Some(worker) => Err(format!("{} did {} operations instead of {expected}", worker.name, worker.ops)),
        None => Ok(()),
    }
}

/// The job files of all phases, as far as they are known before.
pub fn show(setup: Setup, machines: &Machines) -> String {
    let own = match setup.bucket {
        Some(_) => PathBuf::from(&setup.directory),
        None => PathBuf::from(&setup.directory).join(format!("{}NUMBER", super::OWN.prefix)),
    };
    let mut course = Course::new(Setup { directory: own.display().to_string(), ..setup });
    let mut text = format!(
        "# The phases of `iolite meta`: each is a job file of its own, and they are run one after the other.\n# {} \
         stands for {} of the test.\n",
        own.display(),
        if course.setup.bucket.is_some() { "the prefix of objects" } else { "a directory" }
    );
    if course.setup.seconds.is_some() {
        text += "# Where a limit of time ends a phase, later ones have as many files as the fastest worker has made; here, all.\n";
    }
    while let Some(phase) = course.next() {
        for (machine, job) in machines.jobs(&course, phase, &[], course.most(phase)) {
            let on = if machine.is_empty() { String::new() } else { format!(" on {machine}") };
            line!(text, "\n# --- {}{on}\n{job}", phase.name());
        }
        let most = course.most(phase);
        course.finish(phase, most);
    }
    text
}
