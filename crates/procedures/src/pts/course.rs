//! The course of a test: from what has been done follows what comes next.
//!
//! A test is walked through from its beginning each time. Where the walk comes to a step that is not done, that is the next step.
//! So an interrupted test goes on exactly where it was, and its result is made by the same walk.

use super::cells::{self, Cell};
use super::figures::Figures;
use super::settings::{Class, Settings, Test};
use super::steady::{self, Window};
use crate::Case;
use std::collections::BTreeMap;

/// The most rounds until a steady state.
pub const MOST_ROUNDS: usize = 25;
/// The rounds of write saturation: a day, unless four times the capacity is written before.
const DAY: usize = 24 * 60;
/// How many times the capacity write saturation writes at most.
const FILLS: u64 = 4;
/// The longest mean response time at the point of the highest demand.
const ENTERPRISE_CEILING: f64 = 5e6;
/// The same for clients' devices.
const CLIENT_CEILING: f64 = 20e6;

/// What was done, by the names of cases and purges.
pub type Done = BTreeMap<String, Figures>;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The device is to be purged; the name of this purge.
    Purge(String),
    /// A case is to be run.
    Run {
        /// The case.
        case: Case,
        /// What is common to all cases that differ only in their round or number.
        kind: String,
        /// Bytes that it writes, of a case that has no time.
        bytes: Option<u64>,
        /// It is one of many of a round.
        is_of_round: bool,
    },
}

impl Step {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Step::Purge(name) => name,
            Step::Run { case, .. } => &case.name,
        }
    }
}

/// A part of the procedure that begins with a purge.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Its test.
    pub test: Test,
    /// The block size, if there is a unit for each.
    pub block: Option<u64>,
}

/// The units of a procedure, in order.
pub fn units(settings: &Settings) -> Vec<Unit> {
    let mut units = Vec::new();
    for test in Test::ALL.into_iter().filter(|test| settings.tests.contains(test)) {
        let unit = |name: &str, block| Unit { name: name.to_owned(), test, block };
        match (test, settings.class) {
            (Test::Throughput, Class::Enterprise) => {
                units.extend([unit("tp-1024k", Some(1 << 20)), unit("tp-128k", Some(128 << 10))]);
            }
            (Test::Throughput, Class::Client) => units.push(unit("tp-1024k", Some(1 << 20))),
            _ => units.push(unit(test.word(), None)),
        }
    }
    units
}

/// The value that shows whether a steady state is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean response time in nanoseconds.
    Mean,
}

impl Quantity {
    /// Its value.
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Quantity::Iops => figures.iops,
            Quantity::Bandwidth => figures.bandwidth,
            Quantity::Mean => figures.mean_ns,
        }
    }

    /// Its key in results.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Iops => "iops",
            Quantity::Bandwidth => "bw_bytes",
            Quantity::Mean => "mean_ns",
        }
    }
}

/// Rounds that were run until a steady state.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds<'a> {
    /// The cells of a round.
    pub cells: Vec<Cell>,
    /// The figures of each round, in the order of its cells.
    pub figures: Vec<Vec<&'a Figures>>,
    /// The cell whose value is tracked, and the value.
    pub tracked: (usize, Quantity),
    /// The steady state; `None` = none was reached.
    pub steady: Option<Window>,
}

impl Rounds<'_> {
    /// The tracked values.
    pub fn values(&self) -> Vec<f64> {
        values(&self.figures, self.tracked)
    }

    /// The window of which means are taken: that of the steady state, or the last one.
    pub fn window(&self) -> Option<Window> {
        let last = || Window::ending(&self.values(), self.figures.len());
        self.steady.clone().or_else(last)
    }
}

fn values(figures: &[Vec<&Figures>], (cell, quantity): (usize, Quantity)) -> Vec<f64> {
    figures.iter().map(|round| quantity.of(round[cell])).collect()
}

/// A cell that comes once, of a group of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Single<'a> {
    /// Its group, in words.
    pub group: String,
    /// The cell.
    pub cell: Cell,
    /// Its figures.
    pub figures: &'a Figures,
}

/// What a unit came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome<'a> {
    /// Workload-independent preconditioning.
    pub preconditioning: Option<&'a Figures>,
    /// Rounds until a steady state.
    pub rounds: Option<Rounds<'a>>,
    /// Cells that come once.
    pub singles: Vec<Single<'a>>,
}

/// The walk through a unit.
struct Walk<'a> {
    settings: &'a Settings,
    done: &'a Done,
    unit: &'a Unit,
    /// The beginning of all its names.
    prefix: String,
    outcome: Outcome<'a>,
    /// The seconds of the steps that were passed.
    passed: f64,
    /// The walk is in rounds.
    is_in_round: bool,
}

impl Unit {
    /// Walks through it. `attempt`: how often it was begun from its purge, from 1.
    ///
    /// # Errors
    /// The next step, and whatever of the outcome is there before it.
    pub fn walk<'a>(
        &'a self,
        settings: &'a Settings,
        attempt: u32,
        done: &'a Done,
    ) -> Result<Outcome<'a>, Box<Next<'a>>> {
        let prefix = if attempt > 1 { format!("{}-again{attempt}", self.name) } else { self.name.clone() };
        let mut walk = Walk {
            settings,
            done,
            unit: self,
            prefix,
            outcome: Outcome::default(),
            passed: 0.0,
            is_in_round: false,
        };
        match walk.through() {
            Ok(()) => Ok(walk.outcome),
            Err(step) => Err(Box::new(Next { step: *step, outcome: walk.outcome, passed: walk.passed })),
        }
    }

    /// Whether twice the capacity is written before it.
    pub fn is_preconditioned(&self) -> bool {
        !matches!(self.test, Test::WriteSaturation | Test::CrossStimulusRecovery)
    }

    /// Seconds that it takes, at least and at most, without preconditioning.
    pub fn seconds(&self, settings: &Settings) -> (f64, f64) {
        let cells = cells::round(settings, self.test, self.block);
        let round: f64 = cells.iter().map(|cell| cell.seconds).sum();
        let rounds = (steady::ROUNDS as f64 * round, MOST_ROUNDS as f64 * round);
        let minutes = |count: f64| settings.minutes(count);
        let then = match self.test {
            Test::Latency => minutes(20.0),
            Test::HostIdleRecovery => {
                let access = minutes(HIR_ACCESS);
                let of_wait =
                    |wait: f64| settings.repeats(HIR_ACCESSES) as f64 * (access + minutes(wait / 60.0));
                let base = settings.repeats(HIR_BASE) as f64 * settings.cell;
                HIR_WAITS.iter().map(|wait| of_wait(*wait) + base).sum()
            }
            Test::DemandIntensity | Test::Composite => 3.0 * minutes(10.0),
            _ => 0.0,
        };
        match self.test {
            // Fast devices are full long before the day ends.
            Test::WriteSaturation => (0.0, settings.repeats(DAY) as f64 * settings.cell),
            Test::CrossStimulusRecovery => {
                let cells: usize = XSR.iter().map(|(_, hours, ..)| settings.repeats(hours * 60)).sum();
                let seconds = cells as f64 * settings.cell;
                (seconds, seconds)
            }
            _ => (rounds.0 + then, rounds.1 + then),
        }
    }
}

/// What comes next, and how far a unit has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Next<'a> {
    /// The next step.
    pub step: Step,
    /// What is there so far.
    pub outcome: Outcome<'a>,
    /// Seconds of the cells that are done.
    pub passed: f64,
}

/// Minutes of an access in host idle recovery, and how many there are for each time of idleness.
const HIR_ACCESS: f64 = 5.0 / 60.0;
const HIR_ACCESSES: usize = 360;
/// Seconds of idleness.
const HIR_WAITS: [f64; 5] = [5.0, 10.0, 15.0, 25.0, 50.0];
/// Cells without idleness that follow each of them.
const HIR_BASE: usize = 30;
/// The stimuli of cross stimulus recovery: their names, hours, whether they are random, and block sizes.
const XSR: [(&str, usize, bool, u64); 3] = [
    ("sequential writes of 1024 KiB", 8, false, 1 << 20),
    ("random writes of 8 KiB", 6, true, 8 << 10),
    ("sequential writes of 1024 KiB again", 8, false, 1 << 20),
];

impl<'a> Walk<'a> {
    fn through(&mut self) -> Result<(), Box<Step>> {
        let purge = format!("{}-purge", self.prefix);
        if !self.done.contains_key(&purge) {
            return Err(Box::new(Step::Purge(purge)));
        }
        match self.unit.test {
            Test::Iops => self.preconditioned_rounds((4096, 0), Quantity::Iops),
            Test::Throughput => {
                let block = self.unit.block.unwrap_or(1 << 20);
                self.preconditioned_rounds((block, 0), Quantity::Bandwidth)
            }
            Test::Latency => {
                self.preconditioned_rounds((4096, 0), Quantity::Mean)?;
                let cell =
                    Cell::random(self.settings, 0, 4096).with(1, 1).lasting(self.settings.minutes(20.0));
                self.single("histogram", "h", cell, 0).map(drop)
            }
            Test::WriteSaturation => self.write_saturation(),
            Test::HostIdleRecovery => self.host_idle_recovery(),
            Test::CrossStimulusRecovery => self.cross_stimulus_recovery(),
            Test::DemandIntensity | Test::Composite => self.demand_intensity(),
        }
    }

    /// A case: its figures, or the step that runs it.
    fn need(
        &mut self,
        name: String,
        kind: &dyn Fn() -> String,
        bytes: Option<u64>,
        make: &dyn Fn(String) -> Case,
        seconds: f64,
    ) -> Result<&'a Figures, Box<Step>> {
        match self.done.get(&name) {
            Some(figures) => {
                self.passed += seconds;
                Ok(figures)
            }
            None => {
                let is_of_round = seconds > 0.0 && self.is_in_round;
                Err(Box::new(Step::Run { case: make(name), kind: kind(), bytes, is_of_round }))
            }
        }
    }

    /// Workload-independent preconditioning.
    fn precondition(&mut self) -> Result<(), Box<Step>> {
        let settings = self.settings;
        let name = format!("{}-wipc", self.prefix);
        let bytes = Some(cells::preconditioned(settings));
        let figures = self.need(
            name,
            &|| "wipc".to_owned(),
            bytes,
            &|name| cells::preconditioning(settings, name),
            0.0,
        )?;
        self.outcome.preconditioning = Some(figures);
        Ok(())
    }

    /// Preconditioning, then rounds until the tracked cell is steady.
    fn preconditioned_rounds(
        &mut self,
        (block, read): (u64, u32),
        quantity: Quantity,
    ) -> Result<(), Box<Step>> {
        self.precondition()?;
        let cells = cells::round(self.settings, self.unit.test, self.unit.block);
        let is_tracked = |cell: &Cell| cell.block == cells::Block::Of(block) && cell.read == read;
        let tracked = cells.iter().position(is_tracked).unwrap_or(0);
        self.rounds(cells, tracked, quantity, Cell::id)
    }

    fn rounds(
        &mut self,
        cells: Vec<Cell>,
        tracked: usize,
        quantity: Quantity,
        id: fn(&Cell) -> String,
    ) -> Result<(), Box<Step>> {
        let settings = self.settings;
        // Where sequential I/O of each cell goes on.
        let mut skipped = vec![0_u64; cells.len()];
        let tracked = (tracked, quantity);
        self.outcome.rounds =
            Some(Rounds { cells: cells.clone(), figures: Vec::new(), tracked, steady: None });
        self.is_in_round = true;
        for round in 1..=MOST_ROUNDS {
            let mut figures = Vec::with_capacity(cells.len());
            for (cell, skipped) in cells.iter().zip(&mut skipped) {
                let name = format!("{}-{round:02}-{}", self.prefix, id(cell));
                let at = *skipped;
                let kind = || id(cell);
                let found =
                    self.need(name, &kind, None, &|name| cell.case(settings, name, at), cell.seconds)?;
                *skipped = place_after(settings, cell, *skipped, found.moved);
                figures.push(found);
            }
            let Some(rounds) = &mut self.outcome.rounds else { break };
            rounds.figures.push(figures);
            rounds.steady = Window::ending(&rounds.values(), round).filter(Window::is_steady);
            if rounds.steady.is_some() {
                break;
            }
        }
        self.is_in_round = false;
        Ok(())
    }

    /// A cell that comes once. `id`: the end of its name.
    fn single(&mut self, group: &str, id: &str, cell: Cell, skipped: u64) -> Result<&'a Figures, Box<Step>> {
        let settings = self.settings;
        let name = format!("{}-{id}", self.prefix);
        let seconds = cell.seconds + cell.wait;
        let kind = || format!("{group} {}", cell.demand_id());
        let figures = self.need(name, &kind, None, &|name| cell.case(settings, name, skipped), seconds)?;
        self.outcome.singles.push(Single { group: group.to_owned(), cell, figures });
        Ok(figures)
    }

    fn write_saturation(&mut self) -> Result<(), Box<Step>> {
        let enough = self.settings.user_capacity().saturating_mul(FILLS);
        let mut written = 0_u64;
        for round in 1..=self.settings.repeats(DAY) {
            let cell = Cell::random(self.settings, 0, 4096);
            written = written.saturating_add(self.single("rounds", &format!("{round:04}"), cell, 0)?.written);
            if written >= enough {
                break;
            }
        }
        Ok(())
    }

    fn host_idle_recovery(&mut self) -> Result<(), Box<Step>> {
        self.preconditioned_rounds((4096, 0), Quantity::Iops)?;
        let settings = self.settings;
        let cell = Cell::random(settings, 0, 4096);
        for wait in HIR_WAITS {
            let (access, idle) = (settings.minutes(HIR_ACCESS), settings.minutes(wait / 60.0));
            for number in 1..=settings.repeats(HIR_ACCESSES) {
                let cell = Cell { wait: idle, ..cell.clone().lasting(access) };
                self.single(&format!("{wait} s of idleness"), &format!("w{wait}-{number:03}"), cell, 0)?;
            }
            for number in 1..=settings.repeats(HIR_BASE) {
                self.single(
                    &format!("after {wait} s of idleness"),
                    &format!("b{wait}-{number:02}"),
                    cell.clone(),
                    0,
                )?;
            }
        }
        Ok(())
    }

    fn cross_stimulus_recovery(&mut self) -> Result<(), Box<Step>> {
        let settings = self.settings;
        for (number, (group, hours, is_random, block)) in XSR.into_iter().enumerate() {
            let mut skipped = 0;
            for minute in 1..=settings.repeats(hours * 60) {
                let cell = if is_random {
                    Cell::random(settings, 0, block)
                } else {
                    Cell::sequential(settings, 0, block)
                };
                let figures =
                    self.single(group, &format!("{}-{minute:03}", number + 1), cell.clone(), skipped)?;
                skipped = place_after(settings, &cell, skipped, if is_random { 0 } else { figures.moved });
            }
        }
        Ok(())
    }

    /// Rounds of all demands until the largest is steady; then response times at three points of demand.
    fn demand_intensity(&mut self) -> Result<(), Box<Step>> {
        self.precondition()?;
        let cells = cells::round(self.settings, self.unit.test, None);
        let largest = cells.iter().position(|cell| !cell.is_preparation).unwrap_or(0);
        self.rounds(cells, largest, Quantity::Iops, Cell::demand_id)?;
        let Some(rounds) = &self.outcome.rounds else { return Ok(()) };
        for (group, cell) in points(rounds, self.settings.class) {
            let cell = cell.lasting(self.settings.minutes(10.0));
            self.single(&format!("{group} demand"), &format!("h-{group}"), cell, 0)?;
        }
        Ok(())
    }
}

/// Where sequential I/O goes on: in whole MiB where the cell before ended. If the rest is smaller than what that cell moved, the
/// next one would only repeat the rest, so it begins at the beginning.
fn place_after(settings: &Settings, cell: &Cell, place: u64, moved: u64) -> u64 {
    let moved = moved / u64::from(cell.threads.max(1));
    let next = place.saturating_add(moved >> 20 << 20);
    if cell.part(settings).saturating_sub(next) < moved { 0 } else { next }
}

/// The points of demand: the highest rate with a mean response time below the ceiling of the class, one I/O in flight, and the
/// point whose rate is nearest to the middle between these.
fn points(rounds: &Rounds<'_>, class: Class) -> Vec<(&'static str, Cell)> {
    let ceiling = if class == Class::Enterprise { ENTERPRISE_CEILING } else { CLIENT_CEILING };
    let Some(window) = rounds.window() else { return Vec::new() };
    let rounds_of = &rounds.figures[window.first - 1..window.last()];
    let mean = |place: usize, quantity: Quantity| {
        rounds_of.iter().map(|round| quantity.of(round[place])).sum::<f64>() / rounds_of.len() as f64
    };
    let measured = rounds.cells.iter().enumerate().filter(|(_, cell)| !cell.is_preparation);
    let all: Vec<(&Cell, f64, f64)> = measured
        .map(|(place, cell)| (cell, mean(place, Quantity::Iops), mean(place, Quantity::Mean)))
        .collect();
    let Some(least) = all.iter().find(|(cell, ..)| cell.threads * cell.depth == 1) else { return Vec::new() };
    let fast = all.iter().filter(|(_, _, response)| *response <= ceiling);
    let most = fast.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or(least);
    let middle = f64::midpoint(least.1, most.1);
    let apart = |point: &&(&Cell, f64, f64)| (point.1 - middle).abs();
    let mid = all.iter().min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or(least);
    [("max", most), ("mid", mid), ("min", least)].map(|(name, point)| (name, point.0.clone())).into()
}
