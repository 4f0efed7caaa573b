//! `sg` on a simulated SCSI disk (scsi_debug), through both of its device nodes.

use super::{compare, example, report, run, told};
use crate::common::Program;
use crate::common::json::Json;
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, this_test};

/// The report of a job that succeeded.
#[track_caller]
fn json(ran: &Ran, name: &str) -> Json {
    report(ran, name).json.expect("the report is in JSON as well")
}

#[test]
fn disks_are_read_written_and_trimmed_by_commands() {
    let ran = or_skip!(run(
        "sg",
        r#"
scsi_disk dev_size_mb=16 lbpu=1 lbprz=1 || exit
both deep --ioengine=sg --filename=$sg --rw=randrw --bs=4k --size=1m --iodepth=8 --verify=crc32c
ours more --ioengine=sg --filename=$sg --rw=randwrite --bs=4k --size=1m --iodepth=40 --verify=md5 --output-format=json
ours clones --ioengine=sg --filename=$sg --rw=randrw --bs=4k --size=1m --iodepth=8 --verify=crc32c --numjobs=3 --group_reporting --output-format=json
both block --ioengine=sg --filename=$disk --rw=write --bs=64k --size=1m --fsync=4
ours whole --ioengine=sg --filename=$sg --rw=trim --bs=1m --iodepth=4 --output-format=json
both end --ioengine=sg --filename=$sg --rw=read --bs=4k --offset=15m --size=4m
od -An -tx1 -N 1048576 $disk | sort -u | head -c 100 >left
"#
    ));
    let deep = json(&ran, "deep");
    assert_eq!(deep.job().bytes().iter().sum::<u64>(), (1 << 20) + deep.job().bytes()[1]);
    assert!(deep.job().float("iodepth_level.8") > 50.0, "commands are under way together");
    assert_eq!(json(&ran, "more").job().ios(), [256, 256, 0], "a file takes 16 commands at a time");
    assert_eq!(json(&ran, "clones").job().int("error"), 0, "jobs on one node take turns");
    assert_eq!(json(&ran, "block").job().ios(), [0, 16, 0]);
    assert_eq!(json(&ran, "block").job().int("sync.total_ios"), 3);
    assert_eq!(json(&ran, "whole").job().bytes(), [0, 0, 16 << 20], "the default size is that of the disk");
    assert_eq!(json(&ran, "end").job().bytes(), [1 << 20, 0, 0]);
    let left = std::fs::read_to_string(ran.directory.join("left")).unwrap();
    assert!(left.split_whitespace().all(|byte| byte == "00" || byte == "*"), "{left}");
    compare(&ran, &["end", "block"], &this_test!());
}

#[test]
fn the_example_runs() {
    let ran = or_skip!(run(
        "sg-example",
        &format!("scsi_disk dev_size_mb=16 delay=0 && {}", example("DISK=$sg", "scsi-commands.fio"))
    ));
    let json = json(&ran, "example");
    let jobs = json.jobs();
    assert_eq!(jobs.iter().map(|job| job.ios()).collect::<Vec<_>>(), [[16, 0, 0], [0, 16, 0]]);
}

/// The SCSI commands and flags of the system calls of a job.
#[track_caller]
fn commands(ran: &Ran, name: &str) -> Vec<String> {
    let log = std::fs::read_to_string(ran.directory.join(format!("{name}.calls"))).unwrap();
    let of_disks = log.lines().filter(|line| line.contains("SG_IO") && !line.contains("x25\\x00"));
    let field = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}="))?.1;
        Some(rest.split([',', ' ']).next()?.trim_matches('"').to_owned())
    };
    let command = |line: &str| {
        let bytes = field(line, "cmdp")?.replace("\\x", "");
        Some(format!("{bytes} {} {}", field(line, "dxfer_len")?, field(line, "flags")?))
    };
    let found: Vec<String> = of_disks.filter_map(command).collect();
    assert!(!found.is_empty(), "{log}");
    found
}

/// Each option and each mode of writing is visible in the commands.
#[test]
pub fn options_are_parts_of_the_commands() {
    let ran = or_skip!(run(
        "sg-options",
        r#"
scsi_disk dev_size_mb=16 lbpu=1 ndelay=0 || exit
command -v strace >/dev/null || exit 77
calls() {
    local name=$1; shift
    strace -f -xx -s 64 -e trace=ioctl -o $name.calls IOLITE --name=j --ioengine=sg --filename=$disk --bs=4k --size=4k "$@" >$name.ours 2>&1
    echo $? >$name.ours.status
}
calls plain --rw=read
calls readfua --rw=read --readfua=1
calls hipri --rw=read --hipri
calls write --rw=write
calls writefua --rw=write --writefua=1
for mode in write_and_verify verify write_same same write_same_ndob verify_bytchk_00 verify_bytchk_01 verify_bytchk_11; do
    calls $mode --rw=write --sg_write_mode=$mode --writefua=1 --continue_on_error=write
done
calls stream --rw=write --sg_write_mode=write_stream --stream_id=7
calls opened --rw=write --sg_write_mode=write_stream
calls trim --rw=trim
disk=$sg calls synced --rw=write --end_fsync=1
"#
        .replace("IOLITE", &Program::under_test().path.display().to_string())
        .as_str()
    ));
    let lines = |name| commands(&ran, name);
    assert_eq!(lines("plain"), ["28000000000000000800 4096 0"]);
    assert_eq!(lines("readfua"), ["28080000000000000800 4096 0"]);
    assert_eq!(lines("hipri"), ["28000000000000000800 4096 0x800"]);
    assert_eq!(lines("write"), ["2a000000000000000800 4096 0"]);
    assert_eq!(lines("writefua"), ["2a080000000000000800 4096 0"]);
    for name in ["write_and_verify", "verify"] {
        assert_eq!(lines(name), ["2e000000000000000800 4096 0"], "writefua is ignored");
    }
    for name in ["write_same", "same"] {
        assert_eq!(lines(name), ["41000000000000000800 512 0"]);
    }
    assert_eq!(lines("write_same_ndob"), ["93010000000000000000000000080000 0 0"]);
    assert_eq!(lines("verify_bytchk_00"), ["2f000000000000000800 0 0"]);
    assert_eq!(lines("verify_bytchk_01"), ["2f020000000000000800 4096 0"]);
    assert_eq!(lines("verify_bytchk_11"), ["2f060000000000000800 512 0"]);
    assert_eq!(lines("trim"), ["42000000000000001800 24 0"]);
    assert_eq!(lines("stream"), ["9a000000000000000000000700080000 4096 0"]);
    assert_eq!(lines("synced"), ["35000000000000000000 0 0"], "writes to the generic device are not ioctls");
    assert_eq!(lines("opened"), ["9e340000000000000000000000080000 8 0"], "the disk has no streams");
}

#[test]
fn refused_commands_are_reported_in_the_disks_words() {
    let ran = or_skip!(run(
        "sg-errors",
        r#"
scsi_disk dev_size_mb=16 || exit
sg() { local name=$1; shift; both $name --ioengine=sg --bs=4k --size=64k "$@"; }
sg differs --filename=$sg --rw=write --sg_write_mode=verify_bytchk_01
ours block --ioengine=sg --filename=$disk --rw=write --bs=4k --size=64k --sg_write_mode=verify_bytchk_01
ours part --ioengine=sg --filename=$sg --rw=read --bs=1000 --size=64k
ours part_of_block --ioengine=sg --filename=$disk --rw=read --bs=1000 --size=64k
ours stream --ioengine=sg --filename=$sg --rw=write --sg_write_mode=write_stream --bs=4k --size=64k
sg direct --filename=$sg --rw=read --direct=1
truncate -s 1m image && attached=$(losetup -f --show image) || exit
sg loop --filename=$attached --rw=read
losetup -d $attached
sg null --filename=/dev/null --rw=read
truncate -s 1m regular
sg regular --filename=regular --rw=read
ours readonly --ioengine=sg --filename=$sg --rw=write --sg_write_mode=verify_bytchk_00 --bs=4k --readonly
ours verify --ioengine=sg --filename=$sg --rw=write --sg_write_mode=write_same --bs=4k --size=64k --verify=crc32c
mkfs.ext4 -q $disk && mkdir -p /run/mounted && mount $disk /run/mounted || exit
ours mounted --ioengine=sg --filename=$sg --rw=write --sg_write_mode=verify_bytchk_00 --bs=4k --size=64k
ours allowed --ioengine=sg --filename=$sg --rw=write --sg_write_mode=verify_bytchk_00 --bs=4k --size=64k --allow_mounted_write=1
umount /run/mounted
modprobe -r scsi_debug
ours gone --ioengine=sg --filename=/dev/sg99 --rw=read --bs=4k --size=64k
"#
    ));
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    for name in ["differs", "block"] {
        refused(name, "Input/output error (miscompare (sense key eh, code 1dh/00h) to command 2f 02 00");
    }
    for name in ["part", "part_of_block"] {
        refused(
            name,
            "Invalid argument (the disk has blocks of 512 bytes, and a command must cover whole blocks): read offset=0, buflen=1000",
        );
    }
    refused(
        "stream",
        "the disk opens no stream (STREAM CONTROL): illegal request (sense key 5h, code 24h/00h) to command 9e 34 00",
    );
    refused("stream", "stream_id=NUMBER writes to a stream that is open already, error=Input/output error");
    refused("direct", "a character device has no cache to bypass; leave direct out, error=Invalid argument");
    refused(
        "loop",
        "it is not a disk that takes SCSI commands (/dev/sda or /dev/sg0), error=Invalid argument",
    );
    refused("null", "ioengine=sg: /dev/null is not a disk that takes SCSI commands");
    refused("regular", "ioengine=sg: regular is not a disk that takes SCSI commands");
    refused("readonly", "--readonly forbids that");
    refused("verify", "with this sg_write_mode the disk does not keep the data of writes");
    refused("mounted", "it is mounted on /run/mounted; allow_mounted_write=1 overrides this");
    refused("gone", "/dev/sg99 does not exist");
    assert_eq!(told(&ran, "allowed", "ours").1, 0, "{}", told(&ran, "allowed", "ours").0);
    for name in ["differs", "direct", "loop", "null", "regular"] {
        if let (text, status @ (0 | 2..)) = super::told_by_peer(&ran, name, 1) {
            panic!("{name}: the peer ends with {status}: {text}");
        }
    }
}

/// The shell function `ring NAME WORD…`, which runs a job that sends commands through a ring.
const RING: &str = r#"
ring() { local name=$1; shift; ours $name --ioengine=io_uring_cmd --cmd_type=bsg --filename=${bsg//:/\\:} --bs=4k "$@"; }
"#;

/// Whether the kernel supports SCSI commands through rings. If not, a job has to say so before it does anything.
#[track_caller]
fn passes(ran: &Ran) -> bool {
    let (text, status) = told(ran, "first", "ours");
    if status == 0 {
        return true;
    }
    assert!(text.contains("which Linux does since 7.1; ioengine=sg sends them with every kernel"), "{text}");
    let left = std::fs::read_to_string(ran.directory.join("first.left")).unwrap();
    assert_eq!(left.trim(), "0", "nothing has been written");
    partly_skipped(
        &this_test!(),
        "the kernel of the virtual machine has no SCSI commands from rings (7.1 has)",
    );
    false
}

/// The data is the same through all device nodes.
#[test]
fn commands_go_through_rings() {
    let script = r#"
scsi_disk dev_size_mb=16 lbpu=1 lbprz=1 delay=0 || exit
ring first --rw=write --size=1m
cmp -n 1048576 $disk /dev/zero >/dev/null && echo 0 >first.left || echo 1 >first.left
ours colons --ioengine=io_uring_cmd --cmd_type=bsg --filename=$bsg --rw=read --size=1m
ours node --ioengine=io_uring_cmd --cmd_type=bsg --filename=$sg --rw=read --size=1m
ring readonly --rw=write --write_mode=verify --readonly
mkfs.ext4 -q $disk && mkdir -p /run/mounted && mount $disk /run/mounted || exit
ring mounted --rw=write --size=64k
umount /run/mounted
mkswap -q $disk && swapon $disk || exit
ring swap --rw=write --size=64k
swapoff $disk
'PROGRAM' device --json $bsg >device.json || exit
grep -q '^0$' first.left && exit
ring deep --rw=randrw --size=1m --iodepth=8 --verify=crc32c --output-format=json,normal
ring rings --rw=randwrite --size=1m --iodepth=8 --verify=md5 --fixedbufs --registerfiles --sqthread_poll --force_async=4 --output-format=json,normal
ring compared --rw=randwrite --size=1m --iodepth=4 --verify=crc32c --verify_mode=compare --output-format=json,normal
ring filled --rw=write --bs=64k --size=1m --fsync=4 --end_fsync=1 --verify=pattern --verify_pattern=0x61 --do_verify=0 --output-format=json,normal
dd if=/dev/zero of=$disk bs=512 count=1 seek=100 oflag=direct conv=notrunc status=none
ring differs --rw=write --bs=64k --size=1m --verify=pattern --verify_pattern=0x61 --verify_only --verify_mode=compare
ring trimmed --rw=trim --bs=64k --size=512k --iodepth=4 --output-format=json,normal
od -An -tx1 -j 65536 -N 458752 $disk | sort -u | head -c 100 >trimmed.left
od -An -tx1 -j 524288 -N 524288 $disk | sort -u | head -c 100 >filled.left
ring zeroes --rw=write --size=1m --write_mode=zeroes --output-format=json,normal
od -An -tx1 -N 1048576 $disk | sort -u | head -c 100 >zeroes.left
ring shares --rw=write --size=1m --write_mode=write:50,zeroes:50
ring refused --rw=write --size=512 --bs=512 --write_mode=uncor
ring single --rw=write --size=4k --write_mode=uncor
ring part --rw=read --bs=1000 --size=64k
ring end --rw=read --bs=4k --offset=15m --size=4m --output-format=json,normal
"#;
    let script = script.replace("PROGRAM", &Program::own().path.display().to_string());
    let ran = or_skip!(run("bsg", &format!("{RING}{script}")));
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    refused("colons", "/dev/bsg/");
    refused("node", "is not the bsg node of a SCSI disk");
    refused("readonly", "--readonly forbids that");
    refused("mounted", "it is mounted on /run/mounted; allow_mounted_write=1 overrides this");
    refused("swap", "it is used as swap");
    let device = std::fs::read_to_string(ran.directory.join("device.json")).unwrap();
    assert!(device.contains("\"scsi_debug\"") && device.contains("\"size_bytes\": 16777216"), "{device}");
    if !passes(&ran) {
        return;
    }
    let deep = json(&ran, "deep");
    assert_eq!(deep.job().bytes().iter().sum::<u64>(), (1 << 20) + deep.job().bytes()[1]);
    assert!(deep.job().float("iodepth_level.8") > 50.0, "commands are under way together");
    for name in ["rings", "compared"] {
        assert_eq!(json(&ran, name).job().ios(), [256, 256, 0], "{name}");
    }
    assert_eq!(json(&ran, "filled").job().int("sync.total_ios"), 3);
    refused("differs", "verify");
    let left = |name: &str| std::fs::read_to_string(ran.directory.join(format!("{name}.left"))).unwrap();
    let is_only = |name: &str, byte: &str| {
        let left = left(name);
        assert!(left.split_whitespace().all(|it| it == byte || it == "*"), "{name}: {left}");
    };
    assert_eq!(json(&ran, "trimmed").job().ios(), [0, 0, 8]);
    is_only("trimmed", "00");
    is_only("filled", "61");
    is_only("zeroes", "00");
    let (shares, status) = told(&ran, "shares", "ours");
    assert!(status == 0 && shares.contains("write_mode: commands were"), "{shares}");
    refused("refused", "illegal request (sense key 5h, code 20h/00h) to command 3f 40 00");
    refused(
        "single",
        "WRITE LONG makes one block unreadable, and the disk has blocks of 512 bytes; use bs=512",
    );
    refused("part", "blocks of 512 bytes");
    assert_eq!(json(&ran, "end").job().bytes(), [1 << 20, 0, 0], "the default size is that of the disk");
}

/// Each option is visible in the commands that the adapter receives.
#[test]
pub fn options_are_parts_of_commands_through_rings() {
    let script = r#"
scsi_disk dev_size_mb=16 lbpu=1 delay=0 || exit
ring first --rw=write --size=4k
cmp -n 4096 $disk /dev/zero >/dev/null && echo 0 >first.left || echo 1 >first.left
grep -q '^0$' first.left && exit
is() { local name=$1; shift; scsi_commands $name.commands ring $name --size=4k "$@"; }
is read --rw=read
is readfua --rw=read --readfua=1
is prefetch --rw=read --read_mode=prefetch
is read16 --rw=read --cdb_len=16
is read32 --rw=read --cdb_len=32
is prefetch16 --rw=read --read_mode=prefetch --cdb_len=16
is write --rw=write
is writefua --rw=write --writefua=1
is write16 --rw=write --cdb_len=16
is write32 --rw=write --cdb_len=32
is verify --rw=write --write_mode=verify
is verify1 --rw=write --write_mode=verify --verify_bytchk=1 --zero_buffers
is verify3 --rw=write --write_mode=verify --verify_bytchk=3 --cdb_len=16
is zeroes --rw=write --write_mode=zeroes
is deac --rw=write --write_mode=zeroes --deac=1
is trim --rw=trim
is synced --rw=write --end_fsync=1
is compare --rw=write --verify=crc32c --verify_mode=compare
"#;
    let ran = or_skip!(run("bsg-options", &format!("{RING}{script}")));
    if !passes(&ran) {
        return;
    }
    let commands = |name: &str| {
        let text = std::fs::read_to_string(ran.directory.join(format!("{name}.commands"))).unwrap();
        text.lines().map(|line| line.replace(' ', "")).collect::<Vec<_>>()
    };
    let (zeros, long) = ("00".repeat(7), "7f0000000000001800");
    for (name, expected) in [
        ("read", "28000000000000000800".to_owned()),
        ("readfua", "28080000000000000800".to_owned()),
        ("prefetch", "34000000000000000800".to_owned()),
        ("read16", "88000000000000000000000000080000".to_owned()),
        ("read32", format!("{long}0900{}00000008", "00".repeat(17))),
        ("prefetch16", "90000000000000000000000000080000".to_owned()),
        ("write", "2a000000000000000800".to_owned()),
        ("writefua", "2a080000000000000800".to_owned()),
        ("write16", "8a000000000000000000000000080000".to_owned()),
        ("write32", format!("{long}0b00{}00000008", "00".repeat(17))),
        ("verify", "2f000000000000000800".to_owned()),
        ("verify1", "2f020000000000000800".to_owned()),
        ("verify3", "8f060000000000000000000000080000".to_owned()),
        ("zeroes", "93010000000000000000000000080000".to_owned()),
        ("deac", "93090000000000000000000000080000".to_owned()),
        ("trim", format!("42{zeros}1800")),
    ] {
        assert_eq!(commands(name), [expected], "{name}: {}", told(&ran, name, "ours").0);
    }
    assert_eq!(commands("synced"), ["2a000000000000000800", "35000000000000000000"]);
    let synced = ["2a000000000000000800", "35000000000000000000", "2f020000000000000800"];
    assert_eq!(commands("compare"), synced, "writes are synced before they are compared");
}

#[test]
fn the_example_of_rings_runs() {
    let script = r#"
scsi_disk dev_size_mb=16 delay=0 || exit
ring first --rw=read --size=4k
echo 0 >first.left
"#;
    let run_example = example(r"DISK=${bsg//:/\\:}", "scsi-ring.fio");
    let ran = or_skip!(run("bsg-example", &format!("{RING}{script}{run_example}\n")));
    if !passes(&ran) {
        return;
    }
    let ios = json(&ran, "example").jobs().iter().map(|job| job.ios()).collect::<Vec<_>>();
    assert_eq!(ios, [[16, 0, 0], [16, 0, 0], [16, 0, 0], [0, 16, 0]]);
}
