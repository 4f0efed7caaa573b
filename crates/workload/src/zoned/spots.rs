//! The places of random I/Os in zones. They come from the same [`Coverage`] as without zones, over the usable bytes of
//! all zones.
//!
//! The coverage counts as if each zone had the same number of usable bytes. A place behind the end of a smaller zone is
//! passed over. In a sequential zone, only the zone of a place matters for a write, which goes to the write pointer:
//! each zone gets as many writes as blocks fit into it, so a lap writes each block once. If a write has to go to another
//! zone (because no more zones may be opened, or the zone is unusable), the zones are no longer filled evenly. So the
//! bytes of a lap are counted for each sequential zone, and a zone that has had all its bytes gets no more.

use super::{ZoneState, Zones};
use crate::coverage::{Coverage, Strategy, directions, random_size};
use crate::offset::Tables;
use crate::rng::Rng;
use crate::sizes::Sizes;
use crate::{Error, Region, Spec};
use iolite_types::Direction;
use std::ops::Range;

/// A place for a random I/O. The offset counts from the beginning of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) zone: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The random places of a file.
#[derive(Clone, Debug)]
pub(super) struct Spots {
    coverage: Coverage,
    /// Each block comes once in a lap.
    covers: bool,
    /// The usable bytes of the largest zone, in whole blocks.
    stride: u64,
    region: Region,
    zones: Range<u32>,
    /// Use zones beyond their capacity.
    beyond: bool,
    /// A block that is cut short by the end of a zone is written.
    cuts: bool,
    /// Places that were drawn and could not be used yet.
    waiting: [Vec<Spot>; 3],
    /// For each zone, the bytes that this lap's random writes have used of it; empty if blocks may come twice.
    used: Vec<u64>,
    /// The number of sequential zones, and of those with room for more random writes in this lap.
    sequential: u32,
    unused: u32,
}

/// The part of a zone that lies in the region and can be used: its first byte and its end.
fn usable(state: &ZoneState, region: Region, beyond: bool) -> (u64, u64) {
    let end = state.start + if beyond { state.size } else { state.capacity };
    (state.start.max(region.offset), end.min(region.offset + region.length))
}

impl Spots {
    /// The places in these zones of the `file`th file. `beyond`: zones are used beyond their capacity. `cuts`: a smaller
    /// block is written to the rest of a zone.
    pub(super) fn new<Z: Zones>(
        spec: &Spec,
        file: u32,
        (zones, range): (&Z, Range<u32>),
        (beyond, cuts): (bool, bool),
        tables: &mut Tables,
    ) -> Result<Spots, Error> {
        let (strategy, region) = (Strategy::of(spec), spec.files[file as usize]);
        let random = directions(spec).iter().filter(|&&direction| spec.random_percent[direction] > 0);
        let block = random.map(|&direction| random_size(spec, direction).min()).max().unwrap_or(1).max(1);
        let (mut largest, mut sequential) = (0, 0);
        if strategy != Strategy::Sequential {
            for zone in range.clone() {
                let state = zones.zone(file, zone);
                let (from, to) = usable(&state, region, beyond);
                largest = to.saturating_sub(from).max(largest);
                sequential += u32::from(state.is_sequential);
            }
        }
        let blocks = if cuts { largest.div_ceil(block) } else { largest / block };
        let stride = blocks * block;
        let covers = matches!(strategy, Strategy::Permutation(_) | Strategy::Lfsr(_) | Strategy::Bitmap(_))
            && stride > 0;
        let length = stride.saturating_mul(range.len() as u64);
        Ok(Spots {
            coverage: Coverage::new(spec, strategy, length, file as usize, tables)?,
            covers,
            stride,
            region,
            beyond,
            cuts,
            waiting: Default::default(),
            used: if covers && sequential > 0 { vec![0; range.len()] } else { Vec::new() },
            zones: range,
            sequential,
            unused: sequential,
        })
    }

    /// Whether each block comes once in a lap.
    pub(super) fn covers(&self) -> bool {
        self.covers
    }

    /// Whether each block comes once in a lap, and some blocks are in conventional zones.
    pub(super) fn has_conventional(&self) -> bool {
        self.covers && (self.sequential as usize) < self.zones.len()
    }

    /// Begins another lap.
    pub(super) fn restart(&mut self) {
        self.coverage.restart();
        self.begin();
    }

    /// Goes back to the first lap.
    pub(super) fn rewind(&mut self, seed: u64, file: usize) {
        self.coverage.rewind(seed, file);
        self.begin();
    }

    fn begin(&mut self) {
        self.waiting.iter_mut().for_each(Vec::clear);
        self.used.fill(0);
        self.unused = self.sequential;
    }

    /// The `index`th of the places that wait to be used in this direction; `index` is at most their number. `None` = the
    /// lap is over, or no I/O fits.
    pub(super) fn get<Z: Zones>(
        &mut self,
        (direction, index): (Direction, usize),
        (zones, file): (&Z, u32),
        sizes: &Sizes,
        (offsets, lengths): (&mut Rng, &mut Rng),
    ) -> Option<Spot> {
        while self.stride > 0 && self.waiting[direction.index()].len() <= index {
            let place = self.coverage.next(direction, sizes, offsets, lengths)?;
            let within = place.offset % self.stride;
            // The coverage does not know where zones end: a place may reach into the next one.
            let rest = (within + place.length).saturating_sub(self.stride);
            let zone = self.zones.start + (place.offset / self.stride) as u32;
            for (zone, within, length) in [(zone, within, place.length - rest), (zone + 1, 0, rest)] {
                if length > 0 && zone < self.zones.end {
                    let state = zones.zone(file, zone);
                    let spot = self.in_zone((&state, zone), (within, length), direction, sizes.min());
                    self.waiting[direction.index()].extend(spot);
                }
            }
        }
        self.waiting[direction.index()].get(index).copied()
    }

    /// A place in a zone; `None` = the usable part of the zone has no room for it.
    fn in_zone(
        &self,
        (state, zone): (&ZoneState, u32),
        (within, length): (u64, u64),
        direction: Direction,
        smallest: u64,
    ) -> Option<Spot> {
        let (from, to) = usable(state, self.region, self.beyond);
        let room = to.saturating_sub(from);
        // Where blocks may come twice, a place that does not fit into its zone moves towards the beginning of the zone.
        let within = match self.covers || within + length <= room {
            true => within,
            false => room.checked_sub(length)? / smallest * smallest,
        };
        let length = length.min(room.saturating_sub(within));
        let is_cut = self.cuts && direction == Direction::Write && state.is_sequential;
        let fits = length >= if is_cut { 1 } else { smallest };
        fits.then_some(Spot { zone, offset: from + within, length })
    }

    /// The first `length` bytes of a place have been used. If an I/O of the `smallest` size fits into the rest, that waits
    /// to be used.
    pub(super) fn take(&mut self, direction: Direction, index: usize, length: u64, smallest: u64) {
        let waiting = &mut self.waiting[direction.index()];
        let spot = &mut waiting[index];
        (spot.offset, spot.length) = (spot.offset + length, spot.length.saturating_sub(length));
        if spot.length < smallest {
            waiting.swap_remove(index);
        }
    }

    /// Whether a sequential zone has room for more random writes in this lap.
    pub(super) fn has_room(&self, zone: u32) -> bool {
        self.used.get((zone - self.zones.start) as usize).is_none_or(|&used| used != u64::MAX)
    }

    /// Whether any sequential zone has room for more random writes in this lap.
    pub(super) fn has_any_room(&self) -> bool {
        !self.covers || self.unused > 0
    }

    /// Counts bytes of a sequential zone that a random write has used. The zone is done when less than `smallest` bytes
    /// are left.
    pub(super) fn count(&mut self, state: &ZoneState, zone: u32, bytes: u64, smallest: u64) {
        let Some(used) = self.used.get_mut((zone - self.zones.start) as usize) else { return };
        if *used == u64::MAX {
            return;
        }
        *used = used.saturating_add(bytes);
        if used.saturating_add(smallest) > state.capacity {
            *used = u64::MAX;
            self.unused -= 1;
        }
    }

    /// A sequential zone gets no more random writes in this lap.
    pub(super) fn close(&mut self, state: &ZoneState, zone: u32) {
        self.count(state, zone, u64::MAX, 0);
    }
}
