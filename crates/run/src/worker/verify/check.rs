//! Whether a block is what it should be.

use iolite_content::verify::{Expected, Field, Mismatch, Verifier, Write};
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
}

/// A block that was read, and what it should be.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Where it was read.
    pub offset: u64,
    /// What should be there.
    pub expect: Expect,
}

/// Checks blocks; every thread that does has one.
#[derive(Clone, Debug)]
pub struct Checker {
    verifier: Verifier,
    seed: u64,
    job: u16,
    /// Jobs that write to the same files.
    others: Arc<[u16]>,
    /// Numbers and seeds are known because the writes are those of this very seed.
    knows_writes: bool,
    /// Nothing is checked in earnest: the engine moves no data.
    pretends: bool,
    writes: Vec<Write>,
}

impl Checker {
    /// Checks blocks of this job, whose contents come from `seed`.
    pub fn new(verifier: Verifier, seed: u64, job: u16, others: Arc<[u16]>) -> Checker {
        Checker { verifier, seed, job, others, knows_writes: true, pretends: false, writes: Vec::new() }
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

    /// The seed of the content of a write.
    pub fn seed(&self, number: u64) -> u64 {
        SplitMix64::stream(self.seed, number).next_u64()
    }

    /// Whether another job may write to the same place meanwhile.
    pub fn is_shared(&self) -> bool {
        !self.others.is_empty()
    }

    /// What is wrong with a block.
    pub fn check(&mut self, block: &[u8], question: Question) -> Option<Box<Mismatch>> {
        if self.pretends {
            return None;
        }
        let Question { offset, expect } = question;
        self.writes.clear();
        if let (Expect::Write(number), true) = (expect, self.knows_writes) {
            self.writes.push(self.own(number));
            let other = |&job: &u16| Write { job: Some(job), ..Write::default() };
            self.writes.extend(self.others.iter().map(other));
        }
        let mismatch = self.verifier.check(block, &Expected { offset, writes: &self.writes }).err()?;
        // A map keeps a part of the number only.
        if let (Field::Sequence, Some(header), Expect::Write(number)) =
            (mismatch.field, &mismatch.header, expect)
            && header.sequence != number
            && WriteMap::same(header.sequence, number)
        {
            return self.check(block, Question { offset, expect: Expect::Write(header.sequence) });
        }
        Some(mismatch)
    }

    fn own(&self, number: u64) -> Write {
        Write { sequence: Some(number), seed: Some(self.seed(number)), job: Some(self.job) }
    }
}
