//! Where files lie on devices.

use crate::kernel::{Device, Sectors};
use iolite_host::DeviceNumber;
use iolite_os::files::physical_offset;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A disk and the sector where a device begins on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnDisk {
    disk: Device,
    start: u64,
}

/// A file.
#[derive(Debug)]
enum Kind {
    /// A block device.
    Device(OnDisk),
    /// A file of a file system that tells where its extents lie.
    File(OnDisk, File),
}

/// Finds out where files lie, when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Places {
    files: HashMap<String, Option<Kind>>,
    is_asked_for: bool,
}

impl Places {
    /// For these files.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = &'a str>) -> Places {
        let known = |path: &str| (path.to_owned(), Kind::of(Path::new(path)));
        let files: HashMap<String, Option<Kind>> = files.into_iter().map(known).collect();
        Places { is_asked_for: files.values().any(Option::is_some), files }
    }

    /// Whether the place of any file may be asked for.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// The sectors of a part of a file; `None` = unknown, or they do not follow each other.
    pub(crate) fn of(&self, file: &str, offset: u64, length: u64) -> Option<(Device, Sectors)> {
        let (on_disk, offset) = match self.files.get(file)?.as_ref()? {
            Kind::Device(on_disk) => (*on_disk, offset),
            Kind::File(on_disk, file) => (*on_disk, physical_offset(file, offset, length)?),
        };
        let first = on_disk.start + offset / 512;
        Some((on_disk.disk, Sectors { first, end: first + length.div_ceil(512) }))
    }
}

impl Kind {
    fn of(path: &Path) -> Option<Kind> {
        let facts = fs::metadata(path).ok()?;
        if facts.file_type().is_block_device() {
            return Some(Kind::Device(OnDisk::of(facts.rdev())?));
        }
        if facts.file_type().is_file() {
            return Some(Kind::File(OnDisk::of(facts.dev())?, File::open(path).ok()?));
        }
        None
    }
}

impl OnDisk {
    /// The place of a block device: itself, or the disk of a partition.
    fn of(number: u64) -> Option<OnDisk> {
        /// As in the kernel's records.
        fn encoded(number: DeviceNumber) -> Device {
            (number.major << 20) | number.minor
        }
        let number = DeviceNumber::of(number);
        let directory = number.directory().canonicalize().ok()?;
        let Ok(start) = fs::read_to_string(directory.join("start")) else {
            return Some(OnDisk { disk: encoded(number), start: 0 });
        };
        let disk = fs::read_to_string(directory.parent()?.join("dev")).ok()?;
        Some(OnDisk { disk: encoded(DeviceNumber::parse(&disk)?), start: start.trim().parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_has_no_place() {
        let places = Places::new(["/proc/self/stat", "/nowhere", "/dev/null"]);
        assert_eq!(places.of("/nowhere", 0, 4096), None);
        assert_eq!(places.of("/dev/null", 0, 4096), None);
        assert_eq!(places.of("/never/mentioned", 0, 4096), None);
    }
}
