//! `io_uring_cmd` on the namespaces of an emulated NVMe device (QEMU).

use super::{
    NO_PLACEMENT, compare, example, report, run as run_usual, run_newest as run, told, told_by_peer,
};
use crate::common::comparison::Report;
use crate::common::json::Json;
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, this_test};
use std::fs;

/// The report of a job that succeeded.
#[track_caller]
pub(super) fn json(ran: &Ran, name: &str) -> Json {
    report(ran, name).json.expect("the report is in JSON as well")
}

/// A file that a script has left.
#[track_caller]
pub(super) fn left(ran: &Ran, name: &str) -> String {
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
ours clones --ioengine=io_uring_cmd --filename=$ng --rw=randrw --bs=4k --size=1m --iodepth=8 --verify=crc32c --numjobs=3 --group_reporting --output-format=json
cmd end --filename=$ng --rw=read --bs=4k --offset=31m --size=4m
cmd two --filename=$ng:$ng4k --rw=write --bs=64k --size=2m --iodepth=4 --verify=crc32c
tr '\0' x </dev/zero | dd of=$disk bs=1M count=32 iflag=fullblock oflag=direct status=none || exit
ours whole --ioengine=io_uring_cmd --filename=$ng --rw=trim --bs=1m --iodepth=4 --output-format=json
tr -d '\0' <$disk | wc -c >left
"#
    ));
    let deep = json(&ran, "deep");
    assert_eq!(deep.job().bytes().iter().sum::<u64>(), (1 << 20) + deep.job().bytes()[1]);
    assert!(deep.job().float("iodepth_level.8") > 50.0, "commands are under way together");
    let large = json(&ran, "large");
    assert_eq!((large.job().ios(), large.job().int("sync.total_ios")), ([16, 16, 0], 3));
    assert_eq!(json(&ran, "clones").job().int("error"), 0, "jobs on one node take turns");
    assert_eq!(json(&ran, "end").job().bytes(), [1 << 20, 0, 0], "the default size is that of the namespace");
    assert_eq!(json(&ran, "whole").job().bytes(), [0, 0, 32 << 20]);
    assert_eq!(left(&ran, "left").trim(), "0", "bytes of the pattern that was there");
    compare(&ran, &["end", "large", "two"], &this_test!());
}

/// The commands have the same blocks and flags as fio's, according to the driver's trace, and leave the same data on
/// the device.
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
        // All buffers together have more pages than one command may have.
        ("fixed", "--rw=write --fixedbufs --bs=64k --size=2m --iodepth=32"),
    ];
    let mut script = "least=41\nnvme_namespaces || exit\n".to_owned();
    for (name, words) in jobs {
        // 3.41 does not have this option.
        let who = if name == "deac" { "ours" } else { "theirs ours" };
        script.push_str(&format!(
            "for who in {who}; do\n\
             blkdiscard -f $disk; echo pattern | dd of=$disk conv=notrunc oflag=sync status=none; \
             nvme_commands {name}.$who.commands $who {name} --ioengine=io_uring_cmd --filename=$ng --bs=4k --size=16k \
             --buffer_pattern=0xabcdef01 {words}\n\
             dd if=$disk bs=1M count=2 iflag=direct status=none | md5sum >{name}.$who.sum\n\
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
            "fixed" => 32,
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
    // The trace shows some commands only as the bytes of dwords 10 to 15.
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

/// Older kernels refuse a command if too many pages of its registered buffer lie behind it.
#[test]
fn registered_buffers_are_taken_by_older_kernels() {
    let ran = or_skip!(run_usual(
        "nvme-fixed",
        "least=41\nnvme_namespaces || exit\n\
         both fixed --ioengine=io_uring_cmd --filename=$ng4k --rw=randwrite --bs=64k --size=4m --iodepth=32 --fixedbufs \
         --verify=crc32c\n"
    ));
    assert_eq!(json(&ran, "fixed").job().bytes(), [4 << 20, 4 << 20, 0]);
    compare(&ran, &["fixed"], &this_test!());
}

/// Removes PRACT (bit 29 of dword 12) from a command: fio always sets it, even without protection information.
pub(super) fn without_pract(line: &str) -> String {
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

/// Checks the system calls that set up each ring, the settings of its kernel thread, and the commands. All jobs are in
/// one file, because programs start slowly in the virtual machine.
#[test]
pub fn rings_are_as_the_options_say() {
    /// The name and the options of a job, its flags for io_uring_setup(2), and its calls of io_uring_register(2).
    const RINGS: [(&str, &str, &[&str], &[&str]); 9] = [
        ("none", "", &[], &[]),
        ("fixedbufs", "fixedbufs", &[], &["IORING_REGISTER_BUFFERS"]),
        ("registerfiles", "registerfiles", &[], &["IORING_REGISTER_FILES"]),
        // Kernels before 5.11 need registered files for this option.
        ("sqthread_poll", "sqthread_poll", &["IORING_SETUP_SQPOLL"], &["IORING_REGISTER_FILES"]),
        (
            "sqthread_poll_cpu",
            "sqthread_poll\nsqthread_poll_cpu=1",
            &["IORING_SETUP_SQPOLL", "IORING_SETUP_SQ_AFF", "sq_thread_cpu=0x1"],
            &["IORING_REGISTER_FILES"],
        ),
        ("hipri", "hipri\nfsync=16", &["IORING_SETUP_IOPOLL"], &[]),
        ("vectored", "nonvectored=0", &[], &[]),
        ("force_async", "force_async=4", &[], &[]),
        (
            "all",
            "fixedbufs\nregisterfiles\nhipri\nsqthread_poll",
            &["IORING_SETUP_SQPOLL", "IORING_SETUP_IOPOLL"],
            &["IORING_REGISTER_BUFFERS", "IORING_REGISTER_FILES"],
        ),
    ];
    let mut file = "[global]\nioengine=io_uring_cmd\nfilename=$ng\nrw=randrw\nbs=4k\nsize=128k\niodepth=8\nverify=crc32c\n\
        group_reporting=0\n"
        .to_owned();
    for (name, options, _, _) in RINGS {
        file += &format!("[{name}]\nstonewall\n{options}\n");
    }
    let script = format!(
        "nvme_namespaces poll_queues=1 || exit\ncat >rings.fio <<END\n{file}END\n\
         traced=/sys/kernel/tracing; [[ -e $traced/trace ]] || mount -t tracefs tracefs $traced || exit\n\
         echo >$traced/trace; echo 1 >$traced/events/io_uring/io_uring_queue_async_work/enable\n\
         strace -f -o calls -e trace=io_uring_setup,io_uring_register '{}' --output-format=json rings.fio >rings.ours 2>&1\n\
         echo $? >rings.ours.status\n\
         echo 0 >$traced/events/io_uring/io_uring_queue_async_work/enable; grep -c 'opcode URING_CMD' $traced/trace >punted\n\
         dmesg | grep -v nandsim | grep -i 'warning\\|\\bbug:' >kernel\ntrue\n",
        crate::common::Program::under_test().path.display()
    );
    let ran = or_skip!(run("nvme-rings", &script));
    assert_eq!(left(&ran, "kernel"), "");
    let report = json(&ran, "rings");
    let calls = left(&ran, "calls");
    // Each job has its own process and ring.
    let mut rings: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in calls.lines() {
        let process = line.split_whitespace().next().unwrap_or_default();
        match rings.iter_mut().find(|(other, _)| *other == process) {
            Some((_, lines)) => lines.push(line),
            None => rings.push((process, vec![line])),
        }
    }
    // The first process is the controller, which checks for io_uring.
    rings.remove(0);
    rings.retain(|(_, lines)| lines.iter().any(|line| line.contains("io_uring_setup(8")));
    assert_eq!(rings.len(), RINGS.len(), "{calls}");
    const FLAGS: [&str; 4] =
        ["IORING_SETUP_SQPOLL", "IORING_SETUP_SQ_AFF", "IORING_SETUP_IOPOLL", "sq_thread_cpu=0x1"];
    const REGISTERED: [&str; 2] = ["IORING_REGISTER_BUFFERS", "IORING_REGISTER_FILES"];
    for (((name, _, flags, registered), (_, lines)), job) in RINGS.iter().zip(rings).zip(report.jobs()) {
        let [read, written, _] = job.bytes();
        assert_eq!(read, 128 << 10, "{name}");
        assert!(written > 0, "{name}");
        let found = |call: &str, word: &str| {
            lines.iter().any(|line| line.contains(call) && line.contains(word) && !line.contains("= -1"))
        };
        for word in FLAGS {
            assert_eq!(found("io_uring_setup(8", word), flags.contains(&word), "{name}: {word}: {lines:?}");
        }
        for word in REGISTERED {
            assert_eq!(
                found("io_uring_register(", word),
                registered.contains(&word),
                "{name}: {word}: {lines:?}"
            );
        }
    }
    // One job forces a quarter of its commands to kernel threads.
    let punted: u64 = left(&ran, "punted").trim().parse().expect("it is a number");
    assert!(punted >= 8, "commands that went to threads of the kernel: {punted}");
}

#[test]
pub fn refused_commands_are_reported_with_a_remedy() {
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
ours streams --ioengine=io_uring --filename=$disk --rw=write --direct=1 --bs=4k --size=64k --dataplacement=streams --plids=1
ours metadata --ioengine=io_uring --filename=${separate/ng/nvme} --rw=write --direct=1 --bs=4k --size=64k --pi_act=0 --md_per_io_size=64
ours readonly --ioengine=io_uring_cmd --filename=$ng --rw=write --write_mode=verify --bs=4k --readonly
ours idle --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4k --size=64k --deac=1 --nowait=1 --cmdprio_percentage=10 --cdb_len=16
mkfs.ext4 -q $disk && mkdir -p /run/mounted && mount $disk /run/mounted || exit
ours mounted --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k
ours reads --ioengine=io_uring_cmd --filename=$ng --rw=read --bs=4k --size=64k
umount /run/mounted
mkswap -q $disk && swapon $disk || exit
ours swap --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k
swapoff $disk
echo "0 4096 linear $disk 0" | dmsetup create ng-test --noudevsync && dmsetup mknodes || exit
ours held --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k
dmsetup remove --noudevsync ng-test
ours free --ioengine=io_uring_cmd --filename=$ng --rw=write --bs=4k --size=64k
chmod 666 $ng
chmod 777 .
nobody() {
    local name=$1; shift
    setpriv --reuid=65534 --regid=65534 --clear-groups "$IOLITE" --name=j --ioengine=io_uring_cmd --filename=$ng --bs=4k --size=64k "$@" >$name.ours 2>&1
    echo $? >$name.ours.status
}
nobody nobody --rw=read
chmod 444 $ng $disk; nobody nobody-writes --rw=write
chmod 600 $ng $disk; nobody nobody-reads --rw=read
uname -r >kernel
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
    refused("bsg", "is not the bsg node of a SCSI disk");
    // Debian's kernels 6.1 and 6.12 do not have write streams or metadata.
    refused("streams", "the kernel has no write streams, which Linux has since 6.16");
    refused("metadata", "which Linux does since 6.14");
    refused("readonly", "--readonly forbids that");
    refused("mounted", "it is mounted on /run/mounted; allow_mounted_write=1 overrides this");
    refused("swap", "it is used as swap");
    refused("held", "is built on it");
    assert_eq!(told(&ran, "free", "ours").1, 0, "it is no longer in use");
    let remedy = "for root only (CAP_SYS_ADMIN); since Linux 6.2 also for whoever may read and, to change data, write its node";
    ["nobody-writes", "nobody-reads"].iter().for_each(|name| refused(name, remedy));
    if is_at_least(&left(&ran, "kernel"), (6, 2)) {
        assert_eq!(told(&ran, "nobody", "ours").1, 0, "the node's permission is enough");
    } else {
        refused("nobody", remedy);
    }
    refused("gone", "/dev/ng99n1 does not exist");
    let (goes_on, status) = told(&ran, "goes-on", "ours");
    let counted = Report::new(&goes_on).json.map(|json| json.job().ios());
    assert_eq!((status, counted), (0, Some([0, 16, 0])), "{goes_on}");
    let (idle, status) = told(&ran, "idle", "ours");
    assert_eq!((status, idle.matches("has no effect").count()), (0, 4), "{idle}");
    assert_eq!(told(&ran, "reads", "ours").1, 0, "jobs that only read are accepted");
    for name in ["uncor", "block", "regular", "null", "part"] {
        if let (text, status @ (0 | 2..)) = told_by_peer(&ran, name, 1) {
            panic!("{name}: the peer ends with {status}: {text}");
        }
    }
}

/// Whether the release of a kernel (6.12.95+deb12-amd64) is this one or a later one.
pub(super) fn is_at_least(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// A namespace with protection information.
struct Protected {
    /// Its name in scripts.
    device: &'static str,
    /// The size of a block in the buffer if the host makes the information, and if the device does.
    block: [u64; 2],
    /// The size of its metadata in a separate buffer, likewise.
    apart: [u64; 2],
}

const PROTECTED: [Protected; 4] = [
    Protected { device: "separate", block: [512, 512], apart: [8, 0] },
    Protected { device: "interleaved", block: [520, 512], apart: [0, 0] },
    Protected { device: "guard64", block: [4112, 4096], apart: [0, 0] },
    // It has more metadata than just protection information, so the host always transfers metadata.
    Protected { device: "type3", block: [512, 512], apart: [16, 16] },
];

/// Two jobs for each namespace, on separate blocks: the host (0) or the device (1) makes the protection information.
/// `swapped` exchanges both.
fn jobs(rw: &str, swapped: bool, more: &str) -> String {
    let mut file = format!("[global]\nioengine=io_uring_cmd\niodepth=4\napptag=0x4321\nrw={rw}\n{more}\n");
    for Protected { device, block, apart } in &PROTECTED {
        // Type 3 has no reference tag. fio would still request its check, which the device refuses.
        let checks = if *device == "type3" { "GUARD,APPTAG" } else { "GUARD,APPTAG,REFTAG" };
        for place in [0, 1] {
            let by = if swapped { 1 - place } else { place };
            let (block, apart) = (block[by], apart[by]);
            let (size, offset) = (block * 256, block * 1024 * place as u64);
            file += &format!(
                "[{device}{place}]\nfilename=${device}\nstonewall\npi_chk={checks}\npi_act={by}\nbs={}\nsize={size}\noffset={offset}\n\
                 md_per_io_size={}\n",
                block * 8,
                apart * 8
            );
        }
    }
    file
}

/// For each format, with protection information by the device and by the host: each program accepts the writes of the
/// other, and the host accepts the device's protection information.
#[test]
pub fn protection_information_is_made_and_checked_as_fio_does() {
    let mut script = "least=41\nnvme_namespaces || exit\n".to_owned();
    let files = [
        ("write", jobs("write", false, "")),
        ("read", jobs("read", false, "")),
        ("swapped", jobs("randread", true, "")),
        ("tag", jobs("read", false, "apptag=0x4322")),
        ("mask", jobs("read", true, "apptag=0x4322\napptag_mask=0xff00")),
    ];
    for (name, file) in &files {
        script += &format!("cat >{name}.fio <<END\n{file}END\n");
    }
    // Each program reads the other's writes.
    script += "run() { local who=$1 name=$2 file=$3; shift 3; $who $name --ioengine=null --size=4k --output-format=json,normal \"$@\" $file.fio; }\n\
               run ours write write; run theirs read read; run ours swapped swapped; run ours mask mask\n\
               run ours tag tag\n\
               run theirs write-peer write; run ours read-peer read; run ours swapped-peer swapped\n";
    let ran = or_skip!(run("nvme-protection", &script));
    for name in ["write", "swapped", "mask", "read-peer", "swapped-peer"] {
        let json = json(&ran, name);
        assert!(json.jobs().iter().all(|job| job.int("error") == 0), "{name}");
        let moved = json.jobs().iter().filter(|job| job.ios().iter().sum::<u64>() == 32).count();
        assert_eq!(moved, 2 * PROTECTED.len(), "{name}");
    }
    let (text, status) = told(&ran, "tag", "ours");
    assert!(status != 0 && text.contains("End-to-end Application Tag Check Error"), "{text}");
    for name in ["read", "write-peer"] {
        let (text, status) = told_by_peer(&ran, name, 0);
        assert_eq!(status, 0, "{name}: {text}");
    }
    if told_by_peer(&ran, "read", 0).0.is_empty() {
        partly_skipped(&this_test!(), "there is no fio of release 3.41 or later");
    }
}

/// Finds blocks with a wrong guard, application tag or reference tag. They are written by unchecked commands.
#[test]
pub fn damaged_protection_information_is_found() {
    // The metadata of block 3 with zeros as data: guard, application tag, reference tag.
    let of_16_bits = ["00011234 00000003", "00001235 00000003", "00001234 00000004"];
    let of_64_bits = [
        "6482d367eb22b64f 1234 000000000003",
        "6482d367eb22b64e 1235 000000000003",
        "6482d367eb22b64e 1234 000000000004",
    ];
    let damages = ["guard", "application", "reference"];
    let mut script = "command -v nvme >/dev/null || { touch no-nvme; exit 0; }\nnvme_namespaces || exit\n\
        cmd() { local name=$1; shift; ours $name --ioengine=io_uring_cmd --pi_chk=GUARD,APPTAG,REFTAG \"$@\"; }\n\
        bytes() { local text=${1// /}; printf \"$(sed 's/../\\\\x&/g' <<<$text)\"; }\n"
        .to_owned();
    for (device, number, data, metadata) in
        [("separate", 3, 512, &of_16_bits), ("guard64", 5, 4096, &of_64_bits)]
    {
        let whole = if device == "guard64" { data + 16 } else { data };
        script += &format!(
            "cmd {device} --filename=${device} --pi_act=1 --rw=write --bs={data} --size={} || exit\n",
            data * 16
        );
        for (damage, metadata) in damages.iter().zip(metadata) {
            let buffers = match device {
                "guard64" => "bytes \"$metadata\" >>data; nvme write $it --data=data --data-size=4112",
                _ => {
                    "bytes \"$metadata\" >metadata; nvme write $it --data=data --data-size=512 --metadata=metadata --metadata-size=8"
                }
            };
            script += &format!(
                "it=${device} metadata='{metadata}'; head -c {data} /dev/zero >data; {buffers} --namespace-id={number} \
                 --start-block=3 --block-count=0 --prinfo=0 || exit\n\
                 cmd {device}-{damage} --filename=$it --pi_act=0 --md_per_io_size=8 --rw=read --bs={whole} --size={}\n",
                whole * 16
            );
        }
        // Intact metadata is accepted, so the damage is what makes the other reads fail.
        let right =
            if device == "guard64" { "6482d367eb22b64e 1234 000000000003" } else { "00001234 00000003" };
        let buffers = match device {
            "guard64" => "bytes \"$metadata\" >>data; nvme write $it --data=data --data-size=4112",
            _ => {
                "bytes \"$metadata\" >metadata; nvme write $it --data=data --data-size=512 --metadata=metadata --metadata-size=8"
            }
        };
        script += &format!(
            "metadata='{right}'; head -c {data} /dev/zero >data; {buffers} --namespace-id={number} --start-block=3 \
             --block-count=0 --prinfo=0 || exit\n\
             cmd {device}-right --filename=$it --pi_act=0 --md_per_io_size=8 --rw=read --bs={whole} --size={}\n",
            whole * 16
        );
    }
    let ran = or_skip!(run("nvme-damage", &script));
    if ran.directory.join("no-nvme").exists() {
        iolite_testing::skip!("nvme-cli is not installed");
    }
    for device in ["separate", "guard64"] {
        for (damage, words) in damages.iter().zip(["Guard", "Application Tag", "Reference Tag"]) {
            let (text, status) = told(&ran, &format!("{device}-{damage}"), "ours");
            let expected = format!("End-to-end {words} Check Error (status code type 2h");
            assert!(
                status == 1 && text.contains(&expected) && text.contains("to Read of 1 block at block 3"),
                "{device} {damage}: {text}"
            );
        }
        let (text, status) = told(&ran, &format!("{device}-right"), "ours");
        assert_eq!(status, 0, "{device}: {text}");
    }
}

#[test]
pub fn metadata_is_transferred_with_its_blocks() {
    let ran = or_skip!(run(
        "nvme-metadata",
        r#"
least=41
nvme_namespaces || exit
both verified --ioengine=io_uring_cmd --filename=$metadata --rw=write --bs=4224 --size=132k --verify=crc32c --iodepth=4
both stripped --ioengine=io_uring_cmd --filename=$separate --rw=randwrite --bs=4k --size=256k --verify=crc32c --iodepth=4
both part --ioengine=io_uring_cmd --filename=$metadata --rw=read --bs=4k --size=64k
both small --ioengine=io_uring_cmd --filename=$separate --pi_act=0 --md_per_io_size=8 --rw=read --bs=4k --size=64k
ours check --ioengine=io_uring_cmd --filename=$separate --pi_act=0 --md_per_io_size=64 --pi_chk=GUARDS --rw=read
ours plain --ioengine=io_uring_cmd --filename=$ng --pi_act=0 --pi_chk=GUARD --md_per_io_size=64 --rw=read --bs=4k --size=64k
"#
    ));
    compare(&ran, &["verified", "stripped"], &this_test!());
    for (name, words) in [
        ("part", "528 in all"),
        ("small", "set md_per_io_size=64"),
        ("check", "none of GUARD, APPTAG, REFTAG"),
    ] {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(words), "{name}: {text}");
    }
    for name in ["part", "small"] {
        let (text, status) = told_by_peer(&ran, name, 1);
        assert_ne!(status, 0, "{name}: {text}");
    }
    assert_eq!(told(&ran, "plain", "ours").1, 0, "there is no protection information to be made");
}

#[test]
fn the_examples_run() {
    let (commands, protection) =
        (example("DISK=$ng", "nvme-commands.fio"), example("DISK=$guard64", "nvme-protection.fio"));
    let script = format!(
        "nvme_namespaces && {{\n{commands}\nmv example.ours commands.ours; mv example.ours.status commands.ours.status\n{protection}\n}}"
    );
    let ran = or_skip!(run("nvme-examples", &script));
    let ios = |name: &str| json(&ran, name).jobs().iter().map(|job| job.ios()).collect::<Vec<[u64; 3]>>();
    assert_eq!(ios("commands"), [[256, 0, 0], [0, 16, 0], [0, 0, 1]]);
    assert_eq!(ios("example"), [[0, 16, 0], [256, 0, 0]]);
}

#[test]
fn the_example_of_placement_runs() {
    let run_example =
        example("DISK=$placed", "nvme-placement.fio").replace("sed 's", "sed 's/^io_size=.*/io_size=2M/; s");
    let script = format!(
        "nvme_namespaces && {{ nvme_placement || {{ touch no-placement; exit 0; }}; }} && {{\n{run_example}\n}}"
    );
    let ran = or_skip!(run("nvme-placement-example", &script));
    if ran.directory.join("no-placement").exists() {
        return partly_skipped(&this_test!(), NO_PLACEMENT);
    }
    let ios = json(&ran, "example").jobs().iter().map(|job| job.ios()).collect::<Vec<[u64; 3]>>();
    assert_eq!(ios, [[0, 512, 0], [0, 16, 0], [0, 16, 0]]);
}

/// The blocks that can still be written to the reclaim unit of each placement handle, from a file with the output of
/// `nvme fdp status`.
fn rooms(ran: &Ran, name: &str) -> Vec<i64> {
    let text = left(ran, name);
    let told = text.lines().filter_map(|line| line.split_once("(RUAMW):"));
    told.map(|(_, room)| room.trim().parse().expect("it is a number")).collect()
}

/// `io_uring` through the block device. The kernels of Debian 12 lack the features for this.
#[test]
fn streams_and_metadata_go_with_reads_and_writes_of_the_kernel() {
    let script = r#"
nvme_namespaces || exit
nvme_placement && (($(cat /sys/block/${placeddisk#/dev/}/queue/max_write_streams 2>/dev/null || echo 0) == 4)) || {
    touch no-streams
    exit 0
}
to() { local name=$1; shift; ours $name --ioengine=io_uring --direct=1 --filename=$placeddisk --rw=write --bs=4k "$@"; }
placed() {
    nvme fdp status $placeddisk >$1.before
    to "$@"
    nvme fdp status $placeddisk >$1.after
}
placed fdp --size=256k --dataplacement=fdp --plids=2
placed streams --size=128k --dataplacement=streams --plids=1,4 --iodepth=4
to beyond --size=128k --dataplacement=streams --plids=5
# The kernel numbers namespaces in the order in which it finds them.
for node in /sys/block/nvme*n*; do
    [[ ${node##*/} != *c* && $(<$node/nsid) == 3 ]] && read -r serial <$node/device/serial && [[ $serial == iolite ]] && separate=${node##*/}
done
words="--bs=4k --size=256k --pi_chk=GUARD,APPTAG,REFTAG"
ring() {
    local name=$1; shift
    ours $name --ioengine=io_uring --direct=1 --filename=/dev/$separate --pi_act=0 --md_per_io_size=64 $words "$@"
}
cmd() { local name=$1; shift; ours $name --ioengine=io_uring_cmd --filename=/dev/ng${separate#nvme} --pi_act=1 $words "$@"; }
ring writes --rw=write --iodepth=4
cmd checks --rw=read
cmd device --rw=write --apptag=0x4321
ring reads --rw=read --iodepth=4 --apptag=0x4321
ring differs --rw=read
ring verified --rw=randrw --apptag=0x4321 --verify=crc32c --iodepth=4 --fixedbufs --registerfiles
"#;
    let ran = or_skip!(run("nvme-block-streams", script));
    if ran.directory.join("no-streams").exists() {
        let why = "no write streams: they need QEMU 8.1 and Linux 6.16 (IOLITE_VM)";
        return partly_skipped(&this_test!(), why);
    }
    let written = |name: &str| -> Vec<i64> {
        assert_eq!(told(&ran, name, "ours").1, 0, "{name}: {}", told(&ran, name, "ours").0);
        let (before, after) = (rooms(&ran, &format!("{name}.before")), rooms(&ran, &format!("{name}.after")));
        before.iter().zip(&after).map(|(before, after)| before - after).collect()
    };
    assert_eq!(written("fdp"), [0, 0, 64, 0]);
    assert_eq!(written("streams"), [16, 0, 0, 16], "streams are counted from 1");
    let (beyond, status) = told(&ran, "beyond", "ours");
    assert!(status == 1 && beyond.contains("plids=5: the device has 4 write streams"), "{beyond}");
    for name in ["writes", "checks", "device", "reads", "verified"] {
        assert_eq!(told(&ran, name, "ours").1, 0, "{name}: {}", told(&ran, name, "ours").0);
    }
    let (differs, status) = told(&ran, "differs", "ours");
    assert!(status == 1 && differs.contains("err=84"), "the application tag is another one: {differs}");
}

/// Jobs for xNVMe, and libblkio's driver of NVMe commands, write what other engines read.
#[test]
fn jobs_for_libraries_run_on_namespaces() {
    let library = or_skip!(iolite_testing::libblkio());
    let ran = or_skip!(run(
        "libraries",
        &format!(
            r#"
nvme_namespaces || exit
job="--rw=randwrite --bs=4k --size=1m --verify=crc32c --output-format=json,normal"
check="--filename=$disk --direct=1 --rw=read --bs=4k --size=1m --verify_only --output-format=json,normal"
ours commands --ioengine=xnvme --xnvme_async=io_uring_cmd --filename=$ng --iodepth=8 --thread $job
ours commands-read --ioengine=psync $check --verify=crc32c
ours plain --ioengine=xnvme --filename=$ng --xnvme_dev_nsid=1 $job
ours block --ioengine=xnvme --xnvme_async=io_uring --filename=$disk --direct=1 --iodepth=8 $job
export LD_LIBRARY_PATH={library}
for depth in 1 32; do
    ours blkio-$depth --ioengine=libblkio --libblkio_driver=nvme-io_uring --libblkio_path=$ng --iodepth=$depth $job --verify=md5 --end_fsync=1
    ours blkio-$depth-read --ioengine=psync $check --verify=md5
done
ours blkio-trim --ioengine=libblkio --libblkio_driver=nvme-io_uring --libblkio_path=$ng --rw=trim --bs=64k --size=1m --output-format=json,normal
"#,
            library = library.display()
        )
    ));
    for (name, stand_in) in [("commands", "io_uring_cmd"), ("plain", "io_uring_cmd"), ("block", "io_uring")] {
        let (text, status) = told(&ran, name, "ours");
        assert_eq!(status, 0, "{name}: {text}\n{}", ran.output);
        assert!(
            text.contains(&format!("ioengine=xnvme: its work is done by ioengine={stand_in},")),
            "{text}"
        );
    }
    for name in ["commands-read", "blkio-1", "blkio-1-read", "blkio-32", "blkio-32-read", "blkio-trim"] {
        let (text, status) = told(&ran, name, "ours");
        assert_eq!(status, 0, "{name}: {text}\n{}", ran.output);
    }
}
