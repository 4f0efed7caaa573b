//! A job for each feature of a device, within the device's limits.

use iolite_host::{Device, DeviceClass, Found, Value};
use iolite_options::engines::{Capability, CommandType, Facets, IoUringCmdOptions, Target, chosen, engine};
use std::path::Path;

/// The run time of each job: long enough for a first impression, and short enough to try.
const RUNTIME: &str = "10s";

/// The most bytes that are written and verified.
const SIZE: u64 = 64 << 20;

/// A job that tries a feature.
pub(super) struct Job {
    /// The feature that it tries.
    pub ability: &'static str,
    /// Whether data is lost.
    pub changes_data: bool,
    name: &'static str,
    options: Vec<(&'static str, String)>,
}

impl Job {
    /// The job as a section of a job file.
    pub fn text(&self) -> String {
        let options = self.options.iter().map(|(name, value)| {
            if value.is_empty() { format!("{name}\n") } else { format!("{name}={value}\n") }
        });
        format!("; {}\n[{}]\n{}", self.ability, self.name, options.collect::<String>())
    }
}

/// All jobs as a job file, in which jobs that change data are commented out.
pub(super) fn file(jobs: &[Job]) -> String {
    let commented = |job: &Job| {
        let text = job.text();
        if job.changes_data {
            text.lines().map(|line| format!("; {}\n", line.trim_start_matches("; "))).collect()
        } else {
            text
        }
    };
    jobs.iter().map(commented).collect::<Vec<String>>().join("\n")
}

/// Makes the jobs for a device.
struct Maker<'a> {
    device: &'a Device,
    filename: String,
    engine: &'static str,
    /// The device is a node of the block layer's generic driver.
    is_bsg: bool,
    jobs: Vec<Job>,
}

impl Maker<'_> {
    fn add(
        &mut self,
        ability: &'static str,
        name: &'static str,
        changes_data: bool,
        own: Vec<(&'static str, String)>,
    ) {
        let mut options = vec![("filename", self.filename.clone()), ("ioengine", self.engine.to_owned())];
        if self.takes_any_file() {
            options.push(("direct", "1".to_owned()));
        }
        if self.takes(Target::Bsg) {
            options.push(("cmd_type", "bsg".to_owned()));
        }
        options.extend(own);
        self.add_room(&mut options);
        let is_bounded = options.iter().any(|(name, _)| *name == "size");
        if !is_bounded {
            options.extend([("time_based", String::new()), ("runtime", RUNTIME.to_owned())]);
        }
        options.push(("stonewall", String::new()));
        self.jobs.push(Job { ability, changes_data, name, options });
    }

    /// Adds room for metadata that is transferred in a separate buffer.
    fn add_room(&self, options: &mut Vec<(&'static str, String)>) {
        let Passed { block, apart, .. } = Passed::of(self.device);
        let size = options.iter().find_map(|(name, value)| (*name == "bs").then(|| value.parse::<u64>()));
        if let Some(Ok(size)) = size
            && self.takes(Target::Nvme)
            && apart > 0
        {
            options.push(("md_per_io_size", (size / block * apart).to_string()));
        }
    }

    fn facets(&self) -> Option<Facets> {
        let mut own = (engine(self.engine)?.own)();
        if let Some(own) = own.of_mut::<IoUringCmdOptions>().filter(|_| self.is_bsg) {
            own.cmd_type = CommandType::Bsg;
        }
        chosen(self.engine, &own).map(|engine| engine.facets)
    }

    /// Whether the engine works only on such a device.
    fn takes(&self, target: Target) -> bool {
        self.facets().is_some_and(|facets| facets.target == target)
    }

    /// Whether the engine goes through the block layer.
    fn takes_any_file(&self) -> bool {
        self.takes(Target::Any)
    }

    fn can(&self, capability: Capability) -> bool {
        self.facets().is_some_and(|facets| facets.can(capability))
    }

    fn number(&self, section: &str, name: &str) -> Option<u64> {
        self.device.number(section, name)
    }

    fn says(&self, section: &str, name: &str) -> bool {
        self.device.fact(section, name) == Some(&Value::Is(true))
    }
}

/// The jobs for the device behind a path. `path` is the one that was given.
pub(super) fn of(path: &Path, found: &Found) -> Vec<Job> {
    let Some(path) = path.to_str().filter(|_| can_be_named(path)) else { return Vec::new() };
    let device = &found.device;
    let is_file = found.what == "file";
    let is_passed = found.what == "character device";
    let is_bsg = found.class == Some(DeviceClass::ScsiBsg);
    let engine = match device.kind {
        _ if is_bsg => "io_uring_cmd",
        "NVMe namespace" if is_passed => "io_uring_cmd",
        "SCSI disk" | "ATA disk" | "SCSI device" if is_passed => "sg",
        "flash (MTD)" => "mtd",
        "persistent memory (DAX)" => "dev-dax",
        _ => "io_uring",
    };
    // A colon would begin another name.
    let mut maker = Maker { device, filename: path.replace(':', "\\:"), engine, is_bsg, jobs: Vec::new() };
    if device.number("capacity", "size_bytes") == Some(0) {
        return Vec::new();
    }
    let block = block(device, is_passed);
    maker.reads(block);
    if !is_file && !maker.says("capacity", "read_only") {
        maker.writes(block);
        maker.zones(block, ["zone-writes", "zones-at-random"]);
    }
    if !is_file && device.kind == "NVMe namespace" {
        maker.passthrough(path);
    }
    maker.jobs
}

/// Whether a job file can name this file: a line break would begin another option, `;` and `#` a comment, and `$` a
/// variable.
pub(in crate::subcommands) fn can_be_named(path: &Path) -> bool {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '$' | ';' | '#' | '"' | '\\');
    path.to_str().is_some_and(|path| path.chars().all(is_plain) && path.trim() == path)
}

/// The smallest block that jobs may have.
fn block(device: &Device, is_passed: bool) -> u64 {
    let number = |section, name| device.number(section, name).unwrap_or(0);
    let of_flash =
        number("flash", "page_bytes").max(number("persistent_memory", "alignment_bytes").min(4096));
    if is_passed && device.kind == "NVMe namespace" {
        return Passed::of(device).block;
    }
    number("queue", "logical_block_bytes").max(of_flash).max(512)
}

/// The part of a block that commands transfer while the device generates the protection information.
struct Passed {
    /// Bytes in the buffer.
    block: u64,
    /// Bytes of metadata in a separate buffer.
    apart: u64,
    is_protected: bool,
}

impl Passed {
    fn of(device: &Device) -> Passed {
        let number = |name| device.number("format", name).unwrap_or(0);
        let words = |name| device.fact("format", name).map(Value::text).unwrap_or_default();
        let (data, metadata) = (number("data_bytes").max(512), number("metadata_bytes"));
        let protection = words("protection_information");
        let is_protected = protection.starts_with("type");
        let information = if protection.contains("CRC-16") { 8 } else { 16 };
        // If the metadata has no other content, the device strips it.
        let metadata = if is_protected && metadata == information { 0 } else { metadata };
        match words("metadata").as_str() {
            "interleaved" => Passed { block: data + metadata, apart: 0, is_protected },
            _ => Passed { block: data, apart: metadata, is_protected },
        }
    }
}

impl Maker<'_> {
    fn reads(&mut self, block: u64) {
        let depth = match self.number("queue", "requests").unwrap_or(32) {
            _ if self.takes(Target::Scsi) || self.facets().is_none_or(|facets| facets.is_synchronous()) => 1,
            requests => requests.clamp(1, 32),
        };
        let own = |rw: &str, bs: u64, depth: u64| {
            vec![("rw", rw.to_owned()), ("bs", bs.to_string()), ("iodepth", depth.to_string())]
        };
        self.add(
            "random reads at depth",
            "random-reads",
            false,
            own("randread", at_least(4096, block), depth),
        );
        self.add(
            "reads in sequence",
            "sequential-reads",
            false,
            own("read", self.large(block), depth.min(8)),
        );
        if self.says("queue", "polled") && self.takes_any_file() {
            let mut polled = own("randread", at_least(4096, block), 1);
            polled.push(("hipri", String::new()));
            self.add("completions that are polled for", "polled-reads", false, polled);
        }
    }

    /// A large block that the device accepts as one request.
    fn large(&self, block: u64) -> u64 {
        let most = self.number("queue", "largest_request_bytes").unwrap_or(1 << 17).clamp(block, 1 << 20);
        most - most % block
    }

    fn writes(&mut self, block: u64) {
        if self.device.section("zones").is_some() {
            return;
        }
        let small = at_least(4096, block).to_string();
        let write = |more: Vec<(&'static str, String)>| {
            [vec![("rw", "randwrite".to_owned()), ("bs", small.clone())], more].concat()
        };
        self.add(
            "random writes, verified afterwards",
            "verified-writes",
            true,
            write(vec![
                ("size", self.number("capacity", "size_bytes").unwrap_or(SIZE).min(SIZE).to_string()),
                ("verify", "crc32c".to_owned()),
            ]),
        );
        let cache = self.device.fact("cache", "write_cache").map(Value::text);
        if cache.as_deref() == Some("write back") || self.says("cache", "volatile_write_cache") {
            self.add(
                "writes that survive a loss of power: the cache is flushed after each",
                "durable-writes",
                true,
                write(vec![("fdatasync", "1".to_owned())]),
            );
        }
        if self.number("queue", "largest_trim_bytes").is_some_and(|most| most > 0)
            && !self.takes(Target::Scsi)
        {
            let unit = self.number("queue", "trim_granularity_bytes").unwrap_or(0).max(64 << 10);
            let unit = at_least(unit, block);
            let trims = vec![("rw", "randtrim".to_owned()), ("bs", unit.to_string())];
            self.add("trims", "trims", true, trims);
        }
        if let Some(most) =
            self.number("atomic_writes", "largest_bytes").filter(|_| self.can(Capability::AtomicWrites))
        {
            let own =
                vec![("rw", "randwrite".to_owned()), ("bs", most.to_string()), ("atomic", "1".to_owned())];
            self.add("writes that are stored as a whole or not at all", "atomic-writes", true, own);
        }
    }

    /// Writes to zones, by the block layer or by commands, under these names.
    fn zones(&mut self, block: u64, [in_sequence, at_random]: [&'static str; 2]) {
        if !self.knows_zones() {
            return;
        }
        let (write, random) = (self.in_zones("write", block), self.in_zones("randwrite", block));
        self.add("writes to zones in sequence", in_sequence, true, write);
        self.add("writes to several open zones at random", at_random, true, random);
    }

    /// Whether jobs of this engine can have `zonemode=zbd` here.
    fn knows_zones(&self) -> bool {
        let format = |name| self.number("format", name);
        // (Zones do not count metadata between the blocks.)
        let by_commands = || format("data_bytes").is_none_or(|data| data == Passed::of(self.device).block);
        let has_them = self.device.section("zones").is_some();
        has_them && (self.takes_any_file() || self.takes(Target::Nvme) && by_commands())
    }

    fn in_zones(&self, rw: &str, block: u64) -> Vec<(&'static str, String)> {
        let mut own = vec![
            ("zonemode", "zbd".to_owned()),
            ("rw", rw.to_owned()),
            ("bs", at_least(4096, block).to_string()),
            ("size", "4z".to_owned()),
        ];
        if let Some(most) = self.number("zones", "most_open") {
            own.push(("max_open_zones", most.to_string()));
        }
        own
    }

    /// Zone Append at depth, in blocks that one command takes.
    fn appends(&mut self, block: u64) {
        // (Metadata is not appended.)
        if !self.knows_zones() || self.number("format", "metadata_bytes").unwrap_or(0) > 0 {
            return;
        }
        let limits = [
            ("zones", "largest_append_of_device_bytes"),
            ("zones", "largest_append_bytes"),
            ("commands", "largest_transfer_bytes"),
        ];
        let limits = limits.into_iter().filter_map(|(section, name)| self.number(section, name));
        let most = limits.filter(|&bytes| bytes > 0).min().unwrap_or(4096).min(64 << 10);
        let mut own = self.in_zones("write", most.max(block) / block * block);
        own.extend([("write_mode", "append".to_owned()), ("iodepth", "8".to_owned())]);
        self.add(
            "writes at depth to one zone, which the device places (Zone Append)",
            "zone-appends",
            true,
            own,
        );
    }

    /// The device by commands.
    fn passthrough(&mut self, path: &str) {
        let Passed { block, is_protected, .. } = Passed::of(self.device);
        let bs = at_least(4096, block);
        if !self.takes(Target::Nvme) {
            let Some(generic) = generic(path) else { return };
            self.filename = generic;
            self.engine = "io_uring_cmd";
            let read =
                vec![("rw", "randread".to_owned()), ("bs", bs.to_string()), ("iodepth", "32".to_owned())];
            self.add("NVMe commands passed through, past the block layer", "passed-reads", false, read);
            if !self.says("capacity", "read_only") {
                self.zones(block, ["passed-zone-writes", "passed-zones-at-random"]);
            }
        }
        if self.says("capacity", "read_only") {
            return;
        }
        if self.device.section("zones").is_some() {
            self.appends(block);
            return;
        }
        let write = |more: &[(&'static str, &str)]| {
            let mut own = vec![("rw", "write".to_owned()), ("bs", bs.to_string())];
            own.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            own
        };
        if is_protected {
            let own = write(&[("pi_act", "1"), ("pi_chk", "GUARD,APPTAG,REFTAG")]);
            self.add("protection information, made and checked by the device", "protected-writes", true, own);
        }
        if self.says("placement", "fdp_enabled") {
            let own = write(&[("dataplacement", "fdp")]);
            self.add("writes to all placement handles in turn", "placed-writes", true, own);
        }
        let optional = self.device.fact("commands", "optional").map(Value::text).unwrap_or_default();
        if optional.split(", ").any(|command| command == "Write Zeroes") {
            let own = write(&[("write_mode", "zeroes")]);
            self.add("zeroes without a transfer", "write-zeroes", true, own);
        }
    }
}

/// A multiple of the block, of at least this many bytes.
fn at_least(bytes: u64, block: u64) -> u64 {
    bytes.div_ceil(block) * block
}

/// The generic device of a namespace's node, if it exists: /dev/ng0n1 of /dev/nvme0n1.
fn generic(path: &str) -> Option<String> {
    let path = Path::new(path).canonicalize().ok()?;
    let number = path.file_name()?.to_str()?.strip_prefix("nvme")?;
    let generic = path.with_file_name(format!("ng{number}"));
    generic.exists().then(|| generic.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Fact, Section};

    fn device(kind: &'static str, sections: &[(&'static str, &[(&'static str, Value)])]) -> Found {
        let sections = sections.iter().map(|(name, facts)| Section {
            name,
            is_list: false,
            rows: vec![facts.iter().map(|(name, value)| Fact { name, value: value.clone() }).collect()],
        });
        let device = Device { name: "d".into(), kind, sections: sections.collect(), ..Device::default() };
        Found { what: "block device", class: None, file_system: None, partition: None, device }
    }

    fn names(jobs: &[Job]) -> Vec<&str> {
        jobs.iter().map(|job| job.name).collect()
    }

    #[test]
    fn each_ability_has_a_job() {
        let disk = device(
            "block device",
            &[
                (
                    "queue",
                    &[
                        ("logical_block_bytes", Value::Number(4096)),
                        ("largest_trim_bytes", Value::Number(1 << 30)),
                        ("largest_request_bytes", Value::Number(128 << 10)),
                        ("polled", Value::Is(true)),
                    ],
                ),
                ("cache", &[("write_cache", Value::Text("write back".into()))]),
                ("atomic_writes", &[("largest_bytes", Value::Number(65536))]),
            ],
        );
        let jobs = of(Path::new("/dev/a:b"), &disk);
        let expected = [
            "random-reads",
            "sequential-reads",
            "polled-reads",
            "verified-writes",
            "durable-writes",
            "trims",
            "atomic-writes",
        ];
        assert_eq!(names(&jobs), expected);
        let text = file(&jobs);
        assert!(text.contains("filename=/dev/a\\:b\n") && text.contains("; [trims]\n"), "{text}");
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(
            sections,
            ["[random-reads]", "[sequential-reads]", "[polled-reads]"],
            "only those that read"
        );
    }

    #[test]
    fn jobs_for_a_node_of_bsg_send_scsi_commands() {
        let mut disk = device("SCSI disk", &[("queue", &[("logical_block_bytes", Value::Number(512))])]);
        (disk.what, disk.class) = ("character device", Some(DeviceClass::ScsiBsg));
        let jobs = of(Path::new("/dev/bsg/0:0:0:0"), &disk);
        assert_eq!(names(&jobs)[..2], ["random-reads", "sequential-reads"]);
        for job in &jobs {
            let text = job.text();
            let expected = "filename=/dev/bsg/0\\:0\\:0\\:0\nioengine=io_uring_cmd\ncmd_type=bsg\n";
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn device_names_with_special_characters_have_no_jobs() {
        let disk = device("block device", &[]);
        assert!(!of(Path::new("/dev/a"), &disk).is_empty());
        for name in ["/dev/a\nexec_prerun=x", "/dev/a$HOME", "/dev/a;b", "/dev/a#b", "/dev/a ", "/dev/\u{1b}"]
        {
            assert!(of(Path::new(name), &disk).is_empty(), "{name:?}");
        }
    }

    #[test]
    fn commands_have_blocks_with_their_metadata() {
        let format = |metadata: u64, place: &str, protection: &str| {
            let format = [
                ("data_bytes", Value::Number(512)),
                ("metadata_bytes", Value::Number(metadata)),
                ("metadata", Value::Text(place.into())),
                ("protection_information", Value::Text(protection.into())),
            ];
            let placement = [("fdp_enabled", Value::Is(true))];
            let mut found = device("NVMe namespace", &[("format", &format), ("placement", &placement)]);
            found.what = "character device";
            of(Path::new("/dev/ng0n1"), &found).iter().map(Job::text).collect::<String>()
        };
        let stripped = format(8, "interleaved", "type 1 with CRC-16, in the last bytes");
        assert!(
            stripped.contains("bs=4096\n") && stripped.contains("pi_chk=GUARD,APPTAG,REFTAG"),
            "{stripped}"
        );
        assert!(stripped.contains("dataplacement=fdp") && !stripped.contains("md_per_io_size"), "{stripped}");
        let more = format(16, "interleaved", "type 1 with CRC-16, in the last bytes");
        assert!(more.contains("bs=4224\n"), "{more}");
        let apart = format(16, "separate", "none");
        assert!(apart.contains("bs=4096\n") && apart.contains("md_per_io_size=128\n"), "{apart}");
        assert!(!apart.contains("pi_act"), "{apart}");
    }

    #[test]
    fn zones_are_written_in_order_and_read_only_devices_only_read() {
        let queue: (_, &[_]) = ("queue", &[("largest_trim_bytes", Value::Number(1 << 30))]);
        let zones: (_, &[_]) = ("zones", &[("most_open", Value::Number(4))]);
        let jobs = of(Path::new("/dev/z"), &device("block device", &[queue, zones]));
        assert_eq!(names(&jobs), ["random-reads", "sequential-reads", "zone-writes", "zones-at-random"]);
        assert!(jobs[2].text().contains("max_open_zones=4"));
        let capacity: (_, &[_]) = ("capacity", &[("read_only", Value::Is(true))]);
        let jobs = of(Path::new("/dev/z"), &device("block device", &[queue, zones, capacity]));
        assert!(jobs.iter().all(|job| !job.changes_data));
        let empty: (_, &[_]) = ("capacity", &[("size_bytes", Value::Number(0))]);
        assert!(of(Path::new("/dev/z"), &device("loop device", &[empty])).is_empty());
    }

    #[test]
    fn zones_are_written_by_commands_as_well() {
        let told = |metadata: u64, more: &[(&'static str, &[(&'static str, Value)])]| {
            let format: [(_, &[_]); 2] = [
                (
                    "format",
                    &[
                        ("data_bytes", 4096.into()),
                        ("metadata_bytes", metadata.into()),
                        ("metadata", "interleaved".into()),
                    ],
                ),
                ("zones", &[("most_open", 4.into()), ("largest_append_of_device_bytes", (32 << 10).into())]),
            ];
            let mut found = device("NVMe namespace", &[&format, more].concat());
            found.what = "character device";
            of(Path::new("/dev/ng0n1"), &found)
        };
        let jobs = told(0, &[]);
        assert_eq!(
            names(&jobs),
            ["random-reads", "sequential-reads", "zone-writes", "zones-at-random", "zone-appends"]
        );
        for job in &jobs[2..] {
            let text = job.text();
            let has = |option: &str| text.lines().any(|line| line == option);
            assert!(has("ioengine=io_uring_cmd") && has("zonemode=zbd") && has("max_open_zones=4"), "{text}");
            assert_eq!(has("write_mode=append") && has("bs=32768"), job.name == "zone-appends", "{text}");
            assert!(!has("direct=1") && job.changes_data, "{text}");
        }
        let transfer: (_, &[_]) = ("commands", &[("largest_transfer_bytes", 8192.into())]);
        assert!(told(0, &[transfer])[4].text().contains("bs=8192\n"), "no command takes more");
        assert_eq!(
            names(&told(16, &[])),
            ["random-reads", "sequential-reads"],
            "metadata lies between blocks"
        );
        let fixed: (_, &[_]) = ("capacity", &[("read_only", true.into())]);
        assert_eq!(names(&told(0, &[fixed])), ["random-reads", "sequential-reads"]);
    }
}
