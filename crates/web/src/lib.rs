//! Pages over HTTP: a run that goes on, and stored results.
//!
//! A run forks, and nothing with threads forks. So the pages are served by a process of their own: the same program, called with
//! a word of its own ([`WORD`]). The run hands its events to it through a socket and never waits ([`LivePage`]): what the process
//! does not take is left out, because snapshots have cumulative counters and the next one says it all. The process dies with
//! the run, however that ends, except that it stays for the pages that are open to get the final report.
//!
//! | what | file |
//! |---|---|
//! | the run's end of the socket | `handing.rs`, messages: `message.rs` |
//! | the process | `process.rs` |
//! | what is known of the run, and what a reader gets of it | `run.rs`, `telling.rs` |
//! | stored results, in a process that forks nothing | `shelf.rs`; what is compared: `shelf/comparison.rs`; forms: `form.rs` |
//! | jobs that are written and started in a page | `desk.rs` |
//! | connections, and their limits | `server.rs`, `wire.rs`; keys and names: `security.rs` |
//! | requests and answers | `request.rs`, `answer.rs` |
//! | who may look, who may end a run, and who may start one | `access.rs` |
//!
//! A thread waits for each connection, as in `iolite-remote`, and there are few. Each answers one request: no state of one
//! request is left for another to be smuggled into. `httparse` reads heads. A framework (hyper, axum) would bring an asynchronous
//! runtime for a handful of routes.

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

/// The first word behind the program's name that makes it the process of a page.
pub const WORD: &str = "--page-of-a-run";
/// The one that makes it the process of a job that was written in a page.
pub const JOB_WORD: &str = "--job-of-a-page";
