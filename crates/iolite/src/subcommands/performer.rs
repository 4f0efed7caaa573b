//! One run of a case of `iolite test` or a standard test, in this process.

use crate::local_run::{Drafted, draft};
use crate::messages::program;
use crate::run_facts;
use iolite_host::ThisMachine;
use iolite_options::{Invocation, JobOptions, Name, RunOptions, parse_with};
use iolite_run::{Prepared, Settings};
use iolite_stats::{EventKind, Recorder, Snapshot};
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;

/// The name under which cases run.
pub const NAME: Name = Name::Iolite;

/// How often progress is shown.
const PROGRESS: Duration = Duration::from_millis(250);

/// How a run ended.
pub enum End {
    /// Its report.
    Done(Box<Value>),
    /// By a signal.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
}

/// The jobs of a text.
pub fn jobs(text: &str) -> Result<Vec<JobOptions>, String> {
    let words = [OsString::from("-")];
    match parse_with(&words, &|_| None, &mut text.as_bytes(), NAME) {
        Ok(Invocation::Run { batches, .. }) => Ok(batches.into_iter().flatten().collect()),
        Ok(_) => Err("there is no job".to_owned()),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// Runs the jobs of a text. `has_facts`: the report describes the machine and the storage.
pub fn perform(text: &str, has_facts: bool, progress: &mut dyn FnMut(&Snapshot)) -> End {
    match try_perform(text, has_facts, progress) {
        Ok(end) => end,
        Err(why) => End::Failed(why),
    }
}

fn try_perform(text: &str, has_facts: bool, progress: &mut dyn FnMut(&Snapshot)) -> Result<End, String> {
    // Sizes have changed since the run before.
    let machine = ThisMachine::new();
    let run = RunOptions::default();
    let joined = |words: Vec<String>| words.join("; ");
    let drafted = draft(NAME, vec![jobs(text)?], &run, &machine, &mut String::new());
    let Some(Drafted { plan, problems }) = drafted.map_err(|problem| problem.to_string())? else {
        return Err("there is nothing to run".to_owned());
    };
    if !problems.is_empty() {
        return Err(joined(problems.iter().map(ToString::to_string).collect()));
    }
    let prepared =
        Prepared::new(&plan, &machine).map_err(|error| joined(crate::local_run::words_of(&error)))?;
    let facts = has_facts.then(|| run_facts::of(&plan, &machine));
    let blocks = plan.blocks_of_workers();
    let interval = Recorder::interval(blocks.len());
    let mut recorder = Recorder::new(blocks);
    let settings = Settings {
        eta_interval: Some(PROGRESS),
        sample_interval: Some(interval),
        sample_latencies: true,
        ..Settings::default()
    };
    let (mut warnings, mut troubles) = (Vec::new(), Vec::new());
    let outcome = prepared.perform(settings, &mut |event| match event.kind {
        EventKind::Snapshot(snapshot) => progress(&snapshot),
        EventKind::Sample(snapshot) => recorder.take(*snapshot),
        EventKind::Warning(words) => warnings.push(words),
        EventKind::Trouble(words) | EventKind::Fatal(words) => troubles.push(words),
        EventKind::Failed { error, blocks, .. } => {
            troubles.push(format!("{}: {}", error.what, error.words(blocks, false)));
        }
        _ => {}
    });
    let mut outcome = outcome.map_err(|error| joined(crate::local_run::words_of(&error)))?;
    if outcome.signal.is_some() {
        return Ok(End::Interrupted);
    }
    if outcome.failed {
        troubles.dedup();
        troubles.truncate(3);
        return Err(if troubles.is_empty() { "the run failed".to_owned() } else { joined(troubles) });
    }
    outcome.report.series = recorder.series();
    outcome.report.facts = facts.map(|facts| iolite_stats::Facts { warnings, ..facts });
    let value = iolite_page::value_of(&outcome.report, &program(NAME));
    Ok(End::Done(Box::new(value.map_err(|error| error.to_string())?)))
}
