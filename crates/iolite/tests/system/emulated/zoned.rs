//! `zonemode=zbd` on simulated zoned disks (null_blk, and scsi_debug for SCSI). The disk's zone report after each job
//! shows its writes.

use super::{Report, example, newest, report, run, told, told_by_peer};
use crate::common::Program;
use iolite_testing::vm::{self, Ran};
use iolite_testing::zones::{self, CASES, DEVICES, ENGINES, SAMPLE};
use iolite_testing::{or_skip, partly_skipped, this_test};

/// The shell function `empty`, which resets the zones from the third on.
const ZONES: &str = "empty() { blkzone reset -o $((8 << 11)) $disk; }\n";

const MIB: u64 = 1 << 20;

/// The zones of the disk after a job: the bytes below each write pointer (for a full zone, its capacity).
#[track_caller]
fn written(ran: &Ran, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(ran.directory.join(format!("{name}.zones"))).unwrap_or_default();
    let zones = text.lines().filter_map(|line| line.split_once(' ')?.0.parse().ok());
    let zones: Vec<u64> = zones.collect();
    assert!(!zones.is_empty(), "{name}: no zones\n{}", ran.output);
    zones
}

/// The number of resets in a job's report.
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

/// Whether there is a fio with the same rules for zones.
fn is_comparable() -> bool {
    newest().is_some_and(|peer| peer.release.minor >= 41)
}

/// Compares the exit status and the bytes with those of fio.
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

/// Some of the rules for zones, on a disk in memory without limits, one with limits, and a zoned namespace, each with a
/// different engine. Campaigns check all rules on all devices with all engines (`scripts/campaign --parts zones`).
#[test]
fn zones_are_written_in_sequence_read_and_reset() {
    let ours = Program::under_test().path.display().to_string();
    let theirs = newest().filter(|_| is_comparable()).map(|peer| peer.path.display().to_string());
    if theirs.is_none() {
        partly_skipped(&this_test!(), "fio 3.41 is not installed");
    }
    for ((device, engine), is_compared) in DEVICES.iter().zip(ENGINES).zip([true, false, false]) {
        let cases = CASES.iter().filter(|case| SAMPLE.contains(&case.name) && case.suits(device));
        let jobs: Vec<_> = cases.map(|case| (case, engine)).collect();
        // fio runs on one device only, because programs start slowly in the virtual machine.
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

/// Random writes fill zones, with a limited number of open zones. The disk's zone report agrees with the job's report.
#[test]
pub fn limits_of_open_zones_are_kept() {
    let ran = or_skip!(run(
        "open-zones",
        &format!(
            r#"{ZONES}
zoned_disk 2 4 6 || exit
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset=8m"
both device $job --rw=randwrite --io_size=20m --ioengine=libaio --iodepth=8; empty
begin() {{ empty; ours begun $job --rw=write --size=1z --io_size=1m --numjobs=2 --offset_increment=1z; }}
begin; theirs exceeded $job --rw=randwrite --io_size=1m --max_open_zones=1 --output-format=json,normal
begin; ours exceeded $job --rw=randwrite --io_size=1m --max_open_zones=1 --output-format=json,normal; empty
both more $job --rw=write --io_size=1m --max_open_zones=5; empty
both ignored $job --rw=write --io_size=1m --max_open_zones=5 --ignore_zone_limits=1; empty
ours wait $job --rw=write --size=2z --numjobs=6 --offset_increment=2z --output-format=json,normal; zones wait
# The device has the limit, and the job does not know it: one zone too many at any time is an error.
zoned_disk 2 2 2 || exit
strict="$job --rw=randwrite --ignore_zone_limits=1 --ioengine=libaio --iodepth=8 --output-format=json,normal"
ours two $strict --io_size=10m --max_open_zones=2; zones two; empty
ours own $strict --io_size=5m --numjobs=2 --max_open_zones=2 --job_max_open_zones=1; zones own; empty
ours burst $strict --io_size=10m --max_open_zones=4
"#
        )
    ));
    let open = |name| {
        let partly = |&&bytes: &&u64| bytes > 0 && bytes < 3 * MIB;
        written(&ran, name)[2..].iter().filter(partly).count()
    };
    assert_eq!(bytes(&ran, "device")[1], 20 * MIB);
    assert_eq!(bytes(&ran, "two")[1], 10 * MIB);
    let freed = resets(&ran, "two", "ours") * 3 * MIB;
    assert_eq!(written(&ran, "two")[2..].iter().sum::<u64>(), 10 * MIB - freed);
    assert!(open("two") <= 2, "{:?}", written(&ran, "two"));
    assert_eq!(bytes(&ran, "own")[1], 10 * MIB);
    assert!(open("own") <= 2, "{:?}", written(&ran, "own"));
    let (text, status) = told(&ran, "burst", "ours");
    assert!(status == 1 && text.contains("err=75"), "the device has no third zone for it\n{text}");
    let (text, status) = told(&ran, "more", "ours");
    assert!(status == 1 && text.contains("ignore_zone_limits=1 to try"), "{text}");
    let (text, _) = told(&ran, "exceeded", "ours");
    assert!(text.contains("are open already; reset or finish some"), "{text}");
    // In fio, workers that cannot open a zone end; in Iolite, they wait for others.
    assert_eq!(bytes(&ran, "wait")[1], 36 * MIB);
    compare(&ran, &["device", "exceeded", "more", "ignored"], &this_test!());
}

/// Several workers with several writes in flight write to the same zones.
#[test]
fn workers_share_zones() {
    let mut script = format!("{ZONES}zoned_disk 2 || exit\n");
    for engine in ENGINES {
        script += &format!(
            r#"
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset=8m --ioengine={engine} --iodepth=8"
empty
ours random-{engine} $job --rw=randwrite --size=4z --io_size=3m --numjobs=3 --group_reporting --output-format=json,normal; zones random-{engine}
empty
ours same-{engine} $job --rw=write --size=1z --io_size=1m --numjobs=3 --thread --group_reporting --output-format=json,normal; zones same-{engine}
"#
        );
    }
    let ran = or_skip!(run("shared-zones", &script));
    for engine in ENGINES {
        for (job, sum) in [("random", 9 * MIB), ("same", 3 * MIB)] {
            let name = format!("{job}-{engine}");
            assert_eq!(bytes(&ran, &name)[1], sum, "{name}");
            assert_eq!(
                written(&ran, &name)[2..].iter().sum::<u64>(),
                sum - resets(&ran, &name, "ours") * 3 * MIB
            );
        }
    }
}

/// A worker is killed while it has open zones. Other workers and the next run continue at the device's write pointers.
#[test]
fn a_worker_that_is_killed_leaves_zones_that_others_go_on_with() {
    const DEVICES: [(&str, &str, usize); 3] =
        [("psync", "zoned_disk 2 4 6", 2), ("libaio", "zoned_disk 2", 2), ("io_uring", "zoned_namespace", 0)];
    let mut script = ZONES.to_owned();
    for (engine, made_by, first) in DEVICES {
        // The worker is killed as soon as two zones are partly written.
        script += &format!(
            r#"
{made_by} || exit
job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --offset={first}z --size=4z --ioengine={engine} --iodepth=8"
cat >job.fio <<END
[global]
filename=$disk
direct=1
zonemode=zbd
bs=64k
offset={first}z
size=4z
rw=randwrite
ioengine={engine}
iodepth=8
rate_iops=100
[victim]
comm=victim
time_based=1
runtime=600
[other]
io_size=16m
END
'{program}' --output-format=json,normal job.fio >killed-{engine}.ours 2>&1 &
until zones begun; [[ $(awk '$1 > 0 && $1 < 3145728' begun.zones | wc -l) -ge 2 ]]; do sleep 0.1; done
kill -KILL $(pgrep -x victim); wait $!; echo $? >killed-{engine}.ours.status
zones killed-{engine}
ours next-{engine} $job --rw=randwrite --io_size=5m --output-format=json,normal; zones next-{engine}
ours verified-{engine} $job --rw=write --verify=crc32c --output-format=json,normal
"#,
            program = Program::under_test().path.display()
        );
    }
    let ran = or_skip!(run("killed-zones", &script));
    for (engine, _, first) in DEVICES {
        let name = format!("killed-{engine}");
        let (text, status) = told(&ran, &name, "ours");
        assert_eq!(status, 1, "a worker was killed\n{text}");
        assert!(!text.contains("Input/output error"), "the others go on\n{text}");
        let report = Report::new(&text).json.expect("the report is in JSON as well");
        assert_eq!(report.jobs()[1].bytes()[1], 16 * MIB, "{text}");
        // A namespace reports the write pointer of a full zone at the zone's end, beyond its capacity.
        let in_zone = |bytes: &u64| (*bytes).min(3 * MIB);
        let sum = |name: &str| written(&ran, name)[first..first + 4].iter().map(in_zone).sum::<u64>();
        let (before, next) = (sum(&name), format!("next-{engine}"));
        assert_eq!(bytes(&ran, &next)[1], 5 * MIB);
        let zones = (written(&ran, &name), written(&ran, &next));
        let freed = resets(&ran, &next, "ours") * 3 * MIB;
        assert_eq!(sum(&next), before + 5 * MIB - freed, "{engine}: {zones:?}");
        assert_eq!(bytes(&ran, &format!("verified-{engine}")), [12 * MIB, 12 * MIB, 0]);
    }
}

/// Zones that become read-only or offline are excluded as soon as a write reveals this. (`lost-…` in the table of rules
/// tests zones that are lost from the start.)
#[test]
fn zones_that_are_lost_during_a_run_are_left_out() {
    let ran = or_skip!(run(
        "lost-zones",
        &format!(
            r#"{ZONES}zoned_disk 2 || exit
lost=$((4 << 13))
for how in readonly offline; do
    for begun in 1m 3m; do
        for recovers in 0 1; do
            name=$how-$begun-$recovers
            cat >job.fio <<END
[global]
filename=$disk
direct=1
zonemode=zbd
bs=64k
offset=4z
size=2z
rw=write
continue_on_error=write
recover_zbd_write_error=$recovers
[begin]
io_size=$begun
[lost]
stonewall
exec_prerun=echo $lost >$made/zone_$how
END
            '{program}' --output-format=json,normal job.fio >$name.ours 2>&1
            echo $? >$name.ours.status; zones $name
            echo $lost >$made/zone_$how; blkzone reset -o $lost $disk
        done
    done
    echo $lost >$made/zone_$how
    job="--filename=$disk --direct=1 --zonemode=zbd --bs=64k --output-format=json,normal"
    ours only-$how $job --offset=4z --size=1z --rw=write
    ours verify-$how $job --offset=4z --size=1z --rw=write --verify=crc32c
    ours trim-$how $job --offset=4z --size=1z --rw=trim --bs=4m
    ours read-$how $job --offset=4z --size=1z --rw=read
    ours beyond-$how $job --offset=4z --size=1z --rw=read --read_beyond_wp=1
    echo $lost >$made/zone_$how
done
"#,
            program = Program::under_test().path.display()
        )
    ));
    for how in ["readonly", "offline"] {
        let (text, status) = told(&ran, &format!("{how}-1m-1"), "ours");
        assert_eq!(status, 0, "{text}");
        let report = Report::new(&text).json.expect("the report is in JSON as well");
        assert_eq!(report.jobs()[1].bytes()[1], 3 * MIB, "only the other zone is written\n{text}");
        assert_eq!(written(&ran, &format!("{how}-1m-1"))[5], 3 * MIB);
        for recovers in [0, 1] {
            let (text, status) = told(&ran, &format!("{how}-3m-{recovers}"), "ours");
            let why = if how == "readonly" { "the zone can only be read" } else { "the zone is offline" };
            assert!(status == 1 && text.contains(why), "{text}");
        }
        for only in ["only", "verify", "trim", "read"] {
            assert_eq!(bytes(&ran, &format!("{only}-{how}")), [0; 3], "{only} {how}");
        }
    }
    // The device does not report the write pointer of a read-only zone, so such a zone is only read if that is
    // irrelevant.
    assert_eq!(bytes(&ran, "beyond-readonly"), [4 * MIB, 0, 0]);
    assert_eq!(bytes(&ran, "beyond-offline"), [0; 3]);
}

/// Host-aware disks are used like host-managed ones. Linux supports partitions of neither, but the device mapper
/// creates parts, whose zones are those of the disk.
#[test]
fn host_aware_disks_and_parts_of_zoned_disks() {
    let ran = or_skip!(run(
        "zoned-parts",
        &format!(
            r#"{ZONES}
job="--direct=1 --zonemode=zbd --bs=64k --output-format=json,normal"
scsi="dev_size_mb=64 zone_size_mb=4 zone_nr_conv=2 delay=0"
scsi_disk $scsi zbc=host-managed || exit
addpart $disk 1 $((4 << 13)) $((8 << 13)) && exit 1
scsi_disk $scsi zbc=host-aware || exit
addpart $disk 1 $((4 << 13)) $((8 << 13)) && exit 1
both aware --filename=$disk --direct=1 --zonemode=zbd --bs=64k --rw=write --offset=2z --size=2z; zones aware
ours verified $job --filename=$disk --rw=randwrite --offset=2z --size=2z --verify=crc32c; zones verified
ours trimmed $job --filename=$disk --rw=trim --bs=4m --offset=1z --size=2z; zones trimmed
zoned_part || exit
both part --filename=$disk --direct=1 --zonemode=zbd --bs=64k --rw=write --size=2z
disk=/dev/nullb0; zones part
ours held $job --filename=$disk --rw=write --offset=2z --size=1z
no_part
"#
        )
    ));
    assert_eq!(bytes(&ran, "aware")[1], 8 * MIB);
    assert_eq!(written(&ran, "aware")[2..5], [4 * MIB, 4 * MIB, 0]);
    assert_eq!(bytes(&ran, "verified"), [8 * MIB, 8 * MIB, 0]);
    assert_eq!(resets(&ran, "verified", "ours"), 2);
    assert_eq!(bytes(&ran, "trimmed")[2], 4 * MIB, "the conventional zone is left out");
    assert_eq!(written(&ran, "trimmed")[2..5], [0, 4 * MIB, 0]);
    assert_eq!(bytes(&ran, "part")[1], 6 * MIB);
    assert_eq!(written(&ran, "part")[2..5], [3 * MIB, 3 * MIB, 0]);
    let (text, status) = told(&ran, "held", "ours");
    assert!(status == 1 && text.contains("allow_mounted_write"), "the device mapper holds it\n{text}");
    compare(&ran, &["aware", "part"], &this_test!());
}

/// Jobs that fio refuses are refused before anything is written, with the remedy.
#[test]
fn jobs_that_violate_zone_rules_are_refused() {
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
        // (fio finishes zones before some of these errors.)
        let job =
            format!("{name} {file} --zonemode=zbd --direct=1 --bs=64k {line} --output-format=json,normal");
        script += &format!("theirs {job}; empty; ours {job}; zones {name}\n");
    }
    script += "losetup -d $loop\n";
    let ran = or_skip!(run("zones-refused", &script));
    for (name, _, remedy) in REFUSED {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(remedy), "{name}: {text}");
        // (If blocks fit into no zone, fio ends with an error, or without I/O if the zones are empty.)
        let by_peer = name == "large" || !is_comparable() || told_by_peer(&ran, name, 1).1 != 0;
        assert!(by_peer, "{name}: fio does it");
        assert_eq!(written(&ran, name)[2..].iter().sum::<u64>(), 0);
    }
}

/// Under the name `fio`, what fio refuses on a zoned disk is refused, with fio's sentence. The advice to use
/// `zonemode=zbd` follows a failed write under any name.
#[test]
fn zoned_disks_in_the_words_of_fio() {
    const CASES: [(&str, &str, &str); 8] = [
        (
            "buffered",
            "--zonemode=zbd --direct=0 --rw=write --size=1z",
            "Using direct I/O is mandatory for writing to ZBD drives",
        ),
        (
            "size",
            "--zonemode=zbd --rw=write --offset=8m --zonesize=2m",
            "/dev/nullb0 job parameter zonesize 2097152 does not match disk zone size 4194304.",
        ),
        (
            "limit",
            "--zonemode=zbd --rw=randwrite --offset=8m --max_open_zones=5",
            "Specified --max_open_zones (5) is larger than max (4)",
        ),
        (
            "open",
            "--zonemode=zbd --rw=randwrite --offset=8m --max_open_zones=1 --io_size=64k",
            "Number of open zones exceeds max_open_zones limit",
        ),
        (
            "trim",
            "--zonemode=zbd --rw=trim --offset=8m",
            "/dev/nullb0: trim block size 65536 is not the zone size 4194304",
        ),
        (
            "first",
            "--rw=randwrite --offset=13m --size=1m",
            "first I/O failed. If /dev/nullb0 is a zoned block device, consider --zonemode=zbd",
        ),
        (
            "mixed",
            "--rw=randrw --rwmixread=20 --offset=13m --size=1m",
            "first I/O failed. If /dev/nullb0 is a zoned block device, consider --zonemode=zbd",
        ),
        (
            "reads",
            "--zonemode=zbd --rw=read --size=64k --job_max_open_zones=2",
            "'job_max_open_zones' is valid only for write jobs",
        ),
    ];
    let ours = Program::under_test().path.display().to_string();
    let mut script = format!(
        "{ZONES}zoned_disk 2 4 6 || exit; mkdir named; ln -s '{ours}' named/fio\n\
         ours begun --filename=$disk --direct=1 --zonemode=zbd --bs=64k --rw=write --offset=8m --size=1z --io_size=1m \
         --numjobs=2 --offset_increment=1z\n"
    );
    for (name, line, _) in CASES {
        let job = format!("--filename=$disk --direct=1 --bs=64k {line}");
        script += &format!(
            "theirs {name} {job}\nnamed/fio --name=j {job} >{name}.ours 2>&1; echo $? >{name}.ours.status\n"
        );
    }
    script += "ours cached --filename=$disk --bs=64k --zonemode=zbd --rw=write --size=1z --output-format=json,normal\n";
    let ran = or_skip!(run("zones-in-words", &script));
    for (name, _, words) in CASES {
        let (text, status) = told(&ran, name, "ours");
        assert!(text.contains(words), "{name}: {text}");
        if is_comparable() {
            let (theirs, by_peer) = told_by_peer(&ran, name, 0);
            assert!(theirs.contains(words) && status == by_peer, "{name}: {status}\n{text}\n{theirs}");
        }
    }
    assert_eq!(bytes(&ran, "cached")[1], 4 * MIB, "conventional zones have no sequence");
}

/// A SCSI disk, and the example.
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

/// Writes that are lost according to the write pointer are reported as lost. A job recovers from a write that fails
/// because another program has reset the zone. Regions of conventional zones need not consist of whole zones.
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
zoned_disk 2 2 2 || exit
# The last blocks of two zones.
for zone in 4 5; do echo "+$(((zone << 13) + 6144 - 128))-$(((zone << 13) + 6143))" >$made/badblocks; done
ours bad $job --size=4z --rw=write --ioengine=psync --continue_on_error=write; zones bad
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
    // A zone whose last write fails stays open on the device, and would count against the limit of open zones.
    let (text, _) = told(&ran, "bad", "ours");
    let json = Report::new(&text).json.expect("the report is in JSON as well");
    assert_eq!((json.job().int("total_err"), json.job().bytes()[1]), (2, 12 * MIB - (128 << 10)), "{text}");
    assert_eq!(written(&ran, "bad")[6..8], [3 * MIB, 3 * MIB], "{text}");
}

/// Zones of a SCSI disk by its commands, through its generic device, as jobs for libzbc have them.
#[test]
fn zones_of_scsi_disks_are_used_by_commands() {
    let ran = or_skip!(run(
        "sg-zones",
        &format!(
            r#"
scsi_disk dev_size_mb=64 zbc=host-managed zone_size_mb=4 zone_cap_mb=3 zone_nr_conv=2 delay=0 || exit
{ZONES}
job="--filename=$sg --zonemode=zbd --bs=64k --output-format=json,normal"
empty; ours unaligned --ioengine=sg --filename=$sg --bs=64k --rw=write --offset=20544k --size=64k --output-format=json,normal
ours written --ioengine=libzbc $job --direct=1 --rw=write --offset=2z --size=2z --verify=crc32c; zones written
ours deep --ioengine=sg $job --rw=randwrite --offset=2z --iodepth=8 --io_size=8m --max_open_zones=4; zones deep
ours trimmed --ioengine=libzbc $job --bs=4m --rw=trim --offset=2z --size=1z --io_size=4m; zones trimmed
ours block --ioengine=libzbc --filename=$disk --zonemode=zbd --direct=1 --bs=64k --rw=write --offset=3z --size=1z --verify=md5 --output-format=json,normal
ours read --filename=$disk --direct=1 --bs=64k --rw=read --verify=md5 --verify_only --zonemode=zbd --offset=3z --size=1z --output-format=json,normal
"#
        )
    ));
    // Without zonemode=zbd, nobody keeps the job from writing in the middle of an empty zone.
    let (text, status) = told(&ran, "unaligned", "ours");
    let refused = "illegal request: unaligned write command, not at the write pointer of its zone (sense key 5h, code 21h/04h)";
    assert!(status == 1 && text.contains(refused), "{text}");
    for name in ["written", "deep", "trimmed", "block", "read"] {
        let (text, status) = told(&ran, name, "ours");
        assert_eq!(status, 0, "{name}: {text}\n{}", ran.output);
        let stands_in = text.contains("ioengine=libzbc: its work is done by ioengine=sg");
        assert_eq!(stands_in, !matches!(name, "deep" | "read"), "{name}: {text}");
    }
    // Of the four megabytes of a zone, three can be used. The write pointer of a full zone is told as its end.
    assert_eq!(bytes(&ran, "written"), [6 * MIB, 6 * MIB, 0]);
    assert_eq!(written(&ran, "written")[2..5], [4 * MIB, 4 * MIB, 0]);
    assert_eq!(bytes(&ran, "deep")[1], 8 * MIB);
    assert_eq!(written(&ran, "trimmed")[2], 0, "a trim resets a zone");
}
