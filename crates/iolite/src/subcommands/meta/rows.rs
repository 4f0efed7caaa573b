//! What every format of the answer says: a line about the whole, the cells of each phase, remarks.

use super::machines::Machines;
use super::perform::{Done, Outcome};
use iolite_page::text::{bandwidth, bytes, count, latency, seconds};
use iolite_procedures::meta::figures::Worker;

/// What every result of the preset says.
pub const NO_SUBMISSION: &str = "the pattern of IO500, and its formula; not a submission";

/// How long writing phases last, by the rules of IO500.
const IO500_SECONDS: f64 = 300.0;
/// Phases below this many seconds have rough rates, because workers do not begin in the same instant.
const SHORT: f64 = 0.01;

/// The columns of the table.
pub const COLUMNS: [&str; 9] =
    ["phase", "done", "time", "rate", "until the first ended", "p50", "p99", "max", "slowest worker"];

/// What was measured, in a sentence.
pub fn headline(outcome: &Outcome) -> String {
    let setup = &outcome.setup;
    let on = outcome.file_system.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let workers = match setup.machines {
        1 if setup.tasks == 1 => "1 worker".to_owned(),
        1 => format!("{} workers", setup.tasks),
        // (Several ranks can be on one machine.)
        _ if matches!(outcome.machines, Machines::Ranks { .. }) => {
            format!("{} workers on {}", setup.workers(), outcome.machines.words())
        }
        machines => {
            format!("{} workers on {machines} machines ({})", setup.workers(), outcome.machines.words())
        }
    };
    let what = if outcome.is_io500 {
        "the phases of IO500".to_owned()
    } else {
        let (what, place) = match (&setup.bucket, setup.is_shared) {
            (Some(_), true) => ("objects", "one prefix"),
            (Some(_), false) => ("objects", "a prefix of each"),
            (None, true) => ("files", "one directory"),
            (None, false) => ("files", "a directory of each"),
        };
        let tree = match setup.depth {
            0 => String::new(),
            depth => format!(" with a tree of {depth} levels, {} directories in each", setup.breadth),
        };
        format!("{what} of {} in {place}{tree}", bytes(setup.size as f64))
    };
    let limit = setup.seconds.map(|limit| format!(", limited to {}", seconds(limit))).unwrap_or_default();
    let checked = if outcome.is_verified { ", checked after each phase" } else { "" };
    format!("{}{on}: {workers}, {what}{limit}{checked}", outcome.target.display())
}

/// The cells of a phase.
pub fn cells(done: &Done) -> [String; 9] {
    let figures = &done.figures;
    let (rate, stonewalled) = match done.phase.is_bandwidth() {
        true => {
            let until = figures.stonewall.bytes / figures.stonewall.seconds.max(f64::MIN_POSITIVE);
            (bandwidth(figures.bandwidth()), bandwidth(until))
        }
        // Of lists, entries count, whose number is known only at the end.
        false if done.entries.is_some() => (format!("{}/s", count(done.rate())), "-".to_owned()),
        false => (format!("{}/s", count(done.rate())), format!("{}/s", count(figures.stonewall.rate()))),
    };
    let slowest = figures.slowest().map(|worker| format!("{} {}", worker.name, of_worker(done, worker)));
    [
        done.phase.name().to_owned(),
        done.entries.unwrap_or(figures.ops()).to_string(),
        seconds(figures.seconds),
        rate,
        stonewalled,
        latency(figures.latency.p50),
        latency(figures.latency.p99),
        latency(figures.latency.max),
        slowest.unwrap_or_default(),
    ]
}

/// The rate of a worker. Of lists it counts requests, not entries.
pub fn of_worker(done: &Done, worker: &Worker) -> String {
    let unit = if done.entries.is_some() { " requests/s" } else { "/s" };
    format!("{}{unit}", count(worker.rate()))
}

/// Whether a phase was so short that its rate is rough.
fn is_rough(done: &Done) -> bool {
    done.figures.seconds < SHORT
}

/// Why a score does not count as one of IO500, or is better than it should be.
pub fn limits(outcome: &Outcome) -> Vec<String> {
    let has_short_writes = outcome.setup.seconds.is_some_and(|limit| limit < IO500_SECONDS)
        || outcome.done.iter().any(|done| done.phase.creates() && done.figures.seconds < IO500_SECONDS - 1.0);
    let mut limits = Vec::new();
    if has_short_writes {
        limits.push(format!(
            "not valid by the rules of IO500: each writing phase has to last {IO500_SECONDS} s"
        ));
    }
    let is_of_ranks = matches!(outcome.machines, Machines::Ranks { .. });
    if is_of_ranks && outcome.done.iter().any(|done| done.had_to_catch_up) {
        limits.push("too high: without the time in which slower workers caught up".to_owned());
    }
    if outcome.done.iter().any(is_rough) {
        limits.push(format!("rough: a phase took less than {} ms", SHORT * 1e3));
    }
    limits
}

/// The lines below the table.
pub fn remarks(outcome: &Outcome) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(score) = &outcome.score {
        lines.push(format!(
            "score {:.6}: bandwidth {:.6} GiB/s, metadata {:.6} kIOPS ({}{NO_SUBMISSION})",
            score.total,
            score.bandwidth,
            score.metadata,
            limits(outcome).iter().map(|limit| format!("{limit}; ")).collect::<String>()
        ));
    } else if outcome.is_io500 {
        lines.push(format!("no score: a phase is missing ({NO_SUBMISSION})"));
    }
    let short: Vec<&str> =
        outcome.done.iter().filter(|done| is_rough(done)).map(|done| done.phase.name()).collect();
    if !short.is_empty() {
        lines.push(format!(
            "Workers begin within about a millisecond, so that rates of phases below {} ms are rough: {}; take more --files.",
            SHORT * 1e3,
            short.join(", ")
        ));
    }
    if outcome.done.iter().any(|done| done.had_to_catch_up) {
        let how = match outcome.machines {
            Machines::Ranks { .. } => {
                "rank 0 then made what slower workers lacked of the fastest one, which is not in the figures"
            }
            _ => "its time and rate include the time in which slower workers caught up with the fastest one",
        };
        lines.push(format!("Where the limit of time ended a phase, {how}."));
    }
    lines.extend(outcome.failures.iter().map(|failure| format!("failed: {failure}")));
    lines
}
