//! The grammar of option values: one concept per file.

mod given;

pub use given::Given;
