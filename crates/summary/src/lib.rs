//! A result in short: figures of each job and direction, how steady they were, and what went wrong.
//!
//! It is made only from a report in JSON, of Iolite or fio. So a run that has just ended and its stored result read the
//! same. [`Outcome`] is what a reader wants to know first (pages show it, too); [`screen`] writes it for a terminal,
//! [`markdown`] for issue trackers, [`csv`] for spreadsheets. [`sparkline`] draws rates and distributions in one line.

/// `writeln!` into a string, which cannot fail.
macro_rules! line {
    ($text:expr, $($format:tt)*) => {{
        use std::fmt::Write;
        writeln!($text, $($format)*).expect("strings take everything");
    }};
}

pub mod csv;
pub mod markdown;
mod result;
pub mod screen;
pub mod sparkline;
mod stages;

pub use result::{Job, Outcome, PERCENTILES, Row, Tested, with_hosts};
pub use stages::{SlowStages, StageFigures, Stages};

use iolite_findings::numbers::DataUnits;
use iolite_types::is_bidi_control;

/// The text on one line, cut after this many characters. (It is not escaped.)
pub fn one_line(text: &str, most: usize) -> String {
    let mut characters =
        text.chars().map(|character| if character.is_whitespace() { ' ' } else { character });
    let mut start: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        start.push('…');
    }
    start
}

/// The text on one line, with characters that could control a terminal or change the direction of writing as their
/// numbers.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(' '),
            acts if acts.is_control() || is_bidi_control(acts) => {
                out += &format!("\\x{:02x}", u32::from(acts));
            }
            other => out.push(other),
        }
    }
    out
}

/// What a job does, in the words of its options: `randread bs=4k ioengine=io_uring iodepth=16`.
fn workload(job: &Job<'_>, outcome: &Outcome<'_>) -> String {
    /// The options that say most, with their aliases.
    const WORDS: [&[&str]; 16] = [
        &["bs", "blocksize"],
        &["bsrange", "blocksize_range"],
        &["bssplit"],
        &["ioengine"],
        &["iodepth"],
        &["numjobs"],
        &["direct"],
        &["buffered"],
        &["rwmixread"],
        &["rwmixwrite"],
        &["rwtmix"],
        &["rate"],
        &["rate_iops"],
        &["fsync"],
        &["fdatasync"],
        &["size"],
    ];
    let value = |names: &[&str]| job.option(names, &outcome.options);
    let mut words = vec![value(&["rw", "readwrite"]).unwrap_or_else(|| "read".to_owned())];
    let has_several = ["bsrange", "blocksize_range", "bssplit"].iter().any(|name| value(&[*name]).is_some());
    for names in WORDS {
        // It is not in force, and clones are told by their number.
        if (names[0] == "bs" && has_several) || (names[0] == "numjobs" && job.members > 1) {
            continue;
        }
        // An option without a value is switched on.
        words.extend(value(names).map(|value| match value.is_empty() {
            true => names[0].to_owned(),
            false => format!("{}={value}", names[0]),
        }));
    }
    harmless(&words.join(" "))
}

/// The units of a job's bandwidth: `kb_base` and `unit_base`.
fn data_units(job: &Job<'_>, outcome: &Outcome<'_>) -> DataUnits {
    let is =
        |name: &str, value: &str| job.option(&[name], &outcome.options).is_some_and(|given| given == value);
    DataUnits { is_decimal: is("kb_base", "1000"), is_bits: is("unit_base", "1") }
}

/// Why the figures are not those of the whole planned run; `None` = they are.
fn cut_short(outcome: &Outcome<'_>) -> Option<String> {
    use iolite_types::RunStatus;
    let end = outcome.end.as_ref()?;
    let words = match end.status {
        RunStatus::Interrupted => "The run was interrupted",
        RunStatus::Failed if outcome.jobs.iter().all(|job| job.error == 0) => "The run failed",
        RunStatus::Failed | RunStatus::Ended => return None,
    };
    let why = if end.why.is_empty() { String::new() } else { format!(": {}", harmless(&end.why)) };
    Some(format!("{words}{why}; the figures are of what was measured until then."))
}

/// The error of a job in words; `None` = it had none.
fn error(job: &Job<'_>) -> Option<String> {
    if job.error == 0 {
        return None;
    }
    let words = iolite_types::describe_job_error(job.error);
    let more = if job.went_on > 0 {
        format!("; it went on after {} error{}", job.went_on, if job.went_on == 1 { "" } else { "s" })
    } else {
        String::new()
    };
    Some(format!("error {} ({words}){more}", job.error))
}

#[cfg(test)]
mod tests;
