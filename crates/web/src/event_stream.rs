//! The events sent to a reader of a run's page (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
//! `assets/live.js` of `iolite-page` reads them.

use crate::shared_events::SeriesEvent;
use crate::state::State;
use iolite_report::series_since;
use iolite_stats::StagesSoFar;
use serde_json::{Value, json};
use std::sync::Arc;

/// The most jobs that are reported one by one.
const MOST_JOBS: usize = 1000;

/// The state of a machine whose next jobs are set up and wait for those of other machines.
pub const WAITS: char = 'B';
/// The letter of a lost machine.
pub const LOST: char = 'L';

/// A reader's position in the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of samples per window, and the number of windows that no longer change.
    windows: (u32, usize),
    /// The number of messages.
    messages: u64,
    /// The version of the state.
    pub version: u64,
}

/// The events for this reader in this period. Readers with the same position share them.
pub fn events_for(state: &mut State, position: &mut Position, period: u64) -> Vec<Arc<str>> {
    let mut texts = Vec::new();
    if position.messages != state.told || position.version == 0 {
        texts.push(event("messages", &messages(state, position.messages).to_string()));
        position.messages = state.told;
    }
    let windows = state.recorder.so_far().windows.len();
    let per_window = state.recorder.samples_per_window();
    state.events.begin(period, per_window, windows);
    if windows > 0 {
        loop {
            let since = if position.windows.0 == per_window { position.windows.1 } else { 0 };
            let part = series_event(state, since, period);
            // The last window may still grow.
            position.windows = (per_window, part.until - 1);
            texts.push(part.text);
            if part.period == period {
                break;
            }
        }
    }
    let urgent = state.urgent;
    let standing = match &state.events.standing {
        Some((of, text)) if *of == urgent => text.clone(),
        _ => {
            let text = event("state", &standing(state).to_string());
            state.events.standing = Some((urgent, text.clone()));
            text
        }
    };
    texts.push(standing);
    if state.page.is_some() {
        texts.push(event("end", "{}"));
    }
    position.version = state.version;
    texts
}

/// The text of an event. The data is JSON on one line.
fn event(name: &str, data: &str) -> Arc<str> {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// The series from this window on: an event of another reader, or a new one.
fn series_event(state: &mut State, since: usize, period: u64) -> SeriesEvent {
    if let Some(part) = state.events.series.iter().find(|part| part.since == since) {
        return part.clone();
    }
    let series = state.recorder.so_far();
    let text = series_since(&state.outline, series, since);
    let part = SeriesEvent {
        period,
        per_window: state.recorder.samples_per_window(),
        since,
        until: series.windows.len(),
        text: event("series", &format!("{{\"since\":{since},\"series\":{text}}}")),
    };
    state.events.series.push(part.clone());
    part
}

/// The messages after this many, and the number of the first one.
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
    let mut stages: Vec<Vec<StagesSoFar>> = vec![Vec::new(); jobs.len()];
    for (told, block) in state.stages.iter().zip(&state.blocks) {
        let position = block.and_then(|block| *positions.get(block as usize)?);
        let Some(of_job) = position.and_then(|position| stages.get_mut(position)) else { continue };
        told.iter().for_each(|one| one.add_to(of_job));
    }
    if state.of_hosts {
        let all = jobs.iter().skip(1).flat_map(|(_, phases)| phases).copied().collect::<Vec<_>>();
        if let Some((_, phases)) = jobs.first_mut() {
            phases.clear();
            all.into_iter().for_each(|(words, count)| add(phases, words, count));
        }
    }
    let stages_of = |job: &[StagesSoFar]| -> Vec<Value> {
        let one = |one: &StagesSoFar| {
            let names: Vec<&str> = one.stages.iter().map(|stage| stage.name()).collect();
            json!({ "direction": one.direction.name(), "names": names, "ios": one.ios, "sums_ns": one.sums_ns })
        };
        job.iter().map(one).collect()
    };
    let jobs = jobs.into_iter().zip(&stages).take(MOST_JOBS);
    let jobs: Vec<Value> = jobs
        .map(|((name, phases), stages)| match &stages[..] {
            [] => json!({ "name": name, "phases": phases }),
            stages => json!({ "name": name, "phases": phases, "stages": stages_of(stages) }),
        })
        .collect();
    json!({
        "elapsed_s": state.elapsed_ns as f64 / 1e9,
        "percent": state.percent,
        "eta_s": state.eta_s,
        "stuck": state.stuck,
        "stopping": state.is_stopping,
        "hosts": state.of_hosts,
        "jobs": jobs,
    })
}

/// Counts more workers in this phase.
fn add(phases: &mut Vec<(&'static str, u32)>, words: &'static str, more: u32) {
    match phases.iter_mut().find(|(known, _)| *known == words) {
        Some((_, count)) => *count += more,
        None => phases.push((words, more)),
    }
}

/// The meaning of a letter in the status line.
pub fn in_words(letter: char) -> &'static str {
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
    use iolite_stats::{Event, EventKind, Report, Snapshot, Stuck, WorkerSnapshot};
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
    fn readers_of_one_period_share_their_events() {
        let run = run();
        (0..=10).for_each(|number| sampled(&run, number));
        let mut state = run.state();
        let [mut one, mut other] = [Position::default(); 2];
        let texts = events_for(&mut state, &mut one, 0);
        assert_eq!(told(&texts), [(0, vec![1; 10])]);
        let again = events_for(&mut state, &mut other, 0);
        assert!(texts[1..].iter().zip(&again[1..]).all(|(one, other)| Arc::ptr_eq(one, other)));
        drop(state);
        (11..=20).for_each(|number| sampled(&run, number));
        let mut state = run.state();
        let texts = events_for(&mut state, &mut one, 1);
        assert_eq!(told(&texts), [(9, vec![1; 11])], "the last window may have grown");
        let again = events_for(&mut state, &mut other, 1);
        assert!(texts.iter().zip(&again).all(|(one, other)| Arc::ptr_eq(one, other)));
        assert_eq!(told(&events_for(&mut state, &mut Position::default(), 1)), [(0, vec![1; 20])]);
        drop(state);
        sampled(&run, 21);
        run.end("the page".to_owned());
        let texts = events_for(&mut run.state(), &mut one, 1);
        assert_eq!(told(&texts), [(19, vec![1; 2])], "the end lacks nothing, whatever the period");
    }

    #[test]
    fn readers_learn_what_is_stuck() {
        let stuck =
            Stuck { ios: 1, age_ns: 34_000_000_000, file: "/dev/vdb".to_owned(), offset: 81920, at: None };
        let words = "1 I/O in flight for 34 s: /dev/vdb offset 81920";
        for (stuck, told) in [(Some(stuck), json!(words)), (None, Value::Null)] {
            let run = run();
            let snapshot = Snapshot { stuck, ..Snapshot::default() };
            run.take(Event::new(SAMPLE, None, EventKind::Sample(snapshot.into())));
            assert_eq!(standing(&run.state())["stuck"], told);
        }
    }

    #[test]
    fn readers_who_come_one_after_the_other_share_the_beginning() {
        let run = run();
        (0..=80).for_each(|number| sampled(&run, number));
        let first = events_for(&mut run.state(), &mut Position::default(), 0);
        (81..=85).for_each(|number| sampled(&run, number));
        let mut late = Position::default();
        let texts = events_for(&mut run.state(), &mut late, 5);
        assert!(Arc::ptr_eq(&texts[1], &first[1]));
        assert_eq!(told(&texts), [(0, vec![1; 80]), (79, vec![1; 6])]);
        sampled(&run, 86);
        assert_eq!(told(&events_for(&mut run.state(), &mut late, 6)), [(84, vec![1; 2])]);
        // There is a new event when the series has grown a lot, or windows have become longer.
        (87..=100).for_each(|number| sampled(&run, number));
        assert_eq!(told(&events_for(&mut run.state(), &mut Position::default(), 7)), [(0, vec![1; 100])]);
        (101..=1100).for_each(|number| sampled(&run, number));
        let parts = told(&events_for(&mut run.state(), &mut late, 8));
        assert_eq!((parts.len(), parts[0].0, parts[0].1.iter().sum::<u64>()), (1, 0, 1100));
    }
}
