//! Workloads over the zones of a device (`zonemode=zbd`): writes go to write pointers, reads stay below them, and trims
//! reset zones.
//!
//! A zone is written from its write pointer on until no block fits, and a full one is reset before it is written again.
//! Random writes choose a zone, not an offset: when no other zone may be open, one of the open ones. Conventional zones
//! have no write pointer and are written anywhere.
//!
//! The write pointers are not here: whoever owns them (and shares them with other workers) is a [`Zones`]. The generator
//! asks it for each write, so where that goes depends on what the others do.

#[cfg(test)]
mod tests;

use crate::general::{byte_limit, draw_mix, has_laps, io_limit};
use crate::rotation::Rotation;
use crate::sizes::Sizes;
use crate::{Fate, Generator, Io, Mix, Next, Region, Spec, Step, rng::Rng};
use iolite_types::Direction;
use std::ops::Range;

/// A zone as it is now. Offsets are in bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// Where it begins.
    pub start: u64,
    /// From there to the next zone.
    pub size: u64,
    /// How much of that can be used.
    pub capacity: u64,
    /// It is written at its write pointer only.
    pub is_sequential: bool,
    /// It is not offline.
    pub is_readable: bool,
    /// Where the next write goes; the end of its capacity if it is full.
    pub next: u64,
    /// What is below is written.
    pub written: u64,
    /// How many writes of this worker to it are in flight.
    pub in_flight: u32,
}

impl ZoneState {
    fn room(&self) -> u64 {
        (self.start + self.capacity).saturating_sub(self.next)
    }
}

/// What became of a request for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this worker's until [`Zones::release`], or until its last write is complete.
    Granted(ZoneState),
    /// Another worker writes to it.
    Busy,
    /// As many zones are open as there may be.
    Limit,
    /// It cannot be written to.
    Unusable,
}

/// The zones of a worker's files and their write pointers. Zones are numbered from the beginning of the device.
pub trait Zones {
    /// The number of the zone that holds this offset.
    fn at(&self, file: u32, offset: u64) -> u32;

    /// A zone as it is now.
    fn zone(&self, file: u32, zone: u32) -> ZoneState;

    /// Asks for a zone, to write to it (`opens`) or to reset it. With `waits`, waits a moment for another worker.
    fn claim(&mut self, file: u32, zone: u32, opens: bool, waits: bool) -> Claim;

    /// Gives a claimed zone back, unless writes to it are in flight.
    fn release(&mut self, file: u32, zone: u32);

    /// One of the open zones in this range that have room, by the random number; `None` = there is none.
    fn open_zone(&mut self, file: u32, zones: Range<u32>, choice: u64) -> Option<u32>;

    /// Makes room for a write or a trim of a claimed zone. `is_last`: no other write fits behind it.
    fn reserve(&mut self, file: u32, zone: u32, length: u64, is_last: bool) -> u64;

    /// Makes a claimed zone full, though not all of it is written. Nothing is in flight on it.
    ///
    /// # Errors
    /// Why it cannot be done, in words for the user.
    fn finish(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Makes a claimed zone empty. Nothing is in flight on it.
    ///
    /// # Errors
    /// Why it cannot be done, in words for the user.
    fn reset(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Notes what became of an I/O.
    ///
    /// # Errors
    /// A command for the zone that follows from it failed, in words for the user.
    fn completed(&mut self, io: &Io, fate: Fate) -> Result<(), String>;

    /// How many bytes are written in those of these zones that have write pointers.
    fn written(&self, file: u32, zones: Range<u32>) -> u64;

    /// Why what was written there may be lost: what the device says of the zone.
    fn loss(&self, io: &Io) -> Option<String>;

    /// Whether no other worker is left that could make room for another open zone. The worker counts as waiting until
    /// it gets one.
    fn waits_in_vain(&mut self) -> bool;
}

/// How the zones are to be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneUse {
    /// Bytes left out behind a zone that was written or read to its end, by sequential workloads.
    pub skip: u64,
    /// Read also what was not written.
    pub read_beyond: bool,
    /// Full zones are written again.
    pub rewrites: bool,
    /// All zones are made empty before each pass.
    pub begins_empty: bool,
    /// What is left of a zone is written with a smaller block.
    pub writes_remainder: bool,
    /// A zone has one write in flight at a time, because several would not arrive in their order.
    pub one_by_one: bool,
    /// What skips past the end goes on at the beginning.
    pub skip_wraps: bool,
    /// Zones are reset when more than this share is written.
    pub reset_threshold: f64,
    /// The next zone is reset after so many writes; 0 = never.
    pub reset_every: u64,
}

/// Where a direction is in a file.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    zone: u32,
    /// The next offset, in zones that are not written at a write pointer, and for reads.
    offset: u64,
    /// The zone has been used since the cursor came to it.
    entered: bool,
}

/// A file, its zones, and where the directions are in it.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    zones: Range<u32>,
    cursors: [Cursor; 3],
    /// The zone of the last random write, for runs.
    last: Option<u32>,
}

impl File {
    fn restart(&mut self) {
        let begin = Cursor { zone: self.zones.start, offset: self.region.offset, entered: false };
        self.cursors = [begin; 3];
        self.last = None;
    }
}

/// How the sizes of a direction are drawn.
#[derive(Clone, Debug)]
struct Rules {
    random_percent: u32,
    sizes: Sizes,
    align: u64,
}

/// What was found for the next I/O.
enum Chosen {
    Io(u64, u64),
    /// Something that is in flight, or another worker, has to be waited for.
    Wait,
    /// There is nothing (more) to do.
    Nothing,
    Failed(String),
}

/// What was found in one zone.
enum InZone {
    Io {
        offset: u64,
        length: u64,
        /// No other write fits behind it.
        is_last: bool,
    },
    Wait,
    Busy,
    Limit,
    /// It is full or cannot be used.
    Passed,
    Failed(String),
}

/// How many zones are tried that other workers write to before waiting.
const BUSY_TRIES: u32 = 4;

/// A workload over zones.
pub struct ZonedGenerator<Z> {
    zones: Z,
    how: ZoneUse,
    mix: Mix,
    steered: Option<Direction>,
    rules: [Rules; 3],
    rotation: Rotation,
    files: Vec<File>,
    rngs: Rngs,
    seed: u64,
    ios_per_random: u64,
    run_left: u64,
    held: Option<Direction>,
    /// Trimmed and to be written next: file and zone.
    trimmed: Option<(usize, u32)>,
    bytes: u64,
    byte_limit: u64,
    laps: bool,
    ios: u64,
    last_io: u64,
    io_limit: u64,
    ios_at_lap: u64,
    writes: u64,
    in_flight: u64,
    /// Nobody was left who could make room for another open zone.
    waited_in_vain: bool,
    /// The file and the zone up to which zones are empty, before a pass that begins with empty ones.
    preparing: Option<(usize, u32)>,
    trouble: Option<String>,
}

#[derive(Clone, Debug)]
struct Rngs {
    mix: Rng,
    files: Rng,
    zones: Rng,
    lengths: Rng,
    jumps: Rng,
}

impl Rngs {
    fn new(seed: u64) -> Rngs {
        let stream = |number: u64| Rng::stream(seed, 0x5a6f_6e65_0000 + number);
        Rngs { mix: stream(0), files: stream(1), zones: stream(2), lengths: stream(3), jumps: stream(4) }
    }
}

impl<Z: Zones> ZonedGenerator<Z> {
    /// The workload of this spec over these zones.
    pub fn new(spec: &Spec, how: ZoneUse, zones: Z) -> Self {
        let rules = Direction::ALL.map(|direction| Rules {
            random_percent: spec.random_percent[direction],
            sizes: Sizes::new(&spec.block_size[direction], spec.unaligned),
            align: spec.align[direction].max(1),
        });
        let files = (0..).zip(&spec.files).map(|(file, &region)| {
            let last = region.offset + region.length.max(1) - 1;
            let zones = zones.at(file, region.offset)..zones.at(file, last) + 1;
            let mut file = File { region, zones, cursors: [Cursor::default(); 3], last: None };
            file.restart();
            file
        });
        let files: Vec<File> = files.collect();
        ZonedGenerator {
            how,
            mix: spec.mix,
            steered: None,
            rules,
            rotation: Rotation::new(
                spec.file_order,
                files.len() as u32,
                files.len(),
                spec.ios_per_file,
                spec.seed,
            ),
            files,
            rngs: Rngs::new(spec.seed),
            seed: spec.seed,
            ios_per_random: spec.ios_per_random.max(1),
            run_left: 0,
            held: None,
            trimmed: None,
            bytes: 0,
            byte_limit: byte_limit(spec),
            laps: has_laps(spec),
            ios: 0,
            last_io: io_limit(spec),
            io_limit: io_limit(spec),
            ios_at_lap: 0,
            writes: 0,
            in_flight: 0,
            waited_in_vain: false,
            preparing: None,
            trouble: None,
            zones,
        }
        .with_preparation()
    }

    /// Before a pass that begins with empty zones, they have to be made so.
    fn with_preparation(mut self) -> Self {
        self.preparing = self.begin_to_prepare();
        self
    }

    fn begin_to_prepare(&self) -> Option<(usize, u32)> {
        let first = self.files.first().filter(|_| self.how.begins_empty)?;
        Some((0, first.zones.start))
    }

    /// Makes the zones empty before a pass. `Some` = the next step has to be this.
    fn prepare(&mut self) -> Option<Next> {
        while let Some((file, zone)) = self.preparing {
            let Some(files) = self.files.get(file) else {
                self.preparing = None;
                break;
            };
            if zone >= files.zones.end {
                let next = self.files.get(file + 1).map_or(0, |next| next.zones.start);
                self.preparing = Some((file + 1, next));
                continue;
            }
            if let Err(step) = self.empty(file as u32, zone) {
                return Some(step);
            }
            self.preparing = Some((file, zone + 1));
        }
        None
    }

    /// Makes a zone empty. `Err` = not yet, or never.
    fn empty(&mut self, file: u32, zone: u32) -> Result<(), Next> {
        let state = self.zones.zone(file, zone);
        if !state.is_sequential || state.next == state.start {
            return Ok(());
        }
        match self.zones.claim(file, zone, false, true) {
            Claim::Unusable => return Ok(()),
            Claim::Busy | Claim::Limit => return Err(Next::Script(Step::Wait)),
            Claim::Granted(_) => {}
        }
        let done = self.zones.reset(file, zone);
        self.zones.release(file, zone);
        done.map_err(|why| self.fail(why))
    }

    fn draw_direction(&mut self) -> Direction {
        match self.mix {
            Mix::Single(direction) => direction,
            Mix::ReadWrite(percent) => self.steered.unwrap_or_else(|| draw_mix(&mut self.rngs.mix, percent)),
            Mix::TrimWrite => Direction::Trim,
        }
    }

    fn choose(&mut self, file: usize, direction: Direction) -> Chosen {
        let percent = self.rules[direction.index()].random_percent;
        let jumps = match percent {
            0 => false,
            100.. => true,
            _ => self.run_left > 0 || self.rngs.jumps.percent(percent),
        };
        match (direction, jumps) {
            (Direction::Write, false) => self.write_on(file),
            (Direction::Write, true) => self.write_somewhere(file),
            (Direction::Read, false) => self.read_on(file),
            (Direction::Read, true) => self.read_somewhere(file),
            (Direction::Trim, random) => self.trim(file, random),
        }
    }

    /// The bytes of a zone that belong to the region.
    fn within(&self, file: usize, from: u64, to: u64) -> (u64, u64) {
        let region = self.files[file].region;
        (from.max(region.offset), to.min(region.offset + region.length))
    }

    /// A write behind the last one, or in the next zone.
    fn write_on(&mut self, file: usize) -> Chosen {
        let write = Direction::Write.index();
        while self.files[file].cursors[write].zone < self.files[file].zones.end {
            let Cursor { zone, offset, .. } = self.files[file].cursors[write];
            let state = self.zones.zone(file as u32, zone);
            if !state.is_sequential {
                let (from, to) = self.within(file, state.start, state.start + state.size);
                let from = from.max(offset);
                if to.saturating_sub(from) < self.rules[write].sizes.min() {
                    self.advance(file, write, &state);
                    continue;
                }
                let length = self.rules[write].sizes.draw(&mut self.rngs.lengths, to - from);
                self.files[file].cursors[write] = Cursor { zone, offset: from + length, entered: true };
                return Chosen::Io(from, length);
            }
            match self.write_in(file, zone, self.how.rewrites) {
                InZone::Io { offset, length, is_last } => {
                    self.files[file].cursors[write].entered = true;
                    // A zone that somebody else has filled is begun anew: only who has filled it goes on.
                    if is_last {
                        self.advance(file, write, &state);
                    }
                    return Chosen::Io(offset, length);
                }
                InZone::Passed => self.advance(file, write, &state),
                InZone::Limit => return self.write_in_open(file),
                InZone::Wait | InZone::Busy => return Chosen::Wait,
                InZone::Failed(why) => return Chosen::Failed(why),
            }
        }
        Chosen::Nothing
    }

    /// The cursor goes to the next zone, or over those that are skipped.
    fn advance(&mut self, file: usize, direction: usize, state: &ZoneState) {
        let File { zones, cursors, .. } = &mut self.files[file];
        let cursor = &mut cursors[direction];
        let skipped = if cursor.entered { self.how.skip / state.size.max(1) } else { 0 };
        let mut zone = u64::from(cursor.zone) + 1 + skipped;
        if skipped > 0 && zone >= zones.end.into() && self.how.skip_wraps {
            zone = zones.start.into();
        }
        *cursor = Cursor { zone: zone.min(zones.end.into()) as u32, offset: 0, entered: false };
    }

    /// A write at the write pointer of this zone. `rewrites`: if it is full, it is reset.
    fn write_in(&mut self, file: usize, zone: u32, rewrites: bool) -> InZone {
        let number = file as u32;
        let state = match self.zones.claim(number, zone, true, self.in_flight == 0) {
            Claim::Granted(state) => state,
            Claim::Busy => return InZone::Busy,
            Claim::Limit => return InZone::Limit,
            Claim::Unusable => return InZone::Passed,
        };
        if self.how.one_by_one && state.in_flight > 0 {
            return InZone::Busy;
        }
        let smallest = self.rules[Direction::Write.index()].sizes.min();
        let mut room = state.room();
        let has_room = room >= smallest || (self.how.writes_remainder && room > 0);
        let is_due = has_room && self.is_reset_due(file) && state.next > state.start;
        if !has_room && (!rewrites || state.capacity < smallest) {
            self.zones.release(number, zone);
            return InZone::Passed;
        }
        if !has_room || is_due {
            if state.in_flight > 0 {
                return InZone::Wait;
            }
            if let Err(why) = self.zones.reset(number, zone) {
                self.zones.release(number, zone);
                return InZone::Failed(why);
            }
            room = state.capacity;
        }
        let length = match room < smallest {
            true => room,
            false => self.rules[Direction::Write.index()].sizes.draw(&mut self.rngs.lengths, room),
        };
        let left = room - length;
        let is_last = left == 0 || (left < smallest && !self.how.writes_remainder);
        let offset = self.zones.reserve(number, zone, length, is_last);
        self.writes += 1;
        InZone::Io { offset, length, is_last }
    }

    fn is_reset_due(&self, file: usize) -> bool {
        let every = self.how.reset_every;
        every > 0
            && self.writes > 0
            && self.writes.is_multiple_of(every)
            && self.zones.written(file as u32, self.files[file].zones.clone()) as f64
                > self.how.reset_threshold * self.files[file].region.length as f64
    }

    /// A write to a zone that is open, because no other may be opened. One that has too little room is finished: then
    /// another may be.
    fn write_in_open(&mut self, file: usize) -> Chosen {
        let choice = self.rngs.zones.next_u64();
        let zones = self.files[file].zones.clone();
        if let Some(zone) = self.zones.open_zone(file as u32, zones, choice) {
            return match self.write_in(file, zone, false) {
                InZone::Io { offset, length, .. } => Chosen::Io(offset, length),
                InZone::Failed(why) => Chosen::Failed(why),
                InZone::Wait | InZone::Busy | InZone::Limit => Chosen::Wait,
                InZone::Passed => self.finish(file, zone),
            };
        }
        let in_vain = self.in_flight == 0 && self.zones.waits_in_vain();
        // The last other worker may just have made room.
        match std::mem::replace(&mut self.waited_in_vain, in_vain) && in_vain {
            true => Chosen::Nothing,
            false => Chosen::Wait,
        }
    }

    /// Makes a zone full whose rest no block fits into.
    fn finish(&mut self, file: usize, zone: u32) -> Chosen {
        let number = file as u32;
        if let Claim::Granted(state) = self.zones.claim(number, zone, false, false) {
            let is_idle = state.in_flight == 0 && state.room() > 0;
            let done = if is_idle { self.zones.finish(number, zone) } else { Ok(()) };
            self.zones.release(number, zone);
            if let Err(why) = done {
                return Chosen::Failed(why);
            }
        }
        Chosen::Wait
    }

    /// A zone of the file by chance, or that of the run that goes on.
    fn draw_zone(&mut self, file: usize) -> u32 {
        let zones = self.files[file].zones.clone();
        match self.files[file].last {
            Some(zone) if self.run_left > 0 => {
                self.run_left -= 1;
                zone
            }
            _ => {
                self.run_left = self.ios_per_random - 1;
                zones.start + self.rngs.zones.below(u64::from(zones.end - zones.start)) as u32
            }
        }
    }

    /// The zone behind this one, and behind the last one the first.
    fn following(&self, file: usize, zone: u32) -> u32 {
        let zones = &self.files[file].zones;
        if zone + 1 < zones.end { zone + 1 } else { zones.start }
    }

    fn write_somewhere(&mut self, file: usize) -> Chosen {
        let mut zone = self.draw_zone(file);
        let mut busy = 0;
        for _ in 0..self.files[file].zones.len() {
            self.files[file].last = Some(zone);
            let state = self.zones.zone(file as u32, zone);
            if !state.is_sequential {
                let (from, to) = self.within(file, state.start, state.start + state.size);
                if let Some((offset, length)) = self.place(Direction::Write, from, to) {
                    return Chosen::Io(offset, length);
                }
            } else {
                match self.write_in(file, zone, self.how.rewrites) {
                    InZone::Io { offset, length, .. } => return Chosen::Io(offset, length),
                    InZone::Limit => return self.write_in_open(file),
                    InZone::Wait => return Chosen::Wait,
                    InZone::Failed(why) => return Chosen::Failed(why),
                    InZone::Busy if busy < BUSY_TRIES => {
                        busy += 1;
                        zone = self.draw_zone(file);
                        continue;
                    }
                    InZone::Busy => return Chosen::Wait,
                    InZone::Passed => {}
                }
            }
            zone = self.following(file, zone);
        }
        if busy > 0 { Chosen::Wait } else { Chosen::Nothing }
    }

    /// A random place between these offsets.
    fn place(&mut self, direction: Direction, from: u64, to: u64) -> Option<(u64, u64)> {
        let Rules { sizes, align, .. } = &self.rules[direction.index()];
        let room = to.saturating_sub(from);
        let places = room.checked_sub(sizes.min())? / align + 1;
        let offset = from + self.rngs.zones.below(places) * align;
        Some((offset, sizes.draw(&mut self.rngs.lengths, to - offset)))
    }

    /// The bytes of a zone that may be read.
    fn readable(&self, file: usize, state: &ZoneState) -> (u64, u64) {
        let end = match state {
            ZoneState { is_readable: false, .. } => state.start,
            ZoneState { is_sequential: true, .. } if !self.how.read_beyond => state.written,
            _ => state.start + state.size,
        };
        self.within(file, state.start, end)
    }

    fn read_on(&mut self, file: usize) -> Chosen {
        let read = Direction::Read.index();
        let before = self.files[file].cursors[read];
        while self.files[file].cursors[read].zone < self.files[file].zones.end {
            let Cursor { zone, offset, .. } = self.files[file].cursors[read];
            let state = self.zones.zone(file as u32, zone);
            let (from, to) = self.readable(file, &state);
            let from = from.max(offset);
            if to.saturating_sub(from) < self.rules[read].sizes.min() {
                self.advance(file, read, &state);
                continue;
            }
            let length = self.rules[read].sizes.draw(&mut self.rngs.lengths, to - from);
            self.files[file].cursors[read] = Cursor { zone, offset: from + length, entered: true };
            return Chosen::Io(from, length);
        }
        // Reads of a mix go on there when its writes have written more.
        if matches!(self.mix, Mix::ReadWrite(_)) {
            self.files[file].cursors[read] = before;
        }
        Chosen::Nothing
    }

    fn read_somewhere(&mut self, file: usize) -> Chosen {
        let mut zone = self.draw_zone(file);
        for _ in 0..self.files[file].zones.len() {
            let state = self.zones.zone(file as u32, zone);
            let (from, to) = self.readable(file, &state);
            if let Some((offset, length)) = self.place(Direction::Read, from, to) {
                return Chosen::Io(offset, length);
            }
            zone = self.following(file, zone);
        }
        Chosen::Nothing
    }

    /// The reset of a whole zone: in turn, or of any that is not empty.
    fn trim(&mut self, file: usize, random: bool) -> Chosen {
        let trim = Direction::Trim.index();
        let mut zone = if random { self.draw_zone(file) } else { self.files[file].cursors[trim].zone };
        for _ in 0..self.files[file].zones.len() {
            if zone >= self.files[file].zones.end {
                break;
            }
            let state = self.zones.zone(file as u32, zone);
            let is_passed = !state.is_sequential || (random && state.next == state.start);
            if !is_passed {
                match self.zones.claim(file as u32, zone, false, self.in_flight == 0) {
                    Claim::Granted(state) if state.in_flight > 0 => return Chosen::Wait,
                    Claim::Granted(state) => {
                        self.zones.reserve(file as u32, zone, 0, true);
                        if !random {
                            self.advance(file, trim, &state);
                        }
                        self.files[file].last = Some(zone);
                        return Chosen::Io(state.start, state.size);
                    }
                    Claim::Busy | Claim::Limit => return Chosen::Wait,
                    Claim::Unusable => {}
                }
            }
            if random {
                zone = self.following(file, zone);
            } else {
                zone += 1;
                self.files[file].cursors[trim].zone = zone;
            }
        }
        Chosen::Nothing
    }

    /// The other direction of a mix, when there is nothing to do in this one.
    fn other(&self, direction: Direction) -> Option<Direction> {
        match (self.mix, direction) {
            (Mix::ReadWrite(_), Direction::Read) => Some(Direction::Write),
            (Mix::ReadWrite(_), Direction::Write) => Some(Direction::Read),
            _ => None,
        }
    }

    fn issue(&mut self, file: usize, direction: Direction, offset: u64, length: u64) -> Next {
        self.in_flight += 1;
        self.waited_in_vain = false;
        self.ios += 1;
        // A trim and its write count once.
        if !(self.mix == Mix::TrimWrite && direction == Direction::Trim) {
            self.bytes = self.bytes.saturating_add(length);
        }
        if self.mix == Mix::TrimWrite && direction == Direction::Trim {
            self.trimmed = self.files[file].last.map(|zone| (file, zone));
        }
        Next::Io(Io { offset, length, file: file as u32, direction })
    }

    fn lap(&mut self) -> bool {
        if !self.laps || self.ios == self.ios_at_lap {
            return false;
        }
        self.start_lap();
        true
    }

    fn start_lap(&mut self) {
        self.ios_at_lap = self.ios;
        self.rotation.restart();
        self.files.iter_mut().for_each(File::restart);
    }

    fn fail(&mut self, why: String) -> Next {
        self.trouble = Some(why);
        Next::Script(Step::Failed)
    }
}

impl<Z: Zones> Generator for ZonedGenerator<Z> {
    const LEARNS: bool = true;

    fn next(&mut self) -> Next {
        if self.trouble.is_some() {
            return Next::Script(Step::Failed);
        }
        if let Some(step) = self.prepare() {
            return step;
        }
        loop {
            if let Some((file, zone)) = self.trimmed {
                if self.zones.zone(file as u32, zone).in_flight > 0 {
                    return Next::Script(Step::Wait);
                }
                return match self.write_in(file, zone, true) {
                    InZone::Io { offset, length, .. } => {
                        self.trimmed = None;
                        self.issue(file, Direction::Write, offset, length)
                    }
                    InZone::Failed(why) => self.fail(why),
                    InZone::Wait | InZone::Busy => Next::Script(Step::Wait),
                    // The trim has closed the zone, and it may not be opened again: another one is written to.
                    InZone::Limit => match self.write_in_open(file) {
                        Chosen::Io(offset, length) => {
                            self.trimmed = None;
                            self.issue(file, Direction::Write, offset, length)
                        }
                        Chosen::Wait => Next::Script(Step::Wait),
                        Chosen::Failed(why) => self.fail(why),
                        Chosen::Nothing => {
                            self.trimmed = None;
                            Next::Done
                        }
                    },
                    // It has become unusable, so there is no write for this trim.
                    InZone::Passed => {
                        self.trimmed = None;
                        continue;
                    }
                };
            }
            if self.bytes >= self.byte_limit || self.ios >= self.last_io {
                return Next::Done;
            }
            let Some(file) = self.rotation.current(&mut self.rngs.files) else {
                if self.lap() {
                    continue;
                }
                return Next::Done;
            };
            let file = file as usize;
            let mut direction = self.held.take().unwrap_or_else(|| self.draw_direction());
            let mut chosen = self.choose(file, direction);
            if let (Chosen::Nothing, Some(other)) = (&chosen, self.other(direction)) {
                direction = other;
                chosen = self.choose(file, direction);
            }
            match chosen {
                Chosen::Io(offset, length) => {
                    self.rotation.issued();
                    return self.issue(file, direction, offset, length);
                }
                Chosen::Wait => {
                    self.held = Some(direction);
                    return Next::Script(Step::Wait);
                }
                Chosen::Failed(why) => return self.fail(why),
                Chosen::Nothing => self.rotation.finished(),
            }
        }
    }

    fn restart(&mut self) {
        self.bytes = 0;
        self.ios = 0;
        self.last_io = self.io_limit;
        self.run_left = 0;
        self.held = None;
        self.trimmed = None;
        self.start_lap();
        self.preparing = self.begin_to_prepare();
    }

    fn rewind(&mut self) {
        self.restart();
        self.rngs = Rngs::new(self.seed);
    }

    fn steer(&mut self, direction: Option<Direction>) {
        self.steered = direction;
    }

    fn count_anew(&mut self, in_hand: bool) {
        self.last_io = self.io_limit.saturating_add(self.ios - u64::from(in_hand && self.ios > 0));
    }

    fn take_trouble(&mut self) -> Option<String> {
        self.trouble.clone()
    }

    fn completed(&mut self, io: &Io, fate: Fate) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Err(why) = self.zones.completed(io, fate) {
            self.trouble.get_or_insert(why);
        }
    }

    fn loss(&self, io: &Io) -> Option<String> {
        self.zones.loss(io)
    }
}
