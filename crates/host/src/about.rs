//! Names and models of a machine and its disks, for people who read a result later.

use crate::device::{Device, Section};
use crate::disks::Disk;
use crate::memory::Memory;
use std::fs;
use std::path::Path;

/// A fact: its name and its value.
type Fact = (String, String);

/// The machine: `name`, `kernel`, `cpu`, `cpus`, `memory_bytes`. Facts that the system does not report are left out.
pub fn this_host() -> Vec<Fact> {
    let kernel = |what: &str| read(&Path::new("/proc/sys/kernel").join(what));
    let processors = std::thread::available_parallelism().ok().map(|count| count.to_string());
    let facts = [
        ("name", kernel("hostname")),
        (
            "kernel",
            kernel("ostype").zip(kernel("osrelease")).map(|(kind, release)| format!("{kind} {release}")),
        ),
        ("cpu", fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| processor(&text))),
        ("cpus", processors),
        ("memory_bytes", Memory::now().total.map(|bytes| bytes.to_string())),
    ];
    told(facts)
}

/// The facts of [`Device`] that explain a result: `device`, `kind`, `model`, `firmware`, `serial`, `size_bytes`, …, and
/// `built_on` if it is built on other devices. For an NVMe namespace also all other facts, as `SUBJECT_FACT`
/// (`health_power_cycles`), except those of the kernel's queue. `disk` is the disk that holds the file; a generic
/// device (/dev/ng0n1) is queried directly.
pub fn device(path: &Path, disk: Option<&Disk>) -> Vec<Fact> {
    let is_generic =
        || crate::files::look(path).is_ok_and(|found| found.is_some_and(|found| found.class.is_some()));
    match disk {
        Some(disk) => of_device(&Device::of(disk, crate::device::node_of(&disk.directory).as_deref())),
        None if is_generic() => {
            Device::at(path).map_or_else(|_| Vec::new(), |found| of_device(&found.device))
        }
        None => Vec::new(),
    }
}

/// Facts that explain a result: their names in reports, and their section and name in [`Device`].
const EXPLAINING: [(&str, &str, &str); 38] = [
    ("model", "identity", "model"),
    ("firmware", "identity", "firmware"),
    ("serial", "identity", "serial"),
    ("size_bytes", "capacity", "size_bytes"),
    ("used_bytes", "capacity", "used_bytes"),
    ("rotational", "queue", "rotational"),
    ("scheduler", "queue", "scheduler"),
    ("queue", "queue", "requests"),
    ("largest_request_bytes", "queue", "largest_request_bytes"),
    ("largest_transfer_bytes", "commands", "largest_transfer_bytes"),
    ("logical_block", "queue", "logical_block_bytes"),
    ("physical_block", "queue", "physical_block_bytes"),
    ("data_per_block_bytes", "format", "data_bytes"),
    ("metadata", "format", "metadata_bytes"),
    ("metadata_is", "format", "metadata"),
    ("protection_information", "format", "protection_information"),
    // SCSI disks have only the type.
    ("protection_information_type", "format", "protection_information_type"),
    ("cache", "cache", "write_cache"),
    ("fua", "cache", "fua"),
    ("volatile_write_cache", "cache", "volatile_write_cache"),
    ("zone_bytes", "zones", "zone_bytes"),
    ("zone_capacity_bytes", "zones", "zone_capacity_bytes"),
    ("zones", "zones", "zones"),
    ("conventional_zones", "zones", "conventional_zones"),
    ("most_open_zones", "zones", "most_open"),
    ("most_active_zones", "zones", "most_active"),
    ("atomic_write_bytes", "atomic_writes", "largest_bytes"),
    ("write_streams", "queue", "write_streams"),
    ("fdp_enabled", "placement", "fdp_enabled"),
    ("placement_handles", "placement", "handles_of_namespace"),
    ("reclaim_unit_bytes", "placement", "reclaim_unit_bytes"),
    ("streams", "placement", "streams_available"),
    ("power_state", "power", "state"),
    ("temperature_celsius", "health", "temperature_celsius"),
    ("wear_percent", "health", "wear_percent"),
    ("spare_percent", "health", "spare_percent"),
    ("media_errors", "health", "media_errors"),
    ("warnings", "health", "warnings"),
];

/// Lists (LBA formats, power states, placement handles) are reported up to this many rows.
const MOST_ROWS: usize = 32;

/// The facts of a namespace that are not among those of all devices. A row of a list is one fact, `formats_0`.
fn of_namespace(device: &Device) -> Vec<Fact> {
    let mut told = Vec::new();
    let is_chosen =
        |section: &str, name: &str| EXPLAINING.iter().any(|(_, of, own)| (*of, *own) == (section, name));
    for Section { name: section, is_list, rows } in &device.sections {
        if *section == "queue" {
            continue;
        }
        for (number, row) in rows.iter().enumerate().take(MOST_ROWS) {
            if *is_list {
                let words = row.iter().map(|fact| format!("{}={}", fact.name, fact.value.text()));
                told.push((format!("{section}_{number}"), words.collect::<Vec<_>>().join(", ")));
            } else {
                let others = row.iter().filter(|fact| !is_chosen(section, fact.name));
                told.extend(others.map(|fact| (format!("{section}_{}", fact.name), fact.value.text())));
            }
        }
        if let Some(more) = rows.len().checked_sub(MOST_ROWS + 1) {
            told.push((format!("{section}_left_out"), (more + 1).to_string()));
        }
    }
    told
}

fn of_device(device: &Device) -> Vec<Fact> {
    let fact =
        |(name, section, own): (&str, &str, &str)| Some((name.to_owned(), device.fact(section, own)?.text()));
    let names = [("device", device.name.clone()), ("kind", device.kind.to_owned())];
    let names = names.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut facts: Vec<Fact> = names.chain(EXPLAINING.into_iter().filter_map(fact)).collect();
    if !device.below.is_empty() {
        let below = device.below.iter().map(|below| match below.fact("identity", "model") {
            Some(model) => format!("{} ({})", below.name, model.text()),
            None => below.name.clone(),
        });
        facts.push(("built_on".to_owned(), below.collect::<Vec<_>>().join(", ")));
    }
    if device.kind == "NVMe namespace" {
        facts.extend(of_namespace(device));
    }
    facts
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn told<const N: usize>(facts: [(&str, Option<String>); N]) -> Vec<Fact> {
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The name of the first processor in /proc/cpuinfo.
fn processor(text: &str) -> Option<String> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let mut named =
        fields.filter(|(name, _)| ["model name", "cpu model", "Processor"].contains(&name.trim()));
    named.next().map(|(_, value)| value.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_processor() {
        let text = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some   CPU @ 2.00GHz\nmodel name\t: other\n";
        assert_eq!(processor(text).unwrap(), "Some CPU @ 2.00GHz");
        assert_eq!(processor("processor : 0\n"), None);
    }

    #[test]
    fn unknown_facts_are_left_out() {
        let disk = Disk {
            name: "none0".into(),
            directory: "/no/such/disk".into(),
            queue: crate::Queue::default(),
            below: Vec::new(),
        };
        let facts = of_device(&Device::of(&disk, None));
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(facts, [fact("device", "none0"), fact("kind", "block device")]);
        assert!(this_host().iter().any(|(name, value)| name == "kernel" && value.starts_with("Linux ")));
        assert!(crate::Mounts::now().file_system(Path::new("/proc/self")).is_some());
    }

    #[test]
    fn all_facts_of_a_namespace_but_the_queue_are_reported() {
        use crate::device::{Fact, Value};
        let section = |name, is_list, rows: Vec<Vec<(&'static str, Value)>>| Section {
            name,
            is_list,
            rows: rows
                .into_iter()
                .map(|row| row.into_iter().map(|(name, value)| Fact { name, value }).collect())
                .collect(),
        };
        let row = |number: u64| vec![("plid", number.into()), ("room_bytes", 4096.into())];
        let mut device = Device {
            name: "nvme0n1".into(),
            kind: "NVMe namespace",
            sections: vec![
                section("identity", false, vec![vec![("model", "m".into()), ("wwid", "w".into())]]),
                section("queue", false, vec![vec![("requests", 8.into()), ("segments", 33.into())]]),
                section("placement_handles", true, (0..40).map(row).collect()),
                section("health", false, vec![vec![("wear_percent", 1.into()), ("power_cycles", 9.into())]]),
            ],
            ..Device::default()
        };
        let told = of_device(&device);
        let fact = |name: &str| told.iter().find(|(told, _)| told == name).map(|(_, value)| value.as_str());
        let expected = [
            ("model", "m"),
            ("queue", "8"),
            ("wear_percent", "1"),
            ("identity_wwid", "w"),
            ("placement_handles_31", "plid=31, room_bytes=4096"),
            ("placement_handles_left_out", "8"),
            ("health_power_cycles", "9"),
        ];
        expected.iter().for_each(|(name, value)| assert_eq!(fact(name), Some(*value), "{name}: {told:?}"));
        for name in ["identity_model", "queue_segments", "health_wear_percent", "placement_handles_32"] {
            assert_eq!(fact(name), None, "{name}: {told:?}");
        }
        device.kind = "SCSI disk";
        let names: Vec<String> = of_device(&device).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["device", "kind", "model", "queue", "wear_percent"]);
    }
}
