//! What the options of verification mean for a worker, and what is refused because it could not be verified.
//!
//! Everything is decided here and given to `iolite_verify` as [`Rules`](iolite_verify::Rules). Three moments matter:
//!
//! 1. [`obstacles()`] looks at the options alone.
//! 2. When the layouts of all files are known, [`unverifiable`] says what nobody can know about the writes of an earlier
//!    run, [`Rivalries`] who writes to the same places, and [`damaged_states`] whose states cannot be used. Whoever prepares
//!    the run reads these states, and tells what is wrong with them.
//! 3. When a worker is about to start, [`rules`](rules()) resolves what it does.

mod alike;
mod imprint;
mod obstacles;
mod rivalries;
mod rules;
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
