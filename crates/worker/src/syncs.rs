//! When a sync is due between two I/Os: `fsync`, `fdatasync`, `sync_file_range`.

use iolite_plan::resolve::SyncRules;
use iolite_types::{Direction, Operation};
use iolite_workload::Spec;

/// Counts writes and says when a sync is due.
#[derive(Clone, Debug, Default)]
pub struct SyncSchedule {
    fsync: Counter,
    fdatasync: Counter,
    range: Counter,
    /// The file of the last write. A due sync is for this file.
    file: u32,
    /// The file is to be closed after the due syncs.
    closes: bool,
    /// For each file, the range written since its last `sync_file_range` (start, end). Kept only if ranges are synced.
    written: Vec<Option<(u64, u64)>>,
    /// How much a pass moves.
    pass: Amount,
    /// How much of the present pass has been issued.
    issued: Amount,
}

/// Bytes and I/Os.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    bytes: u64,
    ios: u64,
}

/// Due every `interval` events (0 = never).
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    interval: u64,
    seen: u64,
}

impl Counter {
    fn new(interval: u64) -> Self {
        Counter { interval, seen: 0 }
    }

    fn count(&mut self) {
        self.seen += 1;
    }

    fn is_due(&self) -> bool {
        self.interval > 0 && self.seen >= self.interval
    }

    fn take_due(&mut self) -> bool {
        let due = self.is_due();
        if due {
            self.seen = 0;
        }
        due
    }
}

/// A sync that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The kind of sync.
    pub operation: Operation,
    /// The file.
    pub file: u32,
    /// The start of the range, for `SyncFileRange`.
    pub offset: u64,
    /// The length of the range, for `SyncFileRange`.
    pub length: u64,
}

impl SyncSchedule {
    /// The schedule that these rules describe, for this workload.
    pub fn new(rules: &SyncRules, workload: &Spec) -> Self {
        let size = || workload.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.length));
        // A pass without an end has no remainder.
        let bytes = if workload.endless { 0 } else { workload.pass_bytes.unwrap_or_else(size) };
        SyncSchedule {
            pass: Amount { bytes, ios: workload.total_ios.unwrap_or(u64::MAX) },
            fsync: Counter::new(rules.fsync),
            fdatasync: Counter::new(rules.fdatasync),
            range: Counter::new(rules.range),
            ..SyncSchedule::default()
        }
    }

    /// Whether no sync is ever due.
    pub fn is_empty(&self) -> bool {
        self.counters().iter().all(|counter| counter.interval == 0)
    }

    /// Counts an issued write.
    pub fn wrote(&mut self, file: u32, offset: u64, length: u64) {
        self.file = file;
        if self.range.interval > 0 {
            let slot = file as usize;
            if slot >= self.written.len() {
                self.written.resize(slot + 1, None);
            }
            let (first, end) = self.written[slot].unwrap_or((u64::MAX, 0));
            self.written[slot] = Some((first.min(offset), end.max(offset + length)));
        }
        self.fsync.count();
        self.fdatasync.count();
        self.range.count();
    }

    /// Counts an issued I/O of the workload. (A trim belongs to the write that follows it.)
    pub fn issued(&mut self, direction: Direction, length: u64) {
        if direction != Direction::Trim {
            self.issued.bytes = self.issued.bytes.saturating_add(length);
            self.issued.ios += 1;
        }
    }

    /// A pass is over. Returns whether to issue due syncs now. Syncs come before the next I/O, so usually the last
    /// write has none. But if the bytes left are too few for a block, the pass ends only when the loop asks for the
    /// next I/O, and as with fio, the sync comes before that.
    pub fn end_pass(&mut self) -> bool {
        let Amount { bytes, ios } = std::mem::take(&mut self.issued);
        bytes < self.pass.bytes && ios < self.pass.ios
    }

    /// The next sync that is due, if any. Each is returned once.
    pub fn due(&mut self) -> Option<Due> {
        let whole = |operation| Due { operation, file: self.file, offset: 0, length: 0 };
        if self.fsync.take_due() {
            return Some(whole(Operation::Sync));
        }
        if self.fdatasync.take_due() {
            return Some(whole(Operation::DataSync));
        }
        if self.range.take_due() {
            // The write that made the sync due is in the range.
            let (first, end) = self.written[self.file as usize].take().unwrap_or_default();
            let (operation, file) = (Operation::SyncFileRange, self.file);
            return Some(Due { operation, file, offset: first, length: end - first });
        }
        None
    }

    /// The workload closes this file. Returns whether the close has to wait for due syncs;
    /// [`take_closing`](Self::take_closing) then returns the file after them.
    pub fn holds_open(&mut self, file: u32) -> bool {
        let holds = file == self.file && self.counters().iter().any(Counter::is_due);
        self.closes |= holds;
        holds
    }

    /// Whether this file waits to be closed.
    pub fn is_closing(&self, file: u32) -> bool {
        self.closes && file == self.file
    }

    /// The file that waits to be closed, if no sync is due any more. It is returned once.
    pub fn take_closing(&mut self) -> Option<u32> {
        std::mem::take(&mut self.closes).then_some(self.file)
    }

    fn counters(&self) -> [Counter; 3] {
        [self.fsync, self.fdatasync, self.range]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(fsync: u64, fdatasync: u64, range: u64) -> SyncSchedule {
        let rules = SyncRules { fsync, fdatasync, range, ..SyncRules::default() };
        SyncSchedule::new(&rules, &Spec::plain(10_000, 4096))
    }

    #[test]
    fn each_kind_has_its_own_interval() {
        let mut schedule = schedule(2, 3, 0);
        let mut syncs = Vec::new();
        for write in 0..6 {
            schedule.wrote(0, write * 4096, 4096);
            while let Some(due) = schedule.due() {
                syncs.push((write, due.operation));
            }
        }
        use Operation::{DataSync, Sync};
        assert_eq!(syncs, [(1, Sync), (2, DataSync), (3, Sync), (5, Sync), (5, DataSync)]);
    }

    #[test]
    fn a_range_covers_the_writes_since_the_last_sync() {
        let mut schedule = schedule(0, 0, 2);
        schedule.wrote(1, 8192, 4096);
        assert_eq!(schedule.due(), None);
        schedule.wrote(1, 0, 4096);
        let due = schedule.due().unwrap();
        assert_eq!((due.file, due.offset, due.length), (1, 0, 12_288));
        schedule.wrote(1, 40_960, 512);
        schedule.wrote(1, 45_056, 512);
        let due = schedule.due().unwrap();
        assert_eq!((due.offset, due.length), (40_960, 4608));
    }

    #[test]
    fn each_file_has_a_range_of_its_own() {
        let mut schedule = schedule(0, 0, 2);
        let mut ranges = Vec::new();
        for (file, offset) in [(0, 0), (1, 0), (0, 4096), (0, 8192), (1, 4096), (1, 8192)] {
            schedule.wrote(file, offset, 4096);
            ranges.extend(schedule.due().map(|due| (due.file, due.offset, due.length)));
        }
        assert_eq!(ranges, [(1, 0, 4096), (0, 0, 12_288), (1, 4096, 8192)]);
    }

    #[test]
    fn a_file_stays_open_for_due_syncs() {
        let mut schedule = schedule(2, 0, 0);
        schedule.wrote(1, 0, 4096);
        assert!(!schedule.holds_open(1));
        assert_eq!(schedule.take_closing(), None);
        schedule.wrote(1, 4096, 4096);
        assert!(!schedule.holds_open(0));
        assert!(schedule.holds_open(1) && schedule.is_closing(1) && !schedule.is_closing(0));
        assert!(schedule.due().is_some());
        assert_eq!(schedule.take_closing(), Some(1));
        assert_eq!(schedule.take_closing(), None);
    }

    #[test]
    fn a_rest_that_is_too_small_for_a_block_does_not_end_the_pass() {
        let mut schedule = schedule(1, 0, 0);
        for _ in 0..2 {
            schedule.issued(Direction::Trim, 10_000);
            schedule.issued(Direction::Write, 4096);
            schedule.issued(Direction::Write, 4096);
            assert!(schedule.end_pass());
        }
        schedule.issued(Direction::Write, 10_000);
        assert!(!schedule.end_pass());
        let limited = Spec { total_ios: Some(1), ..Spec::plain(10_000, 4096) };
        let mut schedule = SyncSchedule::new(&SyncRules::default(), &limited);
        schedule.issued(Direction::Write, 4096);
        assert!(!schedule.end_pass());
    }

    #[test]
    fn nothing_is_due_when_nothing_was_asked_for() {
        let mut schedule = schedule(0, 0, 0);
        assert!(schedule.is_empty());
        schedule.wrote(0, 0, 1);
        assert_eq!(schedule.due(), None);
    }
}
