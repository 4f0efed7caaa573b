//! The stamps of each I/O, for the process that joins them with those of the kernel (`stages`).

use super::IoLoop;
use super::failure::Attempt;
use super::flight::Times;
use iolite_engine::{Engine, Unit};
use iolite_os::clock::Clock;
use iolite_plan::StageRules;
use iolite_stages::{IoStamps, MOST_GIVEN, StageArea};
use iolite_types::Direction;
use iolite_workload::Generator;

/// A unit's place among those that one call submitted, in sectors.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    before: u32,
    together: u32,
}

/// Writes the stamps of a worker.
pub struct StageStamps<'a> {
    area: &'a StageArea,
    worker: usize,
    /// `CLOCK_MONOTONIC` when the worker's clock showed zero.
    origin: u64,
    from_start: bool,
    /// The engine tells when an answer begins.
    by_first_bytes: bool,
    /// The place of each unit.
    places: Vec<Place>,
}

impl<'a> StageStamps<'a> {
    /// # Panics
    /// If the clock is not the system's: the plan has chosen that one.
    pub fn new(area: &'a StageArea, worker: usize, clock: Clock, rules: StageRules, depth: u32) -> Self {
        let StageRules { from_start, by_first_bytes, .. } = rules;
        let origin = clock.monotonic_origin().expect("with stages, the clock is CLOCK_MONOTONIC");
        StageStamps {
            area,
            worker,
            origin,
            from_start,
            by_first_bytes,
            places: vec![Place::default(); depth as usize],
        }
    }

    /// An I/O of the workload is complete. `first_byte`: how long after issue its answer began, if the engine tells.
    #[inline]
    pub(super) fn record(
        &self,
        unit: &Unit,
        whole: &Attempt,
        direction: Direction,
        times: Times,
        first_byte: Option<u64>,
    ) {
        let Place { before, together } = self.places[unit.index as usize];
        let began = self.origin + if self.from_start { times.start } else { times.issue };
        let completed = self.origin + times.complete;
        let mut given = [0; MOST_GIVEN];
        if self.by_first_bytes {
            // An answer without a body has only an end.
            given[0] = first_byte.map_or(completed, |after| began + after);
        }
        let stamps = IoStamps {
            began,
            submitted: if times.queued { self.origin + times.issue } else { 0 },
            completed,
            offset: whole.offset,
            length: whole.length,
            file: unit.file,
            unit: unit.index,
            before,
            together: if times.queued { together } else { 0 },
            direction: direction.index() as u32,
            stamps_given: self.by_first_bytes.into(),
            given,
        };
        self.area.push(self.worker, stamps);
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Notes the places of the units that were submitted together just now.
    pub(super) fn note_places(&mut self) {
        let Some(stages) = &mut self.extras.stages else { return };
        if let [only] = self.flight.pending[..] {
            stages.places[only as usize] = Place::default();
            return;
        }
        let sectors = |index: u32| self.flight.table.units[index as usize].length.div_ceil(512) as u32;
        let each = self.flight.pending.iter().map(|&index| sectors(index));
        let together = each.fold(0, u32::saturating_add);
        let mut before = 0;
        for &index in &self.flight.pending {
            stages.places[index as usize] = Place { before, together };
            before = u32::saturating_add(before, sectors(index));
        }
    }
}
