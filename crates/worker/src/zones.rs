//! The zones of devices, with the write pointers that all workers of a run share.
//!
//! A mapping that the processes of a run share has a record for each zone: a lock, the write pointer, how far the zone
//! is written, and whether it counts as open. A worker locks a zone before it makes a write to it and unlocks it when
//! all of its writes to it are complete. So the writes of one worker to a zone may be in flight together, in their
//! order, and those of two workers never are. A worker waits for a zone only while it holds no other, so there is no
//! deadlock.
//!
//! Which zone is written, read or reset is the workload's decision (`workload/src/zoned.rs`).
//!
//! The locks survive their owner. A worker that inherits a zone from a dead worker asks the device for the write
//! pointer.

mod map;
#[cfg(test)]
mod tests;

pub use map::ZoneMaps;

use iolite_os::robust::Locked;
use iolite_os::shared::Arena;
use iolite_os::zones::{self, Zone, ZoneCondition, ZoneKind};
use iolite_plan::Layout;
use iolite_plan::resolve::ZoneRules;
use iolite_types::{Direction, describe_error};
use iolite_workload::{Claim, Fate, Io, ZoneState, ZoneUse, Zones};
use map::{Device, ENDING, MOST_LISTED, OPEN, UNSURE, UNUSABLE};
use std::fs::OpenOptions;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

/// How long to wait for another worker's zone before checking whether the job must end.
const PATIENCE: Duration = Duration::from_millis(10);

/// How long to wait for the writes of a worker that was killed.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// A zone that this worker has locked.
struct Held {
    device: usize,
    zone: u32,
    in_flight: u32,
    failed: bool,
}

/// The zones of one worker's files.
pub struct WorkerZones {
    maps: Arc<ZoneMaps>,
    /// For each file: its device, and the device opened for commands.
    files: Vec<(usize, Option<zones::ZonedDevice>)>,
    held: Vec<Held>,
    /// The zones that this worker has opened, if that matters: the device and the zone.
    own: Vec<(usize, u32)>,
    most_own: u32,
    /// For each file, the limit of open zones, of all workers together; 0 = no limit.
    most_open: Vec<u32>,
    recovers: bool,
    /// Used by a pass that writes nothing: the write pointers as they were in the run that wrote, for each device and
    /// zone.
    imagined: Option<Vec<Vec<u64>>>,
    /// The worker's control word while it works.
    works: u32,
    arena: Arc<Arena>,
    index: usize,
}

/// The control word of a worker that uses zones: a bit for each device that it works on, and whether it waits. 0 = it does
/// not write to zones.
mod doing {
    pub const WAITS: u32 = 1 << 31;

    /// The bit of a device. Devices that share a bit count as one: their workers may wait longer than necessary.
    pub const fn works_on(device: usize) -> u32 {
        1 << (device % 31)
    }
}

impl WorkerZones {
    /// The zones of these files. `is_dry`: nothing is written, and each zone counts as empty at first.
    ///
    /// # Errors
    /// A device cannot be opened.
    pub fn new(
        maps: &Arc<ZoneMaps>,
        rules: &ZoneRules,
        layout: &Layout,
        is_dry: bool,
        writes: bool,
        (arena, index): (&Arc<Arena>, usize),
    ) -> io::Result<WorkerZones> {
        let mut files = Vec::with_capacity(layout.files.len());
        for file in &layout.files {
            let device = maps.find(&file.path).ok_or(io::Error::from_raw_os_error(libc::ENODEV))?;
            let opened = match maps.devices[device].is_real {
                true => {
                    let opened = OpenOptions::new().read(true).write(writes).open(&file.path)?;
                    Some(zones::ZonedDevice::of(opened)?)
                }
                false => None,
            };
            files.push((device, opened));
        }
        // A worker that only reads frees no zones, so no other worker waits for it.
        let works = match writes {
            true => files.iter().fold(0, |all, &(device, _)| all | doing::works_on(device)),
            false => 0,
        };
        arena.slot(index).control.zones.store(works, Relaxed);
        let starts = |device: &Device| device.zones.iter().map(|zone| zone.start).collect();
        Ok(WorkerZones {
            maps: maps.clone(),
            files,
            held: Vec::new(),
            own: Vec::new(),
            most_own: rules.most_open,
            most_open: layout
                .files
                .iter()
                .map(|file| file.zoned.map_or(0, |zoned| zoned.most_open))
                .collect(),
            recovers: rules.recovers,
            imagined: is_dry.then(|| maps.devices.iter().map(starts).collect()),
            works,
            arena: arena.clone(),
            index,
        })
    }

    fn device(&self, file: u32) -> &Device {
        &self.maps.devices[self.files[file as usize].0]
    }

    fn held(&mut self, file: u32, zone: u32) -> Option<&mut Held> {
        let device = self.files[file as usize].0;
        self.held.iter_mut().find(|held| held.device == device && held.zone == zone)
    }

    fn count_reset(&self) {
        self.arena.slot(self.index).stats.zone_resets.add(1);
    }

    /// Asks the device about a zone that this worker has locked.
    fn look(&self, file: u32, zone: u32) -> Result<(), String> {
        let device = self.device(file);
        let Some(opened) = &self.files[file as usize].1 else { return Ok(()) };
        let start = device.zones[zone as usize].start;
        let found = opened.report(start, 1).map_err(|error| self.words(file, "report", zone, &error))?;
        if let Some(found) = found.first() {
            device.learn(zone, found);
        }
        Ok(())
    }

    fn words(&self, file: u32, what: &str, zone: u32, error: &io::Error) -> String {
        let device = self.device(file);
        let name = device.names[0].display();
        let start = device.zones[zone as usize].start;
        format!("{what} of the zone at offset {start} of {name}: {}", describe_error(error))
    }

    /// Like `words`, with the zone's state if it no longer accepts commands.
    fn refused(&self, file: u32, what: &str, zone: u32, error: &io::Error) -> String {
        let words = self.words(file, what, zone, error);
        let start = self.device(file).zones[zone as usize].start;
        let opened = self.files[file as usize].1.as_ref();
        let found = opened.and_then(|opened| opened.report(start, 1).ok()?.pop());
        match found.map(|found| found.condition) {
            Some(ZoneCondition::ReadOnly) => format!("{words}; the zone can only be read"),
            Some(ZoneCondition::Offline) => format!("{words}; the zone is offline"),
            _ => words,
        }
    }

    /// A zone of this worker is no longer open.
    fn close(&mut self, file: u32, zone: u32) {
        self.disown(file, zone);
        self.device(file).close(zone);
    }

    /// Removes the zone from this worker's list in the same way as from the shared list, so that a dry pass chooses the
    /// same zones as one with I/O.
    fn disown(&mut self, file: u32, zone: u32) {
        let device = self.files[file as usize].0;
        if let Some(place) = self.own.iter().position(|&own| own == (device, zone)) {
            self.own.swap_remove(place);
        }
    }

    /// The last I/O on a zone has completed: performs the actions that waited for that.
    fn settle(&mut self, file: u32, zone: u32, failed: bool) -> Result<(), String> {
        let device = self.device(file);
        let record = device.record(zone);
        let mut settled = Ok(());
        if failed && self.recovers {
            record.flags.fetch_and(!ENDING, Relaxed);
            settled = self.look(file, zone);
        } else if failed {
            record.flags.fetch_or(UNSURE, Relaxed);
        }
        let device = self.device(file);
        let end = device.zones[zone as usize].start + device.zones[zone as usize].capacity;
        let next = record.next.load(Relaxed);
        if !failed {
            record.written.store(next, Release);
        }
        if next < end && !device.has(zone, ENDING) {
            return settled;
        }
        if self.is_to_finish(file, zone, next < end, failed) {
            let Zone { start, size, .. } = device.zones[zone as usize];
            if let Some(opened) = &self.files[file as usize].1
                && let Err(error) = opened.finish(start, size)
            {
                settled = Err(self.refused(file, "finishing", zone, &error));
            }
        }
        record.next.store(end, Relaxed);
        self.close(file, zone);
        settled
    }

    /// Whether a zone must be finished on the device after its last write. A failed write leaves it open there, so that
    /// it counts towards the limit of open zones.
    fn is_to_finish(&self, file: u32, zone: u32, has_room: bool, failed: bool) -> bool {
        if !failed {
            return has_room;
        }
        let start = self.device(file).zones[zone as usize].start;
        let asks = self.most_open[file as usize] > 0;
        let opened = self.files[file as usize].1.as_ref().filter(|_| asks);
        let found = opened.and_then(|opened| opened.report(start, 1).ok()?.pop());
        found.is_some_and(|found| {
            use ZoneCondition::{Closed, ExplicitlyOpen, ImplicitlyOpen};
            matches!(found.condition, ImplicitlyOpen | ExplicitlyOpen | Closed)
        })
    }

    fn wrote(&mut self, file: u32, zone: u32, io: &Io, fate: Fate) -> Result<(), String> {
        let record = self.device(file).record(zone);
        match fate {
            Fate::Done => {
                if record.written.load(Relaxed) == io.offset {
                    record.written.store(io.offset + io.length, Release);
                }
            }
            Fate::Withdrawn => {
                if record.next.load(Relaxed) == io.offset + io.length {
                    record.next.store(io.offset, Relaxed);
                    record.flags.fetch_and(!ENDING, Relaxed);
                }
            }
            Fate::Failed => {}
        }
        let Some(held) = self.held(file, zone) else { return Ok(()) };
        held.failed |= fate == Fate::Failed;
        held.in_flight -= 1;
        let (left, failed) = (held.in_flight, held.failed);
        if left > 0 {
            return Ok(());
        }
        let settled = self.settle(file, zone, failed);
        self.release(file, zone);
        settled
    }

    fn trimmed(&mut self, file: u32, zone: u32, fate: Fate) -> Result<(), String> {
        let record = self.device(file).record(zone);
        let start = self.device(file).zones[zone as usize].start;
        let mut settled = Ok(());
        match fate {
            Fate::Done => {
                if record.next.load(Relaxed) != start {
                    self.count_reset();
                }
                record.next.store(start, Relaxed);
                record.written.store(start, Release);
                self.close(file, zone);
            }
            Fate::Failed => settled = self.look(file, zone),
            Fate::Withdrawn => {}
        }
        if let Some(held) = self.held(file, zone) {
            held.in_flight = 0;
        }
        self.release(file, zone);
        settled
    }

    /// This worker has locked a zone. If its last owner did not know the zone's state, the device is asked.
    fn take_over(&self, file: u32, zone: u32, is_inherited: bool) {
        let record = self.device(file).record(zone);
        let me = self.index as u32 + 1;
        let before = record.owner.swap(me, Relaxed);
        if is_inherited {
            // The kernel releases a dead worker's locks before its last writes are complete.
            self.await_end(before);
        } else if before == me || record.flags.load(Relaxed) & UNSURE == 0 {
            return;
        }
        record.flags.fetch_and(!(ENDING | UNSURE), Relaxed);
        // If the device does not report the zone, the next write to it fails.
        let _ = self.look(file, zone);
    }

    /// Waits until a worker that was killed has no more writes in flight.
    fn await_end(&self, owner: u32) {
        let Some(index) = (owner as usize).checked_sub(1).filter(|&index| index < self.arena.count()) else {
            return;
        };
        let id = self.arena.slot(index).control.id.load(Relaxed);
        let until = Instant::now() + LAST_WRITES;
        while has_memory(id) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Opens a zone that this worker has locked, unless it is open. Returns whether it may be.
    fn open(&mut self, file: u32, zone: u32) -> bool {
        let index = self.files[file as usize].0;
        let maps = &self.maps;
        // Others fill and reset zones that this worker has opened.
        self.own.retain(|&(device, zone)| maps.devices[device].has(zone, OPEN));
        let is_own = self.own.contains(&(index, zone));
        let most = self.most_open[file as usize];
        let device = self.device(file);
        if self.most_own > 0 && !is_own && self.own.len() >= self.most_own as usize {
            return false;
        }
        if !device.has(zone, OPEN) && !device.open(zone, most) {
            return false;
        }
        if self.most_own > 0 && !is_own {
            self.own.push((index, zone));
        }
        true
    }

    fn claim_dryly(&mut self, file: u32, zone: u32, opens: bool) -> Claim {
        let index = self.files[file as usize].0;
        let (most_own, most) = (self.most_own as usize, self.most_open[file as usize] as usize);
        if opens && (most_own > 0 || most > 0) && !self.own.contains(&(index, zone)) {
            let here = self.own.iter().filter(|own| own.0 == index).count();
            if (most_own > 0 && self.own.len() >= most_own) || (most > 0 && here >= most) {
                return Claim::Limit;
            }
            self.own.push((index, zone));
        }
        Claim::Granted(self.zone(file, zone))
    }

    fn imagine(&mut self, file: u32, zone: u32) -> Option<&mut u64> {
        let device = self.files[file as usize].0;
        self.imagined.as_mut().map(|devices| &mut devices[device][zone as usize])
    }
}

impl Zones for WorkerZones {
    fn at(&self, file: u32, offset: u64) -> u32 {
        self.device(file).at(offset)
    }

    fn zone(&self, file: u32, zone: u32) -> ZoneState {
        let (device, _) = self.files[file as usize];
        let in_flight = self.held.iter().find(|held| held.device == device && held.zone == zone);
        let state = self.device(file).state(zone, in_flight.map_or(0, |held| held.in_flight));
        match &self.imagined {
            Some(devices) => {
                let next = devices[device][zone as usize];
                ZoneState { next, written: next, in_flight: 0, ..state }
            }
            None => state,
        }
    }

    fn claim(&mut self, file: u32, zone: u32, opens: bool, waits: bool) -> Claim {
        let index = self.files[file as usize].0;
        if self.device(file).has(zone, UNUSABLE) {
            return Claim::Unusable;
        }
        if self.imagined.is_some() {
            return self.claim_dryly(file, zone, opens);
        }
        let recovers = self.recovers;
        match self.held(file, zone) {
            // The device is asked for its write pointer when nothing is in flight any more.
            Some(held) if held.failed && held.in_flight > 0 && recovers => return Claim::Busy,
            Some(_) => {}
            None => {
                let lock = &self.device(file).record(zone).lock;
                let locked = if waits { lock.lock_within(PATIENCE) } else { lock.try_lock() };
                if locked == Locked::No {
                    return Claim::Busy;
                }
                self.take_over(file, zone, locked == Locked::Inherited);
                self.held.push(Held { device: index, zone, in_flight: 0, failed: false });
                if self.device(file).has(zone, UNUSABLE) {
                    self.release(file, zone);
                    return Claim::Unusable;
                }
            }
        }
        if opens && !self.open(file, zone) {
            self.release(file, zone);
            return Claim::Limit;
        }
        self.arena.slot(self.index).control.zones.store(self.works, Relaxed);
        Claim::Granted(self.zone(file, zone))
    }

    fn release(&mut self, file: u32, zone: u32) {
        let device = self.files[file as usize].0;
        if self.imagined.is_some() {
            let state = self.zone(file, zone);
            if state.next == state.start || state.next >= state.start + state.capacity {
                self.disown(file, zone);
            }
            return;
        }
        let place = self.held.iter().position(|held| held.device == device && held.zone == zone);
        let Some(place) = place.filter(|&place| self.held[place].in_flight == 0) else { return };
        self.held.swap_remove(place);
        let device = self.device(file);
        // A zone that was opened and then not written to is not open.
        let Zone { start, capacity, .. } = device.zones[zone as usize];
        let next = device.record(zone).next.load(Relaxed);
        if next == start || next >= start + capacity {
            self.close(file, zone);
        }
        self.device(file).record(zone).lock.unlock();
    }

    fn open_zone(&mut self, file: u32, zones: Range<u32>, choice: u64) -> Option<u32> {
        let index = self.files[file as usize].0;
        let device = self.device(file);
        let is_dry = self.imagined.is_some();
        let is_candidate = |&zone: &u32| {
            let is_open = is_dry || (device.has(zone, OPEN) && !device.has(zone, ENDING | UNUSABLE));
            zones.contains(&zone) && is_open
        };
        let own = self.own.iter().filter(|own| own.0 == index).map(|own| own.1);
        let header = device.header();
        let listed = (header.open.load(Relaxed) as usize).min(MOST_LISTED);
        let listed = header.listed[..listed].iter().map(|zone| zone.load(Relaxed));
        let found: Vec<u32> = match is_dry || (self.most_own > 0 && self.own.len() >= self.most_own as usize)
        {
            true => own.filter(is_candidate).collect(),
            false => listed.filter(is_candidate).collect(),
        };
        // All open zones are equally likely.
        let place = choice.checked_rem(found.len() as u64)?;
        found.get(place as usize).copied()
    }

    fn reserve(&mut self, file: u32, zone: u32, length: u64, is_last: bool) -> u64 {
        let end = {
            let zone = &self.device(file).zones[zone as usize];
            zone.start + zone.capacity
        };
        let start = self.device(file).zones[zone as usize].start;
        if let Some(next) = self.imagine(file, zone) {
            let offset = *next;
            *next = match length {
                // A trim empties the zone.
                0 => start,
                _ if is_last => end,
                _ => offset + length,
            };
            if *next >= end || length == 0 {
                self.disown(file, zone);
            }
            return offset;
        }
        let record = self.device(file).record(zone);
        let offset = record.next.load(Relaxed);
        record.next.store(offset + length, Relaxed);
        if is_last && length > 0 {
            record.flags.fetch_or(ENDING, Relaxed);
        }
        if let Some(held) = self.held(file, zone) {
            held.in_flight += 1;
            held.failed &= held.in_flight > 1;
        }
        offset
    }

    fn finish(&mut self, file: u32, zone: u32) -> Result<(), String> {
        let Zone { start, size, capacity, .. } = self.device(file).zones[zone as usize];
        if let Some(next) = self.imagine(file, zone) {
            *next = start + capacity;
            return Ok(());
        }
        if let Some(opened) = &self.files[file as usize].1 {
            opened.finish(start, size).map_err(|error| self.refused(file, "finishing", zone, &error))?;
        }
        self.device(file).record(zone).next.store(start + capacity, Relaxed);
        Ok(())
    }

    fn reset(&mut self, file: u32, zone: u32) -> Result<(), String> {
        let Zone { start, size, .. } = self.device(file).zones[zone as usize];
        if let Some(next) = self.imagine(file, zone) {
            *next = start;
            return Ok(());
        }
        if let Some(opened) = &self.files[file as usize].1 {
            opened.reset(start, size).map_err(|error| self.refused(file, "reset", zone, &error))?;
        }
        self.count_reset();
        let record = self.device(file).record(zone);
        record.next.store(start, Relaxed);
        record.written.store(start, Release);
        Ok(())
    }

    fn completed(&mut self, io: &Io, fate: Fate) -> Result<(), String> {
        if self.imagined.is_some() || io.direction == Direction::Read {
            return Ok(());
        }
        let zone = self.device(io.file).at(io.offset);
        if self.device(io.file).zones[zone as usize].kind == ZoneKind::Conventional {
            return Ok(());
        }
        match io.direction {
            Direction::Trim => self.trimmed(io.file, zone, fate),
            _ => self.wrote(io.file, zone, io, fate),
        }
    }

    fn written(&self, file: u32, zones: Range<u32>) -> u64 {
        let device = self.device(file);
        // Read-only and offline zones are neither written nor reset.
        let is_written = |zone: u32| {
            device.zones[zone as usize].kind != ZoneKind::Conventional && !device.has(zone, UNUSABLE)
        };
        let sequential = zones.filter(|&zone| is_written(zone));
        sequential.map(|zone| self.zone(file, zone)).map(|zone| zone.next - zone.start).sum()
    }

    fn loss(&self, io: &Io) -> Option<String> {
        let device = self.device(io.file);
        let opened = self.files[io.file as usize].1.as_ref()?;
        let zone = device.zones.get(device.at(io.offset) as usize)?;
        let now = opened.report(zone.start, 1).ok()?.pop()?;
        if now.condition == ZoneCondition::Offline {
            return Some(format!("the zone at offset {} is offline", zone.start));
        }
        let pointer = match now.condition {
            ZoneCondition::Conventional | ZoneCondition::Full | ZoneCondition::ReadOnly => return None,
            ZoneCondition::Empty => now.start,
            _ => now.pointer,
        };
        (pointer < io.offset + io.length).then(|| {
            format!(
                "the write pointer of the zone at offset {} is at {pointer}: the writes from there on are lost",
                zone.start
            )
        })
    }

    fn waits_in_vain(&mut self) -> bool {
        self.arena.slot(self.index).control.zones.store(self.works | doing::WAITS, Relaxed);
        // Only workers on the same devices can make room.
        let works = |index: usize| {
            let control = &self.arena.slot(index).control;
            let word = control.zones.load(Relaxed);
            control.phase().is_running() && word & doing::WAITS == 0 && word & self.works != 0
        };
        !(0..self.arena.count()).any(|index| index != self.index && works(index))
    }
}

impl Drop for WorkerZones {
    /// Gives back the zones that are still locked. Their I/Os are complete, or their outcome stays unknown.
    fn drop(&mut self) {
        for held in std::mem::take(&mut self.held) {
            let record = self.maps.devices[held.device].record(held.zone);
            if held.in_flight > 0 || held.failed {
                record.flags.fetch_or(UNSURE, Relaxed);
            }
            record.lock.unlock();
        }
        self.arena.slot(self.index).control.zones.store(0, Relaxed);
    }
}

/// Whether a process or thread still has memory. One without memory is dying and can have no I/O in flight.
fn has_memory(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    // The name before it may contain any character.
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    !matches!(state, Some('Z' | 'X'))
}

/// How the generator uses the zones.
pub fn zone_use(rules: &ZoneRules) -> ZoneUse {
    ZoneUse {
        skip: rules.skip,
        read_beyond: rules.read_beyond,
        rewrites: rules.rewrites,
        begins_empty: rules.begins_empty,
        writes_remainder: rules.writes_remainder,
        one_by_one: rules.one_by_one,
        skip_wraps: rules.skip_wraps,
        reset_threshold: rules.reset_threshold,
        reset_every: rules.reset_every,
        laps: rules.laps,
    }
}
