//! Rates that change over time: `0s:1000,30s:5000,60s..120s:5000..20000`, or a file with a line for each second.
//!
//! A step sets the rate from its time on, a ramp moves it evenly between two times. Before the first step nothing is
//! issued; behind the last one its rate stays, unless `TIME:repeat` begins anew.

use super::time::SECOND;
use super::{Notes, integer, time};
use crate::JobOptions;
use crate::typed::{RateSchedule, RateStep};
use std::path::Path;

/// The most steps: a line for each second of a week.
const MOST_STEPS: usize = 7 * 24 * 3600;

/// The highest rate. Its sums over the longest time fit.
const MOST_RATE: u64 = 1 << 50;

/// The longest time: 30 years.
const MOST_US: u64 = 1_000_000_000 * SECOND;

/// Parses a schedule.
///
/// # Errors
/// A step is malformed or not in order, or nothing would ever be issued.
pub fn rate_schedule(text: &str, kb_base: u32, notes: &mut Notes) -> Result<RateSchedule, String> {
    if let Some(path) = text.strip_prefix("file:") {
        let lines = std::fs::read_to_string(path)
            .map_err(|error| format!("{path}: {}", iolite_types::describe_error(&error)))?;
        return each_second(&lines, kb_base, notes)
            .map_err(|why| format!("{}:{why}", Path::new(path).display()));
    }
    let mut builder = Builder::default();
    let entries: Vec<&str> = text.split(',').map(str::trim).collect();
    for (number, entry) in entries.iter().enumerate() {
        let of_entry = |why: String| format!("\"{entry}\": {why}");
        let (times, rates) = entry
            .split_once(':')
            .ok_or_else(|| of_entry("a step is TIME:RATE, a ramp TIME..TIME:RATE..RATE".to_owned()))?;
        let mut at = |text: &str| -> Result<u64, String> {
            let us = time(text, SECOND, notes)?;
            if us > MOST_US { Err("is later than 30 years".to_owned()) } else { Ok(us) }
        };
        let (from_us, until_us) = match times.split_once("..") {
            Some((from, until)) => (at(from).map_err(of_entry)?, Some(at(until).map_err(of_entry)?)),
            None => (at(times).map_err(of_entry)?, None),
        };
        if rates.trim() == "repeat" {
            if until_us.is_some() || number + 1 < entries.len() || number == 0 {
                return Err(of_entry("repeat is the last entry, behind others, at one time".to_owned()));
            }
            builder.repeat(from_us).map_err(of_entry)?;
            continue;
        }
        let (from, to) = match (rates.split_once(".."), until_us) {
            (Some((from, to)), Some(_)) => (from, to),
            (None, _) => (rates, rates),
            (Some(_), None) => {
                return Err(of_entry("a ramp needs two times: TIME..TIME:RATE..RATE".to_owned()));
            }
        };
        let mut rate = |text: &str| builder.rate(text, kb_base, notes);
        let (from, to) = (rate(from).map_err(of_entry)?, rate(to).map_err(of_entry)?);
        builder.add(RateStep { at_us: from_us, until_us, from, to }).map_err(of_entry)?;
    }
    builder.finish()
}

/// The files that the schedules of a job name, in all texts that were given for them.
pub fn files_in_schedule(job: &JobOptions) -> Vec<String> {
    let all = job.given_global.iter().chain(&job.given).filter(|(name, _)| name == "rate_schedule");
    all.filter_map(|(_, text)| text.strip_prefix("file:").map(str::to_owned)).collect()
}

/// The schedule of a file: each line has the rate of one second. `#` begins a comment. Behind the last line the job has
/// no rate any more: it is 0.
fn each_second(lines: &str, kb_base: u32, notes: &mut Notes) -> Result<RateSchedule, String> {
    let mut builder = Builder::default();
    let mut second = 0;
    for (number, line) in lines.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let of_line = |why| format!("{}: \"{line}\": {why}", number + 1);
        let rate = builder.rate(line, kb_base, notes).map_err(of_line)?;
        builder.set(second * SECOND, rate).map_err(of_line)?;
        second += 1;
    }
    if second > 0 {
        builder.set(second * SECOND, 0).map_err(|why| format!(" {why}"))?;
    }
    builder.finish().map_err(|why| format!(" {why}"))
}

#[derive(Default)]
struct Builder {
    steps: Vec<RateStep>,
    /// The first rate counts bytes.
    is_bytes: Option<bool>,
    repeat_us: Option<u64>,
}

impl Builder {
    /// A rate: I/Os per second, or bytes per second if it ends with `B`. 0 is both.
    fn rate(&mut self, text: &str, kb_base: u32, notes: &mut Notes) -> Result<u64, String> {
        let text = text.trim();
        let rate = integer(text, kb_base, notes)?;
        let rate = u64::try_from(rate).map_err(|_| "a rate is 0 or more".to_owned())?;
        if rate > MOST_RATE {
            return Err(format!("a rate is at most {MOST_RATE}"));
        }
        let is_bytes = text.ends_with(['b', 'B']) && !text.starts_with("0x");
        if rate > 0 && *self.is_bytes.get_or_insert(is_bytes) != is_bytes {
            return Err(
                "all rates are I/Os per second (5000, 5k), or all are bytes per second (100MB, 64MiB)"
                    .to_owned(),
            );
        }
        Ok(rate)
    }

    /// A step that is left out if nothing changes.
    fn set(&mut self, at_us: u64, rate: u64) -> Result<(), String> {
        if self.steps.last().is_some_and(|last| last.until_us.is_none() && last.to == rate) {
            return Ok(());
        }
        self.add(RateStep { at_us, until_us: None, from: rate, to: rate })
    }

    fn add(&mut self, step: RateStep) -> Result<(), String> {
        self.is_behind(step.at_us)?;
        if step.until_us.is_some_and(|until| until <= step.at_us) {
            return Err("a ramp ends after it begins".to_owned());
        }
        if self.steps.len() == MOST_STEPS {
            return Err(format!("a schedule has at most {MOST_STEPS} steps"));
        }
        self.steps.push(step);
        Ok(())
    }

    /// Steps follow each other.
    fn is_behind(&self, at_us: u64) -> Result<(), String> {
        match self.steps.last() {
            Some(RateStep { until_us: Some(until), .. }) if at_us < *until => {
                Err("begins before the ramp in front of it has ended".to_owned())
            }
            Some(RateStep { at_us: last, until_us: None, .. }) if at_us <= *last => {
                Err("is not later than the step in front of it".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn repeat(&mut self, at_us: u64) -> Result<(), String> {
        self.is_behind(at_us)?;
        if at_us == 0 {
            return Err("what is repeated has a length".to_owned());
        }
        self.repeat_us = Some(at_us);
        Ok(())
    }

    fn finish(self) -> Result<RateSchedule, String> {
        if self.steps.iter().all(|step| step.from == 0 && step.to == 0) {
            return Err("all rates are 0, so nothing would be issued".to_owned());
        }
        Ok(RateSchedule {
            is_bytes: self.is_bytes.unwrap_or(false),
            steps: self.steps,
            repeat_us: self.repeat_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn parsed(text: &str) -> Result<RateSchedule, String> {
        rate_schedule(text, 1024, &mut Notes::of(Name::Iolite))
    }

    fn step(at: u64, until: Option<u64>, from: u64, to: u64) -> RateStep {
        RateStep { at_us: at * SECOND, until_us: until.map(|until| until * SECOND), from, to }
    }

    #[test]
    fn steps_and_ramps() {
        let schedule = parsed("0s:1000,30s:5k, 1m..120s:5000..20000").unwrap();
        assert_eq!((schedule.is_bytes, schedule.repeat_us), (false, None));
        let steps = [step(0, None, 1000, 1000), step(30, None, 5120, 5120), step(60, Some(120), 5000, 20000)];
        assert_eq!(schedule.steps, steps);
        let bursts = parsed("0:64MB,1:0,5:repeat").unwrap();
        assert_eq!((bursts.is_bytes, bursts.repeat_us), (true, Some(5 * SECOND)));
        assert_eq!(bursts.steps[0].from, 64 << 20);
        // A ramp may follow a ramp at once, and one rate for both ends is a plateau.
        assert_eq!(parsed("0..10:0..100,10..20:100").unwrap().steps[1], step(10, Some(20), 100, 100));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("", "\"\": a step is TIME:RATE"),
            ("1000", "a step is TIME:RATE"),
            ("0:1000,0:5", "\"0:5\": is not later"),
            ("0..10:1..5,9:5", "begins before the ramp"),
            ("10..5:1..5", "a ramp ends after it begins"),
            ("0:1..5", "a ramp needs two times"),
            ("0:x", "\"0:x\": "),
            ("0:-5", "a rate is 0 or more"),
            ("0:0,5:0", "all rates are 0"),
            ("0:100,5:1MB", "all rates are I/Os per second"),
            ("0:repeat", "repeat is the last entry"),
            ("0:5,3:repeat,4:5", "repeat is the last entry"),
            ("0:5,0:repeat", "is not later"),
            ("file:/nowhere", "/nowhere: No such file"),
            ("99999999999:1", "later than 30 years"),
            ("0:9999999999999999", "a rate is at most"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn a_file_has_a_line_for_each_second() {
        let mut notes = Notes::of(Name::Iolite);
        let schedule = each_second("# a day\n100\n100\n\n0 # a pause\n50\n", 1024, &mut notes).unwrap();
        let steps =
            [step(0, None, 100, 100), step(2, None, 0, 0), step(3, None, 50, 50), step(4, None, 0, 0)];
        assert_eq!(schedule.steps, steps);
        let why = each_second("100\nx\n", 1024, &mut notes).unwrap_err();
        assert!(why.starts_with("2: \"x\": "), "{why}");
        assert!(each_second("# nothing\n", 1024, &mut notes).unwrap_err().contains("all rates are 0"));
    }
}
