//! The loop as its worker drives it: all that is done once for a run or a pass is compiled once, not for each kind of loop.

use super::ending::PassEnd;
use super::{Common, IoLoop};
use iolite_engine::{DynEngine, Engine};
use iolite_workload::Generator;

/// A loop of any kind.
pub trait AnyLoop<'a> {
    /// What the loop has whatever it is compiled for.
    fn common(&mut self) -> &mut Common<'a>;
    /// The same, with the engine.
    fn with_engine(&mut self) -> (&mut Common<'a>, &mut dyn DynEngine);
    /// The workload.
    fn generator(&mut self) -> &mut dyn Generator;
    /// Issues I/O until the pass is finished or something ends the job. Returns when nothing is in flight.
    fn pass(&mut self) -> PassEnd;
    /// Goes through a pass without issuing I/O, because an earlier run has done it. (Only the full loop verifies.)
    fn dry_pass(&mut self) -> PassEnd;
    /// Syncs what is due after a pass that another one follows.
    fn sync_between_passes(&mut self);
    /// Reads back the writes of the pass. Returns when nothing is in flight.
    fn read_back(&mut self) -> PassEnd;
    /// Does the pending trims of a pass that is not read back. Returns when nothing is in flight.
    fn trim_the_rest(&mut self) -> PassEnd;
}

impl<'a, E: Engine, G: Generator, const FULL: bool> AnyLoop<'a> for IoLoop<'a, E, G, FULL> {
    fn common(&mut self) -> &mut Common<'a> {
        &mut self.common
    }

    fn with_engine(&mut self) -> (&mut Common<'a>, &mut dyn DynEngine) {
        (&mut self.common, &mut self.engine)
    }

    fn generator(&mut self) -> &mut dyn Generator {
        &mut self.generator
    }

    fn pass(&mut self) -> PassEnd {
        IoLoop::pass(self)
    }

    fn dry_pass(&mut self) -> PassEnd {
        if FULL { IoLoop::dry_pass(self) } else { PassEnd::Finished }
    }

    fn sync_between_passes(&mut self) {
        if FULL {
            IoLoop::sync_between_passes(self);
        }
    }

    fn read_back(&mut self) -> PassEnd {
        if FULL { IoLoop::read_back(self) } else { PassEnd::Finished }
    }

    fn trim_the_rest(&mut self) -> PassEnd {
        if FULL { IoLoop::trim_the_rest(self) } else { PassEnd::Finished }
    }
}
