//! A result on a terminal: one line for each job and direction, with pictures one line high.
//!
//! Nothing depends on colours: they only repeat what words say.

use crate::{
    Job, Outcome, Row, cut_short, data_units, error, harmless, one_line, sparkline, with_hosts, workload,
};
use iolite_findings::numbers::{DataUnits, count, latency, percent};
use iolite_stored::NoReport;
use serde_json::Value;

/// The columns that a screen has at least: narrower terminals wrap.
const NARROWEST: usize = 80;
/// The columns before the first figure.
const INDENT: usize = 12;
/// The columns of a picture at the narrowest, and the most.
const PICTURE: (usize, usize) = (28, 72);
/// The most jobs with pictures and CPU; more have a line for each direction.
const MOST_DRAWN: usize = 8;
/// The most jobs that are listed; more have their sums, and those that failed.
const MOST_LISTED: usize = 64;
/// The most warnings that are repeated: all of them were shown during the run.
const MOST_WARNINGS: usize = 5;
/// The most disks that are named.
const MOST_DISKS: usize = 6;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Its columns.
    pub columns: usize,
    /// Its locale has only ASCII.
    pub is_ascii: bool,
    /// It shows colours, and the user wants them.
    pub has_colors: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        Terminal { columns: NARROWEST, is_ascii: false, has_colors: false }
    }
}

/// Colours by their meaning, as numbers of SGR (ECMA-48): the terminal's own 16.
#[derive(Clone, Copy, Debug)]
enum Style {
    Strong = 1,
    Dim = 2,
    Bad = 31,
    Doubtful = 33,
}

impl Terminal {
    fn styled(self, style: Style, text: &str) -> String {
        match self.has_colors && !text.is_empty() {
            true => format!("\x1b[{}m{text}\x1b[0m", style as u8),
            false => text.to_owned(),
        }
    }

    /// The columns of a picture.
    fn picture(self) -> usize {
        (PICTURE.0 + self.columns.saturating_sub(NARROWEST)).min(PICTURE.1)
    }
}

/// The screen of a report. It has no control characters except those of colours.
///
/// # Errors
/// It is not a report.
pub fn of(report: &Value, terminal: Terminal) -> Result<String, NoReport> {
    let report = &*with_hosts(report);
    let outcome = Outcome::of(report)?;
    let mut text = String::new();
    let with_io = |job: &&Job<'_>| !job.rows.is_empty() || job.error != 0;
    let jobs: Vec<&Job<'_>> = outcome.blocks.iter().filter(with_io).collect();
    if jobs.is_empty() {
        line!(text, "There was no I/O.");
    } else {
        line!(text, "{}", terminal.styled(Style::Dim, &heads()));
    }
    let is_listed = |job: &&&Job<'_>| jobs.len() <= MOST_LISTED || job.error != 0;
    let listed = jobs.iter().filter(is_listed);
    let more = listed.clone().count().saturating_sub(MOST_LISTED);
    for job in listed.take(MOST_LISTED) {
        of_job(&mut text, job, &outcome, jobs.len() <= MOST_DRAWN, terminal);
    }
    if more > 0 {
        line!(text, "{}", terminal.styled(Style::Bad, &format!("and {more} more jobs with errors")));
    }
    // The sum of one job is that job. As with fio, the first job decides about units.
    let units = jobs.first().map(|job| data_units(job, &outcome)).unwrap_or_default();
    for (name, rows) in outcome.sums.iter().filter(|_| jobs.len() > 1) {
        line!(text, "{}", terminal.styled(Style::Strong, &harmless(name)));
        for row in rows {
            of_row(&mut text, row, "", units, terminal);
            over_time(&mut text, row, terminal);
        }
        if let [row] = &rows[..] {
            distribution(&mut text, row, terminal);
        }
    }
    if jobs.len() > MOST_LISTED {
        line!(text, "{} jobs; --output-format=normal shows each of them.", jobs.len());
    }
    if outcome.jobs.iter().flat_map(|job| &job.rows).any(|row| row.is_total) {
        line!(text, "* total latencies: those of completion have no percentiles");
    }
    below(&mut text, &outcome, terminal);
    Ok(if terminal.is_ascii { ascii(&text) } else { text })
}

/// What is said once for all jobs.
fn below(text: &mut String, outcome: &Outcome<'_>, terminal: Terminal) {
    let busy = outcome.disks.iter().take(MOST_DISKS);
    let busy: Vec<String> =
        busy.map(|(name, share)| format!("{} {}", harmless(name), percent(share.round()))).collect();
    let more = outcome.disks.len().saturating_sub(MOST_DISKS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !busy.is_empty() {
        line!(text, "{} {}{more}", terminal.styled(Style::Dim, "disks busy"), busy.join(", "));
    }
    if let Some(idle) = outcome.idle {
        let each: Vec<String> = outcome.idle_cpus.iter().map(|share| percent(*share)).collect();
        let each = if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) };
        line!(text, "{} {}{each}", terminal.styled(Style::Dim, "CPUs idle"), percent(idle));
    }
    if let Some(words) = cut_short(outcome) {
        line!(text, "{}", terminal.styled(Style::Doubtful, &words));
    }
    for warning in outcome.warnings.iter().take(MOST_WARNINGS) {
        line!(text, "{} {}", terminal.styled(Style::Doubtful, "warning:"), harmless(warning));
    }
    if outcome.warnings.len() > MOST_WARNINGS {
        line!(text, "and {} more warnings, above", outcome.warnings.len() - MOST_WARNINGS);
    }
}

/// The titles of the columns.
fn heads() -> String {
    cells(["", "IOPS", "bandwidth", "p50", "p99", "p99.9", "max", "errors"].map(str::to_owned))
}

fn cells([name, iops, moved, p50, p99, p999, max, errors]: [String; 8]) -> String {
    let line = format!("{name:<INDENT$}{iops:>8}{moved:>12}{p50:>10}{p99:>10}{p999:>10}{max:>10}{errors:>8}");
    line.trim_end().to_owned()
}

fn of_job(text: &mut String, job: &Job<'_>, outcome: &Outcome<'_>, is_drawn: bool, terminal: Terminal) {
    // The heading is one line.
    let columns = terminal.columns.max(NARROWEST);
    let mut name = one_line(&harmless(job.name), columns / 2);
    if job.members > 1 {
        name += &format!(" ({} jobs)", job.members);
    }
    let room = columns.saturating_sub(name.chars().count() + 2);
    let words = workload(job, outcome);
    let words = if words.chars().count() > room { one_line(&words, room - 1) } else { words };
    line!(text, "{} {}", terminal.styled(Style::Strong, &name), terminal.styled(Style::Dim, &words));
    let mut errors = job.errors().to_string();
    let units = data_units(job, outcome);
    for row in &job.rows {
        of_row(text, row, &std::mem::take(&mut errors), units, terminal);
        if is_drawn {
            over_time(text, row, terminal);
            distribution(text, row, terminal);
        }
        if let Some(stages) = &row.stages {
            label(text, "stages", &stages.in_short(), terminal);
            stages.tail_in_short().iter().for_each(|words| label(text, "tail", words, terminal));
        }
    }
    if let Some(syncs) = &job.syncs {
        of_row(text, syncs, "", units, terminal);
    }
    if job.rows.is_empty() {
        of_cells(text, ["  no I/O", "", "", "", "", "", ""].map(str::to_owned), &errors, terminal);
    }
    // The kernel counts CPU time in steps of milliseconds: a short job may have none.
    if is_drawn && job.cpu != (0.0, 0.0) {
        let each = job.cpu_per_io.map_or_else(String::new, |each| format!(", {} per I/O", latency(each)));
        let (user, system) = job.cpu;
        label(text, "CPU", &format!("{} user, {} system{each}", percent(user), percent(system)), terminal);
    }
    for words in &job.searched {
        line!(text, "{:INDENT$}{}", "", harmless(words));
    }
    if let Some(words) = error(job) {
        let of_all =
            if job.members > 1 { format!("{} of {} jobs: ", job.failed, job.members) } else { String::new() };
        line!(text, "{:INDENT$}{}", "", terminal.styled(Style::Bad, &(of_all + &words)));
    }
}

fn of_row(text: &mut String, row: &Row, errors: &str, units: DataUnits, terminal: Terminal) {
    let mark = if row.is_total { "*" } else { "" };
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ns| latency(ns) + mark);
    let [p50, p99, p999] = row.percentiles.map(time);
    // Syncs move no data of their own.
    let moved = if row.direction == "sync" { "–".to_owned() } else { units.rate(row.bandwidth) };
    let max = row.max.map_or_else(|| "–".to_owned(), latency);
    let first = format!("  {}", row.direction);
    of_cells(text, [first, count(row.iops), moved, p50, p99, p999, max], errors, terminal);
}

fn of_cells(text: &mut String, row: [String; 7], errors: &str, terminal: Terminal) {
    let [name, iops, moved, p50, p99, p999, max] = row;
    let plain = cells([name, iops, moved, p50, p99, p999, max, String::new()]);
    let style = if errors == "0" { Style::Dim } else { Style::Bad };
    let padding = NARROWEST.saturating_sub(plain.chars().count() + errors.len());
    let errors = terminal.styled(style, errors);
    line!(text, "{}", format!("{plain}{:padding$}{errors}", "").trim_end());
}

/// IOPS over time, and how steady they were.
fn over_time(text: &mut String, row: &Row, terminal: Terminal) {
    if row.rates.iter().all(|rate| *rate <= 0.0) && row.steadiness.is_none() {
        return;
    }
    let (style, words) = match row.steadiness {
        Some(steadiness) if steadiness.is_one_number() => (Style::Dim, steadiness.in_short()),
        Some(steadiness) => (Style::Doubtful, steadiness.in_short()),
        None => (Style::Dim, "too short to tell how steady".to_owned()),
    };
    // The words may need more than their usual room.
    let room = terminal.columns.max(NARROWEST).saturating_sub(INDENT + 2 + words.chars().count());
    let picture = sparkline::of(&row.rates, terminal.picture().min(room), terminal.is_ascii);
    let words = terminal.styled(style, &words);
    let space = if picture.is_empty() { "" } else { "  " };
    label(text, "IOPS", &format!("{picture}{space}{words}"), terminal);
}

/// The distribution of latencies.
fn distribution(text: &mut String, row: &Row, terminal: Terminal) {
    let (Some((&least, _)), Some((&most, _))) =
        (row.latencies.first_key_value(), row.latencies.last_key_value())
    else {
        return;
    };
    let picture = sparkline::of_distribution(&row.latencies, terminal.picture(), terminal.is_ascii);
    let ends = format!("{} to {}", latency(least as f64), latency(row.max.unwrap_or(most as f64)));
    label(text, "latency", &format!("{picture}  {}", terminal.styled(Style::Dim, &ends)), terminal);
}

/// A line below a line of figures.
fn label(text: &mut String, name: &str, words: &str, terminal: Terminal) {
    line!(text, "    {}{words}", terminal.styled(Style::Dim, &format!("{name:<width$}", width = INDENT - 4)));
}

/// The same in ASCII, as far as it is ours. (Names of jobs stay.)
fn ascii(text: &str) -> String {
    text.replace('µ', "u").replace('–', "-").replace('…', "~")
}
