//! Generators of replays and zoned jobs. They share one loop per engine: their work for each I/O takes longer than
//! choosing between them.

use crate::replay::Replay;
use crate::zones::WorkerZones;
use iolite_types::Direction;
use iolite_workload::{Fate, Generator, Io, Next, ZonedGenerator};
use std::path::Path;

/// One of these generators.
pub enum Special {
    /// The I/Os of a trace.
    Replay(Box<Replay>),
    /// I/Os whose places depend on the zones of a device.
    Zoned(Box<ZonedGenerator<WorkerZones>>),
}

/// Evaluates `$body` with the generator.
macro_rules! each {
    ($special:expr, $generator:ident => $body:expr) => {
        match $special {
            Special::Replay($generator) => $body,
            Special::Zoned($generator) => $body,
        }
    };
}

impl Generator for Special {
    const LEARNS: bool = true;

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
        match self {
            Special::Replay(_) => None,
            Special::Zoned(generator) => generator.loss(io),
        }
    }
}
