//! Compares stored results: the differences, their size, and their certainty. Pure functions of reports in JSON;
//! docs/comparing.md describes the method.
//!
//! The idea: one run cannot show how runs differ, so a run is one value of each figure, however long its series is, and
//! a verdict needs [`FEWEST`] runs a side. Means of logarithms are compared, so a change is a ratio and the same in
//! either direction; its interval is Welch's (`chance.rs`). All figures with verdicts share one probability of error,
//! [`ERROR`], evenly (Bonferroni): so all verdicts together are right in 95 of 100 comparisons, and a verdict never
//! contradicts its interval, as it could with stepwise procedures (Holm's).
//!
//! `run.rs` reads a run, `likeness.rs` decides whether it may be compared, `limit.rs` has the limits of changes.
//! `order.rs` decides the order of runs that will be compared, and `spread.rs` the differences between the runs of one
//! side.

mod chance;
mod figure;
mod likeness;
mod limit;
mod order;
mod run;
mod spread;

pub use figure::Figure;
pub use likeness::may_differ;
pub use limit::{BadLimit, Limit, Outcome, WHOLE_JOB};
pub use order::order;
pub use run::{Job, Latency, Part, Run, job_name};
pub use spread::{SPREAD_CONFIDENCE, SpreadBlock, SpreadRow, spread};

use likeness::InRuns;
use std::collections::{BTreeMap, BTreeSet};

/// The probability that any verdict of a comparison is wrong.
pub const ERROR: f64 = 0.05;
/// A figure gets no more than this share of it. Rates and latencies of a job are three figures; without latencies, two
/// levels between which a rate jumps would be taken for a difference too often.
const FEWEST_SHARES: usize = 3;
/// A verdict needs so many runs a side.
pub const FEWEST: usize = 5;

/// The repeats of one thing.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its runs; at least one.
    pub runs: Vec<Run>,
}

/// The conclusion about a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// NEW is better.
    Better,
    /// NEW is worse.
    Worse,
    /// It may be either.
    CannotTell,
    /// The sides had different work.
    NotComparable,
    /// It is shown without a verdict.
    Exploratory,
}

impl Verdict {
    /// A word or two for it.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotComparable => "not comparable",
            Verdict::Exploratory => "exploratory",
        }
    }
}

/// A figure of a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Of how many runs.
    pub runs: usize,
    /// The geometric mean.
    pub mean: f64,
    /// The coefficient of variation, in parts; `None` = of one run.
    pub variation: Option<f64>,
}

/// A figure of both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub figure: Figure,
    /// It gets a verdict by default.
    pub is_primary: bool,
    /// BASE; `None` = not known.
    pub base: Option<Summary>,
    /// NEW.
    pub new: Option<Summary>,
    /// The change from BASE to NEW, in parts.
    pub change: Option<f64>,
    /// The interval of the change; `None` = too few runs.
    pub interval: Option<(f64, f64)>,
    /// The conclusion.
    pub verdict: Verdict,
    /// Why there is no verdict, where that is not the interval.
    pub why: Option<String>,
    /// The indexes of the limits on it, and their outcomes.
    pub limits: Vec<(usize, Outcome)>,
    logarithms: [Vec<f64>; 2],
    step: f64,
}

/// The figures of a job in a direction.
#[derive(Clone, Debug)]
pub struct Block {
    /// The position of the side that is compared with the first.
    pub new: usize,
    /// The job.
    pub job: String,
    /// The direction, or [`WHOLE_JOB`].
    pub direction: &'static str,
    /// Why it is not comparable.
    pub obstacles: Vec<String>,
    /// Other notes for the user.
    pub notes: Vec<String>,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// The comparison of sides with the first of them.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The jobs and directions, side after side.
    pub blocks: Vec<Block>,
    /// How many figures verdicts are made of.
    pub tested: usize,
    /// Notes about the comparison as a whole.
    pub notes: Vec<String>,
    /// The outcome of each limit: the worst of all its figures.
    pub limits: Vec<Outcome>,
}

impl Comparison {
    /// The probability with which an interval holds, of a figure that verdicts are made of or of another.
    pub fn confidence(&self, is_primary: bool) -> f64 {
        1.0 - if is_primary { ERROR / self.tested.max(FEWEST_SHARES) as f64 } else { ERROR }
    }
}

/// Compares sides with the first of them. Options in `allowed` may differ between them ([`may_differ`]).
///
/// # Errors
/// There is nothing to compare, or a limit matches no figure.
pub fn compare(sides: &[Side], limits: &[Limit], allowed: &[String]) -> Result<Comparison, String> {
    let mut blocks = Vec::new();
    for (new, side) in sides.iter().enumerate().skip(1) {
        blocks.extend(blocks_of(&sides[0], side, new, limits, allowed));
    }
    if blocks.is_empty() {
        return Err("there is nothing to compare: no job of these results did any I/O".to_owned());
    }
    for (position, limit) in limits.iter().enumerate() {
        let is_of = |row: &Row| row.limits.iter().any(|(of, _)| *of == position);
        if !blocks.iter().any(|block| block.rows.iter().any(is_of)) {
            return Err(unmatched(limit, &blocks));
        }
    }
    let rows = || blocks.iter().flat_map(|block| &block.rows);
    let tested = rows().filter(|row| row.is_primary && row.has_interval()).count();
    let mut comparison =
        Comparison { blocks, tested, notes: notes(sides), limits: vec![Outcome::Kept; limits.len()] };
    let errors = [false, true].map(|is_primary| 1.0 - comparison.confidence(is_primary));
    for row in comparison.blocks.iter_mut().flat_map(|block| &mut block.rows) {
        row.judge(errors[usize::from(row.is_primary)]);
        for (limit, outcome) in &mut row.limits {
            *outcome = limits[*limit].outcome(row.interval);
            comparison.limits[*limit] = comparison.limits[*limit].max(*outcome);
        }
    }
    Ok(comparison)
}

/// The options among [`may_differ`] that differ between the first side and others, in jobs that both have.
pub fn differing(sides: &[Side]) -> Vec<&'static str> {
    let Some((base, others)) = sides.split_first() else { return Vec::new() };
    let all: Vec<String> = may_differ().map(str::to_owned).collect();
    let differs = |name: &&str| {
        let rest: Vec<String> = all.iter().filter(|other| other != name).cloned().collect();
        others.iter().any(|new| {
            let by_name = [base, new].map(indexed);
            job_names([base, new]).into_iter().any(|job| {
                let in_runs = by_name.each_ref().map(|side| in_runs(side, job));
                let obstacles = |allowed| likeness::obstacles(SIDES, in_runs.each_ref(), allowed);
                obstacles(&all).is_empty() && !obstacles(&rest).is_empty()
            })
        })
    };
    may_differ().filter(differs).collect()
}

fn unmatched(limit: &Limit, blocks: &[Block]) -> String {
    const MOST: usize = 20;
    let known = blocks.iter().flat_map(|block| {
        let of = |row: &Row| format!("{}.{}.{}", block.job, block.direction, row.figure.name());
        block.rows.iter().map(of)
    });
    let mut known: Vec<String> = known.collect();
    let more = if known.len() > MOST { ", …" } else { "" };
    known.truncate(MOST);
    format!("limit {}: there is no such figure; there are {}{more}", limit.text, known.join(", "))
}

/// The jobs of both sides in their order, those of BASE first.
fn job_names(sides: [&Side; 2]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let jobs = sides.into_iter().flat_map(|side| &side.runs).flat_map(|run| &run.jobs);
    jobs.map(|job| job.name.as_str()).filter(|name| seen.insert(*name)).collect()
}

fn jobs_by_name(run: &Run) -> BTreeMap<&str, &Job> {
    run.jobs.iter().map(|job| (job.name.as_str(), job)).collect()
}

/// The names of sides in messages.
const SIDES: [&str; 2] = ["BASE", "NEW"];

/// The runs of a side with their jobs by name, since there may be very many.
fn indexed(side: &Side) -> Vec<(&Run, BTreeMap<&str, &Job>)> {
    side.runs.iter().map(|run| (run, jobs_by_name(run))).collect()
}

fn in_runs<'a>(side: &[(&'a Run, BTreeMap<&str, &'a Job>)], name: &str) -> InRuns<'a> {
    side.iter().map(|(run, jobs)| (*run, jobs.get(name).copied())).collect()
}

fn blocks_of(base: &Side, new: &Side, position: usize, limits: &[Limit], allowed: &[String]) -> Vec<Block> {
    let sides = [base, new];
    let mut blocks = Vec::new();
    let by_name = sides.map(indexed);
    for name in job_names(sides) {
        let in_runs = by_name.each_ref().map(|side| in_runs(side, name));
        let both = in_runs.each_ref();
        let obstacles = likeness::obstacles(SIDES, both, allowed);
        let also = likeness::also_differing(both);
        for direction in iolite_stored::DIRECTIONS.into_iter().chain([WHOLE_JOB]) {
            let parts = both.map(|side| parts(side, direction));
            if parts.iter().all(Vec::is_empty) {
                continue;
            }
            let mut block = Block {
                new: position,
                job: name.to_owned(),
                direction,
                obstacles: obstacles.clone(),
                notes: Vec::new(),
                rows: Vec::new(),
            };
            block.fill(SIDES, both, &parts, limits);
            if !also.is_empty() && block.obstacles.is_empty() {
                block.notes.push(format!("other options that differ: {}", also.join(", ")));
            }
            if block.obstacles.is_empty() {
                block.notes.extend(likeness::disturbances(SIDES, both));
            }
            blocks.push(block);
        }
    }
    blocks
}

fn parts<'a>(side: &InRuns<'a>, direction: &str) -> Vec<&'a Part> {
    let jobs = side.iter().filter_map(|(_, job)| *job);
    jobs.filter_map(|job| job.parts.iter().find(|part| part.direction == direction)).collect()
}

impl Block {
    fn fill(&mut self, names: [&str; 2], sides: [&InRuns; 2], parts: &[Vec<&Part>; 2], limits: &[Limit]) {
        // Runs in which nothing was done would be left out of the mean: the worst ones.
        for ((name, side), parts) in names.iter().zip(sides).zip(parts) {
            if self.obstacles.is_empty() && parts.len() < side.len() {
                let (there, all) = (parts.len(), side.len());
                self.obstacles
                    .push(format!("{there} of {all} runs of {name} did anything in this direction"));
            }
        }
        let all = || parts.iter().flatten();
        let first = all().next().and_then(|part| part.latency);
        let is_mixed = all().any(|part| part.latency != first);
        if all().any(|part| part.latency.is_some_and(|latency| latency.is_averaged)) {
            let what = "percentiles are the means of the jobs' own; with --output-format=json+ they are of all their I/Os";
            self.notes.push(what.to_owned());
        }
        for figure in Figure::ALL {
            let mut row = Row::of(figure, parts);
            if row.base.is_none() && row.new.is_none() {
                continue;
            }
            let about = |(position, limit): (usize, &Limit)| {
                limit.is_about(&self.job, self.direction, figure).then_some((position, Outcome::Open))
            };
            row.limits = limits.iter().enumerate().filter_map(about).collect();
            row.is_primary = figure.is_primary() || !row.limits.is_empty();
            if !self.obstacles.is_empty() {
                row.verdict = Verdict::NotComparable;
            } else if figure.is_latency() && is_mixed {
                row.verdict = Verdict::NotComparable;
                row.why = Some(
                    "latencies are of other kinds (clat and lat, json and json+ of several jobs)".to_owned(),
                );
            } else {
                row.why = row.too_little(sides.map(Vec::len));
            }
            self.rows.push(row);
        }
    }
}

impl Row {
    fn of(figure: Figure, parts: &[Vec<&Part>; 2]) -> Row {
        let values = [&parts[0], &parts[1]]
            .map(|parts| parts.iter().filter_map(|part| part.figure(figure)).collect::<Vec<f64>>());
        let logarithms =
            values.each_ref().map(|values| values.iter().map(|value| value.ln()).collect::<Vec<f64>>());
        let [base, new] = [0, 1].map(|side: usize| Summary::of(&values[side], &logarithms[side]));
        let change = base.zip(new).map(|(base, new)| new.mean / base.mean - 1.0);
        let step = parts.iter().flatten().map(|part| part.step(figure)).fold(0.0, f64::max);
        let verdict = Verdict::CannotTell;
        let (is_primary, interval, why, limits) = (false, None, None, Vec::new());
        Row { figure, is_primary, base, new, change, interval, verdict, why, limits, logarithms, step }
    }

    /// Why there is no interval, for sides of so many runs.
    fn too_little(&self, runs: [usize; 2]) -> Option<String> {
        let known = self.logarithms.each_ref().map(Vec::len);
        if runs.iter().any(|&runs| runs < FEWEST) {
            return Some(format!("{} and {} runs; a verdict needs {FEWEST} a side", runs[0], runs[1]));
        }
        (known != runs).then(|| format!("known in {} and {} runs only", known[0], known[1]))
    }

    fn has_interval(&self) -> bool {
        self.why.is_none() && self.verdict != Verdict::NotComparable
    }

    fn judge(&mut self, error: f64) {
        if self.has_interval() {
            let [base, new] = &self.logarithms;
            let found = chance::difference(base, new, error, self.step);
            let (low, high) = (found.centre - found.half, found.centre + found.half);
            self.interval = Some((low.exp_m1(), high.exp_m1()));
            self.verdict = match (low > 0.0, high < 0.0) {
                (false, false) => Verdict::CannotTell,
                (is_more, _) if is_more == self.figure.is_better_if_more() => Verdict::Better,
                _ => Verdict::Worse,
            };
        }
        if !self.is_primary && self.verdict != Verdict::NotComparable {
            self.verdict = Verdict::Exploratory;
        }
    }
}

impl Summary {
    fn of(values: &[f64], logarithms: &[f64]) -> Option<Summary> {
        let several = values.len() > 1;
        (!values.is_empty()).then(|| {
            let mean = chance::mean(values);
            let variation = several.then(|| chance::variance(values, mean).sqrt() / mean);
            Summary { runs: values.len(), mean: chance::mean(logarithms).exp(), variation }
        })
    }
}

/// Notes about the sides.
fn notes(sides: &[Side]) -> Vec<String> {
    let mut notes = Vec::new();
    if sides.iter().any(|side| side.runs.len() < FEWEST) {
        notes.push(format!(
            "A verdict needs at least {FEWEST} runs a side: one run cannot show how runs differ (docs/comparing.md)."
        ));
    }
    let times = |side: &Side| side.runs.iter().map(|run| run.time_ms).collect::<Option<Vec<u64>>>();
    let span = |side: &Side| times(side).and_then(|times| Some((*times.iter().min()?, *times.iter().max()?)));
    let base = span(&sides[0]).filter(|_| sides[0].runs.len() >= FEWEST);
    let is_apart = |side: &Side| {
        let new = span(side).filter(|_| side.runs.len() >= FEWEST);
        base.zip(new).is_some_and(|(base, new)| base.1 < new.0 || new.1 < base.0)
    };
    if sides[1..].iter().any(is_apart) {
        notes.push(
            "The runs of one side were all made before those of the other. Whatever else changed in between counts as \
             a difference between the sides; take turns if you can."
                .to_owned(),
        );
    }
    let programs: BTreeSet<&str> =
        sides.iter().flat_map(|side| &side.runs).map(|run| run.program.as_str()).collect();
    if programs.len() > 1 {
        let programs: Vec<&str> = programs.into_iter().collect();
        notes.push(format!("The results are of several programs: {}.", programs.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests;
