//! When a sync is due between two I/Os: `fsync`, `fdatasync`, `sync_file_range`.

use iolite_types::Operation;

/// Counts writes and says when a sync is due.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncSchedule {
    fsync: Counter,
    fdatasync: Counter,
    range: Counter,
    file: u32,
    /// What has been written in that file since the last `sync_file_range`.
    first: u64,
    end: u64,
}

/// Every `interval` events (0 = never).
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

    fn take_due(&mut self) -> bool {
        let due = self.interval > 0 && self.seen >= self.interval;
        if due {
            self.seen = 0;
        }
        due
    }
}

/// A sync that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which kind.
    pub operation: Operation,
    /// Of which file.
    pub file: u32,
    /// The range, for `SyncFileRange`.
    pub offset: u64,
    /// The range, for `SyncFileRange`.
    pub length: u64,
}

impl SyncSchedule {
    /// A sync of each kind after so many writes; 0 = never.
    pub fn new(fsync: u64, fdatasync: u64, range: u64) -> Self {
        SyncSchedule {
            fsync: Counter::new(fsync),
            fdatasync: Counter::new(fdatasync),
            range: Counter::new(range),
            first: u64::MAX,
            ..SyncSchedule::default()
        }
    }

    /// Whether anything will ever be due.
    pub fn is_empty(&self) -> bool {
        [self.fsync, self.fdatasync, self.range].iter().all(|counter| counter.interval == 0)
    }

    /// A write was issued.
    pub fn wrote(&mut self, file: u32, offset: u64, length: u64) {
        if file != self.file {
            self.file = file;
            self.first = u64::MAX;
            self.end = 0;
        }
        self.first = self.first.min(offset);
        self.end = self.end.max(offset + length);
        self.fsync.count();
        self.fdatasync.count();
        self.range.count();
    }

    /// The sync that is due now, if one is. Each is given once.
    pub fn due(&mut self) -> Option<Due> {
        let whole = |operation| Due { operation, file: self.file, offset: 0, length: 0 };
        if self.fsync.take_due() {
            return Some(whole(Operation::Sync));
        }
        if self.fdatasync.take_due() {
            return Some(whole(Operation::DataSync));
        }
        if self.range.take_due() {
            let due = Due {
                operation: Operation::SyncFileRange,
                file: self.file,
                offset: self.first,
                length: self.end - self.first,
            };
            self.first = u64::MAX;
            self.end = 0;
            return Some(due);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_interval() {
        let mut schedule = SyncSchedule::new(2, 3, 0);
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
    fn a_range_covers_what_was_written_since_the_last() {
        let mut schedule = SyncSchedule::new(0, 0, 2);
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
    fn nothing_is_due_when_nothing_was_asked_for() {
        let mut schedule = SyncSchedule::new(0, 0, 0);
        assert!(schedule.is_empty());
        schedule.wrote(0, 0, 1);
        assert_eq!(schedule.due(), None);
    }
}
