//! The reads at the end of a pass, some of which may be repeated.
//!
//! The writes of an earlier run may turn out to be this job's own only after some of them were read. As long as that is
//! in doubt, blocks with other seeds pass, and missing ones are not reported. If that was too lenient, the reads made
//! in doubt are repeated.

use crate::block::Mismatch;
use crate::checker::Checker;
use crate::earlier_progress::Reach;
use crate::question::Expect;
use crate::read_back::ReadBack;
use iolite_workload::Io;

/// The reads that were made in doubt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Doubt {
    /// The number of reads.
    reads: u64,
    /// How many of them still have to be repeated; `None` = not begun.
    again: Option<u64>,
    /// The number of the last write that was found.
    there: Option<u64>,
    /// The number of the first missing write, which was not reported.
    withheld: Option<u64>,
}

impl Doubt {
    /// The next read; `None` = there are no more.
    pub(crate) fn next(&mut self, checker: &Checker, read_back: &mut ReadBack) -> Option<(Io, Expect)> {
        if let Some(left) = &mut self.again {
            *left = left.checked_sub(1)?;
        } else if checker.is_in_doubt() {
            return self.next_in_doubt(read_back);
        }
        read_back.next_at_end()
    }

    fn next_in_doubt(&mut self, read_back: &mut ReadBack) -> Option<(Io, Expect)> {
        let (io, expect) = read_back.next_at_end()?;
        self.reads += 1;
        match expect {
            Expect::Write(number) => Some((io, Expect::Doubted(number))),
            expect => Some((io, expect)),
        }
    }

    /// Goes back to the reads that were made in doubt, if blocks passed that are now known to be wrong. Returns whether
    /// it does.
    pub(crate) fn read_again(&mut self, checker: &Checker, read_back: &mut ReadBack) -> bool {
        let (knows_owner, stranger) = (checker.knows_owner(), checker.stranger());
        // Writes with another seed beyond the last existing one cannot be known.
        let end = if knows_owner || stranger.is_none() { None } else { self.there }.unwrap_or(u64::MAX);
        let has_passed = knows_owner && stranger.is_some();
        let is_due = has_passed || self.withheld.is_some_and(|first| first < end);
        let again = is_due && checker.check_again(end);
        if again {
            self.again = Some(self.reads);
            read_back.go_back();
        }
        again
    }

    /// How many reads the end of the pass is expected to take from here.
    pub(crate) fn expected_reads(&self, read_back: &ReadBack) -> u64 {
        self.again.unwrap_or_else(|| read_back.unread())
    }

    /// The block of a write has been checked; `found` = the number of the write that it holds, if it is right. Returns
    /// whether to report its mismatches now.
    pub(crate) fn checked(
        &mut self,
        checker: &Checker,
        reach: Option<&mut Reach>,
        expect: Expect,
        mismatches: &[Mismatch],
        found: Option<u64>,
    ) -> bool {
        let (Expect::Write(number) | Expect::Doubted(number)) = expect else { return true };
        if self.again.is_some() {
            return true;
        }
        if let Some(reach) = reach {
            reach.checked(found.unwrap_or(number), mismatches);
        }
        let withholds = checker.withholds(expect, mismatches);
        if withholds {
            self.withheld = Some(self.withheld.map_or(number, |first| first.min(number)));
        } else {
            self.there = self.there.max(Some(number));
        }
        !withholds
    }

    /// Whether reads are repeated.
    pub(crate) fn reads_again(&self) -> bool {
        self.again.is_some()
    }

    /// The number of the last write that was found.
    pub(crate) fn last_there(&self) -> Option<u64> {
        self.there
    }
}
