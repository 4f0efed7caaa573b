//! Feeds parsers with damaged input: none of them may panic, hang or eat all memory, whatever it is given.
//!
//! A target is a function of bytes with a corpus, `corpus/NAME`. All files of the corpus come first, as they are. Then, for as long
//! as there is time, one of them is chosen, changed in several ways and given to the target. Changes are those
//! that find mistakes in parsers: bits and bytes, lengths that are too large, parts that are missing, doubled, moved or of
//! another file, and words of the format in places where they do not belong.
//!
//! The tests in `tests/targets.rs` run each target for a second with the same changes every time.
//! `IOLITE_FUZZ_SECONDS=600 cargo test --release -p iolite-fuzz` runs longer, with other changes each time. What fails is saved, and its
//! name printed; mended, it belongs into the corpus.

mod change;
mod watch;

pub use change::{Changer, Rng};

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use watch::Watch;

/// How long a target runs when nothing else is asked for.
const SHORT: Duration = Duration::from_secs(1);
/// Inputs do not grow beyond this.
const LARGEST: usize = 1 << 16;
/// A target that takes longer than this for one input hangs.
const HANGS: Duration = Duration::from_secs(20);

/// Something that parses bytes.
pub struct Target<'a> {
    /// Its name, and that of its directory in the corpus.
    pub name: &'a str,
    /// Words of its format.
    pub words: &'a [&'a str],
    /// Feeds it.
    pub feed: &'a mut dyn FnMut(&[u8]),
}

/// Runs a target over its corpus and what can be made of it. The number of inputs.
///
/// # Panics
///
/// When the target does; the message names a file with the input.
pub fn run(target: &mut Target) -> u64 {
    let corpus = corpus(target.name);
    assert!(!corpus.is_empty(), "there is no corpus for {}", target.name);
    let watch = Watch::new(target.name, HANGS);
    for input in &corpus {
        feed(target, &watch, input);
    }
    let (time, seed) = asked();
    let mut changer = Changer::new(seed, target.words, LARGEST);
    let began = Instant::now();
    let mut count = corpus.len() as u64;
    while began.elapsed() < time {
        let input = changer.next(&corpus);
        feed(target, &watch, &input);
        count += 1;
    }
    println!("{}: {count} inputs, seed {seed}", target.name);
    count
}

/// How long, and with which changes.
fn asked() -> (Duration, u64) {
    let seconds = std::env::var("IOLITE_FUZZ_SECONDS").ok();
    let Some(seconds) = seconds.map(|text| text.parse().expect("IOLITE_FUZZ_SECONDS is a number")) else {
        return (SHORT, 1);
    };
    let seed = std::env::var("IOLITE_FUZZ_SEED").ok().map(|text| text.parse().expect("a number"));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    (Duration::from_secs(seconds), seed.unwrap_or_else(now))
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&directory).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    // The order of a directory is nobody's.
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file of the corpus")).collect()
}

fn feed(target: &mut Target, watch: &Watch, input: &[u8]) {
    watch.begins(input);
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.feed)(input)));
    watch.ends();
    if outcome.is_err() {
        panic!("{} panics; the input is {}", target.name, save(target.name, input).display());
    }
}

/// Keeps an input that did harm.
fn save(name: &str, input: &[u8]) -> PathBuf {
    let sum = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let path = std::env::temp_dir().join(format!("iolite-fuzz-{name}-{sum:016x}"));
    fs::write(&path, input).expect("the temporary directory can be written to");
    path
}
