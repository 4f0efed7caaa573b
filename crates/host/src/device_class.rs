//! Character devices that hold data.

use crate::device_number::DeviceNumber;
use crate::refusal::Refusal;
use iolite_os::nvme;
use iolite_os::scsi::{self, Interface};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The class of a character device that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceClass {
    /// Passes SCSI commands to a device (`/dev/sg0`).
    ScsiGeneric,
    /// Passes SCSI commands through the block layer's generic driver (`/dev/bsg/0:0:0:0`).
    ScsiBsg,
    /// Passes NVMe commands to a namespace (`/dev/ng0n1`).
    NvmeGeneric,
    /// Flash (`/dev/mtd0`).
    Flash,
    /// Memory that is mapped (`/dev/dax0.0`).
    DirectAccess,
}

/// The major number of the block devices that show the same data as flash.
const FLASH_BLOCKS: u32 = 31;

impl DeviceClass {
    /// The class of a character device; `None` = it holds no data.
    pub(crate) fn of(number: DeviceNumber) -> Option<DeviceClass> {
        let subsystem = fs::read_link(directory(number).join("subsystem")).ok()?;
        match subsystem.file_name()?.to_str()? {
            "scsi_generic" => Some(DeviceClass::ScsiGeneric),
            // Adapters and transports have nodes of bsg as well.
            "bsg" if directory(number).join("device/scsi_device").exists() => Some(DeviceClass::ScsiBsg),
            "nvme-generic" => Some(DeviceClass::NvmeGeneric),
            "mtd" => Some(DeviceClass::Flash),
            "dax" => Some(DeviceClass::DirectAccess),
            _ => None,
        }
    }

    /// Whether commands pass through it to a block device, bypassing that device's protection.
    pub(crate) fn passes_commands(self) -> bool {
        matches!(self, DeviceClass::ScsiGeneric | DeviceClass::ScsiBsg | DeviceClass::NvmeGeneric)
    }

    /// How many bytes the device holds.
    pub(crate) fn size(self, path: &Path, number: DeviceNumber) -> Result<Option<u64>, Refusal> {
        if let DeviceClass::ScsiGeneric | DeviceClass::ScsiBsg = self {
            let interface = match self {
                DeviceClass::ScsiBsg => Interface::Fourth,
                _ => Interface::Third,
            };
            let device = File::open(path)?;
            // A device that is not a disk (a tape, an enclosure) has no capacity.
            let told = scsi::capacity(device.as_raw_fd(), interface).ok();
            return Ok(told.map(|told| told.blocks * u64::from(told.block)));
        }
        if self == DeviceClass::NvmeGeneric {
            let device = File::open(path).map_err(nvme::refusal)?;
            return Ok(Some(nvme::Namespace::of(device.as_raw_fd())?.bytes()));
        }
        let text = fs::read_to_string(directory(number).join("size"))?;
        Ok(text.trim().parse().ok())
    }

    /// The block device that is the same storage.
    pub(crate) fn block_device(self, number: DeviceNumber) -> Option<DeviceNumber> {
        match self {
            DeviceClass::ScsiGeneric | DeviceClass::ScsiBsg => {
                let disk = fs::read_dir(directory(number).join("device/block")).ok()?.flatten().next()?;
                DeviceNumber::parse(&fs::read_to_string(disk.path().join("dev")).ok()?)
            }
            DeviceClass::NvmeGeneric => {
                // ng0n1 passes commands to nvme0n1, and both are below their controller, or below their subsystem.
                let node = fs::canonicalize(directory(number)).ok()?;
                let name = node.file_name()?.to_str()?.strip_prefix("ng")?;
                let disk = node.with_file_name(format!("nvme{name}"));
                DeviceNumber::parse(&fs::read_to_string(disk.join("dev")).ok()?)
            }
            // Each flash device has a second node, which is read-only.
            DeviceClass::Flash => Some(DeviceNumber { major: FLASH_BLOCKS, minor: number.minor / 2 }),
            DeviceClass::DirectAccess => None,
        }
    }
}

/// The directory in which sysfs describes the character device of this number.
fn directory(number: DeviceNumber) -> PathBuf {
    PathBuf::from(format!("/sys/dev/char/{}:{}", number.major, number.minor))
}

/// The UBI device that is built on this flash, if any.
pub(crate) fn ubi_on(flash: u32) -> Option<String> {
    let attached = |entry: &fs::DirEntry| {
        let number = fs::read_to_string(entry.path().join("mtd_num")).ok()?;
        (number.trim().parse() == Ok(flash)).then_some(())
    };
    let devices = fs::read_dir("/sys/class/ubi").into_iter().flatten().flatten();
    let mut found = devices.filter(|entry| attached(entry).is_some());
    found.next().map(|entry| entry.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_devices_hold_nothing() {
        assert_eq!(DeviceClass::of(DeviceNumber { major: 1, minor: 3 }), None);
        assert_eq!(DeviceClass::of(DeviceNumber { major: 4095, minor: 0 }), None);
    }
}
