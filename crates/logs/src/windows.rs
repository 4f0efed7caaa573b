//! Averages over windows (`log_avg_msec`). They need only running sums, whatever the number of I/Os is.
//!
//! A window ends with the first I/O that completes at or after its end; this I/O still belongs to it. So a pause makes
//! a window longer, windows without I/O have no entry, and the sums are exact. If the rest at the end is too short for
//! a rate, it joins the window before it.

use crate::item::Done;
use crate::{LogKind, item::Item};
use iolite_stats::{kib_per_second, per_second};
use iolite_types::Direction;

/// The value of a window that is logged (`log_window_value`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum WindowValue {
    /// The mean.
    #[default]
    Mean,
    /// The largest value.
    Most,
    /// The mean, followed by the largest value.
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
    first_byte: Sum,
}

impl Sums {
    fn join(&mut self, other: &Sums) {
        self.bytes += other.bytes;
        self.submission.join(&other.submission);
        self.completion.join(&other.completion);
        self.total.join(&other.total);
        self.first_byte.join(&other.first_byte);
    }
}

/// A completed window.
#[derive(Clone, Copy, Debug)]
struct Window {
    span: u64,
    /// The time of its end.
    end: u64,
    sums: [Sums; 3],
}

impl Window {
    /// Joins this window and the next.
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

    /// Passes the values of the window to `tell`. The times of the log are relative to `zero`.
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
                (LogKind::FirstByte, &sums.first_byte),
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

/// The current window and the one before it.
#[derive(Debug)]
pub(crate) struct Windows {
    period: u64,
    shown: WindowValue,
    /// The zero of the log's times.
    zero: u64,
    /// Start of the first window.
    began: u64,
    /// End of the last window.
    last: u64,
    /// Planned end of the current window.
    due: u64,
    /// Completion of the last I/O.
    latest: u64,
    sums: [Sums; 3],
    /// The previous window. Its values are logged as soon as it is clear that the current window does not join it.
    before: Option<Window>,
}

impl Windows {
    /// Windows of `period` nanoseconds.
    pub fn new(period: u64, shown: WindowValue) -> Windows {
        let sums = [Sums::default(); 3];
        Windows { period, shown, zero: 0, began: 0, last: 0, due: u64::MAX, latest: 0, sums, before: None }
    }

    /// Starts the first window now. The times of the log are relative to `zero`.
    pub fn begin(&mut self, now: u64, zero: u64) {
        self.zero = zero;
        (self.began, self.last, self.latest) = (now, now, now);
        self.due = now.saturating_add(self.period);
        self.sums = [Sums::default(); 3];
        self.before = None;
    }

    /// Adds an I/O that was reaped `now`. Returns whether the window is over.
    #[inline(always)]
    pub fn add(&mut self, done: &Done, now: u64) -> bool {
        let sums = &mut self.sums[done.direction.index()];
        sums.bytes += done.length;
        sums.total.add(done.lat);
        sums.completion.add(done.clat());
        if done.queued {
            sums.submission.add(done.slat);
        }
        if let Some(time) = done.first_byte {
            sums.first_byte.add(time);
        }
        self.latest = now;
        now >= self.due
    }

    /// Ends the window with the last I/O, and passes the values of the previous window to `tell`.
    pub fn close(&mut self, mut tell: impl FnMut(Item)) {
        let window = self.take();
        if let Some(before) = self.before.replace(window) {
            before.tell(self.shown, self.zero, &mut tell);
        }
        // Windows keep their planned ends, even if one ended late. But no window is shorter than half a period:
        // otherwise the burst after a pause would look like a rate that the job never had.
        let passed = (self.last - self.began).saturating_add((self.period - 1) / 2) / self.period;
        self.due = self.began.saturating_add((passed + 1).saturating_mul(self.period));
    }

    /// Ends the last window, and passes all remaining values to `tell`.
    ///
    /// The last window ends with the last I/O, not with the end of the job. If it is shorter than half a period, it
    /// joins the previous window: the I/Os in flight at the end of the run time complete within microseconds, at a rate
    /// that the job never had.
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

    /// Ends the current window with the last I/O, and begins the next one.
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
            first_byte: None,
        }
    }

    type Told = Vec<(LogKind, Direction, u64, u64)>;

    /// The values of each logged line, and the times in milliseconds.
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

    /// Windows of 100 ms, with an I/O every `every` up to the time `until`.
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
        // 150, 250, 350: the next window keeps its planned end.
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
        // Less than half a period is left, so it belongs to the next window.
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
    fn ios_in_flight_at_the_end_count_in_the_last_window() {
        let (mut windows, times, told) = reads(10 * MS, 200 * MS);
        assert_eq!((times, iops(&told)), (vec![100], vec![100]));
        for _ in 0..5 {
            windows.add(&done(Direction::Read, 900, None), 200 * MS + 5000);
        }
        let (times, told) = finish(windows);
        // 15 I/Os in a tenth of a second; the largest values are kept.
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

    /// 1000 I/Os per second, each a little late.
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
