//! Chooses the zones and the offsets of writes.

use super::{Chosen, Claim, Cursor, File, Place, Spot, ZoneState, ZonedGenerator, Zones};
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

/// How often a random write tries another place because a zone is busy, before it waits.
const BUSY_TRIES: usize = 4;

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
            match self.write_in(file, zone, self.how.rewrites, None) {
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
                InZone::Limit => return self.write_in_open(file, None),
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

    /// Chooses a write at the write pointer of this zone. `rewrites`: a full zone is reset first. `wanted`: the length,
    /// if it has been drawn.
    pub(super) fn write_in(&mut self, file: usize, zone: u32, rewrites: bool, wanted: Option<u64>) -> InZone {
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
        let length = match wanted {
            _ if room < smallest => room,
            Some(wanted) => wanted.max(smallest).min(room),
            None => self.rules[Direction::Write.index()].sizes.draw(&mut self.rngs.lengths, room),
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
    pub(super) fn write_in_open(&mut self, file: usize, wanted: Option<u64>) -> Chosen {
        let choice = self.rngs.zones.next_u64();
        let zones = self.files[file].zones.clone();
        if let Some(zone) = self.zones.open_zone(file as u32, zones, choice) {
            return match self.write_in(file, zone, false, wanted) {
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

    /// Draws a zone of the file.
    pub(super) fn draw_zone(&mut self, file: usize) -> u32 {
        let zones = self.files[file].zones.clone();
        zones.start + self.rngs.zones.below(u64::from(zones.end - zones.start)) as u32
    }

    /// The zone after this one; the first zone follows the last one.
    pub(super) fn following(&self, file: usize, zone: u32) -> u32 {
        let zones = &self.files[file].zones;
        if zone + 1 < zones.end { zone + 1 } else { zones.start }
    }

    /// Chooses a random write.
    pub(super) fn write_somewhere(&mut self, file: usize) -> Chosen {
        let write = Direction::Write;
        if let Some(chosen) = self.write_in_run(file) {
            return chosen;
        }
        let smallest = self.rules[write.index()].sizes.min();
        let mut busy = 0;
        while busy <= BUSY_TRIES {
            let Some(spot) = self.spot(file, write, busy) else { break };
            match self.write_at(file, spot) {
                InZone::Io { offset, length, .. } => {
                    self.files[file].spots.take(write, busy, length, smallest);
                    return self.begin_run(file, write, offset, length);
                }
                InZone::Busy => busy += 1,
                InZone::Failed(why) => return Chosen::Failed(why),
                InZone::Wait => return Chosen::Wait,
                InZone::Limit => return Chosen::Nothing,
                // No sequential zone has room for it. Blocks of conventional zones may come later.
                InZone::Passed if self.files[file].spots.has_conventional() => {
                    self.files[file].spots.take(write, busy, spot.length, smallest);
                }
                InZone::Passed => return Chosen::Nothing,
            }
        }
        if busy > 0 { Chosen::Wait } else { Chosen::Nothing }
    }

    /// Chooses a write for a random place: there in a conventional zone, or else at the write pointer of its zone, or in
    /// another zone if that one takes no more (in a conventional one only where blocks may come twice). `Limit` = no zone can
    /// ever be opened.
    fn write_at(&mut self, file: usize, spot: Spot) -> InZone {
        let Spot { mut zone, offset, length } = spot;
        let number = file as u32;
        if !self.zones.zone(number, zone).is_sequential {
            return InZone::Io { offset, length, is_last: false };
        }
        for _ in 0..self.files[file].zones.len() {
            if !self.files[file].spots.has_any_room() {
                break;
            }
            let state = self.zones.zone(number, zone);
            if !state.is_sequential && !self.files[file].spots.covers() {
                let (from, to) = self.within(file, state.start, state.start + state.size);
                if let Some((offset, length)) = self.place(Direction::Write, from, to) {
                    return InZone::Io { offset, length, is_last: false };
                }
            }
            if state.is_sequential && self.files[file].spots.has_room(zone) {
                match self.write_in(file, zone, self.how.rewrites, Some(length)) {
                    InZone::Io { offset, length, is_last } => {
                        self.count(file, offset, length);
                        return InZone::Io { offset, length, is_last };
                    }
                    InZone::Limit => {
                        return match self.write_in_open(file, Some(length)) {
                            Chosen::Io(offset, length) => {
                                self.count(file, offset, length);
                                InZone::Io { offset, length, is_last: false }
                            }
                            Chosen::Wait => InZone::Wait,
                            Chosen::Nothing => InZone::Limit,
                            Chosen::Failed(why) => InZone::Failed(why),
                        };
                    }
                    InZone::Passed => self.files[file].spots.close(&state, zone),
                    other => return other,
                }
            }
            zone = self.following(file, zone);
        }
        InZone::Passed
    }

    /// Counts a random write to a sequential zone.
    fn count(&mut self, file: usize, offset: u64, length: u64) {
        let zone = self.zones.at(file as u32, offset);
        let state = self.zones.zone(file as u32, zone);
        let smallest =
            if self.how.writes_remainder { 1 } else { self.rules[Direction::Write.index()].sizes.min() };
        self.files[file].spots.count(&state, zone, length, smallest);
    }

    /// Continues a run of writes; `None` = there is none, or its zone ends here.
    fn write_in_run(&mut self, file: usize) -> Option<Chosen> {
        let Place { offset, length } = self.in_run(file, Direction::Write)?;
        let zone = self.zones.at(file as u32, offset);
        let state = self.zones.zone(file as u32, zone);
        if !state.is_sequential {
            let next = if self.identical { offset } else { offset + length };
            let range = self.within(file, next, state.start + state.size);
            return self.run_on(file, Direction::Write, range);
        }
        match self.write_in(file, zone, self.how.rewrites, None) {
            InZone::Io { offset, length, .. } => {
                self.run_left -= 1;
                self.files[file].last[Direction::Write.index()] = Some(Place { offset, length });
                Some(Chosen::Io(offset, length))
            }
            InZone::Limit => Some(self.write_in_open(file, None)),
            InZone::Wait | InZone::Busy => Some(Chosen::Wait),
            InZone::Failed(why) => Some(Chosen::Failed(why)),
            InZone::Passed => None,
        }
    }
}
