//! `libpmem` and `dev-dax` on memory that the kernel treats as persistent; also `libpmem` on memory of this machine.

use super::{compare, example, report, run, told};
use crate::common::devices::tool;
use crate::common::{Json, Program, scratch, words};
use iolite_testing::{or_skip, skip, this_test};
use std::process::Command;

#[test]
fn files_with_dax_are_read_and_written() {
    let ran = or_skip!(run(
        "libpmem",
        r#"
dax_file_system || exit
pmem() { local how=$1 name=$2; shift 2; $how $name --ioengine=libpmem "$@"; }
pmem both write --filename=$dax_directory/f --rw=write --bs=4k --size=256k
pmem both synced --filename=$dax_directory/f --rw=randwrite --bs=4k --size=64k --fsync=4 --sync=1
pmem ours mixed --filename=$dax_directory/g --rw=randrw --bs=4k --size=1m --direct=1 --verify=crc32c --end_fsync=1
pmem both other --filename=/dev/shm/f --rw=write --bs=4k --size=64k
pmem both trim --filename=$dax_directory/f --rw=trim --bs=4k --size=64k
pmem ours disk --filename=/dev/pmem0 --rw=read --bs=4k --size=64k
PMEM_IS_PMEM_FORCE=1 pmem both forced --filename=/dev/shm/f --rw=write --bs=4k --size=64k
library=$(echo /usr/lib/*/libpmem.so.1)
mount --bind /dev/null $library || exit
pmem ours missing --filename=$dax_directory/f --rw=read --bs=4k --size=64k
umount $library
# fio writes the file beforehand, and tells it (docs/compatibility.md).
[[ ! -e write.theirs ]] || sed -i '/^j: Prepopulating IO file/d' *.theirs
umount $dax_directory
"#
    ));
    compare(&ran, &["write", "synced", "forced"], &this_test!());
    let json = |name| report(&ran, name).json.unwrap();
    assert_eq!(json("write").job().bytes(), [0, 256 << 10, 0]);
    assert_eq!(json("synced").job().int("sync.total_ios"), 3);
    assert_eq!(told(&ran, "mixed", "ours").1, 0, "{}", told(&ran, "mixed", "ours").0);
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    refused("other", "it is not on persistent memory: use a file system with DAX");
    refused("trim", "rw=trim: ioengine=libpmem cannot trim");
    refused("disk", "ioengine=libpmem: /dev/pmem0 is not a regular file");
    refused("missing", "install it (package libpmem1 of Debian and Ubuntu, libpmem of RHEL and Fedora)");
    for name in ["other", "trim"] {
        assert_eq!(super::told_by_peer(&ran, name, 1).1, 1, "{name}");
    }
}

#[test]
fn devices_are_read_and_written() {
    let script = r#"
dax_device || exit
dax() { local how=$1 name=$2; shift 2; $how $name --ioengine=dev-dax --filename=$dax "$@"; }
dax both whole --rw=write --bs=1m
dax ours part --rw=randrw --bs=4k --size=256k --offset=1m --verify=crc32c --fsync=4
dax ours read --rw=read --bs=64k --offset=60m --size=64m --output-format=json
EXAMPLE
dax both trim --rw=trim --bs=1m
both null --ioengine=dev-dax --filename=/dev/null --rw=read --bs=4k --size=64k
truncate -s 64k regular
both regular --ioengine=dev-dax --filename=regular --rw=read --bs=4k --size=64k
ours gone --ioengine=dev-dax --filename=/dev/dax9.0 --rw=read --bs=4k
"#;
    let example = example("DAX=$dax", "persistent-memory-device.fio");
    let ran = or_skip!(run("dev-dax", &script.replace("EXAMPLE", &example)));
    compare(&ran, &["whole"], &this_test!());
    let json = |name| report(&ran, name).json.unwrap();
    assert_eq!(json("whole").job().bytes(), [0, 62 << 20, 0], "the default size is that of the device");
    assert_eq!(json("read").job().bytes(), [2 << 20, 0, 0]);
    let ios: Vec<_> = json("example").jobs().iter().map(|job| job.ios()).collect();
    assert_eq!(ios, [[0, 256, 0], [0, 256, 0], [256, 0, 0]], "the example");
    let refused = |name, text: &str| {
        let (told, status) = told(&ran, name, "ours");
        assert!(status == 1 && told.contains(text), "{name}: {status}: {told}");
    };
    assert_eq!(told(&ran, "part", "ours").1, 0, "{}", told(&ran, "part", "ours").0);
    refused("trim", "rw=trim: ioengine=dev-dax cannot trim");
    refused("null", "ioengine=dev-dax: /dev/null is not a DAX device");
    refused("regular", "ioengine=dev-dax: regular is not a DAX device");
    refused("gone", "/dev/dax9.0 does not exist");
    for name in ["trim", "null", "regular"] {
        assert_eq!(super::told_by_peer(&ran, name, 1).1, 1, "{name}");
    }
}

#[test]
fn the_example_runs() {
    let script = format!("dax_file_system && cd $dax_directory && {}", example("", "persistent-memory.fio"));
    let script = format!("here=$PWD; {script}; cp example.* $here; cd $here; umount $dax_directory");
    let ran = or_skip!(run("pmem-example", &script));
    let json = report(&ran, "example").json.unwrap();
    let ios: Vec<_> = json.jobs().iter().map(|job| job.ios()).collect();
    assert_eq!(ios, [[0, 256, 0], [0, 256, 0], [256, 0, 0]]);
}

/// `PMEM_IS_PMEM_FORCE` makes libpmem treat memory as persistent.
#[test]
fn memory_of_this_machine_will_do() {
    if !tool("ldconfig", &["-p"]).is_ok_and(|list| list.contains("libpmem.so.1")) {
        skip!("libpmem is not installed (package libpmem1)");
    }
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { skip!("there is no /dev/shm") };
    let run = |line: &str| {
        let mut command = Command::new(Program::under_test().path);
        command.args(words(&format!("--name=j --ioengine=libpmem --filename=f {line}")));
        command.current_dir(dir.path()).env("PMEM_IS_PMEM_FORCE", "1").output().unwrap()
    };
    let line = "--rw=randwrite --bs=4k --size=1m --verify=md5 --numjobs=2 --thread --offset_increment=1m --direct=1 \
                --output-format=json";
    let output = run(line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for job in Json::parse(&text).jobs() {
        assert_eq!(job.ios(), [256, 256, 0]);
    }
    assert_eq!(std::fs::metadata(dir.path().join("f")).unwrap().len(), 2 << 20, "it has its size before");
    let dir = scratch();
    let line = "--name=j --ioengine=libpmem --filename=f --rw=write --bs=4k --size=64k";
    Program::under_test().line(dir.path(), line).refused().says("it is not on persistent memory");
}
