//! NVMe commands other than plain reads and writes: zone commands, Zone Append, split commands, and Compare.

use super::nvme::{json, left, without_pract};
use super::{example, run_newest as run, told, told_by_peer};
use crate::common::comparison::Report;
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, this_test};

/// A script's command that runs jobs on the zoned namespace, each on empty zones: `cmd NAME WORD…`. The device's zone
/// report afterwards is in `NAME.zones`.
const ZONED: &str = r#"
least=41
nvme_namespaces || exit
empty() { blkzone reset $zoneddisk; }
again() {
    local name=$1; shift
    ours $name --ioengine=io_uring_cmd --filename=$zoned --zonemode=zbd --bs=64k --output-format=json "$@"
    blkzone report $zoneddisk >$name.zones
}
cmd() { empty; again "$@"; }
"#;

/// The written bytes of each zone according to the device. 3 MiB of each zone of 4 MiB can be written.
#[track_caller]
fn written(ran: &Ran, name: &str) -> Vec<u64> {
    let number = |line: &str, key: &str| {
        let text = line.split_once(key).expect("it is in each line").1.trim_start();
        let digits = text.split([',', ' ']).next().expect("there is a number");
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("it is a number") * 512
    };
    let zone = |line: &str| match line.contains("(fu)") {
        true => number(line, "cap"),
        false => number(line, "wptr"),
    };
    left(ran, &format!("{name}.zones")).lines().map(zone).collect()
}

const MIB: u64 = 1 << 20;

/// The device's zone report agrees with the job's writes, appends and resets, with one or many writes in flight per
/// zone.
#[test]
pub fn zones_are_written_appended_to_and_reset_by_commands() {
    let script = format!(
        "{ZONED}{}",
        r#"
cmd writes --rw=write --size=2z --iodepth=4 --verify=crc32c
again full --rw=write --size=1z --io_size=1m
# Threads of the kernel send the commands in any order.
cmd shuffled --rw=write --write_mode=append --size=3z --bs=16k --iodepth=32 --force_async=1 --verify=md5 --write_lat_log=shuffled --log_offset=1
cmd sizes --rw=randwrite --write_mode=append --bsrange=4k-128k --size=4z --io_size=5m --iodepth=16 --force_async=1 --verify=crc32c --max_open_zones=2 --registerfiles --nonvectored=0
cmd mixed --rw=randrw --write_mode=append --size=2z --io_size=4m --iodepth=8 --force_async=2
cmd workers --rw=randwrite --write_mode=append --size=3z --io_size=2m --iodepth=4 --numjobs=2 --group_reporting
cmd shares --rw=write --write_mode=append:50,write:50 --size=1z --iodepth=8 --verify=crc32c
cmd odd --rw=write --write_mode=append --bs=80k --size=2z --iodepth=8 --force_async=1 --verify=crc32c
cmd small --rw=write --size=1z --write_mode=append --iodepth=4 --io_size=1m --fixedbufs
nvme_commands on.commands again on --rw=write --size=1z --io_size=64k --bs=32k --write_mode=append --writefua=1
nvme_commands reset.commands again reset --rw=trim --bs=4m --size=1z
true
"#
    );
    let ran = or_skip!(run("nvme-append", &script));
    for (name, expected) in [
        ("writes", vec![3 * MIB, 3 * MIB]),
        ("full", vec![MIB, 3 * MIB]),
        ("shuffled", vec![3 * MIB; 3]),
        ("shares", vec![3 * MIB]),
        ("small", vec![MIB]),
        ("on", vec![MIB + (64 << 10)]),
        ("reset", vec![]),
    ] {
        let job = json(&ran, name);
        assert_eq!(job.job().int("error"), 0, "{name}");
        let all = written(&ran, name);
        assert_eq!(all.len(), 8, "{name}");
        let expected: Vec<u64> = expected.into_iter().chain([0; 8]).take(8).collect();
        assert_eq!(all, expected, "{name}");
    }
    assert_eq!(json(&ran, "full").job().int("write.total_ios"), 16);
    for (name, ios) in [("sizes", 0), ("workers", 64), ("odd", 76)] {
        let job = json(&ran, name);
        assert_eq!(job.job().int("error"), 0, "{name}");
        if ios > 0 {
            assert_eq!(job.job().ios()[1], ios, "{name}");
        }
    }
    assert_eq!(written(&ran, "sizes").iter().sum::<u64>(), json(&ran, "sizes").job().bytes()[1]);
    assert_eq!(written(&ran, "workers").iter().sum::<u64>(), 4 * MIB, "of both workers");
    // Only 38 blocks of 80 KiB fit into 3 MiB, but the zone is finished.
    assert_eq!(written(&ran, "odd")[..3], [3 * MIB, 3 * MIB, 0]);
    let job = json(&ran, "mixed");
    let [read, wrote, _] = job.job().bytes();
    assert_eq!(read + wrote, 4 * MIB, "reads stay below the write pointers");

    // The log has each place once, but not in the order of the commands.
    let log = left(&ran, "shuffled_clat.1.log");
    let offset = |line: &str| line.split(',').nth(4).and_then(|text| text.trim().parse().ok());
    let writes = log.lines().filter(|line| line.split(',').nth(2).map(str::trim) == Some("1"));
    let mut offsets: Vec<u64> = writes.map(|line| offset(line).expect("there is an offset")).collect();
    offsets.sort_unstable();
    let expected: Vec<u64> = (0..3u64)
        .flat_map(|zone| (0..192u64).map(move |block| zone * 4 * MIB + block * (16 << 10)))
        .collect();
    assert_eq!(offsets, expected);

    // Zone Append contains the start of the zone, and a trim is a zone reset.
    let commands = left(&ran, "on.commands");
    let appends: Vec<&str> = commands.lines().filter(|line| line.contains("append")).collect();
    assert_eq!(appends.len(), 2, "{commands}");
    assert!(appends.iter().all(|line| line.contains("slba=0, len=7, ctrl=0x4000")), "{commands}");
    let commands = left(&ran, "reset.commands");
    let sent = commands.lines().filter(|line| line.contains("zone_mgmt_send"));
    let sent: Vec<&str> = sent.collect();
    // (Newer kernels add the name of the action.)
    let is_reset = |line: &str| line.contains("slba=0, zsa=4") && line.ends_with("all=0");
    assert!(matches!(sent[..], [line] if is_reset(line)), "{commands}");
}

#[test]
pub fn zone_violations_are_reported_before_or_by_the_device() {
    let script = format!(
        "{ZONED}{}",
        r#"
cmd verified --rw=write --write_mode=append --size=1z --io_size=1m --verify=crc32c --do_verify=0
again checked --rw=write --write_mode=append --size=1z --io_size=1m --verify=crc32c --verify_only
# A zone is not written in its middle: it is written anew.
dd if=$zoneddisk of=copy bs=64k count=16 iflag=direct status=none
printf damage | dd of=copy bs=1 seek=70000 conv=notrunc status=none
empty; dd if=copy of=$zoneddisk bs=64k oflag=direct status=none || exit
rm copy
again damaged --rw=write --write_mode=append --size=1z --io_size=1m --verify=crc32c --verify_only
again deep --rw=write --write_mode=append --size=1z --io_size=1m --verify=crc32c --verify_only --iodepth=2
again shared --rw=write --write_mode=append --size=1z --io_size=1m --verify=crc32c --numjobs=2
again large --rw=write --write_mode=append --size=1z --bs=1m
again verify --rw=write --write_mode=verify --size=1z
ours alone --ioengine=io_uring_cmd --filename=$zoned --rw=write --bs=64k --size=1m --write_mode=append
ours plain --ioengine=io_uring_cmd --filename=$ng --zonemode=zbd --zonesize=4m --rw=write --bs=64k --size=4m --write_mode=append
ours emulated --ioengine=io_uring_cmd --filename=$ng --zonemode=zbd --zonesize=4m --rw=write --bs=64k --size=8m --iodepth=4 --verify=crc32c --output-format=json
ours none --ioengine=io_uring_cmd --filename=$ng --zonemode=zbd --rw=write --bs=64k --size=4m
ours between --ioengine=io_uring_cmd --filename=$interleaved --pi_act=0 --zonemode=zbd --zonesize=4m --rw=write --bs=520 --size=4m
empty
ours invalid --ioengine=io_uring_cmd --filename=$zoned --rw=write --bs=64k --offset=1m --size=1m
ours null --ioengine=null --size=64k --write_mode=append
true
"#
    );
    let ran = or_skip!(run("nvme-append-errors", &script));
    for name in ["verified", "checked", "emulated"] {
        assert_eq!(json(&ran, name).job().int("error"), 0, "{name}");
    }
    for (name, words) in [
        ("damaged", "offset 65536"),
        ("deep", "use iodepth=1, or verify in the run that writes"),
        ("shared", "another clone empties those of"),
        ("large", "takes at most 524288 bytes with a Zone Append, and not bs=1048576"),
        ("verify", "it moves no write pointers"),
        ("alone", "add zonemode=zbd"),
        ("plain", "has no zones; use write_mode=write"),
        ("none", "give the size of a zone (zonesize=)"),
        ("between", "have metadata between them"),
        (
            "invalid",
            "Zone Invalid Write (status code type 1h, Command Specific Status; status code bch) to Write of 16 blocks at block 256",
        ),
        ("null", "write_mode"),
    ] {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(words), "{name}: {status}: {text}");
    }
}

/// The device receives as many commands of each kind as reported, and its data comes from these commands only.
#[test]
pub fn writes_become_several_commands_by_their_shares() {
    let ran = or_skip!(run(
        "nvme-shares",
        r#"
nvme_namespaces || exit
nvme_commands both.commands ours both --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=800k --iodepth=4 --buffer_pattern=0xabcdef01 --write_mode=write:80,zeroes:20 --deac=1 --output-format=json,normal
for n in 1 2; do ours again$n --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=800k --write_mode=write:80,zeroes:20; done
dd if=$disk bs=4k count=200 iflag=direct status=none | od -An -v -tx1 -w4096 | cut -c1-12 | sort | uniq -c >left
for mode in write:80,zeroes:30 write:80,zeroes write:100,zeroes:0 write,zeroes write:50,write:50 nosuch; do
    ours wrong-$mode --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k --write_mode=$mode
done
ours verified --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k --write_mode=write:80,zeroes:20 --verify=crc32c
"#
    ));
    let (text, status) = told(&ran, "both", "ours");
    assert_eq!(status, 0, "{text}");
    let commands = left(&ran, "both.commands");
    let count = |name: &str| commands.lines().filter(|line| line.contains(name)).count();
    let (wrote, zeroed) = (count("nvme_cmd_write slba"), count("nvme_cmd_write_zeroes"));
    assert_eq!(wrote + zeroed, 200, "{commands}");
    assert!((15..70).contains(&zeroed), "{zeroed}");
    assert!(text.contains(&format!("write_mode: commands were {wrote} write, {zeroed} zeroes")), "{text}");
    assert_eq!(Report::new(&text).json.expect("it is JSON").job().ios(), [0, 200, 0]);
    let again = [1, 2].map(|n| {
        let (text, _) = told(&ran, &format!("again{n}"), "ours");
        text.lines().find(|line| line.contains("commands were")).map(str::to_owned)
    });
    assert!(again[0].is_some() && again[0] == again[1], "the same seed draws the same: {again:?}");
    let counts = left(&ran, "left");
    assert!(counts.contains("00 00 00 00"), "{counts}");
    for (mode, words) in [
        ("write:80,zeroes:30", "the shares are 110 % together"),
        ("write:80,zeroes", "\"zeroes\" has no share"),
        ("write:100,zeroes:0", "a whole percent from 1 to 100"),
        ("write,zeroes", "\"write\" has no share"),
        ("write:50,write:50", "write has two shares"),
        ("nosuch", "none of write, uncor, zeroes, verify, append"),
    ] {
        let (text, status) = told(&ran, &format!("wrong-{mode}"), "ours");
        assert!(status == 1 && text.contains(words), "{mode}: {text}");
    }
    assert!(told(&ran, "verified", "ours").0.contains("does not keep the data of writes"));
}

/// The device compares the data, with the same commands as fio's. A different block is read to describe the difference.
#[test]
pub fn written_data_is_compared_by_the_device() {
    let ran = or_skip!(run(
        "nvme-compare",
        r#"
least=41
nvme_namespaces || exit
cmd() { local who=$1 name=$2; shift 2; nvme_commands $name.$who.commands $who $name --ioengine=io_uring_cmd --filename=$ng --bs=4k --verify_mode=compare "$@"; }
for who in theirs ours; do
    cmd $who pattern --rw=write --size=16k --verify=pattern --verify_pattern=0x5a
    cmd $who only --rw=write --size=16k --verify=pattern --verify_pattern=0x5a --verify_only
    cmd $who reads --rw=read --size=16k --verify=pattern --verify_pattern=0x5a
done
cmd ours header --rw=randwrite --bs=8k --size=256k --verify=crc32c --iodepth=8 --readfua=1 --verify_async=2 --output-format=json
cmd ours backlog --rw=randwrite --size=128k --verify=md5 --verify_backlog=4 --iodepth=4 --output-format=json
cmd ours trimmed --rw=randwrite --size=64k --verify=md5 --trim_percentage=50 --trim_verify_zero=1 --trim_backlog=1
cmd ours left --rw=write --size=16k --verify=pattern --verify_pattern=0x5a --do_verify=0
printf damage | dd of=$disk bs=1 seek=5000 conv=notrunc status=none; sync
cmd ours damaged --rw=write --size=16k --verify=pattern --verify_pattern=0x5a --verify_only
cmd ours counted --rw=write --size=16k --verify=pattern --verify_pattern=0x5a --verify_only --continue_on_error=verify
cmd ours earlier --rw=write --size=16k --verify=crc32c --verify_only
cmd ours without --rw=write --size=16k
ours metadata --ioengine=io_uring_cmd --filename=$separate --rw=write --bs=4k --size=16k --verify=crc32c --verify_mode=compare
ours word --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=16k --verify=crc32c --verify_mode=both
true
"#
    ));
    let commands = |name: &str, who: &str| -> Vec<String> {
        // Iolite flushes writes before it reads them back; fio does not.
        let text = left(&ran, &format!("{name}.{who}.commands"));
        text.lines().filter(|line| !line.contains("nvme_cmd_flush")).map(without_pract).collect()
    };
    let count =
        |name: &str, what: &str| commands(name, "ours").iter().filter(|line| line.contains(what)).count();
    for name in ["pattern", "only", "reads"] {
        assert_eq!(told(&ran, name, "ours").1, 0, "{name}: {}", told(&ran, name, "ours").0);
        if told_by_peer(&ran, name, 0).0.is_empty() {
            partly_skipped(&this_test!(), "there is no fio of release 3.41 or later");
            continue;
        }
        assert_eq!(commands(name, "ours"), commands(name, "theirs"), "{name}");
    }
    assert_eq!((count("pattern", "nvme_cmd_compare"), count("only", "nvme_cmd_compare")), (4, 4));
    assert!(told(&ran, "reads", "ours").0.contains("has no effect: a job that only reads"));
    for name in ["header", "backlog"] {
        let job = json(&ran, name);
        assert_eq!(job.job().int("error"), 0, "{name}");
        assert_eq!(count(name, "nvme_cmd_compare") as u64, job.job().ios()[0], "{name}");
        assert_eq!(count(name, "nvme_cmd_read"), 0, "{name}");
    }
    assert_eq!(told(&ran, "trimmed", "ours").1, 0, "{}", told(&ran, "trimmed", "ours").0);
    // With continue_on_error, a mismatch is counted and is not a failure.
    for (name, status) in [("damaged", 1), ("counted", 0)] {
        let (text, ended) = told(&ran, name, "ours");
        assert!(text.contains("offset 4096") && text.contains("pattern"), "{name}: {text}");
        assert_eq!(ended, status, "{name}: {text}");
        assert_eq!(count(name, "nvme_cmd_read"), 1, "the different block is read: {name}");
    }
    assert_eq!(count("counted", "nvme_cmd_compare"), 4);
    for (name, words) in [
        ("earlier", "because its headers contain the time of the write"),
        ("metadata", "have metadata, which is not compared yet"),
        ("word", "verify_mode=both"),
    ] {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(words), "{name}: {text}");
    }
    assert!(told(&ran, "without", "ours").0.contains("verify_mode=compare: has no effect: without verify="));
}

#[test]
fn the_example_runs() {
    let words = example("DISK=$zoned", "zone-append.fio").replace("size=1M", "size=1z");
    let words = format!("nvme_namespaces && blkzone reset $zoneddisk && {words}");
    let ran = or_skip!(run("nvme-append-example", &words));
    assert!(json(&ran, "example").jobs().iter().all(|job| job.int("error") == 0));
}
