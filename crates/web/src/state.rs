//! The state of a running run.

use crate::shared_events::SharedEvents;
use iolite_stats::{Event, EventKind, Recorder, Report, StagesSoFar, Stuck};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most messages that are kept, and the most bytes of each.
const MOST_MESSAGES: usize = 1000;
const MOST_TEXT: usize = 4096;

/// The state of a run.
#[derive(Debug)]
pub struct State {
    /// The report before the first measurement.
    pub outline: Report,
    /// The report block of each worker.
    pub blocks: Vec<Option<u32>>,
    /// The jobs stand for other machines; the first stands for all of them together.
    pub of_hosts: bool,
    /// The letters of the workers' states.
    pub letters: Vec<char>,
    /// The measurements.
    pub recorder: Recorder,
    /// Nanoseconds since the run began.
    pub elapsed_ns: u64,
    /// Percent done, if known.
    pub percent: Option<f64>,
    /// Seconds left, if known.
    pub eta_s: Option<u64>,
    /// I/Os that have been in flight for long, in words.
    pub stuck: Option<String>,
    /// Where the time of the I/Os of each worker went so far.
    pub stages: Vec<Vec<StagesSoFar>>,
    /// The last messages.
    pub messages: VecDeque<Message>,
    /// The number of messages so far.
    pub told: u64,
    /// The run was asked to end.
    pub is_stopping: bool,
    /// The page of the report, when the run is over.
    pub page: Option<Arc<Vec<u8>>>,
    /// Grows with each change.
    pub version: u64,
    /// Grows with each change that is sent to readers at once.
    pub urgent: u64,
    /// Open streams.
    pub streams: usize,
    /// Open streams that have not yet received the page since the run ended.
    pub owed: usize,
    /// Events that readers share.
    pub events: SharedEvents,
}

/// A message of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// When it came, in seconds.
    pub at_s: f64,
    /// The job that it is about, unless the text begins with it.
    pub job: Option<String>,
    /// What it says.
    pub text: String,
    /// It is an error.
    pub grave: bool,
}

impl Message {
    /// What an event says; `None` = it has no words.
    pub fn of(event: Event) -> Option<Message> {
        let (text, grave) = match event.kind {
            EventKind::Note(text) | EventKind::Warning(text) => (text, false),
            EventKind::Trouble(text) | EventKind::Fatal(text) | EventKind::WrongData(text) => (text, true),
            EventKind::Tolerated(text, 1) => (text, true),
            EventKind::Tolerated(text, count) => (format!("{count} more like this: {text}"), true),
            EventKind::Failed { error, blocks, .. } => {
                (format!("failed: {}: {}", error.what, error.words(blocks, false)), true)
            }
            EventKind::Terminating(signal) => {
                let words = "the run is being ended";
                (if signal == 0 { words.to_owned() } else { format!("{words} by signal {signal}") }, false)
            }
            _ => return None,
        };
        let text = iolite_types::without_error_numbers(&text);
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= MOST_TEXT);
        let text = end.map_or_else(|| text.to_string(), |end| format!("{}…", &text[..end]));
        Some(Message {
            at_s: event.at_ns as f64 / 1e9,
            // Most texts of a job begin with its name.
            job: event.source.map(|source| source.job).filter(|job| !text.starts_with(job.as_str())),
            text,
            grave,
        })
    }
}

impl State {
    /// Applies an event of the run.
    pub fn take(&mut self, event: Event) {
        let event = match event.kind {
            EventKind::Sample(snapshot) => {
                self.letters.clear();
                self.letters.extend(snapshot.workers.iter().map(|worker| worker.state));
                (self.elapsed_ns, self.percent, self.eta_s) =
                    (snapshot.elapsed_ns, snapshot.percent, snapshot.eta_s);
                self.stages = snapshot.workers.iter().map(|worker| worker.stages.clone()).collect();
                self.stuck = snapshot.stuck.as_ref().map(Stuck::in_words);
                self.recorder.take(*snapshot);
                self.version += 1;
                return;
            }
            kind => Event { kind, ..event },
        };
        self.is_stopping |= matches!(event.kind, EventKind::Terminating(_));
        let Some(message) = Message::of(event) else { return };
        self.messages.push_back(message);
        if self.messages.len() > MOST_MESSAGES {
            self.messages.pop_front();
        }
        self.told += 1;
        self.version += 1;
        self.urgent += 1;
    }
}
