//! Averages over windows (`log_avg_msec`): running sums, and nothing else, whatever the number of I/Os.
//!
//! A window ends with the first I/O at or after its end, which is the last that counts in it. So a pause makes a
//! window longer, there is no entry for a window in which nothing was done, and the sums are exact.

use crate::item::Done;
use crate::{LogKind, item::Item};
use iolite_types::Direction;

/// Which value of a window is logged (`log_window_value`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowValue {
    /// The mean.
    #[default]
    Mean,
    /// The largest.
    Most,
    /// The mean, and behind it the largest.
    Both,
}

/// Count, sum and maximum.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    sum: u64,
    most: u64,
}

impl Sum {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.most = self.most.max(value);
    }

    fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.count)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    bytes: u64,
    submission: Sum,
    completion: Sum,
    total: Sum,
}

/// The sums of the present window.
#[derive(Debug)]
pub(crate) struct Windows {
    period: u64,
    shown: WindowValue,
    /// When counting began.
    began: u64,
    /// When the last window ended.
    last: u64,
    /// When the present one ends.
    due: u64,
    sums: [Sums; 3],
}

impl Windows {
    /// Windows of so many nanoseconds.
    pub fn new(period: u64, shown: WindowValue) -> Windows {
        Windows { period, shown, began: 0, last: 0, due: u64::MAX, sums: [Sums::default(); 3] }
    }

    /// Counting begins now.
    pub fn begin(&mut self, now: u64) {
        (self.began, self.last, self.due) = (now, now, now.saturating_add(self.period));
        self.sums = [Sums::default(); 3];
    }

    /// Adds an I/O that was reaped `now`; true = the window is over.
    #[inline(always)]
    pub fn add(&mut self, done: &Done, now: u64) -> bool {
        let sums = &mut self.sums[done.direction.index()];
        sums.bytes += done.length;
        sums.total.add(done.lat);
        sums.completion.add(done.clat());
        if done.queued {
            sums.submission.add(done.slat);
        }
        now >= self.due
    }

    /// Ends the window, and tells its values with the time `at` (of the log).
    pub fn close(&mut self, now: u64, at: u64, mut tell: impl FnMut(Item)) {
        let span = now.saturating_sub(self.last).max(1);
        for direction in Direction::ALL {
            let sums = std::mem::take(&mut self.sums[direction.index()]);
            let mut tell = |kind, mean, most| {
                let value = if self.shown == WindowValue::Most { most } else { mean };
                tell(Item::Window { kind, direction, at, value, most });
            };
            for (kind, sum) in [
                (LogKind::Submission, sums.submission),
                (LogKind::Completion, sums.completion),
                (LogKind::Total, sums.total),
            ] {
                if let Some(mean) = sum.mean() {
                    tell(kind, mean, sum.most);
                }
            }
            if sums.total.count > 0 {
                let bandwidth = per_second(sums.bytes, span) / 1024;
                tell(LogKind::Bandwidth, bandwidth, bandwidth);
                let iops = per_second(sums.total.count, span);
                tell(LogKind::Iops, iops, iops);
            }
        }
        self.last = now;
        // Windows stay where they were planned, whenever one was ended; but none is so short that what a job does at
        // once after a pause looks like a rate that it never had.
        let passed = (now.saturating_sub(self.began)).saturating_add((self.period - 1) / 2) / self.period;
        self.due = self.began.saturating_add((passed + 1).saturating_mul(self.period));
    }
}

fn per_second(amount: u64, span_ns: u64) -> u64 {
    (u128::from(amount) * 1_000_000_000 / u128::from(span_ns)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn done(direction: Direction, lat: u64, slat: Option<u64>) -> Done {
        Done {
            direction,
            queued: slat.is_some(),
            complete: 0,
            offset: 0,
            length: 4096,
            lat,
            slat: slat.unwrap_or(10),
            priority: 0,
        }
    }

    fn close(windows: &mut Windows, now: u64) -> Vec<(LogKind, Direction, u64, u64)> {
        let mut told = Vec::new();
        windows.close(now, now, |item| {
            let Item::Window { kind, direction, value, most, .. } = item else { panic!("{item:?}") };
            told.push((kind, direction, value, most));
        });
        told
    }

    #[test]
    fn a_window_ends_with_the_first_io_after_it() {
        let mut windows = Windows::new(100 * MS, WindowValue::Both);
        windows.begin(50 * MS);
        assert!(!windows.add(&done(Direction::Read, 100, None), 60 * MS));
        assert!(!windows.add(&done(Direction::Read, 200, None), 149 * MS));
        assert!(windows.add(&done(Direction::Read, 300, None), 300 * MS));
        let told = close(&mut windows, 300 * MS);
        // Three I/Os of 4 KiB in a quarter of a second. Nothing was queued, so there is no submission latency.
        let expected = [
            (LogKind::Completion, Direction::Read, 190, 290),
            (LogKind::Total, Direction::Read, 200, 300),
            (LogKind::Bandwidth, Direction::Read, 48, 48),
            (LogKind::Iops, Direction::Read, 12, 12),
        ];
        assert_eq!(told, expected);
        // 150, 250, 350: the next one is where it was planned.
        assert!(!windows.add(&done(Direction::Read, 1, None), 349 * MS));
        assert!(windows.add(&done(Direction::Read, 1, None), 350 * MS));
        // Less than half of a window is left: it belongs to the next.
        close(&mut windows, 401 * MS);
        assert!(!windows.add(&done(Direction::Read, 1, None), 549 * MS));
        assert!(windows.add(&done(Direction::Read, 1, None), 550 * MS));
    }

    #[test]
    fn directions_are_apart_and_empty_windows_silent() {
        let mut windows = Windows::new(100 * MS, WindowValue::Most);
        windows.begin(0);
        assert_eq!(close(&mut windows, 40 * MS), []);
        windows.add(&done(Direction::Write, 50, Some(20)), 90 * MS);
        windows.add(&done(Direction::Write, 70, Some(30)), 95 * MS);
        let told = close(&mut windows, 140 * MS);
        assert_eq!(told[0], (LogKind::Submission, Direction::Write, 30, 30));
        assert_eq!(told[1], (LogKind::Completion, Direction::Write, 40, 40));
        assert!(told.iter().all(|&(_, direction, ..)| direction == Direction::Write));
        // From 40 to 140 ms: a tenth of a second.
        assert_eq!(told[4], (LogKind::Iops, Direction::Write, 20, 20));
    }
}
