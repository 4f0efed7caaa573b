//! `io_uring_cmd` on the namespaces of an NVMe device that QEMU emulates.

use super::{compare, example, report, run, told, told_by_peer};
use crate::common::comparison::Report;
use crate::common::json::Json;
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, this_test};
use std::fs;

/// The report of a job that succeeded.
#[track_caller]
fn json(ran: &Ran, name: &str) -> Json {
    report(ran, name).json.expect("the report is in JSON as well")
}

/// A file that a script has left.
#[track_caller]
fn left(ran: &Ran, name: &str) -> String {
    fs::read_to_string(ran.directory.join(name))
        .unwrap_or_else(|_| panic!("{name} is missing\n{}", ran.output))
}

#[test]
fn namespaces_are_read_written_trimmed_and_flushed_by_commands() {
    let ran = or_skip!(run(
        "nvme",
        r#"
least=41
nvme_namespaces || exit
cmd() { local name=$1; shift; both $name --ioengine=io_uring_cmd --cmd_type=nvme "$@"; }
cmd deep --filename=$ng --rw=randrw --bs=4k --size=1m --iodepth=8 --verify=crc32c
cmd large --filename=$ng4k --rw=write --bs=128k --size=2m --iodepth=4 --verify=md5 --fsync=4
cmd end --filename=$ng --rw=read --bs=4k --offset=31m --size=4m
cmd two --filename=$ng:$ng4k --rw=write --bs=64k --size=2m --iodepth=4 --verify=crc32c
ours whole --ioengine=io_uring_cmd --filename=$ng --rw=trim --bs=1m --iodepth=4 --output-format=json
od -An -tx1 $disk | sort -u | head -c 100 >left
"#
    ));
    let deep = json(&ran, "deep");
    assert_eq!(deep.job().bytes().iter().sum::<u64>(), (1 << 20) + deep.job().bytes()[1]);
    assert!(deep.job().float("iodepth_level.8") > 50.0, "commands are under way together");
    let large = json(&ran, "large");
    assert_eq!((large.job().ios(), large.job().int("sync.total_ios")), ([16, 16, 0], 3));
    assert_eq!(json(&ran, "end").job().bytes(), [1 << 20, 0, 0], "the namespace told its size");
    assert_eq!(json(&ran, "whole").job().bytes(), [0, 0, 32 << 20]);
    let left = left(&ran, "left");
    assert!(left.split_whitespace().all(|byte| byte == "00" || byte == "*"), "{left}");
    compare(&ran, &["end", "large", "two"], &this_test!());
}

/// The same commands with the same blocks and flags as fio's, and the same bytes on the device: the driver tells which
/// commands it was given.
#[test]
pub fn commands_are_those_of_fio() {
    let jobs = [
        ("read", "--rw=read"),
        ("readfua", "--rw=read --readfua=1"),
        ("write", "--rw=write"),
        ("writefua", "--rw=write --writefua=1"),
        ("zeroes", "--rw=write --write_mode=zeroes"),
        ("deac", "--rw=write --write_mode=zeroes --deac=1"),
        ("verify", "--rw=write --write_mode=verify"),
        ("uncor", "--rw=write --write_mode=uncor"),
        ("trim", "--rw=trim"),
        ("ranges", "--rw=trim --num_range=3"),
        ("synced", "--rw=write --fsync=2"),
        ("plain", "--rw=write --nonvectored=1"),
        ("vectored", "--rw=write --nonvectored=0"),
        ("fixed", "--rw=write --fixedbufs"),
    ];
    let mut script = "least=41\nnvme_namespaces || exit\n".to_owned();
    for (name, words) in jobs {
        // What 3.41 does not know.
        let who = if name == "deac" { "ours" } else { "theirs ours" };
        script.push_str(&format!(
            "for who in {who}; do\n\
             blkdiscard -f $disk; echo pattern | dd of=$disk conv=notrunc oflag=sync status=none; \
             nvme_commands {name}.$who.commands $who {name} --ioengine=io_uring_cmd --filename=$ng --bs=4k --size=16k \
             --buffer_pattern=0xabcdef01 {words}\n\
             dd if=$disk bs=64k count=1 iflag=direct status=none | md5sum >{name}.$who.sum\n\
             done\n"
        ));
    }
    let ran = or_skip!(run("nvme-commands", &script));
    for (name, _) in jobs {
        let (text, status) = told(&ran, name, "ours");
        let ours = left(&ran, &format!("{name}.ours.commands"));
        let count = match name {
            "uncor" => 1,
            "ranges" => 2,
            "synced" => 5,
            _ => 4,
        };
        assert_eq!(ours.lines().count(), count, "{name}: {ours}\n{text}");
        assert_eq!(status, i32::from(name == "uncor"), "{name}: {text}");
        if name == "deac" || told_by_peer(&ran, name, 0).0.is_empty() {
            if name == "read" {
                partly_skipped(&this_test!(), "there is no fio of release 3.41 or later");
            }
            continue;
        }
        let theirs = left(&ran, &format!("{name}.theirs.commands"));
        let theirs: Vec<String> = theirs.lines().map(without_pract).collect();
        assert_eq!(ours.lines().collect::<Vec<_>>(), theirs, "{name}");
        assert_eq!(
            left(&ran, &format!("{name}.ours.sum")),
            left(&ran, &format!("{name}.theirs.sum")),
            "{name}: what is on the device"
        );
    }
    let first = |name: &str| {
        let commands = left(&ran, &format!("{name}.ours.commands"));
        commands.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first("read"), "nsid=1 nvme_cmd_read slba=0, len=7, ctrl=0x0, dsmgmt=0, reftag=0");
    assert_eq!(first("readfua"), "nsid=1 nvme_cmd_read slba=0, len=7, ctrl=0x4000, dsmgmt=0, reftag=0");
    assert_eq!(first("writefua"), "nsid=1 nvme_cmd_write slba=0, len=7, ctrl=0x4000, dsmgmt=0, reftag=0");
    assert!(first("trim").starts_with("nsid=1 nvme_cmd_dsm nr=0, attributes=4"), "{}", first("trim"));
    assert!(first("ranges").starts_with("nsid=1 nvme_cmd_dsm nr=2, attributes=4"), "{}", first("ranges"));
    // The driver tells of some commands only the bytes: dwords 10 to 15.
    assert!(
        first("deac").contains("ctrl=0x200") || first("deac").contains("07 00 00 02"),
        "{}",
        first("deac")
    );
    assert!(
        told(&ran, "uncor", "ours").0.contains("Invalid Command Opcode"),
        "QEMU has no Write Uncorrectable"
    );
}

/// A command without PRACT (bit 29 of dword 12): fio sets it in all of them, whether or not there is any protection
/// information that the device could make.
fn without_pract(line: &str) -> String {
    if let Some((before, after)) = line.split_once("ctrl=0x") {
        let (control, rest) = after.split_once(',').expect("there is more");
        let control = u32::from_str_radix(control, 16).expect("it is a number") & !0x2000;
        return format!("{before}ctrl=0x{control:x},{rest}");
    }
    let Some((before, bytes)) = line.split_once("cdw10=") else { return line.to_owned() };
    let mut bytes: Vec<String> = bytes.split(' ').map(str::to_owned).collect();
    let flags = u8::from_str_radix(&bytes[11], 16).expect("it is a byte") & !0x20;
    bytes[11] = format!("{flags:02x}");
    format!("{before}cdw10={}", bytes.join(" "))
}

#[test]
pub fn rings_are_as_the_options_say() {
    let ran = or_skip!(run(
        "nvme-rings",
        r#"
nvme_namespaces poll_queues=1 || exit
cmd() { local name=$1; shift; ours $name --ioengine=io_uring_cmd --filename=$ng --rw=randrw --bs=4k --size=128k --iodepth=8 --verify=crc32c --output-format=json "$@"; }
cmd fixedbufs --fixedbufs
cmd registerfiles --registerfiles
cmd sqthread_poll --sqthread_poll
cmd sqthread_poll_cpu --sqthread_poll --sqthread_poll_cpu=1
cmd hipri --hipri --fsync=16
cmd nonvectored --nonvectored=1
cmd vectored --nonvectored=0
cmd force_async --force_async=4
cmd all --fixedbufs --registerfiles --hipri --sqthread_poll
dmesg | grep -i 'warning\|bug:' >kernel
true
"#
    ));
    for name in [
        "fixedbufs",
        "registerfiles",
        "sqthread_poll",
        "sqthread_poll_cpu",
        "hipri",
        "nonvectored",
        "vectored",
        "force_async",
        "all",
    ] {
        let job = json(&ran, name);
        assert_eq!(job.job().bytes()[1] + job.job().bytes()[0], (128 << 10) + job.job().bytes()[1], "{name}");
    }
    assert_eq!(left(&ran, "kernel"), "");
}

#[test]
pub fn what_is_refused_is_told_with_what_helps() {
    let ran = or_skip!(run(
        "nvme-errors",
        r#"
least=41
nvme_namespaces || exit
cmd() { local name=$1; shift; both $name --ioengine=io_uring_cmd --bs=4k --size=64k "$@"; }
cmd uncor --filename=$ng --rw=write --write_mode=uncor
cmd block --filename=$disk --rw=read
truncate -s 1m regular
cmd regular --filename=regular --rw=read
cmd null --filename=/dev/null --rw=read
cmd part --filename=$ng4k --rw=read --bs=512
ours large --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4m --size=4m
ours goes-on --ioengine=io_uring_cmd --filename=$ng --bs=4k --size=64k --rw=write --write_mode=uncor --ignore_error=,EOPNOTSUPP --output-format=json
ours verify --ioengine=io_uring_cmd --filename=$ng --rw=write --write_mode=zeroes --bs=4k --size=64k --verify=crc32c
ours bsg --ioengine=io_uring_cmd --cmd_type=bsg --filename=$ng --rw=read
ours readonly --ioengine=io_uring_cmd --filename=$ng --rw=write --write_mode=verify --bs=4k --readonly
ours idle --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4k --size=64k --deac=1 --nowait=1 --cmdprio_percentage=10 --cdb_len=16
mkfs.ext4 -q $disk && mkdir -p /run/mounted && mount $disk /run/mounted || exit
ours mounted --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k
ours reads --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4k --size=64k
umount /run/mounted
chmod 666 $ng
chmod 777 .
setpriv --reuid=65534 --regid=65534 --clear-groups "$IOLITE" --name=j --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4k --size=64k >nobody.ours 2>&1
echo $? >nobody.ours.status
ours gone --ioengine=io_uring_cmd --filename=/dev/ng99n1 --rw=read --bs=4k --size=64k
"#
        .replace("\"$IOLITE\"", &format!("'{}'", crate::common::Program::under_test().path.display()))
        .as_str()
    ));
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    refused(
        "uncor",
        "Invalid Command Opcode (status code type 0h, Generic Command Status; status code 01h) to Write Uncorrectable of 8 \
         blocks at block 0",
    );
    let wrong = "is not the generic device of an NVMe namespace (/dev/ng0n1)";
    for name in ["block", "regular", "null"] {
        refused(name, wrong);
    }
    refused("part", "blocks of 4096 bytes");
    refused("large", "max_hw_sectors_kb");
    refused("verify", "with this write_mode the device does not keep the data of writes");
    refused("bsg", "which Linux has since 7.1");
    refused("readonly", "--readonly forbids that");
    refused("mounted", "it is mounted on /run/mounted; allow_mounted_write=1 overrides this");
    refused("nobody", "for root only (CAP_SYS_ADMIN)");
    refused("gone", "/dev/ng99n1 does not exist");
    let (goes_on, status) = told(&ran, "goes-on", "ours");
    let counted = Report::new(&goes_on).json.map(|json| json.job().ios());
    assert_eq!((status, counted), (0, Some([0, 16, 0])), "{goes_on}");
    let (idle, status) = told(&ran, "idle", "ours");
    assert_eq!((status, idle.matches("has no effect").count()), (0, 4), "{idle}");
    assert_eq!(told(&ran, "reads", "ours").1, 0, "what only reads may");
    for name in ["uncor", "block", "regular", "null", "part"] {
        if let (text, status @ (0 | 2..)) = told_by_peer(&ran, name, 1) {
            panic!("{name}: the peer ends with {status}: {text}");
        }
    }
}

#[test]
fn the_example_runs() {
    let ran = or_skip!(run(
        "nvme-example",
        &format!("nvme_namespaces && {}", example("DISK=$ng", "nvme-commands.fio"))
    ));
    let json = json(&ran, "example");
    let ios: Vec<[u64; 3]> = json.jobs().iter().map(|job| job.ios()).collect();
    assert_eq!(ios, [[256, 0, 0], [0, 16, 0], [0, 0, 1]]);
}
