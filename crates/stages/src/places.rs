//! Where files lie on devices.

use crate::kernel::{Device, Sectors};
use iolite_host::DeviceNumber;
use iolite_os::files::physical_offset;
use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A disk and the sector where a device begins on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnDisk {
    disk: Device,
    start: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A block device.
    Device(OnDisk),
    /// A file of a file system that may tell where its extents lie.
    File(OnDisk),
}

/// Finds out where files lie, when it is asked for.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: HashMap<String, Kind>,
    /// The files that were asked for last: opening one takes longer than asking it.
    open: VecDeque<(String, File)>,
}

/// A job may have more files than a process may open.
const MOST_OPEN: usize = 16;

impl Places {
    /// For these files, as far as they are there.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = &'a str>) -> Places {
        let known = files.into_iter().filter_map(|path| Some((path.to_owned(), Kind::of(Path::new(path))?)));
        Places { known: known.collect(), open: VecDeque::new() }
    }

    /// Whether the place of any file may be asked for.
    pub(crate) fn are_asked_for(&self) -> bool {
        !self.known.is_empty()
    }

    /// The sectors of a part of a file; `None` = unknown, or they do not follow each other.
    pub(crate) fn of(&mut self, file: &str, offset: u64, length: u64) -> Option<(Device, Sectors)> {
        let (on_disk, offset) = match *self.known.get(file)? {
            Kind::Device(on_disk) => (on_disk, offset),
            Kind::File(on_disk) => (on_disk, physical_offset(self.opened(file)?, offset, length)?),
        };
        let first = on_disk.start + offset / 512;
        Some((on_disk.disk, Sectors { first, end: first + length.div_ceil(512) }))
    }

    fn opened(&mut self, file: &str) -> Option<&File> {
        if let Some(place) = self.open.iter().position(|(name, _)| name == file) {
            return Some(&self.open[place].1);
        }
        self.open.truncate(MOST_OPEN - 1);
        self.open.push_front((file.to_owned(), File::open(file).ok()?));
        Some(&self.open[0].1)
    }
}

impl Kind {
    fn of(path: &Path) -> Option<Kind> {
        let facts = fs::metadata(path).ok()?;
        if facts.file_type().is_block_device() {
            return Some(Kind::Device(OnDisk::of(facts.rdev())?));
        }
        facts.file_type().is_file().then(|| Some(Kind::File(OnDisk::of(facts.dev())?)))?
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
        let mut places = Places::new(["/proc/self/stat", "/nowhere", "/dev/null"]);
        assert_eq!(places.of("/nowhere", 0, 4096), None);
        assert_eq!(places.of("/dev/null", 0, 4096), None);
        assert_eq!(places.of("/never/mentioned", 0, 4096), None);
    }
}
