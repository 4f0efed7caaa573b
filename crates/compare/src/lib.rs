//! Compares stored results: which figures differ, by how much, and how certain that is. All functions are pure
//! functions of reports in JSON. docs/comparing.md describes the method.
//!
//! One run cannot show how much runs vary. So each run gives one value of each figure, no matter how long it was, and
//! a verdict needs [`FEWEST`] runs per side. Means of logarithms are compared, so a change is a ratio and is the same
//! in both directions. Its confidence interval is Welch's (`welch.rs`), and the verdict follows from it (`verdict.rs`).
//! All figures with verdicts share one probability of error, [`ERROR`], in equal parts (Bonferroni). So all verdicts
//! are correct in 95 of 100 comparisons, and a verdict never contradicts its interval, which could happen with a
//! stepwise procedure (Holm's).
//!
//! `run.rs` reads a run, `likeness.rs` decides whether results are comparable, and `limit.rs` checks limits on
//! changes. `order.rs` decides the order in which to make runs that will be compared, and `spread.rs` describes how
//! the runs of one side vary.

mod figure;
mod likeness;
mod limit;
mod order;
mod run;
mod spread;
mod verdict;
mod welch;

pub use figure::Figure;
pub use likeness::may_differ;
pub use limit::{BadLimit, Limit, Outcome, WHOLE_JOB};
pub use order::order;
pub use run::{Job, Latency, Part, Run, job_name};
pub use spread::{SPREAD_CONFIDENCE, SpreadBlock, SpreadRow, spread};
pub use verdict::{Row, Summary, Verdict};

use likeness::InRuns;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum probability that any verdict of a comparison is wrong.
pub const ERROR: f64 = 0.05;
/// [`ERROR`] is divided into at least this many shares, one for each figure. The rate and the latencies of a job are
/// three figures. If there are no latencies and a rate jumps between two levels, larger shares would lead to wrong
/// verdicts too often.
const FEWEST_SHARES: usize = 3;
/// The number of runs per side that a verdict needs.
pub const FEWEST: usize = 5;

/// One side of a comparison: repeated runs of the same thing.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its runs; at least one.
    pub runs: Vec<Run>,
}

/// The figures of a job in a direction.
#[derive(Clone, Debug)]
pub struct Block {
    /// The index of the side that is compared with the first.
    pub new: usize,
    /// The job.
    pub job: String,
    /// The direction, or [`WHOLE_JOB`].
    pub direction: &'static str,
    /// Why the job is not comparable.
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
    /// The number of figures that get a verdict.
    pub tested: usize,
    /// Notes about the comparison as a whole.
    pub notes: Vec<String>,
    /// The outcome of each limit: the worst outcome of all figures to which it applies.
    pub limits: Vec<Outcome>,
}

impl Comparison {
    /// The confidence level of an interval: of a figure that gets a verdict (`is_primary`), or of one that does not.
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

/// The names of the jobs of both sides in their order, without repetitions, beginning with those of BASE.
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

/// The runs of a side, with their jobs indexed by name because there may be very many.
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
        // Runs without any I/O are the worst ones, and the mean would leave them out.
        for ((name, side), parts) in names.iter().zip(sides).zip(parts) {
            if self.obstacles.is_empty() && parts.len() < side.len() {
                let (there, all) = (parts.len(), side.len());
                self.obstacles
                    .push(format!("only {there} of {all} runs of {name} did I/O in this direction"));
            }
        }
        let all = || parts.iter().flatten();
        let first = all().next().and_then(|part| part.latency);
        let is_mixed = all().any(|part| part.latency != first);
        if all().any(|part| part.latency.is_some_and(|latency| latency.is_averaged)) {
            let what = "percentiles are means of the jobs' own percentiles; with --output-format=json+ they cover all I/Os";
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
                    "the latencies are of different kinds (clat and lat, json and json+ of several jobs)"
                        .to_owned(),
                );
            } else {
                row.why = row.too_little(sides.map(Vec::len));
            }
            self.rows.push(row);
        }
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
            "All runs of one side were made before those of the other. Anything else that changed in between also \
             counts as a difference between the sides; alternate the runs if you can."
                .to_owned(),
        );
    }
    let programs: BTreeSet<&str> =
        sides.iter().flat_map(|side| &side.runs).map(|run| run.program.as_str()).collect();
    if programs.len() > 1 {
        let programs: Vec<&str> = programs.into_iter().collect();
        notes.push(format!("The results come from several programs: {}.", programs.join(", ")));
    }
    notes
}

#[cfg(test)]
mod tests;
