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
    parts: BTreeMap<Part, Counts>,
    skipped: Vec<(Part, String)>,
}

impl Tally {
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
            println!(
                "| {} | {trials} | {faults} | {found} | {moot} | {missed} | {false_alarms} | {left_behind} | {wrong} |",
                part.name()
            );
        }
        for (part, reason) in &self.skipped {
            println!("{} skipped: {reason}", part.name());
        }
        self.is_well()
    }

    fn is_well(&self) -> bool {
        let bad =
            |counts: &Counts| counts.missed + counts.false_alarms + counts.left_behind + counts.wrong > 0;
        !self.parts.values().any(bad)
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
    }
}
