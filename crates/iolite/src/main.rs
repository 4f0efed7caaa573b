//! Iolite.
fn main() {}
