//! Random numbers in tests: every test that uses them prints its seed, and takes it from `IOLITE_TEST_SEED` if that is
//! set.
//!
//! The harness shows the output of a failed test. Run the test again with the seed that it printed:
//!
//! ```text
//! IOLITE_TEST_SEED=1234 cargo test -p iolite-content any_bytes_are_checked
//! ```

use proptest::test_runner::{Config, RngSeed};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

const VARIABLE: &str = "IOLITE_TEST_SEED";

/// The seed of a test: the one in `IOLITE_TEST_SEED`, or a new one. It is printed.
///
/// # Panics
///
/// If the variable holds no number.
pub fn seed() -> u64 {
    // The keys of hash maps are the only random numbers that the standard library provides.
    seed_or(RandomState::new().hash_one(std::process::id()))
}

/// The seed of a test that always draws the same numbers: `default`, unless `IOLITE_TEST_SEED` is set. It is printed.
///
/// # Panics
///
/// If the variable holds no number.
pub fn seed_or(default: u64) -> u64 {
    let seed = match std::env::var(VARIABLE) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{VARIABLE}={text}: {error}")),
        Err(_) => default,
    };
    println!("{VARIABLE}={seed}");
    seed
}

/// The settings of a property test with this many cases, drawn from [`seed`].
///
/// # Panics
///
/// If `IOLITE_TEST_SEED` holds no number.
pub fn properties(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(seed()), ..Config::default() }
}

/// A sequence of pseudo-random numbers (SplitMix64).
#[derive(Debug)]
pub struct Luck(u64);

impl Luck {
    /// The sequence that begins with [`seed`].
    ///
    /// # Panics
    ///
    /// If `IOLITE_TEST_SEED` holds no number.
    pub fn new() -> Luck {
        Luck(seed())
    }

    /// The sequence that begins with this seed. `IOLITE_TEST_SEED` is ignored, and the seed is not printed.
    pub fn of(seed: u64) -> Luck {
        Luck(seed)
    }

    /// The next number: 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

impl Default for Luck {
    fn default() -> Luck {
        Luck::new()
    }
}

#[test]
fn the_same_seed_draws_the_same() {
    let draw = |seed| {
        let mut luck = Luck::of(seed);
        [luck.draw(), luck.draw(), luck.below(10)]
    };
    assert_eq!(draw(5), draw(5));
    assert_ne!(draw(5), draw(6));
    assert!(draw(5)[2] < 10);
}
