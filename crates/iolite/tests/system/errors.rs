//! Requests that must be refused, with exit status 1 and the reason, and without any change to files.

use crate::common::devices::{Loop, Mounted, image};
use crate::common::program::Finished;
use crate::common::{Json, Program, files_in, is_root, scratch, sizes};
use iolite_testing::{or_skip, skip};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs a line. The exit status must be 1, and no file may have been created or changed.
#[track_caller]
fn refused(dir: &Path, line: &str) -> Finished {
    let before = contents(dir);
    let run = Program::under_test().line(dir, line).refused();
    assert!(contents(dir) == before, "files were touched: {run}");
    run
}

fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let read = |(name, _): (String, u64)| {
        let content = fs::read(dir.join(&name)).expect("a file that was just listed");
        (name, content)
    };
    files_in(dir).into_iter().map(read).collect()
}

#[test]
fn nothing_to_do() {
    let dir = scratch();
    refused(dir.path(), "");
    refused(dir.path(), "--readonly");
}

#[test]
fn unknown_options() {
    let dir = scratch();
    refused(dir.path(), "--name=b --rw=randread --size=1M --nosuch=1").says("nosuch");
    refused(dir.path(), "--nosuch").says("nosuch");
}

#[test]
fn bad_values() {
    let dir = scratch();
    refused(dir.path(), "--name=b --rw=sideways --size=1M").says("sideways").says("randwrite");
    refused(dir.path(), "--name=b --rw=read --size=1M --iodepth=many").says("iodepth");
    refused(dir.path(), "--name=b --rw=read --size=1M --ioengine=nosuch").says("nosuch");
    refused(dir.path(), "--name=b --rw=read --size=1M --numjobs=x").says("numjobs");
}

#[test]
fn more_than_there_is_room_for() {
    let dir = scratch();
    let job = "--name=b --ioengine=null --size=1M";
    refused(dir.path(), &format!("{job} --iodepth=4000000000"))
        .says("iodepth=4000000000: I/Os in flight need about");
    refused(dir.path(), &format!("{job} --nrfiles=4000000000")).says("nrfiles=4000000000: files need about");
    refused(dir.path(), &format!("{job} --nrfiles=4000000000 --ioengine=psync"))
        .says("use a smaller nrfiles");
    refused(dir.path(), &format!("{job} --numjobs=4000000000")).says("use a smaller numjobs");
    refused(dir.path(), &format!("{job} --rw=write --verify=crc32c --verify_async=20000"))
        .says("verify_async");
    let threads = "--rw=write --verify=crc32c --verify_async=1000 --numjobs=9 --thread";
    refused(dir.path(), &format!("{job} {threads}")).says("verify_async: 9000 threads");
}

#[test]
fn a_size_is_needed() {
    let dir = scratch();
    refused(dir.path(), "--name=a --rw=write").says("size");
}

#[test]
fn missing_job_files() {
    let dir = scratch();
    refused(dir.path(), "nosuch.fio").says("nosuch.fio");
    // One missing job file among existing ones is enough.
    fs::write(dir.path().join("there.fio"), "[j]\nioengine=null\nsize=4k\n").unwrap();
    refused(dir.path(), "there.fio nosuch.fio").says("nosuch.fio");
}

#[test]
fn sections_that_are_not_there() {
    let dir = scratch();
    fs::write(dir.path().join("j.fio"), "[one]\nrw=write\nsize=4k\n").unwrap();
    let run = Program::under_test().line(dir.path(), "--section=two j.fio");
    assert_ne!(run.code(), 0, "{run}");
    assert_eq!(files_in(dir.path()).len(), 1, "only the job file: {run}");
}

/// (fio stops at the first mistake.)
#[test]
fn all_mistakes_are_reported_with_their_places() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio reports the first mistake only");
    }
    let dir = scratch();
    let text = "[global]\nsize=1m\n\n[one]\nrw=write\nbs=4kk\n\n[two]\niodpeth=4\nrw=sideways\n";
    fs::write(dir.path().join("job.fio"), text).unwrap();
    let run = refused(dir.path(), "job.fio").says("job.fio:6:4:").says("job.fio:9:1:").says("job.fio:10:4:");
    assert!(run.output().contains("iodepth"), "the nearest option is suggested: {run}");
    assert!(run.output().contains("4kk"), "the value is named: {run}");
}

#[test]
fn commands_of_the_wrong_kind_are_errors() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("older releases do not know cmd_type=bsg");
    }
    let dir = scratch();
    let line = "--name=a --filename=f --rw=read --size=1M --ioengine=io_uring_cmd --cmd_type=bsg";
    let run = refused(dir.path(), line);
    assert!(run.output().contains("f is not the bsg node of a SCSI disk (/dev/bsg/0\\:0\\:0\\:0)"), "{run}");
}

#[test]
fn readonly_refuses_writes_and_trims() {
    let dir = scratch();
    fs::write(dir.path().join("f"), "precious").unwrap();
    for rw in ["write", "randwrite", "rw", "randrw", "trim", "randtrim", "trimwrite"] {
        let line = format!("--readonly --name=a --filename=f --rw={rw} --size=1M");
        refused(dir.path(), &line).says("read");
    }
    // A single write job among reads is enough.
    refused(
        dir.path(),
        "--readonly --name=a --filename=f --rw=read --size=4k --name=b --filename=f --rw=write --size=4k",
    );
}

#[test]
fn readonly_reads() {
    let dir = scratch();
    fs::write(dir.path().join("f"), vec![7; 65536]).unwrap();
    Program::under_test().line(dir.path(), "--readonly --name=a --filename=f --rw=randread --size=64k").ok();
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), vec![7; 65536]);
}

#[test]
fn a_file_that_may_not_be_created() {
    let dir = scratch();
    refused(dir.path(), "--name=a --filename=f --rw=read --size=1M --allow_file_create=0").says("f");
}

/// The alignment for direct I/O depends on the file system and its disk; odd numbers are never sufficient.
#[test]
fn misaligned_direct_io_is_reported_with_the_remedy() {
    let cases = [
        ("--bs=1001", "the length 1001 is not a multiple of", "change bs, or use direct=0"),
        ("--offset=1001", "the offset 1001 is not a multiple of", "change offset, ba, or use direct=0"),
        ("--iomem_align=1001", "the buffer is not aligned to", "change iomem_align, or use direct=0"),
    ];
    let dir = scratch();
    let line = "--name=a --size=64k --rw=write --direct=1 --bs=1001";
    if Program::under_test().line(dir.path(), line).code() == 0 {
        skip!("the file system of temporary files takes any direct I/O");
    }
    for engine in ["psync", "libaio", "posixaio"] {
        for (mistake, what, remedy) in cases {
            let dir = scratch();
            let line = format!(
                "--name=a --ioengine={engine} --iodepth=4 --size=64k --rw=write --direct=1 {mistake}"
            );
            let run = Program::under_test().line(dir.path(), &line).refused();
            assert_eq!(run.stderr.matches("direct I/O on file a.0.0: ").count(), 1, "{run}");
            run.says(what).says(remedy).says("Invalid argument");
        }
    }
    // Without a mistake, or without direct I/O, there is no message.
    let dir = scratch();
    let run = Program::under_test().line(dir.path(), "--name=a --size=64k --rw=write --bs=1001").ok();
    assert!(!run.output().contains("direct I/O on"), "{run}");
}

#[test]
fn a_directory_in_place_of_a_file() {
    let dir = scratch();
    fs::create_dir(dir.path().join("d")).unwrap();
    refused(dir.path(), "--name=a --filename=d --rw=write --size=1M");
}

#[test]
fn a_directory_that_may_not_be_written() {
    if is_root() {
        skip!("root may write anywhere");
    }
    let dir = scratch();
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    refused(dir.path(), "--name=a --directory=closed --rw=write --size=1M").says("closed");
}

#[test]
fn no_space_left_on_a_character_device() {
    let dir = scratch();
    let line = "--name=a --filename=/dev/full --rw=write --size=1M --bs=4k";
    let run = Program::under_test().line(dir.path(), line).refused().says("No space left on device");
    // The report is still printed, with the error at the job.
    assert!(run.stdout.contains("a: (groupid=0, jobs=1): err=28"), "{run}");
    assert_eq!(files_in(dir.path()), sizes(&[]));
}

#[test]
fn an_error_is_in_the_json_too() {
    let dir = scratch();
    let line = "--name=bad --filename=/dev/full --rw=write --size=1M --name=good --ioengine=null --size=1M --output-format=json";
    let run = Program::under_test().line(dir.path(), line).refused();
    let json = Json::parse(&run.stdout);
    let jobs = json.jobs();
    assert_eq!((jobs[0].name(), jobs[0].int("error")), ("bad", 28));
    assert_eq!((jobs[1].name(), jobs[1].int("error"), jobs[1].ios()[0]), ("good", 0, 256));
}

#[test]
fn reading_past_the_end_of_a_device() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 1 << 20));
    // fio does nothing, silently; an error with a reason is acceptable as well.
    let line = format!("--name=a --filename={} --rw=read --size=1M --offset=2M", device.path);
    let run = Program::under_test().line(dir.path(), &line);
    assert!(run.code() == 0 || run.output().contains("offset"), "{run}");
    assert!(!run.stdout.contains("READ: bw="), "{run}");
}

#[test]
fn a_full_file_system() {
    let (dir, links) = (scratch(), scratch());
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let line = "--name=a --directory=mounted --rw=write --size=64M --bs=64k --fallocate=none";
    // (That it surely does not fit is said beforehand under our own name.)
    let run =
        Program::called_fio(links.path()).line(dir.path(), line).refused().says("No space left on device");
    assert!(run.stdout.contains("err=28"), "{run}");
    drop(mounted);
}

/// A full file system hurts other users too, so nothing is begun that surely does not fit.
#[test]
fn writes_that_do_not_fit_are_not_begun() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let run = |more: &str| {
        Program::under_test().line(dir.path(), &format!("--name=a --directory=mounted --bs=64k {more}"))
    };
    for line in [
        "--rw=write --size=64M",
        "--rw=randwrite --size=64M --io_size=32M",
        "--rw=write --size=64M --unlink=1",
        "--rw=write --size=64M --fallocate=none",
        "--rw=write --size=64M --fallocate=truncate",
        "--rw=write --size=64M --create_on_open=1",
        "--rw=write --filename=new/f --size=64M",
        "--rw=rw --size=64M",
        // Each file would fit.
        "--rw=write --nrfiles=4 --filesize=8M",
    ] {
        let refused = run(line).refused().says("more (").says("bytes) are needed, and the file system has");
        // Nothing was made, nor said to be made.
        assert!(
            !refused.output().contains("Laying out") && !refused.output().contains("making"),
            "{refused}"
        );
        assert_eq!(files_in(&mounted.directory), sizes(&[]), "{line}");
        assert!(!mounted.directory.join("new").exists());
    }
    // A sparse file has its size, but not the room.
    let sparse = File::create(mounted.directory.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    run("--rw=write --filename=sparse")
        .refused()
        .says("mounted/sparse: 64.0MiB more (67108864 bytes) are needed");
    run("--rw=write --filename=sparse --io_size=1M").ok();
    drop(sparse);
    fs::remove_file(mounted.directory.join("sparse")).unwrap();
    run("--rw=write --size=64M --io_size=1M").ok();
    run("--rw=randwrite --size=8M").ok();
    // What the file has already is not needed again.
    run("--rw=write --size=8M --loops=2").ok();
    run("--rw=write --size=8M --offset=4M").ok();
    drop(mounted);
}

#[test]
fn fill_device_ends_well_when_the_file_system_is_full() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let line = "--name=a --directory=mounted --rw=write --fill_device=1 --bs=64k --output-format=json";
    let run = Program::under_test().line(dir.path(), line).ok();
    let [_, written, _] = Json::parse(&run.stdout).job().bytes();
    assert!(written > 8 << 20 && written < 16 << 20, "{written} bytes on an image of 16 MiB");
    assert_eq!(files_in(&mounted.directory), sizes(&[("a.0.0", written)]));
}

#[test]
fn reading_with_fill_device_reads_up_to_the_free_space() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let line = "--name=a --directory=mounted --rw=read --fill_device=1 --bs=4k --output-format=json";
    let run = Program::under_test().line(dir.path(), line).ok();
    let [read, _, _] = Json::parse(&run.stdout).job().bytes();
    assert!(read > 8 << 20 && read < 16 << 20, "{read} bytes on an image of 16 MiB");
    assert_eq!(files_in(&mounted.directory), sizes(&[("a.0.0", read)]));
}

#[test]
fn failing_posix_fallocate_is_reported_and_the_job_continues() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let line = "--name=a --directory=mounted --rw=write --fallocate=posix --size=64M --io_size=1M";
    let run = Program::under_test().line(dir.path(), line).ok().says("posix_fallocate fails: No space left");
    assert!(run.stdout.contains("issued rwts: total=0,256,0,0"), "{run}");
    drop(mounted);
}

/// fio makes a regular file of that name.
#[test]
fn a_missing_device_does_not_become_a_file() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio makes the file");
    }
    let dir = scratch();
    let missing = "/dev/iolite-no-such-device";
    for rw in ["read", "write"] {
        let line =
            format!("--name=first --rw=write --size=64k --name=a --filename={missing} --rw={rw} --size=1M");
        refused(dir.path(), &line).says(&format!("{missing} does not exist"));
        assert!(!Path::new(missing).exists());
    }
}

/// Here, Iolite is deliberately stricter than fio.
#[test]
pub fn a_mounted_device_is_not_written() {
    let dir = scratch();
    let program = Program::under_test();
    let mounted = or_skip!(Mounted::new(dir.path(), 16 << 20));
    let device = &mounted.device.path;
    for rw in ["write", "randrw", "randtrim"] {
        let line = format!("--name=a --filename={device} --rw={rw} --bs=4k --size=64k --offset=8M");
        if !program.is_peer || rw == "write" {
            let run = program.line(dir.path(), &line);
            // fio prints a message, too, but its exit status is 0.
            assert!(program.is_peer || run.code() == 1, "{run}");
            assert!(run.output().contains("mounted"), "{run}");
            assert!(run.output().contains("allow_mounted_write"), "the way out is named: {run}");
        }
    }
    // Reading is harmless, and allowed with confirmation. The offset is in free space.
    program.line(dir.path(), &format!("--name=a --filename={device} --rw=read --size=64k")).ok();
    let line =
        format!("--name=a --filename={device} --rw=write --size=64k --offset=8M --allow_mounted_write=1");
    program.line(dir.path(), &line).ok();
}

#[test]
fn a_device_below_a_mounted_one_is_not_written() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio looks at mounts only");
    }
    let dir = scratch();
    let outer = image(dir.path(), "outer.img", 32 << 20);
    let device = or_skip!(Loop::on(&outer));
    // A loop device on a loop device: the upper one holds the lower one.
    let upper = or_skip!(Loop::on(Path::new(&device.path)));
    let line = format!("--name=a --filename={} --rw=write --size=64k", device.path);
    let run = program.line(dir.path(), &line);
    // The kernel does not list loop devices as holders of their backing devices, so the write may succeed or be refused
    // with the remedy.
    assert!(run.code() == 0 || run.output().contains("allow_mounted_write"), "{run}");
    drop(upper);
}

#[test]
fn a_failing_job_does_not_take_the_others_with_it() {
    let dir = scratch();
    let line =
        "--name=bad --filename=/dev/full --rw=write --size=1M --name=good --filename=f --rw=write --size=1M";
    Program::under_test().line(dir.path(), line).refused();
    assert_eq!(files_in(dir.path()), sizes(&[("f", 1 << 20)]));
}

#[test]
fn exitall_on_error_ends_the_others() {
    let dir = scratch();
    let line = "--exitall_on_error --name=bad --startdelay=500ms --filename=/dev/full --rw=write --size=1M \
                --name=long --ioengine=null --size=1M --time_based --runtime=100";
    // Without the option, this would exceed the time limit of the tests.
    Program::under_test().line(dir.path(), line).refused();
}

#[test]
fn parse_only_does_nothing() {
    let dir = scratch();
    let run = Program::under_test().line(dir.path(), "--parse-only --name=a --rw=write --size=1M").ok();
    assert_eq!(files_in(dir.path()), sizes(&[]), "{run}");
    refused(dir.path(), "--parse-only --name=a --rw=sideways --size=1M");
}
