//! What was written, what came back: what is wrong, and why.
//!
//! [`block`] makes blocks that can be checked, checks them, and says what happened to a wrong one. [`state`] keeps what a
//! worker has written where a kill does not reach it.
//!
//! A worker that verifies has a [`Verification`], made from [`Rules`]. It stamps each write, notes which writes have been
//! acknowledged, knows what is to be read back ([`ReadBack`]), and what each block that comes back should be
//! ([`Question`]). The worker's loop issues the reads and hands over what was read: to the [`Checker`] at once, or to
//! threads of their own ([`Pool`]).
//!
//! Several workers may write to one place ([`Rivals`]). They take [`Turns`] there and record who was last ([`Owners`]), so
//! each of them requires what is its own. Where nobody knows who was last, the write of any of them is valid.

pub mod block;
pub mod state;

mod backlog;
mod checker;
mod compared;
mod demands;
mod doubt;
mod dump;
mod earlier;
mod keeper;
mod load_error;
mod others;
mod owners;
mod pool;
mod question;
mod reach;
mod read_back;
mod rivals;
mod rules;
mod trims;
mod turns;
mod verification;

pub use checker::Checker;
pub use compared::Compared;
pub use demands::Demands;
pub use earlier::Alike;
pub use keeper::Keeper;
pub use load_error::LoadError;
pub use others::check as check_rival_state;
pub use owners::{Extent, LARGEST_GRANULE, MOST_GRANULES, Owner, Owners};
pub use pool::{Checked, Pool};
pub use question::{Expect, Question, SavedWrites};
pub use read_back::ReadBack;
pub use rivals::{FileRivals, Rivals, SharedFile};
pub use rules::{EarlierRun, Keep, Load, ReadBackRules, Rules, StateRules, TrimRules};
pub use trims::Trims;
pub use turns::{Aim, Part, Turns};
pub use verification::{Role, SetupError, Telling, Verification};
