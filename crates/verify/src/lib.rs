//! Verification of data: finds blocks that differ from the written ones, and explains the damage.
//!
//! [`block`] makes blocks that can be checked, checks them, and explains the damage of a wrong one. [`state`] records a
//! worker's writes where a kill does not reach the record.
//!
//! A worker that verifies has a [`Verification`], made from [`Rules`]. It stamps each write, notes which writes have
//! been acknowledged, knows which blocks to read back ([`ReadBack`]), and the expected content of each block
//! ([`Question`]). The worker's loop issues the reads and hands over the blocks: to the [`Checker`] at once, or to
//! separate threads ([`Pool`]).
//!
//! Several workers may write to one place ([`Rivals`]). They take [`Turns`] there and record the last writer
//! ([`Owners`]), so each of them requires only its own data. Where the last writer is not known, the write of any of
//! them is valid.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | blocks on disk | the idea: `block.rs`; `block/header.rs`, `digest.rs`, `check.rs`; what is wrong with one: `inquiry.rs`, `mismatch.rs`; after a crash: `mixture.rs` |
//! | what must be where, and the order of reading back | `rules.rs`; during the run: `verification.rs`, `read_back.rs`, `checker.rs` |
//! | writes of several workers to one place | `turns.rs`, `owners.rs`, `rival_states.rs` |
//! | states | `state.rs` and its parts; what a state requires: `demands.rs` |
//! | data that a device appends elsewhere, or compares itself | `landed` in `verification.rs`; `compared.rs` |

pub mod block;
pub mod state;

mod backlog;
mod checker;
mod compared;
mod demands;
mod dump;
mod earlier;
mod earlier_progress;
mod load_error;
mod owners;
mod passes;
mod pool;
mod question;
mod read_back;
mod repeated_reads;
mod rival_states;
mod rivals;
mod rules;
mod state_keeper;
mod trims;
mod turns;
mod verification;

pub use checker::Checker;
pub use compared::Compared;
pub use demands::Demands;
pub use load_error::LoadError;
pub use owners::{Extent, LARGEST_GRANULE, MOST_GRANULES, Owner, Owners};
pub use passes::Found;
pub use pool::{Checked, Pool};
pub use question::{Expect, Question, SavedWrites};
pub use read_back::ReadBack;
pub use rival_states::check as check_rival_state;
pub use rivals::{FileRivals, Rivals, SharedFile};
pub use rules::{Alike, EarlierRun, Keep, Load, ReadBackRules, Rules, StateRules, TrimRules};
pub use state_keeper::Keeper;
pub use trims::Trims;
pub use turns::{Aim, Part, Turns};
pub use verification::{Role, SetupError, Telling, Verification};
