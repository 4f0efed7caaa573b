//! What was written, what came back: what is wrong, and why.
//!
//! [`block`] makes blocks that can be checked, checks them, and says what has happened to a wrong one. [`state`] keeps
//! what a worker has written where a kill does not reach it.

pub mod block;
pub mod state;
