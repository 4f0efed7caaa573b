//! `zonemode=zbd` on zoned disks: in memory (null_blk) and such that speak SCSI (scsi_debug). After each job the disk's own
//! report says what was written.

use super::{Report, example, newest, report, run, told, told_by_peer};
use crate::common::Program;
use iolite_testing::vm::{self, Ran};
use iolite_testing::zones::{self, CASES, DEVICES, ENGINES, SAMPLE};
use iolite_testing::{or_skip, partly_skipped, this_test};

/// `zones NAME` notes the write pointers of the disk: a line for each zone, with the bytes written and the condition.
const ZONES: &str = r#"
zones() {
    blkzone report $disk | sed -n 's/.*start: *\(0x[0-9a-f]*\).*wptr \(0x[0-9a-f]*\).*zcond: *\([0-9]*\).*/\2 \3/p' |
        while read -r wp condition; do echo $((wp * 512)) $condition; done >"$1.zones"
}
empty() { blkzone reset -o $((8 << 11)) $disk; }
"#;

const MIB: u64 = 1 << 20;

/// What the disk says of its zones after a job: the bytes below each write pointer (a full one has its capacity).
#[track_caller]
fn written(ran: &Ran, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(ran.directory.join(format!("{name}.zones"))).unwrap_or_default();
    let zones = text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok());
    let zones: Vec<u64> = zones.collect();
    assert!(!zones.is_empty(), "{name}: no zones\n{}", ran.output);
    zones
}

/// The number of resets that the report of a job tells.
#[track_caller]
fn resets(ran: &Ran, name: &str, who: &str) -> u64 {
    let text = told(ran, name, who).0;
    let found =
        text.lines().find_map(|line| line.strip_suffix(" zone resets")?.rsplit("; ").next()?.parse().ok());
    found.unwrap_or_else(|| panic!("{name}: no resets are told\n{text}"))
}

#[track_caller]
fn bytes(ran: &Ran, name: &str) -> [u64; 3] {
    let json = report(ran, name).json.expect("the report is in JSON as well");
    json.jobs().iter().map(|job| job.bytes()).fold([0; 3], |sum, job| [0, 1, 2].map(|at| sum[at] + job[at]))
}

/// Whether there is a fio whose zones are those of the language that we speak.
fn is_comparable() -> bool {
    newest().is_some_and(|peer| peer.release.minor >= 41)
}

/// Compares exit status and bytes with those of fio.
#[track_caller]
fn compare(ran: &Ran, names: &[&str], test: &str) {
    if !is_comparable() {
        return partly_skipped(test, "fio 3.41 is not installed");
    }
    for name in names {
        let (ours, theirs) = (told(ran, name, "ours"), told(ran, name, "theirs"));
        assert_eq!(ours.1 == 0, theirs.1 == 0, "{name}: {}\n{}", ours.0, theirs.0);
        if ours.1 == 0 {
            let json = Report::new(&theirs.0).json.expect("fio reports in JSON as well");
            assert_eq!(bytes(ran, name), json.job().bytes(), "{name}");
        }
    }
}

/// Some of the rules of zones, on a disk in memory without limits, one with limits, and a zoned namespace, each with another engine.
/// All rules on all devices with all engines are a part of campaigns (`scripts/campaign --parts zones`).
#[test]
fn zones_are_written_in_sequence_read_and_reset() {
    let ours = Program::under_test().path.display().to_string();
    let theirs = newest().filter(|_| is_comparable()).map(|peer| peer.path.display().to_string());
    if theirs.is_none() {
        partly_skipped(&this_test!(), "fio 3.41 is not installed");
    }
    for ((device, engine), is_compared) in DEVICES.iter().zip(ENGINES).zip([true, false, false]) {
        let cases = CASES.iter().filter(|case| SAMPLE.contains(&case.name));
        let jobs: Vec<_> = cases.map(|case| (case, engine)).collect();
        // Programs start slowly there: on one device fio is asked as well.
        let theirs = theirs.as_deref().filter(|_| is_compared);
        let ran = or_skip!(vm::run(
            &format!("rules-{}", device.name),
            &zones::script(device, &jobs, &ours, theirs)
        ));
        assert_eq!(ran.status, 0, "{}", ran.output);
        let wrong: Vec<String> =
            jobs.iter().flat_map(|(case, engine)| zones::complaints(&ran, device, case, engine)).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Random writes fill zones, only so many of which are open; what the disk says agrees with the report.
#[test]
pub fn limits_of_open_zones_are_kept() {
    let ran = or_skip!(run(
        "open-zones",
        &format!(
            r#"{ZONES}
zoned_disk 2 4 6 || exit
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset=8m"
both device $job --rw=randwrite --io_size=20m --ioengine=libaio --iodepth=8; empty
ours two $job --rw=randwrite --io_size=10m --max_open_zones=2 --output-format=json,normal; zones two
both exceeded $job --rw=randwrite --io_size=1m --max_open_zones=1; empty
ours own $job --rw=randwrite --io_size=5m --numjobs=2 --job_max_open_zones=1 --output-format=json,normal; zones own; empty
both more $job --rw=write --io_size=1m --max_open_zones=5; empty
both ignored $job --rw=write --io_size=1m --max_open_zones=5 --ignore_zone_limits=1; empty
ours wait $job --rw=write --size=2z --numjobs=6 --offset_increment=2z --output-format=json,normal; zones wait
"#
        )
    ));
    let open = |name| {
        let partly = |&&bytes: &&u64| bytes > 0 && bytes < 3 * MIB;
        written(&ran, name)[2..].iter().filter(partly).count()
    };
    assert_eq!(bytes(&ran, "device")[1], 20 * MIB);
    assert_eq!(bytes(&ran, "two")[1], 10 * MIB);
    assert_eq!(written(&ran, "two")[2..].iter().sum::<u64>(), 10 * MIB, "nothing was reset");
    assert!(open("two") <= 2, "{:?}", written(&ran, "two"));
    assert_eq!(bytes(&ran, "own")[1], 10 * MIB);
    assert!(open("own") <= 2, "{:?}", written(&ran, "own"));
    let (text, status) = told(&ran, "more", "ours");
    assert!(status == 1 && text.contains("ignore_zone_limits=1 to try"), "{text}");
    assert!(told(&ran, "exceeded", "ours").0.contains("are open already; reset or finish some"));
    // fio ends those workers that may open no zone; here they wait for the others.
    assert_eq!(bytes(&ran, "wait")[1], 36 * MIB);
    compare(&ran, &["device", "exceeded", "more", "ignored"], &this_test!());
}

/// Several workers and several writes at once in the same zones, and a worker that is killed with zones open.
#[test]
fn workers_share_zones_and_survive_each_other() {
    let mut script = format!("{ZONES}zoned_disk 2 || exit\n");
    for engine in ["psync", "libaio", "io_uring"] {
        script += &format!(
            r#"
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset=8m --ioengine={engine} --iodepth=8"
empty
ours random-{engine} $job --rw=randwrite --size=4z --io_size=3m --numjobs=3 --group_reporting --output-format=json,normal; zones random-{engine}
empty
ours same-{engine} $job --rw=write --size=1z --io_size=1m --numjobs=3 --thread --group_reporting --output-format=json,normal; zones same-{engine}
empty
ours killed-{engine} $job --size=2z --rw=randwrite --name=a --rate_iops=500 --time_based --runtime=60 --name=b --rate_iops=500 --time_based --runtime=4 --output-format=json,normal &
sleep 2.5; kill -KILL $(pgrep -f 'runtime=60' | tail -n +3 | head -n 1); wait
ours next-{engine} $job --size=2z --rw=write --io_size=5m --verify=crc32c --output-format=json,normal
"#
        );
    }
    let ran = or_skip!(run("shared-zones", &script));
    for engine in ["psync", "libaio", "io_uring"] {
        for (job, sum) in [("random", 9 * MIB), ("same", 3 * MIB)] {
            let name = format!("{job}-{engine}");
            assert_eq!(bytes(&ran, &name)[1], sum, "{name}");
            assert_eq!(
                written(&ran, &name)[2..].iter().sum::<u64>(),
                sum - resets(&ran, &name, "ours") * 3 * MIB
            );
        }
        let (text, status) = told(&ran, &format!("killed-{engine}"), "ours");
        assert!(status != 0, "a worker was killed\n{text}");
        assert!(!text.contains("Input/output error"), "the others go on\n{text}");
        assert_eq!(bytes(&ran, &format!("next-{engine}"))[1], 5 * MIB);
    }
}

/// What fio refuses is refused, before anything is written, and told with the remedy.
#[test]
fn what_zones_forbid_is_refused() {
    const REFUSED: [(&str, &str, &str); 9] = [
        ("buffered", "--direct=0 --rw=write --offset=8m", "add direct=1"),
        ("trim", "--rw=trim --offset=8m", "use bs=,,4194304"),
        ("size", "--rw=write --offset=8m --zonesize=2m", "leave zonesize out"),
        ("skip", "--rw=write --offset=8m --zoneskip=1m", "use zoneskip=1z"),
        ("part", "--rw=write --offset=9m --size=6m", "use sizes in zones"),
        ("large", "--rw=write --bs=4m --offset=8m", "use smaller blocks"),
        ("recovery", "--rw=write --offset=8m --recover_zbd_write_error=1", "add continue_on_error=write"),
        ("loop", "--rw=write --filename=$loop", "give the size of a zone (zonesize=)"),
        (
            "capacity",
            "--rw=write --filename=$loop --zonesize=4m --zonecapacity=5m",
            "no more than the zone itself",
        ),
    ];
    let mut script =
        format!("{ZONES}zoned_disk 2 || exit\ntruncate -s 32M image; loop=$(losetup -f --show image)\n");
    for (name, line, _) in REFUSED {
        let file = if line.contains("$loop") { "" } else { "--filename=$disk" };
        // (fio finishes zones on its way to some of these errors.)
        let job =
            format!("{name} {file} --zonemode=zbd --direct=1 --bs=64k {line} --output-format=json,normal");
        script += &format!("theirs {job}; empty; ours {job}; zones {name}\n");
    }
    script += "losetup -d $loop\n";
    let ran = or_skip!(run("zones-refused", &script));
    for (name, _, remedy) in REFUSED {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(remedy), "{name}: {text}");
        // (Blocks that fit into no zone make fio end without I/O, or with an error, as its zones are empty or not.)
        let by_peer = name == "large" || !is_comparable() || told_by_peer(&ran, name, 1).1 != 0;
        assert!(by_peer, "{name}: fio does it");
        assert_eq!(written(&ran, name)[2..].iter().sum::<u64>(), 0);
    }
}

/// A disk that speaks SCSI, and the example.
#[test]
fn scsi_disks_with_zones_and_the_example() {
    let ran = or_skip!(run(
        "zbc",
        &format!(
            "{ZONES}scsi_disk dev_size_mb=64 zbc=host-managed zone_size_mb=4 zone_nr_conv=2 zone_max_open=4 delay=0 || exit\n\
             both disk --filename=$disk --direct=1 --zonemode=zbd --bs=64k --rw=write --offset=2z --size=3z --verify=crc32c; \
             zones disk\n{}",
            example("DISK=$disk", "zoned.fio")
        )
    ));
    assert_eq!(bytes(&ran, "disk"), [12 * MIB, 12 * MIB, 0]);
    assert_eq!(written(&ran, "disk")[2..6], [4 * MIB, 4 * MIB, 4 * MIB, 0]);
    report(&ran, "example");
}

/// What the write pointer says was lost is told as such; a write that fails because of somebody else's reset is recovered
/// from; regions of conventional zones need not be whole.
#[test]
fn losses_and_errors_on_zoned_disks() {
    let script = format!(
        r#"{ZONES}zoned_disk 4 || exit
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset=4z --output-format=json,normal"
ours kept $job --rw=write --size=2z --verify=crc32c --do_verify=0
ours whole $job --rw=write --size=2z --verify=crc32c --verify_only
blkzone reset -o $((5 << 13)) -c 1 $disk
ours lost $job --rw=write --size=2z --verify=crc32c --verify_only
for recovers in 0 1; do
    blkzone reset -o $((4 << 13)) $disk
    ours recovered-$recovers $job --rw=write --size=1z --rate_iops=8 --continue_on_error=write --recover_zbd_write_error=$recovers &
    until zones begun; [[ $(sed -n 5p begun.zones) != 0* ]]; do sleep 0.1; done; blkzone reset -o $((4 << 13)) -c 1 $disk; wait; zones recovered-$recovers
done
ours direct --filename=$disk --zonemode=zbd --bs=64k --rw=randwrite --size=6m --direct=1 --output-format=json,normal
ours mapped $job --rw=write --ioengine=mmap
"#
    );
    let ran = or_skip!(run("zoned-losses", &script));
    assert_eq!(bytes(&ran, "whole")[0], 6 * MIB);
    let (text, status) = told(&ran, "lost", "ours");
    assert!(
        status == 1 && text.contains("the write pointer of the zone at offset 20971520 is at 20971520"),
        "{text}"
    );
    for (name, recovers) in [("recovered-0", false), ("recovered-1", true)] {
        let (text, _) = told(&ran, name, "ours");
        let pointer = written(&ran, name)[4];
        assert_eq!(pointer > 0, recovers, "{name}: {pointer}\n{text}");
    }
    assert_eq!(bytes(&ran, "direct")[1], 6 * MIB, "conventional zones are written in part");
    let (text, status) = told(&ran, "mapped", "ours");
    assert!(status == 1 && text.contains("use psync, libaio or io_uring"), "{text}");
}
