//! `--debug`: prints the messages that the crates emit through `tracing`.
//!
//! Each category is a target. A disabled target is switched off at its call sites, once, so it costs a load and a
//! comparison at most. Lines have fio's format: category, process, text. Each is written in one piece, so that those of
//! several processes do not mix.
//!
//! Under its own name, the program prints them to standard output, or to standard error where programs read the output.
//! Under the name `fio` they go where fio's go: to the output in any format, which may be the file of `--output`.

use crate::console::{Console, harmless};
use iolite_options::{DebugWish, Name, RunOptions};
use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// Where lines go.
static DESTINATION: Mutex<Destination> = Mutex::new(Destination::Output);

enum Destination {
    Output,
    Error,
    /// To memory, until the file of `--output` is open.
    Held(Vec<u8>),
    /// To the file of the report. All processes of the run share its offset.
    File(File),
}

impl Destination {
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Destination::Output => {
                let mut out = io::stdout().lock();
                out.write_all(text).and_then(|()| out.flush())
            }
            Destination::Error => io::stderr().lock().write_all(text),
            Destination::Held(lines) => lines.write_all(text),
            Destination::File(file) => file.write_all(text),
        }
    }
}

fn destination() -> MutexGuard<'static, Destination> {
    DESTINATION.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The number of this thread's worker, from 1; 0 = no worker.
    static WORKER: Cell<u64> = const { Cell::new(0) };
}

/// Starts printing the chosen categories. Without any, nothing is set up.
pub fn set_up(name: Name, run: RunOptions) {
    if !run.debug.categories.is_empty() {
        *destination() = match name {
            Name::Fio if run.output.is_some() => Destination::Held(Vec::new()),
            Name::Iolite if !run.is_for_people() => Destination::Error,
            _ => Destination::Output,
        };
        // This fails only if a subscriber exists, and only this place sets one.
        let _ = tracing::subscriber::set_global_default(Printer(run.debug));
    }
}

/// Standard output carries data of a job: prints to standard error from now on.
pub fn avoid_standard_output() {
    let mut to = destination();
    if matches!(*to, Destination::Output) {
        *to = Destination::Error;
    }
}

/// Writes lines that were held, and all later ones, to the file of the report.
pub fn follow(console: &mut Console) {
    let mut to = destination();
    let Destination::Held(lines) = &*to else { return };
    match console.share_file(lines) {
        Some(file) => *to = Destination::File(file),
        None => release_from(&mut to),
    }
}

/// Prints lines that are still held, because there is no file of a report.
pub fn release() {
    release_from(&mut destination());
}

fn release_from(to: &mut Destination) {
    if let Destination::Held(lines) = to {
        let lines = std::mem::take(lines);
        *to = Destination::Output;
        // If this cannot be written, there is no other place to report that.
        let _ = to.write(&lines);
    }
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
        let _ = destination().write(&text);
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
