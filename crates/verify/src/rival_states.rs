//! The information of the states of rivals about a place.
//!
//! A killed job may leave a part of a write, and so may any other job that wrote to the same place, over earlier data
//! of any of them. Only all of their states together explain such a block.

use crate::block::{Named, Part};
use crate::load_error::LoadError;
use crate::question::seed_of;
use crate::rivals::Rivals;
use crate::state::{Accepted, Policy, Saved, SavedFile, StateError};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Writes of one job that may be in a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates {
    /// The seed from which the seeds of the job's blocks are derived.
    pub seed: u64,
    /// The job's number in headers.
    pub job: u16,
    /// The last acknowledged write and the equally valid ones; or a write that was in flight.
    pub accepted: Accepted,
    /// A write in flight may end at any byte, not only at a sector.
    pub is_copied: bool,
}

impl Candidates {
    /// A write of this number.
    pub fn part(&self, number: u64, is_copied: bool) -> Part {
        Part { job: self.job, sequence: number, seed: seed_of(self.seed, number), is_copied }
    }

    /// The write that was in flight.
    pub fn in_flight(&self) -> Option<Part> {
        Some(self.part(self.accepted.in_flight?, self.is_copied))
    }

    /// The writes that are known to have been done.
    pub fn known(&self) -> impl Iterator<Item = Part> {
        let Accepted { oldest, latest, in_flight } = self.accepted;
        let numbers = [(in_flight != Some(latest)).then_some(latest), (oldest != latest).then_some(oldest)];
        numbers.into_iter().flatten().map(|number| self.part(number, false))
    }

    /// The writes that may have been done, the latest first. If a header was `named`, only those that it may name.
    pub fn between(&self, named: Option<Named>) -> impl Iterator<Item = Part> {
        let Accepted { oldest, latest, .. } = self.accepted;
        // The distance from the last one to the first that may be named, and from there to the next.
        let (back, step) = match named {
            None => (0, 0),
            Some(named) => (latest.wrapping_sub(1).wrapping_sub(named.sequence) & named.mask, named.mask),
        };
        let is_mine = named.is_none_or(|named| named.job == self.job);
        let count = if is_mine { latest.saturating_sub(oldest).saturating_sub(back) } else { 0 };
        // (A step of 2^64 is never made.)
        let numbers = (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX).saturating_add(1));
        numbers.map(move |behind| self.part(latest - 1 - back - behind, false))
    }

    /// Whether more than one write is valid.
    pub fn is_open(&self) -> bool {
        self.accepted.oldest != self.accepted.latest || self.accepted.in_flight.is_some()
    }
}

/// The states of all rivals of a job, by index of its own files.
#[derive(Debug, Default)]
pub(crate) struct OtherStates {
    files: HashMap<u32, Vec<OtherState>>,
}

/// A rival's state of one file.
#[derive(Debug)]
struct OtherState {
    seed: u64,
    job: u16,
    is_copied: bool,
    file: SavedFile,
}

impl OtherStates {
    /// Loads the states of these rivals. A rival that has read everything back has no state, and left no writes in
    /// flight. The tables are not checked here: [`check`] does that, once for all jobs that load them.
    ///
    /// # Errors
    ///
    /// A state is damaged.
    pub fn load(policy: Policy, rivals: &Rivals) -> Result<OtherStates, LoadError> {
        let mut files: HashMap<u32, Vec<OtherState>> = HashMap::new();
        for (&own, rivals) in &rivals.files {
            for (path, name) in &rivals.states {
                let Some((saved, file)) = open(path, name)? else { continue };
                files.entry(own as u32).or_default().push(OtherState {
                    seed: saved.setup.seed,
                    job: saved.setup.number,
                    is_copied: saved.setup.is_copied,
                    file: saved.file_unseen(file, policy),
                });
            }
        }
        Ok(OtherStates { files })
    }

    /// The writes that may be in a place.
    pub fn at(&self, file: u32, offset: u64, length: u64) -> Vec<Candidates> {
        let states = self.files.get(&file).into_iter().flatten();
        let of_state = |state: &OtherState| {
            let OtherState { seed, job, is_copied, .. } = *state;
            let standing = state.file.standing(offset, length).into_iter();
            standing.map(move |accepted| Candidates { seed, job, accepted, is_copied }).collect::<Vec<_>>()
        };
        states.flat_map(of_state).collect()
    }
}

/// Reads everything that the state of a rival records of a file, which the rival calls `name`. A missing state is no
/// error.
///
/// # Errors
///
/// The state is damaged.
pub fn check(path: &Path, name: &str, policy: Policy) -> Result<(), LoadError> {
    let Some((saved, file)) = open(path, name)? else { return Ok(()) };
    saved.file(file, policy).map(drop).map_err(|error| LoadError::State(path.to_owned(), error))
}

/// The state of a rival, and the index that a file has there. `None`: no state, or not of this file.
fn open(path: &Path, name: &str) -> Result<Option<(Saved, u32)>, LoadError> {
    let saved = match Saved::open(path) {
        Err(StateError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        saved => saved.map_err(|error| LoadError::State(path.to_owned(), error))?,
    };
    let file = saved.setup.files.iter().position(|file| file.is(name, true));
    Ok(file.map(|file| (saved, file as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Identity, Kind, Spec, Stamper};
    use crate::checker::Checker;
    use crate::question::{Expect, Question, SavedWrites};
    use crate::rivals::FileRivals;
    use crate::state::{Recorder, Setup, StateFile};
    use std::sync::Arc;

    const BLOCK: usize = 4096;
    /// Seeds and numbers of the jobs.
    const OWN: (u64, u16) = (10, 1);
    const OTHER: (u64, u16) = (20, 2);

    fn setup() -> Setup {
        Setup {
            program: "iolite-test".into(),
            job: "other".into(),
            number: OTHER.1,
            kind: "crc32c".into(),
            began: 0,
            seed: OTHER.0,
            block: 1024,
            depth: 2,
            is_uniform: false,
            is_durable: false,
            is_copied: false,
            per_pass: 0,
            has_flushes: false,
            imprint: None,
            files: vec![StateFile {
                name: "f".into(),
                offset: 0,
                length: 4 * BLOCK as u64,
                identity: None,
                place: None,
            }],
        }
    }

    fn spec() -> Spec {
        Spec { interval: 2048, ..Spec::new(Kind::Crc32c) }
    }

    /// A block as a write of this number has left it.
    fn block(((seed, job), sequence): ((u64, u16), u64), offset: u64) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        let seed = seed_of(seed, sequence);
        let identity = Identity { offset, sequence, seed, seconds: 7, nanoseconds: 8, job };
        Stamper::new(&spec()).stamp(&mut block, &identity);
        block
    }

    /// Another job was killed while it overwrote this job's data, or its own.
    #[test]
    fn blocks_in_flight_of_another_job_may_be_torn() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let recorder = Recorder::create(&path, &setup()).unwrap();
        for (number, offset) in [(3, 0), (4, BLOCK as u64)] {
            recorder.issue(0, number, 0, offset, BLOCK as u64);
            recorder.acknowledge(0);
        }
        recorder.issue(0, 9, 0, 0, BLOCK as u64);
        let states = [(path, "f".to_owned()), (directory.path().join("missing"), "f".to_owned())];
        let rivals = FileRivals { numbers: [OTHER.1].into(), states: states.into(), ..FileRivals::default() };
        let all = Rivals { files: [(0, rivals)].into() };
        let alone = || Checker::new(&spec(), OWN.0, OWN.1, Arc::new(all.numbers()));
        let beside = alone().beside(OtherStates::load(Policy::Completed, &all).unwrap());
        let is_right = |checker: &Checker, block: &[u8], offset| {
            let accepted = Accepted { oldest: 5, latest: 5, in_flight: None };
            let expect = Expect::Saved(SavedWrites { accepted, issued: 6, per_pass: 0, is_copied: false });
            let question = Question { file: 0, offset, expect, is_own: false };
            checker.clone().check(block, question).is_empty()
        };
        let torn = |new, old, at: usize, offset: u64| {
            let mut torn = block(new, offset);
            torn[at..].copy_from_slice(&block(old, offset)[at..]);
            torn
        };
        for at in [512, 1024, 2560, 3584] {
            for old in [(OWN, 5), (OTHER, 3)] {
                let mut block = torn((OTHER, 9), old, at, 0);
                assert!(!is_right(&alone(), &block, 0), "the state of the other one explains it");
                assert!(is_right(&beside, &block, 0), "{at} {old:?}");
                for damaged in [40, at - 1, at, BLOCK - 1] {
                    block[damaged] ^= 1;
                    assert!(!is_right(&beside, &block, 0), "{at} {old:?} {damaged}");
                    block[damaged] ^= 1;
                }
            }
            assert!(!is_right(&beside, &torn((OTHER, 8), (OWN, 5), at, 0), 0), "8 was not in flight");
            let elsewhere = BLOCK as u64;
            let written = torn((OTHER, 4), (OWN, 5), at, elsewhere);
            assert!(!is_right(&beside, &written, elsewhere), "nothing was in flight there");
        }
    }

    /// The writes from the oldest valid one to the latest, and those that end like the number in a header.
    #[test]
    fn a_header_names_the_writes_that_may_be_there() {
        let accepted = Accepted { oldest: 10, latest: 300_000, in_flight: None };
        let candidates = Candidates { seed: 1, job: 2, accepted, is_copied: true };
        let numbers = |named| candidates.between(named).map(|part| part.sequence).collect::<Vec<_>>();
        assert_eq!(numbers(None), (10..300_000).rev().collect::<Vec<_>>());
        for mask in [u64::MAX, 0xffff] {
            for sequence in [0, 9, 10, 11, 40_000, 65_535, 70_000, 299_999, 300_000, u64::MAX] {
                let is_named = |&number: &u64| number & mask == sequence & mask;
                let wanted: Vec<u64> = (10..300_000).rev().filter(is_named).collect();
                let named = |job| Some(Named { job, sequence: sequence & mask, mask });
                assert_eq!(numbers(named(2)), wanted, "{sequence} {mask:#x}");
                assert!(numbers(named(3)).is_empty());
            }
        }
        let exact = Candidates { accepted: Accepted { oldest: 0, latest: 0, in_flight: None }, ..candidates };
        assert_eq!(exact.between(Some(Named { job: 2, sequence: 0, mask: u64::MAX })).count(), 0);
    }

    #[test]
    fn a_damaged_state_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        std::fs::write(&path, "iolstate").unwrap();
        let rivals = FileRivals { states: [(path, "f".to_owned())].into(), ..FileRivals::default() };
        let all = Rivals { files: [(0, rivals)].into() };
        let error = OtherStates::load(Policy::Completed, &all).unwrap_err();
        assert!(error.to_string().contains("state: cut or extended"), "{error}");
    }
}
