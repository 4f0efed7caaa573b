//! Which I/O comes next: direction, file, offset, length.
//!
//! A [`Generator`] knows nothing of time, engines or statistics: the same spec and seed give the same I/Os.

mod spec;

pub use spec::*;

use iolite_types::Direction;

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
    /// files may be open than there are). It may be closed as soon as nothing is in flight on it.
    Close(u32),
    /// The pass is over.
    Done,
}

/// The source of a worker's I/Os.
pub trait Generator {
    /// The next I/O of the pass.
    fn next(&mut self) -> Next;

    /// Starts another pass (the next loop) after [`Next::Done`].
    fn restart(&mut self);
}
