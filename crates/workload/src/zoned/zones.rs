//! The zones of a device as the generator sees them.

use crate::{Fate, Io};
use std::ops::Range;

/// A zone as it is now. Offsets are in bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// Where it begins.
    pub start: u64,
    /// From there to the next zone.
    pub size: u64,
    /// How much of that can be used.
    pub capacity: u64,
    /// It is written at its write pointer only.
    pub is_sequential: bool,
    /// It is not offline.
    pub is_readable: bool,
    /// Where the next write goes; the end of its capacity if it is full.
    pub next: u64,
    /// Everything below this offset is written.
    pub written: u64,
    /// How many writes of this worker to it are in flight.
    pub in_flight: u32,
}

impl ZoneState {
    pub(super) fn room(&self) -> u64 {
        (self.start + self.capacity).saturating_sub(self.next)
    }
}

/// The answer to a request for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is this worker's until [`Zones::release`], or until its last write is complete.
    Granted(ZoneState),
    /// Another worker writes to it.
    Busy,
    /// As many zones are open as there may be.
    Limit,
    /// It cannot be written to.
    Unusable,
}

/// The zones of a worker's files and their write pointers. Zones are numbered from the beginning of the device.
pub trait Zones {
    /// The number of the zone that holds this offset.
    fn at(&self, file: u32, offset: u64) -> u32;

    /// A zone as it is now.
    fn zone(&self, file: u32, zone: u32) -> ZoneState;

    /// Asks for a zone, to write to it (`opens`) or to reset it. With `waits`, waits a moment for another worker.
    fn claim(&mut self, file: u32, zone: u32, opens: bool, waits: bool) -> Claim;

    /// Gives a claimed zone back, unless writes to it are in flight.
    fn release(&mut self, file: u32, zone: u32);

    /// One of the open zones in this range that have room, by the random number; `None` = there is none.
    fn open_zone(&mut self, file: u32, zones: Range<u32>, choice: u64) -> Option<u32>;

    /// Makes room for a write or a trim of a claimed zone. `is_last`: no other write fits behind it.
    fn reserve(&mut self, file: u32, zone: u32, length: u64, is_last: bool) -> u64;

    /// Finishes a claimed zone: makes it full, though not all of it is written. Nothing is in flight on it.
    ///
    /// # Errors
    /// It cannot be done; the message is for the user.
    fn finish(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Resets a claimed zone. Nothing is in flight on it.
    ///
    /// # Errors
    /// It cannot be done; the message is for the user.
    fn reset(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Records the outcome of an I/O.
    ///
    /// # Errors
    /// A command for the zone that became due failed; the message is for the user.
    fn completed(&mut self, io: &Io, fate: Fate) -> Result<(), String>;

    /// How many bytes are written in those of these zones that have write pointers.
    fn written(&self, file: u32, zones: Range<u32>) -> u64;

    /// Why a write to that place may be lost, according to the state of the zone.
    fn loss(&self, io: &Io) -> Option<String>;

    /// Whether no other worker is left that could make room for another open zone. The worker counts as waiting until
    /// it gets one.
    fn waits_in_vain(&mut self) -> bool;
}

/// How the zones are to be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneUse {
    /// Bytes left out behind a zone that was written or read to its end, by sequential workloads.
    pub skip: u64,
    /// Also read unwritten parts of zones.
    pub read_beyond: bool,
    /// Full zones are written again.
    pub rewrites: bool,
    /// All zones are made empty before each pass.
    pub begins_empty: bool,
    /// The rest of a zone is written with a smaller block.
    pub writes_remainder: bool,
    /// A zone has one write in flight at a time, because several would not arrive in their order.
    pub one_by_one: bool,
    /// A skip past the end continues at the beginning.
    pub skip_wraps: bool,
    /// Zones are reset when more than this share is written.
    pub reset_threshold: f64,
    /// The next zone is reset after so many writes; 0 = never.
    pub reset_every: u64,
    /// A pass starts over on the zones until its bytes are done. They may have room, or written data, for fewer bytes than the
    /// region has.
    pub laps: bool,
}
