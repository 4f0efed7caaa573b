//! How far an earlier run got, whose writes are verified now.
//!
//! A job that verifies the writes of an earlier run expects all of them. But that run may have ended before its last
//! write: its time was over, it was interrupted, or it failed. Then no data exists beyond that point, and that is no
//! damage.

use crate::block::Mismatch;
use crate::rules::EarlierRun;

/// How many of the writes of an earlier run exist.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// The number of the last one that exists.
    there: Option<u64>,
    /// The number of the first one that is missing.
    missing: Option<u64>,
    /// A block was written and is wrong.
    is_damaged: bool,
    /// Writes of that run may have failed.
    may_fail: bool,
    /// The number of writes depends on the seed.
    is_mix: bool,
}

impl Reach {
    /// No block has been checked yet.
    pub(crate) fn new(earlier: &EarlierRun) -> Reach {
        Reach { may_fail: earlier.may_have_failed, is_mix: earlier.is_mix, ..Reach::default() }
    }

    /// The block of a write has been checked.
    pub(crate) fn checked(&mut self, number: u64, mismatches: &[Mismatch]) {
        if mismatches.is_empty() {
            self.there = self.there.max(Some(number));
            return;
        }
        self.missing = Some(self.missing.map_or(number, |first| first.min(number)));
        self.is_damaged |= mismatches.iter().any(|mismatch| !mismatch.diagnosis.may_be_unwritten());
    }

    /// A possible reason for the mismatches.
    pub(crate) fn hint(&self) -> Option<String> {
        let Reach { there: Some(there), missing: Some(missing), .. } = *self else { return None };
        if there < missing && !self.is_damaged {
            let more = if self.is_mix { ", in a mix another seed" } else { "" };
            return Some(format!(
                "write {there} is there, and none of those behind it, so the run that wrote may have ended there (runtime, an \
                 interrupt, an error{more}); verify_state_load=1 demands what it has written, and no more"
            ));
        }
        self.may_fail.then(|| {
            "writes that failed in the run that wrote are demanded as well (continue_on_error, ignore_error); \
             verify_state_load=1 knows which did not"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Diagnosis, Kind};

    fn wrong(diagnosis: Diagnosis) -> Vec<Mismatch> {
        vec![Mismatch { diagnosis, ..Mismatch::cut_off(Kind::Md5, 0, 4096, 0) }]
    }

    #[test]
    fn only_an_end_is_an_end() {
        let unwritten = wrong(Diagnosis::Zeros);
        let hint = |checked: &[(u64, &[Mismatch])]| {
            let mut reach = Reach::default();
            checked.iter().for_each(|&(number, mismatches)| reach.checked(number, mismatches));
            reach.hint()
        };
        // In any order, as with blocks that can be written again.
        let seen: [(u64, &[Mismatch]); 5] = [(3, &[]), (7, &unwritten), (0, &[]), (5, &unwritten), (4, &[])];
        assert!(hint(&seen).unwrap().starts_with("write 4 is there, and none of those behind it"));
        let damaged = wrong(Diagnosis::Damaged);
        let not_the_end: [(u64, &[Mismatch]); 2] = [(6, &[]), (9, &damaged)];
        for more in not_the_end {
            assert_eq!(hint(&[&seen[..], &[more]].concat()), None);
        }
        assert_eq!(hint(&seen[..1]), None, "all is well");
        assert_eq!(hint(&seen[1..2]), None, "nothing is there");
    }
}
