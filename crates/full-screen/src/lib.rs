//! `--live=full`: a running run on the whole terminal.
//!
//! A run forks, and a process with threads must not. So a separate process draws: the same program, called with the
//! special word [`WORD`]. It gets the events that pages get, reads the keys, and gives the terminal back when the run
//! ends, even if the run is killed.
//!
//! Meanwhile nothing else may write to the terminal: neither this program nor libraries that engines load. So until the
//! end, standard output and error of the run lead into memory, from which all that was written comes to the terminal
//! afterwards ([`FullScreen`]).
//!
//! | content | file |
//! |---|---|
//! | the run's side: the process, and the terminal before and after it | `run_side.rs` |
//! | the process: events and keys | `process.rs` |
//! | rates, latencies and messages of the last moments | `figures.rs` |
//! | what is where on the screen | `picture.rs` |
//! | the terminal | `terminal.rs` |

mod figures;
mod picture;
mod process;
mod run_side;
mod terminal;

pub use process::serve;
pub use run_side::{FullScreen, Look};

/// The first argument of the process.
pub const WORD: &str = "--full-screen-of-a-run";
