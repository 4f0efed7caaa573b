//! Units: those in flight, those that wait to be committed, those that are free, and when each was made and issued.

use super::buffers::UnitBuffers;
use iolite_engine::{Completion, Unit};
use iolite_types::Operation;

/// When a unit was made and issued, in nanoseconds of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamps {
    pub start: u64,
    pub issue: u64,
    /// Why not everything about it is counted: [`UNCOUNTED`], [`REST`]; 0 = it is.
    pub marks: u8,
}

/// The unit was in flight when the ramp ended: it belongs to the ramp.
pub(super) const UNCOUNTED: u8 = 1;
/// The unit is the rest of a short I/O, whose submission was counted with its first part.
pub(super) const REST: u8 = 2;

/// When a completed unit was made, issued and reaped, in nanoseconds of the clock; zeros when no time is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// It was made.
    pub start: u64,
    /// It was issued.
    pub issue: u64,
    /// It was reaped.
    pub complete: u64,
    /// It waited in a queue, and was not completed at once.
    pub queued: bool,
}

/// The units of a loop. Nothing here allocates after it was made.
pub(super) struct Flight {
    /// All units; a unit's index is its place here.
    pub units: Vec<Unit>,
    /// When each unit was made and issued.
    pub stamps: Vec<Stamps>,
    /// Where each unit's buffer begins.
    pub buffers: UnitBuffers,
    /// Units that may be taken for the next I/O.
    pub free: Vec<u32>,
    /// Units that are queued and not committed yet.
    pub pending: Vec<u32>,
    /// The completions of one reap.
    pub done: Vec<Completion>,
    /// Units of short I/Os whose rest has to be issued.
    pub partial: Vec<u32>,
    /// Rests of short I/Os among those that wait to be committed.
    pub rests: u32,
    /// Units in flight.
    pub count: u32,
    /// Most units in flight at present: the depth, or what the search for a depth says.
    pub limit: u32,
    /// The stamp of the last commit, of the last completion of a synchronous engine, or of the last reap of a unit or
    /// two, while only a few steps of the plain loop have followed: then the next unit is made at this moment, and the
    /// clock need not be read again. 0 = there is none.
    pub fresh_stamp: u64,
}

impl Flight {
    /// So many free units with this I/O priority, each with its buffer.
    pub fn new(depth: u32, buffers: UnitBuffers, priority: u16) -> Self {
        let unit = |index| Unit {
            buffer: buffers.start_of(index),
            length: 0,
            offset: 0,
            index,
            file: 0,
            operation: Operation::Read,
            priority,
        };
        let units: Vec<Unit> = (0..depth).map(unit).collect();
        let room = depth as usize;
        Flight {
            units,
            stamps: vec![Stamps::default(); room],
            buffers,
            free: (0..depth).rev().collect(),
            pending: Vec::with_capacity(room),
            done: Vec::with_capacity(room),
            partial: Vec::with_capacity(room),
            rests: 0,
            count: 0,
            limit: depth,
            fresh_stamp: 0,
        }
    }
}
