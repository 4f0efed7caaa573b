//! Units: free, waiting for a commit, or in flight, and when each was made and issued.

use super::buffers::UnitBuffers;
use crate::in_flight::Table;
use iolite_engine::{Completion, Unit};
use iolite_types::Operation;

/// When a completed unit was made, issued and reaped, in nanoseconds of the clock. Zeros if no time is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// It was made.
    pub start: u64,
    /// It was issued.
    pub issue: u64,
    /// It was reaped.
    pub complete: u64,
    /// The unit waited in a queue and was not completed at once.
    pub queued: bool,
}

/// The units of a loop. Allocates only when it is created, and touches only the memory of units that are in use: a depth
/// that is never reached costs nothing.
pub(super) struct Flight<'a> {
    /// The existing units (a unit's index is its place here), when each was made and issued, and which are free for the
    /// next I/O.
    pub table: Table<'a>,
    /// The most units: the depth.
    room: u32,
    /// The I/O priority of new units.
    priority: u16,
    /// Where each unit's buffer begins.
    pub buffers: UnitBuffers,
    /// Units that are queued but not yet committed.
    pub pending: Vec<u32>,
    /// The completions of one reap.
    pub done: Vec<Completion>,
    /// Units of short I/Os whose rest has to be issued.
    pub partial: Vec<u32>,
    /// The number of rests of short I/Os among the pending units.
    pub rests: u32,
    /// The number of units whose I/O was given up. They are in use until it comes back.
    pub given_up: u32,
    /// The number of units in flight, without those given up.
    pub count: u32,
    /// The most units that may be in flight now: the depth, or the value that the search for a depth has chosen.
    pub limit: u32,
    /// The time stamp of the last commit, of the last completion of a synchronous engine, or of the last reap of a unit
    /// or two. It is kept while only a few steps of the plain loop have followed, so the next unit can use it without
    /// another read of the clock. 0 = none.
    pub fresh_stamp: u64,
}

impl<'a> Flight<'a> {
    /// Room for `depth` units with this I/O priority in this table, the first `ready` of which are there and free.
    pub fn new(table: Table<'a>, depth: u32, ready: u32, buffers: UnitBuffers, priority: u16) -> Self {
        let room = depth as usize;
        let mut flight = Flight {
            table,
            room: depth,
            priority,
            buffers,
            pending: Vec::with_capacity(room),
            done: Vec::with_capacity(room),
            partial: Vec::with_capacity(room),
            rests: 0,
            given_up: 0,
            count: 0,
            limit: depth,
            fresh_stamp: 0,
        };
        for _ in 0..ready.min(depth) {
            flight.another();
        }
        // The unit that was made first is used first.
        (0..flight.table.units.len() as u32).rev().for_each(|index| flight.table.free.push(index));
        flight
    }

    /// Whether as many units as the depth allows are in use.
    pub fn is_exhausted(&self) -> bool {
        self.table.free.is_empty() && self.table.units.len() == self.room as usize
    }

    /// Makes another unit, which is not among the free ones.
    ///
    /// # Panics
    ///
    /// If there are as many units as the depth: the loop makes room before it submits.
    pub fn another(&mut self) -> u32 {
        let index = self.table.units.len() as u32;
        assert!(index < self.room, "a unit is always free");
        self.table.push(Unit {
            buffer: self.buffers.start_of(index),
            length: 0,
            offset: 0,
            index,
            file: 0,
            operation: Operation::Read,
            priority: self.priority,
        });
        index
    }
}
