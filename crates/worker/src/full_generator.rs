//! The generator of the full loop, which is compiled once per engine: its work for each I/O takes longer than choosing
//! among generators does.

use crate::replay::Replay;
use crate::zones::WorkerZones;
use iolite_types::Direction;
use iolite_workload::{AnyGenerator, Fate, Generator, Io, Next, ZonedGenerator};
use std::path::Path;

/// What the full loop does.
pub enum FullGenerator {
    /// A workload.
    Workload(AnyGenerator),
    /// The I/Os of a trace.
    Replay(Box<Replay>),
    /// I/Os whose places depend on the zones of a device.
    Zoned(Box<ZonedGenerator<WorkerZones>>),
}

/// Evaluates `$body` with the generator.
macro_rules! each {
    ($any:expr, $generator:ident => $body:expr) => {
        match $any {
            FullGenerator::Workload($generator) => $body,
            FullGenerator::Replay($generator) => $body,
            FullGenerator::Zoned($generator) => $body,
        }
    };
}

impl Generator for FullGenerator {
    fn learns(&self) -> bool {
        each!(self, generator => generator.learns())
    }

    fn next(&mut self) -> Next {
        each!(self, generator => generator.next())
    }

    fn restart(&mut self) {
        each!(self, generator => generator.restart());
    }

    fn rewind(&mut self) {
        each!(self, generator => generator.rewind());
    }

    fn steer(&mut self, direction: Option<Direction>) {
        each!(self, generator => generator.steer(direction));
    }

    fn count_anew(&mut self, in_hand: bool) {
        each!(self, generator => generator.count_anew(in_hand));
    }

    fn path(&self, file: u32) -> Option<&Path> {
        each!(self, generator => generator.path(file))
    }

    fn take_trouble(&mut self) -> Option<String> {
        each!(self, generator => generator.take_trouble())
    }

    fn completed(&mut self, io: &Io, fate: Fate) {
        each!(self, generator => generator.completed(io, fate));
    }

    fn loss(&self, io: &Io) -> Option<String> {
        each!(self, generator => generator.loss(io))
    }
}
