//! The ranks of a launcher (`mpirun`, `srun`): how they find each other.
//!
//! All ranks are started with the same command line. They share a *board*, on which each can write values that all
//! read: the launcher's own key space, or a directory that all machines see. Rank 0 coordinates, and also works, with
//! its own agent; the others are agents for one run. They meet on the board in three steps, which all of them take
//! together: each names its machine, rank 0 makes the plan, each gives its address.

mod board;
mod directory;
mod launcher;
mod meeting;
mod pmi2;
mod pmix;

pub use board::Board;
pub use directory::{place as place_by_environment, variable};
pub use launcher::join;
pub use meeting::{Gathered, Meeting, Work};
