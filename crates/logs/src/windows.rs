//! Averages over windows (`log_avg_msec`). They need only running sums, whatever the number of I/Os is.
//!
//! An I/O counts in the window in which it completes. Windows without I/O have no entry, as with fio. What the rounding
//! of a rate takes from a window is added to the next one, so rates times lengths add up to the total.

use crate::grid::{Grid, Rest};
use crate::item::Done;
use crate::{LogKind, item::Item};
use iolite_stats::RateSeries;
use iolite_types::{Direction, PerDirection};

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
    fn has_io(&self) -> bool {
        self.sums.iter().any(|sums| sums.total.count > 0)
    }
}

/// The current window and the one before it.
#[derive(Debug)]
pub(crate) struct Windows {
    grid: Grid,
    shown: WindowValue,
    /// The zero of the log's times.
    zero: u64,
    sums: [Sums; 3],
    /// The previous window. Its values are logged as soon as it is clear that the current window does not join it.
    before: Option<Window>,
    bandwidth: PerDirection<RateSeries>,
    iops: PerDirection<RateSeries>,
}

impl Windows {
    /// Windows of `period` nanoseconds.
    pub fn new(period: u64, shown: WindowValue) -> Windows {
        Windows {
            grid: Grid::new(period),
            shown,
            zero: 0,
            sums: [Sums::default(); 3],
            before: None,
            bandwidth: PerDirection { values: [RateSeries::KIB_PER_SECOND; 3] },
            iops: PerDirection { values: [RateSeries::PER_SECOND; 3] },
        }
    }

    /// Starts the first window now. The times of the log are relative to `zero`.
    pub fn begin(&mut self, now: u64, zero: u64) {
        *self = Windows::new(self.grid.period(), self.shown);
        self.zero = zero;
        self.grid.begin(now);
    }

    /// Whether the current window is over.
    #[inline(always)]
    pub fn is_over(&self, now: u64) -> bool {
        self.grid.is_over(now)
    }

    /// Adds an I/O to the current window.
    #[inline(always)]
    pub fn add(&mut self, done: &Done) {
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
    }

    /// Goes on to the window in which `now` lies, and passes the values of the window before the current one to `log`.
    pub fn close(&mut self, now: u64, mut log: impl FnMut(Item)) {
        let end = self.grid.advance(now);
        let window = Window { span: self.grid.period(), end, sums: std::mem::take(&mut self.sums) };
        if let Some(before) = self.before.replace(window) {
            self.log(&before, &mut log);
        }
    }

    /// Ends the last window with the job, which ended `now`, and passes all remaining values to `log`.
    pub fn finish(&mut self, now: u64, mut log: impl FnMut(Item)) {
        let Rest { end, span, joins } = self.grid.rest(now);
        let mut last = Window { span, end, sums: std::mem::take(&mut self.sums) };
        if joins && last.has_io() {
            last.span += self.grid.period();
            // The window before it may be without I/O.
            if let Some(before) = self.before.take_if(|before| before.end == end - span) {
                last.sums.iter_mut().zip(&before.sums).for_each(|(mine, others)| mine.join(others));
            }
        }
        for window in self.before.take().into_iter().chain([last]) {
            self.log(&window, &mut log);
        }
    }

    /// Passes the values of a window to `log`.
    fn log(&mut self, window: &Window, log: &mut impl FnMut(Item)) {
        let at = window.end.wrapping_sub(self.zero);
        for direction in Direction::ALL {
            let sums = &window.sums[direction.index()];
            if sums.total.count == 0 {
                continue;
            }
            let mut log = |kind, mean, most| {
                let value = if self.shown == WindowValue::Most { most } else { mean };
                log(Item::Window { kind, direction, at, value, most });
            };
            for (kind, sum) in [
                (LogKind::Submission, &sums.submission),
                (LogKind::Completion, &sums.completion),
                (LogKind::Total, &sums.total),
                (LogKind::FirstByte, &sums.first_byte),
            ] {
                if let Some(mean) = sum.mean() {
                    log(kind, mean, sum.most);
                }
            }
            let bandwidth = self.bandwidth[direction].next(sums.bytes, window.span);
            log(LogKind::Bandwidth, bandwidth, bandwidth);
            let iops = self.iops[direction].next(sums.total.count, window.span);
            log(LogKind::Iops, iops, iops);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// Kind, direction, time in milliseconds, value and largest value of each logged line.
    type Logged = Vec<(LogKind, Direction, u64, u64, u64)>;

    /// Windows of 100 ms that begin at 0, with these I/Os (completion and entry), and the end of the job.
    fn logged(shown: WindowValue, ios: &[(u64, Done)], ended: u64) -> Logged {
        let mut windows = Windows::new(100 * MS, shown);
        windows.begin(0, 0);
        let mut lines = Vec::new();
        let mut log = |item| {
            let Item::Window { kind, direction, at, value, most } = item else { panic!("{item:?}") };
            lines.push((kind, direction, at / MS, value, most));
        };
        for (now, io) in ios {
            if windows.is_over(*now) {
                windows.close(*now, &mut log);
            }
            windows.add(io);
        }
        windows.finish(ended, &mut log);
        lines
    }

    /// The same for reads at these times: time and value of each line of this kind.
    fn of_reads(kind: LogKind, times: impl IntoIterator<Item = u64>, ended: u64) -> Vec<(u64, u64)> {
        let ios: Vec<_> = times.into_iter().map(|now| (now, done(Direction::Read, 100, None))).collect();
        let lines = logged(WindowValue::Mean, &ios, ended).into_iter().filter(|line| line.0 == kind);
        lines.map(|(_, _, at, value, _)| (at, value)).collect()
    }

    fn iops(times: impl IntoIterator<Item = u64>, ended: u64) -> Vec<(u64, u64)> {
        of_reads(LogKind::Iops, times, ended)
    }

    /// A job that does ten I/Os at once and thinks for 35 ms, for 300 ms.
    #[test]
    fn bursts_count_where_they_are() {
        let bursts = (0..9).flat_map(|burst| (1..=10).map(move |io| burst * 35 * MS + io));
        assert_eq!(iops(bursts, 300 * MS + 4000), [(100, 300), (200, 300), (300, 300)]);
    }

    #[test]
    fn windows_without_io_have_no_line_and_change_no_other() {
        let pause = (1..=20).chain((1..=20).map(|io| 470 * MS + io));
        assert_eq!(iops(pause, 700 * MS), [(100, 200), (500, 200)]);
        assert_eq!(iops([], 700 * MS), []);
        // An I/O that takes longer than a window, one that completes at an edge, and the last one after an empty window.
        assert_eq!(iops([250 * MS, 300 * MS, 501 * MS], 502 * MS), [(300, 10), (400, 10), (502, 10)]);
    }

    #[test]
    fn directions_are_apart_and_latencies_are_those_of_the_window() {
        let ios = [
            (60 * MS, done(Direction::Write, 50, Some(20))),
            (99 * MS, done(Direction::Read, 300, None)),
            (99 * MS, done(Direction::Write, 70, Some(30))),
            (101 * MS, done(Direction::Read, 900, None)),
        ];
        let expected = [
            (LogKind::Completion, Direction::Read, 100, 290, 290),
            (LogKind::Total, Direction::Read, 100, 300, 300),
            (LogKind::Bandwidth, Direction::Read, 100, 40, 40),
            (LogKind::Iops, Direction::Read, 100, 10, 10),
            (LogKind::Submission, Direction::Write, 100, 25, 30),
            (LogKind::Completion, Direction::Write, 100, 35, 40),
            (LogKind::Total, Direction::Write, 100, 60, 70),
            (LogKind::Bandwidth, Direction::Write, 100, 80, 80),
            (LogKind::Iops, Direction::Write, 100, 20, 20),
        ];
        assert_eq!(logged(WindowValue::Both, &ios, 150 * MS)[..9], expected);
        assert_eq!(logged(WindowValue::Most, &ios, 150 * MS)[6].3, 70);
    }

    #[test]
    fn the_last_window_ends_with_the_job_and_a_tenth_joins_the_one_before() {
        let every_10_ms =
            |until: u64| (1..).map(|io| io * 10 * MS - 1).take_while(move |&at| at < until * MS);
        let steady = |until| iops(every_10_ms(until), until * MS);
        assert_eq!(steady(240), [(100, 100), (200, 100), (240, 100)]);
        assert_eq!(steady(210), [(100, 100), (200, 100), (210, 100)]);
        assert_eq!(steady(30), [(30, 100)]);
        let in_flight = every_10_ms(200).chain([200 * MS + 5000; 5]);
        assert_eq!(iops(in_flight, 200 * MS + 6000), [(100, 100), (200, 150)]);
        let in_flight = every_10_ms(200).chain([207 * MS]);
        assert_eq!(iops(in_flight, 208 * MS), [(100, 100), (208, 102)]);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        /// The rates of all lines, times the lengths of their windows, are the I/Os and bytes of the job, up to the
        /// rounding of the last one.
        #[test]
        fn the_sum_is_the_total(
            gaps in prop::collection::vec((0u32..9, 0u64..40), 1..200),
            lengths in prop::collection::vec(1u64..100_000, 200),
            after in 0u64..200,
        ) {
            let mut now = 0;
            let mut ios = Vec::new();
            for ((kind, gap), length) in gaps.into_iter().zip(lengths) {
                now += if kind == 0 { gap * 10 * MS } else { gap * MS / 10 };
                ios.push((now, Done { length, ..done(Direction::Trim, 100, None) }));
            }
            let ended = now + after * MS / 2;
            let lines = logged(WindowValue::Mean, &ios, ended);
            for (kind, unit, total) in [
                (LogKind::Iops, 1, ios.len() as u64),
                (LogKind::Bandwidth, 1024, ios.iter().map(|(_, io)| io.length).sum()),
            ] {
                let mut sum = 0;
                for (number, line) in lines.iter().filter(|line| line.0 == kind).enumerate() {
                    let is_full = line.2 % 100 == 0;
                    prop_assert!(is_full || line.2.abs_diff(ended / MS) <= 1, "{number}: {line:?}, {ended}");
                    // The last one begins at an edge, and may have joined a full one before it.
                    let joined = line.2 % 100 < 10 && line.2 > 100;
                    let span = if is_full { 100 } else { line.2 % 100 + if joined { 100 } else { 0 } };
                    sum += line.3 * span * unit;
                }
                prop_assert!(sum.abs_diff(total * 1000) <= unit * 110 / 2 + 1, "{kind:?}: {sum} of {total}");
            }
        }
    }
}
