//! A summary of a trace: its length, mix, sizes, order, hot ranges, pace and depth.
//!
//! Everything is counted in one pass, in memory that depends only on the number of files, and for block traces on the number
//! of I/Os in flight.

mod depth;
mod ranges;
mod sizes;
mod steps;

pub use depth::Depth;
pub use ranges::{HotRange, Ranges};
pub use sizes::Sizes;
pub use steps::{Step, Steps, Times};

use crate::{Event, FileName, Format, TraceError, TraceReader};
use iolite_stats::{Histogram, Moments};
use iolite_types::{Operation, PerDirection};
use std::io::Read;

/// The summary of a trace.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The kind of the trace.
    pub format: Format,
    /// The number of events: I/Os, file actions (in text logs only: block traces do not open devices) and completions.
    pub events: u64,
    /// The time from the first event to the last, in nanoseconds.
    pub duration_ns: u64,
    /// The I/Os of each direction.
    pub directions: PerDirection<DirectionSummary>,
    /// Syncs of all kinds: fsync, fdatasync, sync_file_range and flushes.
    pub syncs: u64,
    /// The files, in the order in which the trace names them.
    pub files: Vec<FileSummary>,
    /// The ranges of files that the I/O went to.
    pub ranges: Ranges,
    /// The times between consecutive I/Os, in nanoseconds.
    pub gaps: Moments,
    /// The same times as a histogram.
    pub gap_histogram: Histogram,
    /// I/Os in the busiest second.
    pub peak_iops: u64,
    /// The depth of the device's queue; `None` if the trace does not show it.
    pub depth: Option<Depth>,
    /// The time between the steps of I/Os in the block layer; `None` if the trace does not show it.
    pub steps: Option<Box<Steps>>,
}

/// The I/Os of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionSummary {
    /// The number of I/Os.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The I/Os that began where the previous one in the same file and direction ended.
    pub sequential: u64,
    /// Their sizes.
    pub sizes: Sizes,
}

/// One file of a trace.
#[derive(Clone, Debug)]
pub struct FileSummary {
    /// The name of the file in the trace.
    pub name: FileName,
    /// The number of I/Os.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The highest end of an I/O in bytes.
    pub end: u64,
    /// The offset at which the next I/O of each direction would be sequential.
    next: [Option<u64>; 3],
}

impl Summary {
    /// The number of I/Os in all directions.
    pub fn ios(&self) -> u64 {
        self.directions.iter().map(|(_, direction)| direction.ios).sum()
    }

    /// The bytes of all directions.
    pub fn bytes(&self) -> u64 {
        self.directions.iter().fold(0, |sum, (_, direction)| sum.saturating_add(direction.bytes))
    }

    /// A count as a rate per second over the length of the trace.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.duration_ns as f64 }
    }
}

/// Summarises a trace.
///
/// # Errors
///
/// The trace cannot be read to its end, or a record makes no sense.
pub fn summarise<S: Read>(mut reader: TraceReader<S>) -> Result<Summary, TraceError> {
    let mut pass = Pass::new(reader.format());
    if let TraceReader::Binary(reader) = &mut reader {
        reader.steps = Some(Box::default());
    }
    while let Some(record) = reader.next_record()? {
        for name in &reader.files()[pass.summary.files.len()..] {
            pass.summary.files.push(FileSummary {
                name: name.clone(),
                ios: 0,
                bytes: 0,
                end: 0,
                next: [None; 3],
            });
        }
        pass.tick(record.time_ns);
        let is_made_up = matches!(record.event, Event::Add | Event::Open);
        pass.summary.events += u64::from(!is_made_up || pass.summary.format != Format::Blktrace);
        match record.event {
            Event::Io { operation, offset, length } => pass.io(record.file, operation, offset, length),
            Event::Issued => pass.depth.issued(record.file, pass.now_ns),
            Event::Returned => pass.depth.returned(record.file, pass.now_ns),
            Event::Add | Event::Open | Event::Close | Event::Wait => {}
        }
    }
    if let TraceReader::Binary(reader) = &mut reader {
        pass.summary.steps = reader.steps.take().filter(|steps| steps.is_known());
    }
    Ok(pass.end())
}

/// A summary while the trace is being read.
struct Pass {
    summary: Summary,
    depth: Depth,
    first_ns: Option<u64>,
    /// The time of the current event since the first one. It never decreases.
    now_ns: u64,
    last_io_ns: Option<u64>,
    second: u64,
    in_second: u64,
}

impl Pass {
    fn new(format: Format) -> Self {
        let summary = Summary {
            format,
            events: 0,
            duration_ns: 0,
            directions: PerDirection::all(DirectionSummary::default()),
            syncs: 0,
            files: Vec::new(),
            ranges: Ranges::default(),
            gaps: Moments::default(),
            gap_histogram: Histogram::default(),
            peak_iops: 0,
            depth: None,
            steps: None,
        };
        Pass {
            summary,
            depth: Depth::default(),
            first_ns: None,
            now_ns: 0,
            last_io_ns: None,
            second: 0,
            in_second: 0,
        }
    }

    fn tick(&mut self, time_ns: u64) {
        let first = *self.first_ns.get_or_insert(time_ns);
        self.now_ns = self.now_ns.max(time_ns.saturating_sub(first));
    }

    fn io(&mut self, file: u32, operation: Operation, offset: u64, length: u64) {
        let Some(direction) = operation.direction() else {
            self.summary.syncs += 1;
            return;
        };
        if length == 0 {
            return;
        }
        self.pace();
        let entry = &mut self.summary.directions[direction];
        entry.ios += 1;
        entry.bytes = entry.bytes.saturating_add(length);
        entry.sizes.count(length);
        let known = &mut self.summary.files[file as usize];
        known.ios += 1;
        known.bytes = known.bytes.saturating_add(length);
        known.end = known.end.max(offset + length);
        let next = &mut known.next[direction.index()];
        if next.replace(offset + length) == Some(offset) {
            entry.sequential += 1;
        }
        self.summary.ranges.count(file, offset, length);
    }

    /// Counts the time since the last I/O, and the I/Os of this second.
    fn pace(&mut self) {
        if let Some(last) = self.last_io_ns.replace(self.now_ns) {
            let gap = self.now_ns - last;
            self.summary.gaps.record(gap);
            self.summary.gap_histogram.record(gap);
        }
        let second = self.now_ns / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.in_second = 0;
        }
        self.in_second += 1;
        self.summary.peak_iops = self.summary.peak_iops.max(self.in_second);
    }

    fn end(mut self) -> Summary {
        self.summary.duration_ns = self.now_ns;
        self.depth.end(self.now_ns);
        self.summary.depth = self.depth.is_known().then_some(self.depth);
        self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_types::Direction;

    fn of(text: &str) -> Summary {
        summarise(TraceReader::new(text.as_bytes(), "t").unwrap()).unwrap()
    }

    #[test]
    fn counted_by_hand() {
        let summary = of("fio version 3 iolog\n0 f add\n0 f open\n10 f read 0 4096\n20 f read 4096 4096\n\
                          40 f write 65536 8192\n40 f read 4096 4096\n60 f sync 0 0\n2000060 f write 0 512\n\
                          2000060 f read 0 0\n");
        let read = &summary.directions[Direction::Read];
        assert_eq!((read.ios, read.bytes, read.sequential), (3, 12_288, 1));
        assert_eq!((read.sizes.smallest(), read.sizes.largest()), (4096, 4096));
        let write = &summary.directions[Direction::Write];
        assert_eq!((write.ios, write.bytes, write.sequential), (2, 8704, 0));
        assert_eq!((summary.events, summary.syncs, summary.ios(), summary.bytes()), (9, 1, 5, 20_992));
        assert_eq!((summary.duration_ns, summary.peak_iops), (2_000_060_000, 4));
        assert_eq!((summary.gaps.count, summary.gaps.min, summary.gaps.max), (4, 0, 2_000_020_000));
        assert_eq!((summary.files[0].ios, summary.files[0].end), (5, 73_728));
        assert!(summary.depth.is_none());
        assert!((summary.per_second(4) - 2.0).abs() < 0.001);
    }

    #[test]
    fn a_block_trace_knows_the_depth() {
        use crate::blk::{self, BlkRecord, ByteOrder, action, category};
        let mut bytes = Vec::new();
        for (time, what) in [
            (0, action::QUEUE),
            (0, action::ISSUE),
            (100, action::QUEUE),
            (100, action::ISSUE),
            (200, action::COMPLETE),
            (300, action::COMPLETE),
            (400, action::COMPLETE),
        ] {
            let record =
                BlkRecord { time, bytes: 512, action: what | category::READ, ..BlkRecord::default() };
            blk::write(&mut bytes, ByteOrder::Little, &record).unwrap();
        }
        let summary = summarise(TraceReader::new(&bytes[..], "t").unwrap()).unwrap();
        assert_eq!(summary.events, 7);
        let depth = summary.depth.unwrap();
        assert_eq!(depth.most, 2);
        assert_eq!(depth.mean(), (100.0 + 200.0 + 100.0) / 400.0);
        assert_eq!(summary.directions[Direction::Read].ios, 2);
    }
}
