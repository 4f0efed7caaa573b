//! The ranks of a launcher (`mpirun`, `srun`): how they find each other.
//!
//! All ranks are started with the same command line. They share a *board*, on which each can write words that all read: the
//! launcher's own key space, or a directory that all machines see. Rank 0 coordinates, and works too, with an agent of its own;
//! the others are agents for one run. On the board they say where they are, in three steps that all of them take together: on
//! which machine, what rank 0 makes of that, at which address.

mod board;
mod directory;
mod meeting;
mod pmi2;
mod pmix;

pub use board::{Board, join};
pub use meeting::{Gathered, Meeting, Work};
