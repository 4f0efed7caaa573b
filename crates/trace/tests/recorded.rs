//! Tests with traces that blktrace recorded on a real machine: our figures are those of blkparse and btt
//! (tests/data/README.md).

use iolite_trace::blk::{self, BlkReader, BlkRecord, ByteOrder};
use iolite_trace::summary::{Step, Summary, summarise};
use iolite_trace::{Event, FileName, MergeInput, TraceReader, merge};
use iolite_types::{Direction, Operation};
use std::fs;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap()
}

fn summary(bytes: &[u8]) -> Summary {
    summarise(TraceReader::new(bytes, "t").unwrap()).unwrap()
}

/// The same trace as from a machine with the other byte order.
fn swapped(bytes: &[u8]) -> Vec<u8> {
    let mut reader = BlkReader::new(bytes, "t");
    let (mut record, mut other) = (BlkRecord::default(), Vec::new());
    while reader.read(&mut record).unwrap() {
        assert_eq!(reader.order(), ByteOrder::Little);
        blk::write(&mut other, ByteOrder::Big, &record).unwrap();
    }
    assert_eq!(other.len(), bytes.len());
    other
}

/// The events with the names of their files and times relative to the first event.
fn events(bytes: &[u8]) -> Vec<(u64, FileName, Event)> {
    let mut reader = TraceReader::new(bytes, "t").unwrap();
    let mut events = Vec::new();
    let mut first = None;
    while let Some(record) = reader.next_record().unwrap() {
        let first = *first.get_or_insert(record.time_ns);
        events.push((record.time_ns - first, reader.files()[record.file as usize].clone(), record.event));
    }
    events
}

/// The queued I/Os according to the lines of blkparse. A flush precedes the data of its record.
fn queued() -> Vec<(FileName, Event)> {
    let text = String::from_utf8(bytes("queued.txt")).unwrap();
    let mut queued = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (device, kind) = (words.next().unwrap(), words.next().unwrap());
        let [sector, sectors] = [(); 2].map(|()| words.next().unwrap().parse::<u64>().unwrap());
        let (major, minor) = device.split_once(',').unwrap();
        let device = FileName::Device { major: major.parse().unwrap(), minor: minor.parse().unwrap() };
        let mut push = |operation, offset, length| {
            queued.push((device.clone(), Event::Io { operation, offset, length }));
        };
        let (kind, has_flush) = kind.strip_prefix('F').map_or((kind, false), |kind| (kind, true));
        if has_flush {
            push(Operation::Sync, 0, 0);
        }
        let operation = match kind.as_bytes()[0] {
            b'R' => Operation::Read,
            b'W' => Operation::Write,
            b'D' => Operation::Trim,
            other => panic!("{other}"),
        };
        if sectors > 0 {
            push(operation, sector * 512, sectors * 512);
        }
    }
    queued
}

/// Smallest, mean and largest time in seconds, and their number, as btt prints them.
#[test]
fn steps_take_as_long_as_for_btt() {
    let btt = [
        (Step::Q2G, "0.000003250 0.000154675 0.007022180 76"),
        (Step::G2I, "0.000002580 0.000252098 0.005086510 48"),
        (Step::Q2M, "0.000000990 0.000029781 0.000348770 13"),
        (Step::I2D, "0.000023640 0.000182020 0.002324690 40"),
        (Step::M2D, "0.000228710 0.000360127 0.000681770 13"),
        (Step::D2C, "0.000042090 0.002632007 0.013384680 81"),
        (Step::Q2C, "0.000051420 0.002979127 0.013467440 81"),
    ];
    for trace in [bytes("both.dump"), swapped(&bytes("both.dump"))] {
        let steps = summary(&trace).steps.unwrap();
        for (step, expected) in btt {
            let times = &steps.of(step).moments;
            let [min, sum, max] = [times.min as f64, times.sum as f64, times.max as f64].map(|ns| ns / 1e9);
            let mean = sum / times.count as f64;
            assert_eq!(format!("{min:.9} {mean:.9} {max:.9} {}", times.count), expected, "{}", step.name());
        }
    }
    assert!(summary(b"fio version 3 iolog\n0 f add\n0 f open\n10 f read 0 4096\n").steps.is_none());
}

#[test]
fn figures_are_those_of_blkparse_and_btt() {
    for trace in [bytes("both.dump"), swapped(&bytes("both.dump"))] {
        let summary = summary(&trace);
        let of = |direction| {
            let measured = &summary.directions[direction];
            (measured.ios, measured.bytes / 1024)
        };
        assert_eq!(of(Direction::Read), (26 + 14, 120 + 125));
        // blkparse counts discards (there is one) and flushes without data as writes.
        let flushes = 7 + 5;
        assert_eq!(of(Direction::Trim), (1, 512));
        assert_eq!(of(Direction::Write), (32 + 25 - 1 - flushes, 860 + 108 - 512));
        assert_eq!(summary.syncs, flushes + 2);
        assert_eq!((summary.gaps.count, summary.gaps.min, summary.gaps.max), (84, 3_520, 3_983_348_690));
        assert_eq!(summary.gaps.mean() as u64, 138_431_101);
        let depth = summary.depth.as_ref().unwrap();
        assert_eq!(depth.most, 5);
        assert_eq!(depth.mean(), 277_464_130.0 / summary.duration_ns as f64);
        assert_eq!(depth.busy_percent(), 182_914_700.0 * 100.0 / summary.duration_ns as f64);
    }
}

#[test]
fn each_processors_part_can_be_read_alone() {
    let ios = |name: &str| {
        let summary = summary(&bytes(name));
        summary.directions.values.map(|direction| direction.ios)
    };
    let sum = |one: [u64; 3], other: [u64; 3]| [one[0] + other[0], one[1] + other[1], one[2] + other[2]];
    assert_eq!(sum(ios("nullb0.blktrace.0"), ios("nullb0.blktrace.1")), [26, 24, 1]);
    assert_eq!(sum(ios("vda.blktrace.0"), ios("vda.blktrace.1")), [14, 20, 0]);
}

#[test]
fn the_order_is_that_in_which_it_was_queued() {
    let is_io =
        |(_, file, event): (u64, FileName, Event)| matches!(event, Event::Io { .. }).then_some((file, event));
    let both = bytes("both.dump");
    let found: Vec<_> = events(&both).into_iter().filter_map(is_io).collect();
    assert_eq!(found, queued());
    assert_eq!(events(&swapped(&both)), events(&both));
}

#[test]
fn parts_that_are_merged_are_the_whole() {
    let parts = ["nullb0.blktrace.0", "nullb0.blktrace.1", "vda.blktrace.0", "vda.blktrace.1"];
    let inputs = parts.map(|name| MergeInput { path: path(name), percent: 100.0, times: 1 });
    let mut merged = Vec::new();
    merge(&inputs, &mut merged, "merged").unwrap();
    assert_eq!(events(&merged), events(&bytes("both.dump")));
}
