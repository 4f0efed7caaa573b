//! Decides whether two sides did the same work in the same place, so that their figures can be compared.

use crate::run::{Job, Run};
use iolite_types::RunStatus;
use std::collections::BTreeSet;

/// The options that determine the work, with their names in reports and their defaults. Results with different values
/// are not comparable.
const DECIDING: [(&str, &str); 18] = [
    ("rw", "read"),
    ("bs", "4096"),
    ("bsrange", ""),
    ("bssplit", ""),
    ("iodepth", "1"),
    ("numjobs", "1"),
    ("ioengine", "psync"),
    ("direct", "0"),
    ("rwmixread", "50"),
    ("rwmixwrite", "50"),
    ("rwtmix", ""),
    ("random_distribution", "random"),
    ("rate", ""),
    ("rate_iops", ""),
    ("fsync", "0"),
    ("fdatasync", "0"),
    ("sync", "0"),
    ("verify", "0"),
];

/// The only property other than options that the user may allow to differ.
const DEVICE: &str = "device";

/// Options that only name files and jobs, so that differences do not matter.
const NAMES: [&str; 7] =
    ["name", "filename", "directory", "description", "output", "output-format", "filename_format"];

/// Options and properties that the user may allow to differ.
pub fn may_differ() -> impl Iterator<Item = &'static str> {
    DECIDING.into_iter().map(|(name, _)| name).chain([DEVICE])
}

/// The runs of a side, each with the job; `None` = the run does not have the job.
pub type InRuns<'a> = Vec<(&'a Run, Option<&'a Job>)>;

/// Why a job of one side cannot be compared with the same job of the other side. The options in `allowed` may differ
/// between the sides.
pub fn obstacles(names: [&str; 2], sides: [&InRuns; 2], allowed: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, side) in names.iter().zip(sides) {
        found.extend(of_side(name, side));
    }
    if !found.is_empty() {
        return found;
    }
    let is_allowed = |name: &str| allowed.iter().any(|allowed| allowed == name);
    for (option, default) in DECIDING {
        found.extend(differing(option, names, sides.map(|side| values(side, option, default)), is_allowed));
    }
    let all_tell = |of: fn(&Run) -> &Option<String>| {
        sides.iter().all(|side| side.iter().all(|(run, _)| of(run).is_some()))
    };
    let place: Option<fn(&Run) -> &Option<String>> = if all_tell(|run| &run.targets) {
        Some(|run| &run.targets)
    } else if all_tell(|run| &run.disks) {
        Some(|run| &run.disks)
    } else {
        None
    };
    if let Some(place) = place {
        let of = |side: &InRuns| {
            let told = side.iter().filter_map(|(run, _)| place(run).clone());
            told.map(|place| (place.clone(), place)).collect()
        };
        found.extend(differing(DEVICE, names, sides.map(of), is_allowed));
    }
    found
}

/// Why the job of one side cannot be compared with anything.
fn of_side(name: &str, side: &InRuns) -> Option<String> {
    if let Some(why) = unplanned(name, side) {
        return Some(why);
    }
    let runs = side.len();
    let there = side.iter().filter(|(_, job)| job.is_some()).count();
    if there == 0 {
        return Some(format!("{name} does not have this job"));
    }
    if there < runs {
        return Some(format!("only {there} of {runs} runs of {name} have this job"));
    }
    let failed = side.iter().find(|(_, job)| job.is_some_and(|job| job.error != 0));
    failed.map(|(run, _)| format!("{name} has runs with errors, such as {}", run.name))
}

/// The first run of a side that did not end as planned; this makes all its jobs incomparable. Jobs may have been
/// stopped early, and it is not known which ones. The length of a run matters, because it affects the figures
/// (caches, the state of a flash device). In a run that failed because jobs had errors, only those jobs are left out
/// ([`of_side`]): the figures of the other jobs are complete.
fn unplanned(name: &str, side: &InRuns) -> Option<String> {
    side.iter().find_map(|(run, _)| {
        let end = run.end.as_ref()?;
        let what = match end.status {
            RunStatus::Interrupted => "were interrupted",
            RunStatus::Failed if run.jobs.iter().all(|job| job.error == 0) => "failed",
            RunStatus::Ended | RunStatus::Failed => return None,
        };
        let why = if end.why.is_empty() { String::new() } else { format!(" ({})", end.why) };
        Some(format!("{name} has runs that {what}, such as {}{why}", run.name))
    })
}

/// What may have disturbed the job in comparable runs.
pub fn disturbances(names: [&str; 2], sides: [&InRuns; 2]) -> Vec<String> {
    let found = names.iter().zip(sides).filter_map(|(name, side)| {
        let (run, _) = side.iter().find(|(run, _)| run.jobs.iter().any(|job| job.error != 0))?;
        Some(format!(
            "other jobs had errors in runs of {name}, such as {}: there may have been less load than planned",
            run.name
        ))
    });
    found.collect()
}

/// Values of an option, each in the form for comparisons and in the form to show.
type Values = BTreeSet<(String, String)>;

fn values(side: &InRuns, option: &str, default: &str) -> Values {
    let jobs = side.iter().filter_map(|(_, job)| *job);
    let told = jobs.map(|job| job.options.get(option).map_or(default, String::as_str));
    told.map(|value| (plain(value), value.to_owned())).collect()
}

fn differing(
    option: &str,
    names: [&str; 2],
    sides: [Values; 2],
    is_allowed: impl Fn(&str) -> bool,
) -> Option<String> {
    let shown = |values: &Values| {
        let words: BTreeSet<&str> = values.iter().map(|(_, shown)| shown.as_str()).collect();
        let words: Vec<&str> =
            words.into_iter().map(|word| if word.is_empty() { "none" } else { word }).collect();
        words.join(" and ")
    };
    let compared = |values: &Values| values.iter().map(|(plain, _)| plain.clone()).collect::<BTreeSet<_>>();
    for (name, side) in names.iter().zip(&sides) {
        if compared(side).len() > 1 {
            return Some(format!("the runs of {name} do not repeat each other: {option} is {}", shown(side)));
        }
    }
    let is_other = compared(&sides[0]) != compared(&sides[1]);
    (is_other && !is_allowed(option))
        .then(|| format!("different {option}: {} and {}", shown(&sides[0]), shown(&sides[1])))
}

/// The names of options that differ without making results incomparable.
pub fn also_differing(sides: [&InRuns; 2]) -> Vec<String> {
    let jobs = || sides.into_iter().flatten().filter_map(|(_, job)| *job);
    let names: BTreeSet<&String> = jobs().flat_map(|job| job.options.keys()).collect();
    let of_interest = |name: &&&String| {
        !NAMES.contains(&name.as_str()) && !DECIDING.iter().any(|(deciding, _)| deciding == &name.as_str())
    };
    let differs = |name: &&String| {
        let values: BTreeSet<String> =
            jobs().map(|job| job.options.get(*name).map_or(String::new(), |value| plain(value))).collect();
        values.len() > 1
    };
    names.iter().filter(of_interest).copied().filter(differs).cloned().collect()
}

/// The normal form of a value: `4K` and `4096` are the same.
fn plain(value: &str) -> String {
    let lower = value.trim().to_ascii_lowercase();
    let mut plain = String::new();
    let mut rest = lower.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            plain.push_str(&rest[..next]);
            rest = &rest[next..];
        } else {
            plain.push_str(&number(&rest[..end]).map_or_else(|| rest[..end].to_owned(), |n| n.to_string()));
            rest = &rest[end..];
        }
    }
    plain
}

/// Parses a number with a suffix, which is a power of 1024.
fn number(word: &str) -> Option<u64> {
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let shift = match &word[end..] {
        "" => 0,
        "k" | "kb" | "ki" | "kib" => 10,
        "m" | "mb" | "mi" | "mib" => 20,
        "g" | "gb" | "gi" | "gib" => 30,
        _ => return None,
    };
    word[..end].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_options() {
        for (name, default) in DECIDING {
            let option = iolite_options::registry::find_job(name).expect("it is a job option");
            let written = match option.default {
                // A number, and the same as a word.
                Some("none") if name == "sync" => "0",
                text => text.unwrap_or(""),
            };
            assert_eq!(written, default, "{name}");
        }
    }

    #[test]
    fn values_are_compared_not_words() {
        for (a, b) in [("4k", "4096"), ("4K,8k", "4096,8192"), ("4k/60:64KiB/40", "4096/60:65536/40")] {
            assert_eq!(plain(a), plain(b));
        }
        for (a, b) in [("4k", "4"), ("randread", "read"), ("zipf:1.2", "zipf:1.1"), ("ä", "ö")] {
            assert_ne!(plain(a), plain(b));
        }
        assert_eq!(plain("99999999999999999999k"), "99999999999999999999k");
    }
}
