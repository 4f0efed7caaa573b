//! The results of all trials.

use crate::parts::Part;
use crate::trial::{Finding, Outcome};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The counts of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    trials: u64,
    faults: u64,
    found: u64,
    moot: u64,
    missed: u64,
    false_alarms: u64,
    left_behind: u64,
    wrong: u64,
}

/// The counts of all parts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// A single trial was asked for, and not the parts.
    is_single: bool,
    parts: BTreeMap<Part, Counts>,
    skipped: Vec<(Part, String)>,
}

impl Tally {
    /// The counts of a single trial.
    pub fn of_one() -> Tally {
        Tally { is_single: true, ..Tally::default() }
    }

    /// Adds the result of a trial, and prints findings at once.
    pub fn add(&mut self, part: Part, number: u64, outcome: Outcome) {
        let counts = self.parts.entry(part).or_default();
        counts.trials += 1;
        counts.faults += outcome.faults;
        counts.found += outcome.found;
        counts.moot += outcome.moot;
        for finding in outcome.findings {
            let (count, name, text) = match finding {
                Finding::Missed(text) => (&mut counts.missed, "missed", text),
                Finding::FalseAlarm(text) => (&mut counts.false_alarms, "false alarm", text),
                Finding::LeftBehind(text) => (&mut counts.left_behind, "left behind", text),
                Finding::Wrong(text) => (&mut counts.wrong, "wrong", text),
            };
            *count += 1;
            println!("{}:{number}: {name}: {}", part.name(), text.trim_end());
        }
        if let Some(kept) = outcome.kept {
            println!("{}:{number}: its files are in {}", part.name(), kept.display());
        }
    }

    /// Notes why a part is not tried.
    pub fn skip(&mut self, part: Part, reason: &str) {
        self.skipped.push((part, reason.into()));
    }

    /// Prints the counts. Returns whether all is well.
    pub fn told(&self, program: &Path, seed: u64, time: Duration) -> bool {
        println!("\nseed {seed}, {} s, {}", time.as_secs(), program.display());
        println!(
            "| part | trials | faults | found | of no effect | missed | false alarms | left behind | wrong |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
        for (part, counts) in &self.parts {
            let Counts { trials, faults, found, moot, missed, false_alarms, left_behind, wrong } = counts;
            let trials = of_all(*trials, self.asked(*part));
            println!(
                "| {} | {trials} | {faults} | {found} | {moot} | {missed} | {false_alarms} | {left_behind} | {wrong} |",
                part.name()
            );
        }
        for (part, reason) in &self.skipped {
            println!("{} skipped: {reason}", part.name());
        }
        self.left_out().for_each(|line| println!("{line}"));
        self.is_well()
    }

    /// The parts with a known number of trials that did not come to their end.
    fn left_out(&self) -> impl Iterator<Item = String> {
        self.parts.iter().filter_map(|(part, counts)| {
            let left = self.asked(*part)?.checked_sub(counts.trials).filter(|&left| left > 0)?;
            Some(format!("{} is not complete: {left} trials are left out; give more --minutes", part.name()))
        })
    }

    /// The number of trials that a part was to have; `None` = as many as there is time for, or one.
    fn asked(&self, part: Part) -> Option<u64> {
        part.count().filter(|_| !self.is_single)
    }

    fn is_well(&self) -> bool {
        let bad =
            |counts: &Counts| counts.missed + counts.false_alarms + counts.left_behind + counts.wrong > 0;
        !self.parts.values().any(bad)
    }
}

/// The number of trials, and of how many if there were more to try.
fn of_all(trials: u64, count: Option<u64>) -> String {
    match count {
        Some(count) if trials < count => format!("{trials} of {count}"),
        _ => trials.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_finding_is_enough() {
        let mut tally = Tally::default();
        tally.add(Part::Kills, 0, Outcome { faults: 3, found: 2, moot: 1, ..Outcome::default() });
        tally.skip(Part::Disks, "no root");
        assert!(tally.is_well());
        let findings = vec![Finding::LeftBehind("a process".into())];
        tally.add(Part::Kills, 1, Outcome { faults: 1, findings, ..Outcome::default() });
        assert!(!tally.is_well());
        let counts = &tally.parts[&Part::Kills];
        assert_eq!((counts.trials, counts.faults, counts.found, counts.left_behind), (2, 4, 2, 1));
        assert_eq!(tally.left_out().count(), 0, "these go on as long as there is time");
    }

    #[test]
    fn parts_that_did_not_come_to_their_end_are_told() {
        let all = Part::Zones.count().unwrap();
        let mut tally = Tally::default();
        (0..3).for_each(|number| tally.add(Part::Zones, number, Outcome::default()));
        let left: Vec<String> = tally.left_out().collect();
        let trials = all - 3;
        assert_eq!(
            left,
            [format!("zones is not complete: {trials} trials are left out; give more --minutes")]
        );
        let mut single = Tally::of_one();
        single.add(Part::Zones, 3, Outcome::default());
        assert_eq!(single.left_out().count(), 0, "no other was asked for");
        (3..all).for_each(|number| tally.add(Part::Zones, number, Outcome::default()));
        assert_eq!(tally.left_out().count(), 0);
        assert_eq!(
            (of_all(3, Some(97)), of_all(97, Some(97)), of_all(3, None)),
            ("3 of 97".into(), "97".into(), "3".into())
        );
    }
}
