//! Disks: which one holds a file, and the properties of its queue, from sysfs (Linux:
//! Documentation/ABI/stable/sysfs-block).

use crate::device_number::DeviceNumber;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A disk, or a device that is built on disks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The kernel's name for it: `nvme0n1`.
    pub name: String,
    /// The directory in which sysfs describes it.
    pub directory: PathBuf,
    /// Its queue.
    pub queue: Queue,
    /// The disks that it is built on, for LVM, md and dm.
    pub below: Vec<Disk>,
}

/// The properties of a disk's queue; `None` = unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The smallest unit that can be addressed, in bytes.
    pub logical_block: Option<u64>,
    /// The smallest unit that the disk can write without reading it first, in bytes.
    pub physical_block: Option<u64>,
    /// The largest request that the kernel sends to it, in bytes.
    pub largest_request: Option<u64>,
    /// The most requests that wait in the queue.
    pub requests: Option<u64>,
    /// The unit of discards, in bytes; 0 = it knows no discards.
    pub discard_granularity: Option<u64>,
    /// The largest discard, in bytes; 0 = it knows no discards.
    pub largest_discard: Option<u64>,
    /// Whether it has rotating media.
    pub rotational: Option<bool>,
    /// Its I/O scheduler.
    pub scheduler: Option<Scheduler>,
    /// Its zones; `None` = it is not zoned.
    pub zones: Option<Zones>,
}

/// The I/O schedulers of a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// The scheduler in use.
    pub chosen: Option<String>,
    /// All schedulers that can be used.
    pub known: Vec<String>,
}

impl Scheduler {
    /// The current schedulers of the disk that sysfs describes in this directory.
    pub fn read(directory: &Path) -> Option<Scheduler> {
        Some(Scheduler::parse(&fs::read_to_string(directory.join("queue/scheduler")).ok()?))
    }

    /// `none [mq-deadline] bfq`: the one in use is in brackets.
    fn parse(text: &str) -> Scheduler {
        let within = |name: &str| Some(name.strip_prefix('[')?.strip_suffix(']')?.to_owned());
        Scheduler {
            chosen: text.split_whitespace().find_map(within),
            known: text.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect(),
        }
    }
}

/// The party that enforces sequential writes in zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZoneModel {
    /// The host should, but the disk accepts other writes.
    HostAware,
    /// The host must: other writes fail.
    HostManaged,
}

/// The zones of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    /// The zone model of the device.
    pub model: ZoneModel,
    /// The size of a zone in bytes; the last one may be smaller.
    pub size: u64,
    /// The number of zones.
    pub count: u64,
    /// How many can be open at once; 0 = all.
    pub most_open: u64,
    /// How many can be open or partly written at once; 0 = all.
    pub most_active: u64,
}

/// The sizes of atomic writes, which are stored completely or not at all. Zeros = atomic writes are not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicWrites {
    /// The smallest such write, in bytes.
    pub least: u64,
    /// The largest such write, in bytes.
    pub most: u64,
}

impl AtomicWrites {
    /// The atomic write units of the file at a path; `None` = unknown.
    pub(crate) fn of(path: &Path) -> Option<AtomicWrites> {
        let found = iolite_os::files::statx(path, libc::STATX_WRITE_ATOMIC)?;
        Some(AtomicWrites {
            least: u64::from(found.stx_atomic_write_unit_min),
            most: u64::from(found.stx_atomic_write_unit_max),
        })
    }
}

impl Disk {
    /// The disk that sysfs describes in this directory.
    pub(crate) fn read(directory: &Path) -> Option<Disk> {
        let name = directory.file_name()?.to_string_lossy().into_owned();
        let entries = fs::read_dir(directory.join("slaves")).into_iter().flatten().flatten();
        let below = entries.filter_map(|entry| Disk::read(&whole_disk(fs::canonicalize(entry.path()).ok()?)));
        Some(Disk {
            name,
            below: below.collect(),
            queue: Queue::read(directory),
            directory: directory.to_owned(),
        })
    }
}

impl Disk {
    /// How many requests to flush its cache the disk has completed; `None` = unknown (Linux before 5.5). The format is
    /// documented in Linux's Documentation/block/stat.rst.
    pub fn flushes(&self) -> Option<u64> {
        const FIELD: usize = 15;
        let text = fs::read_to_string(self.directory.join("stat")).ok()?;
        text.split_whitespace().nth(FIELD)?.parse().ok()
    }

    /// Sectors of 512 bytes that were written or discarded since the disk was found; `None` = unknown, as for a disk without such
    /// statistics. The format is documented in Linux's Documentation/block/stat.rst.
    pub fn changed_sectors(&self) -> Option<u64> {
        const WRITTEN: usize = 6;
        const DISCARDED: usize = 13;
        if fs::read_to_string(self.directory.join("queue/iostats")).is_ok_and(|text| text.trim() == "0") {
            return None;
        }
        let text = fs::read_to_string(self.directory.join("stat")).ok()?;
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        Some(fields.get(WRITTEN)? + fields.get(DISCARDED).unwrap_or(&0))
    }

    /// Where the partition that holds a file, or that a device is, begins on its disk, in bytes; `None` = no partition.
    pub fn partition_start(path: &Path) -> Option<u64> {
        let directory = device_below(path)?.directory();
        // Sectors have 512 bytes whatever the size of a block is.
        let start = fs::read_to_string(directory.join("start")).ok()?;
        start.trim().parse::<u64>().ok()?.checked_mul(512)
    }
}

impl Queue {
    fn read(directory: &Path) -> Queue {
        let number = |name: &str| {
            let text = fs::read_to_string(directory.join("queue").join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        Queue {
            logical_block: number("logical_block_size"),
            physical_block: number("physical_block_size"),
            largest_request: number("max_sectors_kb").map(|kib| kib << 10),
            requests: number("nr_requests"),
            discard_granularity: number("discard_granularity"),
            largest_discard: number("discard_max_bytes"),
            rotational: number("rotational").map(|value| value != 0),
            scheduler: Scheduler::read(directory),
            zones: zones(directory, number),
        }
    }
}

fn zones(directory: &Path, number: impl Fn(&str) -> Option<u64>) -> Option<Zones> {
    let limit = |name: &str| match number(name).unwrap_or(0) {
        0 => limit_of_paths(directory, name),
        limit => limit,
    };
    let model = match fs::read_to_string(directory.join("queue/zoned")).ok()?.trim() {
        "host-aware" => ZoneModel::HostAware,
        "host-managed" => ZoneModel::HostManaged,
        _ => return None,
    };
    Some(Zones {
        model,
        // Sectors have 512 bytes whatever the size of a block is.
        size: number("chunk_sectors")?.saturating_mul(512),
        count: number("nr_zones")?,
        most_open: limit("max_open_zones"),
        most_active: limit("max_active_zones"),
    })
}

/// The limit of the paths to a namespace that has several (NVMe multipath): its own queue (`nvme0n1`) has no limit, but
/// the queue of each path (`nvme0c1n1`) has the device's. 0 = no limit.
fn limit_of_paths(head: &Path, name: &str) -> u64 {
    let Some(numbers) =
        head.file_name().and_then(|name| name.to_str()?.strip_prefix("nvme")?.split_once('n'))
    else {
        return 0;
    };
    let (begin, end) = (format!("nvme{}c", numbers.0), format!("n{}", numbers.1));
    let is_path = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(&end)).is_some_and(|controller| {
            !controller.is_empty() && controller.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let within = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    // The subsystem has a link to each of its controllers, which have the paths.
    let controllers = within(&head.join("device"));
    let paths = controllers.iter().flat_map(|controller| within(controller)).filter(is_path);
    let limit = |path: PathBuf| fs::read_to_string(path.join("queue").join(name)).ok()?.trim().parse().ok();
    paths.filter_map(limit).filter(|&limit: &u64| limit > 0).min().unwrap_or(0)
}

/// The number of the device that holds a file (or the nearest directory above it that exists); for a device, its own
/// number.
pub(crate) fn device_below(path: &Path) -> Option<DeviceNumber> {
    let absolute = std::path::absolute(path).ok()?;
    let metadata = absolute.ancestors().find_map(|path| fs::metadata(path).ok())?;
    let is_device = metadata.file_type().is_block_device();
    Some(DeviceNumber::of(if is_device { metadata.rdev() } else { metadata.dev() }))
}

/// The directory in which sysfs describes the disk of this device, which may be a partition.
pub(crate) fn directory_of(device: DeviceNumber) -> Option<PathBuf> {
    Some(whole_disk(fs::canonicalize(device.directory()).ok()?))
}

/// The disk of a partition, because the disk's counters and queue are those that matter.
fn whole_disk(directory: PathBuf) -> PathBuf {
    match directory.parent() {
        Some(parent) if directory.join("partition").exists() => parent.to_owned(),
        _ => directory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_that_is_used_is_in_brackets() {
        let chosen = |text: &str| Scheduler::parse(text).chosen;
        assert_eq!(chosen("none [mq-deadline] kyber bfq\n").as_deref(), Some("mq-deadline"));
        assert_eq!(chosen("[none]").as_deref(), Some("none"));
        assert_eq!(chosen("none\n"), None);
        assert_eq!(Scheduler::parse("none [mq-deadline] bfq\n").known, ["none", "mq-deadline", "bfq"]);
    }

    #[test]
    fn flushes_are_counted_since_linux_5_5() {
        let sysfs = tempfile::tempdir().unwrap();
        let disk =
            Disk { name: "a".into(), directory: sysfs.path().into(), queue: Queue::default(), below: vec![] };
        assert_eq!(disk.flushes(), None);
        fs::write(sysfs.path().join("stat"), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n").unwrap();
        assert_eq!(disk.flushes(), None);
        fs::write(sysfs.path().join("stat"), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 77 17\n").unwrap();
        assert_eq!(disk.flushes(), Some(77));
        assert_eq!(disk.changed_sectors(), Some(7 + 14));
        assert_eq!(Disk::partition_start(Path::new("/proc/self/stat")), None);
    }

    #[test]
    fn files_without_a_disk_have_none() {
        assert_eq!(device_below(Path::new("/proc/self/stat")).and_then(directory_of), None);
    }

    #[test]
    fn a_zoned_disk() {
        let sysfs = tempfile::tempdir().unwrap();
        let directory = sysfs.path().join("nvme1n1");
        fs::create_dir_all(directory.join("queue")).unwrap();
        let values = [
            ("zoned", "host-managed\n"),
            ("chunk_sectors", "524288\n"),
            ("nr_zones", "904\n"),
            ("max_open_zones", "14\n"),
            ("max_active_zones", "14\n"),
            ("logical_block_size", "4096\n"),
            ("max_sectors_kb", "128\n"),
            ("rotational", "0\n"),
        ];
        values.iter().for_each(|(name, text)| fs::write(directory.join("queue").join(name), text).unwrap());
        let disk = Disk::read(&directory).unwrap();
        let model = ZoneModel::HostManaged;
        let zones = Zones { model, size: 256 << 20, count: 904, most_open: 14, most_active: 14 };
        assert_eq!((disk.name.as_str(), disk.queue.zones), ("nvme1n1", Some(zones)));
        assert_eq!((disk.queue.logical_block, disk.queue.largest_request), (Some(4096), Some(128 << 10)));
        assert_eq!((disk.queue.rotational, disk.queue.physical_block), (Some(false), None));
        fs::write(directory.join("queue/zoned"), "none\n").unwrap();
        assert_eq!(Disk::read(&directory).unwrap().queue.zones, None);
    }

    /// As the kernel lays out a namespace with two controllers.
    #[test]
    fn a_namespace_with_several_paths_has_their_smallest_limits() {
        let sysfs = tempfile::tempdir().unwrap();
        let write = |directory: &Path, values: &[(&str, &str)]| {
            fs::create_dir_all(directory.join("queue")).unwrap();
            values
                .iter()
                .for_each(|(name, text)| fs::write(directory.join("queue").join(name), text).unwrap());
        };
        let subsystem = sysfs.path().join("nvme-subsystem/nvme-subsys0");
        let head = subsystem.join("nvme0n8");
        let own = [("zoned", "host-managed\n"), ("chunk_sectors", "8192\n"), ("nr_zones", "16\n")];
        write(&head, &own);
        write(&head, &[("max_open_zones", "0\n"), ("max_active_zones", "0\n")]);
        std::os::unix::fs::symlink(&subsystem, head.join("device")).unwrap();
        let limits = || {
            let zones = Disk::read(&head).unwrap().queue.zones.unwrap();
            (zones.most_open, zones.most_active)
        };
        assert_eq!(limits(), (0, 0), "it has no path");
        // The paths of other namespaces do not count.
        for (controller, path, open) in [
            (0, "nvme0c0n8", "5"),
            (1, "nvme0c1n8", "4"),
            (1, "nvme0c1n18", "3"),
            (1, "nvme0c1n1", "2"),
            (1, "nvme1c1n8", "1"),
        ] {
            let place = sysfs.path().join(format!("pci/nvme{controller}"));
            write(&place.join(path), &[("max_open_zones", open), ("max_active_zones", "6\n")]);
            let link = subsystem.join(format!("nvme{controller}"));
            if !link.exists() {
                std::os::unix::fs::symlink(&place, &link).unwrap();
            }
        }
        assert_eq!(limits(), (4, 6));
        write(&head, &[("max_open_zones", "9\n")]);
        assert_eq!(limits(), (9, 6), "a limit of its own counts");
    }

    #[test]
    fn file_systems_of_memory_write_nothing_atomically() {
        assert_eq!(AtomicWrites::of(Path::new("/proc/self/stat")), Some(AtomicWrites::default()));
    }
}
