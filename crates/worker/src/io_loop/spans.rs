//! For how long each direction runs, so that its rates are those of its own time: a pass is a span of the workload's
//! directions, what is read back or trimmed beside it is one of reads or trims. Spans begin and end outside of the
//! loop's steady state.

use super::IoLoop;
use iolite_engine::Engine;
use iolite_os::shared::Phase;
use iolite_types::Direction;
use iolite_workload::Generator;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// A pass begins.
    pub fn begin_pass(&self) {
        self.stats.begin_span(self.rules.moves, self.clock.now());
    }

    /// The pass is over, with the sync at its end.
    pub fn end_pass(&self) {
        self.stats.end_span(self.rules.moves, self.clock.now());
    }

    /// Does something beside the workload whose I/O is of this direction. Where the direction runs anyway, that is part of
    /// its span.
    pub(super) fn within_span(&mut self, direction: Direction, act: impl FnOnce(&mut Self)) {
        let runs = self.stats.directions[direction.index()].clock.runs();
        let only = Direction::ALL.map(|other| !runs && other == direction);
        self.stats.begin_span(only, self.clock.now());
        self.beside = true;
        act(self);
        self.beside = false;
        self.stats.end_span(only, self.clock.now());
    }

    /// How far the worker is while it issues I/O of its workload.
    pub fn phase(&self) -> Phase {
        if self.time.ramping { Phase::Ramping } else { Phase::Running }
    }
}
