//! Chooses the zones and the offsets of writes.

use super::{Chosen, Claim, Cursor, File, ZoneState, ZonedGenerator, Zones};
use iolite_types::Direction;

/// The result of looking for a write in one zone.
pub(super) enum InZone {
    Io {
        offset: u64,
        length: u64,
        /// No further write fits into the zone after this one.
        is_last: bool,
    },
    Wait,
    Busy,
    Limit,
    /// The zone is full or cannot be used.
    Passed,
    Failed(String),
}

/// How often a random write draws another zone because a zone is busy, before it waits.
const BUSY_TRIES: u32 = 4;

impl<Z: Zones> ZonedGenerator<Z> {
    /// Chooses a sequential write: in the current zone, or else in the next zone with room.
    pub(super) fn write_on(&mut self, file: usize) -> Chosen {
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
                    // The worker that fills a zone moves on to the next one. A worker whose cursor stays at the full
                    // zone resets it and writes it again.
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

    /// Moves the cursor to the next zone, past any zones to skip.
    pub(super) fn advance(&mut self, file: usize, direction: usize, state: &ZoneState) {
        let File { zones, cursors, .. } = &mut self.files[file];
        let cursor = &mut cursors[direction];
        let skipped = if cursor.entered { self.how.skip / state.size.max(1) } else { 0 };
        let mut zone = u64::from(cursor.zone) + 1 + skipped;
        if skipped > 0 && zone >= zones.end.into() && self.how.skip_wraps {
            zone = zones.start.into();
        }
        *cursor = Cursor { zone: zone.min(zones.end.into()) as u32, offset: 0, entered: false };
    }

    /// Chooses a write at the write pointer of this zone. `rewrites`: a full zone is reset first.
    pub(super) fn write_in(&mut self, file: usize, zone: u32, rewrites: bool) -> InZone {
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

    pub(super) fn is_reset_due(&self, file: usize) -> bool {
        let every = self.how.reset_every;
        every > 0
            && self.writes > 0
            && self.writes.is_multiple_of(every)
            && self.zones.written(file as u32, self.files[file].zones.clone()) as f64
                > self.how.reset_threshold * self.files[file].region.length as f64
    }

    /// Chooses a write to an open zone, because no other zone may be opened. If the zone has too little room for a
    /// block, it is finished, so that another zone can be opened.
    pub(super) fn write_in_open(&mut self, file: usize) -> Chosen {
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
        // The last other worker may have made room just now, so this worker gives up only at the second such check.
        match std::mem::replace(&mut self.waited_in_vain, in_vain) && in_vain {
            true => Chosen::Nothing,
            false => Chosen::Wait,
        }
    }

    /// Finishes a zone that has too little room for another block.
    pub(super) fn finish(&mut self, file: usize, zone: u32) -> Chosen {
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

    /// Draws a zone of the file, or continues a run in the last zone.
    pub(super) fn draw_zone(&mut self, file: usize) -> u32 {
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

    /// The zone after this one; the first zone follows the last one.
    pub(super) fn following(&self, file: usize, zone: u32) -> u32 {
        let zones = &self.files[file].zones;
        if zone + 1 < zones.end { zone + 1 } else { zones.start }
    }

    pub(super) fn write_somewhere(&mut self, file: usize) -> Chosen {
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
}
