//! Zones of block devices: what the kernel reports about them, and commands for whole zones (linux/blkzoned.h).

pub use crate::zone::{Zone, ZoneCondition, ZoneKind};

use crate::nvme::Namespace;
use crate::nvme::zones::{self as commands, action};
use crate::scsi::{self, Interface};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;

/// Sectors of the kernel's interface have 512 bytes, whatever the size of a block is.
const SECTOR: u64 = 512;
/// The zones requested with one call.
const BATCH: usize = 512;

const REPORT: libc::c_ulong = 0xc010_1282;
const RESET: libc::c_ulong = 0x4010_1283;
const FINISH: libc::c_ulong = 0x4010_1288;

/// The flag of a report with capacities.
const HAS_CAPACITY: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct RawZone {
    start: u64,
    length: u64,
    pointer: u64,
    kind: u8,
    condition: u8,
    rest: [u8; 6],
    capacity: u64,
    reserved: [u8; 24],
}

#[repr(C)]
struct RawReport {
    sector: u64,
    count: u32,
    flags: u32,
    zones: [RawZone; BATCH],
}

#[repr(C)]
struct RawRange {
    sector: u64,
    sectors: u64,
}

impl RawZone {
    const NONE: RawZone = RawZone {
        start: 0,
        length: 0,
        pointer: 0,
        kind: 0,
        condition: 0,
        rest: [0; 6],
        capacity: 0,
        reserved: [0; 24],
    };

    fn zone(&self, has_capacity: bool) -> Zone {
        Zone {
            start: self.start * SECTOR,
            size: self.length * SECTOR,
            capacity: if has_capacity { self.capacity } else { self.length } * SECTOR,
            pointer: self.pointer.saturating_mul(SECTOR),
            kind: match self.kind {
                2 => ZoneKind::Sequential,
                3 => ZoneKind::Preferred,
                _ => ZoneKind::Conventional,
            },
            condition: ZoneCondition::of(self.condition).unwrap_or(ZoneCondition::Conventional),
        }
    }
}

/// An open device with zones.
#[derive(Debug)]
pub enum ZonedDevice {
    /// A block device.
    Block(File),
    /// The generic device of an NVMe namespace.
    Nvme(File, Box<Namespace>),
    /// The generic device of a SCSI disk, with the bytes of its logical blocks.
    Scsi(File, u64),
}

impl ZonedDevice {
    /// The zoned device behind an open file.
    ///
    /// # Errors
    /// It is a character device of another kind, or the user may not send it commands.
    pub fn of(file: File) -> io::Result<ZonedDevice> {
        if file.metadata()?.file_type().is_char_device() {
            return match (Namespace::of(file.as_raw_fd()), scsi::capacity(file.as_raw_fd(), Interface::Third))
            {
                (Ok(namespace), _) => Ok(ZonedDevice::Nvme(file, Box::new(namespace))),
                (_, Ok(disk)) if disk.block > 0 => Ok(ZonedDevice::Scsi(file, disk.block.into())),
                (Err(error), _) => Err(error),
            };
        }
        Ok(ZonedDevice::Block(file))
    }

    /// Reports at most `most` zones, from the one that contains this byte.
    ///
    /// # Errors
    /// The error of the kernel or the device; `ENOTTY` for a device without zones.
    pub fn report(&self, from: u64, most: usize) -> io::Result<Vec<Zone>> {
        match self {
            ZonedDevice::Block(file) => report(file, from, most),
            ZonedDevice::Nvme(file, namespace) => commands::report(file.as_raw_fd(), namespace, from, most),
            ZonedDevice::Scsi(file, block) => scsi::zones::report(file.as_raw_fd(), *block, from, most),
        }
    }

    /// Resets zones. The range consists of whole zones.
    ///
    /// # Errors
    /// The error of the kernel or the device.
    pub fn reset(&self, start: u64, length: u64) -> io::Result<()> {
        match self {
            ZonedDevice::Block(file) => reset_of(file.as_raw_fd(), start, length),
            ZonedDevice::Nvme(file, namespace) => {
                commands::act(file.as_raw_fd(), namespace, action::RESET, start, length)
            }
            ZonedDevice::Scsi(file, block) => {
                scsi::zones::act(file.as_raw_fd(), *block, scsi::zones::action::RESET, start, length)
            }
        }
    }

    /// Finishes zones: they become full, although their rest is unwritten. The range consists of whole zones.
    ///
    /// # Errors
    /// The error of the kernel or the device.
    pub fn finish(&self, start: u64, length: u64) -> io::Result<()> {
        match self {
            ZonedDevice::Block(file) => act(file.as_raw_fd(), FINISH, start, length),
            ZonedDevice::Nvme(file, namespace) => {
                commands::act(file.as_raw_fd(), namespace, action::FINISH, start, length)
            }
            ZonedDevice::Scsi(file, block) => {
                scsi::zones::act(file.as_raw_fd(), *block, scsi::zones::action::FINISH, start, length)
            }
        }
    }
}

/// Reports at most `most` zones of a block device, from the one that contains this byte.
///
/// # Errors
/// The kernel's error; `ENOTTY` for a device without zones.
pub fn report(device: &File, from: u64, most: usize) -> io::Result<Vec<Zone>> {
    let mut zones = Vec::new();
    let mut from = from;
    let mut raw = Box::new(RawReport { sector: 0, count: 0, flags: 0, zones: [RawZone::NONE; BATCH] });
    while zones.len() < most {
        (raw.sector, raw.count) = (from / SECTOR, BATCH.min(most - zones.len()) as u32);
        // SAFETY: the structure has room for as many zones as its count says.
        if unsafe { libc::ioctl(device.as_raw_fd(), REPORT as _, &raw mut *raw) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let has_capacity = raw.flags & HAS_CAPACITY != 0;
        let found = raw.zones.iter().take(raw.count as usize).map(|zone| zone.zone(has_capacity));
        zones.extend(found);
        match zones.last() {
            Some(last) if raw.count > 0 && last.size > 0 => from = last.start + last.size,
            _ => break,
        }
    }
    Ok(zones)
}

/// Resets zones of a block device. The range consists of whole zones.
///
/// # Errors
/// The kernel's error.
pub fn reset_of(device: RawFd, start: u64, length: u64) -> io::Result<()> {
    act(device, RESET, start, length)
}

fn act(device: RawFd, command: libc::c_ulong, start: u64, length: u64) -> io::Result<()> {
    let range = RawRange { sector: start / SECTOR, sectors: length / SECTOR };
    // SAFETY: the kernel reads the structure.
    match unsafe { libc::ioctl(device, command as _, &raw const range) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_structures_have_their_sizes() {
        assert_eq!(size_of::<RawZone>(), 64);
        assert_eq!(size_of::<RawReport>(), 16 + 64 * BATCH);
    }

    #[test]
    fn files_that_are_not_zoned_devices_have_no_zones() {
        iolite_testing::or_skip!(iolite_testing::kernel::takes_ioctls());
        let file = tempfile::tempfile().unwrap();
        assert_eq!(report(&file, 0, 1).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        let device = ZonedDevice::of(file).unwrap();
        assert!(device.reset(0, 4096).is_err() && device.finish(0, 4096).is_err());
        let null = File::open("/dev/null").unwrap();
        assert_eq!(ZonedDevice::of(null).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
