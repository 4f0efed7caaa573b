//! The facts about a block device in sysfs (Linux: Documentation/ABI/stable/sysfs-block).

use super::{Device, Facts, Value};
use std::fs;
use std::path::Path;

/// The type of an attribute.
#[derive(Clone, Copy)]
enum Is {
    /// A number, to be multiplied by this.
    Number(u64),
    /// 0 or 1.
    Switch,
    Text,
}

/// Attributes of the queue: the file, our name, and the type. A zero is left out if it means that there is no such
/// limit ([`ABSENT_IF_ZERO`]).
const QUEUE: [(&str, &str, Is); 30] = [
    ("logical_block_size", "logical_block_bytes", Is::Number(1)),
    ("physical_block_size", "physical_block_bytes", Is::Number(1)),
    ("minimum_io_size", "minimum_io_bytes", Is::Number(1)),
    ("optimal_io_size", "optimal_io_bytes", Is::Number(1)),
    ("max_sectors_kb", "largest_request_bytes", Is::Number(1024)),
    ("max_hw_sectors_kb", "largest_request_of_hardware_bytes", Is::Number(1024)),
    ("max_segments", "segments", Is::Number(1)),
    ("max_segment_size", "largest_segment_bytes", Is::Number(1)),
    ("chunk_sectors", "boundary_bytes", Is::Number(512)),
    ("dma_alignment", "memory_alignment_mask", Is::Number(1)),
    ("virt_boundary_mask", "memory_boundary_mask", Is::Number(1)),
    ("nr_requests", "requests", Is::Number(1)),
    ("rotational", "rotational", Is::Switch),
    ("read_ahead_kb", "read_ahead_bytes", Is::Number(1024)),
    ("io_poll", "polled", Is::Switch),
    ("wbt_lat_usec", "writeback_throttling_us", Is::Number(1)),
    ("nomerges", "merges_switched_off", Is::Number(1)),
    ("rq_affinity", "completion_affinity", Is::Number(1)),
    ("iostats", "statistics", Is::Switch),
    ("add_random", "feeds_random", Is::Switch),
    ("stable_writes", "stable_writes", Is::Switch),
    ("dax", "dax", Is::Switch),
    ("discard_granularity", "trim_granularity_bytes", Is::Number(1)),
    ("discard_max_bytes", "largest_trim_bytes", Is::Number(1)),
    ("max_discard_segments", "trim_ranges", Is::Number(1)),
    ("write_zeroes_max_bytes", "largest_write_zeroes_bytes", Is::Number(1)),
    ("max_write_streams", "write_streams", Is::Number(1)),
    ("write_stream_granularity", "write_stream_granularity_bytes", Is::Number(1)),
    ("io_timeout", "timeout_ms", Is::Number(1)),
    ("zoned", "zone_model", Is::Text),
];

/// For these, 0 means that the feature is absent.
const ABSENT_IF_ZERO: [&str; 6] = [
    "optimal_io_bytes",
    "boundary_bytes",
    "memory_boundary_mask",
    "write_streams",
    "write_stream_granularity_bytes",
    "trim_granularity_bytes",
];

pub(super) fn text(directory: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(directory.join(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

pub(super) fn number(directory: &Path, name: &str) -> Option<u64> {
    text(directory, name)?.parse().ok()
}

pub(super) fn switch(directory: &Path, name: &str) -> Option<bool> {
    number(directory, name).map(|value| value != 0)
}

fn attribute(directory: &Path, (file, name, is): (&str, &'static str, Is)) -> Option<Value> {
    match is {
        Is::Text => text(directory, file).map(Value::Text),
        Is::Switch => switch(directory, file).map(Value::Is),
        Is::Number(unit) => {
            let value = number(directory, file)?.saturating_mul(unit);
            (value > 0 || !ABSENT_IF_ZERO.contains(&name)).then_some(Value::Number(value))
        }
    }
}

/// Adds the facts that every block device has: size, queue, scheduler, cache, zones, atomic writes.
pub(super) fn tell(device: &mut Device, directory: &Path) {
    let queue = &directory.join("queue");
    let size = number(directory, "size").map(|sectors| sectors.saturating_mul(512));
    let facts = Facts::default()
        .with("size_bytes", size)
        .with("read_only", switch(directory, "ro"))
        .with("removable", switch(directory, "removable"));
    device.tell("capacity", facts);

    let mut facts = Facts::default();
    for (file, name, is) in QUEUE {
        facts.add(name, attribute(queue, (file, name, is)));
    }
    let scheduler = crate::Scheduler::read(directory);
    facts.add("scheduler", scheduler.as_ref().and_then(|scheduler| scheduler.chosen.clone()));
    facts.add("schedulers", scheduler.map(|scheduler| scheduler.known.join(", ")));
    let queues = fs::read_dir(directory.join("mq")).ok().map(|entries| entries.flatten().count() as u64);
    facts.add("queues", queues.filter(|&count| count > 0));
    facts.add("depth_of_device", number(directory, "device/queue_depth"));
    device.tell("queue", facts);

    let facts =
        Facts::default().with("write_cache", text(queue, "write_cache")).with("fua", switch(queue, "fua"));
    device.tell("cache", facts);
    zones(device, queue);
    atomic_writes(device, queue);
    integrity(device, directory);
}

fn zones(device: &mut Device, queue: &Path) {
    let model = text(queue, "zoned").filter(|model| model != "none");
    if model.is_none() {
        return;
    }
    let bytes = |name| number(queue, name);
    let limit = |name| match number(queue, name)? {
        0 => Some(Value::from("no limit")),
        number => Some(Value::Number(number)),
    };
    let facts = Facts::default()
        .with("model", model)
        .with("zone_bytes", bytes("chunk_sectors").map(|sectors| sectors.saturating_mul(512)))
        .with("zones", bytes("nr_zones"))
        .with("most_open", limit("max_open_zones"))
        .with("most_active", limit("max_active_zones"))
        .with("largest_append_bytes", bytes("zone_append_max_bytes"))
        .with("write_granularity_bytes", bytes("zone_write_granularity"));
    device.tell("zones", facts);
}

fn atomic_writes(device: &mut Device, queue: &Path) {
    let names = [
        ("atomic_write_unit_min_bytes", "smallest_bytes"),
        ("atomic_write_unit_max_bytes", "largest_bytes"),
        ("atomic_write_max_bytes", "largest_merged_bytes"),
        ("atomic_write_boundary_bytes", "boundary_bytes"),
    ];
    // Zeros mean that atomic writes are not supported.
    if number(queue, "atomic_write_unit_max_bytes").is_some_and(|most| most > 0) {
        let mut facts = Facts::default();
        names.into_iter().for_each(|(file, name)| facts.add(name, number(queue, file)));
        device.tell("atomic_writes", facts);
    }
}

/// The block layer's handling of protection information.
fn integrity(device: &mut Device, directory: &Path) {
    let integrity = &directory.join("integrity");
    let format = text(integrity, "format").filter(|format| format != "none");
    if format.is_some() {
        let facts = Facts::default()
            .with("format", format)
            .with("tag_bytes", number(integrity, "tag_size"))
            .with("interval_bytes", number(integrity, "protection_interval_bytes"))
            .with("made_by_kernel", switch(integrity, "write_generate"))
            .with("checked_by_kernel", switch(integrity, "read_verify"));
        device.tell("integrity", facts);
    }
}

/// The temperature that a driver reports to all users, in degrees Celsius.
pub(super) fn temperature(directory: &Path) -> Option<u64> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_sensor = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hwmon"))
    };
    let places = entries(directory).filter(is_sensor);
    // Some drivers put their sensors into a directory `hwmon`, others into the device's own directory.
    let sensors =
        places.flat_map(|place| [place.clone()].into_iter().chain(entries(&place)).collect::<Vec<_>>());
    sensors.filter_map(|sensor| number(&sensor, "temp1_input")).next().map(|thousandths| thousandths / 1000)
}
