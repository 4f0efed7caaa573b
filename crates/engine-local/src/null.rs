//! `null`: does nothing, so that only the cost of the loop remains.

use iolite_engine::{
    Completion, Engine, EngineConfig, EngineError, Errno, FileSpec, OpenMode, Queued, Unit, Visitor,
};
use iolite_types::Operation;
use std::time::Duration;

/// Completes a unit in `queue` at depth 1; at greater depths it queues like an asynchronous engine.
#[derive(Debug)]
pub struct NullEngine {
    depth: usize,
    /// The queued units, oldest first. Those before `reaped` have been removed, those before `committed` may be reaped.
    units: Vec<Completion>,
    reaped: usize,
    committed: usize,
}

impl NullEngine {
    /// An engine for the given depth.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig) -> Result<Self, EngineError> {
        // Twice the depth, so that reaped units are removed only once per `depth` units.
        let units = Vec::with_capacity(config.depth * 2);
        Ok(NullEngine { depth: config.depth, units, reaped: 0, committed: 0 })
    }
}

impl Engine for NullEngine {
    const SYNCHRONOUS: bool = false;
    const EACH_GENERATOR: bool = true;
    const CALLS: bool = false;
    const COMPLETES_IN_COMMIT: bool = true;

    fn visit_shared<V: Visitor>(self, visitor: V) -> V::Out {
        visitor.visit(self)
    }

    fn open(&mut self, _: u32, _: &FileSpec, _: OpenMode) -> std::io::Result<()> {
        Ok(())
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        let bytes = match unit.operation {
            Operation::Read | Operation::Write | Operation::Trim => unit.length,
            Operation::Sync | Operation::DataSync | Operation::SyncFileRange | Operation::Work => 0,
        };
        if self.depth == 1 {
            return Queued::Completed(Ok(bytes));
        }
        if self.units.len() - self.reaped == self.depth {
            return Queued::Busy;
        }
        if self.units.len() == self.depth * 2 {
            self.units.drain(..self.reaped);
            self.committed -= self.reaped;
            self.reaped = 0;
        }
        self.units.push(Completion { unit: unit.index, outcome: Ok(bytes) });
        Queued::Queued
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        let gone = self.units.len() - self.committed;
        self.committed = self.units.len();
        Ok(gone)
    }

    #[inline(always)]
    fn reap(
        &mut self,
        _min: usize,
        max: usize,
        _timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        let count = (self.committed - self.reaped).min(max);
        match self.units[self.reaped..self.reaped + count] {
            // Nearly always, and cheaper than to copy a slice.
            [only] => done.push(only),
            ref all => done.extend_from_slice(all),
        }
        self.reaped += count;
        if self.reaped == self.units.len() {
            self.units.clear();
            (self.reaped, self.committed) = (0, 0);
        }
        Ok(())
    }
}
