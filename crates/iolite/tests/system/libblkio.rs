//! `libblkio` on files, on loop devices, and on disks that another process serves.

use crate::common::devices::{Loop, Mounted, image};
use crate::common::program::Running;
use crate::common::{Finished, Json, Program, is_root, report, scratch, start, words};
use iolite_testing::{VhostUserDisk, libblkio, or_skip, partly_skipped, stand_in, this_test, write_program};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// The size of devices.
const SIZE: u64 = 4 * MIB;

/// Begins a job of this engine, with the library of this directory.
fn begin(dir: &Path, library: &Path, line: &str) -> Running {
    let mut command = Command::new(Program::own().path);
    command.args(words(&format!("--name=job --ioengine=libblkio --bs=4k {line}")));
    Running::start(command.current_dir(dir).env("LD_LIBRARY_PATH", library))
}

fn run(dir: &Path, library: &Path, line: &str) -> Finished {
    begin(dir, library, line).wait()
}

#[track_caller]
fn json(dir: &Path, library: &Path, line: &str) -> Json {
    let json = Json::parse(&run(dir, library, &format!("{line} --output-format=json")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// What this engine writes, another reads, and the other way round.
#[track_caller]
fn verify_both_ways(dir: &Path, library: &Path, device: &str, file: &Path) {
    let own = |line: &str| json(dir, library, &format!("{device} {line}"));
    let beside =
        |line: &str| report(dir, &format!("--name=job --bs=4k --filename={} {line}", file.display()));
    for depth in [1, 32] {
        let wrote =
            own(&format!("--rw=randwrite --iodepth={depth} --verify=crc32c --fsync=64 --end_fsync=1"));
        assert_eq!(wrote.job().bytes(), [SIZE, SIZE, 0]);
        beside("--rw=randread --verify=crc32c --verify_only --ioengine=psync");
        beside("--rw=randwrite --verify=md5 --do_verify=0 --end_fsync=1 --ioengine=psync --direct=1");
        own(&format!("--rw=randread --iodepth={depth} --verify=md5 --verify_only"));
        let failed =
            run(dir, library, &format!("{device} --rw=read --iodepth={depth} --verify=sha256 --verify_only"));
        assert_eq!(failed.code(), 1, "the data is another");
    }
}

#[test]
fn files_and_block_devices_hold_what_was_written() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    let file = image(dir.path(), "file", SIZE);
    let device = "--libblkio_driver=io_uring --libblkio_path=file";
    for direct in ["--direct=1", "--direct=0"] {
        verify_both_ways(dir.path(), &library, &format!("{device} {direct}"), &file);
    }
    let run_all = |line: &str| json(dir.path(), &library, &format!("{device} {line}"));
    for mode in ["block", "eventfd", "loop"] {
        let line = format!("--libblkio_wait_mode={mode} --rw=randrw --iodepth=8 --verify=crc32c --direct=1");
        run_all(&line);
        run_all(&format!(
            "{line} --libblkio_vectored --size=1m --iodepth_batch=4 --iodepth_batch_complete_min=4"
        ));
    }
    // Memory of the job's own kind, clones as processes and as threads, submitting threads, large and varied blocks.
    for line in [
        "--rw=randwrite --mem=mmapshared --iodepth=4 --verify=crc32c --size=1m",
        "--rw=randwrite --numjobs=2 --offset_increment=1m --size=1m --verify=crc32c",
        "--rw=randwrite --numjobs=3 --thread --offset_increment=1m --size=1m --verify=crc32c --iodepth=8",
        "--rw=randwrite --io_submit_mode=offload --iodepth=4 --size=1m --verify=crc32c",
        "--rw=randwrite --bsrange=512-64k --iodepth=4 --verify=crc32c --sync=1 --iomem_align=4k",
        "--rw=write --bs=1m --iodepth=2 --verify=crc32c --zero_buffers",
    ] {
        run_all(line);
    }
    // A job that only reads needs no right to write.
    run_all("--rw=read --readonly");
    for (line, said) in [
        ("--rw=write --readonly", "--readonly"),
        ("--rw=write --unlink=1", "unlink=1: with ioengine=libblkio"),
        ("--rw=write --size=8m", "has 4194304 bytes, and the job needs 8388608"),
    ] {
        run(dir.path(), &library, &format!("{device} {line}")).refused().says(said);
    }
    if !is_root() {
        partly_skipped(&this_test!(), "only root can attach loop devices");
        return;
    }
    match Loop::new(dir.path(), SIZE) {
        Ok(attached) => {
            let device = format!("--libblkio_driver=io_uring --libblkio_path={}", &attached.path);
            verify_both_ways(
                dir.path(),
                &library,
                &format!("{device} --direct=1"),
                Path::new(&attached.path),
            );
        }
        Err(why) => partly_skipped(&this_test!(), &why),
    }
}

#[test]
pub fn trims_discard_or_write_zeros() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    fs::write(dir.path().join("file"), vec![1; MIB as usize]).unwrap();
    let device = "--libblkio_driver=io_uring --libblkio_path=file --rw=trim --bs=64k";
    // Whether files can discard depends on the library and the kernel; zeros can always be written.
    let discards = run(dir.path(), &library, device);
    assert!(
        discards.code() == 0
            || discards.output().contains("libblkio_write_zeroes_on_trim writes zeros instead")
    );
    let polled = run(dir.path(), &library, &format!("{device} --hipri --iodepth=2 --parse-only"));
    polled.says("hipri: trims run one at a time, whatever iodepth is");
    let zeros = json(dir.path(), &library, &format!("{device} --libblkio_write_zeroes_on_trim"));
    assert_eq!(zeros.job().ios()[2], 16);
    assert!(fs::read(dir.path().join("file")).unwrap().iter().all(|&byte| byte == 0));
}

#[test]
fn a_disk_of_another_process_holds_what_was_written() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    let file = image(dir.path(), "disk", SIZE);
    let disk = or_skip!(VhostUserDisk::start(dir.path(), &file));
    let device =
        format!("--libblkio_driver=virtio-blk-vhost-user --libblkio_path={}", disk.socket().display());
    verify_both_ways(dir.path(), &library, &device, &file);
    for line in [
        "--rw=randrw --iodepth=8 --libblkio_wait_mode=eventfd --libblkio_vectored",
        "--rw=randrw --iodepth=8 --libblkio_wait_mode=loop",
        "--rw=randwrite --iodepth=8 --numjobs=4 --thread --size=1m --offset_increment=1m --verify=crc32c",
        "--rw=randwrite --iodepth=4 --hipri --verify=crc32c --fsync=32 --end_fsync=1",
        "--rw=randwrite --iodepth=4 --hipri --numjobs=3 --thread --size=1m --offset_increment=1m --fsync=8",
        "--rw=randwrite --iodepth=3 --io_submit_mode=offload --verify=crc32c",
        "--rw=write --sync=1 --size=64k",
        "--rw=randread --iodepth=300 --libblkio_queue_size=16",
        "--rw=randtrimwrite --iodepth=4 --size=1m --verify=crc32c",
    ] {
        json(dir.path(), &library, &format!("{device} {line}"));
    }
    // Trims of a queue that is polled are in flight together.
    let polled = json(dir.path(), &library, &format!("{device} --rw=trim --iodepth=16 --hipri --size=1m"));
    assert!(polled.job().float("iodepth_level.16") > 0.0);
    let before = fs::metadata(&file).unwrap().blocks();
    json(dir.path(), &library, &format!("{device} --rw=trim --bs=1m --iodepth=2"));
    assert!(fs::metadata(&file).unwrap().blocks() < before, "trims give space back");
    for (line, said) in [
        ("--rw=read --numjobs=2", "a virtio device takes one client at a time; add thread=1"),
        ("--rw=read --numjobs=5 --thread", "use all of its queues; lower numjobs (or iodepth with"),
        (
            "--rw=read --io_submit_mode=offload --iodepth=4",
            "(or iodepth with io_submit_mode=offload, whose threads",
        ),
        ("--rw=read --mem=mmap", "needs memory of its own kind for the buffers; leave mem (iomem) out"),
        ("--rw=read --bs=100", "bs=100: the device takes multiples of 512 bytes"),
        (
            "--rw=read --bsrange=100-3000",
            "bytes at 0: the device takes multiples of 512 bytes (bsrange, bssplit",
        ),
        (
            "--rw=read --bssplit=512/50:700/50",
            "the device takes multiples of 512 bytes (bsrange, bssplit, offset)",
        ),
        ("--rw=read --offset=100 --size=1m", "4096 bytes at 100: the device takes multiples of 512 bytes"),
        ("--rw=read --libblkio_queue_size=3", "libblkio_queue_size: queue-size=3: "),
    ] {
        let refused = run(dir.path(), &library, &format!("{device} {line}"));
        assert_eq!(refused.code(), 1, "{line}");
        refused.says(said);
    }
}

#[test]
pub fn a_process_that_dies_or_hangs_is_an_error() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    let file = image(dir.path(), "disk", SIZE);
    let mut disk = or_skip!(VhostUserDisk::start(dir.path(), &file));
    let device =
        format!("--libblkio_driver=virtio-blk-vhost-user --libblkio_path={}", disk.socket().display());
    for mode in ["block", "eventfd", "loop"] {
        for (dies, limit, said) in [
            (true, "1h", "the connection was lost: the process that serves the device is gone"),
            (false, "1s", "no answer within 1 s (libblkio_timeout)"),
        ] {
            let line = format!(
                "{device} --rw=randrw --iodepth=8 --time_based --runtime=1h --rate_iops=2000 --libblkio_timeout={limit} \
                 --libblkio_wait_mode={mode} --status-interval=100ms"
            );
            let mut running = begin(dir.path(), &library, &line);
            running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
            if dies {
                disk.kill()
            } else {
                disk.signal(libc::SIGSTOP)
            }
            let ended = running.wait();
            assert_eq!(ended.code(), 1);
            ended.says(said);
            // It returns.
            disk.restart().unwrap();
            json(dir.path(), &library, &format!("{device} --rw=read --iodepth=4"));
        }
    }
    // An interrupted job does not wait for a disk without a time limit.
    let interim = "--time_based --runtime=1h --status-interval=100ms";
    let endless = format!("--rw=randread --iodepth=8 --libblkio_timeout=0 {interim}");
    let mut running = begin(dir.path(), &library, &format!("{device} {endless}"));
    running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
    disk.signal(libc::SIGSTOP);
    running.wait_until("nothing is answered", |running| {
        let output = running.stdout();
        let mut totals = output.lines().filter(|line| line.contains("issued rwts")).rev();
        totals.next().is_some_and(|last| totals.next() == Some(last))
    });
    running.signal(libc::SIGINT);
    running.wait().says("no answer in 10 s after the job was asked to end");
    disk.restart().unwrap();
    // Nor for its answer to the end, if nothing is in flight.
    let mut running = begin(
        dir.path(),
        &library,
        &format!("{device} --rw=read --thinktime=1h --libblkio_timeout=0 {interim}"),
    );
    running.wait_until("it waits", |running| running.stdout().contains("issued rwts: total=1,"));
    disk.signal(libc::SIGSTOP);
    running.signal(libc::SIGINT);
    running.wait().says("issued rwts: total=1,");
    // Nor does one that begins then wait for ever, also if it shares the connection of another one.
    let refused = run(dir.path(), &library, &format!("{device} --rw=read --libblkio_timeout=1s")).refused();
    refused.says("no answer within 1 s (libblkio_timeout); it serves one client at a time, perhaps another");
    disk.restart().unwrap();
    let line = format!("{device} --rw=read --thread --libblkio_timeout=5s --exitall_on_error {interim}");
    write_program(&dir.path().join("gate"), "#!/bin/sh\nuntil [ -e open ]; do sleep 0.1; done\n").unwrap();
    let other = format!("--name=other --ioengine=libblkio --bs=4k --wait_for=gate {line}");
    let gate = "--name=gate --ioengine=exec --program=./gate";
    let mut running = begin(dir.path(), &library, &format!("--thinktime=1h {line} {gate} {other}"));
    running.wait_until("it waits", |running| running.stdout().contains("issued rwts: total=1,"));
    disk.signal(libc::SIGSTOP);
    fs::write(dir.path().join("open"), "").unwrap();
    let ended = running.wait();
    assert_eq!(ended.code(), 1);
    ended.says("no answer within 5 s (libblkio_timeout)");
}

#[test]
fn a_full_file_system_is_an_error_of_the_write() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 8 * MIB));
    let file = image(&mounted.directory, "disk", 64 * MIB);
    let line = format!("--libblkio_driver=io_uring --libblkio_path={} --direct=1", file.display());
    let full = run(dir.path(), &library, &format!("{line} --rw=write --bs=64k --iodepth=4"));
    assert_eq!(full.code(), 1);
    full.says("No space left on device");
    let file = image(dir.path(), "disk", SIZE);
    let disk = or_skip!(VhostUserDisk::full(dir.path(), &file));
    let line = format!("--libblkio_driver=virtio-blk-vhost-user --libblkio_path={}", disk.socket().display());
    let full = run(dir.path(), &library, &format!("{line} --rw=write --bs=64k --iodepth=4"));
    assert_eq!(full.code(), 1);
    full.says("Input/output error");
    let counted = run(dir.path(), &library, &format!("{line} --rw=write --bs=1m --continue_on_error=all"));
    counted.says("total=4, first_error=5/<Input/output error>");
}

#[test]
pub fn mistakes_are_explained() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    image(dir.path(), "file", MIB);
    let drivers = "--libblkio_driver=io_uring --libblkio_path=";
    for (line, said) in [
        ("--libblkio_path=file", "libblkio_driver: it is missing; io_uring (files and devices)"),
        ("--libblkio_driver=nonesuch --libblkio_path=file", "Unknown driver name; libblkio 1.5 has io_uring"),
        (
            &format!("{drivers}missing"),
            "the driver io_uring cannot connect: No such file or directory; no job",
        ),
        (&format!("{drivers}/dev/missing"), "libblkio_path=/dev/missing: it does not exist"),
        (
            &format!("{drivers}file --libblkio_pre_connect_props=x=1"),
            "libblkio_pre_connect_props: x=1: Unknown",
        ),
        (&format!("{drivers}file --libblkio_pre_connect_props=x"), "\"x\" is no property: NAME=VALUE is one"),
        (
            &format!("{drivers}file --libblkio_pre_start_props=num-entries=x"),
            "libblkio_pre_start_props: num-entries=x: ",
        ),
        (&format!("{drivers}file --libblkio_queue_size=8"), "libblkio_queue_size: queue-size=8: Unknown"),
        (&format!("{drivers}file --libblkio_num_entries=0"), "libblkio_num_entries"),
        (
            &format!("{drivers}file --hipri --libblkio_wait_mode=eventfd"),
            "hipri: a queue that is polled has no",
        ),
        (
            "--libblkio_driver=nvme-io_uring --libblkio_path=file",
            "this driver needs a node such as /dev/ng0n1",
        ),
        (
            "--libblkio_driver=virtio-blk-vhost-user --libblkio_path=none",
            "nobody serves this socket: qemu-storage-daemon",
        ),
    ] {
        run(dir.path(), &library, &format!("{line} --rw=read")).refused().says(said);
    }
}

#[test]
fn without_the_library_its_package_is_named() {
    let dir = scratch();
    // A file with the library's name that is not a library.
    fs::write(dir.path().join("libblkio.so.1"), "no library").unwrap();
    let refused =
        run(dir.path(), dir.path(), "--libblkio_driver=io_uring --libblkio_path=f --rw=read").refused();
    refused.says("libblkio.so.1 cannot be used").says("package libblkio1 of Debian").says("libblkio of RHEL");
    // What its job file says can be checked without it.
    start(
        dir.path(),
        "--name=j --ioengine=libblkio --libblkio_driver=io_uring --libblkio_path=f --parse-only",
    )
    .ok();
}

/// Passes all calls on to the real library, and notes those that options decide about.
const NOTING: &str = r#"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv("REAL"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}
static void note(const char *words, const char *more, const char *value) {
    FILE *to = fopen(getenv("NOTES"), "a");
    fprintf(to, "%s%s%s\n", words, more, value);
    fclose(to);
}
#define PASS(result, name, types, values) \
    result name types { return ((result (*) types)(uintptr_t)real(#name)) values; }
#define NOTE(name, types, values) \
    void name types { note(#name, "", ""); ((void (*) types)(uintptr_t)real(#name)) values; }
PASS(const char *, blkio_get_error_msg, (void), ())
PASS(int, blkio_connect, (void *b), (b))
PASS(int, blkio_start, (void *b), (b))
PASS(void, blkio_destroy, (void **b), (b))
PASS(int, blkio_get_bool, (void *b, const char *n, void *v), (b, n, v))
PASS(int, blkio_get_int, (void *b, const char *n, void *v), (b, n, v))
PASS(int, blkio_get_uint64, (void *b, const char *n, void *v), (b, n, v))
PASS(int, blkio_alloc_mem_region, (void *b, void *r, size_t n), (b, r, n))
PASS(void, blkio_free_mem_region, (void *b, const void *r), (b, r))
PASS(int, blkio_map_mem_region, (void *b, const void *r), (b, r))
PASS(void, blkio_unmap_mem_region, (void *b, const void *r), (b, r))
PASS(void *, blkio_get_queue, (void *b, int i), (b, i))
PASS(int, blkio_add_queue, (void *b), (b))
PASS(int, blkio_add_poll_queue, (void *b), (b))
PASS(int, blkioq_get_completion_fd, (void *q), (q))
int blkio_create(const char *driver, void **b) {
    note("driver ", driver, "");
    return ((int (*)(const char *, void **))(uintptr_t)real("blkio_create"))(driver, b);
}
int blkio_set_str(void *b, const char *name, const char *value) {
    char words[100];
    snprintf(words, sizeof words, "set %s=", name);
    note(words, value, "");
    return ((int (*)(void *, const char *, const char *))(uintptr_t)real("blkio_set_str"))(b, name, value);
}
void *blkio_get_poll_queue(void *b, int i) {
    note("poll queue", "", "");
    return ((void *(*)(void *, int))(uintptr_t)real("blkio_get_poll_queue"))(b, i);
}
int blkioq_do_io(void *q, void *c, int least, int most, void *t) {
    static int waits;
    if (least > 0 && !waits++) note("waits", "", "");
    return ((int (*)(void *, void *, int, int, void *))(uintptr_t)real("blkioq_do_io"))(q, c, least, most, t);
}
NOTE(blkioq_set_completion_fd_enabled, (void *q, _Bool on), (q, on))
NOTE(blkioq_read, (void *q, uint64_t s, void *d, size_t n, void *u, uint32_t f), (q, s, d, n, u, f))
NOTE(blkioq_write, (void *q, uint64_t s, const void *d, size_t n, void *u, uint32_t f), (q, s, d, n, u, f))
NOTE(blkioq_readv, (void *q, uint64_t s, const void *v, int n, void *u, uint32_t f), (q, s, v, n, u, f))
NOTE(blkioq_writev, (void *q, uint64_t s, void *v, int n, void *u, uint32_t f), (q, s, v, n, u, f))
NOTE(blkioq_write_zeroes, (void *q, uint64_t s, uint64_t n, void *u, uint32_t f), (q, s, n, u, f))
NOTE(blkioq_discard, (void *q, uint64_t s, uint64_t n, void *u, uint32_t f), (q, s, n, u, f))
NOTE(blkioq_flush, (void *q, void *u, uint32_t f), (q, u, f))
"#;

#[test]
pub fn options_reach_the_library() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    image(dir.path(), "file", MIB);
    image(dir.path(), "other", MIB);
    or_skip!(stand_in(NOTING, "libblkio.so.1", dir.path()));
    let notes = dir.path().join("notes");
    let noted = |line: &str| {
        let _ = fs::remove_file(&notes);
        let mut command = Command::new(Program::own().path);
        let job = "--name=job --ioengine=libblkio --libblkio_driver=io_uring --libblkio_path=file --bs=64k";
        command.args(words(&format!("{job} {line}"))).current_dir(dir.path());
        command.env("LD_LIBRARY_PATH", dir.path()).env("NOTES", &notes);
        command.env("REAL", library.join("libblkio.so.1"));
        Running::start(&mut command).wait().ok();
        fs::read_to_string(&notes).unwrap()
    };
    let events = "blkioq_set_completion_fd_enabled";
    let plain = noted("--rw=readwrite --direct=1 --end_fsync=1");
    for expected in [
        "driver io_uring\n",
        "set path=file\nset direct=true\nset read-only=false\n",
        "blkioq_read\n",
        "blkioq_write\n",
        "blkioq_flush\n",
        "waits\n",
    ] {
        assert!(plain.contains(expected), "{expected}: {plain}");
    }
    for unexpected in ["readv", "writev", events, "num-entries", "poll queue"] {
        assert!(!plain.contains(unexpected), "{unexpected}: {plain}");
    }
    let vectored = noted("--rw=readwrite --libblkio_vectored");
    assert!(vectored.contains("blkioq_readv\n") && vectored.contains("blkioq_writev\n"), "{vectored}");
    assert!(vectored.contains("set direct=false\n") && !vectored.contains("blkioq_read\n"), "{vectored}");
    let reading = noted("--rw=read --libblkio_num_entries=16 --libblkio_pre_start_props=num-entries=32");
    assert!(reading.contains("set read-only=true\n"), "{reading}");
    let (first, second) = (reading.find("set num-entries=16\n"), reading.find("set num-entries=32\n"));
    assert!(first.is_some() && first < second, "{reading}");
    let props = noted(r"--rw=read --libblkio_pre_connect_props=path=other:direct=true");
    assert!(props.contains("set read-only=true\nset path=other\nset direct=true\n"), "{props}");
    let looping = noted("--rw=read --libblkio_wait_mode=loop");
    assert!(!looping.contains("waits\n") && !looping.contains(events), "{looping}");
    let eventful = noted("--rw=read --libblkio_wait_mode=eventfd");
    assert!(!eventful.contains("waits\n") && eventful.contains(events), "{eventful}");
    let forced = noted("--rw=read --libblkio_force_enable_completion_eventfd");
    assert!(forced.contains("waits\n") && forced.contains(events), "{forced}");
    let zeros = noted("--rw=trim --libblkio_write_zeroes_on_trim");
    assert!(zeros.contains("blkioq_write_zeroes\n") && !zeros.contains("blkioq_discard"), "{zeros}");
}

#[test]
fn the_example_runs() {
    let library = or_skip!(libblkio());
    let dir = scratch();
    let file = image(dir.path(), "disk", 64 * MIB);
    let disk = or_skip!(VhostUserDisk::start(dir.path(), &file));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers/libblkio.fio");
    let text = fs::read_to_string(example).unwrap();
    fs::write(dir.path().join("job.fio"), text.replace("=16M", "=1M")).unwrap();
    let mut command = Command::new(Program::own().path);
    command.args(words("--output-format=json job.fio")).current_dir(dir.path());
    command.env("LD_LIBRARY_PATH", &library).env("DISK", disk.socket());
    let json = Json::parse(&Running::start(&mut command).wait().ok().stdout);
    assert_eq!(json.jobs().len(), 6);
}
