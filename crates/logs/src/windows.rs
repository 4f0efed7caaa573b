//! Averages over windows (`log_avg_msec`): running sums, and nothing else, whatever the number of I/Os.
//!
//! A window ends with the first I/O at or after its end, which is the last that counts in it. So a pause makes a
//! window longer, there is no entry for a window in which nothing was done, and the sums are exact. What is left at
//! the end joins the window before when it is too short for a rate.

use crate::item::Done;
use crate::{LogKind, item::Item};
use iolite_stats::{kib_per_second, per_second};
use iolite_types::Direction;

/// Which value of a window is logged (`log_window_value`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

    fn join(&mut self, other: &Sum) {
        self.count += other.count;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    bytes: u64,
    submission: Sum,
    completion: Sum,
    total: Sum,
}

impl Sums {
    fn join(&mut self, other: &Sums) {
        self.bytes += other.bytes;
        self.submission.join(&other.submission);
        self.completion.join(&other.completion);
        self.total.join(&other.total);
    }
}

/// A window that is over.
#[derive(Clone, Copy, Debug)]
struct Window {
    span: u64,
    /// When it ended.
    end: u64,
    sums: [Sums; 3],
}

impl Window {
    /// The window and the one behind it as one.
    fn join(mut self, later: &Window) -> Window {
        self.span += later.span;
        self.end = later.end;
        for (sums, others) in self.sums.iter_mut().zip(&later.sums) {
            sums.join(others);
        }
        self
    }

    fn has_io(&self) -> bool {
        self.sums.iter().any(|sums| sums.total.count > 0)
    }

    /// Tells its values. The times of the log begin at `zero`.
    fn tell(&self, shown: WindowValue, zero: u64, tell: &mut impl FnMut(Item)) {
        let at = self.end.wrapping_sub(zero);
        for direction in Direction::ALL {
            let sums = &self.sums[direction.index()];
            let mut tell = |kind, mean, most| {
                let value = if shown == WindowValue::Most { most } else { mean };
                tell(Item::Window { kind, direction, at, value, most });
            };
            for (kind, sum) in [
                (LogKind::Submission, &sums.submission),
                (LogKind::Completion, &sums.completion),
                (LogKind::Total, &sums.total),
            ] {
                if let Some(mean) = sum.mean() {
                    tell(kind, mean, sum.most);
                }
            }
            if sums.total.count > 0 {
                let bandwidth = kib_per_second(sums.bytes, self.span);
                tell(LogKind::Bandwidth, bandwidth, bandwidth);
                let iops = per_second(sums.total.count, self.span);
                tell(LogKind::Iops, iops, iops);
            }
        }
    }
}

/// The present window, and the one before it.
#[derive(Debug)]
pub(crate) struct Windows {
    period: u64,
    shown: WindowValue,
    /// Where the times of the log begin.
    zero: u64,
    /// When counting began.
    began: u64,
    /// When the last window ended.
    last: u64,
    /// When the present one ends.
    due: u64,
    /// When the last I/O was reaped.
    latest: u64,
    sums: [Sums; 3],
    /// The window before, which is told when it is known that this one stands alone.
    before: Option<Window>,
}

impl Windows {
    /// Windows of so many nanoseconds.
    pub fn new(period: u64, shown: WindowValue) -> Windows {
        let sums = [Sums::default(); 3];
        Windows { period, shown, zero: 0, began: 0, last: 0, due: u64::MAX, latest: 0, sums, before: None }
    }

    /// Counting begins now; the times of the log begin at `zero`.
    pub fn begin(&mut self, now: u64, zero: u64) {
        self.zero = zero;
        (self.began, self.last, self.latest) = (now, now, now);
        self.due = now.saturating_add(self.period);
        self.sums = [Sums::default(); 3];
        self.before = None;
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
        self.latest = now;
        now >= self.due
    }

    /// Ends the window with the last I/O, and tells the values of the one before it.
    pub fn close(&mut self, mut tell: impl FnMut(Item)) {
        let window = self.take();
        if let Some(before) = self.before.replace(window) {
            before.tell(self.shown, self.zero, &mut tell);
        }
        // Windows stay where they were planned, whenever one was ended; but none is so short that what a job does at
        // once after a pause looks like a rate that it never had.
        let passed = (self.last - self.began).saturating_add((self.period - 1) / 2) / self.period;
        self.due = self.began.saturating_add((passed + 1).saturating_mul(self.period));
    }

    /// The job is over: tells what is left.
    ///
    /// The rest of the last window ends with the last I/O, not with what a job does when its I/O is done. One shorter than
    /// half a window belongs to the window before: what was in flight when the time was over comes back within
    /// microseconds, at a rate that the job never had.
    pub fn finish(&mut self, mut tell: impl FnMut(Item)) {
        let rest = self.take();
        let last = match self.before.take() {
            Some(before) if !rest.has_io() => before,
            Some(before) if rest.span < self.period.div_ceil(2) => before.join(&rest),
            Some(before) => {
                before.tell(self.shown, self.zero, &mut tell);
                rest
            }
            None => rest,
        };
        last.tell(self.shown, self.zero, &mut tell);
    }

    /// The present window ends with the last I/O, and the next begins.
    fn take(&mut self) -> Window {
        let end = self.latest.max(self.last);
        let span = (end - std::mem::replace(&mut self.last, end)).max(1);
        Window { span, end, sums: std::mem::take(&mut self.sums) }
    }
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

    type Told = Vec<(LogKind, Direction, u64, u64)>;

    /// The values of each line that is told, and their times in milliseconds.
    fn told(go: impl FnOnce(&mut dyn FnMut(Item))) -> (Vec<u64>, Told) {
        let (mut times, mut told) = (Vec::new(), Vec::new());
        go(&mut |item| {
            let Item::Window { kind, direction, at, value, most } = item else { panic!("{item:?}") };
            told.push((kind, direction, value, most));
            times.push(at / MS);
        });
        times.dedup();
        (times, told)
    }

    fn close(windows: &mut Windows) -> (Vec<u64>, Told) {
        told(|tell| windows.close(tell))
    }

    fn finish(mut windows: Windows) -> (Vec<u64>, Told) {
        told(|tell| windows.finish(tell))
    }

    fn iops(told: &Told) -> Vec<u64> {
        told.iter().filter(|(kind, ..)| *kind == LogKind::Iops).map(|&(_, _, value, _)| value).collect()
    }

    /// Windows of 100 ms, and an I/O every so often up to a time.
    fn reads(every: u64, until: u64) -> (Windows, Vec<u64>, Told) {
        let mut windows = Windows::new(100 * MS, WindowValue::Mean);
        windows.begin(0, 0);
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for now in (1..).map(|number| number * every).take_while(|&now| now <= until) {
            if windows.add(&done(Direction::Read, 100, None), now) {
                let (at, told) = close(&mut windows);
                times.extend(at);
                values.extend(told);
            }
        }
        (windows, times, values)
    }

    #[test]
    fn a_window_ends_with_the_first_io_after_it() {
        let mut windows = Windows::new(100 * MS, WindowValue::Both);
        windows.begin(50 * MS, 50 * MS);
        assert!(!windows.add(&done(Direction::Read, 100, None), 60 * MS));
        assert!(!windows.add(&done(Direction::Read, 200, None), 149 * MS));
        assert!(windows.add(&done(Direction::Read, 300, None), 300 * MS));
        assert_eq!(close(&mut windows), (vec![], vec![]));
        // 150, 250, 350: the next one is where it was planned.
        assert!(!windows.add(&done(Direction::Read, 1, None), 349 * MS));
        assert!(windows.add(&done(Direction::Read, 1, None), 401 * MS));
        // Three I/Os of 4 KiB in a quarter of a second. Nothing was queued, so there is no submission latency.
        let expected = [
            (LogKind::Completion, Direction::Read, 190, 290),
            (LogKind::Total, Direction::Read, 200, 300),
            (LogKind::Bandwidth, Direction::Read, 48, 48),
            (LogKind::Iops, Direction::Read, 12, 12),
        ];
        assert_eq!(close(&mut windows), (vec![250], expected.to_vec()));
        // Less than half of a window is left: it belongs to the next.
        assert!(!windows.add(&done(Direction::Read, 1, None), 549 * MS));
        assert!(windows.add(&done(Direction::Read, 1, None), 550 * MS));
    }

    #[test]
    fn directions_are_apart_and_empty_windows_silent() {
        let mut windows = Windows::new(100 * MS, WindowValue::Most);
        windows.begin(40 * MS, 0);
        windows.add(&done(Direction::Write, 50, Some(20)), 90 * MS);
        assert!(windows.add(&done(Direction::Write, 70, Some(30)), 140 * MS));
        assert_eq!(close(&mut windows).1, []);
        let (times, told) = finish(windows);
        assert_eq!(times, [140]);
        assert_eq!(told[0], (LogKind::Submission, Direction::Write, 30, 30));
        assert_eq!(told[1], (LogKind::Completion, Direction::Write, 40, 40));
        assert!(told.iter().all(|&(_, direction, ..)| direction == Direction::Write));
        // From 40 to 140 ms: a tenth of a second.
        assert_eq!(told[4], (LogKind::Iops, Direction::Write, 20, 20));
        let mut windows = Windows::new(100 * MS, WindowValue::Most);
        windows.begin(0, 0);
        assert_eq!(finish(windows).1, []);
    }

    #[test]
    fn what_was_in_flight_at_the_end_is_part_of_the_last_window() {
        let (mut windows, times, told) = reads(10 * MS, 200 * MS);
        assert_eq!((times, iops(&told)), (vec![100], vec![100]));
        for _ in 0..5 {
            windows.add(&done(Direction::Read, 900, None), 200 * MS + 5000);
        }
        let (times, told) = finish(windows);
        // 15 I/Os in a tenth of a second, and the worst of them are not forgotten.
        assert_eq!((times, iops(&told)), (vec![200], vec![150]));
        let mean = (10 * 100 + 5 * 900) / 15;
        assert_eq!(told[1], (LogKind::Total, Direction::Read, mean, 900));
    }

    #[test]
    fn a_rest_of_half_a_window_stands_alone_and_a_short_job_has_a_line() {
        let (windows, _, _) = reads(10 * MS, 240 * MS);
        let (times, told) = finish(windows);
        assert_eq!((times, iops(&told)), (vec![240], vec![100]));
        let (windows, _, _) = reads(10 * MS, 250 * MS);
        let (times, told) = finish(windows);
        assert_eq!((times, iops(&told)), (vec![200, 250], vec![100, 100]));
        let (windows, _, _) = reads(10 * MS, 30 * MS);
        let (times, told) = finish(windows);
        assert_eq!((times, iops(&told)), (vec![30], vec![100]));
    }

    /// 1000 I/Os per second, a little late.
    #[test]
    fn rates_are_rounded_to_the_nearest() {
        let (windows, _, _) = reads(MS + 200, 101 * MS);
        let (_, told) = finish(windows);
        assert_eq!(
            told[2..],
            [(LogKind::Bandwidth, Direction::Read, 3999, 3999), (LogKind::Iops, Direction::Read, 1000, 1000),]
        );
        let (windows, _, _) = reads(MS + 100, 101 * MS);
        assert_eq!(finish(windows).1[2], (LogKind::Bandwidth, Direction::Read, 4000, 4000));
    }
}
