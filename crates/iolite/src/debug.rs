//! `--debug`: prints the messages that the crates emit through `tracing`.
//!
//! Each category is a target. A disabled target is switched off at its call sites, once, so it costs a load and a
//! comparison at most. Lines have fio's format: category, process, text. Each is written in one piece, so that those of
//! several processes do not mix.

use crate::console::harmless;
use iolite_options::{DebugWish, OutputFormat, RunOptions};
use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// Lines go to standard error, because programs read standard output.
static TO_ERROR: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The number of this thread's worker, from 1; 0 = no worker.
    static WORKER: Cell<u64> = const { Cell::new(0) };
}

/// Starts printing the chosen categories. Without any, nothing is set up.
pub fn set_up(run: RunOptions) {
    if !run.debug.categories.is_empty() {
        if !run.output_format.contains(&OutputFormat::Normal) {
            use_standard_error();
        }
        // This fails only if a subscriber exists, and only this place sets one.
        let _ = tracing::subscriber::set_global_default(Printer(run.debug));
    }
}

/// Prints to standard error from now on: another program reads standard output.
pub fn use_standard_error() {
    TO_ERROR.store(true, Relaxed);
}

struct Printer(DebugWish);

impl Printer {
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() || self.0.categories.iter().any(|category| category == metadata.target())
    }

    fn wants_worker(&self, worker: u64) -> bool {
        self.0.workers.is_empty() || self.0.workers.iter().any(|&wanted| u64::from(wanted) == worker)
    }
}

impl Subscriber for Printer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }

    /// The only spans are workers; their number is their identity.
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line::default();
        span.record(&mut line);
        Id::from_u64(line.worker.max(1))
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { worker: WORKER.get(), text: String::new() };
        event.record(&mut line);
        if !self.wants_worker(line.worker) {
            return;
        }
        let text = format!("{:<8} {:<5} {}\n", event.metadata().target(), std::process::id(), line.text);
        let text = harmless(text.as_bytes());
        // If this cannot be written, there is no other place to report that.
        let _ = if TO_ERROR.load(Relaxed) {
            io::stderr().lock().write_all(&text)
        } else {
            let mut out = io::stdout().lock();
            out.write_all(&text).and_then(|()| out.flush())
        };
    }

    fn enter(&self, span: &Id) {
        WORKER.set(span.into_u64());
    }

    fn exit(&self, _span: &Id) {
        WORKER.set(0);
    }
}

/// The text of an event, and its worker.
#[derive(Default)]
struct Line {
    worker: u64,
    text: String,
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if matches!(field.name(), "job" | "number") {
            self.worker = value;
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String does not fail.
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_chosen_by_number() {
        let printer =
            |workers: &[u32]| Printer(DebugWish { categories: Vec::new(), workers: workers.to_vec() });
        assert!(printer(&[]).wants_worker(0) && printer(&[]).wants_worker(7));
        assert!(printer(&[2, 7]).wants_worker(7) && !printer(&[2, 7]).wants_worker(0));
    }
}
