//! A run in progress, as known to the process of its page, and its pages.

use crate::access::{Access, Rights};
use crate::answer::{Answer, stream_head};
use crate::event_stream::{Position, events_for};
use crate::message::Hello;
use crate::request::Request;
use crate::shared_events::SharedEvents;
use crate::state::State;
use crate::transport::Wire;
use iolite_os::process::Process;
use iolite_page::live;
use iolite_report::{Exporter, Json, Program};
use iolite_stats::{Event, Recorder};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Readers get events at most this often, all at the same moments, except for messages and the end.
const PERIOD: Duration = Duration::from_secs(1);
/// The most concurrent streams of events. Connections for other requests remain.
const MOST_STREAMS: usize = 64;

/// A run and its pages.
#[derive(Debug)]
pub struct Run {
    state: Mutex<State>,
    changed: Condvar,
    /// The process that controls the run; `None` = it cannot be signalled safely.
    controller: Option<Process>,
    outline: Value,
    of_hosts: bool,
    /// When sending to readers began.
    began: Instant,
}

impl Run {
    /// A run that has not begun.
    pub fn new(hello: Hello, controller: Option<Process>) -> Run {
        let program = Program { version: hello.program.clone(), own_version: hello.program.clone() };
        let mut json = Vec::new();
        // Writing to memory does not fail.
        let _ = Json { bins: false }.write(&hello.outline, &program, &mut json);
        let state = State {
            letters: vec!['P'; hello.blocks.len()],
            recorder: Recorder::sampled(hello.blocks.clone(), Duration::from_nanos(hello.interval_ns)),
            of_hosts: hello.of_hosts,
            outline: hello.outline,
            blocks: hello.blocks,
            elapsed_ns: 0,
            percent: None,
            eta_s: None,
            stages: Vec::new(),
            stuck: None,
            messages: VecDeque::new(),
            told: 0,
            is_stopping: false,
            page: None,
            version: 1,
            urgent: 0,
            streams: 0,
            owed: 0,
            events: SharedEvents::default(),
        };
        let outline = serde_json::from_slice(&json).unwrap_or_default();
        let of_hosts = hello.of_hosts;
        let (state, changed, began) = (Mutex::new(state), Condvar::new(), Instant::now());
        Run { of_hosts, state, changed, controller, outline, began }
    }

    /// Locks the state of the run.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // Threads that may panic answer requests and do not change the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles an event.
    pub fn take(&self, event: Event) {
        self.state().take(event);
        self.changed.notify_all();
    }

    /// The run is over.
    pub fn end(&self, page: String) {
        let mut state = self.state();
        state.page = Some(Arc::new(page.into_bytes()));
        state.owed = state.streams;
        // The shared events may be older than the last sample.
        state.events = SharedEvents::default();
        state.version += 1;
        state.urgent += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Whether a page without the final report is open.
    pub fn is_awaited(&self) -> bool {
        self.state().owed > 0
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.state().page.is_some()
    }

    fn page(&self, access: &Access, rights: Rights) -> Answer {
        let mut state = self.state();
        if let Some(page) = state.page.clone() {
            state.owed = state.owed.saturating_sub(1);
            let policy = iolite_page::policy() + "; frame-ancestors 'none'";
            return Answer::shared_page(page, &policy);
        }
        drop(state);
        let proof = access.proof(rights, Rights::End).filter(|_| self.controller.is_some());
        match live::page(&self.outline, proof, self.of_hosts) {
            Ok(page) => Answer::page(page, live::POLICY),
            Err(why) => {
                Answer::text(500, &format!("The page cannot be made: {}", why.of("the outline of the run")))
            }
        }
    }

    /// Ends the run like an interrupt. Only once, because a second interrupt would kill hanging processes.
    fn stop(&self, access: &Access, rights: Rights, request: &Request) -> Answer {
        if !access.may(rights, Rights::End, request) {
            return Answer::text(403, "You may look at the run, but not end it.");
        }
        let Some(controller) = &self.controller else {
            return Answer::text(
                500,
                "This kernel cannot hold on to a process; end the run where it was started.",
            );
        };
        let mut state = self.state();
        if state.page.is_some() || state.is_stopping {
            return Answer::text(409, "The run is over, or being ended, already.");
        }
        state.is_stopping = true;
        state.version += 1;
        state.urgent += 1;
        controller.signal(libc::SIGINT);
        drop(state);
        self.changed.notify_all();
        Answer::text(202, "The run is being ended.")
    }

    /// The number of the current period.
    fn period(&self) -> u32 {
        (self.began.elapsed().as_nanos() / PERIOD.as_nanos()) as u32
    }

    /// Streams events to a reader until the run has ended or the reader has left.
    fn stream(&self, to: &mut Wire) -> std::io::Result<()> {
        to.send(&[stream_head().as_bytes()])?;
        let mut position = Position::default();
        loop {
            let period = self.period();
            let (events, urgent, is_over) = {
                let mut state = self.state();
                (events_for(&mut state, &mut position, period.into()), state.urgent, state.page.is_some())
            };
            to.send(&events.iter().map(|event| event.as_bytes()).collect::<Vec<_>>())?;
            drop(events);
            if is_over {
                return Ok(());
            }
            // An event is sent even if nothing is new, to notice that the reader has left.
            let due = self.began + PERIOD * (self.period() + 1);
            let mut state = self.state();
            while state.urgent == urgent {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn streamed(&self, to: &mut Wire) -> Option<Answer> {
        let mut state = self.state();
        if state.streams >= MOST_STREAMS {
            return Some(Answer::text(503, "Too many pages are open."));
        }
        state.streams += 1;
        drop(state);
        let told = self.stream(to);
        let mut state = self.state();
        state.streams -= 1;
        if told.is_err() && state.page.is_some() {
            // This reader will not fetch the page.
            state.owed = state.owed.saturating_sub(1);
        }
        None
    }
}

impl Run {
    /// Answers a request for a path below that of the run; `None` = already answered.
    pub fn answer(
        &self,
        access: &Access,
        rights: Rights,
        request: &Request,
        path: &str,
        to: &mut Wire,
    ) -> Option<Answer> {
        Some(match (request.method.as_str(), path) {
            ("GET", "") => self.page(access, rights),
            ("GET", "style.css") => Answer::file("text/css; charset=utf-8", live::STYLE),
            ("GET", "script.js") => Answer::file("text/javascript; charset=utf-8", live::SCRIPT),
            ("GET", "events") => return self.streamed(to),
            ("POST", "stop") => self.stop(access, rights, request),
            ("GET", _) => Answer::text(404, "There is nothing here."),
            _ => Answer::text(405, "This cannot be asked for here."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Token;
    use crate::security::Names;
    use iolite_stats::Report;

    #[test]
    fn readers_share_the_page_of_the_report() {
        let hello = Hello {
            outline: Report::default(),
            blocks: Vec::new(),
            program: "iolite".to_owned(),
            interval_ns: 1,
            of_hosts: false,
            linger_ms: None,
        };
        let access = Access::new(Token::of(&[Rights::Look]).unwrap(), Names::Here).unwrap();
        let run = Run::new(hello, None);
        run.end("the page".to_owned());
        let answers = [0; 3].map(|_| run.page(&access, Rights::Look));
        let kept = run.state().page.clone().unwrap();
        assert_eq!(*kept, b"the page");
        assert_eq!(Arc::strong_count(&kept), 2 + answers.len(), "that of the run, this one, and no copies");
    }
}
