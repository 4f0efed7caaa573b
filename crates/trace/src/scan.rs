//! A pass through a whole trace before it is used.

use crate::reader::name_of;
use crate::{Event, FileName, Mapping, Place, TraceError, TraceReader};
use iolite_types::{Direction, Operation, PerDirection, greatest_common_divisor};
use std::io::Read;
use std::path::Path;

/// The requirements of replaying a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The files, in the order in which the trace names them.
    pub files: Vec<ScannedFile>,
    /// I/Os per direction.
    pub ios: PerDirection<u64>,
    /// Bytes per direction.
    pub bytes: PerDirection<u64>,
    /// Syncs of all kinds.
    pub syncs: u64,
    /// The largest read or write, in bytes.
    pub largest: u64,
    /// The offsets and lengths of the I/Os of each direction.
    pub blocks: PerDirection<Blocks>,
    /// The time from the first event to the last, in nanoseconds.
    pub duration_ns: u64,
}

/// The extremes and common divisors of the offsets and lengths in a direction. All values are 0 if there is no I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The smallest length, in bytes.
    pub smallest: u64,
    /// The place of the first I/O of that length.
    pub smallest_at: Option<Place>,
    /// The largest length, in bytes.
    pub largest: u64,
    /// The largest number that divides all lengths.
    pub common: u64,
    /// The largest number that divides all lengths and all offsets.
    pub step: u64,
}

impl Blocks {
    fn count(&mut self, offset: u64, length: u64, place: Place) {
        if self.smallest_at.is_none() || length < self.smallest {
            (self.smallest, self.smallest_at) = (length, Some(place));
        }
        self.largest = self.largest.max(length);
        self.common = greatest_common_divisor(self.common, length);
        self.step = greatest_common_divisor(greatest_common_divisor(self.step, offset), length);
    }

    /// Whether an I/O with this offset and length may be among those that were counted.
    pub fn may_hold(&self, offset: u64, length: u64) -> bool {
        (self.smallest..=self.largest).contains(&length)
            && length.is_multiple_of(self.common)
            && offset.is_multiple_of(self.step)
    }
}

/// The I/O of a trace to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    /// The name of the file in the trace.
    pub name: FileName,
    /// I/Os per direction.
    pub ios: PerDirection<u64>,
    /// The highest end of an I/O of each direction, in bytes.
    pub end: PerDirection<u64>,
    /// The place of that I/O.
    pub farthest: PerDirection<Option<Place>>,
    /// The place of the first I/O of each direction.
    pub first: PerDirection<Option<Place>>,
}

impl ScannedFile {
    fn new(name: FileName) -> Self {
        ScannedFile {
            name,
            ios: PerDirection::all(0),
            end: PerDirection::all(0),
            farthest: PerDirection::all(None),
            first: PerDirection::all(None),
        }
    }

    fn count(&mut self, direction: Direction, end: u64, place: Place) {
        self.ios[direction] += 1;
        self.first[direction].get_or_insert(place);
        if end > self.end[direction] {
            self.end[direction] = end;
            self.farthest[direction] = Some(place);
        }
    }
}

/// Goes through a trace after `mapping`. `most` limits the bytes of a read or write, because it needs that much memory.
///
/// # Errors
///
/// The trace cannot be read to its end, no I/O is left after `mapping`, or a read or write has more than `most` bytes.
pub fn scan<S: Read>(
    mut reader: TraceReader<S>,
    path: &Path,
    mapping: &Mapping,
    most: u64,
) -> Result<Scan, TraceError> {
    let mut scan = Scan::default();
    let (mut first_ns, mut last_ns) = (None, 0);
    let format = reader.format();
    while let Some(record) = reader.next_record()? {
        for name in &reader.files()[scan.files.len()..] {
            scan.files.push(ScannedFile::new(name.clone()));
        }
        let first = *first_ns.get_or_insert(record.time_ns);
        last_ns = record.time_ns.max(last_ns).max(first);
        let Some(Event::Io { operation, offset, length }) = mapping.apply(record.event, format) else {
            continue;
        };
        let Some(direction) = operation.direction() else {
            scan.syncs += 1;
            continue;
        };
        let place = reader.place();
        if direction != Direction::Trim && length > most {
            let message = format!(
                "a {} of {length} bytes is larger than {most} bytes, so it is taken for damage; bs={length} allows it",
                direction.name()
            );
            return Err(TraceError::new(&name_of(path), place, message));
        }
        scan.files[record.file as usize].count(direction, offset + length, place);
        scan.ios[direction] += 1;
        scan.blocks[direction].count(offset, length, place);
        scan.bytes[direction] = scan.bytes[direction].saturating_add(length);
        if operation != Operation::Trim {
            scan.largest = scan.largest.max(length);
        }
    }
    scan.duration_ns = last_ns - first_ns.unwrap_or(0);
    if scan.ios.values == [0; 3] && scan.syncs == 0 {
        return Err(TraceError::new(&name_of(path), Place::Whole, "there is no I/O in it to replay"));
    }
    Ok(scan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str, mapping: &Mapping) -> Result<Scan, String> {
        let reader = TraceReader::new(text.as_bytes(), "t").unwrap();
        scan(reader, Path::new("t"), mapping, 8192).map_err(|error| error.to_string())
    }

    const LOG: &str = "fio version 3 iolog\n5 f add\n5 g add\n6 f open\n7 f write 4096 512\n8 f read 0 8192\n\
                       9 f sync 0 0\n105 f trim 0 1048576\n";

    #[test]
    fn each_file_has_its_ends() {
        let scan = scanned(LOG, &Mapping::default()).unwrap();
        assert_eq!(
            (scan.ios.values, scan.syncs, scan.largest, scan.duration_ns),
            ([1, 1, 1], 1, 8192, 100_000)
        );
        assert_eq!(scan.files.len(), 2);
        assert_eq!(scan.files[0].end.values, [8192, 4608, 1 << 20]);
        assert_eq!(scan.files[0].first[Direction::Read], Some(Place::Line(6)));
        assert_eq!(scan.files[1].ios.values, [0; 3]);
        assert_eq!(
            scan.files[0].farthest.values,
            [Some(Place::Line(6)), Some(Place::Line(5)), Some(Place::Line(8))]
        );
    }

    #[test]
    fn common_sizes_and_offsets_of_ios_are_known() {
        let log =
            format!("{LOG}200 f write 12288 2048\n200 g open\n201 g write 6144 1024\n202 g write 0 512\n");
        let blocks = scanned(&log, &Mapping::default()).unwrap().blocks;
        let writes = Blocks {
            smallest: 512,
            smallest_at: Some(Place::Line(5)),
            largest: 2048,
            common: 512,
            step: 512,
        };
        assert_eq!(blocks[Direction::Write], writes);
        assert!(writes.may_hold(1536, 1024) && !writes.may_hold(256, 512) && !writes.may_hold(0, 768));
        assert!(!writes.may_hold(0, 4096));
        assert_eq!((blocks[Direction::Read].common, blocks[Direction::Read].step), (8192, 8192));
        assert!(!Blocks::default().may_hold(0, 512));
        // The offsets are those of the replay.
        let odd = scanned(&log, &Mapping { divisor: 3, ..Mapping::default() }).unwrap().blocks;
        assert_eq!((odd[Direction::Write].common, odd[Direction::Write].step), (512, 1));
    }

    #[test]
    fn an_io_that_is_too_large_has_its_place() {
        let error = scanned(&format!("{LOG}200 f write 0 8193\n"), &Mapping::default()).unwrap_err();
        assert_eq!(
            error,
            "t:9: a write of 8193 bytes is larger than 8192 bytes, so it is taken for damage; bs=8193 allows it"
        );
    }

    #[test]
    fn skipped_operations_are_not_counted() {
        let skip = crate::Kinds { read: true, trim: true, sync: true, write: false };
        let scan = scanned(LOG, &Mapping { skip, ..Mapping::default() }).unwrap();
        assert_eq!((scan.ios.values, scan.syncs, scan.largest), ([0, 1, 0], 0, 512));
        let all = crate::Kinds { write: true, ..skip };
        let error = scanned(LOG, &Mapping { skip: all, ..Mapping::default() }).unwrap_err();
        assert_eq!(error, "t: there is no I/O in it to replay");
    }
}
