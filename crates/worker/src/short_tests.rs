//! Short I/Os, several at a time. An engine with its data in memory plays a storage that often moves only half of an
//! I/O and completes I/Os in any order.

use super::delay_tests::{TimerEngine, moved, run_plan};
use super::*;
use iolite_engine::{Completion, Errno, FileSpec, OpenMode, Queued, Storage, Stored, Unit};
use iolite_options::{
    BlockSizes, DepthOptions, ExtentOptions, JobOptions, MeasurementOptions, PatternOptions, Range,
    ReadWrite, RunOptions, SizeValue, Verify,
};
use iolite_plan::Plan;
use iolite_types::{Direction, PerDirection};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The size of the file in bytes.
const SIZE: u64 = 64 << 10;

/// Moves data when the timer completes a unit.
struct MemoryEngine {
    timer: TimerEngine<false>,
    data: Vec<u8>,
    /// The units in flight, by index.
    flying: Vec<Option<Flying>>,
    /// How many I/Os were issued while one that they overlap was in flight.
    overlaps: Arc<AtomicU64>,
}

/// A unit, and the I/O that it belongs to.
#[derive(Clone, Copy)]
struct Flying {
    buffer: *mut u8,
    offset: usize,
    length: usize,
    writes: bool,
    /// The start of the I/O.
    start: usize,
    /// Part of the I/O is complete.
    is_rest: bool,
}

impl Flying {
    fn end(&self) -> usize {
        self.offset + self.length
    }
}

impl MemoryEngine {
    fn new(timer: TimerEngine<false>, depth: u32) -> MemoryEngine {
        let flying = vec![None; depth as usize];
        MemoryEngine { timer, data: vec![0; SIZE as usize], flying, overlaps: Arc::default() }
    }

    fn transfer(&mut self, done: &Completion) {
        let flying = &mut self.flying[done.unit as usize];
        let (Some(unit), Ok(bytes)) = (*flying, done.outcome) else { panic!("{done:?}") };
        let bytes = bytes as usize;
        // SAFETY: the buffer of a unit that is in flight has room for its length.
        let buffer = unsafe { std::slice::from_raw_parts_mut(unit.buffer, bytes) };
        let data = &mut self.data[unit.offset..unit.offset + bytes];
        if unit.writes {
            data.copy_from_slice(buffer)
        } else {
            buffer.copy_from_slice(data)
        }
        *flying = (bytes < unit.length).then_some(Flying { is_rest: true, ..unit });
    }
}

impl Engine for MemoryEngine {
    const SYNCHRONOUS: bool = false;

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> io::Result<()> {
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let before = self.flying[unit.index as usize].take();
        let rest = before.filter(|before| before.is_rest);
        let (offset, length) = (unit.offset as usize, unit.length as usize);
        let start = rest.map_or(offset, |rest| rest.start);
        let writes = unit.operation == Direction::Write.into();
        let new = Flying { buffer: unit.buffer, offset, length, writes, start, is_rest: false };
        let meets = |other: &Flying| other.start < new.end() && new.start < other.end();
        if rest.is_none() && self.flying.iter().flatten().any(meets) {
            self.overlaps.fetch_add(1, Relaxed);
        }
        self.flying[unit.index as usize] = Some(new);
        // SAFETY: the timer does not touch the buffer.
        unsafe { self.timer.queue(unit) }
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        self.timer.commit()
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        time: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let before = done.len();
        self.timer.reap(min, max, time, done)?;
        done[before..].iter().for_each(|done| self.transfer(done));
        Ok(())
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Some(self)
    }
}

/// The engine's own storage, with one file that exists from the start and is never lost.
impl Storage for MemoryEngine {
    fn size(&mut self, _: &Path) -> io::Result<Option<u64>> {
        Ok(Some(SIZE))
    }

    fn open(&mut self, _: &Path) -> io::Result<Box<dyn Stored + '_>> {
        unreachable!("nothing has to be laid out")
    }

    fn sync(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn unlink(&mut self, _: &Path) -> io::Result<()> {
        unreachable!("the job does not ask for it")
    }

    fn list(&mut self, _: &Path, _: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        unreachable!("the job does not ask for it")
    }
}

/// Runs a job on a storage on which every third I/O is short. Returns the measurements, how many I/Os overlapped one in
/// flight, and why the job failed.
fn run_with_shorts(options: JobOptions) -> (Arc<Arena>, u64, Result<(), String>) {
    let time = moved();
    let engine = MemoryEngine::new(TimerEngine::new(time, 3), options.depth.iodepth);
    let overlaps = Arc::clone(&engine.overlaps);
    let machine = iolite_host::MadeUp::new();
    let mut plan =
        Plan::build(vec![options], &RunOptions::default(), &machine).expect("the plan is in order");
    let layouts = plan.layouts(&machine, &iolite_plan::NoStorages).expect("the layout is in order");
    plan.jobs[0].engine.facets.data = Data::OwnStorage;
    let (arena, done) = run_plan(&plan, &layouts[0], time.clock(), engine);
    (arena, overlaps.load(Relaxed), done)
}

/// Runs a job that writes to the same places many times. Returns how many I/Os overlapped one in flight.
fn overlaps(seed: u64, change: impl FnOnce(&mut JobOptions)) -> (u64, Result<(), String>) {
    let mut options = JobOptions {
        name: "shorts".into(),
        ioengine: "libaio".into(),
        pattern: PatternOptions {
            rw: ReadWrite::RandWrite,
            block_sizes: PerDirection::all(BlockSizes::Range(Range { low: 1024, high: 8192 })),
            norandommap: true,
            randseed: seed,
            ..PatternOptions::default()
        },
        extent: ExtentOptions {
            size: Some(SizeValue::Bytes(SIZE)),
            io_size: Some(SizeValue::Bytes(1 << 20)),
            ..ExtentOptions::default()
        },
        depth: DepthOptions { iodepth: 8, ..DepthOptions::default() },
        ..JobOptions::default()
    };
    change(&mut options);
    let (_, overlaps, done) = run_with_shorts(options);
    (overlaps, done)
}

/// All of a short I/O is in flight until its rest is complete. Otherwise a newer write to the part already moved would
/// count as older than it.
#[test]
fn nothing_overtakes_the_rest_of_a_short_io() {
    for seed in 1..20 {
        let verify = |options: &mut JobOptions| {
            options.verification.verify = Verify::Crc32c;
            options.verification.do_verify = true;
            options.verification.verify_write_sequence = true;
            options.verification.verify_header_seed = true;
        };
        assert_eq!(overlaps(seed, verify), (0, Ok(())), "{seed}");
        assert_eq!(overlaps(seed, |options| options.depth.serialize_overlap = true), (0, Ok(())), "{seed}");
    }
    let (unordered, done) = overlaps(1, |_| ());
    assert!(unordered > 0 && done.is_ok(), "{done:?}");
}

/// A short write counts with all of its bytes when its rest is complete.
#[test]
fn blocks_that_a_short_write_began_are_written() {
    let options = JobOptions {
        name: "shorts".into(),
        ioengine: "libaio".into(),
        pattern: PatternOptions {
            rw: ReadWrite::Write,
            bs: PerDirection::new(16 << 10, 16 << 10, 4 << 10),
            ..PatternOptions::default()
        },
        extent: ExtentOptions { size: Some(SizeValue::Bytes(SIZE)), ..ExtentOptions::default() },
        measurement: MeasurementOptions { block_error_percentiles: true, ..MeasurementOptions::default() },
        ..JobOptions::default()
    };
    let (arena, _, done) = run_with_shorts(options);
    assert_eq!(done, Ok(()));
    let stats = &arena.slot(0).stats;
    assert!(stats.directions[Direction::Write.index()].short.get() > 0);
    let states = stats.blocks.read().states;
    assert_eq!(states[iolite_stats::BlockState::Written as usize], SIZE / 4096, "{states:?}");
}
