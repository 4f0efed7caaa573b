//! The generator for every workload: several files, several sizes, part random, with skips and runs.
//!
//! What was learned from fio's I/O logs and holds here as well:
//!
//! - Each direction has its own position in each file: in `rw=rw` the writes follow the writes. Random offsets
//!   of reads and writes come from one map.
//! - A mix is drawn anew for each I/O; it is not corrected afterwards, and counts I/Os, not bytes.
//! - A sequential workload ends on a file where the next I/O of the drawn direction does not fit any more; the
//!   rest that is smaller than the smallest size is not used.
//! - `rw=write:4k` adds 4k after each I/O. A position past the end wraps to the start of the region when that
//!   is the whole file, and finishes the file when it is a part; a negative one wraps to as much before its
//!   end as the skip is long. A file that wraps is never finished: the number of bytes ends the pass. Only
//!   where an I/O would straddle the end is it finished.
//! - `rw=randread:8` counts its runs over all directions. A run that reaches the end of the region goes on at
//!   another random place.
//! - A pass of more bytes than there are (`io_size` > `size`) starts over on all files when all are finished,
//!   unless less than one block is missing. A time based one wraps each direction by itself when there is one
//!   file. Any other pass is over when all files are finished, even if rests of blocks remained unused.
//! - `number_ios` does not end a time based job; with `loops` it counts for each of them.
//! - Each trim of trimwrite is followed by the write of the same range; bytes and I/Os are counted in pairs.
//! - Without coverage a file is never finished, so `file_service_type=sequential` stays with the first one.

use crate::{
    Error, Generator, Io, Mix, Next, Region, Spec,
    coverage::{Coverage, Place, Strategy, directions, random_size, sequential_size},
    rng::Rng,
    rotation::Rotation,
    sizes::Sizes,
};
use iolite_types::Direction;

/// The streams of random numbers of a worker, one per kind of choice.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    pub(crate) mix: Rng,
    pub(crate) offsets: Rng,
    pub(crate) lengths: Rng,
    pub(crate) files: Rng,
    pub(crate) jumps: Rng,
}

impl Streams {
    pub(crate) fn new(seed: u64) -> Self {
        let stream = |number| Rng::stream(seed, number);
        Streams { mix: stream(0), offsets: stream(1), lengths: stream(2), files: stream(3), jumps: stream(4) }
    }
}

/// What is needed to place the I/Os of one direction.
#[derive(Clone, Debug)]
struct Rules {
    random_percent: u32,
    random: Sizes,
    sequential: Sizes,
}

/// Where a worker is in one file. Offsets are relative to the region.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    coverage: Coverage,
    /// The last I/O of each direction.
    last: [Option<Place>; 3],
    /// What has been trimmed and is still to be written.
    trimmed: Option<Place>,
}

/// Any workload.
#[derive(Clone, Debug)]
pub struct General {
    mix: Mix,
    rules: [Rules; 3],
    files: Vec<File>,
    rotation: Rotation,
    announce_close: bool,
    streams: Streams,
    seed: u64,
    endless: bool,
    skip: i64,
    skip_wraps: bool,
    ios_per_random: u64,
    identical: bool,
    /// I/Os that are left of a run that follows a random offset.
    run_left: u64,
    /// A direction that was drawn but found no room on its file.
    held: Option<Direction>,
    bytes: u64,
    byte_limit: u64,
    /// All files may be started over within a pass.
    laps: bool,
    ios: u64,
    io_limit: u64,
    ios_at_lap: u64,
    smallest: u64,
}

/// The bytes of all regions.
fn region_bytes(spec: &Spec) -> u64 {
    spec.files.iter().fold(0, |sum, region| sum.saturating_add(region.length))
}

/// The bytes of a pass.
pub(crate) fn byte_limit(spec: &Spec) -> u64 {
    if spec.endless { u64::MAX } else { spec.pass_bytes.unwrap_or_else(|| region_bytes(spec)) }
}

/// Whether a pass starts over when the regions are exhausted.
pub(crate) fn has_laps(spec: &Spec) -> bool {
    spec.endless || spec.pass_bytes.is_some_and(|bytes| bytes > region_bytes(spec))
}

/// The I/Os of a pass.
pub(crate) fn io_limit(spec: &Spec) -> u64 {
    if spec.endless { u64::MAX } else { spec.total_ios.unwrap_or(u64::MAX) }
}

impl General {
    /// The generator of `spec`. Fails when a map of visited blocks is needed and its memory cannot be had.
    pub fn new(spec: &Spec) -> Result<Self, Error> {
        let strategy = Strategy::of(spec);
        let files = (spec.files.iter().enumerate())
            .map(|(index, &region)| {
                let coverage = Coverage::new(spec, strategy, region.length, index)?;
                Ok(File { region, coverage, last: [None; 3], trimmed: None })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let rules = Direction::ALL.map(|direction| Rules {
            random_percent: spec.random_percent[direction],
            random: Sizes::new(random_size(spec, direction), spec.unaligned),
            sequential: Sizes::new(sequential_size(spec, direction), spec.unaligned),
        });
        let smallest = directions(spec)
            .iter()
            .map(|&direction| {
                let rules = &rules[direction.index()];
                match rules.random_percent {
                    0 => rules.sequential.min(),
                    100.. => rules.random.min(),
                    _ => rules.sequential.min().min(rules.random.min()),
                }
            })
            .min()
            .unwrap_or(1);
        let count = u32::try_from(files.len()).map_err(|_| Error::TooManyFiles(files.len()))?;
        Ok(General {
            mix: spec.mix,
            rules,
            rotation: Rotation::new(spec.file_order, count, spec.open_files, spec.ios_per_file),
            announce_close: spec.open_files < files.len(),
            files,
            streams: Streams::new(spec.seed),
            seed: spec.seed,
            endless: spec.endless,
            skip: spec.sequential_skip,
            skip_wraps: spec.skip_wraps,
            ios_per_random: spec.ios_per_random.max(1),
            identical: spec.identical,
            run_left: 0,
            held: None,
            bytes: 0,
            byte_limit: byte_limit(spec),
            laps: has_laps(spec),
            ios: 0,
            io_limit: io_limit(spec),
            ios_at_lap: 0,
            smallest,
        })
    }

    #[inline(always)]
    fn limit_reached(&self) -> bool {
        self.bytes >= self.byte_limit || self.ios >= self.io_limit
    }

    #[inline(always)]
    fn draw_direction(&mut self) -> Direction {
        match self.mix {
            Mix::Single(direction) => direction,
            Mix::ReadWrite(percent) => draw_mix(&mut self.streams.mix, percent),
            Mix::TrimWrite => Direction::Trim,
        }
    }

    /// A place for an I/O on a file; `None` when there is none any more.
    #[inline(always)]
    fn place(&mut self, file: usize, direction: Direction) -> Option<Place> {
        let percent = self.rules[direction.index()].random_percent;
        if percent == 0 {
            return self.follow(file, direction, self.skip);
        }
        if self.run_left > 0 {
            self.run_left -= 1;
            if self.identical {
                return self.repeat(file, direction);
            }
        } else if percent >= 100 || self.streams.jumps.percent(percent) {
            self.run_left = self.ios_per_random - 1;
            return self.jump(file, direction);
        }
        self.follow(file, direction, 0).or_else(|| self.jump(file, direction))
    }

    /// A random place.
    #[inline(always)]
    fn jump(&mut self, file: usize, direction: Direction) -> Option<Place> {
        let Streams { offsets, lengths, .. } = &mut self.streams;
        let sizes = &self.rules[direction.index()].random;
        let coverage = &mut self.files[file].coverage;
        if let Some(place) = coverage.next(direction, sizes, offsets, lengths) {
            return Some(place);
        }
        if !self.endless {
            return None;
        }
        coverage.restart();
        coverage.next(direction, sizes, offsets, lengths)
    }

    /// The place after the last I/O of the direction.
    #[inline(always)]
    fn follow(&mut self, file: usize, direction: Direction, skip: i64) -> Option<Place> {
        let rules = &self.rules[direction.index()];
        let File { region, last, .. } = &self.files[file];
        let mut offset = match last[direction.index()] {
            None => 0,
            Some(last) if skip == 0 => last.offset + last.length,
            Some(last) => skipped(last.offset + last.length, skip, region.length, self.skip_wraps),
        };
        let smallest = rules.sequential.min();
        if offset.saturating_add(smallest) > region.length {
            // Where a single file has no end, each direction wraps by itself. What is partly random has
            // several ways on and wraps on any number of files.
            let wraps = self.endless && (self.files.len() == 1 || rules.random_percent > 0);
            if !wraps || smallest > region.length {
                return None;
            }
            offset = 0;
        }
        let length = rules.sequential.draw(&mut self.streams.lengths, region.length - offset);
        Some(Place { offset, length })
    }

    /// The place of the last I/O of the direction once more.
    fn repeat(&mut self, file: usize, direction: Direction) -> Option<Place> {
        let sizes = &self.rules[direction.index()].random;
        let File { region, last, .. } = &self.files[file];
        let offset = last[direction.index()].map_or(0, |last| last.offset);
        let room = region.length - offset;
        (room >= sizes.min()).then(|| Place { offset, length: sizes.draw(&mut self.streams.lengths, room) })
    }

    /// Starts over on all files; false when the pass is over instead.
    #[cold]
    fn lap(&mut self) -> bool {
        let anything_issued = self.ios > self.ios_at_lap;
        if !self.laps || !anything_issued || self.byte_limit - self.bytes < self.smallest {
            return false;
        }
        self.start_lap();
        true
    }

    fn start_lap(&mut self) {
        self.ios_at_lap = self.ios;
        self.rotation.restart();
        for file in &mut self.files {
            file.coverage.restart();
            file.last = [None; 3];
            file.trimmed = None;
        }
    }

    /// Forgets the pass; what is random goes on from where it was.
    fn reset_pass(&mut self) {
        self.bytes = 0;
        self.ios = 0;
        self.run_left = 0;
        self.held = None;
        self.start_lap();
    }

    #[inline(always)]
    fn io(&self, file: usize, direction: Direction, place: Place) -> Next {
        let offset = self.files[file].region.offset + place.offset;
        Next::Io(Io { offset, length: place.length, file: file as u32, direction })
    }

    /// The write that a trim of the file is waiting for.
    #[inline(always)]
    fn pending_write(&mut self, file: usize) -> Option<Next> {
        let place = self.files[file].trimmed.take()?;
        Some(self.io(file, Direction::Write, place))
    }

    /// After the last trim: the writes that are still due.
    #[cold]
    fn last_writes(&mut self) -> Next {
        if self.mix == Mix::TrimWrite {
            for file in 0..self.files.len() {
                if let Some(write) = self.pending_write(file) {
                    return write;
                }
            }
        }
        Next::Done
    }
}

/// Reads in `percent` of 100 cases, else writes.
#[inline(always)]
pub(crate) fn draw_mix(rng: &mut Rng, percent: u32) -> Direction {
    if rng.percent(percent) { Direction::Read } else { Direction::Write }
}

/// The position after `end`, `skip` bytes on, wrapped into a region of `length` bytes or left at its end.
fn skipped(end: u64, skip: i64, length: u64, wraps: bool) -> u64 {
    match end.checked_add_signed(skip) {
        Some(position) if position < length => position,
        Some(_) if !wraps => length,
        None if skip < 0 => length.saturating_sub(skip.unsigned_abs()),
        _ => 0,
    }
}

impl Generator for General {
    #[inline]
    fn next(&mut self) -> Next {
        loop {
            if self.limit_reached() {
                return self.last_writes();
            }
            let Some(file) = self.rotation.current(&mut self.streams.files) else {
                if self.lap() {
                    continue;
                }
                return Next::Done;
            };
            let index = file as usize;
            if self.mix == Mix::TrimWrite
                && let Some(write) = self.pending_write(index)
            {
                self.rotation.issued();
                return write;
            }
            let direction = match self.held.take() {
                Some(direction) => direction,
                None => self.draw_direction(),
            };
            let Some(place) = self.place(index, direction) else {
                self.held = Some(direction);
                self.rotation.finished();
                if self.announce_close {
                    return Next::Close(file);
                }
                continue;
            };
            let state = &mut self.files[index];
            state.last[direction.index()] = Some(place);
            if self.mix == Mix::TrimWrite {
                state.trimmed = Some(place);
            }
            self.bytes = self.bytes.saturating_add(place.length);
            self.ios += 1;
            self.rotation.issued();
            return self.io(index, direction, place);
        }
    }

    fn restart(&mut self) {
        self.reset_pass();
    }

    fn rewind(&mut self) {
        self.reset_pass();
        self.streams = Streams::new(self.seed);
        for (index, file) in self.files.iter_mut().enumerate() {
            file.coverage.rewind(self.seed, index);
        }
    }
}
