//! The writer of a worker's logs: it makes lines of entries and puts them into the files of their kinds.

use crate::LogError;
use crate::LogKind;
use crate::file::{LogFile, Table};
use crate::histogram::Counts;
use crate::item::{Done, Item, of_class};
use crate::line::{LineMaker, Sample};
use crate::queue::Sink;
use rtrb::{Consumer, Producer};

/// The writer's side of the logs.
pub(crate) struct Writer {
    pub histograms: Consumer<Box<Counts>>,
    /// Returns written histograms to the worker.
    pub spare: Producer<Box<Counts>>,
    pub files: Table,
    pub maker: LineMaker,
    pub coarseness: u32,
    /// The upper halves of the numbers of the next I/O, if they have come.
    pub wide: Option<(u32, u32, u32)>,
    /// The time to the first byte of the next I/O, if it has come.
    pub first_byte: Option<u64>,
}

impl Sink for Writer {
    type Entry = Item;

    fn take(&mut self, items: &[Item]) -> Result<(), LogError> {
        let Writer { files, maker, wide, first_byte, .. } = self;
        for item in items {
            match *item {
                Item::Io { complete, offset, lat, slat, length, priority, class } => {
                    let (direction, queued) = of_class(class);
                    let (lat_high, slat_high, length_high) = wide.take().unwrap_or_default();
                    let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
                    let done = Done {
                        direction,
                        queued,
                        complete,
                        offset,
                        length: whole(length_high, length),
                        lat: whole(lat_high, lat),
                        slat: whole(slat_high, slat),
                        priority,
                        first_byte: first_byte.take(),
                    };
                    write_io(files, maker, &done)?;
                }
                Item::Wide { lat, slat, length } => *wide = Some((lat, slat, length)),
                Item::FirstByte(time) => *first_byte = Some(time),
                Item::Window { kind, direction, at, value, most } => {
                    maker.at(at);
                    maker.of(direction, 0, 0, 0, 0);
                    let time_ms = maker.time_ms();
                    if let Some(file) = &mut files[kind.index()] {
                        let sample = || Sample { time_ms, direction: direction as u32, ..Sample::default() };
                        file.entry(maker, value, most, sample)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn take_others(&mut self) -> Result<(), LogError> {
        while let Ok(mut counts) = self.histograms.pop() {
            if let Some(file) = &mut self.files[LogKind::Histogram.index()] {
                file.text(|out| counts.put(out, self.coarseness))?;
            }
            counts.clear();
            // This cannot fail: there is room for all histograms.
            let _ = self.spare.push(counts);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.files.iter_mut().flatten().try_for_each(LogFile::flush)
    }

    fn finish(&mut self) -> Result<(), LogError> {
        self.files.iter_mut().flatten().try_for_each(LogFile::finish)
    }
}

/// Writes the entries of one I/O.
#[inline(always)]
fn write_io(files: &mut Table, maker: &mut LineMaker, done: &Done) -> Result<(), LogError> {
    let clat = done.clat();
    let issue = done.complete.wrapping_sub(clat);
    maker.at(done.complete);
    maker.of(done.direction, done.length, done.priority, done.offset, issue);
    let maker = &*maker;
    let sample = || Sample {
        time_ms: maker.time_ms(),
        direction: done.direction as u32,
        length: done.length,
        offset: done.offset,
        priority: done.priority,
        issue_ns: issue,
        ..Sample::default()
    };
    let [bandwidth, iops, submission, completion, total, first_byte, ..] = files;
    if let Some(file) = bandwidth {
        // Thousands of bytes per second, as is usual in logs of single I/Os; 0 for an I/O that took no time.
        let value = done.length.saturating_mul(1_000_000).checked_div(clat).unwrap_or(0);
        file.entry(maker, value, value, sample)?;
    }
    if let Some(file) = iops {
        file.entry(maker, 1, 1, sample)?;
    }
    if let Some(file) = submission
        && done.queued
    {
        file.entry(maker, done.slat, done.slat, sample)?;
    }
    if let Some(file) = completion {
        file.entry(maker, clat, clat, sample)?;
    }
    if let Some(file) = total {
        file.entry(maker, done.lat, done.lat, sample)?;
    }
    if let Some(file) = first_byte
        && let Some(time) = done.first_byte
    {
        file.entry(maker, time, time, sample)?;
    }
    Ok(())
}
