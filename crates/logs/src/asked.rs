//! The log of what a schedule of rates asks for: an entry for each window, also for those without I/O.
//!
//! Its windows are those of the other logs. They are logged when an I/O completes behind them, or the job ends.

use crate::LogKind;
use crate::grid::{Grid, Rest};
use crate::item::Item;
use iolite_stats::RateSeries;
use iolite_types::Direction;
use std::fmt;

/// What a schedule asks of a worker.
pub struct Demand {
    /// The amount until a time in nanoseconds from the beginning: I/Os, or bytes.
    pub until: Box<dyn Fn(u64) -> u64 + Send>,
    /// The directions; each is asked for that amount.
    pub directions: Vec<Direction>,
}

impl fmt::Debug for Demand {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Demand {{ directions: {:?} }}", self.directions)
    }
}

/// The log of a schedule.
#[derive(Debug)]
pub(crate) struct Asked {
    kind: LogKind,
    demand: Demand,
    grid: Grid,
    /// When the schedule began.
    origin: Option<u64>,
    /// When the first window began: with the schedule, or behind the ramp.
    began: u64,
    /// The zero of the log's times.
    zero: u64,
    /// The end of the last window that was logged, and the amount until then.
    logged: (u64, u64),
    rates: RateSeries,
}

impl Asked {
    pub fn new(kind: LogKind, demand: Demand, period: u64) -> Asked {
        let is_bytes = kind == LogKind::AskedBandwidth;
        let rates = if is_bytes { RateSeries::KIB_PER_SECOND } else { RateSeries::PER_SECOND };
        Asked {
            kind,
            demand,
            grid: Grid::new(period),
            origin: None,
            began: 0,
            zero: 0,
            logged: (0, 0),
            rates,
        }
    }

    /// Starts the first window now. The times of the log are relative to `zero`.
    pub fn begin(&mut self, now: u64, zero: u64) {
        self.grid.begin(now);
        let origin = *self.origin.get_or_insert(now);
        (self.began, self.zero, self.logged) = (now, zero, (now, (self.demand.until)(now - origin)));
    }

    #[inline(always)]
    pub fn is_over(&self, now: u64) -> bool {
        self.grid.is_over(now)
    }

    /// Goes on to the window in which `now` lies, and logs all up to the one before it, which the last one may join.
    pub fn log_until(&mut self, now: u64, mut log: impl FnMut(Item)) {
        self.grid.advance(now);
        let period = self.grid.period();
        let begun = self.began + (now - self.began) / period * period;
        self.log_whole(begun - period, &mut log);
    }

    /// Ends the last window with the job, which ended `now`, and logs all that remain.
    pub fn finish(&mut self, now: u64, mut log: impl FnMut(Item)) {
        if self.origin.is_none() {
            return;
        }
        if self.is_over(now) {
            self.log_until(now, &mut log);
        }
        let Rest { end, span, joins } = self.grid.rest(now);
        self.log_whole(end - span - if joins { self.grid.period() } else { 0 }, &mut log);
        if end > self.logged.0 {
            self.log_window(end, &mut log);
        }
    }

    /// Logs the full windows until this time.
    fn log_whole(&mut self, until: u64, log: &mut impl FnMut(Item)) {
        while self.logged.0 + self.grid.period() <= until {
            self.log_window(self.logged.0 + self.grid.period(), log);
        }
    }

    fn log_window(&mut self, end: u64, log: &mut impl FnMut(Item)) {
        let amount = (self.demand.until)(end - self.origin.unwrap_or(end));
        let value = self.rates.next(amount - self.logged.1, end - self.logged.0);
        self.logged = (end, amount);
        let at = end.wrapping_sub(self.zero);
        for &direction in &self.demand.directions {
            log(Item::Window { kind: self.kind, direction, at, value, most: value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The lines, time in milliseconds and value, of a job with a ramp until `ramp`, I/Os at these milliseconds, that ended
    /// then.
    fn logged(ramp: u64, ios: &[u64], ended: u64) -> Vec<(u64, u64)> {
        // 100 per second, and nothing from 300 ms to 500 ms.
        let until = |ns: u64| (ns.min(300 * MS) + ns.saturating_sub(500 * MS)) / (10 * MS);
        let demand = Demand { until: Box::new(until), directions: vec![Direction::Write] };
        let mut asked = Asked::new(LogKind::AskedIops, demand, 100 * MS);
        asked.begin(7, 7);
        asked.begin(7 + ramp * MS, 7);
        let mut lines = Vec::new();
        let mut log = |item| {
            let Item::Window { at, value, direction: Direction::Write, .. } = item else {
                panic!("{item:?}")
            };
            lines.push((at / MS, value));
        };
        for io in ios {
            if asked.is_over(7 + io * MS) {
                asked.log_until(7 + io * MS, &mut log);
            }
        }
        asked.finish(7 + ended * MS, &mut log);
        lines
    }

    #[test]
    fn windows_without_io_have_lines() {
        let all = [(100, 100), (200, 100), (300, 100), (400, 0), (500, 0), (600, 100), (650, 100)];
        assert_eq!(logged(0, &[], 650), all);
        assert_eq!(logged(0, &[50, 99, 100, 350, 640], 650), all);
        // A short window at the end joins the one before it.
        assert_eq!(logged(0, &[5, 204], 205), [(100, 100), (205, 95)]);
        assert_eq!(logged(0, &[], 200), [(100, 100), (200, 100)]);
        assert_eq!(logged(0, &[], 0), [(1, 0)]);
        // The schedule goes on in the ramp, which has no lines.
        assert_eq!(logged(250, &[260], 500), [(350, 50), (450, 0), (500, 0)]);
    }
}
