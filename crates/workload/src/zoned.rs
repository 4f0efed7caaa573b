//! Workloads over the zones of a device (`zonemode=zbd`): writes go to write pointers, reads stay below them, and trims
//! reset zones.
//!
//! A zone is written from its write pointer on, until no further block fits. A full zone is reset before it is
//! written again. A random write chooses a zone, not an offset. If no more zones may be opened, it goes to one of the
//! open zones. Conventional zones have no write pointer and are written anywhere. The blocks of all zones are covered as
//! they would be without zones (see the module `spots`).
//!
//! A [`Zones`] holds the write pointers and may share them with other workers. The generator asks it for each write,
//! so where a write goes depends on the other workers.

mod spots;
mod writes;
mod zones;

#[cfg(test)]
mod tests;

use self::spots::{Spot, Spots};
use self::writes::InZone;
pub use self::zones::{Claim, ZoneState, ZoneUse, Zones};

use crate::coverage::directions;
use crate::general::{byte_limit, draw_mix, draw_shares, io_limit};
use crate::offset::Tables;
use crate::rotation::Rotation;
use crate::sizes::Sizes;
use crate::{Error, Fate, Generator, Io, Mix, Next, Place, Region, Spec, Step, rng::Rng};
use iolite_types::Direction;
use std::ops::Range;

/// The position of a direction in a file.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    zone: u32,
    /// The next offset of reads, and of writes to conventional zones.
    offset: u64,
    /// The zone has been used since the cursor moved to it.
    entered: bool,
}

/// A file, its zones, and the position of each direction.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    zones: Range<u32>,
    cursors: [Cursor; 3],
    spots: Spots,
    /// The last random I/O of each direction, which a run continues.
    last: [Option<Place>; 3],
}

impl File {
    fn begin(region: Region, zones: &Range<u32>) -> [Cursor; 3] {
        [Cursor { zone: zones.start, offset: region.offset, entered: false }; 3]
    }

    fn restart(&mut self) {
        self.cursors = File::begin(self.region, &self.zones);
        self.last = [None; 3];
        self.spots.restart();
    }
}

/// How the offsets and sizes of a direction are drawn.
#[derive(Clone, Debug)]
struct Rules {
    random_percent: u32,
    sizes: Sizes,
    align: u64,
}

/// The choice for the next I/O.
enum Chosen {
    /// An I/O with this offset and length.
    Io(u64, u64),
    /// The worker must wait for an I/O in flight, or for another worker.
    Wait,
    /// No I/O is left to do.
    Nothing,
    Failed(String),
}

/// A zone that a trim resets, and that is then written from its beginning to its end.
#[derive(Clone, Copy, Debug)]
struct Trimmed {
    file: usize,
    zone: u32,
    /// The trim is complete, and the first write has been issued.
    is_begun: bool,
}

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
    identical: bool,
    run_left: u64,
    held: Option<Direction>,
    /// The zone to fill next, after its trim.
    trimmed: Option<Trimmed>,
    bytes: u64,
    byte_limit: u64,
    laps: bool,
    /// The smallest block size that counts towards `byte_limit`: a lap for fewer bytes would do nothing.
    smallest: u64,
    ios: u64,
    last_io: u64,
    io_limit: u64,
    ios_at_lap: u64,
    writes: u64,
    in_flight: u64,
    /// At the last check, no other worker could make room for another open zone.
    waited_in_vain: bool,
    /// The file and the zone to empty next, before a pass that begins with empty zones; `None` = all have been emptied.
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
    /// Makes the workload of this spec over these zones.
    ///
    /// # Errors
    /// [`Error::MapMemory`] if there is no memory for a map of visited blocks.
    pub fn new(spec: &Spec, how: ZoneUse, zones: Z) -> Result<Self, Error> {
        let rules = Direction::ALL.map(|direction| Rules {
            random_percent: spec.random_percent[direction],
            sizes: Sizes::new(&spec.block_size[direction], spec.unaligned),
            align: spec.align[direction].max(1),
        });
        let reads_only = spec.mix == Mix::Single(Direction::Read);
        let ends = (reads_only && how.read_beyond, how.writes_remainder);
        let mut tables = Tables::default();
        let files = (0..).zip(&spec.files).map(|(file, &region)| {
            let last = region.offset + region.length.max(1) - 1;
            let range = zones.at(file, region.offset)..zones.at(file, last) + 1;
            let spots = Spots::new(spec, file, (&zones, range.clone()), ends, &mut tables)?;
            let cursors = File::begin(region, &range);
            Ok(File { region, zones: range, cursors, spots, last: [None; 3] })
        });
        let files = files.collect::<Result<Vec<File>, Error>>()?;
        // In a mix of trims and writes, only the bytes of writes count.
        let counted: &[Direction] = match spec.mix {
            Mix::TrimWrite => &[Direction::Write],
            _ => directions(spec),
        };
        let smallest = counted.iter().map(|direction| rules[direction.index()].sizes.min()).min();
        // A trim and a write together count as one I/O.
        let ios_in_one = if spec.mix == Mix::TrimWrite { 2 } else { 1 };
        let limit = io_limit(spec).saturating_mul(ios_in_one);
        // Random I/Os do as many bytes as the region has, even if the zones have room for fewer. Where zones are written
        // only once, that needs reads. (Preconditioning knows when it is done.)
        let is_random = directions(spec).iter().any(|&direction| spec.random_percent[direction] > 0);
        let can_go_on = how.rewrites || matches!(spec.mix, Mix::ReadWrite(_));
        let repeats = is_random && can_go_on && spec.precondition.is_none();
        let generator = ZonedGenerator {
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
            identical: spec.identical,
            run_left: 0,
            held: None,
            trimmed: None,
            bytes: 0,
            byte_limit: byte_limit(spec),
            laps: spec.endless || how.laps || repeats,
            smallest: smallest.unwrap_or(1),
            ios: 0,
            last_io: limit,
            io_limit: limit,
            ios_at_lap: 0,
            writes: 0,
            in_flight: 0,
            waited_in_vain: false,
            preparing: None,
            trouble: None,
            zones,
        };
        Ok(generator.with_preparation())
    }

    /// Arranges that the zones are emptied before the first pass, if passes begin with empty zones.
    fn with_preparation(mut self) -> Self {
        self.preparing = self.begin_to_prepare();
        self
    }

    fn begin_to_prepare(&self) -> Option<(usize, u32)> {
        let first = self.files.first().filter(|_| self.how.begins_empty)?;
        Some((0, first.zones.start))
    }

    /// Empties the zones before a pass. `Some` = not all zones are empty yet, and this is the next step.
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

    /// Resets a zone, unless it is empty or unusable. `Err` = the worker has to wait, or the reset failed.
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
            Mix::ReadWriteTrim(reads, writes) => {
                self.steered.unwrap_or_else(|| draw_shares(&mut self.rngs.mix, reads, writes))
            }
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

    /// Limits a range to the region of the file.
    fn within(&self, file: usize, from: u64, to: u64) -> (u64, u64) {
        let region = self.files[file].region;
        (from.max(region.offset), to.min(region.offset + region.length))
    }

    /// Draws an offset and a length within this range; `None` = no block fits.
    fn place(&mut self, direction: Direction, from: u64, to: u64) -> Option<(u64, u64)> {
        let Rules { sizes, align, .. } = &self.rules[direction.index()];
        let room = to.saturating_sub(from);
        let places = room.checked_sub(sizes.min())? / align + 1;
        let offset = from + self.rngs.zones.below(places) * align;
        Some((offset, sizes.draw(&mut self.rngs.lengths, to - offset)))
    }

    /// The range of a zone that may be read.
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
        // The reads of a mix continue here after its writes have written more.
        if matches!(self.mix, Mix::ReadWrite(_)) {
            self.files[file].cursors[read] = before;
        }
        Chosen::Nothing
    }

    /// Reads a random place. If it is not written yet, reads another place.
    fn read_somewhere(&mut self, file: usize) -> Chosen {
        let read = Direction::Read;
        if let Some(chosen) = self.read_in_run(file) {
            return chosen;
        }
        let Some(spot) = self.spot(file, read, 0) else { return Chosen::Nothing };
        let mut found = None;
        let mut zone = spot.zone;
        for _ in 0..self.files[file].zones.len() {
            let state = self.zones.zone(file as u32, zone);
            let (from, to) = self.readable(file, &state);
            found = match spot.offset >= from && spot.offset + spot.length <= to {
                true => Some((spot.offset, spot.length)),
                false => self.place(read, from, to),
            };
            if found.is_some() {
                break;
            }
            zone = self.following(file, zone);
        }
        let Some((offset, length)) = found else { return Chosen::Nothing };
        self.files[file].spots.take(read, 0, spot.length, self.rules[read.index()].sizes.min());
        self.begin_run(file, read, offset, length)
    }

    /// Continues a run of reads; `None` = there is none, or its zone ends here.
    fn read_in_run(&mut self, file: usize) -> Option<Chosen> {
        let Place { offset, length } = self.in_run(file, Direction::Read)?;
        let next = if self.identical { offset } else { offset + length };
        let state = self.zones.zone(file as u32, self.zones.at(file as u32, offset));
        let (from, to) = self.readable(file, &state);
        self.run_on(file, Direction::Read, (next.max(from), to))
    }

    /// A random place for an I/O, the `index`th that waits to be used.
    fn spot(&mut self, file: usize, direction: Direction, index: usize) -> Option<Spot> {
        let sizes = &self.rules[direction.index()].sizes;
        let Rngs { zones: offsets, lengths, .. } = &mut self.rngs;
        let spots = &mut self.files[file].spots;
        spots.get((direction, index), (&self.zones, file as u32), sizes, (offsets, lengths))
    }

    /// A random I/O, with which a run begins.
    fn begin_run(&mut self, file: usize, direction: Direction, offset: u64, length: u64) -> Chosen {
        self.run_left = self.ios_per_random - 1;
        self.files[file].last[direction.index()] = Some(Place { offset, length });
        Chosen::Io(offset, length)
    }

    /// The last I/O of the current run; `None` = no run is left.
    fn in_run(&self, file: usize, direction: Direction) -> Option<Place> {
        self.files[file].last[direction.index()].filter(|_| self.run_left > 0)
    }

    /// The next I/O of a run, at the beginning of this range; `None` = none fits.
    fn run_on(&mut self, file: usize, direction: Direction, (from, to): (u64, u64)) -> Option<Chosen> {
        let sizes = &self.rules[direction.index()].sizes;
        let room = to.checked_sub(from).filter(|&room| room >= sizes.min())?;
        let length = sizes.draw(&mut self.rngs.lengths, room);
        self.run_left -= 1;
        self.files[file].last[direction.index()] = Some(Place { offset: from, length });
        Some(Chosen::Io(from, length))
    }

    /// Chooses a zone to reset: the next one, or a random one that is not empty.
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
                        self.files[file].last[trim] = Some(Place { offset: state.start, length: state.size });
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

    /// The other direction of a mix, used when this direction has no I/O left.
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
        // The bytes of a trim do not count, only those of its writes.
        if !(self.mix == Mix::TrimWrite && direction == Direction::Trim) {
            self.bytes = self.bytes.saturating_add(length);
        }
        if self.mix == Mix::TrimWrite && direction == Direction::Trim {
            let zone = self.zones.at(file as u32, offset);
            self.trimmed = Some(Trimmed { file, zone, is_begun: false });
        }
        Next::Io(Io { offset, length, file: file as u32, direction })
    }

    fn lap(&mut self) -> bool {
        let left = self.byte_limit.saturating_sub(self.bytes);
        if !self.laps || self.ios == self.ios_at_lap || left < self.smallest {
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
    #[inline(always)]
    fn learns(&self) -> bool {
        true
    }

    fn next(&mut self) -> Next {
        if self.trouble.is_some() {
            return Next::Script(Step::Failed);
        }
        if let Some(step) = self.prepare() {
            return step;
        }
        loop {
            let is_over = self.bytes >= self.byte_limit || self.ios >= self.last_io;
            if let Some(Trimmed { file, zone, is_begun }) = self.trimmed.filter(|to| !to.is_begun || !is_over)
            {
                if !is_begun && self.zones.zone(file as u32, zone).in_flight > 0 {
                    return Next::Script(Step::Wait);
                }
                return match self.write_in(file, zone, !is_begun, None) {
                    InZone::Io { offset, length, is_last } => {
                        self.trimmed = (!is_last).then_some(Trimmed { file, zone, is_begun: true });
                        self.issue(file, Direction::Write, offset, length)
                    }
                    InZone::Failed(why) => self.fail(why),
                    InZone::Wait | InZone::Busy => Next::Script(Step::Wait),
                    // The trim has closed the zone, and the limit of open zones does not allow opening it again. The
                    // write goes to a zone that is open.
                    InZone::Limit => match self.write_in_open(file, None) {
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
                    // The zone has become unusable, or another worker has filled it.
                    InZone::Passed => {
                        self.trimmed = None;
                        continue;
                    }
                };
            }
            if is_over {
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
        for (index, file) in self.files.iter_mut().enumerate() {
            file.spots.rewind(self.seed, index);
        }
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
