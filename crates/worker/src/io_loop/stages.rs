//! The stamps of each I/O, for the process that joins them with those of the kernel (`stages`).

use super::IoLoop;
use super::failure::Attempt;
use super::flight::Times;
use iolite_engine::{Engine, StageEnds, Unit};
use iolite_os::clock::Clock;
use iolite_plan::{StageRules, StagesBy};
use iolite_stages::{IoStamps, StageArea};
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
    told_by: StagesBy,
    /// The place of each unit.
    places: Vec<Place>,
}

impl<'a> StageStamps<'a> {
    /// # Panics
    /// If the clock is not the system's: the plan has chosen that one.
    pub fn new(area: &'a StageArea, worker: usize, clock: Clock, rules: StageRules, depth: u32) -> Self {
        let StageRules { from_start, told_by, .. } = rules;
        let origin = clock.monotonic_origin().expect("with stages, the clock is CLOCK_MONOTONIC");
        StageStamps {
            area,
            worker,
            origin,
            from_start,
            told_by,
            places: vec![Place::default(); depth as usize],
        }
    }

    /// Whether the engine tells the stages.
    pub(super) fn asks_engine(&self) -> bool {
        self.told_by != StagesBy::Kernel
    }

    /// An I/O of the workload is complete. `told`: what the engine says about its stages.
    #[inline]
    pub(super) fn record(
        &self,
        unit: &Unit,
        whole: &Attempt,
        direction: Direction,
        times: Times,
        told: Option<StageEnds>,
    ) {
        let Place { before, together } = self.places[unit.index as usize];
        let began = self.origin + if self.from_start { times.start } else { times.issue };
        let completed = self.origin + times.complete;
        let submitted = if times.queued { self.origin + times.issue } else { 0 };
        let mut given = told.unwrap_or_default();
        let stamps_given = match (self.told_by, told) {
            (StagesBy::Kernel, _) => 0,
            (_, None) => IoStamps::UNTOLD,
            (StagesBy::Requests, _) => 4,
            (StagesBy::Answers, _) => {
                // The engine has submitted it when the call returned, unless it says otherwise.
                given[0] = if given[0] == 0 { submitted } else { given[0] };
                2
            }
        };
        let stamps = IoStamps {
            began,
            submitted,
            completed,
            offset: whole.offset,
            length: whole.length,
            file: unit.file,
            unit: unit.index,
            before,
            together: if times.queued { together } else { 0 },
            direction: direction.index() as u32,
            stamps_given,
            given,
        };
        self.area.push(self.worker, stamps);
    }
}

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Notes the places of the units that were submitted together just now.
    pub(super) fn note_places(&mut self) {
        let Some(stages) = &mut self.common.extras.stages else { return };
        if let [only] = self.common.flight.pending[..] {
            stages.places[only as usize] = Place::default();
            return;
        }
        let sectors = |index: u32| self.common.flight.table.units[index as usize].length.div_ceil(512) as u32;
        let each = self.common.flight.pending.iter().map(|&index| sectors(index));
        let together = each.fold(0, u32::saturating_add);
        let mut before = 0;
        for &index in &self.common.flight.pending {
            stages.places[index as usize] = Place { before, together };
            before = u32::saturating_add(before, sectors(index));
        }
    }
}
