//! `--bandwidth-log`: the bandwidth of all jobs together, one file per direction, one line per half second.
//!
//! Lines are for multiples of the period from the start of the run, which is that of its first worker's logs. The
//! controller always looks a little late: what was transferred since its last look is divided at the edge in proportion to
//! the time. The last line ends with the run; if less than a tenth of a period is left, the line before it includes the
//! rest. That is why a line is written a period late.

use super::{Controller, Events, RunError};
use iolite_logs::{Columns, Sample};
use iolite_stats::EventKind;
use iolite_stats::RateSeries;
use iolite_types::{Direction, PerDirection};
use std::fs::File;
use std::io::Write;

/// The time between two lines.
const PERIOD_NS: u64 = 500_000_000;
/// The unit of a line's time.
const MILLISECOND: u64 = 1_000_000;

/// The files, in the order of [`Direction::ALL`], in the directory in which users of fio look for them.
pub const BANDWIDTH_LOGS: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// The log, if there is one. All times are in nanoseconds from the start of the run.
#[derive(Debug)]
pub(super) struct BandwidthLog {
    files: Vec<File>,
    /// The last look: its time, and the bytes until then.
    last: (u64, PerDirection<u64>),
    /// The end of the last full period, and the bytes until then.
    edge: (u64, PerDirection<u64>),
    /// The line that is not written yet.
    held: Option<Line>,
    rates: PerDirection<RateSeries>,
    failed: bool,
}

/// What was transferred in a period.
#[derive(Clone, Copy, Debug)]
struct Line {
    end: u64,
    span: u64,
    bytes: PerDirection<u64>,
}

impl Default for BandwidthLog {
    fn default() -> Self {
        BandwidthLog {
            files: Vec::new(),
            last: Default::default(),
            edge: Default::default(),
            held: None,
            rates: PerDirection { values: [RateSeries::KIB_PER_SECOND; 3] },
            failed: false,
        }
    }
}

impl BandwidthLog {
    /// Opens the files. They are truncated only when all of them are open.
    pub(super) fn new(wanted: bool) -> Result<BandwidthLog, RunError> {
        let mut log = BandwidthLog::default();
        if wanted {
            let open = |name| File::options().write(true).create(true).truncate(false).open(name);
            for name in BANDWIDTH_LOGS {
                log.files.push(open(name).map_err(|error| RunError::System(name, error))?);
            }
            for (file, name) in log.files.iter().zip(BANDWIDTH_LOGS) {
                begin_anew(file).map_err(|error| RunError::System(name, error))?;
            }
        }
        Ok(log)
    }

    /// Whether there is no log.
    fn is_off(&self) -> bool {
        self.files.is_empty()
    }

    /// When the next period ends; `u64::MAX` = never.
    pub(super) fn due(&self) -> u64 {
        if self.is_off() { u64::MAX } else { self.edge.0 + PERIOD_NS }
    }

    /// Whether writing has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes the bytes until now.
    fn look(&mut self, now: u64, bytes: PerDirection<u64>) -> Result<(), Failed> {
        let (since, known) = std::mem::replace(&mut self.last, (now, bytes));
        while self.due() <= now {
            let end = self.due();
            let mut until = bytes;
            for direction in Direction::ALL {
                let grown = u128::from(bytes[direction].saturating_sub(known[direction]));
                let part = (grown * u128::from(end - since)).checked_div((now - since).into());
                until[direction] = part.map_or(bytes[direction], |part| known[direction] + part as u64);
            }
            self.close(end, until)?;
        }
        Ok(())
    }

    /// Ends a period; the line of the one before it is written.
    fn close(&mut self, end: u64, until: PerDirection<u64>) -> Result<(), Failed> {
        let (begin, before) = std::mem::replace(&mut self.edge, (end, until));
        let mut bytes = until;
        Direction::ALL.into_iter().for_each(|direction| bytes[direction] -= before[direction]);
        let held = self.held.replace(Line { end, span: end - begin, bytes });
        held.map_or(Ok(()), |line| self.write(&line))
    }

    /// Writes the last lines; the run ends now.
    fn finish(&mut self, now: u64, bytes: PerDirection<u64>) -> Result<(), Failed> {
        self.look(now, bytes)?;
        let rest = (now.saturating_sub(self.edge.0) + MILLISECOND / 2) / MILLISECOND * MILLISECOND;
        let end = self.edge.0 + rest;
        match &mut self.held {
            Some(last) if rest < PERIOD_NS / 10 => {
                (last.end, last.span) = (end, last.span + rest);
                Direction::ALL
                    .into_iter()
                    .for_each(|direction| last.bytes[direction] += bytes[direction] - self.edge.1[direction]);
            }
            _ => self.close(end.max(self.edge.0 + MILLISECOND), bytes)?,
        }
        self.held.take().map_or(Ok(()), |line| self.write(&line))
    }

    /// Writes a line to each file.
    fn write(&mut self, line: &Line) -> Result<(), Failed> {
        for (index, file) in self.files.iter_mut().enumerate() {
            let direction = Direction::ALL[index];
            let sample = Sample {
                time_ms: line.end / MILLISECOND,
                value: self.rates[direction].next(line.bytes[direction], line.span),
                direction: index as u32,
                ..Sample::default()
            };
            file.write_all(sample.line(Columns::default()).as_bytes())
                .map_err(|error| (BANDWIDTH_LOGS[index], error))?;
        }
        Ok(())
    }
}

/// A file that cannot be written, and the reason.
type Failed = (&'static str, std::io::Error);

/// Truncates a regular file. (Pipes and devices cannot be truncated.)
fn begin_anew(file: &File) -> std::io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

impl Controller<'_> {
    /// Writes the lines that are due, and at the end of the run all that are left.
    pub(super) fn log_bandwidth(&mut self, at_the_end: bool, events: &mut Events<'_>) {
        let now = self.lasted();
        if self.bandwidth_log.is_off() || (now < self.bandwidth_log.due() && !at_the_end) {
            return;
        }
        let mut bytes: PerDirection<u64> = PerDirection::default();
        for worker in &self.plan.workers {
            let slot = self.arena.slot(worker.index);
            for direction in Direction::ALL {
                bytes[direction] += slot.stats.moved(direction.index()).bytes;
            }
        }
        let log = &mut self.bandwidth_log;
        let written = if at_the_end { log.finish(now, bytes) } else { log.look(now, bytes) };
        if let Err((name, error)) = written {
            let text = format!("{name} cannot be written any more: {error}");
            self.tell(None, EventKind::Trouble(text), events);
            // The jobs continue. The exit status will show that writing failed.
            self.bandwidth_log = BandwidthLog { failed: true, ..BandwidthLog::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_log_is_never_due() {
        let log = BandwidthLog::new(false).unwrap();
        assert_eq!((log.due(), log.has_failed()), (u64::MAX, false));
    }

    /// The lines of reads and of writes, for looks at these milliseconds; the last one ends the run. A MiB per
    /// millisecond is read until 1000 ms, and 512 bytes are written at the first look.
    fn lines(looks: &[u64]) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let paths = BANDWIDTH_LOGS.map(|name| dir.path().join(name));
        let mut log = BandwidthLog {
            files: paths.iter().map(|path| File::create(path).unwrap()).collect(),
            ..BandwidthLog::default()
        };
        assert_eq!(log.due(), PERIOD_NS);
        let (end, looks) = looks.split_last().unwrap();
        let bytes = |ms: u64| PerDirection::new(ms.min(1000) << 20, 512, 0);
        looks.iter().for_each(|&ms| log.look(ms * MILLISECOND, bytes(ms)).unwrap());
        log.finish(end * MILLISECOND, bytes(*end)).unwrap();
        let [reads, writes, _] = paths.map(|path| std::fs::read_to_string(path).unwrap());
        (reads, writes)
    }

    #[test]
    fn lines_are_on_the_grid_and_add_up() {
        let (reads, writes) = lines(&[500, 1003, 1500, 1700]);
        assert_eq!(writes, "500, 1, 1, 0, 0\n1000, 0, 1, 0, 0\n1500, 0, 1, 0, 0\n1700, 0, 1, 0, 0\n");
        // The look at 1003 ms finds 500 MiB, three of 503 parts of which are taken for later ones.
        assert_eq!(
            reads,
            "500, 1024000, 0, 0, 0\n1000, 1017893, 0, 0, 0\n1500, 6107, 0, 0, 0\n1700, 0, 0, 0, 0\n"
        );
        // A look that missed an edge, and a rest of less than a tenth.
        assert_eq!(lines(&[980, 1020]).0, "500, 1024000, 0, 0, 0\n1020, 984615, 0, 0, 0\n");
        assert_eq!(lines(&[30]).0, "30, 1024000, 0, 0, 0\n");
        assert_eq!(lines(&[0]).0, "1, 0, 0, 0, 0\n");
    }
}
