//! The identify data of an NVMe controller and its namespace, where the user may pass commands to them. The structures
//! are those of the NVM Express Base, NVM Command Set and Zoned Namespace Command Set Specifications; values are little
//! endian.

use super::sysfs::{self, text};
use super::{Device, Facts, Value, hidden};
use iolite_os::nvme::command_set::{NVM, ZONED};
use iolite_os::nvme::{self, Handle, Namespace, PAGE, structure};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// Log pages.
const HEALTH: u8 = 0x02;
const PLACEMENT_CONFIGURATIONS: u8 = 0x20;
/// Features: Power Management, Flexible Data Placement.
const POWER: u8 = 0x02;
const PLACEMENT: u8 = 0x1d;
/// The directive Streams.
const STREAMS: u8 = 1;
/// All namespaces.
const ALL: u32 = u32::MAX;

/// The fields of a structure.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number<const BYTES: usize>(&self, place: usize) -> u64 {
        let bytes = self.0.get(place..place + BYTES).unwrap_or(&[]);
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn byte(&self, place: usize) -> u64 {
        self.number::<1>(place)
    }

    fn half(&self, place: usize) -> u64 {
        self.number::<2>(place)
    }

    fn word(&self, place: usize) -> u64 {
        self.number::<4>(place)
    }

    /// A number of 16 bytes, whose upper half no device has used yet.
    fn long(&self, place: usize) -> u64 {
        self.number::<8>(place)
    }

    fn words(&self, from: usize, to: usize) -> Option<String> {
        let text = String::from_utf8_lossy(self.0.get(from..to)?);
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0').to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn hexadecimal(&self, from: usize, to: usize) -> Option<String> {
        let bytes = self.0.get(from..to)?;
        let is_set = bytes.iter().any(|&byte| byte != 0);
        is_set.then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Adds the facts about the controller and the namespace.
pub(super) fn tell(device: &mut Device, directory: &Path, node: Option<&Path>) {
    let controller = &directory.join("device");
    let identity = Facts::default()
        .with("transport", text(controller, "transport"))
        .with("address", text(controller, "address"))
        .with("subsystem", text(controller, "subsysnqn"))
        .with("namespace", sysfs::number(directory, "nsid"));
    device.tell("identity", identity);
    let temperature = sysfs::temperature(controller);
    device.tell("health", Facts::default().with("temperature_celsius", temperature));
    const COMMANDS: &str =
        "LBA formats, optional commands, zones' limits, data placement, power states, wear and temperature";
    let Some(node) = node else {
        return device
            .untold
            .push(format!("{COMMANDS}: the device has no node below /dev that could be asked"));
    };
    let opened = File::open(node);
    let asked = opened.and_then(|file| ask(device, file.as_raw_fd()));
    if let Err(error) = asked {
        device.untold.push(hidden(COMMANDS, &error));
    }
}

/// Queries the device by commands.
fn ask(device: &mut Device, file: RawFd) -> io::Result<()> {
    let controller = nvme::identify(file, 0, structure::CONTROLLER, NVM)?;
    let controller = Fields(&controller[..]);
    let number = nvme::number(file)?;
    of_controller(device, &controller);
    let found = nvme::identify(file, number, structure::NAMESPACE, NVM);
    match &found {
        Ok(found) => {
            let has_extended = controller.word(96) & 1 << 15 != 0;
            let of_set = || nvme::identify(file, number, structure::NAMESPACE_OF_SET, NVM).ok();
            let extended = has_extended.then(of_set).flatten();
            of_namespace(device, &Fields(&found[..]), extended.as_deref().map(|bytes| Fields(bytes)));
        }
        Err(error) => device.untold.push(hidden("LBA formats", error)),
    }
    let namespace = Namespace::of(file).ok();
    if let Some(namespace) = &namespace {
        format_in_use(device, namespace);
    }
    if device.section("zones").is_some() {
        let namespace = nvme::identify(file, number, structure::NAMESPACE_OF_SET, ZONED);
        match (namespace, nvme::identify(file, 0, structure::CONTROLLER_OF_SET, ZONED)) {
            (Ok(namespace), Ok(controller)) => {
                of_zones(device, &Fields(&namespace[..]), &Fields(&controller[..]));
            }
            (Err(error), _) | (_, Err(error)) => device.untold.push(hidden("limits of zones", &error)),
        }
    }
    let group = found.as_ref().map_or(0, |found| Fields(&found[..]).half(102) as u16);
    if placement(device, file, number, group, &controller) {
        match nvme::handles(file, number) {
            Ok(handles) => of_handles(device, &handles, namespace.map(|namespace| namespace.format.data)),
            Err(error) => device.untold.push(hidden("placement handles", &error)),
        }
    }
    power(device, &controller);
    match nvme::feature(file, 0, POWER, 0) {
        Ok(value) => device.tell("power", Facts::default().with("state", Some(u64::from(value & 0x1f)))),
        Err(error) => device.untold.push(hidden("the power state", &error)),
    }
    let mut log = [0; 512];
    match nvme::log_page(file, ALL, HEALTH, 0, &mut log) {
        Ok(()) => health(device, &Fields(&log), &controller),
        Err(error) => device.untold.push(hidden("wear and temperature (SMART)", &error)),
    }
    Ok(())
}

/// Names of bits that are set.
fn set(bits: u64, names: &[(u64, &str)]) -> Option<String> {
    let set: Vec<&str> = names.iter().filter(|(bit, _)| bits & bit != 0).map(|&(_, name)| name).collect();
    (!set.is_empty()).then(|| set.join(", "))
}

fn of_controller(device: &mut Device, controller: &Fields<'_>) {
    let version = controller.word(80);
    let version = format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
    let identity = Facts::default()
        .with("model", controller.words(24, 64))
        .with("firmware", controller.words(64, 72))
        .with("serial", controller.words(4, 24))
        .with("nvme", Some(version).filter(|version| version != "0.0.0"))
        .with("pci_vendor", Some(format!("{:04x}", controller.half(0))));
    device.tell("identity", identity);
    let commands = [
        (1, "Compare"),
        (1 << 1, "Write Uncorrectable"),
        (1 << 2, "Dataset Management"),
        (1 << 3, "Write Zeroes"),
        (1 << 5, "Reservations"),
        (1 << 6, "Timestamp"),
        (1 << 7, "Verify"),
        (1 << 8, "Copy"),
    ];
    let largest = match controller.byte(77) {
        0 => Value::from("no limit"),
        power => Value::Number(PAGE << power.min(50)),
    };
    let facts = Facts::default()
        .with("optional", set(controller.half(520), &commands))
        .with("largest_transfer_bytes", Some(largest))
        .with("extended_formats", Some(controller.word(96) & 1 << 15 != 0))
        .with("directives", Some(controller.half(256) & 1 << 5 != 0));
    device.tell("commands", facts);
    let cache = Facts::default().with("volatile_write_cache", Some(controller.byte(525) & 1 != 0));
    device.tell("cache", cache);
    // Blocks, counted from 0.
    let blocks = |place| Some(controller.half(place) + 1);
    let facts = Facts::default()
        .with("controller_blocks", blocks(526))
        .with("controller_blocks_at_power_fail", blocks(528))
        .with("controller_compare_and_write_blocks", blocks(532));
    device.tell("atomic_writes", facts);
}

fn of_namespace(device: &mut Device, namespace: &Fields<'_>, extended: Option<Fields<'_>>) {
    let last = namespace.byte(25) as usize;
    let chosen = namespace.byte(26);
    let upper = if last < 16 { 0 } else { chosen >> 1 & 0x30 };
    let in_use = (chosen & 0xf | upper) as usize;
    let performance = ["best", "better", "good", "degraded"];
    let rows = (0..=last.min(63)).filter_map(|number| {
        let format = namespace.word(128 + 4 * number);
        let (shift, metadata) = (format >> 16 & 0xff, format & 0xffff);
        let more = extended.as_ref().map_or(0, |fields| fields.word(12 + 4 * number));
        let guard = match more >> 7 & 3 {
            1 => "CRC-32",
            2 => "CRC-64",
            _ => "CRC-16",
        };
        let guarded: u64 = if guard == "CRC-16" { 8 } else { 16 };
        // Formats that a device does not support any more have a block size of 0.
        (9..32).contains(&shift).then(|| {
            Facts::default()
                .with("number", Some(number as u64))
                .with("in_use", Some(number == in_use))
                .with("data_bytes", Some(1u64 << shift))
                .with("metadata_bytes", Some(metadata))
                .with("guard", (metadata >= guarded).then_some(guard))
                .with("storage_tag_bits", Some(more & 0x7f).filter(|&bits| bits > 0))
                .with("performance", Some(performance[(format >> 24 & 3) as usize]))
        })
    });
    device.list("formats", rows.collect());
    let block = 1u64 << (namespace.word(128 + 4 * in_use) >> 16 & 0x1f);
    let bytes = |place| Some(namespace.long(place).saturating_mul(block));
    let capacity = Facts::default()
        .with("size_bytes", bytes(0))
        .with("capacity_bytes", bytes(8))
        .with("used_bytes", bytes(16))
        .with("thin", Some(namespace.byte(24) & 1 != 0))
        .with("shared", Some(namespace.byte(30) & 1 != 0))
        .with("write_protected", Some(namespace.byte(99) & 1 != 0));
    device.tell("capacity", capacity);
    let identity = Facts::default()
        .with("nguid", namespace.hexadecimal(104, 120))
        .with("eui64", namespace.hexadecimal(120, 128));
    device.tell("identity", identity);
    let kinds = [(1, "1"), (2, "2"), (4, "3")];
    let protection = Facts::default()
        .with("types", set(namespace.byte(28), &kinds))
        .with("in_first_bytes", Some(namespace.byte(28) & 8 != 0))
        .with("in_last_bytes", Some(namespace.byte(28) & 16 != 0))
        .with("interleaved", Some(namespace.byte(27) & 1 != 0))
        .with("separate", Some(namespace.byte(27) & 2 != 0));
    if namespace.byte(28) & 7 != 0 {
        device.tell("protection_information", protection);
    }
    // Only if the namespace has its own values.
    if namespace.byte(24) & 2 != 0 {
        let facts = Facts::default()
            .with("namespace_blocks", Some(namespace.half(34) + 1))
            .with("namespace_blocks_at_power_fail", Some(namespace.half(36) + 1))
            .with("boundary_blocks", Some(namespace.half(40)).filter(|&size| size > 0).map(|size| size + 1));
        device.tell("atomic_writes", facts);
    }
    if namespace.byte(24) & 16 != 0 {
        let blocks = |place| Some((namespace.half(place) + 1).saturating_mul(block));
        let facts = Facts::default()
            .with("write_granularity_bytes", blocks(64))
            .with("write_alignment_bytes", blocks(66))
            .with("trim_granularity_bytes", blocks(68))
            .with("trim_alignment_bytes", blocks(70))
            .with("write_size_bytes", blocks(72));
        device.tell("preferred_sizes", facts);
    }
    let boundary = Some(namespace.half(46)).filter(|&blocks| blocks > 0).map(|blocks| blocks * block);
    device.tell("queue", Facts::default().with("boundary_of_device_bytes", boundary));
}

fn format_in_use(device: &mut Device, namespace: &Namespace) {
    let format = namespace.format;
    let kind = format.protection.map_or("none".to_owned(), |protection| {
        let guard = match protection.guard {
            nvme::Guard::Crc16 => "CRC-16",
            nvme::Guard::Crc32 => "CRC-32",
            nvme::Guard::Crc64 => "CRC-64",
        };
        let place = if protection.first { "first" } else { "last" };
        format!("type {} with {guard}, in the {place} bytes", protection.kind)
    });
    let metadata = match (format.metadata, format.extended) {
        (0, _) => None,
        (_, true) => Some("interleaved"),
        (_, false) => Some("separate"),
    };
    let facts = Facts::default()
        .with("data_bytes", Some(u64::from(format.data)))
        .with("metadata_bytes", Some(u64::from(format.metadata)))
        .with("metadata", metadata)
        .with("protection_information", Some(kind));
    device.tell("format", facts);
}

fn of_zones(device: &mut Device, namespace: &Fields<'_>, controller: &Fields<'_>) {
    let limit = |value: u64| {
        if value == u64::from(u32::MAX) { Value::from("no limit") } else { Value::Number(value + 1) }
    };
    let append = match controller.byte(0) {
        0 => None,
        power => Some(PAGE << power.min(50)),
    };
    let facts = Facts::default()
        .with("most_active", Some(limit(namespace.word(4))))
        .with("most_open", Some(limit(namespace.word(8))))
        .with("read_across_zones", Some(namespace.half(2) & 1 != 0))
        .with("largest_append_of_device_bytes", append);
    device.tell("zones", facts);
}

/// Flexible Data Placement, and streams. Returns whether Flexible Data Placement is enabled for the namespace.
fn placement(device: &mut Device, file: RawFd, number: u32, group: u16, controller: &Fields<'_>) -> bool {
    let has_fdp = controller.word(96) & 1 << 19 != 0;
    let mut is_enabled = false;
    let mut facts = Facts::default().with("fdp", Some(has_fdp));
    if has_fdp {
        match nvme::feature(file, 0, PLACEMENT, group.into()) {
            Ok(value) => {
                is_enabled = value & 1 != 0;
                facts.add("fdp_enabled", Some(is_enabled));
                facts.add("fdp_configuration", Some(u64::from(value >> 8 & 0xff)));
                let mut log = vec![0; 4096];
                match nvme::log_page(file, 0, PLACEMENT_CONFIGURATIONS, group, &mut log) {
                    Ok(()) => fdp(&mut facts, &log, (value >> 8 & 0xff) as usize),
                    Err(error) => device.untold.push(hidden("configurations of data placement", &error)),
                }
            }
            Err(error) => device.untold.push(hidden("data placement", &error)),
        }
    }
    let has_directives = controller.half(256) & 1 << 5 != 0;
    let mut answer = [0; 32];
    let streams = has_directives && nvme::directive(file, number, STREAMS, &mut answer).is_ok();
    facts.add("streams", Some(streams));
    if streams {
        let fields = Fields(&answer);
        facts.add("most_streams", Some(fields.half(0)));
        facts.add("streams_available", Some(fields.half(2)));
        facts.add("stream_write_blocks", Some(fields.word(16)));
    }
    device.tell("placement", facts);
    is_enabled
}

/// The placement handles of a namespace with blocks of this size; `plids` counts them in this order.
fn of_handles(device: &mut Device, handles: &[Handle], block: Option<u32>) {
    let room = |handle: &Handle| Some(handle.room.saturating_mul(block?.into()));
    let count = handles.len() as u64;
    device.tell("placement", Facts::default().with("handles_of_namespace", Some(count)));
    let rows = handles.iter().zip(0u64..).map(|(handle, place)| {
        Facts::default()
            .with("plid", Some(place))
            .with("identifier", Some(u64::from(handle.identifier)))
            .with("reclaim_unit_handle", Some(u64::from(handle.unit)))
            .with("room_bytes", room(handle))
    });
    device.list("placement_handles", rows.collect());
}

/// The configuration of this number in the log page of all.
fn fdp(facts: &mut Facts, log: &[u8], wanted: usize) {
    let count = Fields(log).half(0) as usize + 1;
    let mut place = 16;
    for _ in 0..wanted.min(count - 1) {
        place += Fields(log).half(place) as usize;
    }
    let Some(bytes) = log.get(place..).filter(|bytes| bytes.len() >= 64) else { return };
    let fields = Fields(bytes);
    let handles = fields.half(8);
    facts.add("reclaim_groups", Some(fields.word(4)));
    facts.add("reclaim_unit_handles", Some(handles));
    facts.add("most_placement_handles", Some(fields.half(10) + 1));
    facts.add("reclaim_unit_bytes", Some(fields.long(16)));
    let kinds = (0..handles as usize).map(|handle| match fields.byte(64 + 4 * handle) {
        1 => "initially isolated",
        2 => "persistently isolated",
        _ => "unknown",
    });
    let mut kinds: Vec<&str> = kinds.collect();
    kinds.dedup();
    facts.add("isolation", (!kinds.is_empty()).then(|| kinds.join(", ")));
}

fn power(device: &mut Device, controller: &Fields<'_>) {
    let last = controller.byte(263) as usize;
    let rows = (0..=last.min(31)).map(|state| {
        let fields = Fields(&controller.0[2048 + 32 * state..2080 + 32 * state]);
        // Hundredths of a watt, or ten thousandths.
        let unit = if fields.byte(3) & 1 != 0 { 10_000.0 } else { 100.0 };
        let power = fields.half(0);
        Facts::default()
            .with("state", Some(state as u64))
            .with("most_watts", (power > 0).then(|| power as f64 / unit))
            .with("operational", Some(fields.byte(3) & 2 == 0))
            .with("entry_us", Some(fields.word(4)))
            .with("exit_us", Some(fields.word(8)))
    });
    device.list("power_states", rows.collect());
}

fn health(device: &mut Device, log: &Fields<'_>, controller: &Fields<'_>) {
    let warnings = [
        (1, "spare is low"),
        (2, "temperature"),
        (4, "reliability is degraded"),
        (8, "read-only"),
        (16, "backup of memory has failed"),
        (32, "persistent memory is unreliable"),
    ];
    let celsius = |kelvin: u64| (kelvin > 273).then(|| kelvin - 273);
    // Thousands of 512 bytes.
    let bytes = |place| Some(log.long(place).saturating_mul(512_000));
    let facts = Facts::default()
        .with("warnings", Some(set(log.byte(0), &warnings).unwrap_or_else(|| "none".to_owned())))
        .with("temperature_celsius", celsius(log.half(1)))
        .with("warning_temperature_celsius", celsius(controller.half(266)))
        .with("critical_temperature_celsius", celsius(controller.half(268)))
        .with("wear_percent", Some(log.byte(5)))
        .with("spare_percent", Some(log.byte(3)))
        .with("spare_threshold_percent", Some(log.byte(4)))
        .with("read_bytes", bytes(32))
        .with("written_bytes", bytes(48))
        .with("reads", Some(log.long(64)))
        .with("writes", Some(log.long(80)))
        .with("busy_minutes", Some(log.long(96)))
        .with("power_cycles", Some(log.long(112)))
        .with("power_on_hours", Some(log.long(128)))
        .with("unsafe_shutdowns", Some(log.long(144)))
        .with("media_errors", Some(log.long(160)))
        .with("error_log_entries", Some(log.long(176)));
    device.tell("health", facts);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(length: usize, bytes: &[(usize, &[u8])]) -> Vec<u8> {
        let mut all = vec![0; length];
        bytes.iter().for_each(|(place, bytes)| all[*place..place + bytes.len()].copy_from_slice(bytes));
        all
    }

    #[test]
    fn a_controller() {
        let bytes = structure(
            4096,
            &[
                (0, &[0x36, 0x1b]),
                (4, b"serial  "),
                (24, b"A model   "),
                (64, b"1.0 "),
                (77, &[5]),
                (80, &[0, 4, 1, 0]),
                (520, &[0x8c, 0]),
                (525, &[1]),
                (526, &[7, 0, 0, 0]),
            ],
        );
        let mut device = Device::default();
        of_controller(&mut device, &Fields(&bytes));
        let text = |section, name| device.fact(section, name).map(Value::text).unwrap_or_default();
        assert_eq!(text("identity", "model"), "A model");
        assert_eq!([text("identity", "serial"), text("identity", "nvme")], ["serial", "1.4.0"]);
        assert_eq!(text("commands", "optional"), "Dataset Management, Write Zeroes, Verify");
        assert_eq!(text("commands", "largest_transfer_bytes"), "131072");
        assert_eq!(text("cache", "volatile_write_cache"), "yes");
        assert_eq!(text("atomic_writes", "controller_blocks"), "8");
    }

    #[test]
    fn a_namespace_with_two_formats() {
        let bytes = structure(
            4096,
            &[
                (0, &[0, 1]),
                (8, &[0, 1]),
                (16, &[16]),
                (24, &[2 + 16]),
                (25, &[1]),
                (26, &[1]),
                (27, &[3]),
                (28, &[0x1b]),
                (34, &[15, 0]),
                (46, &[32, 0]),
                (64, &[7, 0]),
                (120, &[1, 2, 3, 4, 5, 6, 7, 8]),
                (128, &[0, 0, 9, 2, 16, 0, 12, 0]),
            ],
        );
        let extended = structure(4096, &[(16, &[0, 1])]);
        let mut device = Device::default();
        of_namespace(&mut device, &Fields(&bytes), Some(Fields(&extended)));
        let formats = &device.section("formats").unwrap().rows;
        let row =
            |number: usize| -> Vec<String> { formats[number].iter().map(|fact| fact.value.text()).collect() };
        assert_eq!(row(0), ["0", "no", "512", "0", "good"]);
        assert_eq!(row(1), ["1", "yes", "4096", "16", "CRC-64", "best"]);
        assert_eq!(device.number("capacity", "size_bytes"), Some(1 << 20));
        assert_eq!(device.number("capacity", "used_bytes"), Some(64 << 10));
        assert_eq!(device.fact("protection_information", "types"), Some(&"1, 2".into()));
        assert_eq!(device.number("atomic_writes", "namespace_blocks"), Some(16));
        assert_eq!(device.number("preferred_sizes", "write_granularity_bytes"), Some(32 << 10));
        assert_eq!(device.number("queue", "boundary_of_device_bytes"), Some(128 << 10));
        assert_eq!(device.fact("identity", "eui64"), Some(&"0102030405060708".into()));
    }

    #[test]
    fn zones_placement_power_and_health() {
        let mut device = Device::default();
        let namespace = structure(4096, &[(2, &[1]), (4, &[5, 0, 0, 0, 255, 255, 255, 255])]);
        of_zones(&mut device, &Fields(&namespace), &Fields(&structure(4096, &[(0, &[3])])));
        assert_eq!(device.number("zones", "most_active"), Some(6));
        assert_eq!(device.fact("zones", "most_open"), Some(&"no limit".into()));
        assert_eq!(device.number("zones", "largest_append_of_device_bytes"), Some(32 << 10));

        let mut facts = Facts::default();
        // Two configurations, of which the second is in use: 4 handles, units of 8 MiB.
        let log = structure(
            512,
            &[
                (0, &[1, 0]),
                (16, &[64, 0]),
                (80, &[80, 0, 0x80, 0, 1, 0, 0, 0, 4, 0, 7, 0]),
                (96, &[0, 0, 0x80, 0]),
                (144, &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]),
            ],
        );
        fdp(&mut facts, &log, 1);
        device.tell("placement", facts);
        assert_eq!(device.number("placement", "reclaim_unit_handles"), Some(4));
        assert_eq!(device.number("placement", "most_placement_handles"), Some(8));
        assert_eq!(device.number("placement", "reclaim_unit_bytes"), Some(8 << 20));
        assert_eq!(device.fact("placement", "isolation"), Some(&"initially isolated".into()));
        let handle = |identifier, unit, room| Handle { identifier, unit, room };
        of_handles(&mut device, &[handle(0, 2, 2048), handle(7, 0, 3)], Some(4096));
        assert_eq!(device.number("placement", "handles_of_namespace"), Some(2), "of the 8 that there can be");
        let handles = &device.section("placement_handles").unwrap().rows;
        let row =
            |number: usize| -> Vec<String> { handles[number].iter().map(|fact| fact.value.text()).collect() };
        assert_eq!([row(0), row(1)], [["0", "0", "2", "8388608"], ["1", "7", "0", "12288"]]);

        let controller = structure(
            4096,
            &[(263, &[1]), (266, &[0x57, 1]), (2048, &[0xc4, 9]), (2080, &[0xc4, 9, 0, 3, 10, 0, 0, 0, 20])],
        );
        power(&mut device, &Fields(&controller));
        let states = &device.section("power_states").unwrap().rows;
        let row =
            |number: usize| -> Vec<String> { states[number].iter().map(|fact| fact.value.text()).collect() };
        assert_eq!(row(0), ["0", "25", "yes", "0", "0"]);
        assert_eq!(row(1), ["1", "0.25", "no", "10", "20"]);

        let log = structure(512, &[(0, &[5, 0x43, 1, 100, 10, 3]), (48, &[2]), (112, &[9])]);
        health(&mut device, &Fields(&log), &Fields(&controller));
        assert_eq!(device.fact("health", "warnings"), Some(&"spare is low, reliability is degraded".into()));
        assert_eq!(device.number("health", "temperature_celsius"), Some(50));
        assert_eq!(device.number("health", "warning_temperature_celsius"), Some(70));
        assert_eq!(
            (device.number("health", "wear_percent"), device.number("health", "written_bytes")),
            (Some(3), Some(1_024_000))
        );
    }

    #[test]
    fn structures_that_end_early_have_zeros() {
        assert_eq!(Fields(&[1, 2]).word(0), 0);
        let mut facts = Facts::default();
        fdp(&mut facts, &[9, 0], 3);
        assert!(facts.0.is_empty());
    }
}
