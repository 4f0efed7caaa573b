//! `mtd` on simulated flash: mtdram, and nandsim, which has pages and bad blocks.

use super::{compare, example, report, run, told};
use crate::common::comparison::Report;
use iolite_testing::{or_skip, this_test};

#[test]
fn flash_is_read_written_and_erased() {
    let ran = or_skip!(run(
        "mtd",
        r#"
flash total_size=1024 erase_size=64 || exit
mtd() { local how=$1 name=$2; shift 2; $how $name --ioengine=mtd --filename=$mtd "$@"; }
mtd both whole --rw=write --bs=64k
mtd both erased --rw=trim --bs=64k --size=128k
head -c 131073 $mtd | od -An -v -tx1 -w1 | sort | uniq -c >content
mtd both laps --rw=trimwrite --bs=64k --size=512k --verify=crc32c
mtd ours synced --rw=randwrite --bs=4k --size=64k --fsync=4 --end_fsync=1 --output-format=json
mtd both parts --rw=trim --bs=4k --size=64k
mtd both direct --rw=read --bs=4k --size=64k --direct=1
both null --ioengine=mtd --filename=/dev/null --rw=read --bs=4k --size=64k
truncate -s 64k regular
both regular --ioengine=mtd --filename=regular --rw=read --bs=4k --size=64k
ours gone --ioengine=mtd --filename=/dev/mtd7 --rw=read --bs=4k
modprobe -a mtdblock jffs2 && mkdir -p /run/flash && mtd ours clear --rw=trim --bs=64k && mount -t jffs2 mtd0 /run/flash || exit
mtd ours mounted --rw=write --bs=4k --size=64k
umount /run/flash
"#
    ));
    compare(&ran, &["whole", "erased", "laps"], &this_test!());
    let json = |name| report(&ran, name).json.unwrap();
    assert_eq!(json("whole").job().bytes(), [0, 1 << 20, 0], "the default size is that of the device");
    assert_eq!(json("laps").job().ios(), [8, 8, 8]);
    assert_eq!(json("synced").job().ios(), [0, 16, 0]);
    let content = std::fs::read_to_string(ran.directory.join("content")).unwrap();
    assert!(content.lines().any(|line| line.split_whitespace().eq(["131072", "ff"])), "erased: {content}");
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    refused("parts", "Invalid argument (a trim erases whole blocks, of 65536 bytes here): trim offset=0");
    refused("direct", "a character device has no cache to bypass; leave direct out, error=Invalid argument");
    refused("null", "ioengine=mtd: /dev/null is not a flash device");
    refused("regular", "ioengine=mtd: regular is not a flash device");
    refused("gone", "/dev/mtd7 does not exist");
    refused("mounted", "rw=write would change data on /dev/mtd0, but it is mounted on /run/flash");
    for name in ["parts", "direct", "null", "regular"] {
        assert_eq!(super::told_by_peer(&ran, name, 1).1, 1, "{name}");
    }
}

#[test]
pub fn bad_blocks_are_left_alone() {
    let ran = or_skip!(run(
        "nand",
        r#"
nand badblocks=1,3 || exit
mtd() { local how=$1 name=$2; shift 2; $how $name --ioengine=mtd --filename=$mtd --bs=16k --size=128k "$@"; }
mtd both read --rw=read --skip_bad=1
mtd both erased --rw=trim
mtd both skipped --rw=trimwrite --skip_bad=1 --continue_on_error=all
mtd ours part --rw=write --bs=100 --size=1600 --offset=64k
"#
    ));
    for name in ["read", "erased", "skipped"] {
        let expected = if name == "skipped" { 0 } else { 1 };
        let (text, status) = told(&ran, name, "ours");
        assert_eq!(status, expected, "{text}");
        assert_eq!(super::told_by_peer(&ran, name, expected).1, expected, "{name}");
    }
    let told = |name| told(&ran, name, "ours").0;
    assert!(told("read").contains("block 1 is bad, and skip_bad=1 leaves it alone"), "{}", told("read"));
    assert!(told("part").contains("a multiple of the page size, 512 bytes here"), "{}", told("part"));
    // The job has continued, and counts the errors.
    let skipped = Report::new(&told("skipped")).json.unwrap();
    assert_eq!((skipped.job().ios(), skipped.job().bytes()), ([0, 8, 8], [0, 6 << 14, 6 << 14]));
    assert_eq!(skipped.job().int("total_err"), 4);
    if let Some(theirs) = Report::new(&super::told_by_peer(&ran, "skipped", 0).0).json {
        let (ours, theirs) = (skipped.job(), theirs.job());
        assert_eq!((ours.ios(), ours.bytes()), (theirs.ios(), theirs.bytes()));
        assert_eq!(ours.int("total_err"), theirs.int("total_err"));
    }
}

#[test]
fn the_example_runs() {
    let script = format!("flash total_size=2048 erase_size=128 && {}", example("FLASH=$mtd", "flash.fio"));
    let ran = or_skip!(run("mtd-example", &script));
    let json = report(&ran, "example").json.unwrap();
    let ios: Vec<_> = json.jobs().iter().map(|job| job.ios()).collect();
    assert_eq!(ios, [[8, 8, 8], [256, 0, 0]]);
}
