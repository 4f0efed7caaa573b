//! Chooses the next I/O: direction, file, offset, length.
//!
//! A [`Generator`] knows nothing of time, engines or statistics: the same spec and seed give the same I/Os. [`new`]
//! picks the generator of a [`Spec`]: one of the [`FastGenerator`]s for the common workloads, [`General`] for all
//! others. Both issue the same I/Os, so the choice is invisible. [`coverage`] explains where random offsets come from
//! and which blocks they cover; [`mod@general`] explains sequential offsets. Distributions such as zipf are in [`offset`]:
//! their laws in `law.rs`, drawing from them in `skew.rs`, the places of hot blocks in `spread.rs`. Zones: `strided.rs`
//! and `zoned.rs`.

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
mod prefetch;
pub mod rng;
mod rotation;
mod sizes;
mod spec;
mod strided;
mod unvisited;
mod wholes;
pub mod zoned;

pub use fast::{FastGenerator, fast};
pub use general::{General, stream_seeds};
pub use iolite_types::BlockSize;
pub use place::Place;
pub use spec::*;
pub use wholes::{EachFile, FileSizes, Wholes};
pub use zoned::{Claim, ZoneState, ZoneUse, ZonedGenerator, Zones};

use iolite_types::{Direction, Operation};
use std::path::Path;

/// One I/O to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Index of the file in [`Spec::files`].
    pub file: u32,
    /// The direction.
    pub direction: Direction,
}

/// The answer of a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Issue this.
    Io(Io),
    /// The pass no longer needs this file, and continues with another one in its place. This happens only when fewer
    /// files may be open than there are. The file may be closed as soon as no I/O is in flight on it. Files that are
    /// still in use when the pass ends are not announced; the next pass starts with the first files again.
    Close(u32),
    /// All files are finished, but the pass is not: it starts over on them. Only with `Spec::announce_laps`.
    Lap,
    /// The pass is over.
    Done,
    /// Do something other than I/O. Only scripts (replays of traces) give this.
    Script(Step),
}

/// A script's step besides I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The times of [`Step::At`] count from now on; before this step, they count from the start of the pass.
    Begin,
    /// The next step waits until this many nanoseconds after the beginning.
    At(u64),
    /// Issue this sync.
    Sync {
        /// The kind of sync.
        operation: Operation,
        /// Index of the file.
        file: u32,
        /// First byte of the range, for syncs of a range.
        offset: u64,
        /// Length of the range in bytes, for syncs of a range.
        length: u64,
    },
    /// The workload has one more file from now on; [`Generator::path`] gives its name.
    Added(u32),
    /// Open this file.
    Open(u32),
    /// The next step is not known yet: ask again after a while.
    Idle,
    /// The next step depends on I/O that is in flight: ask again when some of it is complete, or at once if no I/O is
    /// in flight.
    Wait,
    /// The script cannot continue; [`Generator::take_trouble`] says why.
    Failed,
}

/// The outcome of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It succeeded.
    Done,
    /// It failed, and may have changed the earlier content.
    Failed,
    /// It was never issued.
    Withdrawn,
}

/// The source of a worker's I/Os.
pub trait Generator {
    /// The next I/O of the pass. After [`Next::Done`], the answer is the same until the generator is restarted.
    fn next(&mut self) -> Next;

    /// Starts another pass (the next loop), even in the middle of one. Positions, coverage and limits start over. The
    /// streams of random numbers continue, so the pass has a different order.
    fn restart(&mut self);

    /// From now on, a mix gives only this direction; `None` lets the mix choose again. Only
    /// [`General`] can be steered. Workloads with one direction have nothing to choose.
    fn steer(&mut self, direction: Option<Direction>) {
        let _ = direction;
    }

    /// The I/Os given so far no longer count towards [`Spec::total_ios`], except for the last one if the caller still
    /// has it `in_hand`. Only [`General`] counts I/Os, so a workload that needs this must use it.
    fn count_anew(&mut self, in_hand: bool) {
        let _ = in_hand;
    }

    /// Whether the last call of `next` took much longer than usual, because it began a lap. A caller that measures time
    /// should read the clock again.
    #[inline(always)]
    fn took_long(&self) -> bool {
        false
    }

    /// The name of a file that a [`Step::Added`] announced.
    fn path(&self, file: u32) -> Option<&Path> {
        let _ = file;
        None
    }

    /// Why the answer was [`Step::Failed`].
    fn take_trouble(&mut self) -> Option<String> {
        None
    }

    /// Whether the workload depends on the outcome of its I/Os, so that [`Generator::completed`] has to be called.
    #[inline(always)]
    fn learns(&self) -> bool {
        false
    }

    /// Notes the outcome of an I/O that this generator gave.
    fn completed(&mut self, io: &Io, fate: Fate) {
        let _ = (io, fate);
    }

    /// Why a write to the place of this I/O may be lost, if the workload knows more about it than the system reports.
    fn loss(&self, io: &Io) -> Option<String> {
        let _ = io;
        None
    }

    /// Starts another pass with the same random choices as the very first one. The loops of a job with repeatable
    /// choices (`randrepeat`) use this.
    fn rewind(&mut self);
}

impl<G: Generator> Generator for Box<G> {
    #[inline(always)]
    fn learns(&self) -> bool {
        G::learns(self)
    }

    fn completed(&mut self, io: &Io, fate: Fate) {
        G::completed(self, io, fate);
    }

    fn loss(&self, io: &Io) -> Option<String> {
        G::loss(self, io)
    }

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
    /// Files that are each processed by one I/O.
    EachFile(Box<EachFile>),
    /// Any other workload.
    General(Box<General>),
}

impl From<General> for AnyGenerator {
    fn from(generator: General) -> AnyGenerator {
        AnyGenerator::General(Box::new(generator))
    }
}

/// The generator of `spec`: a fast one for the common workloads, [`General`] for all others.
///
/// # Errors
///
/// The errors of [`General::new`].
pub fn new(spec: &Spec) -> Result<AnyGenerator, Error> {
    match fast(spec) {
        Some(generator) => Ok(AnyGenerator::Fast(generator)),
        None => general(spec),
    }
}

/// The generator of `spec` that can be steered and counts I/Os.
///
/// # Errors
///
/// The errors of [`General::new`].
pub fn general(spec: &Spec) -> Result<AnyGenerator, Error> {
    match &spec.wholes {
        Some(wholes) => Ok(AnyGenerator::EachFile(Box::new(EachFile::new(spec, wholes)?))),
        None => General::new(spec).map(AnyGenerator::from),
    }
}

/// Code that is compiled for each type of generator: an I/O loop.
pub trait Visitor {
    /// The result.
    type Output;

    /// Runs with this generator.
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
            AnyGenerator::EachFile($generator) => $body,
            AnyGenerator::General($generator) => $body,
        }
    };
}

impl AnyGenerator {
    /// Calls `visitor` with the concrete generator if it is a fast one, so that the loop is compiled for it. The others
    /// take much longer for each I/O than choosing between them does.
    pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
        match self {
            AnyGenerator::Fast(FastGenerator::Sequential(generator)) => visitor.visit(generator),
            AnyGenerator::Fast(FastGenerator::Covering(generator)) => visitor.visit(generator),
            AnyGenerator::Fast(FastGenerator::Uniform(generator)) => visitor.visit(generator),
            AnyGenerator::Fast(FastGenerator::SequentialMix(generator)) => visitor.visit(generator),
            AnyGenerator::Fast(FastGenerator::CoveringMix(generator)) => visitor.visit(generator),
            AnyGenerator::Fast(FastGenerator::UniformMix(generator)) => visitor.visit(generator),
            other => visitor.visit(other),
        }
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
