//! The generator's view of the zones of a device.

use crate::{Fate, Io};
use std::ops::Range;

/// The current state of a zone. Offsets are in bytes from the beginning of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// The offset of the zone.
    pub start: u64,
    /// The distance to the next zone in bytes.
    pub size: u64,
    /// How many of these bytes can be used.
    pub capacity: u64,
    /// Writes are possible at the write pointer only.
    pub is_sequential: bool,
    /// The zone is not offline.
    pub is_readable: bool,
    /// The offset of the next write; the end of the capacity if the zone is full.
    pub next: u64,
    /// Everything below this offset is written.
    pub written: u64,
    /// The number of this worker's writes in flight in this zone.
    pub in_flight: u32,
}

impl ZoneState {
    pub(super) fn room(&self) -> u64 {
        (self.start + self.capacity).saturating_sub(self.next)
    }
}

/// The answer to [`Zones::claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The zone belongs to this worker until [`Zones::release`], or until its last write in flight is complete.
    Granted(ZoneState),
    /// Another worker uses the zone.
    Busy,
    /// The maximum number of zones is open.
    Limit,
    /// The zone cannot be written.
    Unusable,
}

/// The zones of a worker's files and their write pointers. Zones are numbered from the beginning of the device.
pub trait Zones {
    /// The number of the zone that contains this offset.
    fn at(&self, file: u32, offset: u64) -> u32;

    /// The current state of a zone.
    fn zone(&self, file: u32, zone: u32) -> ZoneState;

    /// Claims a zone for this worker, to write to it (`opens`) or to reset it. With `waits`, waits a moment if
    /// another worker uses it.
    fn claim(&mut self, file: u32, zone: u32, opens: bool, waits: bool) -> Claim;

    /// Releases a claimed zone, unless writes to it are in flight.
    fn release(&mut self, file: u32, zone: u32);

    /// Chooses one of the open zones in this range that have room, with the random number `choice`; `None` = no zone
    /// qualifies.
    fn open_zone(&mut self, file: u32, zones: Range<u32>, choice: u64) -> Option<u32>;

    /// Reserves `length` bytes at the write pointer of a claimed zone for a write, and returns their offset. A trim
    /// reserves 0 bytes. `is_last`: no further write fits into the zone after this one.
    fn reserve(&mut self, file: u32, zone: u32, length: u64, is_last: bool) -> u64;

    /// Finishes a claimed zone: makes it full although part of it is unwritten. No I/O may be in flight in the zone.
    ///
    /// # Errors
    /// The zone cannot be finished; the message is for the user.
    fn finish(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Resets a claimed zone. No I/O may be in flight in the zone.
    ///
    /// # Errors
    /// The zone cannot be reset; the message is for the user.
    fn reset(&mut self, file: u32, zone: u32) -> Result<(), String>;

    /// Records the outcome of an I/O.
    ///
    /// # Errors
    /// After the I/O, the zone needed a command, and that failed; the message is for the user.
    fn completed(&mut self, io: &Io, fate: Fate) -> Result<(), String>;

    /// The number of bytes written in these zones. Zones without a write pointer do not count.
    fn written(&self, file: u32, zones: Range<u32>) -> u64;

    /// Why the data of this write may be lost, according to the state of its zone.
    fn loss(&self, io: &Io) -> Option<String>;

    /// Whether no other running worker can make room for another open zone. From this call on, this worker counts as
    /// waiting until it gets a zone.
    fn waits_in_vain(&mut self) -> bool;
}

/// How a job uses the zones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneUse {
    /// How many bytes a sequential workload skips after each zone that it has written or read to its end.
    pub skip: u64,
    /// Also read unwritten parts of zones.
    pub read_beyond: bool,
    /// Full zones are reset and written again.
    pub rewrites: bool,
    /// All zones are emptied before each pass.
    pub begins_empty: bool,
    /// If no whole block fits into the rest of a zone, a smaller block fills it.
    pub writes_remainder: bool,
    /// A zone has at most one write in flight, because several could arrive in the wrong order.
    pub one_by_one: bool,
    /// A skip past the last zone continues at the first zone.
    pub skip_wraps: bool,
    /// `reset_every` applies only while more than this share of the region is written.
    pub reset_threshold: f64,
    /// The number of writes after which the next zone to write is reset first; 0 = never.
    pub reset_every: u64,
    /// A pass goes through the zones repeatedly until its bytes are done: the zones may have room, or written data,
    /// for fewer bytes than the region has.
    pub laps: bool,
}
