//! The grid of windows that averages and histograms share.
//!
//! Windows begin where counting begins, and end at multiples of their length from there, whether or not an I/O completes
//! at an edge: logs of workers that began together can be added line by line. The last window ends with the job. If it
//! is shorter than a tenth of a full one, it joins the window before it: the I/Os in flight at the end of the run time
//! complete within microseconds, at a rate that the job never had.

/// The unit of a log's times. The last window ends at a whole millisecond, so that its length is that of its line.
const MILLISECOND: u64 = 1_000_000;

/// The current window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    period: u64,
    began: u64,
    /// End of the current window.
    due: u64,
}

/// The end of the last window of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub end: u64,
    /// The length of the last window, without the one that it joins.
    pub span: u64,
    /// Whether it joins the window before it.
    pub joins: bool,
}

impl Grid {
    /// Windows of `period` nanoseconds.
    pub fn new(period: u64) -> Grid {
        Grid { period, began: 0, due: u64::MAX }
    }

    /// The length of a full window.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// Starts the first window now.
    pub fn begin(&mut self, now: u64) {
        self.began = now;
        self.due = now.saturating_add(self.period);
    }

    /// Whether the current window is over. An I/O that completes at an edge belongs to the window after it.
    #[inline(always)]
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Goes on to the window in which `now` lies. Returns the end of the one that was current.
    pub fn advance(&mut self, now: u64) -> u64 {
        let passed = (now - self.began) / self.period;
        std::mem::replace(&mut self.due, self.began.saturating_add((passed + 1).saturating_mul(self.period)))
    }

    /// Ends the current window with the job, which ended now, or at its planned end if that was earlier.
    pub fn rest(&self, now: u64) -> Rest {
        let from = self.due.saturating_sub(self.period).max(self.began);
        let is_first = from == self.began;
        let passed =
            (now.saturating_sub(self.began).saturating_add(MILLISECOND / 2)) / MILLISECOND * MILLISECOND;
        // A job of less than a millisecond has a window of one.
        let least = if is_first { MILLISECOND.min(self.period) } else { 0 };
        let end = self.began.saturating_add(passed).clamp(from.saturating_add(least), self.due);
        let span = end - from;
        Rest { end, span, joins: !is_first && span < self.period / 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND;

    #[test]
    fn edges_are_multiples_however_late_they_are_noticed() {
        let mut grid = Grid::new(100 * MS);
        assert!(!grid.is_over(u64::MAX - 1), "nothing has begun");
        grid.begin(30 * MS);
        assert!(!grid.is_over(130 * MS - 1) && grid.is_over(130 * MS));
        assert_eq!(grid.advance(130 * MS), 130 * MS);
        assert_eq!(grid.advance(599 * MS), 230 * MS);
        assert!(!grid.is_over(629 * MS) && grid.is_over(630 * MS));
    }

    #[test]
    fn the_last_window_ends_with_the_job() {
        let mut grid = Grid::new(100 * MS);
        grid.begin(7);
        // The first window is never joined to another.
        assert_eq!(grid.rest(7), Rest { end: MS + 7, span: MS, joins: false });
        assert_eq!(grid.rest(30 * MS), Rest { end: 30 * MS + 7, span: 30 * MS, joins: false });
        // The job ended long after the last I/O: its window is a full one.
        assert_eq!(grid.rest(900 * MS), Rest { end: 100 * MS + 7, span: 100 * MS, joins: false });
        grid.advance(100 * MS + 7);
        assert_eq!(grid.rest(100 * MS + 8_000), Rest { end: 100 * MS + 7, span: 0, joins: true });
        assert_eq!(grid.rest(110 * MS - MS), Rest { end: 109 * MS + 7, span: 9 * MS, joins: true });
        assert_eq!(grid.rest(110 * MS), Rest { end: 110 * MS + 7, span: 10 * MS, joins: false });
    }
}
