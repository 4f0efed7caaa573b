//! The events sent to a reader of a run's page (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//! `assets/live.js` of `iolite-page` reads them.

use crate::state::State;
use iolite_report::series_since;
use serde_json::{Value, json};
use std::fmt::Write;

/// More jobs than these are not told one by one.
const MOST_JOBS: usize = 1000;

/// The state of a machine whose next jobs are set up and wait for those of other machines.
pub const WAITS: char = 'B';
/// The letter of a machine that is lost.
pub const LOST: char = 'L';

/// The events that a reader has got so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How many samples a window had, and how many windows do not change any more.
    windows: (u32, usize),
    /// The number of messages.
    messages: u64,
    /// The state that this was.
    pub version: u64,
}

/// The news for this reader.
pub fn news(state: &State, seen: &mut Seen) -> String {
    let mut text = String::new();
    let mut event = |name: &str, data: &str| {
        // Writing to a String does not fail. There are no line breaks in JSON of one line.
        let _ = write!(text, "event: {name}\ndata: {data}\n\n");
    };
    if seen.messages != state.told || seen.version == 0 {
        event("messages", &messages(state, seen.messages).to_string());
        seen.messages = state.told;
    }
    let series = state.recorder.so_far();
    let per_window = state.recorder.samples_per_window();
    let since = if seen.windows.0 == per_window { seen.windows.1 } else { 0 };
    if !series.windows.is_empty() {
        let told = series_since(&state.outline, series, since);
        event("series", &format!("{{\"since\":{since},\"series\":{told}}}"));
        // The last one may grow.
        seen.windows = (per_window, series.windows.len() - 1);
    }
    event("state", &standing(state).to_string());
    if state.page.is_some() {
        event("end", "{}");
    }
    seen.version = state.version;
    text
}

/// The messages behind so many, and the number of the first.
fn messages(state: &State, after: u64) -> Value {
    let oldest = state.told - state.messages.len() as u64;
    let skipped = usize::try_from(after.saturating_sub(oldest)).unwrap_or(usize::MAX);
    let new: Vec<Value> = state.messages.iter().skip(skipped).map(|message| json!(message)).collect();
    json!({ "first": after, "messages": new })
}

/// The states of the workers, and the remaining time.
fn standing(state: &State) -> Value {
    let mut jobs: Vec<(&str, Vec<(&'static str, u32)>)> =
        state.outline.jobs.iter().map(|job| (job.name.as_str(), Vec::new())).collect();
    let mut positions = vec![None; jobs.len()];
    for (position, job) in state.outline.jobs.iter().enumerate() {
        if let Some(place) = positions.get_mut(job.identity.block as usize) {
            *place = Some(position);
        }
    }
    for (letter, block) in state.letters.iter().zip(&state.blocks) {
        let position = block.and_then(|block| *positions.get(block as usize)?);
        let Some((_, phases)) = position.and_then(|position| jobs.get_mut(position)) else { continue };
        add(phases, in_words(*letter), 1);
    }
    if state.of_hosts {
        let all = jobs.iter().skip(1).flat_map(|(_, phases)| phases).copied().collect::<Vec<_>>();
        if let Some((_, phases)) = jobs.first_mut() {
            phases.clear();
            all.into_iter().for_each(|(words, count)| add(phases, words, count));
        }
    }
    let jobs: Vec<Value> = jobs
        .into_iter()
        .take(MOST_JOBS)
        .map(|(name, phases)| json!({ "name": name, "phases": phases }))
        .collect();
    json!({
        "elapsed_s": state.elapsed_ns as f64 / 1e9,
        "percent": state.percent,
        "eta_s": state.eta_s,
        "stopping": state.is_stopping,
        "hosts": state.of_hosts,
        "jobs": jobs,
    })
}

/// Counts so many more that do this.
fn add(phases: &mut Vec<(&'static str, u32)>, words: &'static str, more: u32) {
    match phases.iter_mut().find(|(known, _)| *known == words) {
        Some((_, count)) => *count += more,
        None => phases.push((words, more)),
    }
}

/// The meaning of a letter in the status line.
fn in_words(letter: char) -> &'static str {
    match letter {
        'P' => "not begun",
        'C' | 'I' => "set up",
        'p' => "pre-reads",
        '/' => "ramps up",
        'V' => "verifies",
        'F' => "syncs",
        'f' | 'E' => "finishes",
        '_' => "done",
        'X' => "failed",
        'K' => "killed",
        WAITS => "waits for others",
        LOST => "lost",
        _ => "runs",
    }
}
