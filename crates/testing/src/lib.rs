//! What the tests of all crates share: skips that are counted, seeds that can be given again, and engines in C.
//!
//! | variable | meaning |
//! |---|---|
//! | `IOLITE_TEST_SEED` | the seed of everything that tests draw at random (default: another one each time) |
//! | `IOLITE_TEST_SKIPS` | the file to which skips are appended; `scripts/test` sets it, and counts them |

pub mod engines;
pub mod seed;
pub mod skip;

pub use engines::{engine_of, example_engine};
pub use seed::{Luck, properties, seed, seed_or};
pub use skip::partly_skipped;
