//! Which I/O comes next: direction, file, offset, length.
//!
//! A [`Generator`] knows nothing of time, engines or statistics: the same spec and seed give the same I/Os.
//! [`new`] picks the generator of a [`Spec`]: one of the [`FastGenerator`]s for the common workloads,
//! [`General`] for all others. They issue the same I/Os, so the choice is invisible. Where random offsets come
//! from and which blocks they cover is told in [`coverage`]; what the sequential ones do, in [`general`].

pub mod bitmap;
pub mod coverage;
pub mod fast;
pub mod general;
pub mod history;
pub mod lfsr;
pub mod offset;
pub mod permutation;
mod place;
pub mod precondition;
pub mod rng;
mod rotation;
mod sizes;
mod spec;
mod strided;
mod unvisited;

pub use fast::{FastGenerator, fast};
pub use general::General;
pub use iolite_types::BlockSize;
pub use place::Place;
pub use spec::*;

use iolite_types::{Direction, Operation};
use std::path::Path;

/// One I/O to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// The file's place in [`Spec::files`].
    pub file: u32,
    /// The direction.
    pub direction: Direction,
}

/// What a generator answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Issue this.
    Io(Io),
    /// This file is finished with for this pass and another is to be opened in its place (only when fewer
    /// files may be open than there are). It may be closed as soon as nothing is in flight on it. Files that are
    /// in use when the pass ends are not announced; a new pass starts with the first files again.
    Close(u32),
    /// All files are finished, but not the pass: it starts over. Only where `Spec::announce_laps` asks for it.
    Lap,
    /// The pass is over.
    Done,
    /// Something other than I/O. Only scripts (replays of traces) ask for that.
    Script(Step),
}

/// What a script asks for besides I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// From now on the time counts for [`Step::At`]; before, it does since the pass began.
    Begin,
    /// What comes next has to wait until so many nanoseconds after the beginning.
    At(u64),
    /// Issue this sync.
    Sync {
        /// Which kind.
        operation: Operation,
        /// Of which file.
        file: u32,
        /// The range, for those that have one.
        offset: u64,
        /// The range, for those that have one.
        length: u64,
    },
    /// There is one file more from now on, whose name is [`Generator::path`].
    Added(u32),
    /// Open this file.
    Open(u32),
    /// There is nothing at present: ask again after a while.
    Idle,
    /// It cannot go on; [`Generator::take_trouble`] says why.
    Failed,
}

/// The source of a worker's I/Os.
pub trait Generator {
    /// The next I/O of the pass. After [`Next::Done`] it stays done until restarted.
    fn next(&mut self) -> Next;

    /// Starts another pass (the next loop), also in the middle of one: positions, coverage and limits start
    /// over, random choices go on, so the order is another one.
    fn restart(&mut self);

    /// From now on, a mix of reads and writes gives only this direction; `None` = as it chooses again. Of the
    /// generators of mixes, only [`General`] can be steered; one direction has nothing to choose.
    fn steer(&mut self, direction: Option<Direction>) {
        let _ = direction;
    }

    /// The I/Os given so far do not count as [`Spec::total_ios`], except the last one where that is still `in_hand`.
    /// Only [`General`] knows how many I/Os there were; a workload that counts anew has to be one of its.
    fn count_anew(&mut self, in_hand: bool) {
        let _ = in_hand;
    }

    /// Whether the last call of `next` took much longer than usual, because a lap was begun: whoever times things
    /// should look at the clock again.
    #[inline(always)]
    fn took_long(&self) -> bool {
        false
    }

    /// The name of a file that was [`Step::Added`].
    fn path(&self, file: u32) -> Option<&Path> {
        let _ = file;
        None
    }

    /// Why the answer was [`Step::Failed`].
    fn take_trouble(&mut self) -> Option<String> {
        None
    }

    /// Starts another pass with the same random choices as the very first one. This is what the loops of a job
    /// do whose choices are repeatable (`randrepeat`).
    fn rewind(&mut self);
}

impl<G: Generator> Generator for Box<G> {
    #[inline(always)]
    fn next(&mut self) -> Next {
        G::next(self)
    }

    fn restart(&mut self) {
        G::restart(self);
    }

    fn steer(&mut self, direction: Option<Direction>) {
        G::steer(self, direction);
    }

    fn count_anew(&mut self, in_hand: bool) {
        G::count_anew(self, in_hand);
    }

    #[inline(always)]
    fn took_long(&self) -> bool {
        G::took_long(self)
    }

    fn path(&self, file: u32) -> Option<&Path> {
        G::path(self, file)
    }

    fn take_trouble(&mut self) -> Option<String> {
        G::take_trouble(self)
    }

    fn rewind(&mut self) {
        G::rewind(self);
    }
}

/// Why a generator cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The map of visited blocks does not fit into memory.
    #[error(
        "no memory for a map of {blocks} blocks; use norandommap, softrandommap=1, random_generator=lfsr, \
         or one block size for all I/Os"
    )]
    MapMemory {
        /// How many blocks the map would have.
        blocks: u64,
    },
    /// The history of writes does not fit into memory.
    #[error("no memory for the history of {blocks} blocks; use larger blocks, or verify_backlog")]
    HistoryMemory {
        /// How many blocks it would have.
        blocks: u64,
    },
    /// A worker can have at most 2^32 - 1 files.
    #[error("{0} files are more than a worker can have")]
    TooManyFiles(usize),
}

/// The generator of any workload.
#[derive(Clone, Debug)]
pub enum AnyGenerator {
    /// One of the common workloads.
    Fast(FastGenerator),
    /// Any other.
    General(Box<General>),
}

impl From<General> for AnyGenerator {
    fn from(generator: General) -> AnyGenerator {
        AnyGenerator::General(Box::new(generator))
    }
}

/// The generator of `spec`. Fails when a map of visited blocks is needed and its memory cannot be had.
pub fn new(spec: &Spec) -> Result<AnyGenerator, Error> {
    match fast(spec) {
        Some(generator) => Ok(AnyGenerator::Fast(generator)),
        None => General::new(spec).map(AnyGenerator::from),
    }
}

/// Something to be done with a generator of whatever type, compiled for each of them: an I/O loop.
pub trait Visitor {
    /// What comes out of it.
    type Output;

    /// Does it.
    fn visit<G: Generator>(self, generator: G) -> Self::Output;
}

/// Evaluates `$body` with `$generator` bound to the concrete generator.
macro_rules! each {
    ($any:expr, $generator:ident => $body:expr) => {
        match $any {
            AnyGenerator::Fast(FastGenerator::Sequential($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::Covering($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::Uniform($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::Chosen($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::SequentialMix($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::CoveringMix($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::UniformMix($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::ChosenMix($generator)) => $body,
            AnyGenerator::Fast(FastGenerator::Mapped($generator)) => $body,
            AnyGenerator::General($generator) => $body,
        }
    };
}

impl AnyGenerator {
    /// Hands the concrete generator to `visitor`: the one `match` before the loop.
    pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
        each!(self, generator => visitor.visit(generator))
    }
}

impl Generator for AnyGenerator {
    #[inline]
    fn next(&mut self) -> Next {
        each!(self, generator => generator.next())
    }

    fn took_long(&self) -> bool {
        each!(self, generator => generator.took_long())
    }

    fn restart(&mut self) {
        each!(self, generator => generator.restart());
    }

    fn steer(&mut self, direction: Option<Direction>) {
        each!(self, generator => generator.steer(direction));
    }

    fn count_anew(&mut self, in_hand: bool) {
        each!(self, generator => generator.count_anew(in_hand));
    }

    fn rewind(&mut self) {
        each!(self, generator => generator.rewind());
    }
}
