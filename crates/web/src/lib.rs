//! Web pages of a running run, and of stored results.
//!
//! A run forks, and a process with threads must not. So a separate process serves the pages: the same program, called
//! with the special word [`WORD`]. The run sends its events through a socket and never waits ([`LivePage`]). Events are
//! dropped if the process is too slow: snapshots have cumulative counters, so the next one makes up for them. The
//! process ends with the run, however the run ends; only if pages are open, it stays to give them the final report.
//!
//! | content | file |
//! |---|---|
//! | the run's end of the socket | `handing.rs`, messages: `message.rs` |
//! | the process | `process.rs` |
//! | the state of the run, and the events for readers | `run.rs`, `telling.rs` |
//! | stored results, in a process that does not fork | `shelf.rs`; comparisons: `shelf/comparison.rs`; forms: `form.rs` |
//! | jobs that are written and started in the browser | `desk.rs` |
//! | connections and their limits | `server.rs`, `wire.rs`; keys and names: `security.rs` |
//! | requests and answers | `request.rs`, `answer.rs` |
//! | access control | `access.rs` |
//!
//! Each connection has its own thread, as in `iolite-remote`; there are few. It serves one request, so that a request
//! cannot contain another one. `httparse` parses heads. A framework (hyper, axum) would bring an asynchronous runtime
//! for a handful of routes.

mod access;
mod answer;
mod desk;
mod form;
mod handing;
mod message;
mod process;
mod request;
mod run;
mod security;
mod server;
mod shared_events;
mod shelf;
mod state;
mod telling;
mod wire;

pub use access::{Rights, Token};
pub use desk::{Clerk, Desk, JobChannel};
pub use handing::{LivePage, Lost};
pub use message::{Held, Hello, Judgement, Mistake, Step, Written};
pub use process::serve;
pub use security::Certified;
pub use shelf::{Entry, Library, Resident};
pub use telling::{LOST, WAITS};

/// The first argument of the process of a page.
pub const WORD: &str = "--page-of-a-run";
/// The first argument of the process of a job that was written in a page.
pub const JOB_WORD: &str = "--job-of-a-page";
