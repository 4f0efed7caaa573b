//! One trial: its choices, its directory, and its outcome.

use crate::processes;
use crate::running::{Finished, Running};
use crate::stop::Stop;
use iolite_testing::Luck;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;

/// How long processes may still be there after the end of their run, on a machine that hardly lets them run.
const GRACE: Duration = Duration::from_secs(20);

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A fault was not told.
    Missed(String),
    /// A fault was reported that was not injected.
    FalseAlarm(String),
    /// Processes or files are left.
    LeftBehind(String),
    /// Anything else: a run that does not end, or is ended by a signal without our doing; a report that cannot be read.
    Wrong(String),
}

/// The outcome of a trial.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The faults that were made.
    pub faults: u64,
    /// The faults that the program reported properly.
    pub found: u64,
    /// The faults that came too late to matter, or hit nothing.
    pub moot: u64,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Where the files of the trial are kept.
    pub kept: Option<PathBuf>,
}

/// A trial.
pub struct Trial<'a> {
    /// All its choices.
    pub luck: Luck,
    /// The outcome so far.
    pub outcome: Outcome,
    program: &'a Path,
    place: TempDir,
    mark: String,
    expected: Vec<String>,
}

/// The inputs of a trial.
pub struct Setting<'a> {
    /// Decides all its choices.
    pub seed: u64,
    /// The program that is tried.
    pub program: &'a Path,
    /// Where its directory is made.
    pub directory: &'a Path,
    /// Whether its files are kept if something is wrong.
    pub keep: bool,
}

/// Performs a trial: makes its directory, does its work, and looks for what is left behind.
pub fn perform(setting: Setting<'_>, work: impl FnOnce(&mut Trial) -> Result<(), Stop>) -> Outcome {
    /// Two trials never have the same mark, even if they have the same number.
    static MARKS: AtomicU64 = AtomicU64::new(0);
    let Setting { seed, program, directory, keep } = setting;
    let mut luck = Luck::of(seed);
    luck.draw();
    let place = match tempfile::Builder::new().prefix("iolite-campaign-").tempdir_in(directory) {
        Ok(place) => place,
        Err(error) => {
            let wrong = Finding::Wrong(format!("{}: {error}", directory.display()));
            return Outcome { findings: vec![wrong], ..Outcome::default() };
        }
    };
    let mark = format!("{}-{}", std::process::id(), MARKS.fetch_add(1, Relaxed));
    let mut trial = Trial { luck, outcome: Outcome::default(), program, place, mark, expected: Vec::new() };
    let made =
        ["work", "said"].into_iter().try_for_each(|name| fs::create_dir(trial.place.path().join(name)));
    let ended = made.map_err(Stop::of("a directory")).and_then(|()| work(&mut trial));
    if let Err(Stop(why)) = ended {
        trial.wrong(why);
    }
    trial.look_around();
    let Trial { mut outcome, place, .. } = trial;
    if keep && !outcome.findings.is_empty() {
        outcome.kept = Some(place.keep());
    }
    outcome
}

impl Trial<'_> {
    /// The directory in which runs are started.
    pub fn dir(&self) -> PathBuf {
        self.place.path().join("work")
    }

    /// The program that is tried.
    pub fn program(&self) -> &Path {
        self.program
    }

    /// A number from `low` to `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.luck.below(high - low + 1)
    }

    /// Whether something happens that happens once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.luck.below(times) == 0
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.luck.below(choices.len() as u64) as usize]
    }

    /// Starts the program with the words of a line.
    pub fn start(&mut self, line: &str) -> Result<Running, Stop> {
        Running::start(self.program, line, &self.dir(), &self.place.path().join("said"), &self.mark)
    }

    /// Runs the program to its end. Nothing is done to it.
    ///
    /// # Errors
    /// There is no end, or a signal ended it.
    pub fn run(&mut self, line: &str) -> Result<Finished, Stop> {
        let run = self.start(line)?.wait()?;
        self.expect_no_process();
        match run.code() {
            Some(_) => Ok(run),
            None => Err(Stop(run.to_string())),
        }
    }

    /// Notes files that a run may leave in its directory: whole names, or with a `*` for anything.
    pub fn expect_files(&mut self, names: &[&str]) {
        self.expected.extend(names.iter().map(|&name| name.to_owned()));
    }

    /// Notes that a fault was made.
    pub fn fault(&mut self) {
        self.outcome.faults += 1;
    }

    /// Notes that the program told a fault as it should.
    pub fn found(&mut self) {
        self.outcome.found += 1;
    }

    /// Notes that a fault came too late, or hit nothing.
    pub fn moot(&mut self) {
        self.outcome.moot += 1;
    }

    /// Notes that a fault was not told.
    pub fn missed(&mut self, what: impl Into<String>) {
        self.outcome.findings.push(Finding::Missed(what.into()));
    }

    /// Records the report of a fault that was not injected.
    pub fn false_alarm(&mut self, what: impl Into<String>) {
        self.outcome.findings.push(Finding::FalseAlarm(what.into()));
    }

    /// Notes that something else is wrong.
    pub fn wrong(&mut self, what: impl Into<String>) {
        self.outcome.findings.push(Finding::Wrong(what.into()));
    }

    /// Notes the processes of the trial that are left after the end of a run.
    pub fn expect_no_process(&mut self) {
        let left = processes::left(&self.mark, GRACE);
        if !left.is_empty() {
            self.outcome.findings.push(Finding::LeftBehind(format!("processes: {}", left.join(", "))));
        }
    }

    /// Notes the files that nobody expects.
    fn look_around(&mut self) {
        self.expect_no_process();
        let entries = fs::read_dir(self.dir()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_expected = |name: &str| {
            self.expected.iter().any(|expected| match expected.split_once('*') {
                Some((start, end)) => name.starts_with(start) && name.ends_with(end),
                None => name == expected,
            })
        };
        let left: Vec<String> = names.filter(|name| !is_expected(name)).collect();
        if !left.is_empty() {
            self.outcome.findings.push(Finding::LeftBehind(format!("files: {}", left.join(", "))));
        }
    }
}
