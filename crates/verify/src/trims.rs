//! `trim_percentage`: some of the written blocks are trimmed, and must then read as zeros.
//!
//! The number of a write alone decides whether its block is trimmed. So trimmed blocks need not be remembered, and a later
//! run of the same job knows them too. All waiting trims are done before anything is read back, and at the end of a pass
//! that is not read back.

use crate::rules::TrimRules;
use iolite_workload::history::{Extents, Written};
use iolite_workload::rng::SplitMix64;

/// The trims of a job.
#[derive(Debug)]
pub struct Trims {
    rules: TrimRules,
    seed: u64,
    /// Writes since the last batch began.
    since: u64,
    /// How many trims of this batch are left.
    left: u64,
    waiting: Extents,
}

/// Separates the choice of trims from other uses of the seed.
const CHOICE: u64 = 0x7472_696d;

impl Trims {
    /// Trims of a job whose blocks have seeds derived from this one.
    pub(crate) fn new(rules: TrimRules, seed: u64) -> Trims {
        Trims { rules, seed: seed ^ CHOICE, since: 0, left: 0, waiting: Extents::default() }
    }

    /// Whether trimmed blocks must be zeros.
    pub(crate) fn are_zeros(&self) -> bool {
        self.rules.are_zeros
    }

    /// Whether the block of this write is trimmed.
    pub(crate) fn chooses(&self, number: u64) -> bool {
        SplitMix64::stream(self.seed, number).next_u64() % 100 < u64::from(self.rules.percentage)
    }

    /// A write was acknowledged.
    pub fn wrote(&mut self, written: Written) {
        if self.chooses(written.number) {
            self.waiting.wrote(written);
        } else {
            self.waiting.forget(&written.io);
        }
        self.since += 1;
        if self.rules.every > 0 && self.since >= self.rules.every {
            self.since = 0;
            self.left = if self.rules.batch == 0 { u64::MAX } else { self.rules.batch };
        }
    }

    /// Whether it is time to trim.
    pub fn is_due(&self) -> bool {
        self.left > 0 && !self.waiting.is_empty()
    }

    /// The next block to trim, from this batch or from `all` that wait.
    pub fn next(&mut self, all: bool) -> Option<Written> {
        if !all && self.left == 0 {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        let next = self.waiting.pop();
        if next.is_none() {
            self.left = 0;
        }
        next
    }

    /// The last block that [`next`](Self::next) returned has not been trimmed: it must wait again.
    pub(crate) fn put_back(&mut self, written: Written) {
        self.waiting.wrote(written);
        self.left = self.left.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_types::Direction;
    use iolite_workload::Io;

    fn trims_of(percentage: u32, every: u64, batch: u64) -> Trims {
        Trims::new(TrimRules { percentage, every, batch, are_zeros: true }, 9)
    }

    fn write(number: u64, block: u64) -> Written {
        Written { io: Io { offset: block * 512, length: 512, file: 0, direction: Direction::Write }, number }
    }

    #[test]
    fn the_share_is_as_asked_for_and_repeats() {
        for percentage in [0, 25, 100] {
            let trims = trims_of(percentage, 0, 0);
            let chosen = (0..10_000).filter(|&number| trims.chooses(number)).count();
            assert!(chosen.abs_diff(percentage as usize * 100) < 300, "{percentage}: {chosen}");
        }
    }

    #[test]
    fn trims_come_in_batches_and_skip_rewritten_blocks() {
        let mut trims = trims_of(100, 4, 2);
        let mut done = Vec::new();
        for number in 0..8 {
            trims.wrote(write(number, number));
            assert_eq!(trims.is_due(), number % 4 == 3);
            done.extend(std::iter::from_fn(|| trims.next(false)).map(|written| written.io.offset / 512));
        }
        assert_eq!(done, [0, 1, 2, 3]);
        assert_eq!(std::iter::from_fn(|| trims.next(true)).count(), 4);
        let mut none = trims_of(0, 0, 0);
        none.waiting.wrote(write(0, 5));
        none.wrote(write(1, 5));
        assert_eq!(none.next(true), None);
    }

    #[test]
    fn trims_that_could_not_be_made_keep_waiting() {
        let mut trims = trims_of(100, 4, 2);
        (0..4).for_each(|number| trims.wrote(write(number, number)));
        assert_eq!(trims.next(false), Some(write(0, 0)));
        let last = trims.next(false).unwrap();
        assert!(!trims.is_due());
        trims.put_back(last);
        assert!(trims.is_due());
        assert_eq!((trims.next(false), trims.next(false)), (Some(last), None));
        assert_eq!(std::iter::from_fn(|| trims.next(true)).count(), 2);
        // This includes the last block.
        trims.put_back(last);
        assert_eq!((trims.next(true), trims.next(true)), (Some(last), None));
    }
}
