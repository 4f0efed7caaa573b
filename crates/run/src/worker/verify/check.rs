//! Whether a block is what it should be.

use crate::verify_state::Accepted;
use iolite_content::verify::{
    Diagnosis, Expected, Field, HeaderFormat, Identity, Mismatch, Spec, Stamper, Verifier, Write,
};
use iolite_workload::history::WriteMap;
use iolite_workload::rng::SplitMix64;
use std::sync::Arc;

/// What is known about a block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, except that something was written here by a job like this one.
    Anything,
    /// The write of this number, or one by another job that writes to the same place.
    Write(u64),
    /// One of the writes that a saved state allows.
    Saved(Saved),
    /// Zeros: it was trimmed.
    Zeros,
}

/// What a saved state says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The good answers.
    pub accepted: Accepted,
    /// How many writes had been issued when the state was left: any later one is new to it, and good.
    pub issued: u64,
}

/// A block that was read, and what it should be.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Where it was read.
    pub offset: u64,
    /// What should be there.
    pub expect: Expect,
    /// No other job has written there since.
    pub is_own: bool,
}

/// Checks blocks; every thread that does has one.
#[derive(Clone, Debug)]
pub struct Checker {
    spec: Spec,
    verifier: Verifier,
    seed: u64,
    job: u16,
    /// Jobs that write to the same files.
    others: Arc<[u16]>,
    /// Numbers and seeds are known because the writes are those of this very seed.
    knows_writes: bool,
    /// Nothing is checked in earnest: the engine moves no data.
    pretends: bool,
    /// A write that was in flight is there as a whole or not at all.
    atomic: bool,
    writes: Vec<Write>,
}

impl Checker {
    /// Checks blocks of this job, whose contents come from `seed`.
    pub fn new(spec: &Spec, seed: u64, job: u16, others: Arc<[u16]>) -> Checker {
        Checker {
            spec: spec.clone(),
            verifier: Verifier::new(spec),
            seed,
            job,
            others,
            knows_writes: true,
            pretends: false,
            atomic: false,
            writes: Vec::new(),
        }
    }

    /// Whose writes they were is not known.
    #[must_use]
    pub fn of_anybody(mut self) -> Checker {
        self.knows_writes = false;
        self
    }

    /// All blocks are right.
    #[must_use]
    pub fn that_pretends(mut self) -> Checker {
        self.pretends = true;
        self
    }

    /// A write that was in flight is there as a whole or not at all. Without this it may be there in part.
    #[must_use]
    pub fn with_atomic_writes(mut self, atomic: bool) -> Checker {
        self.atomic = atomic;
        self
    }

    /// The seed of the content of a write.
    pub fn seed(&self, number: u64) -> u64 {
        SplitMix64::stream(self.seed, number).next_u64()
    }

    /// What is wrong with a block.
    pub fn check(&mut self, block: &[u8], question: Question) -> Option<Box<Mismatch>> {
        if self.pretends {
            return None;
        }
        let Question { offset, expect, is_own } = question;
        let number = match expect {
            Expect::Anything => None,
            Expect::Write(number) => Some(number),
            Expect::Zeros => return self.check_zeros(block, offset),
            Expect::Saved(saved) => return self.check_saved(block, (offset, is_own), saved),
        };
        let mismatch = self.check_number(block, (offset, is_own), number)?;
        // A map keeps a part of the number only.
        if let (Field::Sequence, Some(header), Expect::Write(number)) =
            (mismatch.field, &mismatch.header, expect)
            && header.sequence != number
            && WriteMap::same(header.sequence, number)
        {
            return self.check(block, Question { expect: Expect::Write(header.sequence), ..question });
        }
        Some(mismatch)
    }

    /// Checks a block that was trimmed.
    fn check_zeros(&self, block: &[u8], offset: u64) -> Option<Box<Mismatch>> {
        let found = block.iter().find(|&&byte| byte != 0)?;
        Some(Box::new(Mismatch {
            kind: self.spec.kind,
            field: Field::Pattern,
            expected: "00 (it was trimmed)".to_owned(),
            found: format!("{found:02x}"),
            offset,
            length: block.len(),
            block_offset: offset,
            block_length: block.len(),
            header: None,
            wanted: None,
            diagnosis: Diagnosis::Damaged,
            differences: None,
            reconstructed: Some(vec![0; block.len()]),
        }))
    }

    /// Checks a block against the write of this number, or any.
    fn check_number(
        &mut self,
        block: &[u8],
        (offset, is_own): (u64, bool),
        number: Option<u64>,
    ) -> Option<Box<Mismatch>> {
        self.writes.clear();
        if let (Some(number), true) = (number, self.knows_writes) {
            self.writes.push(self.own(number));
            let other = |&job: &u16| Write { job: Some(job), ..Write::default() };
            if !is_own {
                self.writes.extend(self.others.iter().map(other));
            }
        }
        self.verifier.check(block, &Expected { offset, writes: &self.writes }).err()
    }

    /// Checks a block against all the writes that a state allows, the latest first.
    fn check_saved(
        &mut self,
        block: &[u8],
        (offset, is_own): (u64, bool),
        saved: Saved,
    ) -> Option<Box<Mismatch>> {
        let Saved { accepted, issued } = saved;
        let mut mismatch = self.check_number(block, (offset, is_own), Some(accepted.latest))?;
        let found = mismatch.header.as_ref().filter(|header| header.job == self.job);
        let number = found.map_or(accepted.latest, |header| {
            let bits = if header.format == HeaderFormat::V333 { 16 } else { 64 };
            if bits == 64 && header.sequence >= issued {
                return header.sequence;
            }
            accepted.pick(Some(header.sequence), bits)
        });
        if number != accepted.latest {
            mismatch = self.check_number(block, (offset, is_own), Some(number))?;
        }
        // The kill may have come in the middle of the write.
        let is_part = |number| !self.atomic && self.is_mixture(block, offset, [accepted.latest, number]);
        (!accepted.in_flight.is_some_and(is_part)).then_some(mismatch)
    }

    /// Whether each byte of the data comes from one of two writes. (Headers and checksums are not looked at: a mixture
    /// of them is that of neither.)
    fn is_mixture(&self, block: &[u8], offset: u64, writes: [u64; 2]) -> bool {
        let mut stamper = Stamper::new(&self.spec);
        let [one, other] = writes.map(|number| {
            let mut made = vec![0; block.len()];
            let (sequence, seed) = (number, self.seed(number));
            stamper.stamp(&mut made, &Identity { offset, sequence, seed, ..Identity::default() });
            made
        });
        let interval = match self.spec.interval {
            0 => block.len(),
            interval if block.len().is_multiple_of(interval) => interval,
            _ => block.len(),
        };
        let overhead = HeaderFormat::V342.size() + self.spec.kind.digest_size();
        let has_header = self.spec.kind.has_header();
        let is_data = |at: usize| {
            let at = at % interval;
            !has_header || (at >= overhead && !(self.spec.offset..self.spec.offset + overhead).contains(&at))
        };
        (0..block.len()).all(|at| !is_data(at) || block[at] == one[at] || block[at] == other[at])
    }

    fn own(&self, number: u64) -> Write {
        Write { sequence: Some(number), seed: Some(self.seed(number)), job: Some(self.job) }
    }
}
