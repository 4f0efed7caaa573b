//! Fuzzing that runs wherever the tests run: on stable, without instrumentation, for seconds or for hours.
//!
//! A target takes bytes and returns the outcome in a few words. Inputs start with a corpus, and each is mutated several
//! times ([`mutate`]). An input with a new outcome joins the corpus, which guides the search as a coverage map would:
//! an error message that was not seen before comes from code that was not reached before. A failure is a panic, more
//! than [`MOST_MEMORY`] in use, or no end within [`PATIENCE`]. The failing input is saved, and the message says how to
//! reproduce it.
//!
//! | variable | meaning |
//! |---|---|
//! | `IOLITE_FUZZ_SECONDS` | seconds that each target runs (default 1) |
//! | `IOLITE_TEST_SEED` | the seed of the sequence of inputs (default 1) |
//! | `IOLITE_FUZZ_INPUT` | run only this file |
//! | `IOLITE_FUZZ_KEEP` | save inputs with new outcomes in this directory, so that they can be added to the corpus |

pub mod memory;
pub mod mutate;

use iolite_testing::seed_or;
use mutate::Random;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most memory in bytes that one input may have in use at a time.
pub const MOST_MEMORY: usize = 512 << 20;

/// The longest time that one input may take. It is generous because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The length of the longest input, in bytes.
const LONGEST: usize = 16 << 10;

/// The most inputs that are kept for further mutation.
const MOST_KEPT: usize = 5000;

/// A parser of bytes.
pub struct Target<'a> {
    /// The name of the target and of its corpus.
    pub name: &'static str,
    /// The directory of the corpora.
    pub corpora: PathBuf,
    /// More inputs to start with.
    pub seeds: Vec<Vec<u8>>,
    /// Words that its inputs contain.
    pub words: &'a [&'a str],
    /// Takes an input and returns the outcome. Outcomes that differ only in numbers and names count as the same.
    pub run: &'a mut dyn FnMut(&[u8]) -> String,
}

impl Target<'_> {
    /// Searches for an input that fails. If there is one, this panics with a message that says where the input is
    /// saved.
    pub fn fuzz(mut self) {
        if let Some(path) = std::env::var_os("IOLITE_FUZZ_INPUT") {
            let input = fs::read(&path).expect("the input can be read");
            println!("{}: {}", self.name, (self.run)(&input));
            return;
        }
        let number = |name: &str, default| match std::env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")),
            Err(_) => default,
        };
        let seconds = number("IOLITE_FUZZ_SECONDS", 1);
        let seed = seed_or(1);
        let keep =
            std::env::var_os("IOLITE_FUZZ_KEEP").map(|directory| PathBuf::from(directory).join(self.name));
        let mut random = Random::new(seed);
        let mut kept = self.corpus();
        let watched = Watched::begin(self.name);
        let mut known = HashSet::new();
        for input in &kept {
            known.insert(masked(&self.one(&watched, input)));
        }
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut count = kept.len() as u64;
        while Instant::now() < end {
            let mut input = kept[random.below(kept.len())].clone();
            for _ in 0..=random.below(6) {
                let other = &kept[random.below(kept.len())];
                mutate::once(&mut input, other, self.words, &mut random);
            }
            input.truncate(LONGEST);
            let outcome = self.one(&watched, &input);
            count += 1;
            if known.insert(masked(&outcome)) && kept.len() < MOST_KEPT {
                if let Some(directory) = &keep {
                    save(directory, &input);
                }
                kept.push(input);
            }
        }
        watched.end();
        println!("{}: {count} inputs, {} outcomes, seed {seed}", self.name, known.len());
    }

    /// The inputs to start with, at least one.
    fn corpus(&self) -> Vec<Vec<u8>> {
        let mut inputs = self.seeds.clone();
        let mut paths: Vec<PathBuf> = fs::read_dir(self.corpora.join(self.name))
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("a corpus can be listed").path())
            .collect();
        paths.sort();
        inputs.extend(paths.iter().map(|path| fs::read(path).expect("a corpus can be read")));
        inputs.push(Vec::new());
        inputs
    }

    /// Runs one input. A failure ends the search.
    fn one(&mut self, watched: &Watched, input: &[u8]) -> String {
        watched.set(input);
        let before = memory::begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
        let used = memory::peak_since(before);
        let failed = |why: &str| -> ! {
            let path = save(&failures(), input);
            panic!("{}: {why}\ninput: IOLITE_FUZZ_INPUT={}", self.name, path.display());
        };
        match outcome {
            Err(_) => failed("panicked (see above)"),
            Ok(_) if used > MOST_MEMORY => failed(&format!("had {used} bytes in use")),
            Ok(outcome) => outcome,
        }
    }
}

/// The start of an input, and the input.
type Begun = Option<(Instant, Vec<u8>)>;

/// The current input, for a thread that checks whether it ends.
struct Watched {
    current: Arc<Mutex<Begun>>,
}

impl Watched {
    fn begin(name: &'static str) -> Watched {
        let current: Arc<Mutex<Begun>> = Arc::default();
        let seen = Arc::downgrade(&current);
        std::thread::spawn(move || {
            while let Some(current) = seen.upgrade() {
                if let Some((began, input)) = &*current.lock().expect("nobody panics with it")
                    && began.elapsed() > PATIENCE
                {
                    let path = save(&failures(), input);
                    eprintln!(
                        "{name}: no end after {PATIENCE:?}\ninput: IOLITE_FUZZ_INPUT={}",
                        path.display()
                    );
                    std::process::abort();
                }
                drop(current);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Watched { current }
    }

    fn set(&self, input: &[u8]) {
        *self.current.lock().expect("nobody panics with it") = Some((Instant::now(), input.to_vec()));
    }

    fn end(&self) {
        *self.current.lock().expect("nobody panics with it") = None;
    }
}

/// The directory for inputs that fail.
fn failures() -> PathBuf {
    std::env::temp_dir().join("iolite-fuzz-failures")
}

/// Saves an input under a unique name.
fn save(directory: &Path, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = directory.join(format!("{:016x}", hasher.finish()));
    fs::create_dir_all(directory).and_then(|()| fs::write(&path, input)).expect("an input can be saved");
    path
}

/// The outcome without the parts that depend on the input: numbers, text in quotes or brackets, and words that are not
/// plain letters.
fn masked(outcome: &str) -> String {
    let mut mask = String::new();
    for part in outcome.split('"').step_by(2) {
        let mut outside = part.split('[').map(|piece| piece.rsplit(']').next().unwrap_or_default());
        let words = outside
            .by_ref()
            .flat_map(|piece| piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        for word in words {
            let is_plain = word.chars().all(|c| c.is_ascii_alphabetic() || ".,:;()_'".contains(c));
            mask += if is_plain { &word } else { "0" };
            mask.push(' ');
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(run: &mut dyn FnMut(&[u8]) -> String) -> Target<'_> {
        Target {
            name: "test",
            corpora: PathBuf::new(),
            seeds: vec![b"begin".to_vec()],
            words: &["magic"],
            run,
        }
    }

    #[test]
    fn outcomes_are_distinguished_by_their_words() {
        assert_eq!(masked("line 12: \"abc\" is not 7"), masked("line 3: \"x\" is not 123"));
        assert_eq!(masked("begins with [65, 0a], no"), masked("begins with [1], no"));
        assert_eq!(masked("bs=4kk: not a size"), masked("bs=x%1: not a size"));
        assert_ne!(masked("line 12: too long"), masked("line 12: too short"));
    }

    #[test]
    fn panicking_inputs_are_found() {
        let mut run = |input: &[u8]| {
            assert!(!input.starts_with(b"magic"), "found");
            String::new()
        };
        let failure = catch_unwind(AssertUnwindSafe(|| target(&mut run).fuzz())).unwrap_err();
        let text = failure.downcast_ref::<String>().expect("a message");
        let path = text.rsplit('=').next().expect("a path");
        assert!(text.contains("panicked") && fs::read(path).unwrap().starts_with(b"magic"), "{text}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn new_outcomes_lead_further() {
        // Each step is only a few mutations away from the previous one, but all steps at once are out of reach.
        let mut most = 0;
        let mut run = |input: &[u8]| {
            let found = input.windows(5).filter(|window| *window == b"magic").count();
            most = most.max(found);
            "x ".repeat(found)
        };
        target(&mut run).fuzz();
        assert!(most >= 5, "{most}");
    }
}
