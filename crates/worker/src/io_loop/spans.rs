//! How long each direction runs, for its rates. A pass is a span of the workload's directions. Reading back is a span
//! of reads, and trimming verified blocks is a span of trims. Spans start and end outside the loop's steady state.

use super::{Common, IoLoop};
use iolite_engine::Engine;
use iolite_os::shared::Phase;
use iolite_types::Direction;
use iolite_workload::Generator;

impl<E: Engine, G: Generator, const FULL: bool> IoLoop<'_, E, G, FULL> {
    /// Runs I/O of this direction that is not part of the workload. If the direction's span is running already, this is
    /// part of it.
    pub(super) fn within_span(&mut self, direction: Direction, act: impl FnOnce(&mut Self)) {
        let runs = self.common.stats.directions[direction.index()].clock.runs();
        let only = Direction::ALL.map(|other| !runs && other == direction);
        self.common.stats.begin_span(only, self.common.clock.now());
        self.common.beside = true;
        act(self);
        self.common.beside = false;
        self.common.stats.end_span(only, self.common.clock.now());
    }
}

impl Common<'_> {
    /// A pass starts.
    pub fn begin_pass(&mut self) {
        self.end.was_busy = !self.is_full || self.rules.works;
        self.stats.begin_span(self.rules.moves, self.clock.now());
    }

    /// The pass is over, including the sync at its end.
    pub fn end_pass(&self) {
        self.stats.end_span(self.rules.moves, self.clock.now());
    }

    /// Whether the pass had no I/O at all.
    pub fn was_idle(&self) -> bool {
        !self.end.was_busy
    }

    /// The worker's phase while it issues I/O of the workload.
    pub fn phase(&self) -> Phase {
        if self.time.ramping { Phase::Ramping } else { Phase::Running }
    }
}
