//! The course: the steps that the procedure asks for are done one after the other, and what each came to is kept.

use super::choices::Choices;
use super::output::{self, Header};
use super::purge::{self, Purge};
use super::state::{Counters, Since, State};
use super::target::Target;
use super::{cache, kinds};
use crate::run_series::directory::Directory;
use crate::run_series::foresight::Foresight;
use crate::subcommands::performer::{self, NAME};
use crate::subcommands::progress::Progress;
use iolite_host::{Machine, ThisMachine};
use iolite_options::RunOptions;
use iolite_os::signals::SignalQueue;
use iolite_page::text::{bandwidth, bytes, count, latency, seconds};
use iolite_procedures::Case;
use iolite_procedures::pts::steady::Window;
use iolite_procedures::pts::{
    Class, Done, Figures, Quantity, Rounds, Step, Unit, discard, preconditioned, result, units,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often counters are noted while a case runs.
const NOTE: Duration = Duration::from_secs(1);
/// Bytes of a kept report, about.
const REPORT: u64 = 64 << 10;

/// How a procedure ended.
pub enum End {
    /// With this result.
    Through(Box<Value>),
    /// By a signal.
    Interrupted,
}

/// Why a course ends early.
enum Stop {
    Interrupted,
    Failed(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Failed(why)
    }
}

/// A procedure on its way.
pub struct Course {
    target: Target,
    choices: Choices,
    directory: Directory,
    state: State,
    done: Done,
    progress: Progress,
    /// From now on, signals end the procedure in order.
    signals: SignalQueue,
    header: Header,
    /// The results of units that are done.
    tests: Vec<Value>,
    /// Bytes per second of the last preconditioning.
    rate: Option<f64>,
}

impl Course {
    pub fn new(
        program: &str,
        target: Target,
        choices: Choices,
        directory: Directory,
    ) -> Result<Course, String> {
        let signals = SignalQueue::of_those_not_ignored(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
            .map_err(|error| format!("signals cannot be received: {error}"))?;
        let header = Header::of(&target, &choices, &directory);
        Ok(Course {
            state: State::read(&directory)?,
            target,
            choices,
            directory,
            done: Done::new(),
            progress: Progress::new(program, "pts"),
            signals,
            header,
            tests: Vec::new(),
            rate: None,
        })
    }

    /// Performs it.
    pub fn perform(mut self) -> Result<End, String> {
        if let Err(why) = self.check() {
            if self.directory.begun_before.is_none() {
                self.directory.remove([]);
            }
            return Err(why);
        }
        // What was noted stays as it is if it does not begin.
        let course = self.begin().and_then(|()| {
            let course = self.run();
            self.progress.clear();
            self.rest();
            course
        });
        self.progress.clear();
        let place = self.directory.path.display().to_string();
        match course {
            Ok(()) => {
                let result = self.result(true);
                output::write(&self.directory, &result)?;
                self.directory.finish()?;
                self.progress.tell(&format!("the page is {place}/{}", output::PAGE));
                Ok(End::Through(Box::new(result)))
            }
            Err(Stop::Interrupted) => {
                self.progress
                    .tell(&format!("interrupted; the same command with --resume continues in {place}"));
                Ok(End::Interrupted)
            }
            Err(Stop::Failed(why)) => Err(format!(
                "{why}; what was measured is in {place}, and the same command with --resume continues there"
            )),
        }
    }

    /// Checks everything that can be known before anything is lost.
    fn check(&mut self) -> Result<(), String> {
        if self.directory.path.canonicalize().is_ok_and(|place| place.starts_with(&self.target.path)) {
            return Err(format!("--output={}: that is the target", self.directory.path.display()));
        }
        self.choices.purge.check(&self.target)?;
        let mut foresight = Foresight::new(NAME);
        let mut cases: Vec<Case> = Vec::new();
        for (_, step) in kinds(&self.choices.settings) {
            match step {
                Step::Run { case, .. } => cases.push(case),
                Step::Purge(name) if self.choices.purge.is_discard(&self.target) => {
                    cases.push(discard(&self.choices.settings, name));
                }
                Step::Purge(_) => {}
            }
        }
        for case in cases {
            let jobs = performer::jobs(&case.job)?;
            foresight
                .check(vec![jobs], &RunOptions::default())
                .map_err(|why| format!("{}: {}", case.name, why.join("; ")))?;
        }
        let free = ThisMachine::new().file_system(&self.directory.path).map(|found| found.available).ok();
        let cells: f64 =
            units(&self.choices.settings).iter().map(|unit| unit.seconds(&self.choices.settings).1).sum();
        let needed = (cells / self.choices.settings.cell) as u64 * REPORT;
        if let Some(free) = free.filter(|free| *free < needed) {
            self.progress.tell(&format!(
                "{}: there may be too little room for the results: {} are free, and they may take {}; if the disk is full, the \
                 procedure stops, and goes on with --resume",
                self.directory.path.display(),
                bytes(free as f64),
                bytes(needed as f64)
            ));
        }
        Ok(())
    }

    /// Finds the place at which it goes on, and sets the write cache.
    fn begin(&mut self) -> Result<(), Stop> {
        self.load()?;
        if self.directory.begun_before.is_some() {
            self.judge_interruption()?;
        }
        let wanted = self.choices.settings.class == Class::Client;
        if self.state.cache_was.is_none() {
            self.state.cache_was = cache::is_on(&self.target);
            self.state.note(&self.directory, &self.target)?;
        }
        let set = cache::set(&self.target, wanted);
        self.header.take_cache(wanted, &set);
        self.announce();
        Ok(())
    }

    /// Reads what is there already.
    fn load(&mut self) -> Result<(), Stop> {
        for unit in units(&self.choices.settings) {
            loop {
                let attempt = self.attempt(&unit);
                let step = match unit.walk(&self.choices.settings, attempt, &self.done) {
                    Ok(_) => break,
                    Err(next) => next.step,
                };
                let file = self.directory.path.join(file_of(step.name()));
                let taken = match self.directory.report(&file_of(step.name())) {
                    Ok(None) => return Ok(()),
                    Ok(Some(report)) => self.take(step.name(), &report),
                    // Damage is in what can be read.
                    Err(why) if std::fs::read(&file).is_ok() => Err(why),
                    Err(why) => return Err(why.into()),
                };
                if let Err(why) = taken {
                    self.begin_again(&unit, &format!("{} is damaged: {why}", file.display()));
                }
            }
        }
        Ok(())
    }

    fn attempt(&self, unit: &Unit) -> u32 {
        self.state.attempts.get(&unit.name).copied().unwrap_or(1)
    }

    /// A unit whose report is damaged is repeated, and so are those after it, whose device it changes.
    fn begin_again(&mut self, unit: &Unit, why: &str) {
        let words =
            format!("{}: all of it is repeated, from the purge and the preconditioning on: {why}", unit.name);
        self.progress.tell(&words);
        self.state.interruptions.push(words);
        let all = units(&self.choices.settings);
        let place = all.iter().position(|one| one.name == unit.name).unwrap_or(0);
        for later in &all[place..] {
            let has = |attempt: u32| {
                let nothing = Done::new();
                let first = later.walk(&self.choices.settings, attempt, &nothing).err();
                first.is_some_and(|next| self.directory.has(&file_of(next.step.name())))
            };
            let mut attempt = self.attempt(later);
            while has(attempt) && attempt < u32::MAX {
                attempt += 1;
            }
            self.state.attempts.insert(later.name.clone(), attempt);
            self.state.interrupted.remove(&later.name);
        }
    }

    /// Takes the figures of a report.
    fn take(&mut self, name: &str, report: &Value) -> Result<(), String> {
        let figures = Figures::of(report).map_err(|why| format!("{name}: {why}"))?;
        if name.ends_with("-wipc") && figures.bandwidth > 0.0 {
            self.rate = Some(figures.bandwidth);
        }
        self.state.has_written(figures.written, figures.seconds);
        if let Some(words) = report["purge"].as_str() {
            self.header.take_purge(name, words);
        }
        self.done.insert(name.to_owned(), figures);
        Ok(())
    }

    /// Says what an interruption means for the unit that it hit.
    fn judge_interruption(&mut self) -> Result<(), Stop> {
        let settings = &self.choices.settings;
        let all = units(settings);
        let on_its_way = |unit: &&Unit| unit.walk(settings, self.attempt(unit), &self.done).is_err();
        let Some(unit) = all.iter().find(on_its_way) else { return Ok(()) };
        let Err(next) = unit.walk(settings, self.attempt(unit), &self.done) else { return Ok(()) };
        let words = match (&next.step, self.state.since(&Counters::now(&self.target, true))) {
            (Step::Purge(_), _) => format!("{}: it goes on from the purge", unit.name),
            (Step::Run { case, .. }, Since::Untouched(how)) => {
                let repeated = match &self.state.running {
                    Some(running) if *running == case.name => format!("{} is repeated", case.name),
                    _ => format!("it goes on with {}", case.name),
                };
                self.state.interrupted.insert(unit.name.clone());
                format!("{}: {repeated}; the device was not written meanwhile ({how})", unit.name)
            }
            (Step::Run { .. }, Since::Written(why)) => {
                let attempt = self.attempt(unit).saturating_add(1);
                self.state.attempts.insert(unit.name.clone(), attempt);
                self.state.interrupted.remove(&unit.name);
                format!(
                    "{}: all of it is repeated, from the purge and the preconditioning on: {why}",
                    unit.name
                )
            }
        };
        self.progress.tell(&words);
        self.state.interruptions.push(words);
        self.state.is_at_rest = true;
        Ok(self.state.note(&self.directory, &self.target)?)
    }

    fn announce(&mut self) {
        let (least, most, preconditionings) = self.left();
        let amount = preconditioned(&self.choices.settings);
        let what = match preconditionings {
            0 => String::new(),
            1 => format!(", and {} are written for preconditioning", bytes(amount as f64)),
            times => format!(", and {times} times {} are written for preconditioning", bytes(amount as f64)),
        };
        self.progress.tell(&format!(
            "{}: {}: all data on it is lost; this takes {}{what}; results go to {}",
            self.target.name,
            self.target.words(),
            between(least, most),
            self.directory.path.display()
        ));
        for why in self.header.deviations(&self.state) {
            self.progress.tell(&format!("not conforming to the specification: {why}"));
        }
    }

    /// Seconds that are left, at least and at most, and how many preconditionings are.
    fn left(&self) -> (f64, f64, usize) {
        let settings = &self.choices.settings;
        let mut left = (0.0, 0.0, 0);
        for unit in units(settings) {
            let Err(next) = unit.walk(settings, self.attempt(&unit), &self.done) else { continue };
            let (least, most) = unit.seconds(settings);
            left.0 += (least - next.passed).max(0.0);
            left.1 += (most - next.passed).max(0.0);
            left.2 += usize::from(unit.is_preconditioned() && next.outcome.preconditioning.is_none());
        }
        left
    }

    /// The time that is left, in words.
    fn left_in_words(&self) -> String {
        let (least, most, preconditionings) = self.left();
        let amount = preconditionings as f64 * preconditioned(&self.choices.settings) as f64;
        match self.rate {
            Some(rate) => format!("{} left", between(least + amount / rate, most + amount / rate)),
            None if preconditionings > 0 => format!("{} left, and preconditioning", between(least, most)),
            None => format!("{} left", between(least, most)),
        }
    }

    fn run(&mut self) -> Result<(), Stop> {
        for unit in units(&self.choices.settings) {
            let mut told = None;
            loop {
                let next = unit.walk(&self.choices.settings, self.attempt(&unit), &self.done);
                let (outcome, step) = match next {
                    Ok(outcome) => (outcome, None),
                    Err(next) => (next.outcome, Some(next.step)),
                };
                let words =
                    outcome.rounds.as_ref().and_then(|rounds| self.round_in_words(&unit, rounds, &mut told));
                let mut test = (step.is_none() || words.is_some())
                    .then(|| result::of_unit(&self.choices.settings, &unit, &outcome));
                if let Some(words) = words {
                    self.progress.tell(&words);
                }
                let Some(step) = step else {
                    self.tests.extend(test);
                    break;
                };
                if let Some(mut test) = test.take() {
                    // A test takes hours, and has a page meanwhile. (What keeps it from being written is told at the end.)
                    test["on_its_way"] = true.into();
                    self.tests.push(test);
                    let _ = output::write(&self.directory, &self.result(false));
                    self.tests.pop();
                }
                self.step(&unit, step)?;
            }
            // A procedure of days has results before its end.
            output::write(&self.directory, &self.result(false))?;
        }
        Ok(())
    }

    /// What is told about a round that has become complete. `told`: how many were before.
    fn round_in_words(&self, unit: &Unit, rounds: &Rounds<'_>, told: &mut Option<usize>) -> Option<String> {
        let count = rounds.figures.len();
        // What an earlier start has done is not told again.
        if told.replace(count).is_none_or(|before| before == count) {
            return None;
        }
        let (values, (cell, quantity)) = (rounds.values(), rounds.tracked);
        let value = quantity_in_words(quantity, *values.last()?);
        let window = Window::ending(&values, count).map(|window| {
            format!(
                "; the last 5 rounds differ by {:.1}% (20 allowed), and their line changes by {:.1}% (10 allowed){}",
                100.0 * window.excursion,
                100.0 * window.slope,
                if window.is_steady() { ": a steady state" } else { "" }
            )
        });
        let (cell, window) = (rounds.cells[cell].words(), window.unwrap_or_default());
        Some(format!("{}, round {count}: {cell}: {value}{window}; {}", unit.name, self.left_in_words()))
    }

    /// Does a step, and keeps what it came to.
    fn step(&mut self, unit: &Unit, step: Step) -> Result<(), Stop> {
        if self.signals.next().is_some() {
            return Err(Stop::Interrupted);
        }
        // A procedure takes days, and a path is only a name.
        self.target.check_still()?;
        self.state.is_at_rest = false;
        self.state.running = Some(step.name().to_owned());
        self.state.amount = match &step {
            Step::Purge(_) => self.choices.settings.capacity,
            Step::Run { bytes, .. } => bytes.unwrap_or(0),
        };
        self.state.note(&self.directory, &self.target)?;
        match step {
            Step::Purge(name) => self.purge(unit, &name),
            Step::Run { case, bytes, is_of_round, .. } => {
                // (Without direct I/O, what is written reaches the device at any time.)
                let before = self.target.is_direct.then(|| State::counted(&self.target)).flatten();
                let report = self.case(&case, bytes)?;
                let now = State::counted(&self.target);
                self.keep(&case.name, &report)?;
                let own = self.done.get(&case.name).map_or(0, |figures| figures.written);
                if let Some(words) = self.state.check_others(&case.name, before, now, own) {
                    self.progress.tell(words);
                }
                if !is_of_round && let Some(figures) = self.done.get(&case.name) {
                    let words = format!("{} IOPS, {}", count(figures.iops), bandwidth(figures.bandwidth));
                    self.progress.end(&words);
                }
                Ok(())
            }
        }
    }

    fn purge(&mut self, unit: &Unit, name: &str) -> Result<(), Stop> {
        let words = match &self.choices.purge {
            Purge::None => "the device is not purged".to_owned(),
            way if way.is_discard(&self.target) => {
                format!("the device is purged: {}", Purge::Discard.words())
            }
            way => format!("the device is purged: {}", way.words()),
        };
        self.progress.tell(&format!("{}: {words}", unit.name));
        let Course { choices, target, progress, signals, .. } = &mut *self;
        let mut watch =
            purge::Watch { tell: &mut |words| progress.tell(words), is_ended: &|| signals.next().is_some() };
        let (mut report, words) = match choices.purge.perform(target, &mut watch)? {
            purge::Done::Interrupted => return Err(Stop::Interrupted),
            purge::Done::Purged(words) => (json!({"jobs": []}), words),
            purge::Done::Not => (json!({"jobs": []}), "not purged".to_owned()),
            purge::Done::ByJob(words) => {
                let case = discard(&self.choices.settings, name.to_owned());
                (self.case(&case, Some(self.choices.settings.capacity))?, words)
            }
        };
        report["purge"] = words.into();
        Ok(self.keep(name, &report)?)
    }

    /// Runs a case.
    fn case(&mut self, case: &Case, amount: Option<u64>) -> Result<Value, Stop> {
        let words = format!("{} ({})", case.name, case.what);
        let left = self.left_in_words();
        let Course { progress, state, directory, target, .. } = self;
        progress.append(format!("; {left}"));
        match amount {
            Some(amount) => progress.begin_bytes(&words, amount),
            None => progress.begin(&words, case.seconds),
        }
        let mut noted = Instant::now();
        let end = performer::perform(&case.job, false, &mut |snapshot| {
            progress.tick(snapshot);
            if noted.elapsed() >= NOTE {
                state.note_in_passing(directory, target);
                noted = Instant::now();
            }
        });
        match end {
            performer::End::Done(report) => Ok(*report),
            performer::End::Interrupted => Err(Stop::Interrupted),
            performer::End::Failed(why) => Err(Stop::Failed(format!("{}: {why}", case.name))),
        }
    }

    /// Takes the figures of a step, and keeps its report, durably. A report without figures is not kept.
    fn keep(&mut self, name: &str, report: &Value) -> Result<(), String> {
        self.take(name, report)?;
        self.directory.write(&file_of(name), &format!("{report}\n"))
    }

    /// Nothing runs any more: restores the write cache, and notes the counters, so that all later writes are those of others.
    fn rest(&mut self) {
        if let Err(why) = self.target.check_identity() {
            self.progress.tell(&why);
            return;
        }
        self.restore_cache();
        self.state.is_at_rest = true;
        if let Err(why) = self.state.note(&self.directory, &self.target) {
            self.progress.tell(&why);
        }
    }

    /// Restores the write cache. How it was is forgotten only when that is done.
    fn restore_cache(&mut self) {
        let Some(was) = self.state.cache_was else { return };
        let set = match cache::is_on(&self.target) {
            Some(is_on) if is_on == was => cache::Set::Wanted,
            _ => cache::set(&self.target, was),
        };
        match set {
            cache::Set::Wanted | cache::Set::Absent => self.state.cache_was = None,
            cache::Set::Not(why) => {
                let word = if was { "on" } else { "off" };
                self.progress
                    .tell(&format!("the write cache could not be switched {word} again, as it was: {why}"));
            }
        }
    }

    /// The result so far.
    fn result(&self, is_complete: bool) -> Value {
        self.header.result(&self.tests, &self.state, is_complete)
    }
}

/// The file of a step.
fn file_of(name: &str) -> String {
    format!("cells/{name}.json")
}

fn between(least: f64, most: f64) -> String {
    // Seconds say nothing about hours.
    let rounded = |time: f64| if time < 120.0 { time.ceil() } else { (time / 60.0).ceil() * 60.0 };
    let (least, most) = (rounded(least), rounded(most));
    if least == most {
        return format!("about {}", seconds(least));
    }
    if least == 0.0 {
        format!("at most {}", seconds(most))
    } else {
        format!("{} to {}", seconds(least), seconds(most))
    }
}

fn quantity_in_words(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Iops => format!("{} IOPS", count(value)),
        Quantity::Bandwidth => bandwidth(value),
        Quantity::Mean => latency(value),
    }
}
