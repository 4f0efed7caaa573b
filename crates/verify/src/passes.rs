//! The passes of an earlier run.
//!
//! A run may write its workload several times: with `loops`, with `io_size` above `size`, or until its time is over. A
//! check of that run (`verify_only`) generates the writes of one pass. It does not know how many passes there were, nor
//! where the last one ended. So it accepts any write of the job, and notes the number of the write that each block
//! holds. When all blocks have been read, the highest number shows how far the run got. A block that a later write
//! should have overwritten before that has lost this write: it is read again and reported.
//!
//! For this, the order of the writes of all passes must be known. It follows from the generator, but depends on how the
//! run repeated its workload. So the possible orders are tried, and one counts only if all numbers that were found
//! belong to the blocks that hold them:
//!
//! | order | when | what is computed |
//! |---|---|---|
//! | each pass repeats the first | `loops`; sequential workloads | nothing: number = number in the first pass + passes × writes per pass |
//! | the same | the history of the workload is a map | the writes, by a second generator |
//! | each lap makes new choices | `io_size`, `time_based` | the writes, by a second generator |
//!
//! Later laps write to places that the first one has not written. If their order fits, these places are known, and are
//! read as well.
//!
//! In the usual case all blocks have the number of the same pass, or the last pass was stopped and there are two. So
//! the numbers are stored as runs of equal distance from the expected ones. A history of 4 bytes for each block, as
//! for other workloads that write blocks again, is used only if there are too many runs, or for the latter two orders.

use crate::question::Expect;
use crate::read_back::{ReadBack, expected};
use crate::rules::Alike;
use crate::rules::{ReadBackRules, Rules};
use iolite_workload::history::{Need, Replay, Standing, Written};
use iolite_workload::{Io, Spec};
use std::collections::{BTreeMap, HashMap};

/// The most runs. With more, a map takes less memory.
const MOST_RUNS: usize = 1 << 12;
/// The most lost writes that are remembered if they were found with a generator.
const MOST_LOST: usize = 1 << 20;
/// The blocks of later passes that have to fit an order of the writes before blocks are read that only this order
/// tells of. (Fewer may fit by chance, and then a block that was never written would count as lost.)
const LEAST_PROOFS: u64 = 8;

/// The write that a correct block of an earlier run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub(crate) number: u64,
    /// When it was written: seconds and nanoseconds since 1970.
    pub(crate) time: (u32, u32),
    /// It has a seed of this job.
    pub(crate) is_own: bool,
}

/// What is known about the passes of an earlier run.
#[derive(Debug)]
pub(crate) struct Passes {
    workload: Spec,
    is_trace: bool,
    /// A pass may write a block more than once, so one that was stopped may leave another write than the last one.
    overwrites: bool,
    /// The most writes that an interruption of the run may have left out before the last one.
    in_flight: u64,
    /// The number of writes in a pass of this job.
    of_job: u64,
    /// A pass of a job with another seed has another number of writes.
    depends_on_seed: bool,
    /// The order of the writes of a job with another seed is known.
    is_ordered: bool,
    numbers: Numbers,
    /// How many blocks have a number.
    blocks: u64,
    /// All of them have seeds of this job.
    are_own: bool,
    latest: Option<Found>,
    /// The block with the latest time. If its number is lower than the highest one, it is of a later run.
    newest: Option<Found>,
    /// The numbers fit an order in which each pass repeats the first one.
    is_repeated: bool,
    /// How many blocks are read again.
    again: u64,
    /// Blocks that only later passes wrote can be told, if the order of the writes is known.
    has_later: bool,
    /// The places that have been read, those of later passes too; `None` = only those of a pass of this job.
    asked: Option<Standing>,
    /// The writes of later passes whose blocks are read now.
    later: Option<Standing>,
    /// The end of the last block of `later` or `asked` that was read.
    cursor: (u32, u64),
    /// The blocks that only later passes wrote and that were not read, because too little is known of these passes.
    unread: u64,
    verdict: Option<Verdict>,
}

/// An order of the writes that fits the numbers that were found.
struct Fit {
    /// The writes that were lost.
    lost: HashMap<(u32, u64), u64>,
    /// What the writes have left; `None` = nothing but the blocks of the first pass, or it is not needed.
    written: Option<Standing>,
    /// How many blocks of later passes it explains.
    proofs: u64,
}

/// The number of the write that each block holds.
#[derive(Debug)]
enum Numbers {
    Runs(Runs),
    Places(Standing),
    /// There is no memory for them.
    Unknown,
}

/// Runs of blocks: maps the expected number of the first to their count, and to what has to be added to get the numbers
/// that were found.
#[derive(Debug, Default)]
struct Runs(BTreeMap<u64, (u64, u64)>);

/// The blocks that have lost a write.
#[derive(Debug)]
enum Verdict {
    /// Each pass repeats the first one.
    Repeated,
    /// The numbers of the writes that were lost, by file and offset.
    Lost(HashMap<(u32, u64), u64>),
    /// The order of the writes is not known.
    Unknown,
}

impl Runs {
    fn insert(&mut self, expected: u64, distance: u64) {
        let before = self.0.range_mut(..=expected).next_back();
        if let Some((&first, (count, of_run))) = before {
            if expected - first < *count {
                return;
            }
            if first + *count == expected && *of_run == distance {
                *count += 1;
                let behind = self.0.get(&(expected + 1)).copied().filter(|&(_, next)| next == distance);
                if let Some((more, _)) = behind {
                    self.0.remove(&(expected + 1));
                    self.0.insert(first, (expected - first + 1 + more, distance));
                }
                return;
            }
        }
        let behind = self.0.get(&(expected + 1)).copied().filter(|&(_, next)| next == distance);
        if behind.is_some() {
            self.0.remove(&(expected + 1));
        }
        self.0.insert(expected, (1 + behind.map_or(0, |(more, _)| more), distance));
    }

    /// The number that was found in place of this one.
    fn get(&self, expected: u64) -> Option<u64> {
        let (&first, &(count, distance)) = self.0.range(..=expected).next_back()?;
        (expected - first < count).then(|| expected.wrapping_add(distance))
    }
}

impl Passes {
    /// No block has been read yet.
    pub(crate) fn new(rules: &Rules, workload: &Spec) -> Passes {
        let alike = rules.earlier.map(|earlier| earlier.alike);
        Passes {
            workload: workload.clone(),
            is_trace: rules.is_replay,
            overwrites: rules.read_back != ReadBackRules::AtEnd(Need::Replay),
            in_flight: u64::from(rules.depth).saturating_sub(1),
            of_job: 0,
            depends_on_seed: alike == Some(Alike::Beginning),
            is_ordered: alike == Some(Alike::Writes),
            numbers: Numbers::Runs(Runs::default()),
            blocks: 0,
            are_own: false,
            latest: None,
            newest: None,
            is_repeated: false,
            again: 0,
            has_later: matches!(rules.read_back, ReadBackRules::AtEnd(_)) && workload.device_zones.is_none(),
            asked: None,
            later: None,
            cursor: (0, 0),
            unread: 0,
            verdict: None,
        }
    }

    /// The blocks are read from the beginning. A pass of this job has this many writes.
    pub(crate) fn begin(&mut self, per_pass: u64) {
        self.forget();
        (self.of_job, self.verdict) = (per_pass, None);
        (self.asked, self.later, self.unread) = (None, None, 0);
    }

    /// The number of writes in a pass of the earlier run; 0 = not known.
    fn per_pass(&self) -> u64 {
        if self.depends_on_seed && !self.are_own { 0 } else { self.of_job }
    }

    fn forget(&mut self) {
        (self.numbers, self.blocks) = (Numbers::Runs(Runs::default()), 0);
        (self.latest, self.newest) = (None, None);
    }

    /// A block is right, and holds this write; `expected` = the number of the last write to it in a pass.
    pub(crate) fn found(&mut self, read_back: &ReadBack, io: &Io, expected: u64, found: Found) {
        if self.verdict.is_some() || self.are_own && !found.is_own {
            return;
        }
        if found.is_own && !self.are_own {
            // Blocks of another job have been accepted before. They will be reported.
            self.forget();
            self.are_own = true;
        }
        self.blocks += 1;
        if self.latest.is_none_or(|latest| latest.number < found.number) {
            self.latest = Some(found);
        }
        if self.newest.is_none_or(|newest| newest.time < found.time) {
            self.newest = Some(found);
        }
        match &mut self.numbers {
            Numbers::Runs(runs) => {
                runs.insert(expected, found.number.wrapping_sub(expected));
                if runs.0.len() > MOST_RUNS {
                    self.use_map(read_back);
                }
            }
            Numbers::Places(places) => places.wrote(Written { io: *io, number: found.number }),
            Numbers::Unknown => {}
        }
    }

    /// Stores the numbers by place.
    fn use_map(&mut self, read_back: &ReadBack) {
        let Numbers::Runs(runs) = &self.numbers else { return };
        let Some(mut places) = self.no_places() else {
            self.numbers = Numbers::Unknown;
            return;
        };
        read_back.each_assumed(|Written { io, number }| {
            if let Some(number) = runs.get(number) {
                places.wrote(Written { io, number });
            }
        });
        self.numbers = Numbers::Places(places);
    }

    fn no_places(&self) -> Option<Standing> {
        Standing::new(&self.workload, Need::of(&self.workload, false)).ok().flatten()
    }

    /// All blocks have been read: finds those that only later passes wrote, or else those that have lost a write. Returns
    /// whether there are any, which have to be read.
    pub(crate) fn judge(&mut self, read_back: &ReadBack, stop: impl Fn() -> bool) -> bool {
        if self.verdict.is_some() {
            return false;
        }
        self.later = None;
        self.is_repeated = matches!(&self.numbers, Numbers::Runs(runs) if self.repeats_exactly(runs));
        let has_other_orders = self.per_pass() > 0 && !self.is_trace;
        if self.is_repeated && (!self.overwrites || self.is_whole() || !has_other_orders) {
            self.verdict = Some(Verdict::Repeated);
            let lost = self.count_lost();
            // The numbers of a few blocks may fit by chance, and no write is lost in another order.
            if lost == 0 || !has_other_orders {
                self.again = lost;
                return lost > 0;
            }
        }
        self.use_map(read_back);
        let mut fit = has_other_orders.then(|| self.compute(&stop)).flatten();
        if let Some((written, proofs)) = fit.as_mut().and_then(|fit| Some((fit.written.take()?, fit.proofs)))
            && self.find_later(read_back, written, proofs)
        {
            return true;
        }
        let verdict = match fit {
            Some(fit) => Verdict::Lost(fit.lost),
            // In the first pass each number has its place. Later, it tells whether a block without a seed of this job
            // belongs here.
            None if self.is_first_pass() || !self.are_own && self.is_ordered => {
                Verdict::Lost(self.of_no_pass(read_back))
            }
            None => Verdict::Unknown,
        };
        (self.verdict, self.cursor) = (Some(verdict), (0, 0));
        self.again = self.count_lost();
        if self.again > 0 && self.later_run().is_some() {
            let mut again = 0;
            read_back
                .each_assumed(|Written { io, number }| again += u64::from(self.due(&io, number).is_some()));
            self.again = again;
        }
        self.again > 0
    }

    /// Finds the blocks that were not read. Returns whether there are any to read.
    fn find_later(&mut self, read_back: &ReadBack, mut written: Standing, proofs: u64) -> bool {
        let Some(issued) = self.latest.map(|latest| latest.number + 1) else { return false };
        read_back.each_assumed(|Written { io, .. }| written.forget(&io));
        if let Some(asked) = &self.asked {
            asked.each(issued, |Written { io, .. }| written.forget(&io));
        }
        let mut count = 0;
        written.each(issued, |_| count += 1);
        if proofs < LEAST_PROOFS || count == 0 {
            self.unread = count;
            return false;
        }
        let Some(mut asked) = self.asked.take().or_else(|| self.no_places()) else {
            self.unread = count;
            return false;
        };
        read_back.each_assumed(|written| asked.wrote(written));
        written.each(issued, |written| asked.wrote(written));
        (self.asked, self.later, self.cursor) = (Some(asked), Some(written), (0, 0));
        true
    }

    /// Whether each pass repeats the first one.
    fn repeats_exactly(&self, runs: &Runs) -> bool {
        // If the number of writes in a pass is not known, the order of the runs has to tell.
        let is_pass = |distance: u64| distance <= i64::MAX as u64 && distance.is_multiple_of(self.per_pass());
        runs.0.values().all(|&(_, distance)| self.per_pass() == 0 || is_pass(distance))
    }

    /// The writes that were lost, computed with a generator; `None` = the order of the writes is not known. If several
    /// orders fit, it is the one with the fewest lost writes, and what all of them have left.
    fn compute(&self, stop: &dyn Fn() -> bool) -> Option<Fit> {
        let laps = Spec { pass_bytes: Some(u64::MAX), total_ios: None, ..self.workload.clone() };
        let endless = Spec { endless: true, total_ios: None, ..self.workload.clone() };
        let mut best: Option<Fit> = None;
        for (spec, repeats) in [(&self.workload, true), (&laps, false), (&endless, false)] {
            let order = Replay::new(spec).ok();
            let Some(fit) = order.and_then(|order| self.compute_in(order, repeats, stop)) else { continue };
            best = Some(match best {
                Some(other) => self.both(other, fit),
                None => fit,
            });
            if best.as_ref().is_some_and(|fit| fit.lost.is_empty() && fit.written.is_none()) {
                break;
            }
        }
        best
    }

    /// What is certain if both orders fit.
    fn both(&self, one: Fit, other: Fit) -> Fit {
        let issued = self.latest.map_or(0, |latest| latest.number + 1);
        let written = one.written.zip(other.written).map(|(mut written, also)| {
            let all = written.clone();
            all.each(issued, |Written { io, .. }| {
                if also.first_within(&io, issued).is_none_or(|there| there.io != io) {
                    written.forget(&io);
                }
            });
            written
        });
        let lost = if other.lost.len() < one.lost.len() { other.lost } else { one.lost };
        Fit { lost, written, proofs: one.proofs.min(other.proofs) }
    }

    /// The same if the writes have this order.
    fn compute_in(&self, mut order: Replay, repeats: bool, stop: &dyn Fn() -> bool) -> Option<Fit> {
        const STRETCH: u64 = 1 << 16;
        let Numbers::Places(places) = &self.numbers else { return None };
        let (latest, complete) = (self.latest?.number, self.complete()?);
        let has_later = self.has_later && self.are_own && !repeats && latest >= self.per_pass();
        let mut written = if has_later { self.no_places() } else { None };
        let (mut confirmed, mut proofs) = (0, 0);
        let mut lost = HashMap::new();
        loop {
            let next = match order.next_write() {
                None if repeats => {
                    order.rewind();
                    order.next_write()
                }
                next => next,
            };
            let Written { io, number } = next?;
            let end = io.offset + io.length;
            let mut rest = io;
            while let Some(held) = places.first_within(&rest, latest + 1) {
                if held.number == number {
                    confirmed += 1;
                    proofs += u64::from(number >= self.per_pass());
                } else if held.number < number && number <= complete && lost.len() < MOST_LOST {
                    lost.insert((held.io.file, held.io.offset), number);
                }
                rest.offset = held.io.offset + held.io.length;
                rest.length = end - rest.offset;
            }
            match &mut written {
                Some(written) if number <= complete => written.wrote(Written { io, number }),
                // It may have been in flight when the run was killed.
                Some(written) => written.forget(&io),
                None => {}
            }
            if number == latest {
                return (confirmed == self.blocks).then_some(Fit { lost, written, proofs });
            }
            if number.is_multiple_of(STRETCH) && stop() {
                return None;
            }
        }
    }

    /// The blocks that hold a number of no pass, with the expected one.
    fn of_no_pass(&self, read_back: &ReadBack) -> HashMap<(u32, u64), u64> {
        let (Numbers::Places(places), Some(latest)) = (&self.numbers, self.latest) else {
            return HashMap::new();
        };
        let mut wrong = HashMap::new();
        read_back.each_assumed(|Written { io, number }| {
            if let Some(held) = places.first_within(&io, latest.number + 1)
                && !held.number.wrapping_sub(number).is_multiple_of(self.per_pass())
                && wrong.len() < MOST_LOST
            {
                wrong.insert((io.file, io.offset), number);
            }
        });
        wrong
    }

    /// The number of the last write that must be there, with all before it: a run that was killed in the middle of a
    /// pass may have had others in flight.
    fn complete(&self) -> Option<u64> {
        self.complete_up_to(self.latest?.number)
    }

    /// The same if this is the highest number of the run.
    fn complete_up_to(&self, number: u64) -> Option<u64> {
        if self.ends_pass(number) { Some(number) } else { number.checked_sub(self.in_flight) }
    }

    /// The last write that must be there of a run that came later than the one with the highest number, and wrote fewer
    /// passes. (Only the times tell of it. A clock that was set back is no such run: then no write is missing.)
    fn later_run(&self) -> Option<u64> {
        let (latest, newest) = (self.latest?, self.newest?);
        let is_later = newest.number < latest.number && newest.time > latest.time;
        let is_known = self.is_repeated && !self.overwrites && self.asked.is_none() && self.per_pass() > 0;
        self.complete_up_to(newest.number).filter(|_| is_later && is_known)
    }

    /// The write that this block should hold, if it may have lost it.
    fn due(&self, io: &Io, expected: u64) -> Option<u64> {
        self.lost(io, expected).or_else(|| {
            let passes = self.later_run()?.checked_sub(expected)? / self.per_pass();
            Some(expected + passes * self.per_pass())
        })
    }

    /// Whether all writes that were found are of the first pass.
    fn is_first_pass(&self) -> bool {
        self.latest.is_some_and(|latest| latest.number < self.per_pass())
    }

    /// Whether the last pass was written to its end.
    fn is_whole(&self) -> bool {
        self.latest.is_some_and(|latest| self.ends_pass(latest.number))
    }

    /// The last write, if the run was stopped in the middle of a pass.
    pub(crate) fn stopped_at(&self) -> Option<u64> {
        self.latest.map(|latest| latest.number).filter(|&number| !self.ends_pass(number))
    }

    fn ends_pass(&self, number: u64) -> bool {
        self.per_pass() > 0 && (number + 1).is_multiple_of(self.per_pass())
    }

    /// The write that was lost in this block; `expected` = the number of the last write to it in a pass.
    fn lost(&self, io: &Io, expected: u64) -> Option<u64> {
        match (self.verdict.as_ref()?, &self.numbers) {
            (Verdict::Repeated, Numbers::Runs(runs)) => {
                let found = runs.get(expected)?;
                let due = if self.per_pass() > 0 {
                    let passes = self.complete()?.checked_sub(expected)? / self.per_pass();
                    expected + passes * self.per_pass()
                } else {
                    let later = runs.0.range(expected..).map(|(_, (_, distance))| distance);
                    expected + later.max()?
                };
                (found < due && due <= self.complete()?).then_some(due)
            }
            (Verdict::Lost(lost), _) => lost.get(&(io.file, io.offset)).copied(),
            _ => None,
        }
    }

    /// How many blocks have lost a write.
    pub(crate) fn count_lost(&self) -> u64 {
        match (&self.verdict, &self.numbers) {
            (Some(Verdict::Lost(lost)), _) => lost.len() as u64,
            (Some(Verdict::Repeated), Numbers::Runs(runs)) => {
                let (per_pass, complete) = (self.per_pass(), self.complete());
                let of_run = |(&first, &(count, distance)): (&u64, &(u64, u64))| match complete {
                    Some(complete) if per_pass > 0 => {
                        // The first of the run that a later pass should have overwritten, and those behind it.
                        let due = (first + distance).saturating_add(per_pass);
                        complete.checked_sub(due).map_or(0, |more| count.min(more + 1))
                    }
                    Some(_) => {
                        let is_lost = runs.0.range(first..).any(|(_, (_, later))| *later > distance);
                        if is_lost { count } else { 0 }
                    }
                    None => 0,
                };
                runs.0.iter().map(of_run).sum()
            }
            _ => 0,
        }
    }

    /// Whether blocks are read again, or those that only later passes wrote.
    pub(crate) fn goes_on(&self) -> bool {
        self.verdict.is_some() || self.reads_later()
    }

    /// Whether blocks are read that only later passes wrote.
    pub(crate) fn reads_later(&self) -> bool {
        self.later.is_some()
    }

    /// How many blocks are read beyond those of a pass.
    pub(crate) fn expected_reads(&self) -> u64 {
        let Some(later) = &self.later else { return self.again };
        let mut count = 0;
        later.each(self.latest.map_or(0, |latest| latest.number + 1), |_| count += 1);
        count
    }

    /// The next block to read beyond those of a pass.
    pub(crate) fn next(&mut self, read_back: &mut ReadBack) -> Option<(Io, Expect)> {
        let latest = self.latest?;
        loop {
            let (io, expect) = match self.later.as_ref().or(self.asked.as_ref()) {
                Some(standing) => {
                    let written = standing.next(self.cursor.0, self.cursor.1, latest.number + 1)?;
                    self.cursor = (written.io.file, written.io.offset + written.io.length);
                    expected(written)
                }
                None => read_back.next_at_end()?,
            };
            if self.reads_later() {
                return Some((io, expect));
            }
            let Expect::Write(expected) = expect else { return Some((io, expect)) };
            if let Some(number) = self.due(&io, expected) {
                return Some((io, Expect::Rewritten { number, before: latest.time }));
            }
        }
    }

    /// What the blocks do not tell.
    pub(crate) fn hint(&self) -> Option<String> {
        let latest = self.latest?.number;
        let (pass, written) = (latest.checked_div(self.per_pass())?, latest % self.per_pass() + 1);
        match self.verdict.as_ref()? {
            Verdict::Unknown if latest >= self.per_pass() => Some(format!(
                "blocks hold writes up to number {latest} of a run that repeated this workload in another way (loops, io_size, \
                 time_based), so lost writes of its later passes cannot be told from the others, and blocks that only those \
                 wrote are not read; check with the options of that run, or load its state (verify_state_load=1)"
            )),
            _ if self.unread > 0 => Some(format!(
                "{} blocks that only later passes of the run wrote are not read, because too few others tell of these passes; \
                 check with the io_size of that run, or load its state (verify_state_load=1)",
                self.unread
            )),
            Verdict::Repeated if pass > 0 && written < self.per_pass() => Some(format!(
                "pass {} was written up to write {written} of {}, so the run that wrote may have ended there (runtime, an \
                 interrupt, an error); verify_state_load=1 demands what it has written behind that",
                pass + 1,
                self.per_pass()
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
