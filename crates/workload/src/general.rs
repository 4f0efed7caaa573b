//! The generator for any workload: several files, several block sizes, partly random, with skips and runs.
//!
//! These rules were observed in fio's I/O logs and hold here as well:
//!
//! - Each direction has its own position in each file: in `rw=rw` the writes follow the writes. Random offsets
//!   of reads and writes come from one map.
//! - The direction of a mix is drawn for each I/O independently. The mix counts I/Os, not bytes, and is not corrected
//!   afterwards.
//! - A sequential workload finishes a file when the next I/O of the drawn direction does not fit. A rest that is
//!   smaller than the smallest size stays unused.
//! - `rw=write:4k` adds 4k to the offset after each I/O. If the new offset is past the end of the region and the region
//!   is the whole file, it wraps to the start. The file is finished instead if the last I/O reached the end, if the
//!   region is a part of a file, or if the next I/O would straddle the end. A negative skip wraps to the end of the
//!   region minus the length of the skip. As long as the offset wraps, the file is not finished, and the number of
//!   bytes ends the pass.
//! - The runs of `rw=randread:8` count the I/Os of all directions together. A run that reaches the end of the region
//!   continues at another random offset.
//! - A pass of more bytes than the files have (`io_size` > `size`) starts over when all files are finished, unless less
//!   than one block is missing. In a time based pass over one file, each direction wraps by itself. Any other pass is
//!   over when all files are finished, even if rests of blocks stay unused.
//! - `number_ios` does not end a time based job. With `loops`, each loop counts separately. It can end a job during its
//!   ramp, but when the ramp is over, the I/Os of the ramp do not count.
//! - In trimwrite, each trim is followed by a write of the same range; the pair counts once, in bytes and in I/Os.
//! - Without coverage a file is never finished, so `file_service_type=sequential` stays with the first file.

use crate::{
    Error, Generator, Io, Mix, Next, Region, Spec,
    coverage::{Coverage, Strategy, directions, random_size, sequential_size},
    offset::Tables,
    place::Place,
    rng::{Rng, SplitMix64},
    rotation::Rotation,
    sizes::Sizes,
    strided::Strides,
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

/// The kinds of random choices, each with its seed for a worker with this seed. The position in the list is the number
/// of the stream that the choices are drawn from.
pub fn stream_seeds(seed: u64) -> [(&'static str, u64); 5] {
    let kinds = ["reads and writes of a mix", "offsets", "block sizes", "files", "which I/Os are random"];
    std::array::from_fn(|stream| (kinds[stream], SplitMix64::seed_of(seed, stream as u64)))
}

impl Streams {
    /// The streams in the order of [`stream_seeds`].
    pub(crate) fn new(seed: u64) -> Self {
        let stream = |number| Rng::stream(seed, number);
        Streams { mix: stream(0), offsets: stream(1), lengths: stream(2), files: stream(3), jumps: stream(4) }
    }
}

/// The rules for placing the I/Os of one direction.
#[derive(Clone, Debug)]
struct Rules {
    random_percent: u32,
    random: Sizes,
    sequential: Sizes,
}

/// The position of a worker in one file. Offsets are relative to the region.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    coverage: Coverage,
    /// The last I/O of each direction.
    last: [Option<Place>; 3],
    /// The place that was trimmed and has yet to be written.
    trimmed: Option<Place>,
    /// The zones that the region is divided into.
    zones: Option<Box<Zoned>>,
}

/// The zones of a file. The file's `coverage` covers one full zone; if the last zone is shorter, `cut` covers it.
#[derive(Clone, Debug)]
struct Zoned {
    strides: Strides,
    cut: Option<Coverage>,
    in_cut: bool,
    /// In an endless workload, sequential I/O from this byte of the region on starts over in its zone. (That of any
    /// other workload goes on, and the end of a zone that the region cuts short finishes the file.)
    starts_over_at: Option<u64>,
}

/// Added to the file's number, so that a shorter last zone has other keys than the full zones.
const CUT_ZONE: usize = 1 << 32;

impl File {
    /// The `index`th file. `block` is the largest of the smallest block sizes of the directions.
    fn new(
        spec: &Spec,
        index: usize,
        strategy: Strategy,
        block: u64,
        tables: &mut Tables,
    ) -> Result<Self, Error> {
        let region = spec.files[index];
        let mut coverage = |length, key| Coverage::new(spec, strategy, length, key, tables);
        let Some(zones) = spec.zones else {
            let coverage = coverage(region.length, index)?;
            return Ok(File { region, coverage, last: [None; 3], trimmed: None, zones: None });
        };
        let strides = Strides::new(zones, region.length, block);
        let (full, cut) = strides.reaches();
        let full = coverage(full, index)?;
        let cut = cut.map(|length| coverage(length, index | CUT_ZONE)).transpose()?;
        let amount = spec.amounts.get(index).copied().unwrap_or(region.length);
        let starts_over_at = spec.endless.then_some(amount);
        let zones = Some(Box::new(Zoned { strides, cut, in_cut: false, starts_over_at }));
        Ok(File { region, coverage: full, last: [None; 3], trimmed: None, zones })
    }

    /// Moves to the next zone. Returns false if that finishes the file.
    fn advance(&mut self) -> bool {
        let Some(zones) = &mut self.zones else { return true };
        let goes_on = zones.strides.advance() || zones.starts_over_at.is_some();
        zones.in_cut = zones.cut.is_some() && zones.strides.is_cut();
        self.last = [None; 3];
        match &mut zones.cut {
            Some(cut) if zones.in_cut => cut.restart(),
            _ => self.coverage.restart(),
        }
        goes_on
    }

    /// Starts another lap.
    fn restart(&mut self) {
        self.coverage.restart();
        self.last = [None; 3];
        self.trimmed = None;
        if let Some(zones) = &mut self.zones {
            zones.strides.restart();
            zones.in_cut = false;
            if let Some(cut) = &mut zones.cut {
                cut.restart();
            }
        }
    }

    /// Goes back to the first lap.
    fn rewind(&mut self, seed: u64, index: usize) {
        self.coverage.rewind(seed, index);
        if let Some(cut) = self.zones.as_mut().and_then(|zones| zones.cut.as_mut()) {
            cut.rewind(seed, index | CUT_ZONE);
        }
    }

    /// The first byte and the end of the range in which an I/O may begin.
    #[inline(always)]
    fn bounds(&self) -> (u64, u64) {
        match &self.zones {
            None => (0, self.region.length),
            Some(zones) => (zones.strides.start(), zones.strides.end()),
        }
    }
}

/// Any workload.
#[derive(Clone, Debug)]
pub struct General {
    /// The direction to which the mix is steered, if any.
    steered: Option<Direction>,
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
    announce_laps: bool,
    ios_per_random: u64,
    identical: bool,
    /// The remaining I/Os of the run that began at a random offset.
    run_left: u64,
    /// A direction that was drawn, but found no room in the file. The next I/O has this direction.
    held: Option<Direction>,
    bytes: u64,
    byte_limit: u64,
    /// A pass may start over on all files.
    laps: bool,
    /// Bytes of I/O in a zone before the next.
    zone_bytes: u64,
    /// Bytes of I/O since the last step to another zone, of all files.
    in_zone: u64,
    /// The pass began in the middle of the zones, so it is not over when they are.
    began_among_zones: bool,
    ios: u64,
    /// The pass is over when `ios` reaches this. It is more than `io_limit` if some I/Os did not count.
    last_io: u64,
    io_limit: u64,
    ios_at_lap: u64,
    /// Whether the last call of `next` began a lap.
    lap_began: bool,
    smallest: u64,
}

/// The bytes of all files that count as their sizes.
fn region_bytes(spec: &Spec) -> u64 {
    match &spec.amounts[..] {
        [] => spec.files.iter().fold(0, |sum, region| sum.saturating_add(region.length)),
        amounts => amounts.iter().fold(0, |sum, amount| sum.saturating_add(*amount)),
    }
}

/// The bytes of a pass.
pub(crate) fn byte_limit(spec: &Spec) -> u64 {
    match spec.pass_bytes {
        _ if spec.endless => u64::MAX,
        Some(bytes) => bytes,
        // Preconditioning writes some blocks twice and knows when it is done.
        None if spec.precondition.is_some() => u64::MAX,
        None => region_bytes(spec),
    }
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
    /// The generator of `spec`.
    ///
    /// # Errors
    ///
    /// [`Error::MapMemory`] if the workload needs a map of visited blocks and there is no memory for it;
    /// [`Error::TooManyFiles`] if there are more files than a worker can have.
    pub fn new(spec: &Spec) -> Result<Self, Error> {
        let strategy = Strategy::of(spec);
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
        // Every zone must have room for a block of every direction.
        let block = directions(spec)
            .iter()
            .map(|&direction| &rules[direction.index()])
            .map(|rules| match rules.random_percent {
                0 => rules.sequential.min(),
                100.. => rules.random.min(),
                _ => rules.sequential.min().max(rules.random.min()),
            })
            .max()
            .unwrap_or(1);
        let mut tables = Tables::default();
        let files = (0..spec.files.len())
            .map(|index| File::new(spec, index, strategy, block, &mut tables))
            .collect::<Result<Vec<_>, Error>>()?;
        let count = u32::try_from(files.len()).map_err(|_| Error::TooManyFiles(files.len()))?;
        Ok(General {
            mix: spec.mix,
            rules,
            rotation: Rotation::new(spec.file_order, count, spec.open_files, spec.ios_per_file, spec.seed),
            announce_close: spec.open_files < files.len(),
            files,
            streams: Streams::new(spec.seed),
            seed: spec.seed,
            // Announced laps start over as laps, even in an endless workload.
            endless: spec.endless && !spec.announce_laps,
            skip: spec.sequential_skip,
            skip_wraps: spec.skip_wraps,
            announce_laps: spec.announce_laps,
            steered: None,
            ios_per_random: spec.ios_per_random.max(1),
            identical: spec.identical,
            run_left: 0,
            held: None,
            bytes: 0,
            byte_limit: byte_limit(spec),
            laps: has_laps(spec) || spec.zones.is_some() && spec.pass_bytes.is_some(),
            zone_bytes: spec.zones.map_or(u64::MAX, |zones| zones.size),
            in_zone: 0,
            began_among_zones: false,
            ios: 0,
            last_io: io_limit(spec),
            io_limit: io_limit(spec),
            ios_at_lap: 0,
            lap_began: false,
            smallest,
        })
    }

    #[inline(always)]
    fn limit_reached(&self) -> bool {
        self.bytes >= self.byte_limit || self.ios >= self.last_io
    }

    #[inline(always)]
    fn draw_direction(&mut self) -> Direction {
        match self.mix {
            Mix::Single(direction) => direction,
            Mix::ReadWrite(percent) => {
                self.steered.unwrap_or_else(|| draw_mix(&mut self.streams.mix, percent))
            }
            Mix::ReadWriteTrim(reads, writes) => {
                self.steered.unwrap_or_else(|| draw_shares(&mut self.streams.mix, reads, writes))
            }
            Mix::TrimWrite => Direction::Trim,
        }
    }

    /// A place for the next I/O in a file; `None` if no place is left.
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
        let file = &mut self.files[file];
        if file.zones.is_some() {
            return jump_in_zone(file, direction, sizes, offsets, lengths);
        }
        if let Some(place) = file.coverage.next(direction, sizes, offsets, lengths) {
            return Some(place);
        }
        if !self.endless {
            return None;
        }
        file.coverage.restart();
        file.coverage.next(direction, sizes, offsets, lengths)
    }

    /// The place that follows the last I/O of the direction.
    #[inline(always)]
    fn follow(&mut self, file: usize, direction: Direction, skip: i64) -> Option<Place> {
        let rules = &self.rules[direction.index()];
        let state = &self.files[file];
        let File { region, last, .. } = state;
        let (start, end) = state.bounds();
        let mut offset = match last[direction.index()] {
            None => start,
            Some(last) if skip == 0 => last.offset + last.length,
            Some(last) => {
                let position = last.offset + last.length - start;
                start.saturating_add(skipped(position, skip, end - start, self.skip_wraps))
            }
        };
        let smallest = rules.sequential.min();
        if let Some(zones) = &state.zones {
            let is_at_end =
                zones.strides.ends_with_region() && offset.saturating_add(smallest) > region.length;
            if is_at_end && zones.starts_over_at.is_none() {
                self.files[file].restart();
                return None;
            }
            if is_at_end || offset >= end || zones.starts_over_at.is_some_and(|amount| offset >= amount) {
                offset = start;
            }
            if offset.saturating_add(smallest) > region.length {
                return None;
            }
            // A block that is larger than the rest of the zone extends beyond the end of the zone.
            let room = (end - offset).max(smallest).min(region.length - offset);
            return Some(Place { offset, length: rules.sequential.draw(&mut self.streams.lengths, room) });
        }
        if offset.saturating_add(smallest) > region.length {
            // In an endless workload on a single file, each direction wraps by itself. A partly random workload wraps
            // on any number of files.
            let wraps = self.endless && (self.files.len() == 1 || rules.random_percent > 0);
            if !wraps || smallest > region.length {
                return None;
            }
            offset = 0;
        }
        let length = rules.sequential.draw(&mut self.streams.lengths, region.length - offset);
        Some(Place { offset, length })
    }

    /// The place of the last I/O of the direction, again.
    fn repeat(&mut self, file: usize, direction: Direction) -> Option<Place> {
        let sizes = &self.rules[direction.index()].random;
        let File { region, last, .. } = &self.files[file];
        let start = self.files[file].bounds().0;
        let offset = last[direction.index()].map_or(start, |last| last.offset);
        let room = region.length - offset;
        (room >= sizes.min()).then(|| Place { offset, length: sizes.draw(&mut self.streams.lengths, room) })
    }

    /// Starts over on all files. Returns false if the pass is over instead.
    #[cold]
    fn lap(&mut self) -> bool {
        let began_among_zones = std::mem::take(&mut self.began_among_zones);
        let anything_issued = self.ios > self.ios_at_lap;
        if !(began_among_zones || self.laps && anything_issued)
            || self.byte_limit - self.bytes < self.smallest
        {
            return false;
        }
        self.start_lap();
        self.in_zone = 0;
        self.files.iter_mut().for_each(File::restart);
        true
    }

    fn start_lap(&mut self) {
        self.ios_at_lap = self.ios;
        self.lap_began = true;
        self.rotation.restart();
    }

    /// Starts another pass. The streams of random numbers and the walk through strided zones continue.
    fn reset_pass(&mut self) {
        self.bytes = 0;
        self.ios = 0;
        self.last_io = self.io_limit;
        self.run_left = 0;
        self.held = None;
        self.began_among_zones = false;
        self.start_lap();
        for file in &mut self.files {
            match &file.zones {
                None => file.restart(),
                Some(zones) => self.began_among_zones |= zones.strides.start() > 0,
            }
        }
    }

    #[inline(always)]
    fn io(&self, file: usize, direction: Direction, place: Place) -> Next {
        let offset = self.files[file].region.offset + place.offset;
        Next::Io(Io { offset, length: place.length, file: file as u32, direction })
    }

    /// The write that has to follow the last trim of the file, if it has not been issued yet.
    #[inline(always)]
    fn pending_write(&mut self, file: usize) -> Option<Next> {
        let place = self.files[file].trimmed.take()?;
        Some(self.io(file, Direction::Write, place))
    }

    /// The writes that are still due after the last trim.
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

/// A random place in the current zone of a file. Coverage restarts with each visit of a zone.
fn jump_in_zone(
    file: &mut File,
    direction: Direction,
    sizes: &Sizes,
    offsets: &mut Rng,
    lengths: &mut Rng,
) -> Option<Place> {
    let File { coverage, zones: Some(zones), .. } = file else { return None };
    let Zoned { strides, cut, in_cut, .. } = zones.as_mut();
    let coverage = cut.as_mut().filter(|_| *in_cut).unwrap_or(coverage);
    let place = coverage.next(direction, sizes, offsets, lengths).or_else(|| {
        coverage.restart();
        coverage.next(direction, sizes, offsets, lengths)
    })?;
    Some(Place { offset: strides.start() + place.offset, ..place })
}

/// Reads in `percent` of 100 cases, else writes.
#[inline(always)]
pub(crate) fn draw_mix(rng: &mut Rng, percent: u32) -> Direction {
    if rng.percent(percent) { Direction::Read } else { Direction::Write }
}

/// Reads in `reads` of 100 cases, writes in `writes`, else trims.
#[inline(always)]
pub(crate) fn draw_shares(rng: &mut Rng, reads: u32, writes: u32) -> Direction {
    match rng.below(100) {
        number if number < u64::from(reads) => Direction::Read,
        number if number < u64::from(reads + writes) => Direction::Write,
        _ => Direction::Trim,
    }
}

/// The position `skip` bytes after `end`, wrapped into a region of `length` bytes, or `length` if it does not wrap.
fn skipped(end: u64, skip: i64, length: u64, wraps: bool) -> u64 {
    match end.checked_add_signed(skip) {
        Some(position) if position < length => position,
        Some(_) if !wraps || end >= length => length,
        None if skip < 0 => length.saturating_sub(skip.unsigned_abs()),
        _ => 0,
    }
}

impl Generator for General {
    #[inline]
    fn next(&mut self) -> Next {
        self.lap_began = false;
        loop {
            if self.limit_reached() {
                return self.last_writes();
            }
            let Some(file) = self.rotation.current(&mut self.streams.files) else {
                if self.lap() {
                    if self.announce_laps {
                        return Next::Lap;
                    }
                    continue;
                }
                self.in_zone = 0;
                return Next::Done;
            };
            let index = file as usize;
            if self.mix == Mix::TrimWrite
                && let Some(write) = self.pending_write(index)
            {
                self.rotation.issued();
                return write;
            }
            let mut goes_on = true;
            if self.in_zone >= self.zone_bytes {
                (goes_on, self.in_zone) = (self.files[index].advance(), 0);
                // A run ends with the zone in which it began.
                self.run_left = 0;
            }
            let direction = match self.held.take() {
                Some(direction) => direction,
                None => self.draw_direction(),
            };
            let place = if goes_on { self.place(index, direction) } else { None };
            let Some(place) = place else {
                self.held = Some(direction);
                self.rotation.finished();
                if self.announce_close {
                    return Next::Close(file);
                }
                continue;
            };
            let state = &mut self.files[index];
            state.last[direction.index()] = Some(place);
            if state.zones.is_some() {
                self.in_zone = self.in_zone.saturating_add(place.length);
            }
            if self.mix == Mix::TrimWrite {
                state.trimmed = Some(place);
            }
            self.bytes = self.bytes.saturating_add(place.length);
            self.ios += 1;
            self.rotation.issued();
            return self.io(index, direction, place);
        }
    }

    #[inline(always)]
    fn took_long(&self) -> bool {
        self.lap_began
    }

    fn steer(&mut self, direction: Option<Direction>) {
        self.steered = direction;
    }

    fn count_anew(&mut self, in_hand: bool) {
        self.last_io = self.io_limit.saturating_add(self.ios - u64::from(in_hand && self.ios > 0));
    }

    fn restart(&mut self) {
        self.reset_pass();
    }

    fn rewind(&mut self) {
        self.files.iter_mut().for_each(File::restart);
        self.in_zone = 0;
        self.reset_pass();
        self.streams = Streams::new(self.seed);
        for (index, file) in self.files.iter_mut().enumerate() {
            file.rewind(self.seed, index);
        }
    }
}
