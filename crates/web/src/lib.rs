//! Web pages of a running run, and of stored results.
//!
//! A run forks, and a process with threads must not. So a separate process serves the pages: the same program, called
//! with the special word [`WORD`]. The run sends its events through a socket and never waits ([`LivePage`]). Events are
//! dropped if the process is too slow: snapshots have cumulative counters, so the next one makes up for them. The
//! process ends with the run, however the run ends; only if pages are open, it stays to give them the final report.
//!
//! | content | file |
//! |---|---|
//! | the run's end of the socket | `run_side.rs`, messages: `message.rs` |
//! | the process | `process.rs` |
//! | the state of the run, and the events for readers | `run.rs`, `event_stream.rs` |
//! | stored results, in a process that does not fork | `stored_results.rs`; comparisons: `stored_results/comparison.rs`; forms: `form.rs` |
//! | jobs that are written and started in the browser | `submitted_jobs.rs` |
//! | connections and their limits | `server.rs`, `transport.rs`; keys and names: `security.rs` |
//! | requests and answers | `request.rs`, `answer.rs` |
//! | access control | `access.rs` |
//! | metrics of runs | `metrics.rs`, their formats: `exposition.rs`, `exposition/protobuf.rs` |
//!
//! Each connection has its own thread, as in `iolite-remote`; there are few. It serves one request, so that a request
//! cannot contain another one. `httparse` parses heads. A framework (hyper, axum) would bring an asynchronous runtime
//! for a handful of routes.

/// `write!` into a string, which cannot fail.
macro_rules! put {
    ($text:expr, $($format:tt)*) => {{
        use std::fmt::Write;
        write!($text, $($format)*).expect("strings take everything");
    }};
}

mod access;
mod answer;
mod event_stream;
mod exposition;
mod form;
mod message;
mod metrics;
mod process;
mod request;
mod run;
mod run_side;
mod security;
mod server;
mod shared_events;
mod state;
mod stored_results;
mod submitted_jobs;
mod transport;

pub use access::{Rights, Token};
pub use event_stream::{LOST, WAITS, in_words};
pub use message::{Held, Hello, Judgement, Mistake, Step, Written, read_event, read_hello};
pub use metrics::{LIMITS, LastRun, MetricsPlace};
pub use process::serve;
pub use run_side::{Handing, LivePage, Lost, Places};
pub use security::Certified;
pub use state::Message;
pub use stored_results::{Entry, Library, Resident};
pub use submitted_jobs::{Clerk, Desk, JobChannel};

/// The first argument of the process of a page.
pub const WORD: &str = "--page-of-a-run";
/// The first argument of the process of a job that was written in a page.
pub const JOB_WORD: &str = "--job-of-a-page";
