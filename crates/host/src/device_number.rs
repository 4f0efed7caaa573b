//! The numbers by which the kernel knows devices.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// The part that stands for the driver.
    pub major: u32,
    /// The part that stands for one of the driver's devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// Decodes the kernel's number.
    pub fn of(device: u64) -> DeviceNumber {
        DeviceNumber { major: libc::major(device), minor: libc::minor(device) }
    }

    /// Parses `8:16`.
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The directory in which sysfs describes the block device of this number.
    pub fn directory(self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{}:{}", self.major, self.minor))
    }
}
