//! The grammar of option values: one concept per file.
//!
//! A parser takes the text and returns the value, or a message that says what would be valid; the caller adds the
//! option's name and the place. Input that is accepted but suspicious adds a note to a list.

mod block_size_split;
mod cpus;
mod distribution;
mod errors;
mod file_service;
mod floats;
mod keyword;
mod list;
mod memory;
mod names;
mod notes;
mod numa;
mod number;
mod pattern;
mod priority_shares;
mod range;
mod rate_schedule;
mod read_write;
mod replay;
mod sample;
mod size;
mod steady_state;
mod sync_range;
mod time;
mod zone_skip;

pub use block_size_split::{block_size_split, format_block_size_split};
pub use cpus::{cpu_list, cpu_mask, number_set};
pub use distribution::{distribution, skew};
pub use errors::ignored_errors;
pub use file_service::file_service;
pub use floats::floats;
pub(crate) use floats::{LIST_TOO_LONG, NOT_A_NUMBER};
pub use keyword::keyword;
pub(crate) use keyword::not_one_of;
pub use list::{per_direction, split};
pub use memory::memory;
pub use names::names;
pub use notes::Notes;
pub use numa::{numa_nodes, numa_policy};
pub use number::integer;
pub(crate) use number::outside;
pub use pattern::{files_in_patterns, pattern};
pub use priority_shares::priority_shares;
pub use range::{range, range_with};
pub use rate_schedule::{files_in_schedule, rate_schedule};
pub use read_write::{read_write, shares};
pub use replay::{repetitions, replay_skip};
pub use sample::sample;
pub use size::size;
pub use steady_state::steady_state;
pub use sync_range::sync_file_range;
pub use time::{SECOND, time};
pub use zone_skip::zone_skip;
