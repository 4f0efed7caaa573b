//! Checks whether a block has its expected content.

use crate::block::{
    Diagnosis, Expected, Field, Header, HeaderFormat, Mismatch, Mixture, Spec, Verifier, Write,
};
use crate::earlier::Earlier;
use crate::passes::Found;
use crate::question::{Expect, Question, SavedWrites, seed_of};
use crate::rival_states::{Candidates, OtherStates};
use crate::rules::{Alike, EarlierRun};
use iolite_workload::Io;
use iolite_workload::history::WriteMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Headers of the old layout store a part of a write's number. For the rest, numbers below this one are tried.
const MOST_NUMBERS_V333: u64 = 1 << 28;
/// To explain a torn block, at most this many bytes of other writes are generated again.
const MOST_MADE: u64 = 256 << 20;
/// A run that was killed hardly had more I/Os in flight.
const LARGEST_DEPTH: u64 = 4096;
/// How many wrong intervals are described. There may be millions.
pub(crate) const MOST_DESCRIBED: u64 = 1000;

/// The numbers of the jobs that write to the same files, by index of the file.
pub(crate) type Others = HashMap<u32, Vec<u16>>;

/// Where a block was read, and whether no other job has written there since.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    offset: u64,
    is_own: bool,
}

/// Checks blocks. Each thread that checks has one.
#[derive(Clone, Debug)]
pub struct Checker {
    spec: Spec,
    verifier: Verifier,
    seed: u64,
    job: u16,
    others: Arc<Others>,
    /// The saved states of these jobs.
    other_states: Arc<OtherStates>,
    /// Every block counts as right: the engine does not keep data.
    accepts_all: bool,
    /// A write that was in flight is there completely or not at all.
    has_atomic_writes: bool,
    /// The writes are those of an earlier run.
    earlier: Option<Earlier>,
    /// Only the first wrong interval of a block is reported.
    first_only: bool,
    reported: u64,
    /// The writes that are valid for the block at hand.
    writes: Vec<Write>,
    /// The write that the last block holds, if it is right and belongs to an earlier run.
    found: Option<Found>,
}

impl Checker {
    /// Checks blocks of the job with this number, whose contents come from `seed`.
    pub(crate) fn new(spec: &Spec, seed: u64, job: u16, others: Arc<Others>) -> Checker {
        Checker {
            spec: spec.clone(),
            verifier: Verifier::new(spec),
            seed,
            job,
            others,
            other_states: Arc::default(),
            accepts_all: false,
            has_atomic_writes: false,
            earlier: None,
            first_only: false,
            reported: 0,
            writes: Vec::new(),
            found: None,
        }
    }

    /// The writes belong to an earlier run. `overwrites`: a pass may write a block more than once.
    #[must_use]
    pub(crate) fn of_an_earlier_run(mut self, run: &EarlierRun, overwrites: bool) -> Checker {
        self.earlier = Some(Earlier::new(run, overwrites));
        self
    }

    /// Only the first wrong interval of a block is reported: it ends the job.
    #[must_use]
    pub(crate) fn that_stops_at_the_first(mut self, first_only: bool) -> Checker {
        self.first_only = first_only;
        self
    }

    /// Other jobs have left these states of their writes to the same places.
    #[must_use]
    pub(crate) fn beside(mut self, others: OtherStates) -> Checker {
        self.other_states = Arc::new(others);
        self
    }

    /// Every block counts as right.
    #[must_use]
    pub(crate) fn that_accepts_all(mut self, accepts_all: bool) -> Checker {
        self.accepts_all = accepts_all;
        self
    }

    /// A write that was in flight is there completely or not at all. Without this it may be there in part.
    #[must_use]
    pub(crate) fn with_atomic_writes(mut self, atomic: bool) -> Checker {
        self.has_atomic_writes = atomic;
        self
    }

    /// The seed of the content of a write, by its number.
    pub(crate) fn seed(&self, number: u64) -> u64 {
        seed_of(self.seed, number)
    }

    /// Checks a block; returns each wrong interval.
    pub fn check(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        self.found = None;
        if self.accepts_all {
            return Vec::new();
        }
        let mut wrong = match self.checks_again() {
            true => self.wrong_again(block, question),
            false => self.wrong(block, question),
        };
        if !self.withholds(question.expect, &wrong) {
            wrong.truncate(if self.first_only { 1 } else { usize::MAX });
            self.reported += (wrong.len() as u64).saturating_sub(1);
        }
        wrong
    }

    /// The write that the last block holds, if that block is right and belongs to an earlier run.
    pub fn found(&self) -> Option<Found> {
        self.found
    }

    fn wrong(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        let Some(first) = self.first_wrong(block, question) else { return Vec::new() };
        self.note_foreign(&first);
        let is_zeros = question.expect == Expect::Zeros;
        let needs_all = self.may_withhold(question.expect);
        let is_rewritten = matches!(question.expect, Expect::Rewritten { .. });
        let mut from = (first.offset - first.block_offset) as usize + first.length;
        let mut wrong = vec![*first];
        while !is_zeros
            && (needs_all || !self.first_only && self.reported + (wrong.len() as u64) <= MOST_DESCRIBED)
        {
            let expected = Expected { offset: question.offset, writes: &self.writes };
            let Err(mismatch) = self.verifier.check_from(from, block, &expected) else { break };
            from = (mismatch.offset - mismatch.block_offset) as usize;
            if is_rewritten || !self.admits(&mismatch) {
                from += mismatch.length;
                wrong.push(*mismatch);
            }
        }
        if is_rewritten {
            wrong.iter_mut().for_each(|mismatch| self.add_passes(mismatch));
        }
        if let Expect::Saved(saved) = question.expect {
            wrong.iter_mut().for_each(|mismatch| name_passes(&mut mismatch.diagnosis, saved.per_pass));
        }
        wrong
    }

    /// Adds the passes of the writes to the description of a lost write.
    fn add_passes(&self, mismatch: &mut Mismatch) {
        let per_pass = self.earlier.as_ref().map_or(0, Earlier::per_pass);
        if let (Diagnosis::OtherWrite, Some(header), Some(expected)) =
            (&mismatch.diagnosis, &mismatch.header, mismatch.wanted.and_then(|write| write.sequence))
            && header.sequence > expected
        {
            mismatch.diagnosis = Diagnosis::EarlierRun { found: header.sequence, expected };
        }
        name_passes(&mut mismatch.diagnosis, per_pass);
        if let Diagnosis::Older { expected, in_flight_above, .. } = &mut mismatch.diagnosis {
            let stopped_at = self.earlier.as_ref().and_then(Earlier::stopped_at);
            *in_flight_above = stopped_at
                .and_then(|last| last.checked_sub(*expected))
                .filter(|behind| *behind < LARGEST_DEPTH);
        }
    }

    /// The wrong intervals that were not reported while the owner of the writes was not known.
    fn wrong_again(&mut self, block: &[u8], question: Question) -> Vec<Mismatch> {
        let Expect::Write(number) = question.expect else { return Vec::new() };
        let doubted = Question { expect: Expect::Doubted(number), ..question };
        let before = self.wrong(block, doubted);
        let was_reported = !before.is_empty() && !self.withholds(doubted.expect, &before);
        if was_reported || !self.is_checked_again(number) {
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
            Expect::Rewritten { number, before } => {
                return self.check_rewritten(block, place, number, before);
            }
        };
        let is_lenient = matches!(expect, Expect::Doubted(_)) || !self.knows_owner();
        if self.is_of_other_pass(block, offset, number, is_lenient) {
            return None;
        }
        let Some(mismatch) = self.check_number(block, place, number) else {
            self.note_owner(number);
            self.found = self.find(block, number);
            return None;
        };
        if let Some(header) = mismatch.header.filter(|_| self.is_anothers(&mismatch) && is_lenient) {
            let wrong = self.check_anothers(block, offset, number, &header);
            if wrong.is_none() {
                self.note_stranger(&header);
            }
            return wrong;
        }
        if let Some(own) = self.own_of_any_pass(&mismatch) {
            return self.check_any_pass(block, offset, own);
        }
        // A map of writes stores only a part of their numbers.
        if let (Field::Sequence, Some(header), Expect::Write(number) | Expect::Doubted(number)) =
            (mismatch.field, &mismatch.header, expect)
            && header.sequence != number
            && WriteMap::same(header.sequence, number)
        {
            return self.first_wrong(block, Question { expect: Expect::Write(header.sequence), ..question });
        }
        Some(mismatch)
    }

    /// Whether a block of an earlier run is right, and of another pass than the write of this number, as its header says.
    /// (Otherwise each such block would be compared with the write of the first pass in vain, and the difference looked
    /// into, which takes many times as long as the check itself.)
    fn is_of_other_pass(&mut self, block: &[u8], offset: u64, number: Option<u64>, is_lenient: bool) -> bool {
        let Some(number) = number.filter(|_| self.accepts_any_pass()) else { return false };
        let Some(header) = self.verifier.header(block) else { return false };
        if header.sequence == header.format.stored_sequence(number) || header.seed == self.seed(number) {
            return false;
        }
        match self.own_number(&header) {
            Some(own) => {
                let is_right = self.check_any_pass(block, offset, own).is_none();
                if is_right {
                    self.note_owner(Some(own));
                }
                is_right
            }
            None if is_lenient && self.others.is_empty() => {
                let is_right = self.check_anothers(block, offset, Some(number), &header).is_none();
                if is_right {
                    self.note_stranger(&header);
                }
                is_right
            }
            None => false,
        }
    }

    /// The mismatch of a block that is missing because the file ends at `end`; `None` = it has been reported.
    pub fn cut_off(&self, io: &Io, end: u64, expect: Expect) -> Option<Mismatch> {
        let mismatch = Mismatch::cut_off(self.spec.kind, io.offset, io.length as usize, end);
        let is_news = match expect {
            _ if !self.checks_again() => true,
            Expect::Write(number) => {
                self.may_withhold(Expect::Doubted(number)) && self.is_checked_again(number)
            }
            _ => false,
        };
        is_news.then_some(mismatch)
    }

    /// Whether to withhold these wrong intervals: as long as the owner of the writes is not known, their number is not
    /// known either, and this block looks like one that was never written.
    pub(crate) fn withholds(&self, expect: Expect, wrong: &[Mismatch]) -> bool {
        let Some(first) = wrong.first().filter(|_| self.may_withhold(expect)) else { return false };
        let bytes: usize = wrong.iter().map(|mismatch| mismatch.length).sum();
        bytes == first.block_length && wrong.iter().all(|mismatch| mismatch.diagnosis.may_be_unwritten())
    }

    fn may_withhold(&self, expect: Expect) -> bool {
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

    /// Checks a block against the write of this number; `None` = against any write.
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

    /// Checks a block against all writes that a state allows, the latest first.
    fn check_saved(&mut self, block: &[u8], place: Place, saved: SavedWrites) -> Option<Box<Mismatch>> {
        let SavedWrites { accepted, issued, .. } = saved;
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

    /// Checks a block of an earlier run that should hold this write or a later one.
    fn check_rewritten(
        &mut self,
        block: &[u8],
        place: Place,
        number: u64,
        before: (u32, u32),
    ) -> Option<Box<Mismatch>> {
        let mismatch = self.check_number(block, place, Some(number))?;
        let is_later = |header: Header| (header.seconds, header.nanoseconds) > before;
        (!mismatch.header.is_some_and(is_later)).then_some(mismatch)
    }

    /// Checks a block against a write of this job in any pass of an earlier run. If blocks have several sizes, it may
    /// consist of intervals of several such writes.
    fn check_any_pass(&mut self, block: &[u8], offset: u64, number: u64) -> Option<Box<Mismatch>> {
        self.writes.clear();
        self.writes.push(self.own(number));
        let mut from = 0;
        while let Err(mismatch) =
            self.verifier.check_from(from, block, &Expected { offset, writes: &self.writes })
        {
            from = (mismatch.offset - mismatch.block_offset) as usize;
            if self.admits(&mismatch) {
                continue;
            }
            return match self.own_of_any_pass(&mismatch) {
                // Whichever part of the later write is missing, that is the one to compare with.
                Some(own) if own > number => self.check_any_pass(block, offset, own),
                _ => Some(mismatch),
            };
        }
        if let [Write { sequence, .. }] = self.writes[..] {
            self.found = self.find(block, sequence);
        }
        None
    }

    /// Whether this interval is right because blocks have several sizes, and a write of another size to this place is
    /// valid as well. From now on, that write is accepted in the rest of the block.
    fn admits(&mut self, mismatch: &Mismatch) -> bool {
        let mixes_sizes = self.earlier.as_ref().is_some_and(|earlier| earlier.mixes_sizes);
        let own = self.own_of_any_pass(mismatch).filter(|_| mixes_sizes);
        let write = own.map(|number| self.own(number)).filter(|write| !self.writes.contains(write));
        self.writes.extend(write);
        write.is_some()
    }

    /// The write in a block that is right, if the passes of an earlier run matter. `number` = its number.
    fn find(&self, block: &[u8], number: Option<u64>) -> Option<Found> {
        let number = number.filter(|_| self.accepts_any_pass() && self.others.is_empty())?;
        let header = self.verifier.header(block)?;
        let time = (header.seconds, header.nanoseconds);
        Some(Found {
            number,
            time,
            is_own: self.can_tell_owner() && self.own_number(&header) == Some(number),
        })
    }

    /// Whether a write of any pass of an earlier run is valid.
    pub(crate) fn accepts_any_pass(&self) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.any_pass) && self.spec.check_sequence
    }

    /// Whether a block consists of sectors of valid writes, of this job or of its rivals.
    fn is_mixture(&self, block: &[u8], place: Place, saved: SavedWrites, found: u64) -> bool {
        let Place { file, offset, .. } = place;
        let (accepted, is_copied) = (saved.accepted, saved.is_copied);
        let mut all = vec![Candidates { seed: self.seed, job: self.job, accepted, is_copied }];
        all.extend(self.other_states.at(file, offset, block.len() as u64));
        if self.has_atomic_writes || !all.iter().any(Candidates::is_open) {
            return false;
        }
        let mut mixture = Mixture::new(&self.spec, block, offset);
        let in_flight = all.iter().filter_map(Candidates::in_flight);
        let found = std::iter::once(all[0].part(found, false));
        let known = all.iter().flat_map(Candidates::known);
        if in_flight.chain(found).chain(known).any(|part| mixture.explain(part)) {
            return true;
        }
        // Only the numbers of the writes in between are known; most of them went to other places.
        let most = MOST_MADE / block.len().max(1) as u64;
        mixture.search(|named| all.iter().flat_map(move |of| of.between(named)).take(most as usize))
    }

    /// Whether a block can prove that it has a seed of this job.
    fn can_tell_owner(&self) -> bool {
        self.verifier.has_seeds() && self.spec.check_seed && self.others.is_empty()
    }

    /// Whether writes of an earlier run are known to be this job's own.
    pub(crate) fn knows_owner(&self) -> bool {
        self.earlier.as_ref().is_some_and(Earlier::is_own)
    }

    /// Whether the writes belong to an earlier run and no block so far has proved whose they are: blocks with another
    /// seed pass.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.earlier.is_some() && self.can_tell_owner() && !self.knows_owner()
    }

    /// How far the writes of the earlier run agree with this job's; `None` = they are not of an earlier run.
    pub(crate) fn alike(&self) -> Option<Alike> {
        self.earlier.as_ref().map(|earlier| earlier.alike)
    }

    /// The number of a job whose blocks have passed with seeds that are not this job's.
    pub(crate) fn stranger(&self) -> Option<u16> {
        self.earlier.as_ref()?.stranger()
    }

    /// The number of a job that has written here with seeds that are not this job's.
    pub(crate) fn other_job(&self) -> Option<u16> {
        self.stranger().or_else(|| self.earlier.as_ref()?.foreign())
    }

    /// Everything is read from the beginning once more.
    pub(crate) fn start_over(&self) {
        if let Some(earlier) = &self.earlier {
            earlier.start_over();
        }
    }

    /// A pass of the earlier run has this many writes.
    pub(crate) fn set_per_pass(&self, writes: u64) {
        if let Some(earlier) = &self.earlier {
            earlier.set_per_pass(writes);
        }
    }

    /// The earlier run was stopped in the middle of a pass, after this write.
    pub(crate) fn set_stopped_at(&self, write: Option<u64>) {
        if let Some(earlier) = &self.earlier {
            earlier.set_stopped_at(write);
        }
    }

    /// Checks the writes again. For those before `end`, mismatches that were withheld are reported now. Returns whether
    /// this is the first time.
    pub(crate) fn check_again(&self, end: u64) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.check_again(end))
    }

    fn checks_again(&self) -> bool {
        self.is_checked_again(0)
    }

    fn is_checked_again(&self, number: u64) -> bool {
        self.earlier.as_ref().is_some_and(|earlier| earlier.is_checked_again(number))
    }

    /// A block of an earlier run was right, so it is this job's own; `number` = its expected write, if known.
    fn note_owner(&self, number: Option<u64>) {
        if let (Some(earlier), Some(_)) = (&self.earlier, number)
            && self.can_tell_owner()
        {
            earlier.note_own();
        }
    }

    fn note_stranger(&self, header: &Header) {
        if let Some(earlier) = &self.earlier {
            earlier.note_stranger(header.job);
        }
    }

    fn note_foreign(&self, mismatch: &Mismatch) {
        if let (Some(earlier), Some(header)) = (&self.earlier, &mismatch.header)
            && header.format == HeaderFormat::V342
            && header.seed != self.seed(header.sequence)
        {
            earlier.note_foreign(header.job);
        }
    }

    /// Whether a block is right except that a job with another number wrote it: with other seeds, and perhaps in
    /// another order.
    fn is_anothers(&self, mismatch: &Mismatch) -> bool {
        if self.earlier.is_none() || mismatch.header.is_none() {
            return false;
        }
        let own = self.own_write(mismatch);
        if own.is_some() {
            self.note_owner(own);
        }
        matches!(mismatch.field, Field::Sequence | Field::Seed) && own.is_none()
    }

    /// The number of the write of this job that a wrong interval holds, as its seed proves.
    fn own_write(&self, mismatch: &Mismatch) -> Option<u64> {
        let header = mismatch.header.as_ref()?;
        let wanted = mismatch.wanted.filter(|write| write.seed == Some(header.seed));
        wanted.and_then(|write| write.sequence).or_else(|| self.own_number(header))
    }

    /// The same if the interval is wrong only because it holds another write of an earlier run than the expected one.
    fn own_of_any_pass(&self, mismatch: &Mismatch) -> Option<u64> {
        let is_other = matches!(mismatch.field, Field::Sequence | Field::Seed);
        self.own_write(mismatch).filter(|_| is_other && self.accepts_any_pass())
    }

    /// The number of the write of this job that has this header, as its seed proves.
    fn own_number(&self, header: &Header) -> Option<u64> {
        let is_own = |number: &u64| self.seed(*number) == header.seed;
        match header.format {
            HeaderFormat::V342 => Some(header.sequence).filter(is_own),
            // This header stores only a part of the number.
            HeaderFormat::V333 if self.accepts_any_pass() => {
                (header.sequence..MOST_NUMBERS_V333).step_by(1 << 16).find(is_own)
            }
            HeaderFormat::V333 => None,
        }
    }

    /// Checks a block against the known facts about a write by a job with another number.
    fn check_anothers(
        &mut self,
        block: &[u8],
        offset: u64,
        number: Option<u64>,
        header: &Header,
    ) -> Option<Box<Mismatch>> {
        let Some(earlier) = &self.earlier else { return None };
        let number = number.filter(|_| earlier.is_ordered());
        let number = number.map(|number| match self.accepts_any_pass() {
            true => earlier.in_any_pass(header, number),
            false => number,
        });
        self.writes.clear();
        self.writes.extend(number.map(|number| Write { sequence: Some(number), ..Write::default() }));
        let wrong = self.verifier.check(block, &Expected { offset, writes: &self.writes }).err();
        // Without a seed of this job, a part of a number does not tell the pass.
        let is_told = header.format == HeaderFormat::V342;
        if wrong.is_none() && is_told {
            self.found = self.find(block, number);
        }
        wrong
    }

    fn own(&self, number: u64) -> Write {
        // The job may have had another number in an earlier run with other sections.
        let job = self.earlier.is_none().then_some(self.job);
        Write { sequence: Some(number), seed: Some(self.seed(number)), job }
    }
}

/// Adds the passes of the writes to the description of a lost write of a run with this many writes in a pass; 0 = unknown.
fn name_passes(diagnosis: &mut Diagnosis, per_pass: u64) {
    if let Diagnosis::Older { found, expected, passes, .. } = diagnosis
        && let (Some(old), Some(new)) = (found.checked_div(per_pass), expected.checked_div(per_pass))
        && old != new
    {
        *passes = Some((old + 1, new + 1));
    }
}
