//! The meaning of the verification options for a worker, and refusals of jobs that could not be verified.
//!
//! Everything is decided here and given to `iolite_verify` as [`Rules`](iolite_verify::Rules). Three moments matter:
//!
//! 1. [`obstacles()`] checks the options alone.
//! 2. When the layouts of all files are known, [`unverifiable`] finds jobs for which the writes of an earlier run are
//!    not known, [`Rivalries`] the workers that write to the same places, and [`damaged_states`] the jobs whose states
//!    cannot be used. The caller that prepares the run reads these states, and reports their mistakes.
//! 3. When a worker is about to start, [`rules`](rules()) resolves its verification.

mod imprint;
mod obstacles;
mod rivalries;
mod rules;
mod seed_agreement;
mod spec;
mod state;
mod unforeseeable;

pub use obstacles::obstacles;
pub use rivalries::Rivalries;
pub use rules::rules;
pub use state::{StateUse, kept_states, state_of};
pub use unforeseeable::{damaged_states, unverifiable};

#[cfg(test)]
mod tests;
