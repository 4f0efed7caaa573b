//! `--bandwidth-log`: the bandwidth of all jobs together, one file per direction, one line per half second.

use super::{Controller, Events, RunError};
use iolite_logs::{Columns, Sample};
use iolite_stats::EventKind;
use iolite_stats::kib_per_second;
use iolite_types::{Direction, PerDirection};
use std::fs::File;
use std::io::Write;

/// The time between two lines.
const PERIOD_NS: u64 = 500_000_000;
/// The shortest incomplete period that gets a line at the end of the run.
const SHORTEST_NS: u64 = PERIOD_NS / 5;

/// The files, in the order of [`Direction::ALL`], in the directory in which users of fio look for them.
pub const BANDWIDTH_LOGS: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// The log, if there is one.
#[derive(Debug, Default)]
pub(super) struct BandwidthLog {
    files: Vec<File>,
    last: u64,
    bytes: PerDirection<u64>,
    failed: bool,
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

    /// When the next line is due; `u64::MAX` = never.
    pub(super) fn due(&self) -> u64 {
        if self.is_off() { u64::MAX } else { self.last + PERIOD_NS }
    }

    /// Whether writing has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Writes a line to each file.
    fn write(&mut self, now: u64, bytes: PerDirection<u64>) -> Result<(), (&'static str, std::io::Error)> {
        let span = now.saturating_sub(std::mem::replace(&mut self.last, now));
        let before = std::mem::replace(&mut self.bytes, bytes);
        for (index, file) in self.files.iter_mut().enumerate() {
            let direction = Direction::ALL[index];
            let sample = Sample {
                time_ms: now / 1_000_000,
                value: kib_per_second(bytes[direction].saturating_sub(before[direction]), span),
                direction: index as u32,
                ..Sample::default()
            };
            file.write_all(sample.line(Columns::default()).as_bytes())
                .map_err(|error| (BANDWIDTH_LOGS[index], error))?;
        }
        Ok(())
    }
}

/// Truncates a regular file. (Pipes and devices cannot be truncated.)
fn begin_anew(file: &File) -> std::io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

impl Controller<'_> {
    /// Writes a line if one is due, and at the end a line for the rest.
    pub(super) fn log_bandwidth(&mut self, at_the_end: bool, events: &mut Events<'_>) {
        let now = self.now();
        let due = self.bandwidth_log.due();
        let due = if at_the_end { due.saturating_sub(PERIOD_NS - SHORTEST_NS) } else { due };
        if self.bandwidth_log.is_off() || now < due {
            return;
        }
        let mut bytes: PerDirection<u64> = PerDirection::default();
        for worker in &self.plan.workers {
            let slot = self.arena.slot(worker.index);
            for direction in Direction::ALL {
                bytes[direction] += slot.stats.moved(direction.index()).bytes;
            }
        }
        if let Err((name, error)) = self.bandwidth_log.write(now, bytes) {
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

    #[test]
    fn lines_are_the_bandwidth_since_the_line_before() {
        let dir = tempfile::tempdir().unwrap();
        let paths = BANDWIDTH_LOGS.map(|name| dir.path().join(name));
        let mut log = BandwidthLog {
            files: paths.iter().map(|path| File::create(path).unwrap()).collect(),
            ..BandwidthLog::default()
        };
        assert_eq!(log.due(), PERIOD_NS);
        log.write(500_000_000, PerDirection::new(4 << 20, 0, 0)).unwrap();
        log.write(1_500_000_000, PerDirection::new(6 << 20, 1 << 20, 0)).unwrap();
        let texts = paths.map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(texts[0], "500, 8192, 0, 0, 0\n1500, 2048, 0, 0, 0\n");
        assert_eq!(texts[1], "500, 0, 1, 0, 0\n1500, 1024, 1, 0, 0\n");
        assert_eq!(texts[2], "500, 0, 2, 0, 0\n1500, 0, 2, 0, 0\n");
    }
}
