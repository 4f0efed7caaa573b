//! The kind of a device, and the facts specific to the kind.

use super::sysfs::{number, switch, text};
use super::{Device, Facts, node_of, nvme, scsi, sysfs};
use crate::device_class::DeviceClass;
use crate::disks;
use crate::disks::Disk;
use std::fs;
use std::path::{Path, PathBuf};

/// The kind of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nvme,
    Scsi,
    Ata,
    Virtio,
    Loop,
    Mapper,
    Raid,
    CompressedMemory,
    Memory,
    Null,
    Persistent,
    Network,
    Card,
    User,
    Other,
}

impl Kind {
    fn of(name: &str, directory: &Path) -> Kind {
        let there = |what: &str| directory.join(what).exists();
        let linked = |what: &str| {
            let target = fs::read_link(directory.join(what)).ok()?;
            Some(target.file_name()?.to_string_lossy().into_owned())
        };
        match linked("device/subsystem").as_deref() {
            Some("nvme" | "nvme-subsystem") => return Kind::Nvme,
            Some("scsi") if text(directory, "device/vendor").as_deref() == Some("ATA") => return Kind::Ata,
            Some("scsi") => return Kind::Scsi,
            Some("virtio") => return Kind::Virtio,
            Some("mmc") => return Kind::Card,
            _ => {}
        }
        let named = [
            ("zram", Kind::CompressedMemory),
            ("ram", Kind::Memory),
            ("nullb", Kind::Null),
            ("pmem", Kind::Persistent),
            ("nbd", Kind::Network),
            ("rbd", Kind::Network),
            ("ublkb", Kind::User),
        ];
        match () {
            () if there("dm") => Kind::Mapper,
            () if there("md") => Kind::Raid,
            () if there("loop") || name.starts_with("loop") => Kind::Loop,
            () => named
                .into_iter()
                .find(|(start, _)| name.starts_with(start))
                .map_or(Kind::Other, |(_, kind)| kind),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Kind::Nvme => "NVMe namespace",
            Kind::Scsi => "SCSI disk",
            Kind::Ata => "ATA disk",
            Kind::Virtio => "virtio disk",
            Kind::Loop => "loop device",
            Kind::Mapper => "device mapper",
            Kind::Raid => "md RAID",
            Kind::CompressedMemory => "compressed memory (zram)",
            Kind::Memory => "memory",
            Kind::Null => "null device (null_blk)",
            Kind::Persistent => "persistent memory",
            Kind::Network => "network block device",
            Kind::Card => "flash card",
            Kind::User => "block device of a user program (ublk)",
            Kind::Other => "block device",
        }
    }
}

/// The device that sysfs describes in this directory; commands are sent to it through the node, if there is one.
pub(super) fn of(name: &str, directory: &Path, node: Option<&Path>) -> Device {
    let kind = Kind::of(name, directory);
    let mut device = Device { name: name.to_owned(), kind: kind.words(), ..Device::default() };
    let attribute = |names: &[&str]| names.iter().find_map(|name| text(directory, name));
    let identity = Facts::default()
        .with("vendor", (kind == Kind::Scsi).then(|| attribute(&["device/vendor"])).flatten())
        .with("model", attribute(&["device/model", "device/name"]))
        .with("firmware", attribute(&["device/firmware_rev", "device/rev", "device/fwrev"]))
        .with("serial", attribute(&["device/serial", "serial"]))
        .with("wwid", attribute(&["wwid", "device/wwid", "uuid"]))
        .with("numa_node", number(directory, "device/numa_node"));
    device.tell("identity", identity);
    sysfs::tell(&mut device, directory);
    match kind {
        Kind::Nvme => nvme::tell(&mut device, directory, node),
        Kind::Scsi | Kind::Ata => scsi::tell(&mut device, directory, node),
        Kind::Loop => of_loop(&mut device, directory),
        Kind::Mapper => {
            device.tell("device_mapper", named(directory, &[("dm/name", "name"), ("dm/uuid", "uuid")]))
        }
        Kind::Raid => of_raid(&mut device, directory),
        Kind::CompressedMemory => of_compressed_memory(&mut device, directory),
        Kind::Persistent => {
            let names = [
                ("device/numa_node", "numa_node"),
                ("device/sector_size", "sector_size"),
                ("device/mode", "mode"),
            ];
            device.tell("persistent_memory", named(directory, &names));
        }
        _ => {}
    }
    // Generic devices do not report zones.
    let of_blocks = node_of(directory);
    if let Some(node) = of_blocks.as_deref().or(node) {
        zone_facts(&mut device, node);
    }
    device
}

/// A character device without a block device.
pub(super) fn of_characters(class: DeviceClass, name: &str, directory: &Path, node: &Path) -> Device {
    let kind = match class {
        DeviceClass::NvmeGeneric => "NVMe namespace",
        DeviceClass::ScsiGeneric | DeviceClass::ScsiBsg => "SCSI device",
        DeviceClass::Flash => "flash (MTD)",
        DeviceClass::DirectAccess => "persistent memory (DAX)",
    };
    let mut device = Device { name: name.to_owned(), kind, ..Device::default() };
    let identity = Facts::default()
        .with("vendor", text(directory, "device/vendor"))
        .with("model", text(directory, "device/model").or_else(|| text(directory, "name")))
        .with("firmware", text(directory, "device/firmware_rev").or_else(|| text(directory, "device/rev")))
        .with("serial", text(directory, "device/serial"));
    device.tell("identity", identity);
    let sized = |name: &str| number(directory, name);
    match class {
        DeviceClass::NvmeGeneric => nvme::tell(&mut device, directory, Some(node)),
        DeviceClass::ScsiGeneric => scsi::tell(&mut device, directory, Some(node)),
        DeviceClass::ScsiBsg => scsi::tell(&mut device, directory, None),
        DeviceClass::Flash => {
            device.tell("capacity", Facts::default().with("size_bytes", sized("size")));
            let flash = Facts::default()
                .with("type", text(directory, "type"))
                .with("erase_block_bytes", sized("erasesize"))
                .with("page_bytes", sized("writesize"))
                .with("spare_bytes", sized("oobsize"))
                .with("bad_blocks", sized("bad_blocks"));
            device.tell("flash", flash);
        }
        DeviceClass::DirectAccess => {
            device.tell("capacity", Facts::default().with("size_bytes", sized("size")));
            let memory = Facts::default()
                .with("alignment_bytes", sized("align"))
                .with("numa_node", sized("numa_node"));
            device.tell("persistent_memory", memory);
        }
    }
    device
}

fn named(directory: &Path, names: &[(&str, &'static str)]) -> Facts {
    let mut facts = Facts::default();
    names.iter().for_each(|(file, name)| facts.add(name, text(directory, file)));
    facts
}

fn of_loop(device: &mut Device, directory: &Path) {
    let Some(file) = text(directory, "loop/backing_file") else {
        device.untold.push("no file is attached to it; losetup attaches one".to_owned());
        return;
    };
    let path = PathBuf::from(&file);
    let facts = Facts::default()
        .with("file", Some(file))
        .with("offset_bytes", number(directory, "loop/offset"))
        .with("size_limit_bytes", number(directory, "loop/sizelimit").filter(|&limit| limit > 0))
        .with("direct", switch(directory, "loop/dio"))
        .with("file_system", super::file_system(&path));
    device.tell("loop", facts);
    let holder = disks::device_below(&path).and_then(disks::directory_of);
    let holder = holder.and_then(|directory| Disk::read(&directory));
    // A file whose name leads back to this device would recurse forever.
    if let Some(disk) = holder.filter(|disk| disk.name != device.name && !disk.name.starts_with("loop")) {
        device.below.push(Device::of(&disk, node_of(&disk.directory).as_deref()));
    }
}

fn of_raid(device: &mut Device, directory: &Path) {
    let facts = named(
        directory,
        &[
            ("md/level", "level"),
            ("md/array_state", "state"),
            ("md/sync_action", "sync_action"),
            ("md/metadata_version", "metadata"),
            ("md/consistency_policy", "consistency_policy"),
        ],
    );
    let facts = facts
        .with("members", number(directory, "md/raid_disks"))
        .with("degraded", number(directory, "md/degraded"))
        .with("chunk_bytes", number(directory, "md/chunk_size").filter(|&bytes| bytes > 0))
        .with("stripe_cache", number(directory, "md/stripe_cache_size"));
    device.tell("raid", facts);
}

fn of_compressed_memory(device: &mut Device, directory: &Path) {
    let algorithms = text(directory, "comp_algorithm").unwrap_or_default();
    let chosen = algorithms.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    // mm_stat: bytes of data, of compressed data, of memory, the limit, the most memory, and more.
    let statistics = text(directory, "mm_stat").unwrap_or_default();
    let mut statistics = statistics.split_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = || statistics.next().flatten();
    let facts = Facts::default()
        .with("algorithm", chosen.or((!algorithms.is_empty()).then_some(algorithms.as_str())))
        .with("data_bytes", next())
        .with("compressed_bytes", next())
        .with("memory_bytes", next())
        .with("limit_bytes", next().filter(|&limit| limit > 0));
    device.tell("compressed_memory", facts);
}

/// The facts that only a zone report provides.
fn zone_facts(device: &mut Device, node: &Path) {
    if device.section("zones").is_none() {
        return;
    }
    let opened = fs::File::open(node);
    let report = opened.and_then(|file| iolite_os::zones::report(&file, 0, usize::MAX));
    match report {
        Ok(zones) => {
            let conventional =
                zones.iter().filter(|zone| zone.kind == iolite_os::zones::ZoneKind::Conventional);
            let capacity = zones.iter().rfind(|zone| zone.kind != iolite_os::zones::ZoneKind::Conventional);
            let facts = Facts::default()
                .with("conventional_zones", Some(conventional.count() as u64))
                .with("zone_capacity_bytes", capacity.map(|zone| zone.capacity));
            device.tell("zones", facts);
        }
        Err(error) => {
            device.untold.push(super::hidden("conventional zones and the capacity of a zone", &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn a_raid_and_compressed_memory() {
        let raid = described(&[
            ("md/level", "raid5\n"),
            ("md/raid_disks", "4\n"),
            ("md/chunk_size", "524288\n"),
            ("size", "2048\n"),
        ]);
        let device = of("md127", raid.path(), None);
        assert_eq!((device.kind, device.number("raid", "members")), ("md RAID", Some(4)));
        assert_eq!(device.number("capacity", "size_bytes"), Some(1 << 20));
        let zram = described(&[
            ("comp_algorithm", "lzo [zstd] lz4\n"),
            ("mm_stat", " 4096 64 12288 0 12288 0 0 0 0\n"),
        ]);
        let device = of("zram3", zram.path(), None);
        assert_eq!(device.fact("compressed_memory", "algorithm"), Some(&"zstd".into()));
        assert_eq!(device.number("compressed_memory", "compressed_bytes"), Some(64));
        assert_eq!(device.number("compressed_memory", "limit_bytes"), None, "there is no limit");
    }

    #[test]
    fn facts_of_a_device_are_read_from_sysfs() {
        let disk = described(&[
            ("queue/atomic_write_unit_min_bytes", "512\n"),
            ("queue/atomic_write_unit_max_bytes", "65536\n"),
            ("queue/max_sectors_kb", "128\n"),
            ("queue/scheduler", "none [mq-deadline]\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/zoned", "host-managed\n"),
            ("queue/chunk_sectors", "8192\n"),
            ("queue/max_open_zones", "0\n"),
            ("queue/max_active_zones", "14\n"),
            ("device/model", "Some  \n"),
            ("integrity/format", "T10-DIF-TYPE1-CRC\n"),
        ]);
        let device = of("nullb9", disk.path(), None);
        assert_eq!(device.number("atomic_writes", "largest_bytes"), Some(65536));
        assert_eq!(device.number("queue", "largest_request_bytes"), Some(128 << 10));
        assert_eq!(device.fact("queue", "scheduler"), Some(&"mq-deadline".into()));
        assert_eq!(device.fact("cache", "write_cache"), Some(&"write back".into()));
        assert_eq!(device.fact("identity", "model"), Some(&"Some".into()));
        assert_eq!(device.number("zones", "zone_bytes"), Some(4 << 20));
        assert_eq!(device.fact("zones", "most_open"), Some(&"no limit".into()));
        assert_eq!(device.number("zones", "most_active"), Some(14));
        assert_eq!(device.fact("integrity", "format"), Some(&"T10-DIF-TYPE1-CRC".into()));
        let plain = of("nullb9", described(&[("queue/atomic_write_unit_max_bytes", "0\n")]).path(), None);
        assert!(plain.section("atomic_writes").is_none() && plain.section("zones").is_none());
    }
}
