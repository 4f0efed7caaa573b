//! Histogram logs: a row of percentiles for each window and direction.

use iolite_logs::{HistogramLine, percentile};
use iolite_types::Direction;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Which windows are added up.
#[derive(Clone, Copy, Debug)]
pub struct Grouping {
    /// All windows within this many milliseconds; `None` = each window is a row.
    pub together: Option<u64>,
    /// The windows of all directions.
    pub all_directions: bool,
}

/// Counts by the first bucket of a group of buckets.
type Counts = BTreeMap<usize, u64>;

/// All windows of all files.
pub struct Windows {
    grouping: Grouping,
    /// By time, and by direction if directions are separate.
    rows: BTreeMap<(u64, Option<Direction>), Counts>,
    /// Buckets that are one count in the logs.
    buckets_per_count: Option<usize>,
}

impl Windows {
    /// Without any windows.
    pub fn new(grouping: Grouping) -> Windows {
        Windows { grouping, rows: BTreeMap::new(), buckets_per_count: None }
    }

    /// Starts a log.
    pub fn log(&mut self) -> Log<'_> {
        Log { windows: self, ended: [0; 3], number: 0 }
    }

    /// A row for each window and direction.
    pub fn table(&self, percentiles: &[f64], divisor: u64) -> String {
        let mut table = "time_ms,direction,count,min".to_owned();
        for percentile in percentiles {
            // Writing to a String does not fail.
            let _ = write!(table, ",p{percentile}");
        }
        table.push_str(",max\n");
        let buckets = self.buckets_per_count.unwrap_or(1);
        let shown = |value: u64| match divisor {
            1 => value.to_string(),
            divisor => (value as f64 / divisor as f64).to_string(),
        };
        for ((time, direction), counts) in &self.rows {
            let total: u64 = counts.values().sum();
            if total == 0 {
                continue;
            }
            let _ = write!(table, "{time},{},{total}", direction.map_or("all", Direction::name));
            // The first and the last are the smallest and the largest.
            for asked in [0.0].iter().chain(percentiles).chain(&[100.0]) {
                let _ = write!(table, ",{}", shown(percentile(counts, *asked, buckets)));
            }
            table.push('\n');
        }
        table
    }
}

/// A log whose lines are added one after the other.
pub struct Log<'a> {
    windows: &'a mut Windows,
    /// When the last window of each direction ended.
    ended: [u64; 3],
    number: u64,
}

impl Log<'_> {
    /// Adds a line.
    ///
    /// # Errors
    /// `line:column: the error`.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        self.number += 1;
        let number = self.number;
        let line = HistogramLine::read(line).map_err(|(column, why)| format!("{number}:{column}: {why}"))?;
        let windows = &mut *self.windows;
        let buckets = line.buckets_per_count();
        if *windows.buckets_per_count.get_or_insert(buckets) != buckets {
            return Err(format!("{number}:1: its log_hist_coarseness is another than before"));
        }
        let began = std::mem::replace(&mut self.ended[line.direction.index()], line.time_ms);
        let row = match windows.grouping.together {
            None => line.time_ms,
            // The middle of a window decides where it belongs: it may have ended a little late.
            Some(period) => ((began.min(line.time_ms) + line.time_ms) / 2 / period + 1) * period,
        };
        let direction = (!windows.grouping.all_directions).then_some(line.direction);
        let counts = windows.rows.entry((row, direction)).or_default();
        for (position, &count) in line.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            *counts.entry(position * buckets).or_default() += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the coarsest kind with these counts in two neighbouring groups: 64 to 127 ns, 128 to 255 ns.
    fn line(time: u64, direction: u32, low: u64, high: u64) -> String {
        format!("{time}, {direction}, 4096, 0, {low}, {high}{}\n", ", 0".repeat(26))
    }

    fn table(grouping: Grouping, files: &[String]) -> String {
        let mut windows = Windows::new(grouping);
        files.iter().for_each(|file| add(&mut windows, file).unwrap());
        windows.table(&[50.0, 99.0], 1)
    }

    fn add(windows: &mut Windows, file: &str) -> Result<(), String> {
        let mut log = windows.log();
        file.lines().try_for_each(|line| log.line(line))
    }

    const APART: Grouping = Grouping { together: None, all_directions: false };

    #[test]
    fn a_row_for_each_window_and_direction() {
        let file = line(500, 1, 3, 1) + &line(500, 0, 1, 0) + &line(1002, 0, 0, 9);
        let expected = "time_ms,direction,count,min,p50,p99,max\n\
                        500,read,1,96,96,96,96\n\
                        500,write,4,96,96,192,192\n\
                        1002,read,9,192,192,192,192\n";
        assert_eq!(table(APART, &[file]), expected);
    }

    #[test]
    fn windows_of_several_workers_add_up() {
        let files = [line(500, 0, 1, 0) + &line(1003, 0, 0, 1), line(501, 0, 2, 0) + &line(1000, 1, 0, 4)];
        let second = Grouping { together: Some(1000), all_directions: false };
        let expected = "time_ms,direction,count,min,p50,p99,max\n\
                        1000,read,4,96,96,192,192\n\
                        1000,write,4,192,192,192,192\n";
        assert_eq!(table(second, &files), expected);
        let all = Grouping { all_directions: true, ..second };
        assert!(table(all, &files).ends_with("1000,all,8,96,192,192,192\n"));
    }

    #[test]
    fn other_units_have_fractions() {
        let mut windows = Windows::new(APART);
        add(&mut windows, &line(1, 2, 1, 0)).unwrap();
        assert_eq!(windows.table(&[], 1000), "time_ms,direction,count,min,max\n1,trim,1,0.096,0.096\n");
    }

    #[test]
    fn mistakes_have_their_place() {
        let mut windows = Windows::new(APART);
        let told = add(&mut windows, &(line(1, 0, 1, 0) + "1, 0, 4096, x\n")).unwrap_err();
        assert_eq!(told, "2:4: \"x\" is not a number");
        let finer = format!("2, 0, 4096{}\n", ", 1".repeat(58));
        assert!(
            add(&mut windows, &finer).unwrap_err().starts_with("1:1: its log_hist_coarseness is another")
        );
    }
}
