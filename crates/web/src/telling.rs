//! The events sent to a reader of a run's page (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//! `assets/live.js` of `iolite-page` reads them.

use crate::state::State;
use iolite_report::series_since;
use serde_json::{Value, json};
use std::sync::Arc;

/// More jobs than these are not told one by one.
const MOST_JOBS: usize = 1000;

/// The text of a whole series with at least this many windows serves readers until the series has grown by an eighth: they get
/// the rest as other readers do. So readers who come one after the other do not need a copy each.
const LARGE: usize = 64;

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

/// Texts that were made for one reader and serve the others: all readers get news at the same moments, so most of them need
/// the same text.
#[derive(Debug, Default)]
pub struct Texts {
    /// The round in which the texts below were made, except for that of the whole series.
    round: u64,
    /// Parts of the series.
    series: Vec<SeriesText>,
    /// The state of the workers, with the number of urgent changes before it.
    standing: Option<(u64, Arc<str>)>,
}

/// The text of a series from a window on.
#[derive(Clone, Debug)]
struct SeriesText {
    round: u64,
    /// How many samples a window had.
    per_window: u32,
    /// The first window, and the one after the last.
    since: usize,
    until: usize,
    text: Arc<str>,
}

impl SeriesText {
    /// Whether a reader may get it in this round, when the series has this many windows.
    fn serves(&self, round: u64, windows: usize) -> bool {
        let is_whole_enough =
            self.since == 0 && self.until >= LARGE && windows - self.until <= self.until / 8;
        self.round == round || is_whole_enough
    }
}

impl Texts {
    /// Removes texts of earlier rounds that no reader needs any more.
    fn begin(&mut self, round: u64, per_window: u32, windows: usize) {
        self.series.retain(|told| told.per_window == per_window && told.serves(round, windows));
        if self.round != round {
            self.round = round;
            self.standing = None;
        }
    }
}

/// The news for this reader in this round. All readers of a round share their texts.
pub fn news(state: &mut State, seen: &mut Seen, round: u64) -> Vec<Arc<str>> {
    let mut texts = Vec::new();
    if seen.messages != state.told || seen.version == 0 {
        texts.push(event("messages", &messages(state, seen.messages).to_string()));
        seen.messages = state.told;
    }
    let windows = state.recorder.so_far().windows.len();
    let per_window = state.recorder.samples_per_window();
    state.texts.begin(round, per_window, windows);
    if windows > 0 {
        loop {
            let since = if seen.windows.0 == per_window { seen.windows.1 } else { 0 };
            let told = series_text(state, since, round);
            // The last one may grow.
            seen.windows = (per_window, told.until - 1);
            texts.push(told.text);
            if told.round == round {
                break;
            }
        }
    }
    let urgent = state.urgent;
    let standing = match &state.texts.standing {
        Some((of, text)) if *of == urgent => text.clone(),
        _ => {
            let text = event("state", &standing(state).to_string());
            state.texts.standing = Some((urgent, text.clone()));
            text
        }
    };
    texts.push(standing);
    if state.page.is_some() {
        texts.push(event("end", "{}"));
    }
    seen.version = state.version;
    texts
}

/// The text of an event. There are no line breaks in JSON of one line.
fn event(name: &str, data: &str) -> Arc<str> {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The series from this window on: the text that another reader has got, or a new one.
fn series_text(state: &mut State, since: usize, round: u64) -> SeriesText {
    if let Some(told) = state.texts.series.iter().find(|told| told.since == since) {
        return told.clone();
    }
    let series = state.recorder.so_far();
    let told = series_since(&state.outline, series, since);
    let told = SeriesText {
        round,
        per_window: state.recorder.samples_per_window(),
        since,
        until: series.windows.len(),
        text: event("series", &format!("{{\"since\":{since},\"series\":{told}}}")),
    };
    state.texts.series.push(told.clone());
    told
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Hello;
    use crate::run::Run;
    use iolite_stats::{Event, EventKind, Report, Snapshot, WorkerSnapshot};
    use iolite_types::Direction;

    const SAMPLE: u64 = 100_000_000;

    fn sampled(run: &Run, number: u64) {
        let mut worker = WorkerSnapshot { state: 'r', running: true, ..WorkerSnapshot::default() };
        worker.uses[Direction::Read] = true;
        worker.counters[Direction::Read].ios = number;
        let snapshot = Snapshot { elapsed_ns: number * SAMPLE, workers: vec![worker], ..Snapshot::default() };
        run.take(Event::new(number * SAMPLE, None, EventKind::Sample(snapshot.into())));
    }

    fn run() -> Run {
        let mut outline = Report::default();
        outline.jobs.push(Default::default());
        let hello = Hello {
            outline,
            blocks: vec![Some(0)],
            program: "iolite".to_owned(),
            interval_ns: SAMPLE,
            of_hosts: false,
            linger_ms: None,
        };
        Run::new(hello, None)
    }

    /// The I/Os of each part of the series in these texts, after the window with which it begins.
    fn told(texts: &[Arc<str>]) -> Vec<(u64, Vec<u64>)> {
        let data = texts.iter().filter_map(|text| text.strip_prefix("event: series\ndata: "));
        let part = |data: &str| {
            let part: Value = serde_json::from_str(data).unwrap();
            let ios = part["series"]["jobs"][0]["read"]["ios"].as_array().unwrap().iter();
            (part["since"].as_u64().unwrap(), ios.map(|ios| ios.as_u64().unwrap()).collect())
        };
        data.map(part).collect()
    }

    #[test]
    fn readers_of_one_round_share_their_texts() {
        let run = run();
        (0..=10).for_each(|number| sampled(&run, number));
        let mut state = run.state();
        let [mut one, mut other] = [Seen::default(); 2];
        let texts = news(&mut state, &mut one, 0);
        assert_eq!(told(&texts), [(0, vec![1; 10])]);
        let again = news(&mut state, &mut other, 0);
        assert!(texts[1..].iter().zip(&again[1..]).all(|(one, other)| Arc::ptr_eq(one, other)));
        drop(state);
        (11..=20).for_each(|number| sampled(&run, number));
        let mut state = run.state();
        let texts = news(&mut state, &mut one, 1);
        assert_eq!(told(&texts), [(9, vec![1; 11])], "the last window may have grown");
        let again = news(&mut state, &mut other, 1);
        assert!(texts.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert_eq!(told(&news(&mut state, &mut Seen::default(), 1)), [(0, vec![1; 20])]);
        drop(state);
        sampled(&run, 21);
        run.end("the page".to_owned());
        let texts = news(&mut run.state(), &mut one, 1);
        assert_eq!(told(&texts), [(19, vec![1; 2])], "the end lacks nothing, whatever the round");
    }

    #[test]
    fn readers_who_come_one_after_the_other_share_the_beginning() {
        let run = run();
        (0..=80).for_each(|number| sampled(&run, number));
        let first = news(&mut run.state(), &mut Seen::default(), 0);
        (81..=85).for_each(|number| sampled(&run, number));
        let mut late = Seen::default();
        let texts = news(&mut run.state(), &mut late, 5);
        assert!(Arc::ptr_eq(&texts[1], &first[1]));
        assert_eq!(told(&texts), [(0, vec![1; 80]), (79, vec![1; 6])]);
        sampled(&run, 86);
        assert_eq!(told(&news(&mut run.state(), &mut late, 6)), [(84, vec![1; 2])]);
        // When there is much more, there is a new text; and when windows have become longer.
        (87..=100).for_each(|number| sampled(&run, number));
        assert_eq!(told(&news(&mut run.state(), &mut Seen::default(), 7)), [(0, vec![1; 100])]);
        (101..=1100).for_each(|number| sampled(&run, number));
        let parts = told(&news(&mut run.state(), &mut late, 8));
        assert_eq!((parts.len(), parts[0].0, parts[0].1.iter().sum::<u64>()), (1, 0, 1100));
    }
}
