//! `--profile=act`: the load of the Aerospike Certification Tool on flash devices: small random reads at a fixed
//! rate, and the large writes by which a database moves records together. `prep` first fills the devices with zeros,
//! then with random data.

use super::{Profile, Wishes, section};
use crate::definition::{Definition, Kind};
use crate::section::Section;

static DEVICES: Definition =
    Definition::profile("device-names", Kind::Str, "Devices to use, separated by commas");
static LOAD: Definition = Definition::profile("load", Kind::Int, "ACT load multiplier").default("1").min(1);
static DURATION: Definition =
    Definition::profile("test-duration", Kind::Time, "How long the entire test takes to run").default("24h");
static THREADS: Definition =
    Definition::profile("threads-per-queue", Kind::Int, "Number of read I/O threads per device")
        .default("8")
        .min(1);
static READ_BLOCKS: Definition =
    Definition::profile("read-req-num-512-blocks", Kind::Int, "Number of 512B blocks to read at the time")
        .default("3")
        .min(1);
static LARGE_BLOCK: Definition =
    Definition::profile("large-block-op-kbytes", Kind::Int, "Size of large block ops in KiB (writes)")
        .default("128")
        .min(1);
static PREP: Definition = Definition::profile("prep", Kind::Flag, "Set to run the ACT prep phase");

pub(super) const PROFILE: Profile = Profile {
    name: "act",
    help: "The load of the Aerospike Certification Tool: small reads at a rate beside large writes",
    options: &[&DEVICES, &LOAD, &DURATION, &THREADS, &READ_BLOCKS, &LARGE_BLOCK, &PREP],
    jobs,
};

/// Reads per second and device at load 1; updates are half as many.
const READS: u64 = 2000;
const UPDATES: u64 = READS / 2;

fn jobs(wishes: &Wishes<'_>) -> Result<Vec<Section>, String> {
    let devices: Vec<&str> = wishes.text(&DEVICES).map(|text| text.split(',').collect()).unwrap_or_default();
    if devices.is_empty() {
        return Err("you need to set I/O target(s) with --device-names".to_owned());
    }
    let prepares = wishes.number(&PREP).is_some_and(|wish| wish != 0);
    let seconds = format!("{}s", wishes.seconds(&DURATION).unwrap_or(24 * 3600));
    let mut defaults = vec![
        ("direct", "1"),
        ("ioengine", "sync"),
        ("random_generator", "lfsr"),
        ("group_reporting", "1"),
        ("thread", ""),
    ];
    if !prepares {
        defaults.extend([("runtime", seconds.as_str()), ("time_based", "1")]);
    }
    let mut sections = vec![section("", &defaults)];
    for device in devices {
        sections.extend(if prepares { preparation(device) } else { load(wishes, device) });
    }
    Ok(sections)
}

fn preparation(device: &str) -> [Section; 2] {
    let zeros = [("filename", device), ("bs", "1048576"), ("zero_buffers", ""), ("rw", "write")];
    let salt = [
        ("stonewall", ""),
        ("filename", device),
        ("bs", "4096"),
        ("ioengine", "libaio"),
        ("iodepth", "64"),
        ("rw", "randwrite"),
    ];
    [
        section(&format!("act-prep-zeroes-{device}"), &zeros),
        section(&format!("act-prep-salt-{device}"), &salt),
    ]
}

fn load(wishes: &Wishes<'_>, device: &str) -> [Section; 2] {
    let load = wishes.number(&LOAD).unwrap_or(1);
    let threads = wishes.number(&THREADS).unwrap_or(8);
    let record = wishes.number(&READ_BLOCKS).unwrap_or(3) * 512;
    let large = wishes.number(&LARGE_BLOCK).unwrap_or(128) << 10;
    let reads = (READS.saturating_mul(load) / threads).to_string();
    // The number of large writes that hold the updated records.
    let writes = UPDATES.saturating_mul(load).saturating_mul(record).div_ceil(large).to_string();
    let (threads, record, large) = (threads.to_string(), record.to_string(), large.to_string());
    [
        section(
            &format!("act-read-{device}"),
            &[
                ("filename", device),
                ("rw", "randread"),
                ("numjobs", &threads),
                ("rate_iops", &reads),
                ("bs", &record),
            ],
        ),
        section(
            &format!("act-write-{device}"),
            &[("filename", device), ("rw", "randwrite"), ("rate_iops", &writes), ("bs", &large)],
        ),
    ]
}
