//! How far the run has come whose writes are checked later.
//!
//! Who does the writes of an earlier run in its mind does all of them. The run may have ended before its last one:
//! its time was over, it was interrupted, an error came. Then nothing of what follows is there, which is no damage.

use iolite_options::JobOptions;
use iolite_verify::block::{Diagnosis, Mismatch};

/// Which writes of an earlier run are there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reach {
    /// The number of the last one that is.
    there: Option<u64>,
    /// That of the first one that is not.
    missing: Option<u64>,
    /// A block was written, and is wrong all the same.
    is_damaged: bool,
    /// Writes of that run may have failed.
    may_fail: bool,
    /// How many writes there are depends on the seed.
    is_mix: bool,
}

impl Reach {
    /// Nothing has been seen yet.
    pub fn new(options: &JobOptions) -> Reach {
        let is_mix = options.rw.reads() && options.rw.writes() && options.read_iolog.is_empty();
        Reach { may_fail: options.continue_on_error.write, is_mix, ..Reach::default() }
    }

    /// The block of a write has been checked.
    pub fn checked(&mut self, number: u64, mismatches: &[Mismatch]) {
        if mismatches.is_empty() {
            self.there = self.there.max(Some(number));
            return;
        }
        self.missing = Some(self.missing.map_or(number, |first| first.min(number)));
        self.is_damaged |= mismatches.iter().any(|mismatch| !may_be_unwritten(&mismatch.diagnosis));
    }

    /// What may be the matter, if what was seen tells.
    pub fn hint(&self) -> Option<String> {
        let Reach { there: Some(there), missing: Some(missing), .. } = *self else { return None };
        if there < missing && !self.is_damaged {
            let more = if self.is_mix { ", in a mix another seed" } else { "" };
            return Some(format!(
                "write {there} is there, and none of those behind it, so the run that wrote may have ended there (runtime, an \
                 interrupt, an error{more}); verify_state_load=1 demands what it has written, and no more"
            ));
        }
        self.may_fail.then(|| {
            "writes that failed in the run that wrote are demanded as well (continue_on_error); verify_state_load=1 knows \
             which did not"
                .to_owned()
        })
    }
}

/// Whether a block may look like that because it was not written.
pub fn may_be_unwritten(diagnosis: &Diagnosis) -> bool {
    match diagnosis {
        Diagnosis::Zeros
        | Diagnosis::CutOff(_)
        | Diagnosis::Older { .. }
        | Diagnosis::OtherWrite
        | Diagnosis::Misdirected { .. }
        | Diagnosis::WrongLength { .. }
        | Diagnosis::OtherKind(_)
        | Diagnosis::OtherPattern(_)
        | Diagnosis::Unknown => true,
        Diagnosis::ZeroedSectors(_)
        | Diagnosis::Torn { .. }
        | Diagnosis::BitFlip { .. }
        | Diagnosis::Shifted(_)
        | Diagnosis::DamagedHeader
        | Diagnosis::Damaged => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_verify::block::Kind;

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
        // In any order, as where blocks can be written again.
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
