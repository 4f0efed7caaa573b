//! Merges block traces into one, in the order of time.
//!
//! Each trace may be slowed down or sped up, and may be repeated: a repetition begins when the previous one has ended.
//! Both start at the first event of the trace, because the times of a trace count from the start of the machine (unless
//! `blkparse` has changed them). The traces are read in parallel, one record at a time, so their length does not
//! matter.

use crate::blk::{self, BlkReader, BlkRecord, ByteOrder, category};
use crate::reader::name_of;
use crate::source;
use crate::text::HIGHEST;
use crate::{Place, TraceError};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

/// One of the traces to be merged.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeInput {
    /// Its name.
    pub path: PathBuf,
    /// Its duration in the result, in percent of the original duration.
    pub percent: f64,
    /// How many times it is run; 0 leaves it out.
    pub times: u64,
}

/// The result of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// The number of records written.
    pub records: u64,
}

/// Merges the traces. The byte order of the result is that of this machine.
///
/// # Errors
///
/// A trace cannot be read, or its times become too large. If the result cannot be written, the error has its name,
/// `to`.
pub fn merge(inputs: &[MergeInput], output: &mut impl Write, to: &str) -> Result<Merge, TraceError> {
    let mut running = inputs.iter().map(Running::start).collect::<Result<Vec<_>, _>>()?;
    let mut merged = Merge::default();
    // There are few traces, so a linear search is as fast as a heap.
    while let Some(next) = running.iter_mut().filter(|one| one.has_record).min_by_key(|one| one.time) {
        next.record.time = next.time;
        next.record.sequence = merged.records as u32;
        blk::write(output, NATIVE, &next.record).map_err(|error| TraceError::io(to, Place::Whole, error))?;
        merged.records += 1;
        next.advance()?;
    }
    output.flush().map_err(|error| TraceError::io(to, Place::Whole, error))?;
    Ok(merged)
}

const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

/// A trace that is being merged.
struct Running<'a> {
    input: &'a MergeInput,
    reader: BlkReader<BufReader<File>>,
    left: u64,
    /// The time of the first event.
    first: Option<u64>,
    /// The start of this repetition, in the time of the result.
    base: u64,
    record: BlkRecord,
    has_record: bool,
    /// The time of the current record in the result.
    time: u64,
}

impl<'a> Running<'a> {
    fn start(input: &'a MergeInput) -> Result<Self, TraceError> {
        let mut running = Running {
            input,
            reader: reader(input)?,
            left: input.times,
            first: None,
            base: 0,
            record: BlkRecord::default(),
            has_record: input.times > 0,
            time: 0,
        };
        if running.has_record {
            running.advance()?;
        }
        Ok(running)
    }

    /// Fetches the next record that is I/O. At the end of the trace, this is the first one of the next repetition.
    fn advance(&mut self) -> Result<(), TraceError> {
        let mut found_any = true;
        loop {
            if self.reader.read(&mut self.record)? {
                if self.record.is(category::NOTIFY) {
                    continue;
                }
                let time = self.time_in_result().ok_or_else(|| self.too_late())?;
                // A record that is out of order in its trace must not be out of order in the result.
                self.time = time.max(self.time);
                return Ok(());
            }
            self.left -= 1;
            if self.left == 0 || !found_any {
                self.has_record = false;
                return Ok(());
            }
            found_any = false;
            self.base = self.time;
            self.reader = reader(self.input)?;
        }
    }
}

impl Running<'_> {
    /// The time of the current record in the result; `None` if it is too large for a trace.
    fn time_in_result(&mut self) -> Option<u64> {
        let time = self.record.time;
        let first = *self.first.get_or_insert_with(|| {
            self.base = time;
            time
        });
        let after = time.saturating_sub(first);
        let percent = self.input.percent;
        let after = if percent == 100.0 { after } else { (after as f64 * percent / 100.0) as u64 };
        self.base.checked_add(after).filter(|&time| time <= HIGHEST)
    }

    fn too_late(&self) -> TraceError {
        let (percent, times) = (self.input.percent, self.input.times);
        let message = format!(
            "at {percent}% of its duration and run {times} times, its times are too large for a trace"
        );
        TraceError::new(&name_of(&self.input.path), self.reader.place(), message)
    }
}

fn reader(input: &MergeInput) -> Result<BlkReader<BufReader<File>>, TraceError> {
    let name = name_of(&input.path);
    let source = source::open(&input.path).map_err(|error| TraceError::io(&name, Place::Whole, error))?;
    Ok(BlkReader::new(BufReader::new(source), &name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blk::action;

    fn trace(directory: &tempfile::TempDir, name: &str, order: ByteOrder, times: &[u64]) -> PathBuf {
        let mut bytes = Vec::new();
        for (&time, sector) in times.iter().zip(0..) {
            let action = action::QUEUE | category::READ;
            let record = BlkRecord { time, sector, bytes: 512, action, ..BlkRecord::default() };
            blk::write(&mut bytes, order, &record).unwrap();
        }
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn merged(inputs: &[MergeInput]) -> Result<Vec<(u64, u64)>, String> {
        let mut bytes = Vec::new();
        merge(inputs, &mut bytes, "result").map_err(|error| error.to_string())?;
        let mut reader = BlkReader::new(&bytes[..], "result");
        let mut record = BlkRecord::default();
        let mut found = Vec::new();
        while reader.read(&mut record).unwrap() {
            assert_eq!(record.sequence as usize, found.len());
            found.push((record.time, record.sector));
        }
        Ok(found)
    }

    #[test]
    fn by_time_with_their_own_speed_and_repetitions() {
        let directory = tempfile::tempdir().unwrap();
        let one = trace(&directory, "one", ByteOrder::Little, &[0, 100, 200]);
        let other = trace(&directory, "other", ByteOrder::Big, &[50, 150]);
        let input = |path: &PathBuf, percent, times| MergeInput { path: path.clone(), percent, times };
        assert_eq!(
            merged(&[input(&one, 100.0, 1), input(&other, 100.0, 1)]).unwrap(),
            [(0, 0), (50, 0), (100, 1), (150, 1), (200, 2)]
        );
        assert_eq!(
            merged(&[input(&one, 50.0, 2), input(&other, 100.0, 1)]).unwrap(),
            [(0, 0), (50, 1), (50, 0), (100, 2), (100, 0), (150, 1), (150, 1), (200, 2)]
        );
    }

    #[test]
    fn speed_and_repetitions_count_from_the_first_event() {
        let directory = tempfile::tempdir().unwrap();
        let one = trace(&directory, "one", ByteOrder::Little, &[1_000_000, 1_000_100, 1_000_200]);
        let input = |percent, times| MergeInput { path: one.clone(), percent, times };
        assert_eq!(
            merged(&[input(250.0, 1), input(50.0, 2)]).unwrap(),
            [(0, 0), (0, 0), (50, 1), (100, 2), (100, 0), (150, 1), (200, 2), (250, 1), (500, 2)]
                .map(|(time, sector)| (1_000_000 + time, sector))
        );
        // Rounded down to whole nanoseconds.
        assert_eq!(merged(&[input(33.3, 1)]).unwrap()[1..], [(1_000_033, 1), (1_000_066, 2)]);
        assert_eq!(merged(&[input(0.000_1, 1)]).unwrap()[1..], [(1_000_000, 1), (1_000_000, 2)]);
        for (percent, times) in [(1e300, 1), (9e18, 2)] {
            let error = merged(&[input(percent, times)]).unwrap_err();
            assert!(
                error.contains("one: record ") && error.ends_with("its times are too large for a trace"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_cut_trace_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(&directory, "one", ByteOrder::Little, &[0, 100]);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..90]).unwrap();
        let error = merged(&[MergeInput { path, percent: 100.0, times: 1 }]).unwrap_err();
        assert!(error.ends_with("one: record 2: the trace is cut off within it"), "{error}");
        let missing = MergeInput { path: directory.path().join("none"), percent: 100.0, times: 1 };
        assert!(merged(&[missing]).unwrap_err().contains("No such file"));
    }

    #[test]
    fn an_empty_trace_ends_at_once_however_often_it_runs() {
        let directory = tempfile::tempdir().unwrap();
        let path = trace(&directory, "one", ByteOrder::Little, &[]);
        assert_eq!(merged(&[MergeInput { path, percent: 100.0, times: u64::MAX }]).unwrap(), []);
    }
}
