//! Jobs for zoned disks in the virtual machine, each with its expected results: a table of the rules of `zonemode=zbd`.
//! Tests try some of them; campaigns try all on every device with every engine. The writes that a job reports have to
//! agree with the zones that the device reports, and with fio if it follows the same rules.

use crate::vm::Ran;
use std::fmt::Write;
use std::fs;

const KIB: u64 = 1 << 10;

/// A device with zones of 4 MiB, of which 3 MiB can be written.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Its name in tests.
    pub name: &'static str,
    /// The command that creates it in the virtual machine.
    pub made_by: &'static str,
    /// The index of its first sequential zone; the zones before it are conventional.
    pub first: u64,
    /// The options that jobs need for its zones.
    options: &'static str,
    /// The device itself has zones and reports them.
    has_zones: bool,
    /// Zones can be made read-only or offline.
    loses: bool,
    /// The command that creates it with other limits, if that is possible. The caller appends the maximum numbers of
    /// open and active zones.
    limited_by: Option<&'static str>,
}

const fn device(name: &'static str, made_by: &'static str, first: u64) -> Device {
    Device { name, made_by, first, options: "", has_zones: true, loses: false, limited_by: None }
}

impl Device {
    const fn that_loses(mut self) -> Device {
        self.loses = true;
        self
    }

    const fn limited_by(mut self, command: &'static str) -> Device {
        self.limited_by = Some(command);
        self
    }

    const fn without_zones(mut self, options: &'static str) -> Device {
        (self.options, self.has_zones) = (options, false);
        self
    }
}

/// A disk in memory with conventional zones and without limits, the same with limits on open and active zones, and an
/// NVMe namespace (all its zones are sequential). All rules are tried on each, with every engine.
pub const DEVICES: [Device; 3] = [
    device("free", "zoned_disk 2", 2).that_loses().limited_by("zoned_disk 2"),
    device("limited", "zoned_disk 2 4 6", 2).that_loses().limited_by("zoned_disk 2"),
    device("namespace", "zoned_namespace", 0),
];

/// A SCSI disk, a part of a zoned disk (made by the device mapper), and a disk without zones, for which the jobs define
/// them. All rules are tried on each, with one engine.
pub const OTHER_DEVICES: [Device; 3] = [
    device(
        "disk",
        "scsi_disk dev_size_mb=64 zbc=host-managed zone_size_mb=4 zone_cap_mb=3 zone_nr_conv=2 delay=0",
        2,
    ),
    device("part", "zoned_part", 0),
    device("plain", "plain_disk", 0).without_zones("--zonesize=4m --zonecapacity=3m"),
];

/// The engines that write to zoned devices.
pub const ENGINES: [&str; 3] = ["psync", "libaio", "io_uring"];

/// A job on four zones of 3 MiB.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in tests.
    pub name: &'static str,
    /// Its options, in addition to those of all jobs.
    pub line: &'static str,
    /// The state of the zones before the job.
    before: Before,
    /// Bytes read, written and trimmed; `None` = random.
    bytes: Option<[u64; 3]>,
    /// The sum of bytes read and written; `None` = random.
    moved: Option<u64>,
    /// The number of zones that it resets; `None` = random.
    resets: Option<u64>,
    /// Bytes below the write pointers afterwards, in units of 512 KiB; `None` = random.
    zones: Option<[u64; 4]>,
    /// The maximum number of partly written zones, at any time and afterwards. If the device supports limits, it is
    /// created with this limit, without the job's knowledge.
    most_open: Option<usize>,
    /// The case needs conventional zones.
    is_conventional: bool,
    /// The case needs a device that has zones itself.
    is_own: bool,
    /// A text that the output has to contain.
    says: &'static str,
    /// fio behaves in the same way.
    by_peer: bool,
}

/// The state of the zones when a job begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Empty,
    /// Two full zones, one with 1 MiB, and an empty one.
    Partly,
    /// All zones are full.
    Full,
    /// One zone with 1 MiB, one read-only, one offline, and an empty one.
    Lost,
}

const fn case(name: &'static str, line: &'static str) -> Case {
    let before = Before::Empty;
    let (bytes, moved, resets, zones) = (None, None, None, None);
    let (most_open, is_conventional, is_own) = (None, false, false);
    Case {
        name,
        line,
        before,
        bytes,
        moved,
        resets,
        zones,
        most_open,
        is_conventional,
        is_own,
        says: "",
        by_peer: true,
    }
}

impl Case {
    const fn on(mut self, before: Before) -> Case {
        self.before = before;
        self
    }

    /// In KiB.
    const fn does(mut self, read: u64, write: u64, trim: u64) -> Case {
        self.bytes = Some([read * KIB, write * KIB, trim * KIB]);
        self
    }

    /// In KiB, reads and writes together.
    const fn moves(mut self, both: u64) -> Case {
        self.moved = Some(both * KIB);
        self
    }

    const fn leaves(mut self, resets: u64, zones: [u64; 4]) -> Case {
        (self.resets, self.zones) = (Some(resets), Some(zones));
        self
    }

    const fn resets(mut self, count: u64) -> Case {
        self.resets = Some(count);
        self
    }

    const fn opens(mut self, most: usize) -> Case {
        self.most_open = Some(most);
        self
    }

    const fn says(mut self, words: &'static str) -> Case {
        self.says = words;
        self
    }

    const fn alone(mut self) -> Case {
        self.by_peer = false;
        self
    }

    const fn conventional(mut self) -> Case {
        self.is_conventional = true;
        self
    }

    const fn own(mut self) -> Case {
        self.is_own = true;
        self
    }

    /// Whether fio loses trims of the job: with `io_uring`, some trims of 3.41 reset no zone and count no bytes on the
    /// kernel of the usual machine (Linux 6.1, in which io_uring has no discards).
    fn peer_loses_trims(&self, engine: &str) -> bool {
        engine == "io_uring" && self.line.contains("trim")
    }

    /// Whether the case can run on the device.
    pub fn suits(&self, device: &Device) -> bool {
        (!self.is_conventional || device.first > 0)
            && (!(self.is_own || self.before != Before::Empty) || device.has_zones)
            && (self.before != Before::Lost || device.loses)
    }
}

/// The rules. `$first` is the first of the four zones.
pub const CASES: &[Case] = &[
    case("fill", "--rw=write").does(0, 12 << 10, 0).leaves(0, [6, 6, 6, 6]),
    case("again", "--rw=write --io_size=20m").on(Before::Full).does(0, 20 << 10, 0).leaves(7, [6, 6, 4, 6]),
    // More bytes than the zones can hold, but fewer than the size of the region.
    case("again-part", "--rw=write --io_size=14m").does(0, 14 << 10, 0).leaves(1, [4, 6, 6, 6]),
    case("again-jobs", "--rw=write --numjobs=2 --io_size=7m --size=2z --offset_increment=2z")
        .does(0, 14 << 10, 0)
        .leaves(2, [2, 6, 2, 6]),
    case("again-ios", "--rw=write --number_ios=200 --io_size=14m").does(0, 12800, 0).leaves(1, [1, 6, 6, 6]),
    case("ios", "--rw=write --number_ios=100").does(0, 6400, 0),
    case("part", "--rw=write --io_size=4m").does(0, 4 << 10, 0).leaves(0, [6, 2, 0, 0]),
    case("read", "--rw=read").on(Before::Partly).does(7 << 10, 0, 0),
    case("read-again", "--rw=read --io_size=10m").on(Before::Partly).does(10 << 10, 0, 0),
    case("read-partly-random", "--rw=randread --percentage_random=50 --io_size=10m").on(Before::Partly).does(
        10 << 10,
        0,
        0,
    ),
    case("write-partly-random", "--rw=randwrite --percentage_random=50 --io_size=10m").does(0, 10 << 10, 0),
    case("read-empty", "--rw=read"),
    case("read-empty-timed", "--rw=randread --time_based --runtime=1h").says("ended before its runtime"),
    case("read-random", "--rw=randread --io_size=5m").on(Before::Partly).does(5 << 10, 0, 0),
    case("read-beyond", "--rw=read --read_beyond_wp=1 --size=3z").on(Before::Partly).does(12 << 10, 0, 0),
    case("read-skip", "--rw=read --zoneskip=1z").on(Before::Partly).does(4 << 10, 0, 0).alone(),
    case("trim", "--rw=trim --bs=4m --size=2z").on(Before::Full).does(0, 0, 8 << 10).leaves(2, [0, 0, 6, 6]),
    case("trim-random", "--rw=randtrim --bs=4m").on(Before::Full).does(0, 0, 16 << 10).leaves(4, [0; 4]),
    case("trim-random-timed", "--rw=randtrim --bs=4m --time_based --runtime=1h")
        .on(Before::Full)
        .does(0, 0, 16 << 10)
        .leaves(4, [0; 4])
        .says("ended before its runtime")
        .alone(),
    // (fio trims one zone more than it fills. Both lines of the report show the three resets.)
    case("trim-write", "--rw=trimwrite --bs=64k,64k,4m --io_size=8m")
        .on(Before::Full)
        .does(0, 8 << 10, 12 << 10)
        .leaves(6, [6, 6, 4, 6])
        .alone(),
    case("skip", "--rw=write --zoneskip=1z").does(0, 6 << 10, 0).leaves(0, [6, 0, 6, 0]).alone(),
    case("waste", "--rw=write --bs=40k --size=2z")
        .does(0, 2 * 3040, 0)
        .leaves(0, [6, 6, 0, 0])
        .says("do not divide the 3 MiB of a zone"),
    case("remainder", "--rw=write --bs=40k --size=2z --write_zone_remainder=1")
        .does(0, 6 << 10, 0)
        .leaves(0, [6, 6, 0, 0])
        .alone(),
    case("often", "--rw=write --size=2z --io_size=6m --zone_reset_frequency=0.1 --zone_reset_threshold=0.2")
        .does(0, 6 << 10, 0),
    case(
        "threshold",
        "--rw=write --size=2z --io_size=6m --zone_reset_frequency=0.1 --zone_reset_threshold=1",
    )
    .does(0, 6 << 10, 0)
    .leaves(0, [6, 6, 0, 0]),
    case("open", "--rw=randwrite --io_size=10m --max_open_zones=2").does(0, 10 << 10, 0).opens(2),
    case("open-job", "--rw=randwrite --io_size=10m --max_open_zones=2 --job_max_open_zones=1")
        .does(0, 10 << 10, 0)
        .opens(1),
    case("unlimited", "--rw=write --ignore_zone_limits=1").does(0, 12 << 10, 0).leaves(0, [6; 4]),
    case("beyond-limit", "--rw=write --ignore_zone_limits=1 --max_open_zones=8")
        .does(0, 12 << 10, 0)
        .leaves(0, [6; 4]),
    case(
        "crowd",
        "--rw=write --numjobs=3 --size=1z --offset_increment=1z --max_open_zones=2 --group_reporting",
    )
    .does(0, 9 << 10, 0)
    .leaves(0, [6, 6, 6, 0])
    .says("3 workers write to")
    .alone(),
    case("mixed", "--rw=randrw --io_size=6m").moves(6 << 10).resets(0),
    case("sizes", "--rw=write --bs=512k --size=2z").does(0, 6 << 10, 0).leaves(0, [6, 6, 0, 0]),
    case("split", "--rw=write --bssplit=4k/50:64k/50 --size=2z").does(0, 6 << 10, 0).leaves(0, [6, 6, 0, 0]),
    case("zones", "--rw=write --offset=$((first + 1))z --size=1z")
        .does(0, 3 << 10, 0)
        .leaves(0, [0, 6, 0, 0]),
    case("io-size", "--rw=write --io_size=2z").does(0, 8 << 10, 0).leaves(0, [6, 6, 4, 0]),
    // Without offset_align, the job would begin in the second zone of a device with 16 zones.
    case("align", "--rw=write --offset=17% --offset_align=8m --size=1z")
        .does(0, 3 << 10, 0)
        .leaves(0, [0, 0, 6, 0]),
    case("zonesize", "--rw=write --zonesize=4m --size=1z").does(0, 3 << 10, 0).leaves(0, [6, 0, 0, 0]),
    case("zonerange", "--rw=write --zonerange=1m --size=1z").does(0, 3 << 10, 0).leaves(0, [6, 0, 0, 0]),
    // The geometry of a zoned device wins over the options of a job.
    case("zonecapacity", "--rw=write --zonecapacity=1m --size=1z")
        .own()
        .does(0, 3 << 10, 0)
        .leaves(0, [6, 0, 0, 0]),
    case("jobs", "--rw=write --numjobs=2 --size=2z --offset_increment=2z --group_reporting")
        .does(0, 12 << 10, 0)
        .leaves(0, [6; 4]),
    case("same-zones", "--rw=randwrite --numjobs=2 --io_size=3m --thread --group_reporting").does(
        0,
        6 << 10,
        0,
    ),
    case("fsync", "--rw=write --size=1z --fsync=4").does(0, 3 << 10, 0).leaves(0, [6, 0, 0, 0]),
    case("loops", "--rw=write --size=1z --loops=2").does(0, 6 << 10, 0).leaves(1, [6, 0, 0, 0]),
    case("recover", "--rw=write --size=1z --recover_zbd_write_error=1 --continue_on_error=write")
        .does(0, 3 << 10, 0)
        .leaves(0, [6, 0, 0, 0]),
    case("verify", "--rw=write --size=2z --verify=md5").does(6 << 10, 6 << 10, 0).leaves(0, [6, 6, 0, 0]),
    case("verify-random", "--rw=randwrite --size=2z --verify=crc32c")
        .does(6 << 10, 6 << 10, 0)
        .leaves(0, [6, 6, 0, 0])
        .alone(),
    case("verify-full", "--rw=write --size=2z --verify=crc32c")
        .on(Before::Full)
        .does(6 << 10, 6 << 10, 0)
        .leaves(2, [6; 4]),
    case("random-again", "--rw=randwrite --io_size=4m").on(Before::Full).does(0, 4 << 10, 0),
    case("conventional", "--rw=write --offset=0z --size=2z")
        .conventional()
        .does(0, 8 << 10, 0)
        .leaves(0, [0; 4]),
    case("conventional-random", "--rw=randwrite --offset=0z --size=2z")
        .conventional()
        .does(0, 8 << 10, 0)
        .leaves(0, [0; 4]),
    case("conventional-read", "--rw=read --offset=0z --size=2z").conventional().does(8 << 10, 0, 0),
    case("conventional-mixed", "--rw=randrw --offset=0z --size=2z --io_size=3m")
        .conventional()
        .moves(3 << 10)
        .leaves(0, [0; 4]),
    // (fio trims conventional zones.)
    case("conventional-trim", "--rw=trim --bs=4m --offset=0z --size=2z")
        .conventional()
        .does(0, 0, 0)
        .leaves(0, [0; 4])
        .alone(),
    // Blocks that are written twice would be read once.
    case("conventional-verify", "--rw=randwrite --offset=0z --size=2z --verify=crc32c")
        .conventional()
        .does(8 << 10, 8 << 10, 0)
        .leaves(0, [0; 4]),
    case("conventional-verify-all", "--rw=write --offset=0z --size=2z --verify=crc32c")
        .conventional()
        .does(8 << 10, 8 << 10, 0)
        .leaves(0, [0; 4]),
    case("across", "--rw=write --offset=1z --size=2z")
        .conventional()
        .does(0, 7 << 10, 0)
        .leaves(0, [6, 0, 0, 0]),
    case("across-read", "--rw=read --offset=1z --size=4z").conventional().on(Before::Partly).does(
        11 << 10,
        0,
        0,
    ),
    case("across-random", "--rw=randwrite --offset=1z --size=3z --io_size=5m").conventional().does(
        0,
        5 << 10,
        0,
    ),
    case("lost", "--rw=write").on(Before::Lost).does(0, 5 << 10, 0).leaves(0, [6, 0, 0, 6]),
    case("lost-again", "--rw=write --io_size=20m")
        .on(Before::Lost)
        .does(0, 20 << 10, 0)
        .leaves(5, [6, 0, 0, 6]),
    case("lost-random", "--rw=randwrite --io_size=7m").on(Before::Lost).does(0, 7 << 10, 0),
    case("lost-read", "--rw=read").on(Before::Lost).does(1 << 10, 0, 0),
    case("lost-read-random", "--rw=randread --io_size=3m").on(Before::Lost).does(3 << 10, 0, 0),
    // (fio crashes.)
    case("lost-trim", "--rw=trim --bs=4m").on(Before::Lost).does(0, 0, 8 << 10).leaves(1, [0; 4]).alone(),
    // (fio writes it twice.)
    case("lost-verify", "--rw=write --verify=crc32c")
        .on(Before::Lost)
        .does(6 << 10, 6 << 10, 0)
        .leaves(1, [6, 0, 0, 6])
        .alone(),
];

/// The cases that a quick test tries.
pub const SAMPLE: [&str; 10] = [
    "again",
    "read",
    "read-beyond",
    "trim",
    "waste",
    "open",
    "verify-random",
    "conventional-verify",
    "across",
    "lost-verify",
];

/// A script that creates a device, runs the jobs on it (each by fio first, if there is one to compare with), and
/// records the zones that the device reports.
pub fn script(device: &Device, jobs: &[(&Case, &str)], ours: &str, theirs: Option<&str>) -> String {
    let Device { made_by, first, options, has_zones, .. } = device;
    let mut script = format!(
        r#"
try() {{ local who=$1 program=$2 name=$3; shift 3; "$program" --name=j "$@" >"$name.$who" 2>&1; echo $? >"$name.$who.status"; }}
first={first} has_zones={has_zones}
note() {{ if $has_zones; then zones "$1"; fi; }}
fill() {{ dd if=/dev/zero of=$disk bs=512k seek=$((($1 + first) * 8)) count=$2 oflag=direct conv=notrunc status=none; }}
# A zone that is made so once more is empty again.
lose() {{ echo $(((first + 1) << 13)) >$made/zone_readonly; echo $(((first + 2) << 13)) >$made/zone_offline; }}
Empty() {{
    [[ $lost ]] && lose && lost=
    $has_zones && blkzone reset -o $((first << 13)) $disk
}}
Partly() {{ Empty; fill 0 6; fill 1 6; fill 2 2; }}
Full() {{ Empty; fill 0 6; fill 1 6; fill 2 6; fill 3 6; }}
Lost() {{ Empty; fill 0 2; lose; lost=1; }}
{made_by} || exit
"#
    );
    for (case, engine) in jobs {
        let Case { name, line, before, by_peer, .. } = case;
        let name = format!("{name}-{engine}");
        let limited = case.most_open.zip(device.limited_by);
        let ignores = if limited.is_some() { "--ignore_zone_limits=1" } else { "" };
        let job = format!(
            "{name} --filename=$disk --direct=1 --zonemode=zbd {options} --bs=64k --offset={first}z --size=4z \
             --ioengine={engine} --iodepth=8 {line} {ignores} --output-format=json,normal"
        );
        if let Some((most, command)) = limited {
            put(&mut script, &format!("{command} {most} {most} || exit"));
        }
        // Both programs begin with the zones in the same state.
        if let Some(theirs) = theirs.filter(|_| *by_peer && !case.peer_loses_trims(engine)) {
            put(&mut script, &format!("{before:?}; try theirs '{theirs}' {job}; note {name}.theirs"));
        }
        put(&mut script, &format!("{before:?}; note {name}.before; try ours '{ours}' {job}; note {name}"));
        if limited.is_some() {
            put(&mut script, &format!("{made_by} || exit"));
        }
    }
    script
}

fn put(script: &mut String, line: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(script, "{line}");
}

/// The mistakes in a job's report and in the resulting state of the zones.
pub fn complaints(ran: &Ran, device: &Device, case: &Case, engine: &str) -> Vec<String> {
    match check(ran, device, case, &format!("{}-{engine}", case.name)) {
        Ok(found) => found,
        Err(why) => vec![why],
    }
    .into_iter()
    .map(|what| format!("{} with {engine} on {}: {what}", case.name, device.name))
    .collect()
}

fn check(ran: &Ran, device: &Device, case: &Case, name: &str) -> Result<Vec<String>, String> {
    let read = |file: String| {
        fs::read_to_string(ran.directory.join(&file))
            .map_err(|error| format!("{file}: {error}\n{}", ran.output))
    };
    let zones = |name: &str| {
        if !device.has_zones {
            return Ok([0; 4]);
        }
        written(&read(format!("{name}.zones"))?, device).ok_or("the device tells no zones".to_owned())
    };
    let said = read(format!("{name}.ours"))?;
    let mut wrong = Vec::new();
    let mut demand = |is_right: bool, what: String| {
        if !is_right {
            wrong.push(what);
        }
    };
    let status = read(format!("{name}.ours.status"))?;
    demand(status.trim() == "0", format!("exit status {}\n{said}", status.trim()));
    let found = bytes(&said).ok_or_else(|| format!("no report\n{said}"))?;
    demand(case.bytes.is_none_or(|expected| expected == found), format!("it moves {found:?}"));
    let of_both = |[read, write, trim]: [u64; 3]| (read + write, trim);
    demand(case.moved.is_none_or(|expected| of_both(found) == (expected, 0)), format!("it moves {found:?}"));
    demand(said.contains(case.says), format!("it does not say \"{}\"\n{said}", case.says));
    let (before, after) = (zones(&format!("{name}.before"))?, zones(name)?);
    if let Some(expected) = case.zones.filter(|_| device.has_zones) {
        demand(after == expected.map(|halves| halves * 512 * KIB), format!("it leaves {after:?}"));
    }
    let resets = resets(&said);
    if found[1] + found[2] == 0 {
        demand(before == after, format!("it only reads, and {before:?} becomes {after:?}"));
        demand(resets == 0, format!("it only reads, and tells {resets} resets"));
    }
    demand(case.resets.is_none_or(|expected| expected == resets), format!("it tells {resets} resets"));
    // The bytes in the zones are those before the job plus those of the job, minus at most 3 MiB for each reset.
    // (Conventional zones have no write pointers, so this does not hold for them.)
    let (sum, lost) = (|zones: &[u64; 4]| zones.iter().sum::<u64>(), resets * 3072 * KIB);
    let most = sum(&before) + found[1];
    // (The write pointer of a finished zone is at its end.)
    let wasted = if case.says.is_empty() { 0 } else { 4 * 64 * KIB };
    let is_told = device.has_zones && !case.is_conventional;
    demand(
        !is_told || (sum(&after) <= most + wasted && sum(&after) + lost >= most),
        format!("{before:?} becomes {after:?} by {found:?} and {resets} resets"),
    );
    let open = after.iter().filter(|&&bytes| bytes > 0 && bytes < 3072 * KIB).count();
    demand(case.most_open.is_none_or(|most| open <= most), format!("{open} zones are open: {after:?}"));
    if ran.directory.join(format!("{name}.theirs")).exists() {
        let theirs = read(format!("{name}.theirs"))?;
        let peer = read(format!("{name}.theirs.status"))?;
        demand(peer == status, format!("fio ends with {}\n{theirs}", peer.trim()));
        let of_peer = bytes(&theirs).unwrap_or_default();
        // In a mix, the shares of reads and writes are random.
        let is_same = of_peer == found || case.moved.is_some() && of_both(of_peer) == of_both(found);
        demand(is_same, format!("it moves {found:?}, and fio {of_peer:?}"));
        // If the zones are chosen at random, the full ones may differ.
        if case.zones.is_some() {
            let (theirs, left) = (self::resets(&theirs), zones(&format!("{name}.theirs"))?);
            demand(theirs == resets, format!("{resets} resets, and fio {theirs}"));
            demand(left == after, format!("it leaves {after:?}, and fio {left:?}"));
        }
    }
    Ok(wrong)
}

/// The bytes below the write pointers of the four zones, as the device reports them; 3 MiB for a full zone.
fn written(text: &str, device: &Device) -> Option<[u64; 4]> {
    let zones = text.lines().zip(0_u64..).skip(usize::try_from(device.first).ok()?).take(4);
    let of_zone = |(line, _): (&str, u64)| Some(line.split_once(' ')?.0.parse::<u64>().ok()?.min(3072 * KIB));
    zones.map(of_zone).collect::<Option<Vec<u64>>>()?.try_into().ok()
}

/// Bytes read, written and trimmed by all jobs of a report in JSON.
fn bytes(report: &str) -> Option<[u64; 3]> {
    let of = |direction: &str| {
        // The time series of a report have directions as well.
        let begin = format!("\"{direction}\" : {{");
        let mut jobs =
            report.split(&begin).skip(1).filter_map(|job| job.trim_start().strip_prefix("\"io_bytes\" : "));
        jobs.try_fold(0, |sum, job| {
            let digits: &str = job.split(|character: char| !character.is_ascii_digit()).next()?;
            Some(sum + digits.parse::<u64>().ok()?)
        })
    };
    let found = [of("read")?, of("write")?, of("trim")?];
    report.contains("\"io_bytes\"").then_some(found)
}

/// The sum of zone resets in the report's lines of text.
fn resets(report: &str) -> u64 {
    let told = report
        .lines()
        .filter_map(|line| line.strip_suffix(" zone resets")?.rsplit("; ").next()?.parse::<u64>().ok());
    told.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_zones_are_read() {
        let report = "x\n{\n  \"read\" : {\n  \"io_bytes\" : 10,\n },\n \"write\" : {\n \"io_bytes\" : 7,\n},\n \"trim\" : {\n \"io_bytes\" : 0,\n}\n \
                      \"read\" : {\n  \"io_bytes\" : 5,\n },\n \"write\" : {\n \"io_bytes\" : 1,\n},\n \"trim\" : {\n \"io_bytes\" : 2,\n}\n \"read\" : {\n \"first_window\" : 0\n}\n}\n\
                      write: IOPS=1 (1/2msec); 7 zone resets\n";
        assert_eq!((bytes(report), resets(report), bytes("none")), (Some([15, 8, 2]), 7, None));
        assert_eq!(
            written("9 1\n9 1\n0 1\n3145728 14\n4194304 14\n512 2\n", &DEVICES[0]),
            Some([0, 3 << 20, 3 << 20, 512])
        );
        assert_eq!(written("0 1\n", &DEVICES[0]), None);
    }

    #[test]
    fn case_names_are_unique() {
        let names: std::collections::BTreeSet<&str> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
        assert!(SAMPLE.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn cases_run_on_suitable_devices() {
        let named = |name| CASES.iter().find(|case| case.name == name).unwrap();
        for case in CASES {
            assert!(DEVICES.iter().any(|device| case.suits(device)), "{}", case.name);
        }
        let [free, _, namespace] = &DEVICES;
        assert!(named("across").suits(free) && !named("across").suits(namespace));
        assert!(named("lost").suits(free) && !named("lost").suits(namespace));
        let plain = &OTHER_DEVICES[2];
        assert!(named("fill").suits(plain) && !named("read").suits(plain));
        assert!(!named("zonecapacity").suits(plain));
    }
}
