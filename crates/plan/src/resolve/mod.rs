//! What exactly each worker does: the one moment at which everything is decided.

pub mod content;
mod workload;

pub use workload::{replayed_sizes, workload_spec};
