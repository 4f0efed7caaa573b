//! Whether a block is what it should be.

use super::MOST_TOLD;
use super::others::{Candidates, OtherStates};
use super::reach::may_be_unwritten;
use iolite_verify::block::{
    Diagnosis, Expected, Field, HeaderFormat, Mismatch, Mixture, Spec, Verifier, Write,
};
use iolite_verify::state::Accepted;
use iolite_workload::Io;
use iolite_workload::history::WriteMap;
use iolite_workload::rng::SplitMix64;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// To explain a block that was torn, at most so many bytes of other writes are made again.
const MOST_MADE: u64 = 256 << 20;

/// What is known about a block that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, except that something was written here by a job like this one.
    Anything,
    /// The write of this number, or one by another job that writes to the same place.
    Write(u64),
    /// The same, of an earlier run, asked when nothing was known yet of whose writes its were. Where the answer turns out to
    /// have been too kind, it is asked again.
    Doubted(u64),
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
    /// A write that was in flight may be there up to any byte, not only up to a sector.
    pub is_copied: bool,
}

/// A block that was read, and what it should be.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Index of the file that it was read from.
    pub file: u32,
    /// Where it was read.
    pub offset: u64,
    /// What should be there.
    pub expect: Expect,
    /// No other job has written there since.
    pub is_own: bool,
}

/// The seed of the content of a write of the job with this seed.
pub fn seed_of(job: u64, number: u64) -> u64 {
    SplitMix64::stream(job, number).next_u64()
}

/// The numbers of the jobs that write to the same files, by index of the file.
pub type Others = HashMap<u32, Vec<u16>>;

/// What an earlier run has in common with this job, whatever its seed was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// Each write, and where it goes.
    Writes,
    /// The same, but not how many there are.
    Beginning,
    /// What is written as a whole, in some order.
    Places,
    /// Nothing.
    Nothing,
}

/// Where a block was read, and whether no other job has written there since.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    offset: u64,
    is_own: bool,
}

/// Checks blocks; every thread that does has one.
#[derive(Clone, Debug)]
pub struct Checker {
    spec: Spec,
    verifier: Verifier,
    seed: u64,
    job: u16,
    others: Arc<Others>,
    /// What the states of these say.
    other_states: Arc<OtherStates>,
    /// Nothing is checked in earnest: the engine moves no data.
    pretends: bool,
    /// A write that was in flight is there as a whole or not at all.
    atomic: bool,
    /// Whose the writes of an earlier run are.
    earlier: Option<Earlier>,
    /// Only the first wrong interval of a block is told.
    first_only: bool,
    told: u64,
    writes: Vec<Write>,
}

/// Writes of an earlier run, which are known because this job would do the same.
#[derive(Clone, Debug)]
struct Earlier {
    alike: Alike,
    seen: Arc<Sightings>,
}

impl Earlier {
    /// Whether the order of the writes does not depend on the seed.
    fn is_ordered(&self) -> bool {
        matches!(self.alike, Alike::Writes | Alike::Beginning)
    }
}

/// What all that check have seen of an earlier run.
#[derive(Debug, Default)]
struct Sightings {
    /// A block with a seed of this job: then all of them must have one.
    own: AtomicBool,
    /// A block that was right, but for the seed: it may be that of a job at another place. Its job's number plus 1.
    stranger: AtomicU32,
    /// Of the writes before this one, those are looked for once more that were not told when nothing was known yet of
    /// whose they were. 0: none are.
    again: AtomicU64,
    /// A wrong block with a seed that is not this job's. Its job's number plus 1.
    foreign: AtomicU32,
}

impl Checker {
    /// Checks blocks of this job, whose contents come from `seed`.
    pub fn new(spec: &Spec, seed: u64, job: u16, others: Arc<Others>) -> Checker {
        Checker {
            spec: spec.clone(),
            verifier: Verifier::new(spec),
            seed,
            job,
            others,
            other_states: Arc::default(),
            pretends: false,
            atomic: false,
            earlier: None,
            first_only: false,
            told: 0,
            writes: Vec::new(),
        }
    }

    /// The writes are those of an earlier run or job, which may have had another number, and so other seeds.
    #[must_use]
    pub fn of_an_earlier_run(mut self, alike: Alike) -> Checker {
        self.earlier = Some(Earlier { alike, seen: Arc::default() });
        self
    }

    /// The same, but they had the seeds of this job.
    #[must_use]
    pub fn of_an_earlier_run_of_its_own(self) -> Checker {
        let checker = self.of_an_earlier_run(Alike::Writes);
        checker.earlier.iter().for_each(|earlier| earlier.seen.own.store(true, Relaxed));
        checker
    }

    /// Only the first wrong interval of a block is told: it ends the job.
    #[must_use]
    pub fn that_stops_at_the_first(mut self, first_only: bool) -> Checker {
        self.first_only = first_only;
        self
    }

    /// Others have left these states of what they wrote to the same places.
    #[must_use]
    pub fn beside(mut self, others: OtherStates) -> Checker {
        self.other_states = Arc::new(others);
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
        seed_of(self.seed, number)
    }

    /// What is wrong with a block: each interval that is not what it should be.
    pub fn check(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        if self.pretends {
            return Vec::new();
        }
        let mut wrong = match self.looks_again() {
            true => self.wrong_again(block, question),
            false => self.wrong(block, question),
        };
        if !self.puts_off(question.expect, &wrong) {
            wrong.truncate(if self.first_only { 1 } else { usize::MAX });
            self.told += (wrong.len() as u64).saturating_sub(1);
        }
        wrong
    }

    fn wrong(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        let Some(first) = self.first_wrong(block, question) else { return Vec::new() };
        self.note_foreign(&first);
        let is_zeros = question.expect == Expect::Zeros;
        let needs_all = self.may_put_off(question.expect);
        let mut wrong = vec![*first];
        while let Some(last) = wrong.last()
            && !is_zeros
            && (needs_all || !self.first_only && self.told + (wrong.len() as u64) <= MOST_TOLD)
        {
            let next = (last.offset - last.block_offset) as usize + last.length;
            let expected = Expected { offset: question.offset, writes: &self.writes };
            match self.verifier.check_from(next, block, &expected) {
                Ok(()) => break,
                Err(mismatch) => wrong.push(*mismatch),
            }
        }
        wrong
    }

    /// What was not told when nothing was known yet of whose the writes were, and is wrong.
    fn wrong_again(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        let Expect::Write(number) = question.expect else { return Vec::new() };
        let doubted = Question { expect: Expect::Doubted(number), ..question };
        let before = self.wrong(block, doubted);
        let was_told = !before.is_empty() && !self.puts_off(doubted.expect, &before);
        if was_told || !self.is_told_now(number) {
            return Vec::new();
        }
        if self.knows_owner() { self.wrong(block, question) } else { before }
    }

    fn first_wrong(&mut self, block: &[u8], question: Question) -> Option<Box<Mismatch>> {
        let Question { file, offset, expect, is_own } = question;
        let place = Place { file, offset, is_own };
        let number = match expect {
            Expect::Anything => None,
            Expect::Write(number) | Expect::Doubted(number) => Some(number),
            Expect::Zeros => return self.check_zeros(block, offset),
            Expect::Saved(saved) => return self.check_saved(block, place, saved),
        };
        let Some(mismatch) = self.check_number(block, place, number) else {
            self.note_owner(number);
            return None;
        };
        let is_kind = matches!(expect, Expect::Doubted(_)) || !self.knows_owner();
        if self.is_anothers(&mismatch) && is_kind {
            let wrong = self.check_anothers(block, offset, number);
            if wrong.is_none() {
                self.note_stranger(&mismatch);
            }
            return wrong;
        }
        // A map keeps a part of the number only.
        if let (Field::Sequence, Some(header), Expect::Write(number) | Expect::Doubted(number)) =
            (mismatch.field, &mismatch.header, expect)
            && header.sequence != number
            && WriteMap::same(header.sequence, number)
        {
            return self.first_wrong(block, Question { expect: Expect::Write(header.sequence), ..question });
        }
        Some(mismatch)
    }

    /// What is wrong with a block that is not there, because the file ends at `end`; `None` = it has been told.
    pub fn cut_off(&self, io: &Io, end: u64, expect: Expect) -> Option<Mismatch> {
        let mismatch = Mismatch::cut_off(self.spec.kind, io.offset, io.length as usize, end);
        let is_news = match expect {
            _ if !self.looks_again() => true,
            Expect::Write(number) => self.may_put_off(Expect::Doubted(number)) && self.is_told_now(number),
            _ => false,
        };
        is_news.then_some(mismatch)
    }

    /// Whether that these blocks are wrong is not told yet: as long as nothing is known of whose the writes are, nobody
    /// knows how many there were, and it looks as if this one was not among them.
    pub fn puts_off(&self, expect: Expect, wrong: &[Mismatch]) -> bool {
        let Some(first) = wrong.first().filter(|_| self.may_put_off(expect)) else { return false };
        let bytes: usize = wrong.iter().map(|mismatch| mismatch.length).sum();
        bytes == first.block_length && wrong.iter().all(|mismatch| may_be_unwritten(&mismatch.diagnosis))
    }

    fn may_put_off(&self, expect: Expect) -> bool {
        matches!(expect, Expect::Doubted(_)) && self.alike() == Some(Alike::Beginning)
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
        Place { file, offset, is_own }: Place,
        number: Option<u64>,
    ) -> Option<Box<Mismatch>> {
        self.writes.clear();
        if let Some(number) = number {
            self.writes.push(self.own(number));
            let other = |&job: &u16| Write { job: Some(job), ..Write::default() };
            if !is_own {
                self.writes.extend(self.others.get(&file).into_iter().flatten().map(other));
            }
        }
        self.verifier.check(block, &Expected { offset, writes: &self.writes }).err()
    }

    /// Checks a block against all the writes that a state allows, the latest first.
    fn check_saved(&mut self, block: &[u8], place: Place, saved: Saved) -> Option<Box<Mismatch>> {
        let Saved { accepted, issued, .. } = saved;
        let mut mismatch = self.check_number(block, place, Some(accepted.latest))?;
        let found = mismatch.header.as_ref().filter(|header| header.job == self.job);
        let number = found.map_or(accepted.latest, |header| {
            let bits = if header.format == HeaderFormat::V333 { 16 } else { 64 };
            if bits == 64 && header.sequence >= issued {
                return header.sequence;
            }
            accepted.pick(Some(header.sequence), bits)
        });
        if number != accepted.latest {
            mismatch = self.check_number(block, place, Some(number))?;
        }
        // The kill, or the loss of power, may have come in the middle of a write.
        (!self.is_mixture(block, place, saved, number)).then_some(mismatch)
    }

    /// Whether a block consists of sectors of writes that are good answers, of this job or of those that wrote there too.
    fn is_mixture(&self, block: &[u8], place: Place, saved: Saved, found: u64) -> bool {
        let Place { file, offset, .. } = place;
        let (accepted, is_copied) = (saved.accepted, saved.is_copied);
        let mut all = vec![Candidates { seed: self.seed, job: self.job, accepted, is_copied }];
        all.extend(self.other_states.at(file, offset, block.len() as u64));
        if self.atomic || !all.iter().any(Candidates::is_open) {
            return false;
        }
        let mut mixture = Mixture::new(&self.spec, block, offset);
        let in_flight = all.iter().filter_map(Candidates::in_flight);
        let found = std::iter::once(all[0].part(found, false));
        let known = all.iter().flat_map(Candidates::known);
        if in_flight.chain(found).chain(known).any(|part| mixture.explain(part)) {
            return true;
        }
        // Of writes that came between, only the number is known; they were to any place, and most to another one.
        let most = MOST_MADE / block.len().max(1) as u64;
        mixture.search(|named| all.iter().flat_map(move |of| of.between(named)).take(most as usize))
    }

    /// Whether it could be seen of a block that it has a seed of this job.
    fn can_tell_owner(&self) -> bool {
        self.verifier.has_seeds() && self.spec.check_seed && self.others.is_empty()
    }

    /// Whether writes of an earlier run are known to be this job's own.
    pub fn knows_owner(&self) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.seen.own.load(Relaxed))
    }

    /// Whether the writes are those of an earlier run, and nothing has been seen yet that tells whose: blocks of another
    /// seed pass.
    pub fn is_in_doubt(&self) -> bool {
        self.earlier.is_some() && self.can_tell_owner() && !self.knows_owner()
    }

    /// What the writes of the earlier run that are checked have in common with this job's; `None` = none are.
    pub fn alike(&self) -> Option<Alike> {
        self.earlier.as_ref().map(|earlier| earlier.alike)
    }

    /// The number of a job whose blocks have passed with seeds that are not this job's.
    pub fn stranger(&self) -> Option<u16> {
        let seen = &self.earlier.as_ref()?.seen;
        seen.stranger.load(Relaxed).checked_sub(1).map(|number| number as u16)
    }

    /// The number of a job that has written here with seeds that are not this job's.
    pub fn other_job(&self) -> Option<u16> {
        let foreign = || self.earlier.as_ref()?.seen.foreign.load(Relaxed).checked_sub(1);
        self.stranger().or_else(|| foreign().map(|number| number as u16))
    }

    /// Goes over the writes once more. Of those before `end`, what has not been told before is told now if it is wrong.
    /// Whether this is the first time.
    pub fn look_again(&self, end: u64) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.seen.again.swap(end, Relaxed) == 0)
    }

    fn looks_again(&self) -> bool {
        self.is_told_now(0)
    }

    fn is_told_now(&self, number: u64) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| number < earlier.seen.again.load(Relaxed))
    }

    /// The writes of an earlier run have turned out to be this job's own.
    fn note_owner(&self, number: Option<u64>) {
        if let (Some(earlier), Some(_)) = (&self.earlier, number)
            && self.can_tell_owner()
        {
            earlier.seen.own.store(true, Relaxed);
        }
    }

    fn note_stranger(&self, mismatch: &Mismatch) {
        if let (Some(earlier), Some(header)) = (&self.earlier, &mismatch.header) {
            earlier.seen.stranger.store(u32::from(header.job) + 1, Relaxed);
        }
    }

    fn note_foreign(&self, mismatch: &Mismatch) {
        if let (Some(earlier), Some(header)) = (&self.earlier, &mismatch.header)
            && header.format == HeaderFormat::V342
            && self.verifier.has_seeds()
            && header.seed != self.seed(header.sequence)
        {
            earlier.seen.foreign.store(u32::from(header.job) + 1, Relaxed);
        }
    }

    /// Whether a block is wrong in nothing but that it was written by a job of another number: with other seeds, and
    /// perhaps in another order.
    fn is_anothers(&self, mismatch: &Mismatch) -> bool {
        let (Some(_), Some(header)) = (&self.earlier, &mismatch.header) else { return false };
        let is_own = match header.format {
            // Nothing but a pattern, or zeros: then all there is to go by is the number of the job.
            _ if !self.verifier.has_seeds() => header.job == self.job,
            HeaderFormat::V342 => header.seed == self.seed(header.sequence),
            // It keeps a part of the number.
            HeaderFormat::V333 => mismatch.wanted.is_some_and(|write| write.seed == Some(header.seed)),
        };
        if is_own {
            self.note_owner(Some(header.sequence));
        }
        matches!(mismatch.field, Field::Sequence | Field::Seed) && !is_own
    }

    /// Checks a block against what is known of a write by a job of another number.
    fn check_anothers(&mut self, block: &[u8], offset: u64, number: Option<u64>) -> Option<Box<Mismatch>> {
        let is_ordered = self.earlier.as_ref().is_some_and(Earlier::is_ordered);
        self.writes.clear();
        self.writes.extend(
            number.filter(|_| is_ordered).map(|number| Write { sequence: Some(number), ..Write::default() }),
        );
        self.verifier.check(block, &Expected { offset, writes: &self.writes }).err()
    }

    fn own(&self, number: u64) -> Write {
        // Of an earlier run the number of the job says nothing: sections were chosen, files were given to others.
        let job = self.earlier.is_none().then_some(self.job);
        Write { sequence: Some(number), seed: Some(self.seed(number)), job }
    }
}
