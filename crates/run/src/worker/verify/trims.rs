//! `trim_percentage`: some of the blocks that were written are trimmed, and have to read as zeros.
//!
//! Which ones is decided by the number of the write alone, so nothing has to be remembered of a block that was trimmed,
//! and a later run of the same job knows them too. All trims that wait are done before anything is read back, and at the
//! end of a pass that is not read back.

use iolite_workload::history::{Extents, Written};
use iolite_workload::rng::SplitMix64;

/// The trims of a job.
#[derive(Debug)]
pub struct Trims {
    percentage: u64,
    seed: u64,
    /// Trim after so many writes; 0 = before they are read back.
    every: u64,
    /// So many at a time; 0 = all.
    batch: u64,
    /// Whether trimmed blocks have to be zeros.
    pub are_zeros: bool,
    since: u64,
    left: u64,
    waiting: Extents,
}

/// Tells the choice of trims from other uses of the seed.
const CHOICE: u64 = 0x7472_696d;

impl Trims {
    /// Trims for `percentage` of the writes, `batch` of them after `every` writes.
    pub fn new(percentage: u32, seed: u64, (every, batch): (u64, u64), are_zeros: bool) -> Trims {
        Trims {
            percentage: percentage.into(),
            seed: seed ^ CHOICE,
            every,
            batch,
            are_zeros,
            since: 0,
            left: 0,
            waiting: Extents::default(),
        }
    }

    /// Whether what this write has written is trimmed.
    pub fn chooses(&self, number: u64) -> bool {
        SplitMix64::stream(self.seed, number).next_u64() % 100 < self.percentage
    }

    /// A write was acknowledged.
    pub fn wrote(&mut self, written: Written) {
        if self.chooses(written.number) {
            self.waiting.wrote(written);
        } else {
            self.waiting.forget(&written.io);
        }
        self.since += 1;
        if self.every > 0 && self.since >= self.every {
            self.since = 0;
            self.left = if self.batch == 0 { u64::MAX } else { self.batch };
        }
    }

    /// Whether it is time to trim.
    pub fn is_due(&self) -> bool {
        self.left > 0 && !self.waiting.is_empty()
    }

    /// What to trim next: of this batch, or of all.
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

    /// What came last has not been trimmed after all: it waits on.
    pub fn put_back(&mut self, written: Written) {
        self.waiting.wrote(written);
        self.left = self.left.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_types::Direction;
    use iolite_workload::Io;

    fn write(number: u64, block: u64) -> Written {
        Written { io: Io { offset: block * 512, length: 512, file: 0, direction: Direction::Write }, number }
    }

    #[test]
    fn the_share_is_as_asked_for_and_repeats() {
        for percentage in [0, 25, 100] {
            let trims = Trims::new(percentage, 9, (0, 0), true);
            let chosen = (0..10_000).filter(|&number| trims.chooses(number)).count();
            assert!(chosen.abs_diff(percentage as usize * 100) < 300, "{percentage}: {chosen}");
        }
    }

    #[test]
    fn trims_come_in_batches_and_never_of_what_was_written_again() {
        let mut trims = Trims::new(100, 9, (4, 2), true);
        let mut done = Vec::new();
        for number in 0..8 {
            trims.wrote(write(number, number));
            assert_eq!(trims.is_due(), number % 4 == 3);
            done.extend(std::iter::from_fn(|| trims.next(false)).map(|written| written.io.offset / 512));
        }
        assert_eq!(done, [0, 1, 2, 3]);
        assert_eq!(std::iter::from_fn(|| trims.next(true)).count(), 4);
        let mut none = Trims { percentage: 0, ..Trims::new(100, 9, (0, 0), true) };
        none.waiting.wrote(write(0, 5));
        none.wrote(write(1, 5));
        assert_eq!(none.next(true), None);
    }

    #[test]
    fn what_could_not_be_trimmed_waits_on() {
        let mut trims = Trims::new(100, 9, (4, 2), true);
        (0..4).for_each(|number| trims.wrote(write(number, number)));
        assert_eq!(trims.next(false), Some(write(0, 0)));
        let last = trims.next(false).unwrap();
        assert!(!trims.is_due());
        trims.put_back(last);
        assert!(trims.is_due());
        assert_eq!((trims.next(false), trims.next(false)), (Some(last), None));
        assert_eq!(std::iter::from_fn(|| trims.next(true)).count(), 2);
        // Also the very last one.
        trims.put_back(last);
        assert_eq!((trims.next(true), trims.next(true)), (Some(last), None));
    }
}
