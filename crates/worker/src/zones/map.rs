//! The shared record of a device's zones: write pointers, locks, and which zones are open.

use super::PATIENCE;
use iolite_os::memory;
use iolite_os::robust::{Locked, RobustLock};
use iolite_os::zones::{Zone, ZoneCondition, ZoneKind};
use iolite_plan::ZonedDevice;
use iolite_workload::ZoneState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The zone counts as open.
pub(super) const OPEN: u32 = 1;
/// No write fits behind those in flight.
pub(super) const ENDING: u32 = 2;
/// It cannot be written to.
pub(super) const UNUSABLE: u32 = 4;
/// It cannot be read.
pub(super) const OFFLINE: u32 = 8;
/// A write of its last owner has failed: only the device knows where its write pointer is.
pub(super) const UNSURE: u32 = 16;

/// The shared record of a zone.
#[repr(C)]
pub(super) struct Record {
    pub(super) lock: RobustLock,
    pub(super) next: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) flags: AtomicU32,
    /// The worker that locked it last, as its index + 1; 0 = none.
    pub(super) owner: AtomicU32,
}

/// The shared record of a device.
#[repr(C)]
pub(super) struct Header {
    /// Held while zones are opened and closed. A zone's lock is taken before it.
    pub(super) lock: RobustLock,
    /// How many zones are open.
    pub(super) open: AtomicU32,
    /// Their numbers, if there is a limit.
    pub(super) listed: [AtomicU32; MOST_LISTED],
}

/// The largest value that `max_open_zones` allows.
pub(super) const MOST_LISTED: usize = 4096;

/// A device with its zones.
pub(super) struct Device {
    pub(super) names: Vec<PathBuf>,
    pub(super) zones: Vec<Zone>,
    pub(super) is_real: bool,
    header: *const Header,
    records: *const Record,
    bytes: usize,
}

// SAFETY: the pointers refer to atomics and locks, which stay mapped as long as the device.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the device owns the mapping, and references into it borrow from the device.
        unsafe { memory::unmap(self.header.cast_mut().cast(), self.bytes) };
    }
}

/// The devices of a run whose zones its jobs know. Made before the first fork.
#[derive(Default)]
pub struct ZoneMaps {
    pub(super) devices: Vec<Device>,
    /// Notes to the user that workers send before they begin: the worker's index and the text.
    notes: Vec<(usize, String)>,
}

impl ZoneMaps {
    /// The maps of these devices.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(devices: &[ZonedDevice]) -> io::Result<ZoneMaps> {
        let notes = devices.iter().flat_map(|device| device.notes.clone()).collect();
        let devices = devices.iter().map(Device::new).collect::<io::Result<_>>()?;
        Ok(ZoneMaps { devices, notes })
    }

    /// The notes that this worker has to send before it begins.
    pub(crate) fn notes_of(&self, worker: usize) -> impl Iterator<Item = &str> {
        self.notes.iter().filter(move |(other, _)| *other == worker).map(|(_, text)| text.as_str())
    }

    pub(super) fn find(&self, path: &Path) -> Option<usize> {
        self.devices.iter().position(|device| device.names.iter().any(|name| name == path))
    }
}

impl Device {
    fn new(planned: &ZonedDevice) -> io::Result<Device> {
        let first = size_of::<Header>().next_multiple_of(align_of::<Record>());
        let bytes = first + planned.zones.len() * size_of::<Record>();
        let header = memory::map_shared(bytes)?.cast::<Header>();
        // SAFETY: the mapping has room for the header, and behind it for the records.
        let records = unsafe { header.byte_add(first) }.cast::<Record>();
        let device = Device {
            names: planned.names.clone(),
            zones: planned.zones.clone(),
            is_real: planned.is_real,
            header,
            records,
            bytes,
        };
        // SAFETY: the mapping is fresh, aligned and unused. Zero bytes are valid for all but locks.
        unsafe { RobustLock::place(&raw mut (*header).lock)? };
        for (number, zone) in planned.zones.iter().enumerate() {
            // SAFETY: as above.
            unsafe { RobustLock::place(&raw mut (*records.add(number)).lock)? };
            device.learn(number as u32, zone);
            if planned.is_open(zone) {
                device.note_open(number as u32);
            }
        }
        Ok(device)
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the mapping stays as long as the device, and the header was initialised.
        unsafe { &*self.header }
    }

    pub(super) fn record(&self, zone: u32) -> &Record {
        assert!((zone as usize) < self.zones.len());
        // SAFETY: in bounds; the rest as above.
        unsafe { &*self.records.add(zone as usize) }
    }

    /// Records the state of a zone as reported by the device.
    pub(super) fn learn(&self, number: u32, zone: &Zone) {
        let end = zone.start + zone.capacity;
        let (next, written, flags) = match zone.condition {
            ZoneCondition::Empty | ZoneCondition::Conventional => (zone.start, zone.start, 0),
            ZoneCondition::Full => (end, end, 0),
            // Its write pointer is invalid, so it is unknown how far the zone is written.
            ZoneCondition::ReadOnly => (end, zone.start, UNUSABLE),
            ZoneCondition::Offline => (end, zone.start, UNUSABLE | OFFLINE),
            ZoneCondition::ImplicitlyOpen | ZoneCondition::ExplicitlyOpen | ZoneCondition::Closed => {
                let pointer = zone.pointer.clamp(zone.start, end);
                (pointer, pointer, 0)
            }
        };
        let record = self.record(number);
        record.next.store(next, Relaxed);
        record.written.store(written, Relaxed);
        let kept = record.flags.load(Relaxed) & OPEN;
        record.flags.store(kept | flags, Relaxed);
    }

    pub(super) fn has(&self, zone: u32, flag: u32) -> bool {
        self.record(zone).flags.load(Relaxed) & flag != 0
    }

    /// Locks the header. If its owner died, recounts the open zones.
    pub(super) fn lock_header(&self) {
        loop {
            match self.header().lock.lock_within(PATIENCE) {
                Locked::No => {}
                Locked::Yes => return,
                Locked::Inherited => {
                    let open: Vec<u32> =
                        (0..self.zones.len() as u32).filter(|&zone| self.has(zone, OPEN)).collect();
                    self.header().open.store(open.len() as u32, Relaxed);
                    for (place, zone) in self.header().listed.iter().zip(open) {
                        place.store(zone, Relaxed);
                    }
                    return;
                }
            }
        }
    }

    /// Notes that a zone is open. The header is locked, or no other worker runs yet.
    fn note_open(&self, zone: u32) {
        self.record(zone).flags.fetch_or(OPEN, Relaxed);
        let count = self.header().open.load(Relaxed);
        if let Some(place) = self.header().listed.get(count as usize) {
            place.store(zone, Relaxed);
        }
        self.header().open.store(count + 1, Relaxed);
    }

    /// Opens a zone that this worker has locked. Returns false if the limit of open zones is reached.
    pub(super) fn open(&self, zone: u32, most: u32) -> bool {
        self.lock_header();
        let may = most == 0 || self.header().open.load(Relaxed) < most;
        if may {
            self.note_open(zone);
        }
        self.header().lock.unlock();
        may
    }

    /// Notes that a zone is no longer open.
    pub(super) fn close(&self, zone: u32) {
        if !self.has(zone, OPEN) {
            self.record(zone).flags.fetch_and(!ENDING, Relaxed);
            return;
        }
        // Flag and count change under the lock: a worker that inherits it from a dead worker recounts the flags.
        self.lock_header();
        self.record(zone).flags.fetch_and(!(OPEN | ENDING), Relaxed);
        let count = self.header().open.load(Relaxed).saturating_sub(1);
        let listed = &self.header().listed;
        let known = listed.len().min(count as usize + 1);
        if let Some(place) = listed[..known].iter().position(|place| place.load(Relaxed) == zone)
            && let Some(last) = listed.get(count as usize)
        {
            listed[place].store(last.load(Relaxed), Relaxed);
        }
        self.header().open.store(count, Relaxed);
        self.header().lock.unlock();
    }

    pub(super) fn state(&self, zone: u32, in_flight: u32) -> ZoneState {
        let Zone { start, size, capacity, kind, .. } = self.zones[zone as usize];
        let record = self.record(zone);
        ZoneState {
            start,
            size,
            capacity,
            is_sequential: kind != ZoneKind::Conventional,
            is_readable: record.flags.load(Relaxed) & OFFLINE == 0,
            next: record.next.load(Relaxed),
            written: record.written.load(Acquire),
            in_flight,
        }
    }

    pub(super) fn at(&self, offset: u64) -> u32 {
        self.zones.partition_point(|zone| zone.start <= offset).saturating_sub(1) as u32
    }
}
